//! `almanac key`: makes, lists, imports and exports encrypted keys of accounts.

use super::{
    KeystoreArgs, PasswordArgs,
    format::{Keystore, account},
    parse_name,
};
use crate::{
    client::output::{OutputArgs, Table},
    private_file,
    regular_file::{self, KEYSTORE_BYTES_MAX},
    secret_file,
};
use alloy_primitives::{Address, B256, hex};
use anyhow::Context as _;
use clap::{ArgGroup, Args, Subcommand};
use serde_json::json;
use std::{io::Write as _, path::PathBuf};

/// What to do about keys.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a new random key, encrypted with a password.
    #[command(after_help = "Examples:
  almanac key new alice
  almanac key new alice --password-file alice.password --json

The file is in the Web3 keystore format of version 3, which geth, cast and wallets read. Without password there is
no way to the key: back up the file, and keep the password.")]
    New(NewArgs),
    /// List the keys.
    #[command(after_help = "Example:\n  almanac key list\n  almanac key list --json")]
    List(ListArgs),
    /// Take over a key from a file: 64 hexadecimal digits, or the keystore of another program.
    #[command(after_help = "Examples:
  almanac key import alice --key-file alice.key
  almanac key import alice --from ~/.foundry/keystores/alice

The password of another program's keystore becomes the password of the new one.")]
    Import(ImportArgs),
    /// Write a key to a file, encrypted as it is, or as 64 hexadecimal digits.
    #[command(after_help = "Examples:
  almanac key export alice --out alice.json
  almanac key export alice --out alice.key --decrypted")]
    Export(ExportArgs),
}

/// A new key.
#[derive(Clone, Debug, Args)]
pub(crate) struct NewArgs {
    /// Name of the key: letters, digits, - and _.
    #[arg(value_parser = parse_name)]
    name: String,
    #[command(flatten)]
    keystore: KeystoreArgs,
    #[command(flatten)]
    password: PasswordArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Which keys.
#[derive(Clone, Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    keystore: KeystoreArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Which key to take over.
#[derive(Clone, Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).args(["key_file", "from"])))]
pub(crate) struct ImportArgs {
    /// Name of the key: letters, digits, - and _.
    #[arg(value_parser = parse_name)]
    name: String,
    /// File with 64 hexadecimal digits, readable only by its owner.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Keystore of another program.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    #[command(flatten)]
    keystore: KeystoreArgs,
    #[command(flatten)]
    password: PasswordArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Which key to write where.
#[derive(Clone, Debug, Args)]
pub(crate) struct ExportArgs {
    /// Name of the key.
    #[arg(value_parser = parse_name)]
    name: String,
    /// File to create; it must not exist.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Write the key itself, for everybody who can read the file.
    #[arg(long = "decrypted")]
    is_decrypted: bool,
    #[command(flatten)]
    keystore: KeystoreArgs,
    #[command(flatten)]
    password: PasswordArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Does what the command says.
pub(crate) fn run(command: &KeyCommand) -> anyhow::Result<()> {
    match command {
        KeyCommand::New(args) => make(args),
        KeyCommand::List(args) => list(args),
        KeyCommand::Import(args) => import(args),
        KeyCommand::Export(args) => export(args),
    }
}

fn make(args: &NewArgs) -> anyhow::Result<()> {
    args.keystore.ensure_new(&args.name)?;
    let password = args.password.choose()?;
    // Nearly every number is a key; the few others are drawn again.
    let (secret, address) = loop {
        let secret = B256::from(secret_file::random()?);
        if let Some(address) = account(secret) {
            break (secret, address);
        }
    };
    keep(&args.keystore, &args.name, secret, address, &password, args.output)
}

fn import(args: &ImportArgs) -> anyhow::Result<()> {
    args.keystore.ensure_new(&args.name)?;
    let (secret, password) = match (&args.key_file, &args.from) {
        (Some(path), _) => (secret_file::read(path)?, args.password.choose()?),
        (None, from) => {
            let path = from.as_ref().context("there is no file: pass --key-file or --from")?;
            let keystore = Keystore::parse(&regular_file::read_text(path, KEYSTORE_BYTES_MAX)?);
            let keystore = keystore.with_context(|| format!("cannot read {}", path.display()))?;
            let password = args.password.ask(&format!("Password of {}: ", path.display()))?;
            (
                keystore.decrypt(&password).with_context(|| format!("cannot open {}", path.display()))?,
                password,
            )
        }
    };
    let address = account(secret).context("NotAKey: the number is not a key of secp256k1")?;
    keep(&args.keystore, &args.name, secret, address, &password, args.output)
}

fn keep(
    keystore: &KeystoreArgs,
    name: &str,
    secret: B256,
    address: Address,
    password: &str,
    output: OutputArgs,
) -> anyhow::Result<()> {
    let path = keystore.add(name, &Keystore::encrypt(&secret, Some(address), password)?)?;
    output.print(
        || json!({ "name": name, "address": address, "file": path }),
        || format!("{name}  {address}\nencrypted in {}\n", path.display()),
    )
}

fn list(args: &ListArgs) -> anyhow::Result<()> {
    let keys = args.keystore.list()?;
    args.output.print(
        || {
            json!(
                keys.iter()
                    .map(|(name, address)| json!({ "name": name, "address": address }))
                    .collect::<Vec<_>>()
            )
        },
        || {
            if keys.is_empty() {
                return "no keys: make one with `almanac key new NAME`\n".to_owned();
            }
            let mut table = Table::new(&["name", "address"]);
            for (name, address) in &keys {
                table.row([
                    name.clone(),
                    address.map_or_else(|| "unknown".to_owned(), |address| address.to_string()),
                ]);
            }
            table.text()
        },
    )
}

fn export(args: &ExportArgs) -> anyhow::Result<()> {
    let text = match args.is_decrypted {
        true => hex::encode(args.keystore.open(&args.name, &args.password)?) + "\n",
        false => args.keystore.read(&args.name)?.to_json(),
    };
    let mut file = private_file::create_new(&args.out)
        .with_context(|| format!("cannot make {}: it must not exist", args.out.display()))?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .with_context(|| format!("cannot write {}", args.out.display()))?;
    let what = if args.is_decrypted { "the key itself" } else { "the encrypted key" };
    args.output.print(
        || json!({ "name": args.name, "file": args.out, "decrypted": args.is_decrypted }),
        || format!("wrote {what} to {}\n", args.out.display()),
    )
}
