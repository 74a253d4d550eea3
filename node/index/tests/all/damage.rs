//! Directories that are not what was written: refused with their name and the remedy, never a wrong answer.

use crate::support::{Chain, Plan, keeping};
use almanac_index::{Index, IndexConfig, OpenError, StoreError};
use fjall::{Database, KeyspaceCreateOptions};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};
use tempfile::TempDir;

const REMEDY: &str = "delete that directory and run `almanac index rebuild`";

fn config() -> IndexConfig {
    keeping(u64::MAX)
}

fn chain() -> Chain {
    let mut chain = Chain::new();
    for n in 1..=150u8 {
        let logs = vec![(n, vec![n, n / 2]), (n / 3, vec![])];
        let writes = (0..8).map(|key| (key, Some(n.wrapping_mul(key + 1) % 200))).collect();
        let transactions = vec![(n, None, logs.clone()), (n / 2, Some(n), logs)];
        chain.grow(&Plan { writes, transactions, bodies: 2, ..Plan::default() });
    }
    chain
}

/// The files of an index that holds a chain.
struct Files {
    directory: TempDir,
    files: Vec<(PathBuf, Vec<u8>, u64)>,
}

impl Files {
    fn of(chain: &Chain) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("index");
        let index = chain.open(&path, config()).unwrap();
        chain.feed(&index);
        settle(&path);
        drop(index);
        let mut files = Vec::new();
        collect(&path, Path::new(""), &mut files);
        files.sort();
        Self { directory, files }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("index")
    }

    /// Puts all files back as they were.
    fn restore(&self) {
        let _ = fs::remove_dir_all(self.path());
        for (name, content, length) in &self.files {
            let path = self.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, content).unwrap();
            fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(*length).unwrap();
        }
    }

    fn change(&self, name: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        let path = self.path().join(name);
        let mut content = fs::read(&path).unwrap();
        change(&mut content);
        fs::write(&path, content).unwrap();
    }
}

/// Waits until the engine has put in its tables what it puts there beside us: how many files there are to damage must
/// not depend on how busy the machine is.
fn settle(path: &Path) {
    let (begin, mut before) = (Instant::now(), names(path));
    let mut is_settled = false;
    while !is_settled && begin.elapsed() < Duration::from_secs(20) {
        sleep(Duration::from_millis(500));
        let now = names(path);
        (is_settled, before) = (now == before, now);
    }
}

/// All files below a directory, which may be gone before they are looked at.
fn names(directory: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let below = |path: PathBuf| if path.is_dir() { names(&path) } else { [path].into() };
    entries.flat_map(|entry| below(entry.path())).collect()
}

/// Contents without the zeroes at the end, which journals have by the megabyte.
fn collect(root: &Path, below: &Path, files: &mut Vec<(PathBuf, Vec<u8>, u64)>) {
    for entry in fs::read_dir(root.join(below)).unwrap() {
        let name = below.join(entry.unwrap().file_name());
        if root.join(&name).is_dir() {
            collect(root, &name, files);
            continue;
        }
        let mut content = fs::read(root.join(&name)).unwrap();
        let length = content.len() as u64;
        content.truncate(content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
        files.push((name, content, length));
    }
}

/// Lists of which files belong to the index. A length in one that is out of all bounds makes the engine ask for
/// more memory than there is, and the process ends there: no test for that, see the decision record.
fn is_list(name: &Path) -> bool {
    name.file_name().unwrap().to_str().unwrap().starts_with('v') && name.starts_with("keyspaces")
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Refused,
    ReadError,
    Right,
    /// Whole, but of fewer blocks: the rest is fed again.
    Behind,
}

/// Opens the index and looks at everything. Panics on a wrong answer or an error without the remedy.
fn outcome(chain: &Chain, path: &Path, what: &str) -> Outcome {
    let name = path.display().to_string();
    let index: Index = match chain.open(path, config()) {
        Ok(index) => index,
        Err(error @ OpenError::Damaged { .. }) => {
            let text = error.to_string();
            assert!(text.starts_with(&name) && text.contains(REMEDY), "{what}: {text}");
            return Outcome::Refused;
        }
        Err(other) => panic!("{what}: {other}"),
    };
    let digest = match index.digest() {
        Ok(digest) => digest,
        Err(error @ StoreError { .. }) => {
            let text = error.to_string();
            assert!(text.starts_with(&name) && text.contains(REMEDY), "{what}: {text}");
            return Outcome::ReadError;
        }
    };
    let mut known = chain.clone();
    known.revert_to(index.height());
    assert_eq!(digest, known.rebuilt(config()).digest().unwrap(), "{what}");
    known.check_blocks(&index);
    known.check_states(&index);
    if index.height() == chain.height() { Outcome::Right } else { Outcome::Behind }
}

#[test]
fn changed_bytes_never_make_a_wrong_answer() {
    let chain = chain();
    let files = Files::of(&chain);
    let mut outcomes = std::collections::BTreeMap::<_, u32>::new();
    for (name, content, _) in files.files.iter().filter(|(name, ..)| !is_list(name)) {
        let step = (content.len() / 25).max(1);
        for (n, place) in (0..content.len()).step_by(step).enumerate() {
            let place = (place + n * 37 % step).min(content.len() - 1);
            files.restore();
            files.change(name, |content| {
                for byte in content.iter_mut().skip(place).take(1 + n % 9) {
                    *byte ^= 0x41;
                }
            });
            let what = format!("{} at {place}", name.display());
            *outcomes.entry(outcome(&chain, &files.path(), &what)).or_default() += 1;
        }
    }
    let refused = outcomes.get(&Outcome::Refused).copied().unwrap_or_default();
    let unread = outcomes.get(&Outcome::ReadError).copied().unwrap_or_default();
    assert!(refused > 10 && unread > 10, "{outcomes:?}");
}

#[test]
fn truncated_files_never_make_a_wrong_answer() {
    let chain = chain();
    let files = Files::of(&chain);
    let mut refused = 0;
    for (name, content, _) in files.files.iter().filter(|(_, content, _)| !content.is_empty()) {
        for kept in [0, 1, content.len() / 2, content.len() - 1] {
            files.restore();
            files.change(name, |content| content.truncate(kept));
            let what = format!("{} cut to {kept}", name.display());
            refused += u32::from(outcome(&chain, &files.path(), &what) == Outcome::Refused);
        }
    }
    assert!(refused > 10, "{refused}");
    files.restore();
    assert_eq!(outcome(&chain, &files.path(), "as it was"), Outcome::Right);
}

#[test]
fn missing_files_never_make_a_wrong_answer() {
    let chain = chain();
    let files = Files::of(&chain);
    for (name, ..) in &files.files {
        files.restore();
        fs::remove_file(files.path().join(name)).unwrap();
        outcome(&chain, &files.path(), &format!("without {}", name.display()));
    }
}

/// What a process leaves that was killed while it made the directory, at each step.
#[test]
fn an_unfinished_directory_is_a_new_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let chain = Chain::new();
    let steps = ["", "lock", "keyspaces/", "0.jnl", "version"];
    for done in 1..=steps.len() {
        fs::create_dir(&path).unwrap();
        for step in &steps[1..done] {
            match step.strip_suffix('/') {
                Some(below) => fs::create_dir(path.join(below)).unwrap(),
                None => fs::write(path.join(step), []).unwrap(),
            }
        }
        chain.check_states(&chain.open(&path, config()).unwrap());
        fs::remove_dir_all(&path).unwrap();
    }
    // A directory with anything else in it is left alone.
    fs::create_dir(&path).unwrap();
    for name in ["0.jnl", "letters.txt"] {
        fs::write(path.join(name), b"dear").unwrap();
    }
    assert!(matches!(chain.open(&path, config()), Err(OpenError::Damaged { .. })));
    assert_eq!(fs::read(path.join("letters.txt")).unwrap(), b"dear");
}

#[test]
fn something_else_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let chain = Chain::new();
    // A file where the directory should be.
    let file = directory.path().join("file");
    fs::write(&file, b"something").unwrap();
    let error = chain.open(&file, config()).unwrap_err();
    assert!(matches!(error, OpenError::Io { .. }), "{error}");
    // Rows that are not ours.
    let path = directory.path().join("theirs");
    write_row(&path, b"theirs", b"something");
    let error = chain.open(&path, config()).unwrap_err();
    assert!(matches!(error, OpenError::Damaged { .. }) && error.to_string().contains(REMEDY), "{error}");
}

#[test]
fn other_formats_are_refused_with_the_command_to_run() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let mut chain = Chain::new();
    chain.grow(&Plan::default());
    chain.feed(&chain.open(&path, config()).unwrap());
    let meta = |name: &[u8]| [&[10], name].concat();
    for format in [0u32, 7, 9, u32::MAX] {
        write_row(&path, &meta(b"format"), &format.to_be_bytes());
        let error = chain.open(&path, config()).unwrap_err();
        let path = path.display().to_string();
        let expected = match format {
            found @ 0..8 => OpenError::FormatTooOld { path, found, known: 8 },
            found => OpenError::FormatTooNew { path, found, known: 8 },
        };
        assert_eq!(error, expected);
        assert!(error.to_string().contains(REMEDY), "{error}");
    }
    write_row(&path, &meta(b"format"), &8u32.to_be_bytes());
    chain.check_blocks(&chain.open(&path, config()).unwrap());
    write_row(&path, &meta(b"tip"), b"nonsense");
    let error = chain.open(&path, config()).unwrap_err();
    assert!(matches!(error, OpenError::Damaged { .. }) && error.to_string().contains(REMEDY), "{error}");
}

fn write_row(path: &Path, key: &[u8], value: &[u8]) {
    let database = Database::builder(path).open().unwrap();
    database.keyspace("index", KeyspaceCreateOptions::default).unwrap().insert(key, value).unwrap();
}
