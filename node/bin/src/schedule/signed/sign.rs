//! `almanac schedule sign`: on the chain, or elsewhere with a line or a file that goes back to whoever collects.

use super::{
    IScheduleService,
    file::SigningFile,
    gathering::{Gathering, Parties},
    given::{Given, read_answers},
    key_words::leaf_words,
    line::{Answer, write_answer},
    outcome::After,
    request::Request,
    to_service, wording,
};
use crate::{
    client::{
        output::{Colour, Facts},
        sending::SendingArgs,
    },
    schedule::calls,
};
use alloy_primitives::{Address, U256};
use alloy_sol_types::SolCall as _;
use almanac_primitives::{
    ScheduleId,
    keys::{Leaf, SecretKey},
};
use anyhow::ensure;
use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// What to sign, and where the signature goes.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  almanac schedule sign 2-1-0 --key bob                      sign on the chain
  almanac schedule sign 2-1-0 --request                      print the line for those who sign elsewhere
  almanac schedule sign almanac:sign:… --key carol           read what the line asks for, and answer with a line
  almanac schedule sign 2-1-0 --with almanac:signature:… --with dave.json --key bob     send what others signed
  almanac schedule sign 2-1-0 --out swap.json                write typed data that wallets sign
  almanac schedule sign swap.json --key carol                add a signature to the file

Lines and files need no node to be signed. Whoever sends pays for the gas, and signs too if the schedule asks for it.
The last signature runs it.")]
pub(crate) struct SignArgs {
    /// Id of the schedule, a line that somebody sent, or a file of --out.
    #[arg(value_name = "ID|LINE|FILE")]
    what: String,

    /// Signature of somebody else: a line, a file, or what a wallet answered; may be repeated.
    #[arg(long, value_name = "LINE|FILE|HEX", conflicts_with_all = ["is_request", "out"])]
    with: Vec<String>,

    /// Print the line that asks for signatures, and send nothing.
    #[arg(long = "request", conflicts_with = "out")]
    is_request: bool,

    /// Write typed data and signatures to this file, and send nothing. Without a key it is not signed yet.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    #[command(flatten)]
    sending: SendingArgs,
}

/// Signs.
pub(in crate::schedule) fn run(args: &SignArgs) -> anyhow::Result<()> {
    match Given::read(&args.what)? {
        Given::Id(id) if args.is_request => print_request(args, id),
        Given::Id(id) => match &args.out {
            Some(path) => write_file(args, &pending_request(args, id)?, path),
            None => sign_on_chain(args, id),
        },
        Given::Line(request) => {
            refuse_flags(args, "a line")?;
            match &args.out {
                Some(path) => write_file(args, &request, path),
                None => sign_line(args, &request),
            }
        }
        Given::File(path, file) => {
            refuse_flags(args, "a file")?;
            sign_file(args, file, args.out.as_deref().unwrap_or(&path))
        }
    }
}

/// A flag that would be forgotten in silence.
fn refuse_flags(args: &SignArgs, given: &str) -> anyhow::Result<()> {
    ensure!(
        args.with.is_empty() && !args.is_request,
        "NotOnChain: --with and --request go with an id, and this is {given}: leave them out to sign it"
    );
    Ok(())
}

fn pending_request(args: &SignArgs, id: ScheduleId) -> anyhow::Result<Request> {
    let node = &args.sending.node;
    Ok(Request::to_run(node.chain()?, &Gathering::read_pending(node, id)?))
}

fn print_request(args: &SignArgs, id: ScheduleId) -> anyhow::Result<()> {
    let line = pending_request(args, id)?.line();
    args.sending.output.print(|| json!({ "id": id.to_string(), "request": line }), || format!("{line}\n"))
}

/// What is to be signed for programs: the answer has the rest.
fn asked(request: &Request) -> Value {
    json!({ "id": request.schedule.to_string(), "isDeletion": request.terms.is_none(), "request": request.line() })
}

/// Reads back, and asks whether to sign.
fn agree(args: &SignArgs, request: &Request, key: &SecretKey) -> anyhow::Result<bool> {
    let read_back = || {
        let mut facts = request.facts();
        facts.add("you are", leaf_words(key.leaf()));
        facts.text()
    };
    args.sending.agree("Sign it?", read_back, &asked(request))
}

fn sign_line(args: &SignArgs, request: &Request) -> anyhow::Result<()> {
    let key = args.sending.key.required()?;
    if !agree(args, request, &key)? {
        return Ok(());
    }
    let answer = request.sign(&key);
    let line = write_answer(&answer);
    let mut told = asked(request);
    told["signature"] = json!(line);
    told["key"] = json!(answer.key);
    args.sending
        .output
        .print(|| told, || format!("{}; send back this line:\n{line}\n", Colour::Green.paint("signed")))
}

/// A new file, signed if there is a key.
fn write_file(args: &SignArgs, request: &Request, path: &Path) -> anyhow::Result<()> {
    let file = SigningFile { request: request.clone(), answers: Vec::new() };
    match args.sending.key.read()? {
        Some(_) => sign_file(args, file, path),
        None => {
            file.write(path)?;
            let shown = path.display();
            args.sending.output.print(
                || file_told(request, path, &[]),
                || format!("wrote {shown}: sign it with `almanac schedule sign {shown}`, or its typedData with a wallet\n"),
            )
        }
    }
}

fn sign_file(args: &SignArgs, mut file: SigningFile, path: &Path) -> anyhow::Result<()> {
    let key = args.sending.key.required()?;
    if !agree(args, &file.request, &key)? {
        return Ok(());
    }
    file.add(file.request.sign(&key));
    file.write(path)?;
    let (shown, id, count) = (path.display(), file.request.schedule, file.answers.len());
    let command = if file.request.terms.is_some() { "sign" } else { "cancel" };
    args.sending.output.print(
        || file_told(&file.request, path, &file.answers),
        || {
            format!(
                "{} {shown}, which has {} now; send them with: almanac schedule {command} {id} --with {shown}\n",
                Colour::Green.paint("signed"),
                crate::client::words::counted(count as u64, "signature"),
            )
        },
    )
}

fn file_told(request: &Request, path: &Path, answers: &[Answer]) -> Value {
    let mut told = asked(request);
    told["file"] = json!(path);
    told["signedBy"] = answers.iter().map(|answer| json!(answer.key)).collect();
    told
}

fn sign_on_chain(args: &SignArgs, id: ScheduleId) -> anyhow::Result<()> {
    let node = &args.sending.node;
    let gathering = Gathering::read_pending(node, id)?;
    let request = Request::to_run(node.chain()?, &gathering);
    let key = args.sending.key.required()?;
    let mut answers = read_answers(&request, &args.with)?;
    let sender = key.leaf().account();
    let own = own_signature(&gathering, &key, args.with.is_empty())?;
    if own == Own::ByEntry {
        answers.push(request.sign(&key));
    }
    let after = parties_after(&gathering, &answers, own, sender)?;
    let mut told = asked(&request);
    let read_back = || read_back(&gathering, &answers, own, &key, &after);
    if !args.sending.agree("Sign it?", read_back, &told)? {
        return Ok(());
    }
    let entries = answers.into_iter().map(entry).collect();
    let call = IScheduleService::signScheduleCall { scheduleID: id.0, sigMap: entries };
    let receipt = args.sending.submit(&key, vec![to_service(U256::ZERO, call.abi_encode())])?;
    let after = After::read(node, request.chain, id)?;
    told["transactionHash"] = json!(calls::hash(&receipt));
    after.add_to(&mut told);
    args.sending
        .output
        .print(|| told, || format!("{} {id}\n{}", Colour::Green.paint("signed"), after.words(node)))
}

/// A signature as the service takes it.
pub(super) fn entry(answer: Answer) -> IScheduleService::SignatureEntry {
    let Answer { key, signature, deadline, .. } = answer;
    IScheduleService::SignatureEntry { key, signature, deadline }
}

/// How the sender of the transaction signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Own {
    /// By calling the service.
    ByCall,
    /// With a signature: an Ed25519 key is asked for, and not the account that it controls.
    ByEntry,
    /// Not at all: it brings what others signed, or runs what all have signed.
    Not,
}

fn own_signature(gathering: &Gathering, key: &SecretKey, is_alone: bool) -> anyhow::Result<Own> {
    let (leaf, parties, id) = (key.leaf(), &gathering.parties, gathering.id);
    let words = leaf_words(leaf);
    if !parties.is_asked(leaf) {
        ensure!(
            !is_alone || parties.missing().is_empty(),
            "NotAsked: {id} asks for no signature of {words}: see who has to sign with `almanac schedule show {id}`"
        );
        return Ok(Own::Not);
    }
    if parties.has_signed(leaf) {
        ensure!(
            !is_alone || parties.missing().is_empty(),
            "AlreadySigned: {words} has signed {id}; it waits for {}",
            parties.missing().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        );
        return Ok(Own::Not);
    }
    // A caller counts as its account, and as the secp256k1 key of its address.
    Ok(match parties.is_asked(Leaf::Secp256k1(leaf.account())) {
        true => Own::ByCall,
        false => Own::ByEntry,
    })
}

/// Who will have signed. Signatures that are not asked for would make the chain refuse all of them.
fn parties_after(
    gathering: &Gathering,
    answers: &[Answer],
    own: Own,
    sender: Address,
) -> anyhow::Result<Parties> {
    let mut parties = gathering.parties.clone();
    for answer in answers {
        let leaf = Leaf::decode(&answer.key).filter(|leaf| parties.is_asked(*leaf));
        let Some(leaf) = leaf else {
            anyhow::bail!(
                "NotAsked: {} asks for no signature of {}: leave it out",
                gathering.id,
                Leaf::decode(&answer.key).map_or_else(|| answer.key.to_string(), leaf_words)
            )
        };
        parties = parties.with(leaf, None);
    }
    Ok(match own {
        Own::ByCall => parties.with(Leaf::Secp256k1(sender), Some(sender)),
        Own::ByEntry | Own::Not => parties,
    })
}

fn read_back(
    gathering: &Gathering,
    answers: &[Answer],
    own: Own,
    key: &SecretKey,
    after: &Parties,
) -> String {
    let mut facts = Facts::default();
    facts.add("schedule", gathering.id.to_string());
    wording::add_terms(&mut facts, &gathering.terms, Some(gathering.creator));
    let mut signers: Vec<String> =
        answers.iter().filter_map(|answer| Leaf::decode(&answer.key)).map(leaf_words).collect();
    if own == Own::ByCall {
        signers.push(format!("you, {}", leaf_words(key.leaf())));
    }
    for (index, signer) in signers.iter().enumerate() {
        facts.add(if index == 0 { "signed by" } else { "" }, signer.clone());
    }
    let missing = after.missing();
    facts.add(
        "then",
        match (missing.is_empty(), gathering.terms.body.wait_for_expiry) {
            (true, false) => "all have signed: it runs at once".to_owned(),
            (true, true) => "all have signed: it runs at its time".to_owned(),
            (false, _) => {
                let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
                format!("it waits for {}", missing.join(", "))
            }
        },
    );
    facts.text()
}
