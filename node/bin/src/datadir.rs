//! The data directory of a chain.
//!
//! ```text
//! DIR/lock           held while a node uses the directory
//! DIR/genesis.json   the genesis
//! DIR/origin         values of another chain that a fork has read
//! DIR/clock.json     how a developer set the time; without it, the chain continues at the machine's time
//! DIR/chain/         blocks, state and votes
//! DIR/chain/voter    the key whose votes are there
//! DIR/index/         the index; can be rebuilt from the blocks
//! DIR/floor          the block whose state was copied from peers, if the chain does not begin at its genesis
//! DIR/copying        exists while a state is being copied: the rest of the directory is incomplete
//! DIR/fresh/         a copy of a newer state, with its own `chain`, `index` and `floor`, which replaces them when complete
//! DIR/removed/       a copy that is being removed
//! DIR/replacing      exists while `fresh` replaces the old chain: the copy is valid, the rest of the old chain is not
//! DIR/control.sock   the socket of a running node for other commands
//! ```

use crate::{
    private_file::{self, sync_directory},
    regular_file::{self, GENESIS_BYTES_MAX, NOTE_BYTES_MAX},
};
use almanac_bft::sync::Floor;
use almanac_primitives::Genesis;
use anyhow::{Context as _, bail, ensure};
use commonware_runtime::tokio::{Config, Runner};
use std::{
    fs::{self, File, TryLockError},
    io::ErrorKind,
    path::{Path, PathBuf},
};

/// What a newer copy replaces, in this order.
const REPLACED: [&str; 3] = ["chain", "index", "floor"];

/// A directory that is ours until this is dropped.
#[derive(Debug)]
pub(crate) struct Datadir {
    path: PathBuf,
    _lock: File,
}

impl Datadir {
    /// Takes the directory, making it if there is none.
    pub(crate) fn take(path: &Path) -> anyhow::Result<Self> {
        Self::try_take(path)?.with_context(|| {
            format!("{} is in use by another process: stop it, or choose another --datadir", path.display())
        })
    }

    /// The same; `None` where another process uses the directory.
    pub(crate) fn try_take(path: &Path) -> anyhow::Result<Option<Self>> {
        check_ours(path)?;
        private_file::create_directories(path)?;
        let lock = private_file::open_lock(path, "lock")?;
        match lock.try_lock() {
            Ok(()) => {
                let datadir = Self { path: path.to_owned(), _lock: lock };
                datadir.finish_replacing()?;
                Ok(Some(datadir))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("cannot lock {}", path.join("lock").display()))
            }
        }
    }

    /// A runtime whose storage is where blocks and state are. One worker serves the disk; what runs on it runs on
    /// the calling thread.
    pub(crate) fn runner(&self) -> Runner {
        Runner::new(Config::new().with_storage_directory(self.chain()).with_worker_threads(1))
    }

    /// Whether a chain was ever started here.
    pub(crate) fn has_chain(&self) -> bool {
        self.chain().is_dir()
    }

    /// Where blocks, state and votes are.
    pub(crate) fn chain(&self) -> PathBuf {
        self.path.join("chain")
    }

    /// Where the index is.
    pub(crate) fn index(&self) -> PathBuf {
        self.path.join("index")
    }

    /// The directory itself.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The block whose state was copied, if one was.
    pub(crate) fn floor(&self) -> anyhow::Result<Option<Floor>> {
        let path = self.path.join("floor");
        if !path.exists() {
            return Ok(None);
        }
        let bytes = regular_file::read(&path, NOTE_BYTES_MAX)?;
        Ok(Some(Floor::decode(&bytes).with_context(|| format!("{} is damaged", path.display()))?))
    }

    /// Refuses what needs every block where the first ones are not here.
    pub(crate) fn check_whole(&self) -> anyhow::Result<()> {
        if let Some(floor) = self.floor()? {
            bail!(
                "{} lacks the blocks up to {}, because it started from a copy of the state: use a node that has all blocks",
                self.path.display(),
                floor.header.number
            );
        }
        Ok(())
    }

    /// Whether there is a chain to go on with: not where there is none, nor where copying one did not end.
    pub(crate) fn is_usable(&self) -> anyhow::Result<bool> {
        Ok(self.has_chain() && !self.is_half_copied()?)
    }

    /// Whether a copy of a state was begun and not ended.
    pub(crate) fn is_half_copied(&self) -> anyhow::Result<bool> {
        Ok(self.path.join("copying").exists() && self.floor()?.is_none())
    }

    /// Removes what an earlier attempt to copy a state may have left, and notes that another one begins. What is in
    /// `chain` under a name that begins with `kept` stays: the next attempt goes on with it.
    pub(crate) fn begin_copy(&self, kept: Option<&str>) -> anyhow::Result<()> {
        private_file::replace(&self.path.join("copying"), b"")?;
        // That of an earlier chain would make this one whole too early.
        remove_all(&self.path.join("floor"))?;
        sync_directory(&self.path).with_context(|| format!("cannot write {}", self.path.display()))?;
        remove_all(&self.index())?;
        let Some(kept) = kept.filter(|_| self.has_chain()) else { return remove_all(&self.chain()) };
        let chain = self.chain();
        let entries = fs::read_dir(&chain).with_context(|| format!("cannot read {}", chain.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot read {}", chain.display()))?;
            if !entry.file_name().to_string_lossy().starts_with(kept) {
                remove_all(&entry.path())?;
            }
        }
        Ok(())
    }

    /// Notes that the copied state is whole.
    pub(crate) fn finish_copy(&self, floor: &Floor) -> anyhow::Result<()> {
        private_file::replace(&self.path.join("floor"), &floor.encode())?;
        let copying = self.path.join("copying");
        fs::remove_file(&copying).with_context(|| format!("cannot remove {}", copying.display()))
    }

    /// The place for a copy that is to replace this chain. What an earlier attempt left there is kept.
    pub(crate) fn fresh(&self) -> anyhow::Result<Self> {
        Self::take(&self.fresh_path())
    }

    /// Removes a copy that is not to replace this chain.
    pub(crate) fn remove_fresh(&self) -> anyhow::Result<()> {
        remove_all(&self.removed_path())?;
        self.set_fresh_aside()?;
        remove_all(&self.removed_path())
    }

    /// Moves a copy to where it counts for nothing: its removal takes long, and half of it could pass for the whole.
    fn set_fresh_aside(&self) -> anyhow::Result<()> {
        let fresh = self.fresh_path();
        if !fresh.exists() {
            return Ok(());
        }
        fs::rename(&fresh, self.removed_path())
            .and_then(|()| sync_directory(&self.path))
            .with_context(|| format!("cannot move {}", fresh.display()))
    }

    /// Replaces the chain by the copy in `fresh`, which must be whole. A crash leaves the one or the other: from the
    /// mark on, the next [`Self::take`] finishes this.
    pub(crate) fn replace_by_fresh(&self) -> anyhow::Result<()> {
        private_file::replace(&self.replacing_path(), b"")?;
        self.finish_replacing()
    }

    fn finish_replacing(&self) -> anyhow::Result<()> {
        let mark = self.replacing_path();
        if !mark.exists() {
            return Ok(());
        }
        for name in REPLACED {
            self.replace(name)?;
        }
        self.remove_fresh()?;
        fs::remove_file(&mark)
            .and_then(|()| sync_directory(&self.path))
            .with_context(|| format!("cannot remove {}", mark.display()))
    }

    /// Replaces one part by that of the copy. What is no longer in the copy is in its place already.
    fn replace(&self, name: &str) -> anyhow::Result<()> {
        let (new, place) = (self.fresh_path().join(name), self.path.join(name));
        if !new.exists() {
            return Ok(());
        }
        remove_all(&place)?;
        fs::rename(&new, &place)
            .and_then(|()| sync_directory(&self.path))
            .with_context(|| format!("cannot move {} to {}", new.display(), place.display()))
    }

    fn fresh_path(&self) -> PathBuf {
        self.path.join("fresh")
    }

    fn removed_path(&self) -> PathBuf {
        self.path.join("removed")
    }

    fn replacing_path(&self) -> PathBuf {
        self.path.join("replacing")
    }

    /// Starts the directory with a genesis.
    pub(crate) fn write_genesis(&self, genesis: &Genesis) -> anyhow::Result<()> {
        write_genesis(&self.path.join("genesis.json"), genesis)
    }

    /// The genesis of the chain in the directory.
    pub(crate) fn kept_genesis(&self) -> anyhow::Result<Genesis> {
        read_genesis(&self.path.join("genesis.json"))
    }

    /// Starts the directory with a genesis, or checks that it was started with the same.
    pub(crate) fn adopt_genesis(&self, genesis: &Genesis) -> anyhow::Result<()> {
        let path = self.path.join("genesis.json");
        if !path.exists() {
            return self.write_genesis(genesis);
        }
        ensure!(
            self.kept_genesis()? == *genesis,
            "{} holds another chain: its genesis.json is not the one that was given",
            self.path.display()
        );
        Ok(())
    }

    /// Whether the directory was started with a genesis.
    pub(crate) fn has_genesis(&self) -> bool {
        self.path.join("genesis.json").exists()
    }

    /// The genesis of the developer's chain in the directory.
    pub(crate) fn developers_genesis(&self, chain_id: Option<u64>) -> anyhow::Result<Genesis> {
        let genesis = self.kept_genesis()?;
        // A sequencer alone would take it where the other validators never follow.
        ensure!(
            genesis.validators.is_empty(),
            "{} holds a chain of {} validators: run it with almanac node",
            self.path.display(),
            genesis.validators.len()
        );
        if let Some(given) = chain_id {
            ensure!(
                given == genesis.chain_id,
                "{} holds a chain with id {}, not {given}: leave out --chain-id, or choose another --datadir",
                self.path.display(),
                genesis.chain_id
            );
        }
        Ok(genesis)
    }
}

/// What a directory of ours has at least one of, whatever it was interrupted at.
const OURS: [&str; 9] =
    ["lock", "origin", "genesis.json", "chain", "index", "floor", "copying", "fresh", "replacing"];

/// Refuses a directory that somebody uses for something else: a chain would spread its files among theirs.
fn check_ours(path: &Path) -> anyhow::Result<()> {
    let Ok(mut entries) = fs::read_dir(path) else { return Ok(()) };
    let is_ours = OURS.iter().any(|name| path.join(name).exists());
    ensure!(
        is_ours || entries.next().is_none(),
        "{} is not empty and holds no chain: choose an empty or a new directory",
        path.display()
    );
    Ok(())
}

/// Removes a file or a directory, if it is there.
fn remove_all(place: &Path) -> anyhow::Result<()> {
    let removed = if place.is_dir() { fs::remove_dir_all(place) } else { fs::remove_file(place) };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", place.display()))
        }
        _ => Ok(()),
    }
}

/// Reads a genesis file.
pub(crate) fn read_genesis(path: &Path) -> anyhow::Result<Genesis> {
    let json = regular_file::read_text(path, GENESIS_BYTES_MAX)?;
    Genesis::from_json(&json).with_context(|| format!("{} is not a genesis file", path.display()))
}

/// Writes a genesis file.
pub(crate) fn write_genesis(path: &Path, genesis: &Genesis) -> anyhow::Result<()> {
    private_file::replace(path, (genesis.to_json() + "\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use almanac_primitives::Header;

    fn floor(number: u64) -> Floor {
        Floor { header: Header { number, ..Header::default() }, certificate: b"signed".into() }
    }

    /// Whatever a copy was stopped at, the next one begins with nothing, and a whole one is never removed.
    #[test]
    fn a_copy_counts_when_it_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let datadir = Datadir::take(&directory.path().join("data")).unwrap();
        assert!(!datadir.is_usable().unwrap(), "nothing yet");
        for _ in 0..2 {
            datadir.begin_copy(None).unwrap();
            assert!(
                !datadir.has_chain() && !datadir.index().exists(),
                "the rest of the last attempt is gone"
            );
            fs::create_dir(datadir.chain()).unwrap();
            fs::create_dir(datadir.index()).unwrap();
            assert!(!datadir.is_usable().unwrap() && datadir.is_half_copied().unwrap(), "cut short");
        }
        assert_eq!(datadir.floor().unwrap(), None);
        datadir.check_whole().unwrap();
        datadir.finish_copy(&floor(7)).unwrap();
        assert!(datadir.is_usable().unwrap());
        assert_eq!(datadir.floor().unwrap(), Some(floor(7)));
        assert!(datadir.check_whole().unwrap_err().to_string().contains("lacks the blocks up to 7"));
        // A crash between the two steps of the end.
        fs::write(datadir.path().join("copying"), "").unwrap();
        assert!(datadir.is_usable().unwrap());
    }

    /// Only what the next attempt can go on with outlives one that was cut short.
    #[test]
    fn what_a_copy_goes_on_with_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let datadir = Datadir::take(directory.path()).unwrap();
        datadir.begin_copy(Some("state-log")).unwrap();
        assert!(!datadir.has_chain(), "there is nothing to keep");
        for name in ["state-log_data", "state-log_offsets-blobs", "state-merkle", "state-blocks_data"] {
            fs::create_dir_all(datadir.chain().join(name)).unwrap();
            fs::write(datadir.chain().join(name).join("00"), "bytes").unwrap();
        }
        fs::write(datadir.chain().join("voter"), "key").unwrap();
        fs::create_dir(datadir.index()).unwrap();
        datadir.begin_copy(Some("state-log")).unwrap();
        let left = fs::read_dir(datadir.chain()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut left: Vec<_> = left.collect();
        left.sort();
        assert_eq!(left, ["state-log_data", "state-log_offsets-blobs"]);
        assert_eq!(fs::read(datadir.chain().join("state-log_data/00")).unwrap(), b"bytes");
        assert!(!datadir.index().exists() && datadir.is_half_copied().unwrap());
        datadir.begin_copy(None).unwrap();
        assert!(!datadir.has_chain());
    }

    #[test]
    fn a_chain_that_was_not_copied_is_usable_and_a_damaged_note_is_not_believed() {
        let directory = tempfile::tempdir().unwrap();
        let datadir = Datadir::take(directory.path()).unwrap();
        fs::create_dir(datadir.chain()).unwrap();
        assert!(datadir.is_usable().unwrap());
        let whole = floor(7).encode();
        for length in 0..whole.len() {
            fs::write(datadir.path().join("floor"), &whole[..length]).unwrap();
            assert!(datadir.floor().is_err(), "{length} bytes");
        }
    }

    /// Writes what a chain or a copy consists of.
    fn fill(place: &Path, number: u64) {
        for name in ["chain", "index"] {
            fs::create_dir_all(place.join(name)).unwrap();
            fs::write(place.join(name).join("file"), number.to_string()).unwrap();
        }
        fs::write(place.join("floor"), floor(number).encode()).unwrap();
    }

    /// Which chain is there, if all of its parts are of one.
    fn filled(place: &Path) -> Option<u64> {
        let read = |name: &str| fs::read_to_string(place.join(name).join("file")).ok()?.parse::<u64>().ok();
        let floor = Floor::decode(&fs::read(place.join("floor")).ok()?).ok()?.header.number;
        (read("chain") == Some(floor) && read("index") == Some(floor)).then_some(floor)
    }

    #[test]
    fn a_copy_replaces_the_chain_when_it_is_told_to() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        fill(path, 7);
        fs::write(path.join("chain/voter"), "key").unwrap();
        let datadir = Datadir::take(path).unwrap();
        fill(&path.join("fresh"), 9);
        drop(datadir);
        let datadir = Datadir::take(path).unwrap();
        assert_eq!(filled(path), Some(7), "a copy alone replaces nothing");
        datadir.replace_by_fresh().unwrap();
        assert_eq!(filled(path), Some(9));
        assert!(!path.join("chain/voter").exists(), "the votes were of the old chain");
        assert!(!path.join("fresh").exists() && !path.join("replacing").exists());
        fill(&path.join("fresh"), 11);
        datadir.remove_fresh().unwrap();
        datadir.remove_fresh().unwrap();
        assert!(filled(path) == Some(9) && !path.join("fresh").exists());
    }

    /// Stopped after any step, the next start finds the one chain or the other, whole.
    #[test]
    fn a_crash_leaves_the_old_chain_or_the_new_one() {
        type Step = fn(&Path);
        let steps: [Step; 10] = [
            |path| fs::write(path.join("replacing"), "").unwrap(),
            |path| fs::remove_file(path.join("chain/file")).unwrap(),
            |path| fs::remove_dir_all(path.join("chain")).unwrap(),
            |path| fs::rename(path.join("fresh/chain"), path.join("chain")).unwrap(),
            |path| fs::remove_dir_all(path.join("index")).unwrap(),
            |path| fs::rename(path.join("fresh/index"), path.join("index")).unwrap(),
            |path| fs::remove_file(path.join("floor")).unwrap(),
            |path| fs::rename(path.join("fresh/floor"), path.join("floor")).unwrap(),
            |path| fs::remove_dir_all(path.join("fresh")).unwrap(),
            |path| fs::remove_file(path.join("replacing")).unwrap(),
        ];
        for count in 0..=steps.len() {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path();
            fill(path, 7);
            fill(&path.join("fresh"), 9);
            for step in &steps[..count] {
                step(path);
            }
            let datadir = Datadir::take(path).unwrap();
            let expected = if count == 0 { 7 } else { 9 };
            assert_eq!(filled(path), Some(expected), "after {count} steps");
            assert!(datadir.is_usable().unwrap(), "after {count} steps");
            assert!(count == 0 || !path.join("fresh").exists(), "after {count} steps");
        }
    }

    /// Removing a large copy takes long. What a crash leaves of it must not count as a whole one.
    #[test]
    fn what_is_left_of_a_removed_copy_replaces_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let datadir = Datadir::take(path).unwrap();
        fill(&path.join("fresh"), 9);
        datadir.set_fresh_aside().unwrap();
        fs::remove_dir_all(path.join("removed/index")).unwrap();
        assert!(!datadir.fresh().unwrap().is_usable().unwrap());
        fill(&path.join("fresh"), 10);
        datadir.remove_fresh().unwrap();
        assert!(!path.join("fresh").exists() && !path.join("removed").exists());
    }

    /// The floor of a chain that somebody removed by hand does not make the next copy whole before it is.
    #[test]
    fn the_floor_of_an_earlier_copy_does_not_count() {
        let directory = tempfile::tempdir().unwrap();
        let datadir = Datadir::take(directory.path()).unwrap();
        fill(directory.path(), 7);
        fs::remove_dir_all(datadir.chain()).unwrap();
        assert!(!datadir.is_usable().unwrap());
        datadir.begin_copy(None).unwrap();
        fs::create_dir(datadir.chain()).unwrap();
        assert!(!datadir.is_usable().unwrap(), "cut short");
    }
}
