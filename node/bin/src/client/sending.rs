//! The flags of every command that sends something: who signs, where it goes, and how to ask before.

use super::{
    node::NodeArgs,
    output::{Facts, OutputArgs, eprint, print},
    prompt,
    words::chain_words,
};
use crate::send::{KeyArgs, submit};
use alloy_primitives::Address;
use almanac_primitives::{Chain, NativeCall, keys::SecretKey};
use clap::Args;
use serde_json::Value;

/// Who signs, where it goes, and how to ask.
#[derive(Clone, Debug, Args)]
pub(crate) struct SendingArgs {
    /// Read it back, and send nothing.
    #[arg(long = "dry-run")]
    is_dry: bool,

    /// Send without asking.
    #[arg(long = "yes", short = 'y', conflicts_with = "is_dry")]
    is_confirmed: bool,

    #[command(flatten)]
    pub(crate) key: KeyArgs,

    #[command(flatten)]
    pub(crate) node: NodeArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Where a read-back goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Output,
    Errors,
}

/// Programs read standard output, and a person who is asked has to read it somewhere.
fn place(is_json: bool, is_asked: bool) -> Option<Place> {
    match (is_json, is_asked) {
        (false, _) => Some(Place::Output),
        (true, true) => Some(Place::Errors),
        (true, false) => None,
    }
}

/// How every read-back begins: whose money it is, and on which chain. A wrong key or node shows here.
pub(crate) fn sender_facts(sender: Address, chain: &Chain) -> Facts {
    let mut facts = Facts::default();
    facts.add("from", sender.to_string());
    facts.add("chain", chain_words(chain));
    facts
}

impl SendingArgs {
    /// Reads back what would be sent, and asks. `false` where it was only to be looked at; programs get `told` then.
    pub(crate) fn agree(
        &self,
        question: &str,
        read_back: impl FnOnce() -> String,
        told: &Value,
    ) -> anyhow::Result<bool> {
        let is_asked = !self.is_dry && !self.is_confirmed && prompt::is_answered();
        match place(self.output.is_json, is_asked) {
            Some(Place::Output) => print(&read_back())?,
            Some(Place::Errors) => eprint(&read_back()),
            None => {}
        }
        if self.is_dry {
            let nothing = || "nothing was sent: leave out --dry-run to send it\n".to_owned();
            self.output.print(|| told.clone(), nothing)?;
            return Ok(false);
        }
        prompt::confirm(question, self.is_confirmed)?;
        Ok(true)
    }

    /// The same for a command that scripts run without a flag: only a person is asked.
    pub(crate) fn agree_at_terminal(
        &self,
        question: &str,
        read_back: impl FnOnce() -> String,
        told: &Value,
    ) -> anyhow::Result<bool> {
        match self.is_dry || self.is_confirmed || prompt::is_answered() {
            true => self.agree(question, read_back, told),
            false => Ok(true),
        }
    }

    /// Sends calls as one transaction of the key's account, and waits for its receipt.
    pub(crate) fn submit(&self, key: &SecretKey, calls: Vec<NativeCall>) -> anyhow::Result<Value> {
        submit(&self.node, key, calls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With --json a person at a terminal was asked "Send it?" without having seen what.
    #[test]
    fn nobody_is_asked_about_what_was_not_read_back() {
        assert_eq!(place(true, true), Some(Place::Errors));
        assert_eq!(place(true, false), None);
        assert_eq!([place(false, true), place(false, false)], [Some(Place::Output); 2]);
    }
}
