//! A developer chain over the state of another chain (`almanac dev --fork-url`, `docs/forking.md`).
//!
//! Whatever the chain's own blocks did not write is read from a node of the origin, at one block, when it is first
//! needed, and kept in the data directory.

mod node;
mod values;

pub(crate) use node::{ForkBlock, OriginError};

use crate::{datadir::Datadir, http::Endpoint};
use alloy_primitives::{Address, Bytes, KECCAK256_EMPTY};
use almanac_primitives::{
    Account, Fork, Genesis, Origin, StateKey, StateRead, StateReadError, addresses::DEVELOPER,
    genesis::Allocation,
};
use anyhow::{Context as _, bail, ensure};
use clap::Args;
use node::OriginNode;
use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use values::Values;

/// Flags of `dev` about the chain below.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Fork")]
pub(crate) struct ForkFlags {
    /// Start from the state of another chain, read from this node when it is needed (docs/forking.md).
    #[arg(long, short = 'f', visible_alias = "rpc-url", value_name = "URL", value_parser = Endpoint::parse)]
    pub(crate) fork_url: Option<Endpoint>,

    /// Block to start from [default: the last one of the other chain].
    #[arg(long, visible_alias = "fork-block-number", value_name = "NUMBER", requires = "fork_url")]
    pub(crate) fork_block: Option<u64>,
}

/// The origin of a forked chain.
#[derive(Clone)]
pub(crate) struct ForkOrigin(Arc<Reader>);

struct Reader {
    fork: Fork,
    values: Mutex<Values>,
    node: Option<OriginNode>,
}

/// A fork that is to be started.
pub(crate) struct Begun {
    pub(crate) origin: ForkOrigin,
    pub(crate) block: ForkBlock,
}

/// Name of the file with values in a data directory.
const FILE: &str = "origin";

impl ForkFlags {
    /// The origin of a new chain, if the flags ask for one.
    pub(crate) fn begin(&self, datadir: Option<&Datadir>) -> anyhow::Result<Option<Begun>> {
        let Some(url) = &self.fork_url else { return Ok(None) };
        let node = OriginNode::new(url.clone()).context("cannot start the thread of the origin")?;
        let block = node.block(self.fork_block).context("--fork-url")?;
        let values = open_values(datadir.map(Datadir::path))?;
        let origin = ForkOrigin::new(block.fork, values, Some(node));
        Ok(Some(Begun { origin, block }))
    }

    /// The origin of the chain that a data directory holds, which stands on `fork`.
    pub(crate) fn resume(&self, fork: Option<Fork>, datadir: &Datadir) -> anyhow::Result<Option<ForkOrigin>> {
        let directory = datadir.path().display();
        let Some(fork) = fork else {
            ensure!(
                self.fork_url.is_none(),
                "{directory} holds a chain that is no fork: leave out --fork-url, or choose another --datadir"
            );
            return Ok(None);
        };
        if let Some(given) = self.fork_block.filter(|given| *given != fork.number) {
            bail!(
                "{directory} holds a fork of block {}, not {given}: leave out --fork-block, or choose another --datadir",
                fork.number
            );
        }
        let node = self.fork_url.clone().map(OriginNode::new).transpose()?;
        if let Some(node) = &node {
            match node.check(fork) {
                Err(error @ OriginError::Unreachable { .. }) => tracing::warn!("{error}"),
                checked => checked.context("--fork-url")?,
            }
        }
        Ok(Some(ForkOrigin::new(fork, open_values(Some(datadir.path()))?, node)))
    }
}

impl Begun {
    /// Lets a genesis stand on the origin. Our accounts keep their nonces there, so that what they deploy gets a free
    /// address, and no code, which may be a delegation that takes their money. Contracts of the origin stay.
    pub(crate) fn prepare(&self, genesis: &mut Genesis) -> anyhow::Result<()> {
        let read: Vec<_> =
            genesis.allocations.keys().copied().filter(|address| *address != DEVELOPER).collect();
        // Also the account that gets the fees of every block.
        let found = self.origin.accounts(&[&read[..], &[Address::ZERO]].concat()).context("--fork-url")?;
        for (address, found) in read.iter().zip(found) {
            let is_contract = |allocation: &Allocation| !allocation.code.is_empty();
            let has_code = found.code_hash != KECCAK256_EMPTY;
            if has_code && genesis.allocations.get(address).is_some_and(is_contract) {
                genesis.allocations.remove(address);
            } else if let Some(allocation) = genesis.allocations.get_mut(address) {
                allocation.nonce = allocation.nonce.max(found.nonce);
            }
        }
        genesis.fork = Some(self.block.fork);
        Ok(())
    }
}

impl ForkOrigin {
    fn new(fork: Fork, values: Values, node: Option<OriginNode>) -> Self {
        Self(Arc::new(Reader { fork, values: Mutex::new(values), node }))
    }

    /// What a data directory keeps of an origin, without a node.
    pub(crate) fn kept(fork: Fork, directory: &Path) -> anyhow::Result<Self> {
        Ok(Self::new(fork, open_values(Some(directory))?, None))
    }

    /// For stores and the index.
    pub(crate) fn origin(&self) -> Origin {
        Origin::new(self.clone())
    }

    /// Accounts of the origin, in the order of their addresses.
    pub(crate) fn accounts(&self, addresses: &[Address]) -> anyhow::Result<Vec<Account>> {
        let keys: Vec<_> = addresses.iter().map(|address| StateKey::Account(*address)).collect();
        self.0.fetch(&keys)?;
        let account = |key: &StateKey| -> anyhow::Result<Account> {
            Ok(self.read(*key)?.map_or_else(|| Ok(Account::default()), |stored| Account::decode(&stored))?)
        };
        keys.iter().map(account).collect()
    }

    /// One line about it.
    pub(crate) fn describe(&self) -> String {
        let Fork { chain_id, number, .. } = self.0.fork;
        let from = match &self.0.node {
            Some(node) => format!("read from {}", node.host()),
            None => "without a node: only what was read before".to_owned(),
        };
        format!("block {number} of chain {chain_id}, {from}; {} values known", self.0.values().len())
    }
}

fn open_values(directory: Option<&Path>) -> anyhow::Result<Values> {
    directory.map_or_else(|| Ok(Values::default()), |directory| Values::open(&directory.join(FILE)))
}

impl Reader {
    fn values(&self) -> MutexGuard<'_, Values> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what is not known yet. Code comes with its account.
    fn fetch(&self, keys: &[StateKey]) -> Result<(), OriginError> {
        let is_unknown =
            |key: &&StateKey| !matches!(key, StateKey::Code(_)) && self.values().get(key).is_none();
        let unknown: Vec<_> = keys.iter().filter(is_unknown).copied().collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let node = self.node.as_ref().ok_or(OriginError::NoNode)?;
        // Not under the lock: others may read what is known meanwhile.
        let fetched = node.fetch(&unknown, self.fork.number)?;
        let mut values = self.values();
        // Code first, so that no account is known without it.
        for (key, value) in fetched.into_iter().rev() {
            values.keep(&key, value);
        }
        Ok(())
    }
}

impl StateRead for ForkOrigin {
    fn read(&self, key: StateKey) -> Result<Option<Bytes>, StateReadError> {
        self.0.fetch(&[key]).map_err(|error| StateReadError::failed(key, error.to_string()))?;
        Ok(self.0.values().get(&key).flatten())
    }

    fn announce(&self, keys: &[StateKey]) {
        // What fails here fails again when it is read, and is reported then.
        let _ = self.0.fetch(keys);
    }
}
