//! Gathers the cards of independent operators into a genesis, and a config for each of them.
//!
//! ```text
//! keys new ──> keys card ──> acme.json ─┐
//! keys new ──> keys card ──> beta.json ─┴─> network gather ──> DIR/genesis.json, DIR/acme/config.json, …
//! ```

use super::{
    card::Card,
    config::{self, NodeConfig, PeerConfig},
};
use crate::{
    client::{address::parse_address, amount::parse_amount},
    datadir, helpers, private_file, regular_file,
};
use alloy_primitives::{Address, B256, U256, hex};
use almanac_consensus::{Clock as _, SystemClock};
use almanac_primitives::{
    DurationMs, Genesis, TimestampMs, Wei,
    genesis::{Allocation, Validator},
    params::SECOND_MS,
};
use anyhow::{Context as _, ensure};
use clap::Args;
use sha2::{Digest as _, Sha256};
use std::{
    collections::BTreeMap,
    io::Write as _,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

/// A network of operators, each of whom has its own key.
#[derive(Clone, Debug, Args)]
pub(crate) struct GatherNetwork {
    /// Cards of the validators, as `almanac keys card` writes them.
    #[arg(required = true, value_name = "CARD")]
    cards: Vec<PathBuf>,
    /// Public key of a follower that the validators accept; may be repeated.
    #[arg(long = "follower", value_name = "KEY")]
    followers: Vec<B256>,
    /// Directory to create; it must not exist.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Chain id.
    #[arg(long)]
    chain_id: u64,
    /// Account that may change the chain's parameters.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    governance: Address,
    /// Money of an account at the start, such as 0x7099…79C8=1000coins; may be repeated.
    #[arg(long = "allocate", value_name = "ADDRESS=AMOUNT", value_parser = parse_allocation)]
    allocations: Vec<(Address, U256)>,
    /// Time of block 0, in Unix seconds [default: now]. With it, the same cards always give the same genesis.
    #[arg(long, value_name = "SECONDS")]
    timestamp: Option<u64>,
    /// Add the CREATE2 deployer and Multicall3 at the addresses where tools look for them.
    #[arg(long = "helpers")]
    with_helpers: bool,
    /// Time between blocks, in milliseconds.
    #[arg(long, default_value_t = 500)]
    block_time_ms: u64,
    /// Where each validator serves JSON-RPC, until its operator changes its config.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:8545")]
    rpc: SocketAddr,
}

fn parse_allocation(text: &str) -> Result<(Address, U256), String> {
    let unclear =
        || format!("{text:?} is no allocation: write ADDRESS=AMOUNT, such as 0x7099…79C8=1000coins");
    let (account, amount) = text.split_once('=').ok_or_else(unclear)?;
    let account = parse_address(account.trim()).map_err(|error| format!("{}: {error}", unclear()))?;
    Ok((account, parse_amount(amount.trim())?))
}

/// Writes the network, and says what each operator does with it.
pub(super) fn run(network: &GatherNetwork) -> anyhow::Result<()> {
    config::check_block_time(DurationMs(network.block_time_ms)).context("--block-time-ms")?;
    let cards = read_cards(network)?;
    let genesis = genesis(network, &cards)?;
    private_file::create_directory(&network.dir)?;
    let path = network.dir.join("genesis.json");
    datadir::write_genesis(&path, &genesis)?;
    for card in &cards {
        let home = network.dir.join(&card.name);
        private_file::create_directory(&home)?;
        config_of(network, &cards, card).write(&home.join("config.json"))?;
    }
    let hash = hex::encode(Sha256::digest(regular_file::read(&path, regular_file::GENESIS_BYTES_MAX)?));
    explain(network, &cards, &hash)
}

/// The cards by name, so that their order on the command line does not matter.
fn read_cards(network: &GatherNetwork) -> anyhow::Result<Vec<Card>> {
    let cards: anyhow::Result<Vec<Card>> = network.cards.iter().map(|path| Card::read(path)).collect();
    let mut cards = cards?;
    cards.sort_by(|one, other| one.name.cmp(&other.name));
    for (index, card) in cards.iter().enumerate() {
        for other in &cards[..index] {
            ensure!(card.name != other.name, "two cards have the name {:?}: each needs its own", card.name);
            ensure!(
                card.address != other.address,
                "{} and {} have the same address, {}",
                other.name,
                card.name,
                card.address
            );
            ensure!(
                card.public_key != other.public_key,
                "{} and {} have the same key: each makes its own with `almanac keys new`",
                other.name,
                card.name
            );
        }
    }
    Ok(cards)
}

fn genesis(network: &GatherNetwork, cards: &[Card]) -> anyhow::Result<Genesis> {
    let mut allocations = BTreeMap::new();
    for (account, amount) in &network.allocations {
        let account_of = Allocation { balance: Wei(*amount), ..Allocation::default() };
        let before = allocations.insert(*account, account_of);
        ensure!(before.is_none(), "--allocate names {account} twice");
    }
    ensure!(
        !allocations.is_empty(),
        "without --allocate nobody has a coin, so nobody could ever send a transaction"
    );
    let now = SystemClock.now();
    let timestamp_ms = match network.timestamp {
        Some(seconds) => TimestampMs(seconds.checked_mul(SECOND_MS).context("--timestamp is too large")?),
        None => now,
    };
    ensure!(
        timestamp_ms <= now,
        "--timestamp is in the future: block 0 is the start of the chain, not its opening"
    );
    let validators = cards.iter().map(|card| Validator {
        name: card.name.clone(),
        public_key: card.public_key,
        fee_recipient: card.fee_recipient,
    });
    let mut genesis = Genesis {
        chain_id: network.chain_id,
        timestamp_ms,
        governance: network.governance,
        parameters: BTreeMap::new(),
        validators: validators.collect(),
        developer: false,
        fork: None,
        allocations,
    };
    if network.with_helpers {
        helpers::add(&mut genesis);
    }
    genesis.check()?;
    genesis.supply()?;
    Ok(genesis)
}

/// A validator listens on all interfaces: which of them the others reach, its operator knows.
fn config_of(network: &GatherNetwork, cards: &[Card], own: &Card) -> NodeConfig {
    let peers = cards.iter().filter(|card| card.name != own.name);
    let peers = peers.map(|card| PeerConfig { public_key: card.public_key, address: card.address.clone() });
    NodeConfig {
        followers: network.followers.clone(),
        ..NodeConfig::new(
            "validator.key".into(),
            (Ipv4Addr::UNSPECIFIED, own.address.port()).into(),
            network.rpc,
            DurationMs(network.block_time_ms),
            peers.collect(),
        )
    }
}

fn explain(network: &GatherNetwork, cards: &[Card], hash: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    let directory = network.dir.display();
    writeln!(out, "{} validators in {directory}:", cards.len())?;
    for card in cards {
        writeln!(out, "  {}  {}  {}", card.name, card.public_key, card.address)?;
    }
    writeln!(
        out,
        "genesis.json has the SHA-256 {hash}: all operators compare it (sha256sum genesis.json).\n\
         Send genesis.json and NAME/config.json to each. It checks its own line above, keeps them in folders as they are \
         here,\nputs its key beside its config as validator.key, and starts:\n  almanac node --config NAME/config.json"
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_as_people_write_them() {
        let account = Address::repeat_byte(7);
        let coin = U256::from(10).pow(U256::from(18));
        assert_eq!(parse_allocation(&format!("{account}=2coins")), Ok((account, coin * U256::from(2))));
        assert_eq!(parse_allocation(&format!("{account} = 5")), Ok((account, U256::from(5))));
        for bad in ["", "5coins", "bob=5", &format!("{account}"), &format!("{account}=much")] {
            assert!(parse_allocation(bad).is_err(), "{bad}");
        }
    }
}
