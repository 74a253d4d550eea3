//! Prunes old operations of the state, and old blocks if the config allows it.
//!
//! It runs beside the chain, one file at a time, so that a block waits for the removal of at most one file.

use almanac_consensus::{Sink, SinkError};
use almanac_exec::BlockOutput;
use almanac_primitives::Block;
use almanac_state::{BlockArchive as _, BlockJournal, QmdbStore};
use commonware_runtime::{Clock, Spawner};
use commonware_storage::Context;
use std::{fmt::Display, future::Future, sync::Arc};
use tokio::sync::watch;

/// Blocks below the last one whose states can be copied by other nodes: a copy that was begun has seven minutes at ten
/// blocks a second, and over half an hour at two.
pub(crate) const COPIED_BLOCKS: u64 = 4_096;

/// Blocks from one look to the next.
const LOOK_EVERY: u64 = 64;

/// What to keep, and of what.
pub(crate) struct Pruner<E: Context + Spawner> {
    pub(crate) store: QmdbStore<E>,
    pub(crate) archive: Arc<BlockJournal<E>>,
    /// Blocks that are kept below the last one; `None` is all.
    pub(crate) blocks: Option<u64>,
}

impl<E: Context + Spawner> Pruner<E> {
    /// Prunes after blocks of which it hears through the sink, until that is gone or a block cannot be read.
    ///
    /// Where removing fails, the files are closed and nothing can be read or voted on any more: the node stops.
    pub(crate) fn start(self, context: &E) -> Arc<dyn Sink> {
        let (heights, mut heard) = watch::channel(0);
        context.child("pruner").spawn(|clock| async move {
            let mut next = 0;
            while let Ok(height) = heard.wait_for(|height| *height >= next).await.map(|height| *height) {
                if let Err(error) = self.prune(&clock, height).await {
                    tracing::error!("pruning stopped, so the disk will fill up: {error:#}");
                    return;
                }
                next = height.saturating_add(LOOK_EVERY);
            }
        });
        Arc::new(Heard(heights))
    }

    async fn prune(&self, clock: &E, height: u64) -> anyhow::Result<()> {
        // A developer's chain shows blocks before it commits them; then the archive has no such block yet.
        let oldest = match height.checked_sub(COPIED_BLOCKS) {
            Some(oldest) => self.archive.signed(oldest).await?,
            None => None,
        };
        if let Some(oldest) = oldest {
            let commitment = oldest.block.header.commitment;
            while paced(clock, self.store.prune(&commitment)).await.unwrap_or_else(|error| stop(&error)) {}
        }
        if let Some(first) = self.blocks.and_then(|blocks| height.checked_sub(blocks)) {
            while paced(clock, self.archive.prune(first)).await.unwrap_or_else(|error| stop(&error)) {}
        }
        Ok(())
    }
}

/// Ends the node as the libraries below do where a disk fails; the operator is told in these words.
fn stop(error: &dyn Display) -> ! {
    panic!("io error: what is too old to be kept cannot be removed: {error}")
}

/// Does something that blocks wait for, and rests so many times as long afterwards that they wait a quarter of the time
/// at most.
async fn paced<T>(clock: &impl Clock, work: impl Future<Output = T>) -> T {
    let begin = clock.current();
    let done = work.await;
    let spent = clock.current().duration_since(begin).unwrap_or_default();
    clock.sleep(spent * 3).await;
    done
}

struct Heard(watch::Sender<u64>);

impl Sink for Heard {
    fn finalized(&self, block: &Arc<Block>, _: &Arc<BlockOutput>) -> Result<(), SinkError> {
        self.0.send_replace(block.header.number);
        Ok(())
    }

    fn reverted(&self, _: u64) -> Result<(), SinkError> {
        // What was heard stays: only blocks that are in the archive count.
        Ok(())
    }
}
