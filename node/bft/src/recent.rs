//! Marshal's own storage: the newest final blocks and certificates. Older ones are in the archive.
//!
//! Marshal stores a block before it delivers it, and the archive takes it at commit. So blocks that are final but not
//! committed need a place, also those that arrive out of order. Once a block is committed and a few hundred others are
//! above it, marshal's copy is removed ([`prune_to`]). It is then read from the archive, by its height, or by its hash
//! with the help of [`BlockNumbers`].
//!
//! Marshal asks for gaps and ranges only above the last delivered block, so its own window answers those. A block that
//! the archive cannot read counts as missing: no peer's request may stop a node.

use crate::{block::ConsensusBlock, digest::BlockDigest};
use alloy_primitives::BlockHash;
use almanac_state::{ArchiveError, BlockArchive, SignedBlock};
use commonware_codec::{CodecShared, Copying, Decode as _};
use commonware_consensus::{
    Heightable as _,
    marshal::store,
    simplex::{scheme::ed25519::Scheme, types::Finalization},
    types::Height,
};
use commonware_cryptography::{Digestible as _, certificate::Verifier as _};
use commonware_runtime::{Clock, Handle, Metrics, Spawner, Storage, buffer::paged::CacheRef};
use commonware_storage::{
    archive::{Error, Identifier, prunable},
    translator::EightCap,
};
use commonware_utils::NZUsize;
use std::{
    num::{NonZeroU64, NonZeroUsize},
    sync::Arc,
};

/// Write buffer and read-ahead, in bytes.
const BUFFER_BYTES: NonZeroUsize = NZUsize!(64 << 10);

/// Looks up the heights of committed blocks by hash.
pub trait BlockNumbers: Send + Sync {
    /// Height of the block with a hash, or `None` if there is none.
    fn number_of(&self, hash: BlockHash) -> Result<Option<u64>, String>;
}

/// The blocks that this node has committed.
#[derive(Clone)]
pub struct History {
    /// Has them by height.
    pub archive: Arc<dyn BlockArchive>,
    /// Has their heights by hash.
    pub numbers: Arc<dyn BlockNumbers>,
}

impl History {
    async fn at(&self, height: u64) -> Option<SignedBlock> {
        match self.archive.signed(height).await {
            Ok(found) => found,
            Err(ArchiveError::Pruned { .. }) => None,
            Err(error) => {
                tracing::error!("block {height} cannot be read for a peer: {error}");
                None
            }
        }
    }

    async fn find(&self, id: &Identifier<'_, BlockDigest>) -> Option<SignedBlock> {
        match id {
            Identifier::Index(height) => self.at(*height).await,
            Identifier::Key(digest) => self.at(self.number_of((**digest).into())?).await,
        }
    }

    fn number_of(&self, hash: BlockHash) -> Option<u64> {
        self.numbers.number_of(hash).unwrap_or_else(|error| {
            tracing::error!("the height of block {hash} cannot be read for a peer: {error}");
            None
        })
    }
}

/// The height below which marshal may prune, once the block at `height` is acknowledged. `None` if the last
/// pruning was recent.
pub(crate) fn prune_to(height: u64, recent_blocks: NonZeroU64) -> Option<u64> {
    let kept_from = height.checked_sub(recent_blocks.get())?;
    kept_from.is_multiple_of(recent_blocks.get()).then_some(kept_from)
}

type Window<E, V> = prunable::Archive<EightCap, E, BlockDigest, V>;

/// Configuration of a window.
pub(crate) struct WindowConfig<'a> {
    /// Prefix of its files.
    pub partition: &'a str,
    /// Blocks that are kept below the last one, and blocks in one file, which is removed as a whole.
    pub recent_blocks: NonZeroU64,
    /// Pages read from disk.
    pub cache: &'a CacheRef,
}

impl WindowConfig<'_> {
    async fn open<E, V>(&self, context: &E, name: &'static str, codec_config: V::Cfg) -> Window<E, V>
    where
        E: Clock + Spawner + Storage + Metrics,
        V: CodecShared,
    {
        let prefix = format!("{}-recent-{name}", self.partition);
        let config = prunable::Config {
            translator: EightCap,
            metadata_partition: format!("{prefix}-metadata"),
            key_partition: format!("{prefix}-key"),
            key_page_cache: self.cache.clone(),
            value_partition: format!("{prefix}-value"),
            compression: None,
            codec_config,
            items_per_section: self.recent_blocks,
            key_write_buffer: BUFFER_BYTES,
            value_write_buffer: BUFFER_BYTES,
            replay_buffer: BUFFER_BYTES,
        };
        let opened = Window::init(context.child(name), config).await;
        opened.unwrap_or_else(|error| panic!("{prefix} can be opened: {error}"))
    }
}

/// Final blocks: the newest in a separate window, older ones in the archive.
pub(crate) struct Blocks<E: Storage + Metrics + Clock> {
    recent: Window<E, Arc<ConsensusBlock>>,
    genesis: Arc<ConsensusBlock>,
    history: History,
}

impl<E: Clock + Spawner + Storage + Metrics> Blocks<E> {
    pub(crate) async fn open(
        context: &E,
        config: &WindowConfig<'_>,
        genesis: ConsensusBlock,
        history: History,
    ) -> Self {
        Self { recent: config.open(context, "blocks", ()).await, genesis: Arc::new(genesis), history }
    }

    fn is_genesis(&self, id: &Identifier<'_, BlockDigest>) -> bool {
        match id {
            Identifier::Index(height) => *height == self.genesis.height().get(),
            Identifier::Key(digest) => **digest == self.genesis.digest(),
        }
    }
}

impl<E: Clock + Spawner + Storage + Metrics> store::Blocks for Blocks<E> {
    type Block = Arc<ConsensusBlock>;
    type Error = Error;

    async fn put(mut self, digest: BlockDigest, block: &Arc<ConsensusBlock>) -> Result<Self, Error> {
        self.recent = store::Blocks::put(self.recent, digest, block).await?;
        Ok(self)
    }

    async fn sync(mut self) -> Result<Self, Error> {
        self.recent = store::Blocks::sync(self.recent).await?;
        Ok(self)
    }

    async fn start_sync(mut self) -> Result<(Self, Handle<()>), Error> {
        let durable;
        (self.recent, durable) = store::Blocks::start_sync(self.recent).await?;
        Ok((self, durable))
    }

    async fn get(&self, id: Identifier<'_, BlockDigest>) -> Result<Option<Arc<ConsensusBlock>>, Error> {
        if self.is_genesis(&id) {
            return Ok(Some(self.genesis.clone()));
        }
        if let Some(block) = store::Blocks::get(&self.recent, copy(&id)).await? {
            return Ok(Some(block));
        }
        let old = self.history.find(&id).await;
        Ok(old.and_then(|signed| ConsensusBlock::new(Arc::new(signed.block))).map(Arc::new))
    }

    async fn prune(mut self, min: Height) -> Result<Self, Error> {
        self.recent = store::Blocks::prune(self.recent, min).await?;
        Ok(self)
    }

    fn missing_items(&self, start: Height, max: usize) -> Vec<Height> {
        store::Blocks::missing_items(&self.recent, start, max)
    }

    fn next_gap(&self, value: Height) -> (Option<Height>, Option<Height>) {
        store::Blocks::next_gap(&self.recent, value)
    }

    fn last_index(&self) -> Option<Height> {
        store::Blocks::last_index(&self.recent)
    }
}

type Signed = Finalization<Scheme, BlockDigest>;

/// Certificates of final blocks: the newest in a separate window, older ones in the archive.
pub(crate) struct Certificates<E: Storage + Metrics + Clock> {
    recent: Window<E, Signed>,
    history: History,
}

impl<E: Clock + Spawner + Storage + Metrics> Certificates<E> {
    pub(crate) async fn open(context: &E, config: &WindowConfig<'_>, history: History) -> Self {
        let codec_config = Scheme::certificate_codec_config_unbounded();
        Self { recent: config.open(context, "certificates", codec_config).await, history }
    }
}

impl<E: Clock + Spawner + Storage + Metrics> store::Certificates for Certificates<E> {
    type BlockDigest = BlockDigest;
    type Commitment = BlockDigest;
    type Scheme = Scheme;
    type Error = Error;

    async fn put(mut self, height: Height, digest: BlockDigest, signed: &Signed) -> Result<Self, Error> {
        self.recent = store::Certificates::put(self.recent, height, digest, signed).await?;
        Ok(self)
    }

    async fn sync(mut self) -> Result<Self, Error> {
        self.recent = store::Certificates::sync(self.recent).await?;
        Ok(self)
    }

    async fn start_sync(mut self) -> Result<(Self, Handle<()>), Error> {
        let durable;
        (self.recent, durable) = store::Certificates::start_sync(self.recent).await?;
        Ok((self, durable))
    }

    async fn get(&self, id: Identifier<'_, BlockDigest>) -> Result<Option<Signed>, Error> {
        if let Some(signed) = store::Certificates::get(&self.recent, copy(&id)).await? {
            return Ok(Some(signed));
        }
        let old = self.history.find(&id).await.and_then(|signed| signed.certificate);
        let config = Scheme::certificate_codec_config_unbounded();
        Ok(old.and_then(|bytes| Signed::decode_cfg(Copying(&bytes[..]), &config).ok()))
    }

    async fn has(&self, height: Height) -> Result<bool, Error> {
        store::Certificates::has(&self.recent, height).await
    }

    async fn prune(mut self, min: Height) -> Result<Self, Error> {
        self.recent = store::Certificates::prune(self.recent, min).await?;
        Ok(self)
    }

    fn last_index(&self) -> Option<Height> {
        store::Certificates::last_index(&self.recent)
    }

    fn ranges_from(&self, from: Height) -> impl Iterator<Item = (Height, Height)> {
        store::Certificates::ranges_from(&self.recent, from)
    }
}

/// Copies the library's identifier, which is not `Copy`.
fn copy<'a>(id: &Identifier<'a, BlockDigest>) -> Identifier<'a, BlockDigest> {
    match id {
        Identifier::Index(height) => Identifier::Index(*height),
        Identifier::Key(digest) => Identifier::Key(digest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use almanac_primitives::{Block, Header, block::transactions_root};
    use almanac_state::{BlockJournal, QmdbConfig};
    use commonware_consensus::marshal::store::Blocks as _;
    use commonware_runtime::{
        Runner as _, Supervisor as _,
        deterministic::{self, Context},
    };
    use commonware_utils::{NZU16, NZU64};

    const RECENT: NonZeroU64 = NZU64!(4);

    fn block(number: u64) -> ConsensusBlock {
        let header = Header { number, transactions_root: transactions_root(&[]), ..Header::default() };
        ConsensusBlock::new(Arc::new(Block { header, transactions: Vec::new() })).unwrap()
    }

    /// Blocks 1 to 20.
    struct Twenty;

    impl BlockNumbers for Twenty {
        fn number_of(&self, hash: BlockHash) -> Result<Option<u64>, String> {
            Ok((1..=20).find(|number| block(*number).block().hash() == hash))
        }
    }

    async fn history(context: &Context) -> History {
        let config = QmdbConfig { file_blocks: NZU64!(4), ..QmdbConfig::new("a") };
        let archive = BlockJournal::open(context.child("archive"), &config).await.unwrap();
        for number in 1..=20 {
            archive.append(block(number).block(), &[], None).await.unwrap();
        }
        assert!(archive.prune(5).await.unwrap(), "blocks 1 to 4 are gone");
        History { archive: Arc::new(archive), numbers: Arc::new(Twenty) }
    }

    /// A block by its height and by its hash.
    async fn find(store: &Blocks<Context>, number: u64) -> [Option<u64>; 2] {
        let digest = block(number).digest();
        let found = [store.get(Identifier::Index(number)).await, store.get(Identifier::Key(&digest)).await];
        found.map(|found| found.unwrap().map(|found| found.height().get()))
    }

    #[test]
    fn what_is_not_recent_comes_from_the_archive() {
        deterministic::Runner::default().start(|context| async move {
            let cache = CacheRef::new(NZU16!(4096), NZUsize!(16));
            let config = WindowConfig { partition: "a", recent_blocks: RECENT, cache: &cache };
            let mut store = Blocks::open(&context, &config, block(0), history(&context).await).await;
            for number in [17, 18, 22] {
                store = store.put(block(number).digest(), &Arc::new(block(number))).await.unwrap();
            }
            store = store.sync().await.unwrap();
            for number in [0, 5, 16, 17, 18, 20, 22] {
                assert_eq!(find(&store, number).await, [Some(number); 2], "block {number}");
            }
            for number in [1, 4, 21, 23] {
                assert_eq!(
                    find(&store, number).await,
                    [None; 2],
                    "block {number} is pruned or not there yet"
                );
            }
            // Gaps are those of the window: marshal asks only above the last delivered block.
            let height = Height::new;
            assert_eq!(store.next_gap(height(19)), (None, Some(height(22))));
            assert_eq!(store.missing_items(height(19), 9), [19, 20, 21].map(height));
            assert_eq!(store.last_index(), Some(height(22)));
            store = store.prune(height(20)).await.unwrap();
            assert_eq!(find(&store, 17).await, [Some(17); 2], "it is in the archive");
            assert_eq!(find(&store, 22).await, [Some(22); 2]);
            assert_eq!(store.next_gap(height(17)), (None, Some(height(22))), "it is no longer in the window");
        });
    }

    #[test]
    fn pruning_leaves_between_one_and_two_times_what_is_recent() {
        assert_eq!((0..=13).filter_map(|height| prune_to(height, RECENT)).collect::<Vec<_>>(), [0, 4, 8]);
        assert_eq!(
            [3, 4, 5, 7, 8].map(|height| prune_to(height, RECENT)),
            [None, Some(0), None, None, Some(4)]
        );
    }
}
