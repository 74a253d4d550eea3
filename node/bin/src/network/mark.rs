//! The file beside a key that records what the key signed lately.
//!
//! ```text
//! KEY.views   slot 0   synced: at least every few seconds while votes are sent, and before a view beyond the lease
//!             slot 1   not synced: after every vote, by turns
//!             slot 2
//! ```
//!
//! Each slot is a full record: the last votes that were sent, the view up to which the key may sign without syncing again,
//! and the time of the last sync, by a clock that restarts with the machine. The newest undamaged slot counts.
//!
//! Slots 1 and 2 survive the end of the process and cost no time. When the machine loses power they may be lost; then
//! slot 0 is at most a few seconds old. They show that files of consensus are older than the key's last vote, or were
//! cut: one file would have to be damaged in the very moment in which the other is lost.

use crate::{private_file, regular_file};
use alloy_primitives::{B256, keccak256};
use almanac_bft::{OwnVote, VoteBook, VoteKind, sync::Floor};
use almanac_primitives::{
    Header,
    codec::{DecodeError, Reader, Writer},
};
use std::{
    collections::VecDeque,
    fs::{self, File},
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::Mutex,
    time::{Duration, Instant},
};

/// How long after the last sync the mark is believed without asking others. As long as a process takes to come back;
/// whoever restores all files from a copy that is younger than this is not noticed.
pub(super) const LEASE: Duration = Duration::from_secs(10);

/// Time between two syncs while votes are sent.
const RENEW_EVERY: Duration = Duration::from_secs(3);

/// Views beyond that of a vote that the key may sign in before the next sync.
const LEASE_VIEWS: u64 = 1_024;

/// Votes that are kept: those of some twenty views, of which consensus keeps more.
const VOTES_KEPT: usize = 64;

/// The version of a slot.
const VERSION: u8 = 1;

/// Room for a slot. A page, so that writing one leaves the others as they are.
const SLOT_BYTES: usize = 4_096;

/// What a slot says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    number: u64,
    key: B256,
    renewed: Option<Moment>,
    /// The last view in which the key may sign.
    leased: u64,
    /// The last votes that were sent, the oldest first.
    votes: VecDeque<OwnVote>,
}

/// A moment of this machine since it was switched on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Moment {
    /// Which time it was switched on.
    boot: String,
    milliseconds: u64,
}

impl Moment {
    /// `None` where the system does not tell.
    pub(super) fn now() -> Option<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned();
        let uptime = fs::read_to_string("/proc/uptime").ok()?;
        let (seconds, hundredths) = uptime.split_whitespace().next()?.split_once('.')?;
        let milliseconds = seconds.parse::<u64>().ok()? * 1_000 + hundredths.parse::<u64>().ok()? * 10;
        Some(Self { boot, milliseconds })
    }

    /// Whether it is so short a time after another that nothing was restored in between.
    fn is_just_after(&self, other: &Self) -> bool {
        let passed = self.milliseconds.checked_sub(other.milliseconds);
        let lease = u64::try_from(LEASE.as_millis()).expect("seconds");
        self.boot == other.boot && passed.is_some_and(|passed| passed <= lease)
    }
}

impl Mark {
    /// The mark of a key that has signed nothing in views that count. It is believed at once if it is `renewed`.
    pub(super) fn new(key: B256, renewed: Option<Moment>) -> Self {
        Self { key, renewed, ..Self::default() }
    }

    /// The same for a key that may have signed anywhere, and is believed nevertheless.
    pub(super) fn by_hand(key: B256, renewed: Option<Moment>) -> Self {
        Self { leased: u64::MAX, ..Self::new(key, renewed) }
    }

    /// Reads the newest whole slot. `None` where there is none for this key.
    pub(super) fn read(path: &Path, key: B256) -> anyhow::Result<Option<Self>> {
        let bytes = match regular_file::read(path, 3 * SLOT_BYTES as u64) {
            Ok(bytes) => bytes,
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let slots = bytes.chunks(SLOT_BYTES).filter_map(|slot| Self::decode(slot).ok().flatten());
        Ok(slots.filter(|mark| mark.key == key).max_by_key(|mark| mark.number))
    }

    /// Writes a new file with this mark alone, durably.
    pub(super) fn create(&self, path: &Path) -> anyhow::Result<()> {
        let slot = self.encode();
        private_file::replace(path, &[&slot[..], &[0; 2 * SLOT_BYTES]].concat())
    }

    /// Whether it was synced just before `now`.
    pub(super) fn is_current(&self, now: Option<&Moment>) -> bool {
        let (Some(now), Some(renewed)) = (now, &self.renewed) else { return false };
        now.is_just_after(renewed)
    }

    /// The last view in which the key may have signed.
    pub(super) fn leased(&self) -> u64 {
        self.leased
    }

    /// The last votes that were sent.
    pub(super) fn votes(&self) -> impl Iterator<Item = &OwnVote> {
        self.votes.iter()
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Writer::versioned(VERSION, SLOT_BYTES);
        out.u64(self.number);
        out.b256(self.key);
        let renewed = self.renewed.clone().unwrap_or_default();
        out.bytes(renewed.boot.as_bytes());
        out.u64(renewed.milliseconds);
        out.u64(self.leased);
        out.count(self.votes.len());
        for OwnVote { view, kind } in &self.votes {
            out.u64(*view);
            out.u8(match kind {
                VoteKind::Notarize => 0,
                VoteKind::Nullify => 1,
                VoteKind::Finalize => 2,
            });
        }
        let mut slot = out.finish();
        slot.extend_from_slice(keccak256(&slot).as_slice());
        assert!(slot.len() <= SLOT_BYTES, "a slot has room for all votes that are kept");
        slot.resize(SLOT_BYTES, 0);
        slot
    }

    /// `None` where the checksum is wrong.
    fn decode(slot: &[u8]) -> Result<Option<Self>, DecodeError> {
        let mut input = Reader::versioned(slot, "mark", VERSION)?;
        let (number, key) = (input.u64("number")?, input.b256("key")?);
        let boot = String::from_utf8_lossy(&input.bytes("boot", 64)?).into_owned();
        let milliseconds = input.u64("milliseconds")?;
        let renewed = (!boot.is_empty()).then_some(Moment { boot, milliseconds });
        let leased = input.u64("leased")?;
        let mut votes = VecDeque::new();
        for _ in 0..input.count("votes", VOTES_KEPT)? {
            let view = input.u64("view")?;
            let kind = match input.u8("kind")? {
                0 => VoteKind::Notarize,
                1 => VoteKind::Nullify,
                _ => VoteKind::Finalize,
            };
            votes.push_back(OwnVote { view, kind });
        }
        let rest = input.rest();
        let (whole, checksum) = (&slot[..slot.len() - rest.len()], rest.get(..32));
        let is_whole = checksum == Some(keccak256(whole).as_slice());
        Ok(is_whole.then_some(Self { number, key, renewed, leased, votes }))
    }
}

/// Keeps the mark of a key that votes.
pub(super) struct MarkedVotes {
    open: Mutex<Option<Open>>,
    /// What says that the directory has all votes of the key.
    voter: PathBuf,
}

struct Open {
    mark: Mark,
    file: File,
    renewed: Option<Instant>,
}

impl MarkedVotes {
    /// Goes on with a mark, where there is one to go on with.
    pub(super) fn open(path: &Path, mark: Option<Mark>, voter: PathBuf) -> anyhow::Result<Self> {
        let open = |mark| {
            let file = regular_file::open_own(path)?;
            anyhow::Ok(Open { mark, file, renewed: None })
        };
        Ok(Self { open: Mutex::new(mark.map(open).transpose()?), voter })
    }
}

impl Open {
    fn note(&mut self, vote: OwnVote) -> io::Result<()> {
        let is_new = !self.mark.votes.contains(&vote);
        if is_new {
            self.mark.votes.push_back(vote);
            if self.mark.votes.len() > VOTES_KEPT {
                self.mark.votes.pop_front();
            }
        }
        if vote.view > self.mark.leased || self.renewed.is_none_or(|renewed| renewed.elapsed() >= RENEW_EVERY)
        {
            self.mark.leased = self.mark.leased.max(vote.view.saturating_add(LEASE_VIEWS));
            self.mark.renewed = Moment::now();
            self.write(0)?;
            self.file.sync_data()?;
            self.renewed = Some(Instant::now());
        } else if is_new {
            self.write(1 + self.mark.number % 2)?;
        }
        Ok(())
    }

    fn write(&mut self, slot: u64) -> io::Result<()> {
        self.mark.number += 1;
        self.file.write_all_at(&self.mark.encode(), slot * SLOT_BYTES as u64)
    }
}

impl VoteBook for MarkedVotes {
    fn sent(&self, vote: OwnVote) -> io::Result<()> {
        let mut open = self.open.lock().expect("nothing panics while it holds this");
        match open.as_mut() {
            Some(open) => open.note(vote),
            None => Err(io::Error::other("a validator without a mark must not vote")),
        }
    }

    fn begin_after(&self, floor: &Floor) -> io::Result<()> {
        let open = self.open.lock().expect("nothing panics while it holds this");
        let key = open.as_ref().map(|open| open.mark.key);
        let key = key.ok_or_else(|| io::Error::other("a validator without a mark must not vote"))?;
        let Header { number, consensus, .. } = &floor.header;
        tracing::info!(
            "this validator votes after block {number} of view {}, which is final",
            consensus.view
        );
        super::votes::note(&self.voter, key, Some(floor.clone())).map_err(io::Error::other)
    }

    fn distrust(&self) -> io::Result<()> {
        super::votes::remove_durably(&self.voter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: B256 = B256::repeat_byte(7);

    fn vote(view: u64) -> OwnVote {
        OwnVote { view, kind: VoteKind::Notarize }
    }

    struct Home {
        directory: tempfile::TempDir,
    }

    fn home() -> Home {
        let home = Home { directory: tempfile::tempdir().unwrap() };
        Mark::new(KEY, None).create(&home.path()).unwrap();
        home
    }

    impl Home {
        fn path(&self) -> PathBuf {
            self.directory.path().join("key.views")
        }

        fn read(&self) -> Mark {
            Mark::read(&self.path(), KEY).unwrap().unwrap()
        }

        fn open(&self) -> MarkedVotes {
            MarkedVotes::open(&self.path(), Some(self.read()), self.directory.path().join("voter")).unwrap()
        }
    }

    #[test]
    fn the_last_votes_and_the_lease_are_read_back() {
        let home = home();
        assert_eq!(home.read(), Mark::new(KEY, None));
        let book = home.open();
        for view in 1..=100 {
            book.sent(vote(view)).unwrap();
            book.sent(vote(view)).unwrap();
        }
        let mark = home.read();
        assert_eq!(mark.votes().map(|vote| vote.view).collect::<Vec<_>>(), (37..=100).collect::<Vec<_>>());
        assert!((1..=100).contains(&(mark.leased() - LEASE_VIEWS)), "{}", mark.leased());
        book.sent(vote(mark.leased() + 1)).unwrap();
        assert_eq!(home.read().leased(), mark.leased() + 1 + LEASE_VIEWS, "the first view beyond it");
    }

    /// Whatever is left of the slots that are not synced, the synced one counts.
    #[test]
    fn slots_that_are_torn_do_not_count() {
        let home = home();
        let book = home.open();
        for view in 1..=3 {
            book.sent(vote(view)).unwrap();
        }
        let whole = fs::read(home.path()).unwrap();
        let newest = |bytes: &[u8]| {
            fs::write(home.path(), bytes).unwrap();
            Mark::read(&home.path(), KEY).unwrap().map(|mark| mark.votes.len())
        };
        assert_eq!(newest(&whole), Some(3));
        let torn = |slots: &[usize]| {
            let mut bytes = whole.clone();
            slots.iter().for_each(|slot| bytes[slot * SLOT_BYTES + 50] ^= 1);
            bytes
        };
        let left: Vec<_> = [&[0][..], &[1], &[2], &[1, 2], &[0, 1, 2]]
            .into_iter()
            .map(|slots| newest(&torn(slots)))
            .collect();
        assert_eq!(left.iter().flatten().min(), Some(&1), "{left:?}");
        assert_eq!(left.last(), Some(&None), "nothing is whole");
        assert_eq!(newest(&[]), None);
        fs::remove_file(home.path()).unwrap();
        assert_eq!(Mark::read(&home.path(), KEY).unwrap(), None);
    }

    #[test]
    fn the_mark_of_another_key_is_none() {
        let home = home();
        assert_eq!(Mark::read(&home.path(), B256::repeat_byte(8)).unwrap(), None);
    }

    /// Both sides of the lease, by the time since this machine was switched on.
    #[test]
    fn a_mark_is_current_for_some_seconds_of_the_same_boot() {
        let at = |boot: &str, milliseconds| Moment { boot: boot.to_owned(), milliseconds };
        let mark = Mark::new(KEY, Some(at("a", 50_000)));
        let is_current = |moment: Moment| mark.is_current(Some(&moment));
        assert!(is_current(at("a", 50_000)) && is_current(at("a", 60_000)));
        assert!(!is_current(at("a", 60_001)), "too long ago");
        assert!(!is_current(at("a", 49_999)), "from the future");
        assert!(!is_current(at("b", 50_001)), "the machine was started again, or is another");
        assert!(!mark.is_current(None) && !Mark::new(KEY, None).is_current(Some(&at("a", 0))));
    }

    #[test]
    fn a_vote_renews_the_lease() {
        let home = home();
        assert!(!home.read().is_current(Moment::now().as_ref()));
        home.open().sent(vote(1)).unwrap();
        assert!(home.read().is_current(Moment::now().as_ref()));
    }

    #[test]
    fn without_a_mark_nothing_is_sent() {
        let book = MarkedVotes::open(Path::new("none"), None, PathBuf::from("none")).unwrap();
        assert!(book.sent(vote(1)).is_err());
    }
}
