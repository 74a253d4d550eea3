//! The rows, on disk or in memory, with snapshot reads and atomic writes.
//!
//! All tables share one keyspace, with the table's number as the first byte of a key. The engine guarantees
//! that a batch survives a crash completely or not at all within one keyspace, but not across several.

use crate::{
    config::IndexConfig,
    error::{Fault, OpenError, StoreError},
    tree::Tree,
};
use arc_swap::ArcSwap;
use fjall::{
    Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable as _, Snapshot,
    config::{PartitioningPolicy, PinningPolicy},
};
use std::{
    fs, io,
    ops::RangeInclusive,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
};

/// Name of the keyspace that holds everything.
const SPACE: &str = "index";

/// Tables of the index that stay open. The engine's default, 900, and the other files of a node together exceed what
/// most systems let a process open, once the index is large enough.
const OPEN_TABLES_MAX: usize = 64;

/// Largest journal, which is replayed after a crash. The engine's minimum is 64 MiB.
const JOURNAL_BYTES_MAX: u64 = 128 << 20;

/// The tables; see [`crate::rows`] for their encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Table {
    State = 0,
    History = 1,
    Changes = 2,
    Headers = 3,
    Bodies = 4,
    Receipts = 5,
    Numbers = 6,
    Locations = 7,
    Involved = 8,
    Postings = 9,
    Meta = 10,
    Schedules = 11,
    ScheduleBodies = 12,
    ScheduleLists = 13,
    ScheduleRuns = 14,
    ScheduleEvents = 15,
}

impl Table {
    /// A key in the shared keyspace.
    fn key(self, key: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(1 + key.len());
        out.push(self as u8);
        out.extend_from_slice(key);
        out
    }
}

/// A key without its table, and the value.
pub(crate) type Row = (Vec<u8>, Vec<u8>);
type Rows<'a> = Box<dyn DoubleEndedIterator<Item = Result<Row, Fault>> + 'a>;

/// All rows.
pub(crate) struct Store {
    backend: Backend,
    /// Its name in errors.
    name: String,
}

enum Backend {
    Disk {
        database: Database,
        space: Keyspace,
        /// The rows after the last batch. Made between batches: the engine's background work can make half a
        /// batch visible to a snapshot that is taken while the batch is being written (seen in 3.1.13). Swapped
        /// without a lock: a reader that the system puts aside must not make a block wait.
        latest: ArcSwap<Snapshot>,
        buffer_bytes: u64,
    },
    /// Swapped the same way.
    Memory(ArcSwap<Tree>),
}

impl Store {
    /// Opens or creates a directory.
    pub(crate) fn open(path: &Path, config: &IndexConfig) -> Result<Self, OpenError> {
        let name = path.display().to_string();
        clear_unfinished(path)
            .map_err(|error| OpenError::Io { path: name.clone(), reason: error.to_string() })?;
        // The engine returns an error for nearly all damage. Treat a panic as damage too.
        match catch_unwind(AssertUnwindSafe(|| open_engine(path, config))) {
            Ok(Ok((database, space))) => {
                let latest = ArcSwap::from_pointee(database.snapshot());
                let buffer_bytes = config.buffer_bytes;
                Ok(Self { backend: Backend::Disk { database, space, latest, buffer_bytes }, name })
            }
            Ok(Err(error)) => Err(explain(error, name)),
            Err(_) => {
                Err(OpenError::Damaged { path: name, reason: "its parts contradict each other".to_owned() })
            }
        }
    }

    /// An empty store in memory.
    pub(crate) fn in_memory() -> Self {
        Self { backend: Backend::Memory(ArcSwap::default()), name: "the index in memory".to_owned() }
    }

    /// Its name in errors.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// A snapshot of the rows. Use it for one query: rows that a view can still see cannot be cleaned up.
    pub(crate) fn view(&self) -> View<'_> {
        match &self.backend {
            Backend::Disk { space, latest, .. } => View::Disk(latest.load_full(), space),
            Backend::Memory(rows) => View::Memory(rows.load_full()),
        }
    }

    /// Runs one query on a snapshot.
    pub(crate) fn ask<T>(
        &self,
        question: impl FnOnce(&View<'_>) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        question(&self.view()).map_err(|fault| self.error(&fault))
    }

    /// Writes a batch atomically. It survives the end of the process, but perhaps not a power cut.
    ///
    /// Only one thread may call this at a time.
    pub(crate) fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        match &self.backend {
            Backend::Disk { database, space, latest, buffer_bytes } => {
                let mut writes = database.batch().durability(Some(PersistMode::Buffer));
                for (key, value) in batch.into_sorted() {
                    match value {
                        Some(value) => writes.insert(space, key, value),
                        None => writes.remove(space, key),
                    }
                }
                writes.commit().map_err(|error| self.error(&error.into()))?;
                // The engine keeps the buffer size that an index was created with, whatever the setting is now.
                if database.write_buffer_size() > 2 * buffer_bytes {
                    space.rotate_memtable_and_wait().map_err(|error| self.error(&error.into()))?;
                }
                latest.store(Arc::new(database.snapshot()));
                Ok(())
            }
            Backend::Memory(rows) => {
                let mut next = Tree::clone(&rows.load());
                for (key, value) in batch.into_sorted() {
                    match value {
                        Some(value) => next.insert(key, value),
                        None => next.remove(&key),
                    }
                }
                rows.store(Arc::new(next));
                Ok(())
            }
        }
    }

    /// On return, everything written is durable across a power cut.
    pub(crate) fn sync(&self) -> Result<(), StoreError> {
        match &self.backend {
            Backend::Disk { database, .. } => {
                database.persist(PersistMode::SyncAll).map_err(|error| self.error(&error.into()))
            }
            Backend::Memory(_) => Ok(()),
        }
    }

    pub(crate) fn error(&self, fault: &Fault) -> StoreError {
        StoreError { path: self.name.clone(), reason: fault.to_string() }
    }
}

/// Removes what a crash during creation left before there was any row: the engine would report it as damage.
/// Removes nothing if there is anything else.
fn clear_unfinished(path: &Path) -> io::Result<()> {
    const FIRST: [&str; 4] = ["lock", "0.jnl", "version", "keyspaces"];
    if !path.try_exists()? {
        return Ok(());
    }
    let names = fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
    let is_begun = names.iter().all(|name| FIRST.iter().any(|first| name == first));
    let spaces = path.join("keyspaces");
    let has_rows = spaces.try_exists()? && fs::read_dir(&spaces)?.next().is_some();
    if is_begun && !has_rows {
        fs::remove_dir_all(path)?;
    }
    Ok(())
}

fn open_engine(path: &Path, config: &IndexConfig) -> Result<(Database, Keyspace), fjall::Error> {
    let database = Database::builder(path)
        .cache_size(config.cache_bytes)
        .max_journaling_size(JOURNAL_BYTES_MAX)
        .max_cached_files(Some(OPEN_TABLES_MAX))
        // One background thread: it must not take the cores that blocks need.
        .worker_threads(1)
        .open()?;
    // Below the newest level, indexes and filters of tables are in parts that the cache holds or drops. Whole ones stay in
    // memory with their table: they grow with the chain, and every compaction makes larger ones.
    let newest_only = || PinningPolicy::new([true, false]);
    let below_newest = || PartitioningPolicy::new([false, true]);
    let options = || {
        KeyspaceCreateOptions::default()
            .max_memtable_size(config.buffer_bytes)
            .index_block_pinning_policy(newest_only())
            .filter_block_pinning_policy(newest_only())
            .index_block_partitioning_policy(below_newest())
            .filter_block_partitioning_policy(below_newest())
    };
    let space = database.keyspace(SPACE, options)?;
    Ok((database, space))
}

fn explain(error: fjall::Error, path: String) -> OpenError {
    match error {
        fjall::Error::Locked => OpenError::InUse { path },
        fjall::Error::Io(error) if !is_damage(&error) => OpenError::Io { path, reason: error.to_string() },
        error => OpenError::Damaged { path, reason: error.to_string() },
    }
}

/// Files that are missing, incomplete or invalid.
fn is_damage(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::AlreadyExists
            | io::ErrorKind::UnexpectedEof
            | io::ErrorKind::InvalidData
            | io::ErrorKind::Other
    )
}

/// Changes to write together, each row at most once.
#[derive(Default)]
pub(crate) struct Batch(Vec<(Vec<u8>, Option<Vec<u8>>)>);

impl Batch {
    pub(crate) fn insert(&mut self, table: Table, key: &[u8], value: impl Into<Vec<u8>>) {
        self.0.push((table.key(key), Some(value.into())));
    }

    pub(crate) fn remove(&mut self, table: Table, key: &[u8]) {
        self.0.push((table.key(key), None));
    }

    /// Sorted by key, so that neighbouring rows are written together.
    fn into_sorted(mut self) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        self.0.sort();
        // The engine does not define which of two writes of a key wins.
        assert!(self.0.windows(2).all(|pair| pair[0].0 < pair[1].0), "a batch changes each row once");
        self.0
    }
}

/// A snapshot of the rows.
pub(crate) enum View<'a> {
    Disk(Arc<Snapshot>, &'a Keyspace),
    Memory(Arc<Tree>),
}

impl View<'_> {
    /// Reads and decodes one row.
    pub(crate) fn get<T>(
        &self,
        table: Table,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        let key = table.key(key);
        match self {
            Self::Disk(snapshot, space) => snapshot.get(space, key)?.map(|value| read(&value)).transpose(),
            Self::Memory(rows) => rows.get(&key).map(read).transpose(),
        }
    }

    /// The rows of a table between two keys, from either end.
    pub(crate) fn range(&self, table: Table, keys: RangeInclusive<&[u8]>) -> Rows<'_> {
        let rows = self.rows(table.key(keys.start()), table.key(keys.end()));
        Box::new(rows.map(|row| row.map(|(key, value)| (key[1..].to_vec(), value))))
    }

    /// Every row of every table, in order, each key prefixed with its table.
    pub(crate) fn all(&self) -> Rows<'_> {
        self.rows(vec![], vec![u8::MAX])
    }

    fn rows(&self, first: Vec<u8>, last: Vec<u8>) -> Rows<'_> {
        if first > last {
            return Box::new(std::iter::empty());
        }
        match self {
            Self::Disk(snapshot, space) => Box::new(snapshot.range(space, first..=last).map(|entry| {
                let (key, value) = entry.into_inner()?;
                Ok((key.to_vec(), value.to_vec()))
            })),
            Self::Memory(rows) => {
                Box::new(rows.range(first, last).map(|entry| Ok((entry.key.to_vec(), entry.value.to_vec()))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::mpsc, thread, time::Duration};

    /// The buffer is as large as the settings of now say, not as those that the index was created with.
    #[test]
    fn a_smaller_buffer_holds_for_an_index_that_exists() {
        const BUFFER: u64 = 1 << 20;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("index");
        drop(Store::open(&path, &IndexConfig::default()).unwrap());
        let store =
            Store::open(&path, &IndexConfig { buffer_bytes: BUFFER, ..IndexConfig::default() }).unwrap();
        let Backend::Disk { database, .. } = &store.backend else { panic!("it is on disk") };
        let mut largest = 0;
        for n in 0u32..80 {
            let mut batch = Batch::default();
            batch.insert(Table::Meta, &n.to_be_bytes(), vec![7; 100_000]);
            store.commit(batch).unwrap();
            largest = largest.max(database.write_buffer_size());
        }
        assert!(largest <= 2 * BUFFER + 200_000, "{largest} bytes are buffered");
        let row = store.view().get(Table::Meta, &79u32.to_be_bytes(), |row| Ok(row.len()));
        assert_eq!(row.unwrap(), Some(100_000));
    }

    /// A reader may hold its rows for any time: no writer waits for it, and it sees no later writes.
    #[test]
    fn a_view_holds_no_writer_up() {
        let directory = tempfile::tempdir().unwrap();
        let stores = [
            Store::in_memory(),
            Store::open(&directory.path().join("index"), &IndexConfig::default()).unwrap(),
        ];
        for store in stores {
            let batch = |value: u8| {
                let mut batch = Batch::default();
                batch.insert(Table::Meta, b"a", [value]);
                batch
            };
            let value = |view: &View<'_>| view.get(Table::Meta, b"a", |row| Ok(row[0])).unwrap();
            store.commit(batch(1)).unwrap();
            let store = Arc::new(store);
            let view = store.view();
            let mut range = view.range(Table::Meta, &[]..=&[u8::MAX]);
            let (done, written) = mpsc::channel();
            let writer = store.clone();
            let batch = batch(2);
            thread::spawn(move || done.send(writer.commit(batch)));
            let waited = written.recv_timeout(Duration::from_secs(20));
            assert!(matches!(waited, Ok(Ok(()))), "{}: a reader holds the writer up", store.name());
            assert_eq!(range.next().unwrap().unwrap(), (b"a".to_vec(), vec![1]));
            assert_eq!((value(&view), value(&store.view())), (Some(1), Some(2)));
        }
    }
}
