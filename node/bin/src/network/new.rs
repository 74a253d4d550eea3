//! Writes the files of a new network.
//!
//! ```text
//! DIR/genesis.json          the start of the chain, with the validators
//! DIR/v0/config.json        how the first validator runs
//! DIR/v0/validator.key      its key, readable by the owner only
//! DIR/v0/data/              its chain, once it has run
//! ```

use super::{
    config::{NodeConfig, PeerConfig},
    keys,
};
use crate::{accounts, datadir};
use alloy_primitives::{Address, keccak256};
use almanac_bft::ValidatorKey;
use almanac_consensus::{Clock as _, SystemClock};
use almanac_primitives::{
    DurationMs, Genesis, addresses::DEVELOPER, genesis::Validator, params::VALIDATORS_MAX,
};
use anyhow::{Context as _, ensure};
use clap::Args;
use std::{
    fs,
    io::Write as _,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

/// A new network on this machine.
#[derive(Clone, Debug, Args)]
pub(crate) struct NewNetwork {
    /// How many validators; 3f + 1 of them stand f that fail.
    #[arg(long, default_value_t = 4)]
    validators: u16,
    /// Where to write; there must be nothing of that name.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Chain id that transactions are signed for.
    #[arg(long, default_value_t = accounts::CHAIN_ID)]
    chain_id: u64,
    /// Time between blocks, in milliseconds.
    #[arg(long, default_value_t = 500)]
    block_time_ms: u64,
    /// Port of the first validator for its peers; the others follow.
    #[arg(long, default_value_t = 30_300)]
    p2p_port: u16,
    /// Port of the first validator for JSON-RPC; the others follow.
    #[arg(long, default_value_t = 8_545)]
    rpc_port: u16,
}

/// Writes the network and says how to start it.
pub(super) fn run(network: &NewNetwork) -> anyhow::Result<()> {
    let count = usize::from(network.validators);
    ensure!(
        (1..=VALIDATORS_MAX).contains(&count),
        "{count} validators are asked for, a network has from 1 to {VALIDATORS_MAX}"
    );
    for (name, first) in [("--p2p-port", network.p2p_port), ("--rpc-port", network.rpc_port)] {
        let last = u32::from(first) + u32::from(network.validators) - 1;
        ensure!(first > 0 && last <= 65_535, "{name} {first}: {count} ports from there end at {last}");
    }
    fs::create_dir(&network.dir).with_context(|| format!("cannot make {}", network.dir.display()))?;
    let mut validators = Vec::new();
    for index in 0..network.validators {
        let home = home(&network.dir, index);
        fs::create_dir(&home).with_context(|| format!("cannot make {}", home.display()))?;
        validators.push(keys::create(&home.join("validator.key"))?);
    }
    let genesis = genesis(network, &validators);
    genesis.check()?;
    datadir::write_genesis(&network.dir.join("genesis.json"), &genesis)?;
    for index in 0..network.validators {
        write_config(network, &validators, index)?;
    }
    explain(network)
}

/// The folder of a validator.
pub(super) fn home(directory: &Path, index: u16) -> PathBuf {
    directory.join(format!("v{index}"))
}

/// The accounts of a developer's chain, without a developer's rights.
fn genesis(network: &NewNetwork, validators: &[ValidatorKey]) -> Genesis {
    let mut genesis = accounts::genesis(network.chain_id, SystemClock.now());
    genesis.developer = false;
    genesis.allocations.remove(&DEVELOPER);
    let validator = |(index, key): (usize, &ValidatorKey)| Validator {
        name: format!("v{index}"),
        public_key: key.public(),
        // An address of its own, so that one sees who earns what. Nobody has a key for it.
        fee_recipient: Address::from_slice(&keccak256(key.public())[12..]),
    };
    genesis.validators = validators.iter().enumerate().map(validator).collect();
    genesis
}

fn write_config(network: &NewNetwork, validators: &[ValidatorKey], index: u16) -> anyhow::Result<()> {
    let at = |first: u16, index: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, first + index));
    let peers = (0u16..).zip(validators).filter(|(peer, _)| *peer != index);
    let config = NodeConfig {
        genesis: "../genesis.json".into(),
        key: "validator.key".into(),
        datadir: "data".into(),
        listen: at(network.p2p_port, index),
        rpc: at(network.rpc_port, index),
        block_time_ms: DurationMs(network.block_time_ms),
        peers: peers
            .map(|(peer, key)| PeerConfig { public_key: key.public(), address: at(network.p2p_port, peer) })
            .collect(),
    };
    let path = home(&network.dir, index).join("config.json");
    let json = serde_json::to_string_pretty(&config).expect("a configuration has only string keys");
    fs::write(&path, json + "\n").with_context(|| format!("cannot write {}", path.display()))
}

fn explain(network: &NewNetwork) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    let directory = network.dir.display();
    writeln!(out, "{} validators in {directory}. Start each:", network.validators)?;
    for index in 0..network.validators {
        let config = home(&network.dir, index).join("config.json");
        writeln!(out, "  almanac node --config {}", config.display())?;
    }
    writeln!(out, "or all at once:\n  almanac network up --dir {directory}")?;
    writeln!(out, "The accounts of `almanac dev` hold all coins: everybody knows their keys.")?;
    Ok(())
}
