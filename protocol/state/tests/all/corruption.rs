//! Files that were damaged: an error that names them and says what to do, or a recovery to something true.
//!
//! Never a panic, never a wrong value, and a wrong root only where whole files were exchanged: that is for the
//! header of the last block to tell.

use crate::support::*;
use alloy_primitives::Bytes;
use almanac_primitives::{Block, Header, StateCommitment};
use almanac_state::{
    BlockArchive as _, BlockJournal, OpenError, QmdbConfig, QmdbStore, SealedBatch as _, StateStore as _,
    StateView as _,
};
use commonware_runtime::{
    Runner as _, Supervisor as _,
    tokio::{self, Context},
};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

type Store = QmdbStore<Context>;

/// Blocks of the state and of the archive.
const BLOCKS: u64 = 40;

fn on_disk<T>(directory: &Path, work: impl AsyncFnOnce(Context) -> T) -> T {
    let config = tokio::Config::default().with_storage_directory(directory).with_worker_threads(1);
    tokio::Runner::new(config).start(async |context| work(context).await)
}

/// A chain that nothing happened to.
struct Healthy {
    directory: TempDir,
    /// The same at half its height.
    older: TempDir,
    /// Commitment and values after each block, and after one more.
    states: Vec<(StateCommitment, Vec<Option<Bytes>>)>,
}

impl Healthy {
    fn new(is_pruned: bool) -> Self {
        let (directory, older) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut states = Vec::new();
        for height in [BLOCKS / 2, BLOCKS] {
            if height == BLOCKS {
                copy(directory.path(), older.path());
            }
            on_disk(directory.path(), async |context| {
                let store = open(&context, "a").await.unwrap();
                if states.is_empty() {
                    states.push((store.tip().commitment(), read::<Store>(&store.tip(), 40).await));
                }
                let archive = BlockJournal::open(context.child("blocks"), &config("a")).await.unwrap();
                for number in store.height() + 1..=height {
                    let batch = advance(&store, number).await;
                    states.push((batch.commitment(), read::<Store>(&batch, 40).await));
                    archive.append(&block(number), &[], None).await.unwrap();
                    if is_pruned && number % 15 == 0 {
                        while store.prune(&batch.commitment()).await.unwrap() {}
                    }
                }
                if height == BLOCKS {
                    states.push((
                        seal(&store, &store.tip(), &writes(BLOCKS + 1)).await.commitment(),
                        Vec::new(),
                    ));
                }
            });
        }
        Self { directory, older, states }
    }

    /// The files by the folder they are in.
    fn files(&self) -> BTreeMap<String, Vec<PathBuf>> {
        let mut folders: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for file in files(self.directory.path()) {
            let name = file.strip_prefix(self.directory.path()).unwrap().to_owned();
            if let Some(folder) = name.parent().and_then(Path::to_str).filter(|folder| !folder.is_empty()) {
                folders.entry(folder.to_owned()).or_default().push(name.clone());
            }
        }
        folders
    }

    /// A copy to damage.
    fn copy(&self) -> TempDir {
        let target = tempfile::tempdir().unwrap();
        copy(self.directory.path(), target.path());
        target
    }
}

fn block(number: u64) -> Block {
    let header = Header { number, gas_limit: almanac_primitives::Gas(number * 7), ..Header::default() };
    Block { header, transactions: Vec::new() }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let target = to.join(file.strip_prefix(from).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(file, target).unwrap();
    }
}

// ---- What may come of it ----

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// All is there.
    Whole,
    /// The last block is gone, which the archive still has.
    Shorter,
    /// An error says which files are damaged and what to do.
    Refused,
    /// A root that the header of the last block does not have.
    OtherRoot,
}

/// Every error names the files, and says what to do.
fn assert_helpful(error: &str, prefix: &str) {
    assert!(error.contains(prefix) && error.contains("restore a backup"), "{error}");
}

/// Opens the state, reads all of it, and goes on to the block after the last.
fn state_outcome(directory: &Path, healthy: &Healthy, cause: &str) -> Outcome {
    on_disk(directory, async |context| {
        let store = match open(&context, "a").await {
            Ok(store) => store,
            Err(error) => {
                assert!(matches!(error, OpenError::Damaged { .. }), "{cause}: {error}");
                assert_helpful(&error.to_string(), "a-");
                return Outcome::Refused;
            }
        };
        let height = store.height();
        let (commitment, values) = &healthy.states[height as usize];
        if store.tip().commitment() != *commitment {
            return Outcome::OtherRoot;
        }
        match store.tip().get_many(&keys(40)).await {
            Ok(found) => assert_eq!(found, *values, "{cause}"),
            Err(error) => {
                assert_helpful(&error.reason, "a-log_");
                return Outcome::Refused;
            }
        }
        for next in height + 1..=BLOCKS + 1 {
            let commitment = advance(&store, next).await.commitment();
            assert_eq!(commitment, healthy.states[next as usize].0, "{cause}: block {next}");
        }
        match height {
            BLOCKS => Outcome::Whole,
            _ => Outcome::Shorter,
        }
    })
}

/// Opens the archive and reads all of it. No block may be missing in silence.
fn archive_outcome(directory: &Path, cause: &str) -> Outcome {
    on_disk(directory, async |context| {
        let archive = match BlockJournal::open(context.child("blocks"), &config("a")).await {
            Ok(archive) => archive,
            Err(error) => {
                assert_helpful(&error.to_string(), "a-blocks");
                return Outcome::Refused;
            }
        };
        assert_eq!(archive.height().await, Ok(BLOCKS), "{cause}");
        let mut outcome = Outcome::Whole;
        for number in 1..=BLOCKS {
            match archive.get(number).await {
                Ok(found) => assert_eq!(found.map(|archived| archived.block), Some(block(number)), "{cause}"),
                Err(error) => {
                    assert_helpful(&error.to_string(), "a-blocks");
                    outcome = Outcome::Refused;
                }
            }
        }
        outcome
    })
}

// ---- Damage ----

/// Damages the bytes of a file; `None` removes it.
type Damage = (&'static str, fn(Vec<u8>) -> Option<Vec<u8>>);

const DAMAGES: [Damage; 9] = [
    ("first byte flipped", |bytes| Some(flipped(bytes, |_| 0))),
    ("byte 10 flipped", |bytes| Some(flipped(bytes, |_| 10))),
    // The container's header takes the first 4,096 bytes.
    ("first byte of the content flipped", |bytes| Some(flipped(bytes, |length| (length - 1).min(4_096)))),
    ("byte in the content flipped", |bytes| Some(flipped(bytes, |length| (length - 1).min(4_096 + 70)))),
    ("last byte flipped", |bytes| Some(flipped(bytes, |length| length - 1))),
    ("cut by a byte", |bytes| Some(bytes[..bytes.len() - 1].to_vec())),
    ("cut in half", |bytes| Some(bytes[..bytes.len() / 2].to_vec())),
    ("garbage appended", |bytes| Some([bytes, vec![0x77; 100]].concat())),
    ("removed", |_| None),
];

fn flipped(mut bytes: Vec<u8>, position: fn(usize) -> usize) -> Vec<u8> {
    let position = position(bytes.len());
    bytes[position] ^= 0x55;
    bytes
}

/// Damages the first, a middle and the last file of each folder in every way, and counts what came of it.
fn damage_each_kind(is_pruned: bool) -> BTreeMap<(String, Outcome), usize> {
    let healthy = Healthy::new(is_pruned);
    let mut outcomes = BTreeMap::new();
    for (folder, files) in healthy.files() {
        let mut some = vec![&files[0], &files[files.len() / 2], &files[files.len() - 1]];
        some.dedup();
        for file in some {
            for (name, damage) in DAMAGES {
                let cause = format!("{}: {name}", file.display());
                let copy = healthy.copy();
                let path = copy.path().join(file);
                match damage(fs::read(&path).unwrap()) {
                    Some(damaged) => fs::write(&path, damaged).unwrap(),
                    None => fs::remove_file(&path).unwrap(),
                }
                let outcome = if folder.starts_with("a-blocks") {
                    archive_outcome(copy.path(), &cause)
                } else {
                    state_outcome(copy.path(), &healthy, &cause)
                };
                assert_ne!(outcome, Outcome::OtherRoot, "{cause}");
                *outcomes.entry((folder.clone(), outcome)).or_default() += 1;
            }
        }
    }
    outcomes
}

#[test]
fn damage_to_any_kind_of_file_is_an_error_or_does_no_harm() {
    let outcomes = damage_each_kind(false);
    println!("{outcomes:#?}");
    let kinds = [
        "a-blocks_data",
        "a-blocks_offsets-blobs",
        "a-blocks_offsets-metadata",
        "a-grafted",
        "a-log_data",
        "a-log_offsets-blobs",
        "a-log_offsets-metadata",
        "a-merkle-blobs",
        "a-merkle-metadata",
        "a-merkle-pins",
    ];
    for kind in kinds {
        assert!(outcomes.contains_key(&(kind.to_owned(), Outcome::Refused)), "nothing in {kind} was noticed");
    }
}

#[test]
fn damage_to_a_pruned_state_is_an_error_or_does_no_harm() {
    let outcomes = damage_each_kind(true);
    println!("{outcomes:#?}");
}

/// Whole folders that are gone, or come from a backup of another day.
#[test]
fn folders_that_do_not_fit_together_are_an_error_or_do_no_harm() {
    for is_pruned in [false, true] {
        let healthy = Healthy::new(is_pruned);
        let mut outcomes: BTreeMap<(&str, Outcome), usize> = BTreeMap::new();
        for folder in healthy.files().into_keys() {
            for kind in ["gone", "older"] {
                let cause = format!("{folder} is {kind}");
                let copy = healthy.copy();
                fs::remove_dir_all(copy.path().join(&folder)).unwrap();
                if kind == "older" {
                    self::copy(&healthy.older.path().join(&folder), &copy.path().join(&folder));
                }
                let outcome = match folder.starts_with("a-blocks") {
                    // An archive without its data is one that has lost everything: the state knows better.
                    true if folder == "a-blocks_data" && kind == "gone" => archive_is_behind(copy.path()),
                    true => archive_outcome(copy.path(), &cause),
                    false => state_outcome(copy.path(), &healthy, &cause),
                };
                assert_ne!(outcome, Outcome::OtherRoot, "{cause}");
                *outcomes.entry((kind, outcome)).or_default() += 1;
            }
        }
        println!("pruned: {is_pruned}: {outcomes:#?}");
    }
}

fn archive_is_behind(directory: &Path) -> Outcome {
    on_disk(directory, async |context| {
        match BlockJournal::open(context.child("blocks"), &config("a")).await {
            Ok(archive) => assert!(archive.height().await.unwrap() < BLOCKS),
            Err(error) => assert_helpful(&error.to_string(), "a-blocks"),
        }
        Outcome::Refused
    })
}

/// Files that are whole and in the wrong place pass every checksum. Whoever opens the store compares its root
/// with the header of the last block, and that is enough: no panic, and no right root over wrong values.
#[test]
fn files_that_were_exchanged_are_told_by_the_root() {
    let healthy = Healthy::new(false);
    let mut outcomes: BTreeMap<Outcome, usize> = BTreeMap::new();
    for (folder, files) in healthy.files() {
        if folder.starts_with("a-blocks") {
            continue;
        }
        for pair in files.windows(2) {
            let copy = healthy.copy();
            let [left, right] = [&pair[0], &pair[1]].map(|file| copy.path().join(file));
            let bytes = (fs::read(&left).unwrap(), fs::read(&right).unwrap());
            fs::write(&left, bytes.1).unwrap();
            fs::write(&right, bytes.0).unwrap();
            let cause = format!("{} and the next are exchanged", pair[0].display());
            *outcomes.entry(state_outcome(copy.path(), &healthy, &cause)).or_default() += 1;
        }
    }
    println!("{outcomes:?}");
    assert!(outcomes[&Outcome::OtherRoot] > 0 && outcomes[&Outcome::Refused] > 0, "{outcomes:?}");
}

// ---- Remedies ----

#[test]
fn the_state_is_made_again_once_its_files_are_removed() {
    let healthy = Healthy::new(true);
    let copy = healthy.copy();
    for folder in healthy.files().into_keys() {
        if folder.starts_with("a-log_") || folder.starts_with("a-merkle-") || folder == "a-grafted" {
            fs::remove_dir_all(copy.path().join(folder)).unwrap();
        }
    }
    on_disk(copy.path(), async |context| {
        let store = open(&context, "a").await.unwrap();
        assert_eq!((store.height(), store.tip().commitment()), (0, healthy.states[0].0));
    });
    assert_eq!(archive_outcome(copy.path(), "the state was removed"), Outcome::Whole);
    assert_eq!(state_outcome(copy.path(), &healthy, "the state was removed"), Outcome::Shorter);
}

/// The disk goes bad while the store is open. Values fill pages of their own, and none of them stays in memory.
#[test]
fn damage_under_an_open_store_is_an_error_that_names_the_files() {
    let directory = tempfile::tempdir().unwrap();
    on_disk(directory.path(), async |context| {
        let store = open(&context, "a").await.unwrap();
        let archive = BlockJournal::open(context.child("blocks"), &config("a")).await.unwrap();
        let large = (0..40).map(|number| (number, Some(Bytes::from(vec![7; 5_000])))).collect();
        let batch = seal(&store, &store.tip(), &large).await;
        store.commit(&batch).await.unwrap();
        for number in 1..=BLOCKS {
            archive.append(&block(number), &[], None).await.unwrap();
        }
    });
    on_disk(directory.path(), async |context| {
        let uncached = QmdbConfig { page_cache_bytes: 0, ..config("a") };
        let store = QmdbStore::open(context.child("state"), &uncached, &genesis(30, "a")).await.unwrap();
        let archive = BlockJournal::open(context.child("blocks"), &uncached).await.unwrap();
        for file in files(directory.path()) {
            let folder = file.parent().unwrap().file_name().unwrap().to_str().unwrap();
            if folder == "a-log_data" || folder == "a-blocks_data" {
                let length = fs::metadata(&file).unwrap().len().try_into().unwrap();
                fs::write(&file, vec![0x55; length]).unwrap();
            }
        }
        let error = store.tip().get_many(&keys(40)).await.unwrap_err();
        assert_helpful(&error.reason, "a-log_");
        let mut errors = 0;
        for number in 1..=BLOCKS {
            match archive.get(number).await {
                Ok(found) => assert_eq!(found.map(|archived| archived.block), Some(block(number))),
                Err(error) => {
                    assert_helpful(&error.to_string(), "a-blocks_data");
                    errors += 1;
                }
            }
        }
        assert!(errors > 0, "{errors} of {BLOCKS}");
    });
}
