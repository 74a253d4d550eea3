//! `almanac proof`: gets proofs from a node or a data directory, and verifies them offline.

mod datadir;
mod description;
mod file;
mod finality;
mod node;

use crate::{client::address::parse_address, http::Endpoint, private_file};
use alloy_primitives::{Address, B256, BlockHash, TxHash, U256};
use almanac_primitives::{ScheduleId, StateKey, TimestampMs, state::Meta};
use almanac_proof::{LaneName, StateSubject, Subject};
use anyhow::{Context as _, ensure};
use clap::{ArgGroup, Args, Subcommand};
use description::Description;
use serde_json::json;
use std::{io::Write as _, path::PathBuf};

/// What to do about proofs.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ProofCommand {
    /// Get a proof from a running node, or from the data directory of a stopped one.
    Get(Box<GetArgs>),
    /// Verify a proof offline: needs no node, no data directory and no network.
    Verify(VerifyArgs),
}

/// What to prove.
#[derive(Clone, Debug, Args)]
#[command(
    group(ArgGroup::new("where").required(true).args(["rpc", "datadir"])),
    group(ArgGroup::new("what").required(true).args(
        ["account", "schedule", "span", "run", "transaction", "code", "body", "calendar_node", "genesis"]
    )),
    after_help = "Examples:
  almanac proof get --rpc http://127.0.0.1:8545 --account 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266 --out proof.json
  almanac proof get --rpc http://127.0.0.1:8545 --account 0x000000000000000000000000000000000000a105 --slot 0
  almanac proof get --rpc http://127.0.0.1:8545 --schedule 1042-3-0 --out schedule.json
  almanac proof get --rpc http://127.0.0.1:8545 --run 0x… --out run.json
  almanac proof get --rpc http://127.0.0.1:8545 --span cron,1794769201000,1794769260000 --out span.json
  almanac proof get --datadir ./chain --code 0x…

Only presence can be proven: there is no proof that an account or a slot is empty.
If the chain has validators, the file also proves that the block is final. Check it with `almanac proof verify`."
)]
pub(crate) struct GetArgs {
    /// URL of a running node, http://HOST:PORT.
    #[arg(long, alias = "rpc-url", value_name = "URL", value_parser = Endpoint::parse)]
    rpc: Option<Endpoint>,

    /// Data directory of a stopped node.
    #[arg(long, value_name = "DIR")]
    datadir: Option<PathBuf>,

    /// Nonce, balance and code hash of an account; with --slot, a slot of its storage instead.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    account: Option<Address>,

    /// Number of the slot, decimal or 0x-hexadecimal.
    #[arg(long, value_name = "N", requires = "account", value_parser = parse_number)]
    slot: Option<U256>,

    /// A schedule: owner, calls, next run and escrow.
    #[arg(long, value_name = "ID")]
    schedule: Option<ScheduleId>,

    /// All runs of a lane that are due in a span, and no others; times in milliseconds, both included.
    #[arg(long, value_name = "LANE,FROM,TO", value_parser = parse_span)]
    span: Option<SpanArg>,

    /// A run of a schedule and its receipt, by its hash.
    #[arg(long, value_name = "HASH")]
    run: Option<TxHash>,

    /// Any transaction and its receipt, by its hash.
    #[arg(long, value_name = "HASH")]
    transaction: Option<TxHash>,

    /// Contract code by its hash. From a directory only.
    #[arg(long, value_name = "HASH", conflicts_with = "rpc")]
    code: Option<B256>,

    /// The fixed part of a schedule. From a directory only.
    #[arg(long, value_name = "ID", conflicts_with = "rpc")]
    body: Option<ScheduleId>,

    /// A node of the calendar. From a directory only.
    #[arg(long, value_name = "N", conflicts_with = "rpc")]
    calendar_node: Option<u64>,

    /// Chain id, start and validators. From a directory only.
    #[arg(long, conflicts_with = "rpc")]
    genesis: bool,

    /// Write the proof to this file [default: to standard output].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// A lane and two moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpanArg {
    lane: LaneName,
    from: TimestampMs,
    to: TimestampMs,
}

/// What to check, and against what.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  almanac proof verify --proof proof.json --genesis genesis.json  trust only the validators of this genesis
  almanac proof verify --proof proof.json --block-hash 0x…        trust only this hash
  almanac proof verify --proof proof.json --header block.json     take the header from another file
  almanac proof verify --proof proof.json                         trust the header in the proof file

Exits with 0 and prints what is proven, or with 1 and prints the step that failed.")]
pub(crate) struct VerifyArgs {
    /// File that `almanac proof get` wrote.
    #[arg(long, value_name = "FILE")]
    proof: PathBuf,

    /// Genesis file; the signatures of its validators must prove the block final.
    #[arg(long, value_name = "FILE")]
    genesis: Option<PathBuf>,

    /// Proof file whose header is checked against [default: the proof file itself].
    #[arg(long, value_name = "FILE")]
    header: Option<PathBuf>,

    /// Hash of the block, from a source that you trust.
    #[arg(long, value_name = "HASH")]
    block_hash: Option<BlockHash>,
}

/// Does what was asked. It starts a runtime of its own, so it cannot be called from within one.
pub(crate) fn run(command: &ProofCommand) -> anyhow::Result<()> {
    match command {
        ProofCommand::Get(args) => get(args),
        ProofCommand::Verify(args) => {
            let text = judge(args)?;
            Ok(std::io::stdout().write_all(text.as_bytes())?)
        }
    }
}

fn get(args: &GetArgs) -> anyhow::Result<()> {
    let proof = match (&args.rpc, &args.datadir) {
        (Some(node), None) => node::prove(node, &args.wanted()?)?,
        (None, Some(directory)) => datadir::prove(directory, args.subject()?)?,
        _ => anyhow::bail!("where to get the proof is missing: pass --rpc URL or --datadir DIR"),
    };
    let json = proof.to_json() + "\n";
    match &args.out {
        Some(path) => private_file::replace(path, json.as_bytes()),
        None => Ok(std::io::stdout().write_all(json.as_bytes())?),
    }
}

/// What the files prove, in words.
fn judge(args: &VerifyArgs) -> anyhow::Result<String> {
    let proof = file::read(&args.proof)?;
    let header = match &args.header {
        Some(path) => file::read_header(path)?,
        None => proof.decode_header()?,
    };
    if let Some(trusted) = args.block_hash {
        let found = header.hash();
        ensure!(found == trusted, "the header is that of block {found}, not of the trusted {trusted}");
    }
    let finality = args.genesis.as_ref().map(|path| finality::check(path, &proof, &header)).transpose()?;
    let mut text = Description::of(&proof.check(&header)?, header.number)?;
    text.fact("block hash", header.hash());
    text.fact("block time", description::moment(header.timestamp));
    match finality {
        Some(finality) => text.line(finality.to_string()),
        None if args.block_hash.is_some() => text.line("The block is the one whose hash you gave."),
        None => text.line(
            "Whether this block is final was not checked: give the genesis with --genesis, or a block hash that you \
             trust with --block-hash.",
        ),
    }
    Ok(text.finish())
}

impl GetArgs {
    /// What to ask a node for.
    fn wanted(&self) -> anyhow::Result<serde_json::Value> {
        let account = self.account.map(|account| match self.slot {
            Some(slot) => json!({ "account": account, "slot": slot }),
            None => json!({ "account": account }),
        });
        account
            .or(self.schedule.map(|schedule| json!({ "schedule": schedule.to_string() })))
            .or(self.span.map(|span| json!({ "lane": span.lane, "from": span.from.0, "to": span.to.0 })))
            .or(self.run.map(|run| json!({ "run": run })))
            .or(self.transaction.map(|transaction| json!({ "transaction": transaction })))
            .context("what to prove is missing: pass for example --account ADDRESS")
    }

    /// What to look for in a directory.
    fn subject(&self) -> anyhow::Result<Subject> {
        let account = self.account.map(|address| match self.slot {
            Some(slot) => StateKey::Slot(address, slot),
            None => StateKey::Account(address),
        });
        account
            .or(self.code.map(StateKey::Code))
            .or(self.body.map(StateKey::Body))
            .or(self.calendar_node.map(StateKey::Calendar))
            .or(self.genesis.then_some(StateKey::Meta(Meta::Genesis)))
            .map(StateSubject::Value)
            .or(self.schedule.map(StateSubject::Schedule))
            .or(self.span.map(|SpanArg { lane, from, to }| StateSubject::Span { lane, from, to }))
            .map(Subject::State)
            .or(self.run.map(|hash| Subject::Ran { hash, is_run: true }))
            .or(self.transaction.map(|hash| Subject::Ran { hash, is_run: false }))
            .context("what to prove is missing: pass for example --account ADDRESS")
    }
}

/// Reads `5` and `0x5`. `U256` alone would take an empty text for zero, and underscores.
pub(crate) fn parse_number(text: &str) -> Result<U256, String> {
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
    let is_number = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
    is_number
        .then(|| U256::from_str_radix(digits, radix.into()).ok())
        .flatten()
        .ok_or_else(|| format!("{text:?} is not a number below 2^256, decimal or 0x-hexadecimal"))
}

/// Reads `cron,1794769201000,1794769260000`.
fn parse_span(text: &str) -> Result<SpanArg, String> {
    let parts: Vec<&str> = text.split(',').collect();
    let read = || {
        let [lane, from, to] = parts[..] else { return None };
        let lane = serde_json::from_value(json!(lane)).ok()?;
        Some(SpanArg { lane, from: TimestampMs(from.parse().ok()?), to: TimestampMs(to.parse().ok()?) })
    };
    read().ok_or_else(|| {
        format!(
            "{text:?} is no span: write LANE,FROM,TO with a lane of reserved, cron, market and spare, and times in \
             milliseconds"
        )
    })
}

#[cfg(test)]
mod tests;
