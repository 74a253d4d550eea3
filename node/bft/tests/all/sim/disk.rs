//! The disk of one validator: what was written and not synced may be lost or torn by a crash, and it may fail.

use crate::sim::{
    blob::DiskBlob,
    draw::Draw,
    marks::{Mark, Marks},
};
use commonware_runtime::{
    Blob as _, BlobVersion, Buf as _, Clock as _, Error, IoBufsMut, ReadOptions, Storage as _, WriteOptions,
    deterministic::{Blob, Context},
};
use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    mem::take,
    ops::Range,
    sync::{Arc, Mutex, Once, Weak},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::sync::watch;

/// What becomes of bytes that were written and not synced when the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsynced {
    Lost,
    Kept,
    /// The first bytes of each write.
    Prefix,
    /// Pieces of each write here and there.
    Subset,
}

/// How a disk fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The next write or sync, and no other.
    Once,
    /// All writes and syncs until the restart.
    Dead,
    /// It does not, but the process ends in the middle of the next write or sync.
    Halt,
    /// The next read gives another bit than was written.
    Misread,
    /// All reads do until the restart.
    Misreads,
}

impl Failure {
    fn is_of_reads(self) -> bool {
        matches!(self, Self::Misread | Self::Misreads)
    }
}

/// A time at which writes and syncs take up to so many milliseconds.
pub type Slowness = (Range<Duration>, u64);

/// How fast a disk is.
#[derive(Default)]
pub struct Pace {
    pub slow: Vec<Slowness>,
    /// Most milliseconds from the call for a sync until what was written before the call is durable.
    pub sync_ms_max: u64,
    pub seed: u64,
    /// Operations of each file whose time was drawn: it does not depend on when others are written.
    pub drawn: BTreeMap<FileKey, u64>,
}

impl Pace {
    /// The time of a file's next operation.
    fn delay(&mut self, key: &FileKey, from: u64, most: u64) -> Duration {
        let drawn = self.drawn.entry(key.clone()).or_default();
        *drawn += 1;
        let file = key.0.bytes().chain(key.1.iter().copied());
        let seed = file.fold(self.seed, |seed, byte| Draw(seed ^ u64::from(byte)).next());
        Draw(seed ^ *drawn).millis(from, most + 1)
    }
}

/// Bytes that are kept or lost together where a write is torn anywhere.
const PIECE_BYTES: usize = 64;

/// Partition and name of a file.
pub type FileKey = (String, Vec<u8>);

/// A change to a file that is not known to be durable.
struct Change {
    number: u64,
    what: What,
}

pub enum What {
    Write {
        offset: u64,
        bytes: Vec<u8>,
        /// Synced by itself, and listed because of the changes before it.
        is_durable: bool,
    },
    Resize(u64),
}

struct OpenFile {
    /// The number of its opening.
    opening: u64,
    blob: Weak<Blob>,
    length: u64,
    version: BlobVersion,
}

/// All files as they were at a moment.
#[derive(Default)]
struct Copied(BTreeMap<FileKey, (BlobVersion, Vec<u8>)>);

#[derive(Default)]
struct State {
    changes: BTreeMap<FileKey, Vec<Change>>,
    /// The files that are open and not removed since.
    opened: BTreeMap<FileKey, OpenFile>,
    next_number: u64,
    /// What fails, after how many more operations.
    failure: Option<(Failure, u64)>,
    misreads: Option<(Failure, u64)>,
    dead_since: Option<SystemTime>,
    has_failed: bool,
    clock: Weak<Context>,
}

pub struct Disk {
    state: Mutex<State>,
    stopped: watch::Sender<bool>,
    pace: Mutex<Pace>,
    /// All partitions that were ever used.
    partitions: Mutex<BTreeSet<String>>,
    copied: Mutex<Copied>,
    marks: Marks,
}

impl Disk {
    pub fn new(marks: Marks) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            stopped: watch::Sender::new(false),
            pace: Mutex::default(),
            partitions: Mutex::default(),
            copied: Mutex::default(),
            marks,
        })
    }

    /// Sets how fast it is.
    pub fn set_pace(&self, pace: Pace) {
        *self.pace.lock().unwrap() = pace;
    }

    /// Copies all files, as they look to whoever reads them now.
    pub async fn copy(&self, context: &Context) {
        let mut copied = Copied::default();
        let partitions = self.partitions.lock().unwrap().clone();
        for partition in partitions {
            for name in context.scan(&partition).await.unwrap_or_default() {
                let key = (partition.clone(), name);
                let open = self
                    .state
                    .lock()
                    .unwrap()
                    .opened
                    .get(&key)
                    .and_then(|open| Some((open.blob.upgrade()?, open.length, open.version)));
                let (blob, length, version) = match open {
                    Some(open) => open,
                    None => {
                        let (blob, length, version) =
                            context.open_versioned(&key.0, &key.1, all_versions()).await.unwrap();
                        (Arc::new(blob), length, version)
                    }
                };
                let length = usize::try_from(length).unwrap();
                let read = blob.read_at(0, length, ReadOptions::default()).await.unwrap();
                copied.0.insert(key, (version, read.coalesce().chunk().to_vec()));
            }
        }
        *self.copied.lock().unwrap() = copied;
    }

    /// Replaces all files by those of the copy.
    pub async fn put_copy_back(&self, context: &Context) {
        let partitions = take(&mut *self.partitions.lock().unwrap());
        for partition in partitions {
            // One whose files were all removed is not there.
            let _ = context.remove(&partition, None).await;
        }
        let copied = take(&mut *self.copied.lock().unwrap());
        assert!(!copied.0.is_empty(), "a copy was made");
        for ((partition, name), (version, bytes)) in copied.0 {
            let (blob, _, _) = context.open_versioned(&partition, &name, version..=version).await.unwrap();
            blob.write_at(0, bytes, WriteOptions::default()).await.unwrap();
            blob.sync().await.unwrap();
            self.partitions.lock().unwrap().insert(partition);
        }
        self.marks.add(Mark::Restored);
    }

    /// Leaves on disk what the last life of the validator left there, and repairs the disk.
    pub async fn restart(&self, context: &Arc<Context>, unsynced: Unsynced, draw: &mut Draw) {
        let fresh = State { clock: Arc::downgrade(context), ..State::default() };
        let changes = std::mem::replace(&mut *self.state.lock().unwrap(), fresh).changes;
        self.stopped.send_replace(false);
        for ((partition, name), changes) in changes {
            let (blob, _, _) = context.open_versioned(&partition, &name, all_versions()).await.unwrap();
            for change in changes {
                self.leave(&blob, change.what, unsynced, draw).await;
            }
            blob.sync().await.unwrap();
        }
    }

    async fn leave(&self, blob: &Blob, what: What, unsynced: Unsynced, draw: &mut Draw) {
        let (offset, bytes, kept) = match what {
            What::Resize(length) => {
                if unsynced == Unsynced::Kept || (unsynced != Unsynced::Lost && draw.chance(500)) {
                    blob.resize(length).await.unwrap();
                }
                return;
            }
            What::Write { offset, bytes, is_durable: true } => (offset, bytes, Unsynced::Kept),
            What::Write { offset, bytes, .. } => (offset, bytes, unsynced),
        };
        let pieces: Vec<(usize, usize)> = match kept {
            Unsynced::Lost => Vec::new(),
            Unsynced::Kept => vec![(0, bytes.len())],
            Unsynced::Prefix => vec![(0, draw.index(bytes.len() + 1))],
            Unsynced::Subset => (0..bytes.len())
                .step_by(PIECE_BYTES)
                .filter(|_| draw.chance(500))
                .map(|start| (start, bytes.len().min(start + PIECE_BYTES)))
                .collect(),
        };
        let mut left = 0;
        for (start, end) in pieces.into_iter().filter(|(start, end)| start < end) {
            left += end - start;
            let piece = bytes[start..end].to_vec();
            blob.write_at(offset + start as u64, piece, WriteOptions::default()).await.unwrap();
        }
        match left {
            0 => self.marks.add(Mark::LostWrite),
            _ if left < bytes.len() => self.marks.add(Mark::TornWrite),
            _ => {}
        }
    }

    /// Makes the disk fail after some more operations.
    pub fn fail(&self, failure: Failure, after: u64) {
        say_nothing_of_failures();
        let mut state = self.state.lock().unwrap();
        let place = if failure.is_of_reads() { &mut state.misreads } else { &mut state.failure };
        *place = Some((failure, after));
    }

    /// What a read gives in fact.
    pub fn misread(&self, read: IoBufsMut) -> IoBufsMut {
        let mut state = self.state.lock().unwrap();
        let Some((failure, after)) = state.misreads else { return read };
        if let Some(left) = after.checked_sub(1) {
            state.misreads = Some((failure, left));
            return read;
        }
        let mut bytes = read.coalesce();
        let Some(last) = bytes.len().checked_sub(1) else { return bytes.into() };
        if failure == Failure::Misread {
            state.misreads = None;
        }
        // One that is in the middle of most records.
        let position = Draw(state.next_number ^ last as u64).index(last + 1);
        bytes.as_mut()[position] ^= 0x10;
        state.has_failed = true;
        self.marks.add(Mark::Misread);
        PANICS_ARE_EXPECTED.set(true);
        bytes.into()
    }

    /// What the runtime has seen so far, as a digest; `None` before the validator's start.
    pub fn seen_by_runtime(&self) -> Option<String> {
        self.state.lock().unwrap().clock.upgrade().map(|context| context.auditor().state())
    }

    /// When all writes began to fail.
    pub fn dead_since(&self) -> Option<SystemTime> {
        self.state.lock().unwrap().dead_since
    }

    /// Whether anyone was told of a failure.
    pub fn has_failed(&self) -> bool {
        self.state.lock().unwrap().has_failed
    }

    /// The validator does not go on with a disk that has failed.
    pub fn stop(&self) {
        if !self.stopped.send_replace(true) {
            self.marks.add(Mark::Stopped);
        }
    }

    /// Waits until the validator has to stop.
    pub async fn stopped(&self) {
        let mut stopped = self.stopped.subscribe();
        let _ = stopped.wait_for(|stopped| *stopped).await;
    }

    /// Goes before every write and sync: fails, or does not return, where the disk's time has come.
    pub async fn check(&self, key: &FileKey) -> Result<(), Error> {
        self.take_time(key).await;
        let Some(failure) = self.next_failure() else { return Ok(()) };
        if failure == Failure::Halt {
            self.marks.add(Mark::Halt);
            self.stop();
            return std::future::pending().await;
        }
        self.marks.add(Mark::FailedWrite);
        Err(std::io::Error::other(FAILED).into())
    }

    async fn take_time(&self, key: &FileKey) {
        let Some(clock) = self.state.lock().unwrap().clock.upgrade() else { return };
        let now = clock.current().duration_since(UNIX_EPOCH).unwrap();
        let delay = {
            let mut pace = self.pace.lock().unwrap();
            let Some((_, most)) = pace.slow.iter().find(|(during, _)| during.contains(&now)) else { return };
            let most = *most;
            pace.delay(key, 1, most)
        };
        self.marks.add(Mark::SlowDisk);
        clock.sleep(delay).await;
    }

    /// Goes between the call for a sync and its end: a crash meanwhile loses what it was to keep.
    pub async fn take_sync_time(&self, key: &FileKey) {
        let Some(clock) = self.state.lock().unwrap().clock.upgrade() else { return };
        let delay = {
            let mut pace = self.pace.lock().unwrap();
            let most = pace.sync_ms_max;
            if most == 0 {
                return;
            }
            pace.delay(key, 0, most)
        };
        self.marks.add(Mark::SlowSync);
        clock.sleep(delay).await;
    }

    fn next_failure(&self) -> Option<Failure> {
        let mut state = self.state.lock().unwrap();
        let (failure, after) = state.failure?;
        if let Some(left) = after.checked_sub(1) {
            state.failure = Some((failure, left));
            return None;
        }
        match failure {
            Failure::Once => state.failure = None,
            Failure::Dead if state.dead_since.is_none() => {
                state.dead_since = state.clock.upgrade().map(|clock| clock.current());
            }
            Failure::Dead | Failure::Halt | Failure::Misread | Failure::Misreads => {}
        }
        state.has_failed = true;
        Some(failure)
    }

    /// Notes a change to a file, unless it was removed since its opening.
    pub fn add(&self, key: &FileKey, opening: u64, what: What) -> u64 {
        let mut state = self.state.lock().unwrap();
        let number = state.next_number;
        state.next_number += 1;
        if let Some(open) = state.opened.get_mut(key).filter(|open| open.opening == opening) {
            if let What::Resize(length) = what {
                open.length = length;
            }
            state.changes.entry(key.clone()).or_default().push(Change { number, what });
        }
        number
    }

    /// A write is done, up to `end`. Regression: a copy of the files read those that were listed, and not there yet.
    pub fn reach(&self, key: &FileKey, opening: u64, end: u64) {
        let mut state = self.state.lock().unwrap();
        if let Some(open) = state.opened.get_mut(key).filter(|open| open.opening == opening) {
            open.length = open.length.max(end);
        }
    }

    /// A write was synced by itself.
    pub fn keep(&self, key: &FileKey, number: u64) {
        let mut state = self.state.lock().unwrap();
        let changes = state.changes.get_mut(key).into_iter().flatten();
        for change in changes.filter(|change| change.number == number) {
            if let What::Write { is_durable, .. } = &mut change.what {
                *is_durable = true;
            }
        }
    }

    /// The number of the next change: all before it are covered by a sync that begins now.
    pub fn cut(&self) -> u64 {
        self.state.lock().unwrap().next_number
    }

    pub fn settle(&self, key: &FileKey, cut: u64) {
        let mut state = self.state.lock().unwrap();
        if let Some(changes) = state.changes.get_mut(key) {
            changes.retain(|change| change.number >= cut);
            if changes.is_empty() {
                state.changes.remove(key);
            }
        }
    }

    pub async fn open(
        self: &Arc<Self>,
        context: &Context,
        partition: &str,
        name: &[u8],
        versions: std::ops::RangeInclusive<BlobVersion>,
    ) -> Result<(DiskBlob, u64, BlobVersion), Error> {
        let (inner, size, version) = context.open_versioned(partition, name, versions).await?;
        let inner = Arc::new(inner);
        let key = (partition.to_owned(), name.to_vec());
        let opening = self.cut();
        self.partitions.lock().unwrap().insert(partition.to_owned());
        let mut state = self.state.lock().unwrap();
        // What a handle before this one left unsynced, this one does not see, and no crash brings back.
        state.changes.remove(&key);
        let open = OpenFile { opening, blob: Arc::downgrade(&inner), length: size, version };
        state.opened.insert(key.clone(), open);
        drop(state);
        Ok((DiskBlob { inner, key, opening, disk: self.clone() }, size, version))
    }

    pub async fn remove(&self, context: &Context, partition: &str, name: Option<&[u8]>) -> Result<(), Error> {
        self.check(&(partition.to_owned(), name.unwrap_or_default().to_vec())).await?;
        context.remove(partition, name).await?;
        let is_removed = |key: &FileKey| key.0 == partition && name.is_none_or(|name| name == key.1);
        let mut state = self.state.lock().unwrap();
        state.changes.retain(|key, _| !is_removed(key));
        state.opened.retain(|key, _| !is_removed(key));
        Ok(())
    }
}

fn all_versions() -> std::ops::RangeInclusive<BlobVersion> {
    BlobVersion::new(0)..=BlobVersion::new(u16::MAX)
}

thread_local! {
    /// Whether a validator of this thread's simulation has read what was not written.
    static PANICS_ARE_EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// A new simulation begins on this thread.
pub fn expect_no_panics() {
    PANICS_ARE_EXPECTED.set(false);
}

/// What a failed operation says, and by what panics that follow from it are known.
const FAILED: &str = "the simulated disk has failed";

/// A validator that panics because of its disk does what it should, and fills the output of tests.
fn say_nothing_of_failures() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let is_failure = info.payload_as_str().is_some_and(|text| text.contains(FAILED));
            if !is_failure && !PANICS_ARE_EXPECTED.get() {
                hook(info);
            }
        }));
    });
}
