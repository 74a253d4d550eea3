//! Opens a store: at its last durable block, at an earlier one, or at genesis if it is empty.

use super::{
    Database, QmdbConfig, QmdbError,
    stamp::{self, Stamp},
    value::{Value, key},
};
use alloy_primitives::Bytes;
use almanac_primitives::{StateKey, codec::DecodeError, params::STATE_VALUE_BYTES_MAX};
use commonware_runtime::Spawner;
use commonware_storage::{
    Context, journal, merkle,
    mmr::Location,
    qmdb::{any::unordered::variable::Operation, floor::Proportional},
};
use commonware_utils::NZU64;
use std::collections::BTreeMap;

/// Genesis entries per batch, which bounds the memory that a large genesis takes. It determines the log of
/// operations, and with it the root of every larger genesis: another number is another chain.
const GENESIS_BATCH_ENTRIES: usize = 50_000;

/// Why a store cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The files cannot be read or are inconsistent.
    #[error("the state cannot be opened: {reason}")]
    Damaged {
        /// The database's error, its files, and what to do.
        reason: String,
    },
    /// The genesis cannot be written.
    #[error("the state of the genesis cannot be written: {reason}")]
    Unwritten {
        /// The database's error, its files, and what to do.
        reason: String,
    },
    /// The files belong to another chain.
    #[error(
        "the state in {partition:?} belongs to another chain: it began with another genesis; give the right \
         genesis file, or choose another directory"
    )]
    OtherChain {
        /// Where it is.
        partition: String,
    },
    /// Another version of this program wrote the files.
    #[error("cannot decode the state in {partition:?}: {error}; use the version that wrote it")]
    OtherFormat {
        /// Where it is.
        partition: String,
        /// What does not decode.
        error: DecodeError,
    },
    /// No block ends at this operation.
    #[error(
        "the state in {partition:?} has no block that ends at operation {asked}; the newest ends at {newest}; \
         nothing was changed"
    )]
    NoSuchCommit {
        /// Where it is.
        partition: String,
        /// The requested end.
        asked: u64,
        /// The end of the newest block.
        newest: u64,
    },
    /// The operations that the block needs were pruned.
    #[error(
        "the state in {partition:?} was pruned beyond the block that ends at operation {asked}: it can only be \
         opened at a later one; nothing was changed"
    )]
    Pruned {
        /// Where it is.
        partition: String,
        /// The requested end.
        asked: u64,
    },
    /// A genesis value is too large.
    #[error("the genesis has {given} bytes under {key:?}, at most {STATE_VALUE_BYTES_MAX} are allowed")]
    GenesisValueTooLarge {
        /// Its key.
        key: StateKey,
        /// Its size.
        given: usize,
    },
}

/// Opens the database. Returns it with the stamp of its last commit.
pub(super) async fn open<E: Context + Spawner>(
    context: E,
    config: &QmdbConfig,
    genesis: &BTreeMap<StateKey, Bytes>,
    ops_end: Option<u64>,
) -> Result<(Database<E>, Stamp), OpenError> {
    check_sizes(genesis)?;
    let opening = Opening { context, config, genesis, batch_entries: GENESIS_BATCH_ENTRIES };
    let (database, stamp) = opening.newest().await?;
    match ops_end {
        Some(asked) if asked != *database.bounds().end => opening.rewound(database, asked).await,
        _ => Ok((database, stamp)),
    }
}

fn check_sizes(genesis: &BTreeMap<StateKey, Bytes>) -> Result<(), OpenError> {
    match genesis.iter().find(|(_, value)| value.len() > STATE_VALUE_BYTES_MAX) {
        Some((key, value)) => Err(OpenError::GenesisValueTooLarge { key: *key, given: value.len() }),
        None => Ok(()),
    }
}

struct Opening<'a, E> {
    context: E,
    config: &'a QmdbConfig,
    genesis: &'a BTreeMap<StateKey, Bytes>,
    batch_entries: usize,
}

impl<E: Context + Spawner> Opening<'_, E> {
    /// The last durable block; the genesis if there was none.
    async fn newest(&self) -> Result<(Database<E>, Stamp), OpenError> {
        let expected = Stamp { height: 0, genesis: stamp::digest(self.genesis) };
        let database = self.init("newest", None).await?;
        let Some(stamp) = self.stamp(&database).await? else {
            let written = self.write_genesis(database, expected).await?;
            return Ok((written, expected));
        };
        if stamp.genesis != expected.genesis {
            return Err(OpenError::OtherChain { partition: self.config.partition.clone() });
        }
        Ok((database, stamp))
    }

    /// Rewinds to the block that ends at operation `asked`. Discards later blocks only after checking that
    /// there is such a block: QMDB itself would take the nearest one below and discard everything above.
    async fn rewound(&self, database: Database<E>, asked: u64) -> Result<(Database<E>, Stamp), OpenError> {
        self.check_commit(&database, asked).await?;
        drop(database);
        let database = self.init("rewound", Some(asked)).await?;
        let stamp = self.stamp(&database).await?;
        match stamp.filter(|_| *database.bounds().end == asked) {
            Some(stamp) => Ok((database, stamp)),
            None => Err(self.no_such_commit(&database, asked)),
        }
    }

    async fn init(&self, label: &'static str, ops_end: Option<u64>) -> Result<Database<E>, OpenError> {
        let bound = ops_end.map(Location::new);
        let opened = Database::init(self.context.child(label), self.config.database(), bound).await;
        opened.map_err(|error| match ops_end {
            Some(asked) if is_pruned(&error) => self.pruned(asked),
            _ => self.damaged(&error),
        })
    }

    /// The stamp of the last commit. `None` until the last batch of the genesis is durable.
    async fn stamp(&self, database: &Database<E>) -> Result<Option<Stamp>, OpenError> {
        let metadata = database.get_metadata().await.map_err(|error| self.damaged(&error))?;
        metadata
            .as_ref()
            .map(Stamp::decode)
            .transpose()
            .map_err(|error| OpenError::OtherFormat { partition: self.config.partition.clone(), error })
    }

    /// Writes the genesis from the beginning: a crash may have left its first batches.
    async fn write_genesis(&self, mut database: Database<E>, stamp: Stamp) -> Result<Database<E>, OpenError> {
        const OPS_BEFORE_GENESIS: u64 = 1;
        if *database.bounds().end > OPS_BEFORE_GENESIS {
            drop(database);
            database = self.init("emptied", Some(OPS_BEFORE_GENESIS)).await?;
        }
        let written = write_batches(database, self.genesis, self.batch_entries, stamp).await;
        written.map_err(|error| OpenError::Unwritten { reason: unwritten(&self.config.partition, &error) })
    }

    /// Rejects an operation at which no block ends.
    async fn check_commit(&self, database: &Database<E>, asked: u64) -> Result<(), OpenError> {
        let bounds = database.bounds();
        if asked == 0 || asked > *bounds.end {
            return Err(self.no_such_commit(database, asked));
        }
        let last = Location::new(asked - 1);
        let found = database.ops_historical_proof(Location::new(asked), last, NZU64!(1)).await;
        let operations = match found {
            Ok((_, operations)) => operations,
            Err(QmdbError::HistoricalFloorPruned(_)) => return Err(self.no_such_commit(database, asked)),
            Err(error) if is_pruned(&error) => return Err(self.pruned(asked)),
            Err(error) => return Err(self.damaged(&error)),
        };
        match operations.first() {
            Some(Operation::CommitFloor(Some(_), _)) => Ok(()),
            _ => Err(self.no_such_commit(database, asked)),
        }
    }

    fn damaged(&self, error: &QmdbError) -> OpenError {
        OpenError::Damaged { reason: damage(&self.config.partition, error) }
    }

    fn pruned(&self, asked: u64) -> OpenError {
        OpenError::Pruned { partition: self.config.partition.clone(), asked }
    }

    fn no_such_commit(&self, database: &Database<E>, asked: u64) -> OpenError {
        let newest = *database.bounds().end;
        OpenError::NoSuchCommit { partition: self.config.partition.clone(), asked, newest }
    }
}

/// Whether an error means that something was pruned, and not that something is broken.
pub(super) fn is_pruned(error: &QmdbError) -> bool {
    matches!(
        error,
        QmdbError::HistoricalFloorPruned(_)
            | QmdbError::OperationPruned(_)
            | QmdbError::Journal(journal::Error::ItemPruned(_))
            | QmdbError::Merkle(merkle::Error::ElementPruned(_))
    )
}

/// Stamps only the last batch, so that an interrupted genesis is not taken for a complete one.
async fn write_batches<E: Context + Spawner>(
    mut database: Database<E>,
    genesis: &BTreeMap<StateKey, Bytes>,
    batch_entries: usize,
    stamp: Stamp,
) -> Result<Database<E>, QmdbError> {
    let mut entries = genesis.iter();
    loop {
        let mut batch = database.new_batch();
        for (name, value) in entries.by_ref().take(batch_entries) {
            batch = batch.write(key(name), Some(Value(value.clone())));
        }
        let is_last = entries.len() == 0;
        let metadata = is_last.then(|| stamp.encode());
        let sealed = batch.merkleize(&database, metadata, &mut Proportional).await?;
        database = database.apply_batch(sealed).await?;
        if is_last {
            return database.sync().await;
        }
    }
}

/// The database's error, its files, and what to do.
pub(super) fn damage(partition: &str, error: &QmdbError) -> String {
    format!("{error} (in {}); {}", files(partition, error), repair(partition))
}

/// The error of a failed read while the node runs, which may be over with the next attempt, and what to do.
pub(super) fn unread(partition: &str, error: &QmdbError) -> String {
    let (files, repair) = (files(partition, error), repair(partition));
    format!("{error} (in {files}); if this happens again, check the disk; if the files are damaged, {repair}")
}

fn repair(partition: &str) -> String {
    format!(
        "restore a backup, or remove {partition}-log_*, {partition}-merkle-* and {partition}-grafted: the state is \
         then made again from the archived blocks"
    )
}

/// The error of a failed write, and what to do. No durable data is lost.
pub(super) fn unwritten(partition: &str, error: &QmdbError) -> String {
    let files = files(partition, error);
    format!("{error} (in {files}); make room if the disk is full, and start again: what was durable stays")
}

/// The error of a failed copy from peers, and what to do.
pub(super) fn uncopied(partition: &str, error: &QmdbError) -> String {
    let files = files(partition, error);
    format!("{error} (in {files}); make room if the disk is full, remove the unfinished copy and start again")
}

fn files(partition: &str, error: &QmdbError) -> String {
    match error {
        QmdbError::Journal(_) => format!("{partition}-log_*"),
        QmdbError::Merkle(_) => format!("{partition}-merkle-*"),
        QmdbError::Metadata(_) => format!("{partition}-grafted"),
        _ => format!("{partition}-*"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::B256;
    use commonware_runtime::{
        Runner as _, Supervisor as _,
        deterministic::{self, FaultConfig, PartialWriteMode, WriteConfig},
    };
    use commonware_utils::{NZUsize, Probability, ScriptedRng, probability};
    use futures::FutureExt as _;
    use std::panic::AssertUnwindSafe;

    const BATCH_ENTRIES: usize = 20;

    /// Opens a genesis of 50 entries. Returns whether an incomplete one had to be removed first.
    async fn open_in_batches(context: &deterministic::Context) -> Result<(B256, bool), OpenError> {
        let (page_cache_bytes, open_cache_keys) = (64 << 10, 100);
        let write_buffer_bytes = NZUsize!(256);
        let config =
            QmdbConfig { page_cache_bytes, open_cache_keys, write_buffer_bytes, ..QmdbConfig::new("a") };
        // Large enough that each batch reaches the disk before the next one is built.
        let value = Bytes::from(vec![7; 5_000]);
        let genesis = (0..50).map(|n| (StateKey::Calendar(n), value.clone())).collect();
        let context = context.child("open");
        let opening = Opening { context, config: &config, genesis: &genesis, batch_entries: BATCH_ENTRIES };
        let found = opening.init("before", None).await?;
        let is_part = opening.stamp(&found).await?.is_none() && *found.bounds().end > 1;
        drop(found);
        let (database, stamp) = opening.newest().await?;
        assert_eq!(stamp.height, 0);
        Ok((B256::from_slice(database.root().as_ref()), is_part))
    }

    /// Storage that draws a number before every write and sync, and crashes at the n-th.
    fn crash_at(draw: usize, retention_rate: Probability) -> deterministic::Config {
        let rarely = probability!(1, 1 << 62);
        let write = WriteConfig { failure_rate: rarely, retention_rate, mode: PartialWriteMode::Prefix };
        deterministic::Config::default()
            .with_rng(ScriptedRng::new(vec![u64::MAX; draw]))
            .with_storage_fault_config(FaultConfig::default().write(write).sync(rarely))
    }

    /// Silences the intended panics: printing a backtrace for each takes longer than the test.
    fn say_nothing_of_crashes() {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !info.payload_as_str().is_some_and(|text| text.starts_with("scripted RNG")) {
                hook(info);
            }
        }));
    }

    #[test]
    fn a_genesis_that_was_cut_short_is_written_again() {
        say_nothing_of_crashes();
        let whole = deterministic::Runner::default().start(async |context| open_in_batches(&context).await);
        let (expected, _) = whole.unwrap();
        let (mut crashes, mut parts) = (0, 0);
        for retention_rate in [probability!(0.0), probability!(1.0)] {
            for draw in 0.. {
                let runner = deterministic::Runner::new(crash_at(draw, retention_rate));
                let (has_crashed, checkpoint) = runner.start_and_recover(async |context| {
                    let opened = AssertUnwindSafe(open_in_batches(&context)).catch_unwind().await;
                    *context.storage_fault_config().write() = FaultConfig::default();
                    opened.is_err()
                });
                let again = deterministic::Runner::from(checkpoint);
                let (root, is_part) = again.start(async |context| open_in_batches(&context).await).unwrap();
                assert_eq!(root, expected, "draw {draw}");
                parts += usize::from(is_part);
                if !has_crashed {
                    break;
                }
                crashes += 1;
            }
        }
        assert!(
            crashes > 40 && parts > 2,
            "{crashes} crashes, {parts} of them with a part of the genesis on disk"
        );
    }

    /// A disk that was full while the genesis was written passed for damage, with the advice to restore a backup.
    #[test]
    fn a_genesis_that_cannot_be_written_is_no_damage() {
        deterministic::Runner::default().start(async |context| {
            let config = QmdbConfig::new("a");
            let genesis = BTreeMap::from([(StateKey::Calendar(7), Bytes::from(vec![7]))]);
            let stamp = Stamp { height: 0, genesis: stamp::digest(&genesis) };
            let faults = context.storage_fault_config();
            let opening =
                Opening { context, config: &config, genesis: &genesis, batch_entries: BATCH_ENTRIES };
            let empty = opening.init("empty", None).await.unwrap();
            *faults.write() = FaultConfig::default().sync(probability!(1.0));
            let error = opening.write_genesis(empty, stamp).await.err().unwrap();
            assert!(matches!(error, OpenError::Unwritten { .. }), "{error}");
            assert!(error.to_string().contains("make room if the disk is full"), "{error}");
        });
    }
}
