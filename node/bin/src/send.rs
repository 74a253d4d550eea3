//! `almanac send`: makes, signs and sends native transactions (`docs/native-transactions.md`).
//!
//! ```text
//! flags ──> Draft ──> signatures ──> node, which answers with a receipt
//!             ^           |
//!  --file ────┘           └──> --out, for the next signer
//! ```

mod calls;
mod draft;
mod fill;
mod outcome;
mod read_back;
mod signer;
mod submit;

use crate::{
    cli::parse_duration,
    client::{
        address::parse_address,
        amount::{parse_amount, parse_price},
        sending::SendingArgs,
    },
    private_file,
    regular_file::{self, TRANSACTION_BYTES_MAX},
};
use alloy_primitives::{Address, B256, Bytes, U256};
use almanac_primitives::{DurationMs, NativeCall};
use anyhow::{Context as _, ensure};
use calls::parse_call;
use clap::{ArgGroup, Args};
use draft::Draft;
pub(crate) use signer::KeyArgs;
use signer::Role;
use std::{io::Write as _, path::PathBuf};
pub(crate) use submit::submit;

/// What to send, who signs, and where it goes.
#[derive(Clone, Debug, Args)]
#[command(
    group(ArgGroup::new("what").required(true).multiple(false).args(["to", "call", "calls", "file"])),
    after_help = "Examples:
  almanac send --dev-account 0 --to 0x70997970C51812dc3A010C7d01b50e0d17dc79C8 --value 0.5coins
  almanac send --key-file my.key --call 0x7099…79C8:5gwei:0x --call 0x3C44…93BC:0:0xd09de08a --yes
  almanac send --key alice --to 0x7099…79C8 --sequence
  almanac send --key-file my.key --to 0x7099…79C8 --fee-payer 0x3C44…93BC --out tx.json
  almanac send --key-file payer.key --file tx.json
  almanac send --offline --chain-id 31337 --genesis 0x… --gas-limit 100000 --max-fee 3gwei \\
      --key-file my.key --to 0x7099…79C8 --out tx.json

It is orderless: it waits for no other transaction, and expires. --sequence takes the account's next number instead.
A transaction in a file may get further signatures: of the fee payer, or of other keys of the account.
At a terminal it reads back and asks; in a pipe it sends without asking."
)]
pub(crate) struct SendCommand {
    /// Account to call or pay.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    to: Option<Address>,

    /// What goes to --to: wei, 3gwei, 0.1coins.
    #[arg(long, value_name = "AMOUNT", default_value = "0", value_parser = parse_amount, requires = "to")]
    value: U256,

    /// Calldata for --to.
    #[arg(long, value_name = "HEX", default_value = "0x", requires = "to")]
    data: Bytes,

    /// A call of a batch, all or nothing; may be repeated. Without TO it creates a contract, alone.
    #[arg(long, value_name = "TO:VALUE:DATA", value_parser = parse_call)]
    call: Vec<NativeCall>,

    /// File with the calls of a batch: [{"to": "0x…", "value": "5", "data": "0x…"}].
    #[arg(long, value_name = "FILE")]
    calls: Option<PathBuf>,

    /// Transaction that --out wrote: add a signature, if there is a key, and send it.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// For whom it signs [default: for the fee payer if the key is the payer's own, otherwise for the sender].
    #[arg(long = "as", value_name = "WHO")]
    role: Option<Role>,

    /// In whose name it acts, if not the key's own account.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "file", value_parser = parse_address)]
    from: Option<Address>,

    /// Use the account's sequence number; without N, ask the node for the next.
    #[arg(long, value_name = "N", num_args = 0..=1, conflicts_with_all = ["nonce", "file"])]
    sequence: Option<Option<u64>>,

    /// Nonce of an orderless transaction [default: random].
    #[arg(long, value_name = "N", conflicts_with = "file")]
    nonce: Option<u64>,

    /// Time until it expires: at most 60s if it is orderless [default: 40s, with --sequence never].
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with = "file")]
    expires_in: Option<DurationMs>,

    /// Account that pays for the gas. It has to sign, too.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "file", value_parser = parse_address)]
    fee_payer: Option<Address>,

    /// Gas that it may use [default: as the node estimates].
    #[arg(long, value_name = "GAS", conflicts_with = "file")]
    gas_limit: Option<u64>,

    /// Most that it pays per gas [default: twice the node's price].
    #[arg(long, value_name = "AMOUNT", conflicts_with = "file", value_parser = parse_price)]
    max_fee: Option<u128>,

    /// Most that it pays per gas above the base fee [default: as the node advises, offline 1gwei].
    #[arg(long, value_name = "AMOUNT", conflicts_with = "file", value_parser = parse_price)]
    priority_fee: Option<u128>,

    /// Ask no node for anything. Needs --chain-id, --genesis, --gas-limit, --max-fee and --out.
    #[arg(long = "offline", requires_all = ["chain_id", "genesis", "gas_limit", "max_fee", "out"], conflicts_with = "file")]
    is_offline: bool,

    /// Id of the chain.
    #[arg(long, value_name = "ID", requires = "is_offline")]
    chain_id: Option<u64>,

    /// Hash of the chain's block 0, which every signature covers.
    #[arg(long, value_name = "HASH", requires = "is_offline")]
    genesis: Option<B256>,

    /// Write the transaction to this file instead of sending it.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Do not wait for the receipt.
    #[arg(long = "no-wait", conflicts_with = "out")]
    is_not_waiting: bool,

    #[command(flatten)]
    sending: SendingArgs,
}

/// Does what the command says.
pub(crate) fn run(command: &SendCommand) -> anyhow::Result<()> {
    let mut key = command.sending.key.read()?;
    let mut draft = match &command.file {
        Some(path) => Draft::read(path)?,
        None => {
            let named = key.map_or_else(|| command.sending.key.required(), Ok)?;
            fill::draft(command, key.insert(named))?
        }
    };
    if !read_back::agree(command, &draft)? {
        return Ok(());
    }
    if command.file.is_none() {
        // A person may have read for longer than it is valid.
        fill::expire_from_now(command, &mut draft)?;
    }
    if let Some(key) = &key {
        draft.sign(key, command.role)?;
    }
    match &command.out {
        Some(path) => write(command, &draft, path),
        None => outcome::send(command, &draft),
    }
}

fn write(command: &SendCommand, draft: &Draft, path: &std::path::Path) -> anyhow::Result<()> {
    private_file::replace(path, draft.to_json()?.as_bytes())?;
    let missing = draft.missing();
    let line = match command.sending.output.is_json {
        true => serde_json::json!({ "file": path, "missing": missing }).to_string(),
        false if missing.is_empty() => format!("wrote {}: send it with --file", path.display()),
        false => format!("wrote {}: the {} still has to sign", path.display(), missing.join(" and the ")),
    };
    writeln!(std::io::stdout(), "{line}").context("cannot print")
}

/// The calls that the flags name.
fn named_calls(command: &SendCommand) -> anyhow::Result<Vec<NativeCall>> {
    if let Some(to) = command.to {
        return Ok(vec![NativeCall { to: Some(to), value: command.value, input: command.data.clone() }]);
    }
    match &command.calls {
        Some(path) => calls::read_calls(&regular_file::read_text(path, TRANSACTION_BYTES_MAX)?)
            .with_context(|| format!("{} has no calls", path.display())),
        None => {
            ensure!(!command.call.is_empty(), "there is no call");
            Ok(command.call.clone())
        }
    }
}
