//! What an operator tells the others about its validator: nothing in it is secret.

use super::{config::as_text, keys};
use crate::{
    client::address::parse_address,
    keystore::parse_name,
    private_file,
    regular_file::{self, CONFIG_BYTES_MAX},
};
use alloy_primitives::{Address, B256};
use almanac_bft::PeerAddress;
use anyhow::Context as _;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::{
    io::Write as _,
    path::{Path, PathBuf},
};

/// A validator that is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Card {
    /// A name for people, which is also that of its folder.
    pub(super) name: String,
    pub(super) public_key: B256,
    /// Where the others reach it.
    #[serde(with = "as_text")]
    pub(super) address: PeerAddress,
    /// Gets the tips of the blocks it proposes.
    pub(super) fee_recipient: Address,
}

/// The card of a validator.
#[derive(Clone, Debug, Args)]
pub(crate) struct WriteCard {
    /// Key file of the validator, of which only the public part is read out.
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// Name of the validator: letters, digits, - and _.
    #[arg(long, value_parser = parse_name)]
    name: String,
    /// Where the others reach it: IP:PORT or NAME:PORT.
    #[arg(long, value_name = "HOST:PORT")]
    address: PeerAddress,
    /// Account that gets the tips of its blocks.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    fee_recipient: Address,
    /// File to write.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// Writes the card.
pub(super) fn run(wanted: &WriteCard) -> anyhow::Result<()> {
    let card = Card {
        name: wanted.name.clone(),
        public_key: keys::read(&wanted.file)?.public(),
        address: wanted.address.clone(),
        fee_recipient: wanted.fee_recipient,
    };
    let json = serde_json::to_string_pretty(&card).expect("a card has only string keys");
    private_file::replace(&wanted.out, (json + "\n").as_bytes())?;
    let text = "send it to whoever gathers the genesis: it holds no secret";
    writeln!(std::io::stdout(), "wrote {}: {text}", wanted.out.display()).context("cannot print")
}

impl Card {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let json = regular_file::read_text(path, CONFIG_BYTES_MAX)?;
        let card: Self = serde_json::from_str(&json).with_context(|| {
            format!("{} is no card of a validator: make one with `almanac keys card`", path.display())
        })?;
        // It becomes the name of a folder, and others wrote it.
        parse_name(&card.name).map_err(anyhow::Error::msg).with_context(|| format!("{}", path.display()))?;
        Ok(card)
    }
}
