//! Writes the files of a new network.
//!
//! ```text
//! DIR/genesis.json          the start of the chain, with the validators
//! DIR/v0/config.json        how the first validator runs
//! DIR/v0/validator.key      its key, readable by the owner only
//! DIR/v0/data/              its chain, once it has run
//! DIR/f0/                   the same for the first follower
//! ```

use super::{
    config::{self, NodeConfig, PeerConfig, Sync},
    keys,
};
use crate::{accounts, datadir, helpers, private_file};
use alloy_primitives::{Address, keccak256};
use almanac_bft::{ValidatorKey, transport::FOLLOWERS_MAX};
use almanac_consensus::{Clock as _, SystemClock};
use almanac_primitives::{
    DurationMs, Genesis, addresses::DEVELOPER, genesis::Validator, params::VALIDATORS_MAX,
};
use anyhow::{Context as _, ensure};
use clap::Args;
use std::{
    io::Write as _,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

/// A new network on this machine.
#[derive(Clone, Debug, Args)]
pub(crate) struct NewNetwork {
    /// Number of validators; 3f + 1 tolerate f Byzantine ones.
    #[arg(long, default_value_t = 4)]
    validators: u16,
    /// Number of followers: nodes without a vote.
    #[arg(long, default_value_t = 0)]
    followers: u16,
    /// Directory to create; it must not exist.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Add the CREATE2 deployer and Multicall3 at the addresses where tools look for them.
    #[arg(long = "helpers")]
    with_helpers: bool,
    /// Chain id.
    #[arg(long, default_value_t = accounts::CHAIN_ID)]
    chain_id: u64,
    /// Time between blocks, in milliseconds.
    #[arg(long, default_value_t = 500)]
    block_time_ms: u64,
    /// Peer-to-peer port of the first validator; the others use the next ones, then the followers.
    #[arg(long, default_value_t = 30_300)]
    p2p_port: u16,
    /// JSON-RPC port of the first validator; the others use the next ones, then the followers.
    #[arg(long, default_value_t = 8_545)]
    rpc_port: u16,
}

/// Writes the network and says how to start it.
pub(super) fn run(network: &NewNetwork) -> anyhow::Result<()> {
    check(network)?;
    private_file::create_directory(&network.dir)?;
    let validators = create_keys(network, network.validators, Kind::Validator)?;
    let followers = create_keys(network, network.followers, Kind::Follower)?;
    let genesis = genesis(network, &validators);
    genesis.check()?;
    datadir::write_genesis(&network.dir.join("genesis.json"), &genesis)?;
    let places = Places { network, validators, followers };
    for (kind, index) in members(network) {
        places.write_config(kind, index)?;
    }
    explain(network)
}

/// What a node is in its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Validator,
    Follower,
}

impl Kind {
    /// The name of a node, and of its folder.
    pub(super) fn name(self, index: u16) -> String {
        match self {
            Self::Validator => format!("v{index}"),
            Self::Follower => format!("f{index}"),
        }
    }

    fn key_file(self) -> &'static str {
        match self {
            Self::Validator => "validator.key",
            Self::Follower => "follower.key",
        }
    }
}

/// All nodes of a network, in the order of their ports.
fn members(network: &NewNetwork) -> impl Iterator<Item = (Kind, u16)> {
    let validators = (0..network.validators).map(|index| (Kind::Validator, index));
    validators.chain((0..network.followers).map(|index| (Kind::Follower, index)))
}

fn check(network: &NewNetwork) -> anyhow::Result<()> {
    let (validators, followers) = (usize::from(network.validators), usize::from(network.followers));
    ensure!(
        (1..=VALIDATORS_MAX).contains(&validators),
        "{validators} validators: a network has 1 to {VALIDATORS_MAX}"
    );
    ensure!(followers <= FOLLOWERS_MAX, "{followers} followers: validators accept at most {FOLLOWERS_MAX}");
    config::check_block_time(DurationMs(network.block_time_ms)).context("--block-time-ms")?;
    let count = members(network).count();
    for (name, first) in [("--p2p-port", network.p2p_port), ("--rpc-port", network.rpc_port)] {
        let last = usize::from(first) + count - 1;
        ensure!(first > 0 && last <= 65_535, "{name} {first}: {count} ports from there end at {last}");
    }
    let (p2p, rpc) = (network.p2p_port, network.rpc_port);
    ensure!(
        usize::from(p2p.abs_diff(rpc)) >= count,
        "--p2p-port {p2p} and --rpc-port {rpc}: each of the {count} nodes needs one port of each kind, so the ranges must not overlap"
    );
    Ok(())
}

fn create_keys(network: &NewNetwork, count: u16, kind: Kind) -> anyhow::Result<Vec<ValidatorKey>> {
    let create = |index| {
        let home = home(&network.dir, kind, index);
        private_file::create_directory(&home)?;
        keys::create(&home.join(kind.key_file()))
    };
    (0..count).map(create).collect()
}

/// The folder of a node.
pub(super) fn home(directory: &Path, kind: Kind, index: u16) -> PathBuf {
    directory.join(kind.name(index))
}

/// The accounts of a developer's chain, without a developer's rights.
fn genesis(network: &NewNetwork, validators: &[ValidatorKey]) -> Genesis {
    let mut genesis = accounts::genesis(network.chain_id, SystemClock.now());
    genesis.developer = false;
    if network.with_helpers {
        helpers::add(&mut genesis);
    }
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

/// Who is where in a new network.
struct Places<'a> {
    network: &'a NewNetwork,
    validators: Vec<ValidatorKey>,
    followers: Vec<ValidatorKey>,
}

impl Places<'_> {
    fn write_config(&self, kind: Kind, index: u16) -> anyhow::Result<()> {
        let network = self.network;
        let at = |first: u16, position: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, first + position));
        let position = match kind {
            Kind::Validator => index,
            Kind::Follower => network.validators + index,
        };
        let peers = (0u16..).zip(&self.validators).filter(|(peer, _)| *peer != position);
        let peers = peers.map(|(peer, key)| PeerConfig {
            public_key: key.public(),
            address: at(network.p2p_port, peer).into(),
        });
        let config = NodeConfig {
            followers: self.followers.iter().map(ValidatorKey::public).collect(),
            sync: match kind {
                Kind::Validator => Sync::Blocks,
                Kind::Follower => Sync::State,
            },
            ..NodeConfig::new(
                kind.key_file().into(),
                at(network.p2p_port, position),
                at(network.rpc_port, position),
                DurationMs(network.block_time_ms),
                peers.collect(),
            )
        };
        config.write(&home(&network.dir, kind, index).join("config.json"))
    }
}

fn explain(network: &NewNetwork) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    let directory = network.dir.display();
    let followers = match network.followers {
        0 => String::new(),
        count => format!(" and {count} followers"),
    };
    writeln!(out, "{} validators{followers} in {directory}. Start each:", network.validators)?;
    for (kind, index) in members(network) {
        let config = home(&network.dir, kind, index).join("config.json");
        writeln!(out, "  almanac node --config {}", config.display())?;
    }
    writeln!(out, "or all at once:\n  almanac network up --dir {directory}")?;
    writeln!(out, "The accounts of `almanac dev` hold all coins: everybody knows their keys.")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(change: impl FnOnce(&mut NewNetwork)) -> NewNetwork {
        let mut network = NewNetwork {
            validators: 4,
            followers: 1,
            dir: "net".into(),
            with_helpers: false,
            chain_id: 1,
            block_time_ms: 500,
            p2p_port: 30_300,
            rpc_port: 8_545,
        };
        change(&mut network);
        network
    }

    #[track_caller]
    fn passes(change: impl FnOnce(&mut NewNetwork)) {
        check(&network(change)).unwrap();
    }

    #[track_caller]
    fn refused(reason: &str, change: impl FnOnce(&mut NewNetwork)) {
        let error = format!("{:#}", check(&network(change)).unwrap_err());
        assert!(error.contains(reason), "{reason:?} is not in: {error}");
    }

    /// Contracts that tools expect are in a network's genesis on request only, and no developer's rights come with them.
    #[test]
    fn helpers_are_there_on_request() {
        let plain = genesis(&network(|_| ()), &[]);
        let helped = genesis(&network(|network| network.with_helpers = true), &[]);
        for address in [helpers::CREATE2_DEPLOYER, helpers::MULTICALL3] {
            assert!(!plain.allocations.contains_key(&address), "{address}");
            assert!(!helped.allocations[&address].code.is_empty(), "{address}");
        }
        assert_eq!(helped.allocations.len(), plain.allocations.len() + 2);
        assert!(!helped.developer && helped.check().is_ok());
    }

    #[test]
    fn both_sides_of_what_a_network_may_be() {
        let validators_max = u16::try_from(VALIDATORS_MAX).unwrap();
        let followers_max = u16::try_from(FOLLOWERS_MAX).unwrap();
        passes(|network| network.validators = 1);
        passes(|network| network.validators = validators_max);
        refused("0 validators", |network| network.validators = 0);
        refused("1 to 256", |network| network.validators = validators_max + 1);
        passes(|network| network.followers = followers_max);
        refused("at most 256", |network| network.followers = followers_max + 1);
    }

    /// What the nodes would refuse at their start is not written.
    #[test]
    fn both_sides_of_the_block_time() {
        for allowed in [10, 60_000] {
            passes(|network| network.block_time_ms = allowed);
        }
        for given in [0, 9, 60_001] {
            refused("--block-time-ms", |network| network.block_time_ms = given);
        }
    }

    #[test]
    fn every_node_has_two_ports_of_its_own() {
        passes(|network| network.rpc_port = 65_531);
        refused("end at 65536", |network| network.rpc_port = 65_532);
        refused("--p2p-port 0", |network| network.p2p_port = 0);
        for rpc_port in [30_295, 30_305] {
            passes(|network| network.rpc_port = rpc_port);
        }
        for rpc_port in [30_296, 30_300, 30_304] {
            refused("must not overlap", |network| network.rpc_port = rpc_port);
        }
    }

    #[test]
    fn an_existing_directory_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let error = run(&network(|network| network.dir = directory.path().into())).unwrap_err();
        assert!(error.to_string().contains("cannot make"), "{error}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
