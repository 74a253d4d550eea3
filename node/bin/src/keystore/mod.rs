//! Keys of accounts, encrypted, each in a file of a directory that only its owner can read.

mod command;
mod format;
mod password;

use crate::{
    private_file,
    regular_file::{self, KEYSTORE_BYTES_MAX},
};
use alloy_primitives::{Address, B256};
use anyhow::{Context as _, bail, ensure};
use clap::Args;
use format::Keystore;
use std::{
    fs,
    io::{ErrorKind, Write as _},
    path::PathBuf,
};

pub(crate) use command::{KeyCommand, run};
pub(crate) use password::PasswordArgs;

/// Longest name of a key.
const NAME_BYTES_MAX: usize = 64;

/// Where the keys are.
#[derive(Clone, Debug, Args)]
pub(crate) struct KeystoreArgs {
    /// Directory of the encrypted keys [default: ~/.almanac/keys].
    #[arg(long, value_name = "DIR", env = "ALMANAC_KEYSTORE", hide_env_values = true)]
    keystore: Option<PathBuf>,
}

impl KeystoreArgs {
    fn directory(&self) -> anyhow::Result<PathBuf> {
        match &self.keystore {
            Some(directory) => Ok(directory.clone()),
            None => {
                let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
                let home = home.context("there is no home directory: pass --keystore DIR")?;
                Ok(PathBuf::from(home).join(".almanac").join("keys"))
            }
        }
    }

    fn path(&self, name: &str) -> anyhow::Result<PathBuf> {
        Ok(self.directory()?.join(format!("{name}.json")))
    }

    /// Opens the key of this name.
    pub(crate) fn open(&self, name: &str, password: &PasswordArgs) -> anyhow::Result<B256> {
        let keystore = self.read(name)?;
        let password = password.ask(&format!("Password of the key {name}: "))?;
        keystore.decrypt(&password).with_context(|| format!("cannot open the key {name:?}"))
    }

    fn read(&self, name: &str) -> anyhow::Result<Keystore> {
        let path = self.path(name)?;
        let text = regular_file::read_text(&path, KEYSTORE_BYTES_MAX);
        if text.as_ref().is_err_and(regular_file::ReadError::is_missing) {
            let known: Vec<String> = self.list()?.into_iter().map(|(name, _)| name).collect();
            match known.is_empty() {
                true => bail!(
                    "UnknownKey: there is no key {name:?}, nor any other: make one with `almanac key new`"
                ),
                false => bail!("UnknownKey: there is no key {name:?}; there are {}", known.join(", ")),
            }
        }
        Keystore::parse(&text?).with_context(|| format!("cannot read {}", path.display()))
    }

    /// Keeps a key under a new name.
    fn add(&self, name: &str, keystore: &Keystore) -> anyhow::Result<PathBuf> {
        self.ensure_new(name)?;
        private_file::create_directories(&self.directory()?)?;
        let path = self.path(name)?;
        let mut draft = private_file::Draft::begin(&path)?;
        draft
            .file()
            .write_all(keystore.to_json().as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
        draft.publish()?;
        Ok(path)
    }

    /// Before a password is asked for twice.
    fn ensure_new(&self, name: &str) -> anyhow::Result<()> {
        let path = self.path(name)?;
        ensure!(
            fs::symlink_metadata(&path).is_err(),
            "KeyExists: there is a key {name:?} already ({}): choose another name",
            path.display()
        );
        Ok(())
    }

    /// The names of all keys, and the accounts that their files name.
    fn list(&self) -> anyhow::Result<Vec<(String, Option<Address>)>> {
        let directory = self.directory()?;
        let entries = match fs::read_dir(&directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.with_context(|| format!("cannot read {}", directory.display()))?,
        };
        let mut keys = Vec::new();
        for entry in entries {
            let file = entry.with_context(|| format!("cannot read {}", directory.display()))?.file_name();
            let name = file.to_str().and_then(|file| file.strip_suffix(".json"));
            if let Some(name) = name.filter(|name| parse_name(name).is_ok()) {
                let keystore = regular_file::read_text(&directory.join(&file), KEYSTORE_BYTES_MAX).ok();
                let keystore = keystore.and_then(|text| Keystore::parse(&text).ok());
                keys.push((name.to_owned(), keystore.and_then(|keystore| keystore.address())));
            }
        }
        keys.sort();
        Ok(keys)
    }
}

/// A name is part of a file's, so it has nothing that means something to a file system or a shell.
pub(crate) fn parse_name(name: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_valid = (1..=NAME_BYTES_MAX).contains(&name.len()) && name.chars().all(is_plain);
    match is_valid && !name.starts_with('-') {
        true => Ok(name.to_owned()),
        false => {
            Err(format!("{name:?} is no name of a key: use up to {NAME_BYTES_MAX} letters, digits, - and _"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keystore_04_names_are_plain() {
        let longest = "a".repeat(NAME_BYTES_MAX);
        for good in ["alice", "A-1_b", "7", &longest] {
            assert_eq!(parse_name(good).as_deref(), Ok(good));
        }
        for bad in ["", "../x", "a.b", "a b", "-a", "ä", "a/b", &(longest + "a")] {
            assert!(parse_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn keystore_05_a_key_is_never_written_over_another() {
        let directory = tempfile::tempdir().unwrap();
        let keys = KeystoreArgs { keystore: Some(directory.path().join("deep").join("keys")) };
        assert_eq!(keys.list().unwrap(), []);
        let missing = keys.read("alice").unwrap_err().to_string();
        assert!(missing.contains("UnknownKey") && missing.contains("almanac key new"), "{missing}");
        let keystore = Keystore::encrypt(&B256::repeat_byte(1), None, "a").unwrap();
        keys.add("alice", &keystore).unwrap();
        let again = keys.add("alice", &keystore).unwrap_err().to_string();
        assert!(again.contains("KeyExists: there is a key \"alice\" already"), "{again}");
        assert_eq!(keys.list().unwrap(), [("alice".to_owned(), None)]);
        assert!(keys.read("bob").unwrap_err().to_string().contains("there are alice"));
    }
}
