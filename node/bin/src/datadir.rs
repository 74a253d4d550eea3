//! The directory that keeps a developer's chain: its genesis file and the log of its blocks.

use crate::accounts;
use almanac_primitives::{Genesis, TimestampMs};
use almanac_state::BlockLog;
use anyhow::{Context as _, ensure};
use std::{fs, path::Path};

/// A chain as a directory has it.
pub(crate) struct Kept {
    pub(crate) genesis: Genesis,
    pub(crate) log: BlockLog,
    /// How many blocks the log holds.
    pub(crate) blocks: u64,
}

/// Opens the chain in `directory`, or starts one there.
pub(crate) fn open(directory: &Path, chain_id: Option<u64>, now: TimestampMs) -> anyhow::Result<Kept> {
    fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let (log, blocks) = open_log(&directory.join("blocks.log"))?;
    let genesis = read_or_write_genesis(&directory.join("genesis.json"), chain_id, now)?;
    if let Some(given) = chain_id {
        ensure!(
            given == genesis.chain_id,
            "{} holds a chain with id {}, not {given}: leave out --chain-id, or choose another --datadir",
            directory.display(),
            genesis.chain_id
        );
    }
    Ok(Kept { genesis, log, blocks })
}

fn open_log(path: &Path) -> anyhow::Result<(BlockLog, u64)> {
    let (log, recovery) = BlockLog::open(path)?;
    if recovery.dropped_bytes > 0 {
        tracing::warn!(
            "dropped {} bytes of an unfinished block at the end of {}: the last stop was a crash",
            recovery.dropped_bytes,
            path.display()
        );
    }
    Ok((log, recovery.blocks))
}

fn read_or_write_genesis(path: &Path, chain_id: Option<u64>, now: TimestampMs) -> anyhow::Result<Genesis> {
    if path.exists() {
        let json = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        return Genesis::from_json(&json).with_context(|| format!("{} is no genesis file", path.display()));
    }
    let genesis = accounts::genesis(chain_id.unwrap_or(accounts::CHAIN_ID), now);
    genesis.check()?;
    // Written beside and renamed, so that a crash leaves a whole file or none.
    let draft = path.with_extension("json.new");
    fs::write(&draft, genesis.to_json() + "\n")
        .and_then(|()| fs::File::open(&draft)?.sync_all())
        .and_then(|()| fs::rename(&draft, path))
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(genesis)
}
