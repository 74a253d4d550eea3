//! Key files of validators, readable only by their owner.

use super::card;
use crate::{private_file, regular_file, secret_file};
use alloy_primitives::{B256, hex};
use almanac_bft::ValidatorKey;
use anyhow::{Context as _, bail};
use clap::Subcommand;
use std::{
    fs::{File, TryLockError},
    io::Write as _,
    path::{Path, PathBuf},
};

/// Makes and shows keys of validators.
#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Write a new random key to a file that only its owner can read, and print the public key.
    #[command(after_help = "Example:\n  almanac keys new --out validator.key")]
    New {
        /// File to create; it must not exist.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Write what other operators need to know of a validator: its public key, name and address.
    #[command(after_help = "Example:
  almanac keys card --file validator.key --name acme --address v.acme.example:30300 \\
      --fee-recipient 0x7099…79C8 --out acme.json")]
    Card(card::WriteCard),
    /// Print the public key of a key file.
    #[command(after_help = "Example:\n  almanac keys show --file net/v0/validator.key")]
    Show {
        /// Key file.
        #[arg(long, value_name = "FILE")]
        file: PathBuf,
    },
}

/// Does what the command says.
pub(crate) fn run(command: &KeysCommand) -> anyhow::Result<()> {
    let key = match command {
        KeysCommand::New { out } => create(out)?,
        KeysCommand::Show { file } => read(file)?,
        KeysCommand::Card(wanted) => return card::run(wanted),
    };
    writeln!(std::io::stdout(), "{}", key.public()).context("cannot print")
}

/// Writes a new random key, and beside it that the key was never used. Never over another: a validator whose key is
/// lost is lost with it.
pub(super) fn create(path: &Path) -> anyhow::Result<ValidatorKey> {
    let secret = B256::from(secret_file::random()?);
    let mut file =
        private_file::create_new(path).with_context(|| format!("cannot make {}", path.display()))?;
    writeln!(file, "{}", hex::encode(secret))
        .and_then(|()| file.sync_all())
        .with_context(|| format!("cannot write {}", path.display()))?;
    private_file::replace(
        &unused(path),
        b"This key has signed nothing. The first start of its validator removes this file.\n",
    )?;
    Ok(ValidatorKey::from_secret(&secret))
}

/// The file that is there as long as a key has signed nothing.
pub(super) fn unused(path: &Path) -> PathBuf {
    beside(path, ".unused")
}

/// The file with what a key has signed lately.
pub(super) fn views(path: &Path) -> PathBuf {
    beside(path, ".views")
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Reads a key, and refuses a file that others could have read.
pub(super) fn read(path: &Path) -> anyhow::Result<ValidatorKey> {
    Ok(ValidatorKey::from_secret(&secret_file::read(path)?))
}

/// Keeps other processes from using the key as long as the answer lives. A copy of the file is another file, and not
/// noticed.
pub(super) fn hold(path: &Path) -> anyhow::Result<File> {
    let file = regular_file::open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            bail!(
                "{} is in use by another process: a key that signs twice breaks the chain; stop it first",
                path.display()
            )
        }
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs,
        os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    };

    #[test]
    fn a_key_is_read_back_by_its_owner_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        let key = create(&path).unwrap();
        assert!(directory.path().join("key.unused").exists(), "a new key says so");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(read(&path).unwrap().public(), key.public());
        assert!(create(&path).is_err(), "a key is never overwritten");
        assert_eq!(read(&path).unwrap().public(), key.public());
        for mode in [0o640, 0o604, 0o660] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(read(&path).unwrap_err().to_string().contains("chmod 600"), "{mode:o}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        assert!(read(&path).is_ok());
    }

    #[test]
    fn a_key_is_held_once_under_all_its_names() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        create(&path("key")).unwrap();
        std::os::unix::fs::symlink(path("key"), path("link")).unwrap();
        fs::hard_link(path("key"), path("twin")).unwrap();
        let held = hold(&path("key")).unwrap();
        for name in ["key", "link", "twin"] {
            assert!(
                hold(&path(name)).unwrap_err().to_string().contains("in use by another process"),
                "{name}"
            );
        }
        assert!(read(&path("key")).is_ok(), "showing it signs nothing");
        drop(held);
        hold(&path("link")).unwrap();
        assert!(hold(&path("none")).unwrap_err().to_string().contains("cannot read"));
    }

    #[test]
    fn keys_differ_and_other_files_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        assert_ne!(create(&path("a")).unwrap().public(), create(&path("b")).unwrap().public());
        for (name, text) in [("short", "00ff"), ("words", "not a key"), ("empty", "")] {
            File::options()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path(name))
                .unwrap()
                .write_all(text.as_bytes())
                .unwrap();
            assert!(read(&path(name)).unwrap_err().to_string().contains("64 hexadecimal"), "{text:?}");
        }
    }
}
