//! The directory that keeps a chain: its lock, its genesis file, its blocks and state.
//!
//! ```text
//! DIR/lock           held while a node uses the directory
//! DIR/genesis.json   the start of the chain
//! DIR/chain/         blocks and state
//! DIR/index/         what answers requests; can be made anew from the blocks
//! DIR/control.sock   by which other commands talk to a running node
//! ```

use crate::accounts;
use almanac_primitives::{Genesis, TimestampMs};
use anyhow::{Context as _, bail, ensure};
use commonware_runtime::tokio::{Config, Runner};
use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
};

/// A directory that is ours until this is dropped.
#[derive(Debug)]
pub(crate) struct Datadir {
    path: PathBuf,
    _lock: File,
}

impl Datadir {
    /// Takes the directory, making it if there is none.
    pub(crate) fn take(path: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))?;
        let lock_path = path.join("lock");
        let lock = File::options()
            .create(true)
            .write(true)
            .truncate(false)
            .open(&lock_path)
            .with_context(|| format!("cannot open {}", lock_path.display()))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => {
                bail!("{} is in use by another process: stop it, or choose another --datadir", path.display())
            }
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("cannot lock {}", lock_path.display()))
            }
        }
    }

    /// A runtime whose storage is where blocks and state are. One worker serves the disk; what runs on it runs on
    /// the calling thread.
    pub(crate) fn runner(&self) -> Runner {
        Runner::new(Config::new().with_storage_directory(self.chain()).with_worker_threads(1))
    }

    /// Whether a chain was ever started here.
    pub(crate) fn has_chain(&self) -> bool {
        self.chain().is_dir()
    }

    fn chain(&self) -> PathBuf {
        self.path.join("chain")
    }

    /// Where the index is.
    pub(crate) fn index(&self) -> PathBuf {
        self.path.join("index")
    }

    /// The directory itself.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Starts the directory with a genesis.
    pub(crate) fn write_genesis(&self, genesis: &Genesis) -> anyhow::Result<()> {
        write_genesis(&self.path.join("genesis.json"), genesis)
    }

    /// The genesis of the chain in the directory.
    pub(crate) fn kept_genesis(&self) -> anyhow::Result<Genesis> {
        read_genesis(&self.path.join("genesis.json"))
    }

    /// Starts the directory with a genesis, or checks that it was started with the same.
    pub(crate) fn adopt_genesis(&self, genesis: &Genesis) -> anyhow::Result<()> {
        let path = self.path.join("genesis.json");
        if !path.exists() {
            return self.write_genesis(genesis);
        }
        ensure!(
            self.kept_genesis()? == *genesis,
            "{} holds another chain: its genesis.json is not the one that was given",
            self.path.display()
        );
        Ok(())
    }

    /// The genesis of the chain in the directory, or of a new developer's chain.
    pub(crate) fn genesis(&self, chain_id: Option<u64>, now: TimestampMs) -> anyhow::Result<Genesis> {
        let genesis = read_or_write_genesis(&self.path.join("genesis.json"), chain_id, now)?;
        // A sequencer alone would take it where the other validators never follow.
        ensure!(
            genesis.validators.is_empty(),
            "{} holds a chain of {} validators: run it with almanac node",
            self.path.display(),
            genesis.validators.len()
        );
        if let Some(given) = chain_id {
            ensure!(
                given == genesis.chain_id,
                "{} holds a chain with id {}, not {given}: leave out --chain-id, or choose another --datadir",
                self.path.display(),
                genesis.chain_id
            );
        }
        Ok(genesis)
    }
}

fn read_or_write_genesis(path: &Path, chain_id: Option<u64>, now: TimestampMs) -> anyhow::Result<Genesis> {
    if path.exists() {
        return read_genesis(path);
    }
    let genesis = accounts::genesis(chain_id.unwrap_or(accounts::CHAIN_ID), now);
    genesis.check()?;
    write_genesis(path, &genesis)?;
    Ok(genesis)
}

/// Reads a genesis file.
pub(crate) fn read_genesis(path: &Path) -> anyhow::Result<Genesis> {
    let json = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Genesis::from_json(&json).with_context(|| format!("{} is no genesis file", path.display()))
}

/// Writes a genesis file.
pub(crate) fn write_genesis(path: &Path, genesis: &Genesis) -> anyhow::Result<()> {
    // Written beside and renamed, so that a crash leaves a whole file or none.
    let draft = path.with_extension("json.new");
    fs::write(&draft, genesis.to_json() + "\n")
        .and_then(|()| File::open(&draft)?.sync_all())
        .and_then(|()| fs::rename(&draft, path))
        .with_context(|| format!("cannot write {}", path.display()))
}
