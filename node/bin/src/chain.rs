//! Opens a chain, in memory or from a directory, and brings all its parts to the same block.

use crate::{catch_up, progress::Progress, prune::Pruner};
use alloy_primitives::B256;
use almanac_consensus::{Application, Sink, Tip};
use almanac_feed::IndexFeed;
use almanac_index::{Index, IndexConfig};
use almanac_primitives::{Chain as ChainId, Genesis, Header, Origin};
use almanac_schedule::CalendarAgenda;
use almanac_state::{
    BlockArchive, BlockJournal, ForkedStore, MemoryStore, QmdbConfig, QmdbStore, SealedBatch as _,
    SignedBlock, StateStore,
};
use anyhow::{Context as _, ensure};
use commonware_runtime::{Runner as _, Spawner, deterministic};
use commonware_storage::Context;
use std::{path::Path, sync::Arc};

/// Prefix of the files of blocks and state.
pub(crate) const PARTITION: &str = "state";

/// A chain at its tip, ready for an engine.
pub(crate) struct Chain<S: StateStore> {
    pub(crate) application: Application<S>,
    pub(crate) tip: Tip<S::Batch>,
    pub(crate) index: Arc<Index>,
    /// What is on disk, where that is where it is.
    pub(crate) disk: Option<Disk>,
}

/// What a chain on disk has beside its state.
pub(crate) struct Disk {
    /// Its blocks.
    pub(crate) archive: Arc<dyn BlockArchive>,
    /// Hears of blocks, and prunes after them.
    pub(crate) pruning: Arc<dyn Sink>,
}

/// How much of a chain is kept on disk.
#[derive(Clone, Debug)]
pub(crate) struct Keeping {
    /// What the index keeps.
    pub(crate) index: IndexConfig,
    /// Blocks that the archive keeps below the last one; `None` is all.
    pub(crate) blocks: Option<u64>,
    /// Memory for what was read of the state; `None` is the usual amount.
    pub(crate) state_cache_bytes: Option<usize>,
}

impl From<IndexConfig> for Keeping {
    /// All blocks.
    fn from(index: IndexConfig) -> Self {
        Self { index, blocks: None, state_cache_bytes: None }
    }
}

/// A new chain that is gone when the process ends.
pub(crate) fn in_memory(genesis: &Genesis, keeping: IndexConfig) -> anyhow::Result<Chain<MemoryStore>> {
    let store = MemoryStore::from_genesis(genesis.state()?);
    let (application, tip) = Application::new(genesis, store, Arc::new(CalendarAgenda))?;
    let index = Arc::new(Index::in_memory(keeping, tip.header.clone(), genesis.state()?)?);
    Ok(Chain { application, tip, index, disk: None })
}

/// The same over the state of another chain.
pub(crate) fn forked_in_memory(
    genesis: &Genesis,
    keeping: IndexConfig,
    origin: Origin,
) -> anyhow::Result<Chain<ForkedStore<MemoryStore>>> {
    let store = ForkedStore::new(MemoryStore::from_genesis(genesis.state()?), origin.clone());
    let (application, tip) = Application::new(genesis, store, Arc::new(CalendarAgenda))?;
    let index = Index::in_memory(keeping, tip.header.clone(), genesis.state()?)?.over(origin);
    Ok(Chain { application, tip, index: Arc::new(index), disk: None })
}

/// The chain that `context` has on disk, at the last block of its archive, with its index at `place`. Where its
/// state was copied, `floor` is the header of that block, and there are no blocks before.
///
/// After a crash the archive is ahead of the state, and both of the index: what they lack is executed again, with
/// everything compared that the blocks say.
pub(crate) async fn on_disk<E: Context + Spawner>(
    context: &E,
    genesis: &Genesis,
    place: &Path,
    keeping: Keeping,
    floor: Option<&Header>,
) -> anyhow::Result<Chain<QmdbStore<E>>> {
    open(context, genesis, place, keeping, floor, None, |store| store).await
}

/// The same over the state of another chain.
pub(crate) async fn forked_on_disk<E: Context + Spawner>(
    context: &E,
    genesis: &Genesis,
    place: &Path,
    keeping: Keeping,
    origin: Origin,
) -> anyhow::Result<Chain<ForkedStore<QmdbStore<E>>>> {
    let below = origin.clone();
    let over = |store| ForkedStore::new(store, below);
    open(context, genesis, place, keeping, None, Some(origin), over).await
}

async fn open<E: Context + Spawner, S: StateStore<Batch: Send + 'static>>(
    context: &E,
    genesis: &Genesis,
    place: &Path,
    keeping: Keeping,
    floor: Option<&Header>,
    origin: Option<Origin>,
    over: impl FnOnce(QmdbStore<E>) -> S,
) -> anyhow::Result<Chain<S>> {
    let (state, below) = (genesis.state()?, origin);
    let origin = genesis_header(context, genesis).await?;
    let chain = ChainId { id: genesis.chain_id, genesis: origin.hash() };
    let first = floor.unwrap_or(&origin).clone();
    let mut config = QmdbConfig::new(PARTITION);
    config.page_cache_bytes = keeping.state_cache_bytes.unwrap_or(config.page_cache_bytes);
    let archive = BlockJournal::open_after(context.child("blocks"), &config, first.number).await?;
    let archived = archive.height().await?;
    let store = QmdbStore::open(context.child("state"), &config, &state).await?;
    ensure!(
        store.height() <= archived,
        "the state is at block {} but the archive ends at {archived}: restore a backup, or remove the chain",
        store.height()
    );
    ensure!(
        floor.is_none() || place.is_dir(),
        "{} is missing, and this node lacks the blocks to rebuild it: remove the directory and sync again",
        place.display()
    );
    let index = open_index(place, keeping.index, origin, genesis, below)?;
    catch_up::drop_above(&index, archived)?;
    catch_up::catch_up(&index, &archive, &CalendarAgenda, chain, store.height()).await?;
    let header = header_at(&archive, &first, store.height()).await?;
    let (application, tip) =
        Application::resume(genesis, chain.genesis, over(store.clone()), Arc::new(CalendarAgenda), header)?;
    let mut chain = Chain { application, tip, index, disk: None };
    replay(&mut chain, &archive, archived).await?;
    let archive = Arc::new(archive);
    chain.application.keep_archive(archive.clone());
    let pruning = Pruner { store, archive: archive.clone(), blocks: keeping.blocks }.start(context);
    chain.disk = Some(Disk { archive, pruning });
    Ok(chain)
}

fn open_index(
    place: &Path,
    keeping: IndexConfig,
    first: Header,
    genesis: &Genesis,
    below: Option<Origin>,
) -> anyhow::Result<Arc<Index>> {
    let index = Index::open(place, keeping, first, genesis.state()?)?;
    Ok(Arc::new(match below {
        Some(below) => index.over(below),
        None => index,
    }))
}

/// Makes an index at `place` from the archived blocks alone, and from what is below a forked chain. Answers with its
/// height and digest.
pub(crate) async fn index_from_blocks<E: Context + Spawner>(
    context: &E,
    genesis: &Genesis,
    place: &Path,
    keeping: IndexConfig,
    below: Option<Origin>,
) -> anyhow::Result<(u64, B256)> {
    let origin = genesis_header(context, genesis).await?;
    let chain = ChainId { id: genesis.chain_id, genesis: origin.hash() };
    let archive = BlockJournal::open(context.child("blocks"), &QmdbConfig::new(PARTITION)).await?;
    let index = open_index(place, keeping, origin, genesis, below)?;
    let height = archive.height().await?;
    catch_up::catch_up(&index, &archive, &CalendarAgenda, chain, height).await?;
    index.sync()?;
    Ok((height, index.digest()?))
}

/// Height and digest of the index at `place`.
pub(crate) async fn index_as_it_is<E: Context + Spawner>(
    context: &E,
    genesis: &Genesis,
    place: &Path,
    keeping: IndexConfig,
) -> anyhow::Result<(u64, B256)> {
    let origin = genesis_header(context, genesis).await?;
    let index = Index::open(place, keeping, origin, genesis.state()?)?;
    Ok((index.height(), index.digest()?))
}

/// The blocks that `context` has on disk.
pub(crate) async fn archive<E: Context>(context: &E) -> anyhow::Result<BlockJournal<E>> {
    Ok(BlockJournal::open(context.child("blocks"), &QmdbConfig::new(PARTITION)).await?)
}

/// A block of an archive that should have it.
pub(crate) async fn archived(archive: &dyn BlockArchive, number: u64) -> anyhow::Result<SignedBlock> {
    let found = archive.signed(number).await?;
    found.with_context(|| format!("block {number} is missing from the archive"))
}

/// The height of the last block up to `height` that a backup can end with: one that carries a certificate, where the
/// chain has validators.
pub(crate) async fn last_signed(
    archive: &dyn BlockArchive,
    genesis: &Genesis,
    height: u64,
) -> anyhow::Result<u64> {
    let mut last = height;
    while last > 0 && !genesis.validators.is_empty() && archived(archive, last).await?.certificate.is_none() {
        last -= 1;
    }
    Ok(last)
}

/// Makes a chain on an empty disk from given blocks, executing each and comparing every root.
pub(crate) async fn import<E: Context + Spawner>(
    context: &E,
    genesis: &Genesis,
    place: &Path,
    blocks: impl Iterator<Item = anyhow::Result<SignedBlock>>,
    total: u64,
) -> anyhow::Result<()> {
    let mut chain = on_disk(context, genesis, place, IndexConfig::archive().into(), None).await?;
    let mut progress = Progress::new("imported", total);
    for block in blocks {
        advance(&mut chain, block?).await?;
        progress.report(chain.tip.header.number);
    }
    Ok(chain.index.sync()?)
}

/// The header of block 0. Its commitment comes from a store of its own that never leaves genesis.
pub(crate) async fn genesis_header<E: Context + Spawner>(
    context: &E,
    genesis: &Genesis,
) -> anyhow::Result<Header> {
    let config = QmdbConfig { page_cache_bytes: 1 << 20, ..QmdbConfig::new("genesis") };
    let store = QmdbStore::open(context.child("genesis"), &config, &genesis.state()?).await?;
    Ok(genesis.header(store.tip().commitment())?)
}

/// The same from the genesis alone: the state is put together in memory, and nothing of this machine gets into it.
pub(crate) fn origin_of(genesis: &Genesis) -> anyhow::Result<Header> {
    deterministic::Runner::default().start(|context| async move { genesis_header(&context, genesis).await })
}

/// The header of the block at `height`, of a chain whose blocks follow the one with the header `first`.
async fn header_at<E: Context>(
    archive: &BlockJournal<E>,
    first: &Header,
    height: u64,
) -> anyhow::Result<Header> {
    if height == first.number {
        return Ok(first.clone());
    }
    let archived = archive.get(height).await?;
    Ok(archived.with_context(|| format!("block {height} is missing from the archive"))?.block.header)
}

/// Executes archived blocks again, up to `height`.
async fn replay<E: Context + Spawner, S: StateStore<Batch: Send + 'static>>(
    chain: &mut Chain<S>,
    archive: &BlockJournal<E>,
    height: u64,
) -> anyhow::Result<()> {
    let mut progress = Progress::new("replayed", height);
    for number in chain.tip.header.number + 1..=height {
        advance(chain, archived(archive, number).await?).await?;
        progress.report(number);
    }
    Ok(())
}

/// Executes a block on the tip, makes it final, and lets the index know.
async fn advance<S: StateStore<Batch: Send + 'static>>(
    chain: &mut Chain<S>,
    SignedBlock { block, certificate }: SignedBlock,
) -> anyhow::Result<()> {
    let made = chain.application.verify(&chain.tip, block).await?;
    chain.application.commit_certified(&made, certificate.as_ref().map(|found| &found[..])).await?;
    IndexFeed(chain.index.clone()).finalized(&made.block, &made.output)?;
    chain.tip = made.tip;
    Ok(())
}
