//! Decides whether a node must copy the state before it starts: it has none, or it is far behind.

use super::config::{NodeConfig, Sync};
use crate::{
    chain::{self, PARTITION},
    datadir::Datadir,
};
use almanac_bft::{
    Namespace, NetworkConfig, ValidatorSet,
    sync::{self, Floor, SyncError},
};
use almanac_primitives::{DurationMs, Genesis, Header, TimestampMs};
use almanac_state::{BlockJournal, QmdbConfig};
use anyhow::{Context as _, ensure};
use commonware_runtime::{Runner as _, Supervisor as _, tokio::Context};
use std::{sync::Arc, time::Duration};

/// How long a node that has a chain waits for its peers to say how far they are. Where all start at once, nobody
/// answers.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a node has to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing: it goes on with its blocks, or fetches all.
    Nothing,
    /// The state, into a directory that has none.
    Fill,
    /// The state, in place of one that is far behind.
    Replace,
}

/// Finds out what a node has to copy, at `now`. Blocks the thread.
pub(super) fn need(
    config: &NodeConfig,
    genesis: &Genesis,
    datadir: &Datadir,
    network: &NetworkConfig,
    now: TimestampMs,
) -> anyhow::Result<Need> {
    if config.sync == Sync::Blocks {
        ensure!(
            !datadir.is_half_copied()?,
            "{} has an incomplete copy of a state: set \"sync\": \"state\" to continue it, or remove the directory",
            datadir.path().display()
        );
        datadir.remove_fresh()?;
        return Ok(Need::Nothing);
    }
    if !datadir.is_usable()? {
        return Ok(Need::Fill);
    }
    let (floor, behind_max) = (datadir.floor()?, config.behind_max());
    // A runtime of its own: when it ends, so do its files and connections.
    let is_far = datadir.runner().start(|context| async move {
        let own = last_header(&context, genesis, floor.as_ref()).await?;
        if !may_be_far(&own, now, behind_max, config.block_time_ms) {
            return anyhow::Ok(false);
        }
        is_far(&context, genesis, network, &own, behind_max).await
    })?;
    if is_far {
        return Ok(Need::Replace);
    }
    datadir.remove_fresh()?;
    Ok(Need::Nothing)
}

/// Whether so many blocks can have been made since the last one that is here. Where not, no peer has to be asked.
fn may_be_far(own: &Header, now: TimestampMs, behind_max: u64, DurationMs(block_time): DurationMs) -> bool {
    now.0.saturating_sub(own.timestamp.0) >= behind_max.saturating_mul(block_time)
}

/// The header of the last block that is here.
async fn last_header(context: &Context, genesis: &Genesis, floor: Option<&Floor>) -> anyhow::Result<Header> {
    let first = match floor {
        Some(floor) => floor.header.clone(),
        None => chain::genesis_header(context, genesis).await?,
    };
    let config = QmdbConfig::new(PARTITION);
    let archive = BlockJournal::open_after(context.child("behind"), &config, first.number).await?;
    let height = archive.height().await?;
    if height <= first.number {
        return Ok(first);
    }
    let last = archive.get(height).await?;
    Ok(last.with_context(|| format!("block {height} is missing from the archive"))?.block.header)
}

async fn is_far(
    context: &Context,
    genesis: &Genesis,
    network: &NetworkConfig,
    own: &Header,
    behind_max: u64,
) -> anyhow::Result<bool> {
    let namespace = Namespace(chain::genesis_header(context, genesis).await?.hash());
    let validators = ValidatorSet::new(genesis)?;
    let session = sync::connect(context, network, validators, namespace, Arc::default())?;
    let found = session.find_floor_within(PATIENCE, &mut context.child("weights")).await;
    let number = match found {
        Ok(floor) => floor.header.number,
        Err(SyncError::NoTip { patience }) => {
            tracing::info!(
                "no peer named a final block within {patience:?}: continuing from block {}",
                own.number
            );
            return Ok(false);
        }
        Err(error) => return Err(error.into()),
    };
    let behind = number.saturating_sub(own.number);
    if behind <= behind_max {
        return Ok(false);
    }
    tracing::warn!(
        "at block {}, and block {number} is final: {behind} behind is more than syncBehindBlocks {behind_max}, so the node \
         copies the state; its own blocks are removed when the copy is complete",
        own.number
    );
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_asked_when_enough_time_has_passed() {
        let own = Header { timestamp: TimestampMs(50_000), ..Header::default() };
        let may = |now: u64, behind: u64| may_be_far(&own, TimestampMs(now), behind, DurationMs(500));
        assert!(!may(54_999, 10));
        assert!(may(55_000, 10));
        assert!(!may(0, 10), "a clock that is behind");
        assert!(!may(u64::MAX - 1, u64::MAX));
    }
}
