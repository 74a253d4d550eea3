//! Who signs, and for whom.

use crate::{
    accounts::ACCOUNTS,
    keystore::{KeystoreArgs, PasswordArgs, parse_name},
    secret_file,
};
use almanac_primitives::{keys::SecretKey, native::Signer};
use anyhow::Context as _;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// The variable with the key. It is no flag: others can see a command line.
const VARIABLE: &str = "ALMANAC_KEY";

/// Where the key is.
#[derive(Clone, Debug, Args)]
pub(crate) struct KeyArgs {
    /// Name of an encrypted key, as `almanac key list` shows it.
    #[arg(long, value_name = "NAME", value_parser = parse_name, conflicts_with_all = ["key_file", "dev_account"])]
    key: Option<String>,

    /// File with the key: 64 hexadecimal digits, readable only by its owner. The variable ALMANAC_KEY serves too.
    #[arg(long, value_name = "FILE", conflicts_with = "dev_account")]
    key_file: Option<PathBuf>,

    /// Key of a developer chain's n-th account, 0 to 9. Everybody knows these keys.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(..ACCOUNTS.len() as i64))]
    dev_account: Option<u8>,

    /// The key is the seed of an Ed25519 key (RFC 8032).
    #[arg(long = "ed25519")]
    is_ed25519: bool,

    #[command(flatten)]
    keystore: KeystoreArgs,

    #[command(flatten)]
    password: PasswordArgs,
}

/// For whom a key signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Role {
    /// In whose name the transaction acts.
    Sender,
    /// Who pays for the gas.
    FeePayer,
}

impl From<Role> for Signer {
    fn from(role: Role) -> Self {
        match role {
            Role::Sender => Self::Sender,
            Role::FeePayer => Self::FeePayer,
        }
    }
}

impl KeyArgs {
    /// The key, which somebody has to name.
    pub(crate) fn required(&self) -> anyhow::Result<SecretKey> {
        self.read()?.context("nobody signs: give --key, --key-file, --dev-account or ALMANAC_KEY")
    }

    /// The key, if one is named.
    pub(crate) fn read(&self) -> anyhow::Result<Option<SecretKey>> {
        let secret = match (&self.key_file, self.dev_account, std::env::var(VARIABLE)) {
            _ if self.key.is_some() => {
                let name = self.key.as_deref().unwrap_or_default();
                self.keystore.open(name, &self.password)?
            }
            (Some(path), ..) => secret_file::read(path)?,
            (None, Some(n), _) => ACCOUNTS[usize::from(n)].secret,
            (None, None, Ok(text)) => {
                let secret = text.trim().parse().ok();
                secret.with_context(|| format!("{VARIABLE} has no key: expected 64 hexadecimal digits"))?
            }
            (None, None, Err(_)) => return Ok(None),
        };
        match self.is_ed25519 {
            true => Ok(Some(SecretKey::ed25519(secret))),
            false => SecretKey::secp256k1(secret).map(Some).context("the key cannot sign"),
        }
    }
}
