//! Where the password of a key comes from: a file, the environment, or the person at the terminal.

use crate::{client::prompt, regular_file::KEY_BYTES_MAX, secret_file};
use anyhow::ensure;
use clap::Args;
use std::path::PathBuf;

/// The variable with the password. It is no flag: others can see a command line.
const VARIABLE: &str = "ALMANAC_PASSWORD";

/// How to get the password.
#[derive(Clone, Debug, Args)]
pub(crate) struct PasswordArgs {
    /// File with the password of the key, readable only by its owner. The variable ALMANAC_PASSWORD serves too
    /// [default: ask].
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

impl PasswordArgs {
    /// The password of a key that exists.
    pub(crate) fn ask(&self, question: &str) -> anyhow::Result<String> {
        if let Some(password) = self.given()? {
            return Ok(password);
        }
        ensure!(
            prompt::is_answered(),
            "NoPassword: nobody can type a password here: pass --password-file, or set ALMANAC_PASSWORD"
        );
        prompt::hidden(question)
    }

    /// A password for a new key: typed twice, since a mistake would lose the key.
    pub(super) fn choose(&self) -> anyhow::Result<String> {
        if let Some(password) = self.given()? {
            return Ok(password);
        }
        let first = self.ask("New password: ")?;
        ensure!(
            !first.is_empty(),
            "EmptyPassword: a key without a password is open to everybody who can read it"
        );
        ensure!(
            first == self.ask("The same again: ")?,
            "PasswordsDiffer: the two passwords are not the same"
        );
        Ok(first)
    }

    fn given(&self) -> anyhow::Result<Option<String>> {
        let password = match &self.password_file {
            Some(path) => Some(secret_file::read_text(path, KEY_BYTES_MAX)?),
            None => std::env::var(VARIABLE).ok(),
        };
        // Editors end a file with a line break that nobody typed into the password.
        let password = password.map(|text| text.trim_end_matches(['\r', '\n']).to_owned());
        ensure!(password.as_deref() != Some(""), "EmptyPassword: the password is empty");
        Ok(password)
    }
}
