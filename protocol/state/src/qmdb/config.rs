//! Sizes of caches, buffers and files. None of them changes a root.

use commonware_parallel::Sequential;
use commonware_runtime::buffer::paged::CacheRef;
use commonware_storage::{
    journal::contiguous::variable::Config as LogConfig, mmr::full::Config as MerkleConfig,
    qmdb::current::VariableConfig, translator::EightCap,
};
use commonware_utils::{NZU16, NZU64, NZUsize};
use std::num::{NonZeroU16, NonZeroU64, NonZeroUsize};

/// Bytes of a cache page, the unit of disk reads.
const PAGE_BYTES: NonZeroU16 = NZU16!(4096);

/// Read buffer for opening a store.
const REPLAY_BUFFER_BYTES: NonZeroUsize = NZUsize!(1 << 20);

/// Name of the state's log among the partitions.
const LOG: &str = "log";

/// Configuration of a store.
#[derive(Clone, Debug)]
pub struct QmdbConfig {
    /// Prefix of its files.
    pub partition: String,
    /// Memory for pages read from disk, in bytes. More of it makes reads of a large state faster.
    pub page_cache_bytes: usize,
    /// Keys that opening keeps in memory, to tell live operations from superseded ones. Opening is fastest if
    /// all live keys fit.
    pub open_cache_keys: usize,
    /// Write buffer in bytes.
    pub write_buffer_bytes: NonZeroUsize,
    /// Operations in one file of the state: the grain of pruning. Fixed for the life of a store.
    pub file_operations: NonZeroU64,
    /// Blocks in one file of the archive. Fixed for its life. Opening reads the last file to its end, and every
    /// file stays open.
    pub file_blocks: NonZeroU64,
}

impl QmdbConfig {
    /// Suited to a laptop and up to a million accounts: 64 MiB of pages, a million keys while opening.
    pub fn new(partition: impl Into<String>) -> Self {
        Self {
            partition: partition.into(),
            page_cache_bytes: 64 << 20,
            open_cache_keys: 1 << 20,
            write_buffer_bytes: NZUsize!(1 << 20),
            file_operations: NZU64!(1 << 16),
            file_blocks: NZU64!(1 << 14),
        }
    }

    pub(super) fn database(&self) -> VariableConfig<EightCap, ((), ()), Sequential> {
        let cache = page_cache(self.page_cache_bytes);
        VariableConfig {
            merkle_config: MerkleConfig {
                journal_partition: format!("{}-merkle", self.partition),
                // The journal creates its own partition with the suffix "-metadata".
                metadata_partition: format!("{}-merkle-pins", self.partition),
                items_per_blob: self.file_operations,
                write_buffer: self.write_buffer_bytes,
                replay_buffer: REPLAY_BUFFER_BYTES,
                strategy: Sequential,
                page_cache: cache.clone(),
            },
            journal_config: self.log(LOG, self.file_operations, ((), ()), cache),
            grafted_metadata_partition: format!("{}-grafted", self.partition),
            translator: EightCap,
            init_cache: NonZeroUsize::new(self.open_cache_keys),
            init_buffer: REPLAY_BUFFER_BYTES,
            init_concurrency: (),
        }
    }

    /// Prefix of the log's partitions, from which an interrupted copy can continue.
    pub fn log_prefix(&self) -> String {
        format!("{}-{LOG}", self.partition)
    }

    /// The journal of blocks.
    pub(crate) fn blocks(&self) -> LogConfig<()> {
        /// Blocks are read rarely, and each is larger than a page.
        const CACHE_BYTES: usize = 1 << 20;
        self.log("blocks", self.file_blocks, (), page_cache(CACHE_BYTES))
    }

    /// A journal of items of any size.
    fn log<C>(&self, name: &str, items: NonZeroU64, codec_config: C, page_cache: CacheRef) -> LogConfig<C> {
        LogConfig {
            partition: format!("{}-{name}", self.partition),
            items_per_section: items,
            compression: None,
            codec_config,
            page_cache,
            write_buffer: self.write_buffer_bytes,
            replay_buffer: REPLAY_BUFFER_BYTES,
        }
    }
}

fn page_cache(bytes: usize) -> CacheRef {
    let pages = bytes / usize::from(PAGE_BYTES.get());
    CacheRef::new(PAGE_BYTES, NonZeroUsize::new(pages).unwrap_or(NonZeroUsize::MIN))
}
