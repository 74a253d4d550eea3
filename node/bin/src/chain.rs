//! Opens a chain, in memory or from a directory, and brings all its parts to the same block.

use crate::listen::IndexFeed;
use almanac_consensus::{Application, Sink as _, Tip};
use almanac_index::{Index, IndexConfig};
use almanac_primitives::{Block, Genesis, Header};
use almanac_schedule::EmptyAgenda;
use almanac_state::{BlockJournal, MemoryStore, QmdbConfig, QmdbStore, SealedBatch as _, StateStore};
use anyhow::{Context as _, ensure};
use commonware_runtime::Spawner;
use commonware_storage::Context;
use std::{sync::Arc, time::Duration};

/// Prefix of the files of blocks and state.
pub(crate) const PARTITION: &str = "state";

/// A chain at its tip, ready for an engine.
pub(crate) struct Chain<S: StateStore> {
    pub(crate) application: Application<S>,
    pub(crate) tip: Tip<S::Batch>,
    pub(crate) index: Arc<Index>,
}

/// A new chain that is gone when the process ends.
pub(crate) fn in_memory(genesis: &Genesis) -> anyhow::Result<Chain<MemoryStore>> {
    let state = genesis.state()?;
    let store = MemoryStore::from_genesis(state.clone());
    let (application, tip) = Application::new(genesis, store, Arc::new(EmptyAgenda))?;
    // A developer may ask about any block of the past.
    let index = Arc::new(Index::in_memory(IndexConfig::archive(), tip.header.clone(), state)?);
    Ok(Chain { application, tip, index })
}

/// The chain that `context` has on disk, at the last block of its archive.
///
/// The archive is ahead of the state after a crash, and of the index: what they lack is executed again, with
/// every root compared. For the index that means starting from the state that it last saw.
pub(crate) async fn on_disk<E: Context + Spawner>(
    context: &E,
    genesis: &Genesis,
) -> anyhow::Result<Chain<QmdbStore<E>>> {
    let state = genesis.state()?;
    let origin = genesis_header(context, genesis).await?;
    let config = QmdbConfig::new(PARTITION);
    let archive = BlockJournal::open(context.child("blocks"), &config).await?;
    let index = Arc::new(Index::in_memory(IndexConfig::archive(), origin.clone(), state.clone())?);

    let archived = archive.height().await?;
    let store = QmdbStore::open(context.child("state"), &config, &state).await?;
    ensure!(
        store.height() <= archived,
        "the state is at block {} but the archive ends at {archived}: restore a backup, or remove the chain",
        store.height()
    );
    let start = index.tip().block.header.number.min(store.height());
    let header = header_at(&archive, &origin, start).await?;
    let store = if start < store.height() {
        drop(store);
        let ops_end = Some(header.commitment.ops_end);
        QmdbStore::open_at(context.child("state_again"), &config, &state, ops_end).await?
    } else {
        store
    };
    let (application, tip) = Application::resume(genesis, store, Arc::new(EmptyAgenda), header)?;
    let mut chain = Chain { application, tip, index };
    replay(&mut chain, &archive, archived).await?;
    chain.application.keep_archive(Arc::new(archive));
    Ok(chain)
}

/// All blocks that `context` has on disk.
pub(crate) async fn archived_blocks<E: Context>(context: &E) -> anyhow::Result<Vec<Block>> {
    let archive = BlockJournal::open(context.child("blocks"), &QmdbConfig::new(PARTITION)).await?;
    let mut blocks = Vec::new();
    for number in 1..=archive.height().await? {
        let archived = archive.get(number).await?;
        blocks.push(archived.with_context(|| format!("block {number} is missing from the archive"))?.block);
    }
    Ok(blocks)
}

/// Makes a chain on an empty disk from given blocks, executing each and comparing every root.
pub(crate) async fn import<E: Context + Spawner>(
    context: &E,
    genesis: &Genesis,
    blocks: impl Iterator<Item = anyhow::Result<Block>>,
    total: u64,
) -> anyhow::Result<()> {
    let mut chain = on_disk(context, genesis).await?;
    let mut progress = Progress::new("imported", total);
    for block in blocks {
        let made = chain.application.verify(&chain.tip, block?).await?;
        chain.application.commit(&made).await?;
        chain.tip = made.tip;
        progress.report(chain.tip.header.number);
    }
    Ok(())
}

/// Says now and then how far a long piece of work is.
struct Progress {
    doing: &'static str,
    total: u64,
    reported: tokio::time::Instant,
}

impl Progress {
    const EVERY: Duration = Duration::from_secs(1);

    fn new(doing: &'static str, total: u64) -> Self {
        Self { doing, total, reported: tokio::time::Instant::now() }
    }

    fn report(&mut self, done: u64) {
        if self.reported.elapsed() >= Self::EVERY {
            self.reported = tokio::time::Instant::now();
            tracing::info!("{} {done} of {} blocks", self.doing, self.total);
        }
    }
}

/// The header of block 0. Its commitment comes from a store of its own that never leaves genesis.
async fn genesis_header<E: Context + Spawner>(context: &E, genesis: &Genesis) -> anyhow::Result<Header> {
    let config = QmdbConfig { page_cache_bytes: 1 << 20, ..QmdbConfig::new("genesis") };
    let store = QmdbStore::open(context.child("genesis"), &config, &genesis.state()?).await?;
    Ok(genesis.header(store.head().commitment())?)
}

async fn header_at<E: Context>(
    archive: &BlockJournal<E>,
    origin: &Header,
    height: u64,
) -> anyhow::Result<Header> {
    if height == 0 {
        return Ok(origin.clone());
    }
    let archived = archive.get(height).await?;
    Ok(archived.with_context(|| format!("block {height} is missing from the archive"))?.block.header)
}

/// Executes archived blocks again, up to `height`.
async fn replay<E: Context + Spawner>(
    chain: &mut Chain<QmdbStore<E>>,
    archive: &BlockJournal<E>,
    height: u64,
) -> anyhow::Result<()> {
    let feed = IndexFeed(chain.index.clone());
    let mut progress = Progress::new("replayed", height);
    for number in chain.tip.header.number + 1..=height {
        let archived = archive.get(number).await?.with_context(|| format!("block {number} is missing"))?;
        let made = chain.application.verify(&chain.tip, archived.block).await?;
        chain.application.commit(&made).await?;
        feed.finalized(&made.block, &made.output)?;
        chain.tip = made.tip;
        progress.report(number);
    }
    Ok(())
}
