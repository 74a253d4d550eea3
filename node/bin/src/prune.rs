//! Prunes old operations of the state, and old blocks if the config allows it.
//!
//! It runs beside the chain, one file at a time, so that a block waits for the removal of at most one file.

use almanac_bft::pace::paced;
use almanac_consensus::{Sink, SinkError};
use almanac_exec::BlockOutput;
use almanac_primitives::Block;
use almanac_state::{BlockArchive as _, BlockJournal, QmdbStore};
use commonware_runtime::Spawner;
use commonware_storage::Context;
use std::{fmt::Display, sync::Arc};
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
        let (heights, heard) = watch::channel(0);
        context.child("pruner").spawn(|clock| self.follow(clock, heard));
        Arc::new(Heard(heights))
    }

    async fn follow(self, clock: E, mut heard: watch::Receiver<u64>) {
        let mut next = 0;
        while let Ok(height) = heard.wait_for(|height| *height >= next).await.map(|height| *height) {
            if let Err(error) = self.prune(&clock, height).await {
                tracing::error!("pruning stopped, so the disk will fill up: {error:#}");
                return;
            }
            next = height.saturating_add(LOOK_EVERY);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::Bytes;
    use almanac_primitives::{Header, StateChange, StateDiff, StateKey};
    use almanac_state::{OpenError, QmdbConfig, SealedBatch as _, StateStore as _};
    use commonware_runtime::{
        Clock as _, Runner as _, Storage as _, Supervisor as _,
        deterministic::{self, Context},
    };
    use commonware_utils::NZU64;
    use std::{collections::BTreeMap, time::Duration};

    const KEPT_BLOCKS: u64 = 100;
    const FILE_OPERATIONS: u64 = 256;
    const FILE_BLOCKS: u64 = 16;

    fn config() -> QmdbConfig {
        QmdbConfig {
            file_operations: NZU64!(FILE_OPERATIONS),
            file_blocks: NZU64!(FILE_BLOCKS),
            ..QmdbConfig::new("a")
        }
    }

    fn value(height: u64) -> Bytes {
        Bytes::from(height.to_be_bytes().to_vec())
    }

    fn genesis() -> BTreeMap<StateKey, Bytes> {
        BTreeMap::from([(StateKey::Calendar(0), value(0))])
    }

    struct Home {
        context: Context,
        store: QmdbStore<Context>,
        archive: Arc<BlockJournal<Context>>,
        heights: watch::Sender<u64>,
        /// Where the log of the state ended after each block.
        ends: Vec<u64>,
    }

    impl Home {
        async fn new(context: &Context, blocks: Option<u64>) -> Self {
            let store = QmdbStore::open(context.child("state"), &config(), &genesis()).await.unwrap();
            let archive = Arc::new(BlockJournal::open(context.child("blocks"), &config()).await.unwrap());
            let pruner = Pruner { store: store.clone(), archive: archive.clone(), blocks };
            let (heights, heard) = watch::channel(0);
            context.child("pruner").spawn(|clock| pruner.follow(clock, heard));
            let ends = vec![store.tip().commitment().ops_end];
            Self { context: context.child("home"), store, archive, heights, ends }
        }

        /// Adds blocks that change one value each, and tells the pruner of every one as the chain would.
        async fn grow_to(&mut self, height: u64) {
            for number in self.ends.len() as u64..=height {
                let (old, new) = (Some(value(number - 1)), Some(value(number)));
                let diff = StateDiff::new(vec![StateChange { key: StateKey::Calendar(0), old, new }]);
                let batch = self.store.seal(&self.store.tip(), &diff).await.unwrap();
                self.store.commit(&batch).await.unwrap();
                let commitment = batch.commitment();
                let header = Header { number, commitment, ..Header::default() };
                self.archive.append(&Block { header, transactions: Vec::new() }, &[], None).await.unwrap();
                self.ends.push(commitment.ops_end);
                self.heights.send_replace(number);
            }
            self.context.sleep(Duration::from_secs(60)).await;
        }

        async fn files(&self, partition: &str) -> u64 {
            self.context.scan(partition).await.unwrap().len() as u64
        }

        /// Files of the state's log, if none was removed.
        fn written(&self) -> u64 {
            self.ends.last().unwrap() / FILE_OPERATIONS + 1
        }

        /// Ends the pruner, which holds the store, and answers with where the states are.
        async fn close(self) -> (Context, Vec<u64>) {
            let Self { context, store, archive, heights, ends } = self;
            drop((heights, archive, store));
            context.sleep(Duration::from_secs(1)).await;
            (context, ends)
        }
    }

    async fn open_at(context: &Context, end: u64) -> Result<u64, OpenError> {
        let store = QmdbStore::open_at(context.child("again"), &config(), &genesis(), Some(end)).await?;
        Ok(store.height())
    }

    #[test]
    fn what_others_may_still_copy_is_kept_and_what_is_older_goes() {
        const LATER: u64 = 600;
        deterministic::Runner::default().start(async |context| {
            let mut home = Home::new(&context, None).await;
            home.grow_to(COPIED_BLOCKS - 1).await;
            assert_eq!(home.files("a-log_data").await, home.written(), "all states can be copied still");
            home.grow_to(COPIED_BLOCKS + LATER).await;
            let (kept, written) = (home.files("a-log_data").await, home.written());
            let gone = home.ends[(LATER - LOOK_EVERY) as usize] / FILE_OPERATIONS;
            assert!(kept <= written - gone + 1, "{kept} files of {written} are left, {gone} may go");
            let (context, ends) = home.close().await;
            let refused = OpenError::Pruned { partition: "a".to_owned(), asked: ends[LATER as usize / 2] };
            assert_eq!(open_at(&context, ends[LATER as usize / 2]).await, Err(refused));
            assert_eq!(open_at(&context, ends[LATER as usize]).await, Ok(LATER));
        });
    }

    #[test]
    fn blocks_go_where_the_config_says_so() {
        deterministic::Runner::default().start(async |context| {
            let mut home = Home::new(&context, Some(KEPT_BLOCKS)).await;
            home.grow_to(KEPT_BLOCKS).await;
            assert!(home.archive.signed(1).await.unwrap().is_some());
            home.grow_to(4 * KEPT_BLOCKS).await;
            assert!(home.archive.signed(1).await.is_err(), "the oldest file is gone");
            assert!(home.archive.signed(3 * KEPT_BLOCKS).await.unwrap().is_some());
            let files = home.files("a-blocks_data").await;
            assert!(files <= (KEPT_BLOCKS + LOOK_EVERY) / FILE_BLOCKS + 2, "{files} files are left");
        });
    }
}
