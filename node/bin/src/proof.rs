//! `almanac proof`: proves a value of a kept chain, and checks such proofs wherever they come from.

mod file;

use crate::{chain::PARTITION, datadir::Datadir};
use alloy_primitives::{Address, B256, BlockHash, Bytes, KECCAK256_EMPTY, U256};
use almanac_primitives::{Genesis, Header, ScheduleId, StateKey, state::Meta};
use almanac_state::{
    BlockJournal, ProvenValue, QmdbConfig, QmdbStore, SealedBatch as _, StateStore as _, verify,
};
use anyhow::{Context as _, ensure};
use clap::{ArgGroup, Args, Subcommand};
use commonware_runtime::{Runner as _, Spawner};
use commonware_storage::Context;
use file::{HeaderFile, ProofFile};
use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

/// What to do about proofs.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ProofCommand {
    /// Prove a value in the state after the last block of a data directory, whose node must be stopped.
    Get(GetArgs),
    /// Check a proof against a block header: no node, no data directory, no network.
    Verify(VerifyArgs),
}

/// What to prove.
#[derive(Clone, Debug, Args)]
#[command(
    group(ArgGroup::new("what").required(true).args(["account", "code", "body", "calendar_node", "genesis"])),
    after_help = "Examples:
  almanac proof get --datadir ./chain --account 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266 --out proof.json
  almanac proof get --datadir ./chain --account 0x000000000000000000000000000000000000a105 --slot 0
  almanac proof get --datadir ./chain --code 0x…

Only what is there can be proven: a proof that an account or a slot is empty does not exist."
)]
pub(crate) struct GetArgs {
    /// Directory that keeps the chain.
    #[arg(long, value_name = "DIR")]
    datadir: PathBuf,

    /// Nonce, balance and code hash of an account; with --slot, a slot of its storage instead.
    #[arg(long, value_name = "ADDRESS")]
    account: Option<Address>,

    /// Number of the slot, decimal or 0x-hexadecimal.
    #[arg(long, value_name = "N", requires = "account", value_parser = parse_slot)]
    slot: Option<U256>,

    /// Contract code by its hash.
    #[arg(long, value_name = "HASH")]
    code: Option<B256>,

    /// The fixed part of a schedule.
    #[arg(long, value_name = "ID")]
    body: Option<ScheduleId>,

    /// A node of the calendar.
    #[arg(long, value_name = "N")]
    calendar_node: Option<u64>,

    /// Chain id, start and validators.
    #[arg(long)]
    genesis: bool,

    /// Write the proof to this file [default: to standard output].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// What to check, and against what.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  almanac proof verify --proof proof.json --block-hash 0x…     trust this hash and nothing else
  almanac proof verify --proof proof.json --header block.json  take the header from elsewhere
  almanac proof verify --proof proof.json                      take the header that came with the proof

Ends with 0 and says what is proven, or with 1 and says what is wrong.")]
pub(crate) struct VerifyArgs {
    /// File that `almanac proof get` wrote.
    #[arg(long, value_name = "FILE")]
    proof: PathBuf,

    /// File with the header to check against; its form is that of a proof file [default: the proof file].
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
    let proof = prove_in(&args.datadir, args.key()?)?.to_json() + "\n";
    match &args.out {
        Some(path) => fs::write(path, proof).with_context(|| format!("cannot write {}", path.display())),
        None => Ok(std::io::stdout().write_all(proof.as_bytes())?),
    }
}

impl GetArgs {
    fn key(&self) -> anyhow::Result<StateKey> {
        let account = self.account.map(|address| match self.slot {
            Some(slot) => StateKey::Slot(address, slot),
            None => StateKey::Account(address),
        });
        account
            .or(self.code.map(StateKey::Code))
            .or(self.body.map(StateKey::Body))
            .or(self.calendar_node.map(StateKey::Calendar))
            .or(self.genesis.then_some(StateKey::Meta(Meta::Genesis)))
            .context("say what to prove, for example --account ADDRESS")
    }
}

/// Reads `5` and `0x5`. `U256` alone would take an empty text for zero, and underscores.
fn parse_slot(text: &str) -> Result<U256, String> {
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
    let is_number = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
    is_number
        .then(|| U256::from_str_radix(digits, radix.into()).ok())
        .flatten()
        .ok_or_else(|| format!("{text:?} is not a number below 2^256, decimal or 0x-hexadecimal"))
}

fn prove_in(directory: &Path, key: StateKey) -> anyhow::Result<ProofFile> {
    let genesis_path = directory.join("genesis.json");
    // Looked at first: taking a directory makes one, and nobody asked for that.
    ensure!(genesis_path.exists(), "{} holds no chain: there is no genesis.json in it", directory.display());
    let datadir = Datadir::take(directory)?;
    ensure!(datadir.has_chain(), "{} holds no state: start the chain once", directory.display());
    let genesis = datadir.kept_genesis()?;
    datadir.runner().start(|context| async move { prove(&context, &genesis, key).await })
}

async fn prove<E: Context + Spawner>(
    context: &E,
    genesis: &Genesis,
    key: StateKey,
) -> anyhow::Result<ProofFile> {
    let config = QmdbConfig::new(PARTITION);
    let store = QmdbStore::open(context.child("state"), &config, &genesis.state()?).await?;
    let header = match store.height() {
        0 => genesis.header(store.head().commitment())?,
        height => {
            let archive = BlockJournal::open(context.child("blocks"), &config).await?;
            let archived = archive.get(height).await?;
            archived.with_context(|| format!("block {height} is not in the archive"))?.block.header
        }
    };
    let proof = store.prove(&header, key).await?;
    verify(&header, &proof).context("the store made a proof that does not hold: it is damaged")?;
    Ok(ProofFile::new(&header, &proof))
}

/// What the files prove, in words.
fn judge(args: &VerifyArgs) -> anyhow::Result<String> {
    let file = ProofFile::read(&args.proof)?;
    let header = match &args.header {
        Some(path) => HeaderFile::read(path)?,
        None => file.header()?,
    };
    let proof = file.proof()?;
    if let Some(trusted) = args.block_hash {
        let found = header.hash();
        ensure!(found == trusted, "the header is that of block {found}, not of the trusted {trusted}");
    }
    let proven = verify(&header, &proof)?;
    describe(&proven, &header, args.block_hash.is_some())
}

fn describe(proven: &ProvenValue, header: &Header, is_hash_trusted: bool) -> anyhow::Result<String> {
    let mut out = String::new();
    let mut line = |text: String| writeln!(out, "{text}").expect("a String takes any text");
    let number = proven.block_number();
    let key = proven.key();
    match key {
        StateKey::Account(address) => {
            let account = proven.account(address)?;
            line(format!("Proven: account {address} after block {number}"));
            line(format!("  balance     {} coins ({} wei)", coins(account.balance), account.balance));
            line(format!("  nonce       {}", account.nonce));
            line(match account.code_hash {
                KECCAK256_EMPTY => "  code        none".to_owned(),
                hash => format!("  code        {hash}"),
            });
        }
        StateKey::Slot(address, slot) => {
            let value = proven.slot(address, slot)?;
            line(format!("Proven: slot {slot} of {address} after block {number}"));
            line(format!("  value       {value} ({value:#x})"));
        }
        StateKey::Code(hash) => {
            line(format!("Proven: code {hash} after block {number}"));
            line(format!("  bytes       {}", shown(proven.code(hash)?)));
        }
        StateKey::Body(schedule) => {
            line(format!("Proven: body of schedule {schedule} after block {number}"));
            line(format!("  bytes       {}", shown(proven.value_of(key)?)));
        }
        StateKey::Calendar(node) => {
            line(format!("Proven: calendar node {node} after block {number}"));
            line(format!("  bytes       {}", shown(proven.value_of(key)?)));
        }
        StateKey::Meta(Meta::Genesis) => {
            line(format!("Proven: start of the chain, as the state after block {number} has it"));
            line(format!("  bytes       {}", shown(proven.value_of(key)?)));
        }
    }
    line(format!("  block hash  {}", proven.block_hash()));
    line(format!("  block time  {}", header.timestamp));
    line(match is_hash_trusted {
        true => "The block is the one whose hash you gave.".to_owned(),
        false => {
            "Whether this block is final was not checked: compare its hash with one that you trust, or give \
                  that with --block-hash."
                .to_owned()
        }
    });
    Ok(out)
}

/// An amount as people read it: whole coins and up to eighteen decimals, no trailing zeroes.
fn coins(wei: U256) -> String {
    let (whole, rest) = wei.div_rem(U256::from(10).pow(U256::from(18)));
    let text = format!("{whole}.{:0>18}", rest.to_string());
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Bytes for people: code can be as long as a book.
fn shown(bytes: &Bytes) -> String {
    const SHOWN_BYTES_MAX: usize = 64;
    let count = bytes.len();
    match count {
        0..=SHOWN_BYTES_MAX => format!("{bytes} ({count} in all)"),
        _ => format!("{}… ({count} in all)", bytes.slice(..SHOWN_BYTES_MAX)),
    }
}

#[cfg(test)]
mod tests;
