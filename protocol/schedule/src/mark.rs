//! How far the walk through a lane has come, where it has left something behind.
//!
//! ```text
//!   lane:  [ a  b  S  c  d ][ e  f  g … ]      by time, then id
//!      set aside  ^ late    ^ mark: the walk goes on here, after S
//! ```
//!
//! A schedule that does not run when its turn comes, because it cannot pay or skips what it missed, must not hold up
//! those behind it. A block ends or moves a bounded number of these; the others it sets aside by putting the mark
//! behind them. They never run any more for that time: later blocks end them, from the front, a bounded number each.
//!
//! A schedule that has a run to come may stand before the mark as well: a series that is behind by an interval or more
//! waits for its next missed time there. The mark knows these by name, and the next block begins with them. Everything
//! else that may run is behind the mark, so order never inverts, and no block looks at the same flood again.

use crate::{calendar::Entry, ledger::Ledger};
use alloy_primitives::U256;
use almanac_primitives::{
    Lane, ScheduleId,
    params::{CRON_BLOCK_GAS_MAX, CRON_RUN_GAS_MIN},
};

/// Slots of this kind hold marks, one per lane, and their late entries.
const MARK_KIND: u64 = 3;

/// Tells a mark from an empty slot: the first lane has the number zero.
const VERSION: u8 = 1;

/// Most late schedules that a mark knows: as many as the largest lane runs in one block. A block adds to them only
/// where it has met all of them, and then those that it adds are among its own runs.
pub const LATE_MAX: usize = (CRON_BLOCK_GAS_MAX.max / CRON_RUN_GAS_MIN) as usize;

/// Where the walk through a lane goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The first entry that was not set aside, which may not exist.
    pub next: Entry,
    /// Entries before it that were not set aside, in order.
    late: Vec<Entry>,
}

impl Mark {
    /// A mark before `next` that knows these late entries. Where it cannot know all of them, it stands before the first
    /// of the others: the next block looks at what is behind that again.
    pub fn new(mut next: Entry, late: impl IntoIterator<Item = Entry>) -> Self {
        let mut late: Vec<_> = late.into_iter().filter(|entry| *entry < next).collect();
        late.sort_unstable();
        late.dedup();
        if let Some(unknown) = late.get(LATE_MAX) {
            next = *unknown;
            late.truncate(LATE_MAX);
        }
        Self { next, late }
    }

    /// Entries before the mark that were not set aside, in order.
    pub fn late(&self) -> &[Entry] {
        &self.late
    }

    /// Whether an entry was set aside: it has had its turn.
    pub fn is_aside(&self, entry: Entry) -> bool {
        entry < self.next && self.late.binary_search(&entry).is_err()
    }
}

/// The mark of a lane; `None` where nothing waits for its end.
pub fn load<L: Ledger>(ledger: &mut L, lane: Lane) -> Result<Option<Mark>, L::Error> {
    let Some(next) = load_entry(ledger, lane, 0)? else { return Ok(None) };
    let mut late = Vec::new();
    for place in 1..=LATE_MAX as u64 {
        match load_entry(ledger, lane, place)? {
            Some(entry) => late.push(entry),
            None => break,
        }
    }
    Ok(Some(Mark::new(next, late)))
}

/// Sets or removes the mark of a lane, where `stored` is the one that it has.
pub fn store<L: Ledger>(
    ledger: &mut L,
    lane: Lane,
    stored: Option<&Mark>,
    mark: Option<&Mark>,
) -> Result<(), L::Error> {
    let entries = |mark: Option<&Mark>| -> Vec<Entry> {
        mark.map(|mark| [&[mark.next], mark.late()].concat()).unwrap_or_default()
    };
    let (old, new) = (entries(stored), entries(mark));
    for (place, at) in (0..old.len().max(new.len())).zip(0u64..) {
        if old.get(place) != new.get(place) {
            let word = new.get(place).map_or(U256::ZERO, |entry| to_word(*entry));
            ledger.store(slot(lane, at), word)?;
        }
    }
    Ok(())
}

fn load_entry<L: Ledger>(ledger: &mut L, lane: Lane, place: u64) -> Result<Option<Entry>, L::Error> {
    Ok(from_word(ledger.load(slot(lane, place))?).filter(|entry| entry.lane == lane))
}

/// The place directly behind an entry.
pub fn behind(entry: Entry) -> Entry {
    // Ids are numbered by blocks, whose numbers end long before the ids do.
    Entry { schedule: ScheduleId(entry.schedule.0.saturating_add(1)), ..entry }
}

/// The mark is at place 0, late entries follow it.
fn slot(lane: Lane, place: u64) -> U256 {
    U256::from_limbs([place, lane as u64, MARK_KIND, 0])
}

fn to_word(mark: Entry) -> U256 {
    let mut word = [0; 32];
    word[6] = VERSION;
    word[7..].copy_from_slice(&mark.encode());
    U256::from_be_bytes(word)
}

/// What is no mark is none: the walk then begins at the front, which is slower and never wrong.
fn from_word(word: U256) -> Option<Entry> {
    let bytes = word.to_be_bytes::<32>();
    let is_mark = bytes[..6] == [0; 6] && bytes[6] == VERSION;
    is_mark.then(|| Entry::decode(&bytes[7..]).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{calendar::Priority, ledger::MemoryLedger};
    use almanac_primitives::TimestampMs;

    fn entry(lane: Lane, due: u64, id: u64) -> Entry {
        Entry { lane, due: TimestampMs(due), priority: Priority(0), schedule: ScheduleId(id) }
    }

    fn set(ledger: &mut MemoryLedger, lane: Lane, mark: Option<&Mark>) {
        let stored = load(ledger, lane).unwrap();
        store(ledger, lane, stored.as_ref(), mark).unwrap();
        assert_eq!(load(ledger, lane).unwrap().as_ref(), mark);
    }

    #[test]
    fn each_lane_has_its_own_mark() {
        let mut ledger = MemoryLedger::default();
        let mark = |lane: Lane, late: u64| {
            Mark::new(entry(lane, 7, lane as u64), (0..late).map(|id| entry(lane, 6, id)))
        };
        for lane in Lane::ALL {
            assert_eq!(load(&mut ledger, lane), Ok(None));
            set(&mut ledger, lane, Some(&mark(lane, 2 + lane as u64)));
        }
        for lane in Lane::ALL {
            assert_eq!(load(&mut ledger, lane), Ok(Some(mark(lane, 2 + lane as u64))));
            set(&mut ledger, lane, Some(&mark(lane, 9)));
            set(&mut ledger, lane, Some(&mark(lane, 1)));
            set(&mut ledger, lane, None);
        }
        assert!(ledger.slots.is_empty(), "nothing is left of longer ones");
    }

    #[test]
    fn a_mark_knows_what_is_before_it_and_was_not_set_aside() {
        let at = |due, id| entry(Lane::Cron, due, id);
        let mark = Mark::new(at(9, 5), [at(9, 5), at(8, 2), at(3, 4), at(9, 4), at(3, 4), at(10, 0)]);
        assert_eq!(mark.late(), [at(3, 4), at(8, 2), at(9, 4)]);
        assert!([at(0, 0), at(3, 3), at(9, 3)].into_iter().all(|entry| mark.is_aside(entry)));
        assert!([at(3, 4), at(9, 4), at(9, 5), at(10, 0)].into_iter().all(|entry| !mark.is_aside(entry)));
    }

    /// Both sides of how many it knows.
    #[test]
    fn a_mark_that_cannot_know_all_stands_before_the_first_of_the_others() {
        let at = |id| entry(Lane::Cron, 1, id);
        let count = LATE_MAX as u64;
        let full = Mark::new(at(u64::MAX), (0..count).map(at));
        assert_eq!((full.next, full.late().len()), (at(u64::MAX), LATE_MAX));
        let more = Mark::new(at(u64::MAX), (0..=count).map(at));
        assert_eq!((more.next, more.late().len()), (at(count), LATE_MAX));
        set(&mut MemoryLedger::default(), Lane::Cron, Some(&more));
    }

    #[test]
    fn a_mark_of_another_lane_is_none() {
        let mut ledger = MemoryLedger::default();
        ledger.slots.insert(slot(Lane::Cron, 0), to_word(entry(Lane::Market, 7, 1)));
        assert_eq!(load(&mut ledger, Lane::Cron), Ok(None));
        ledger.slots.insert(slot(Lane::Cron, 0), U256::MAX);
        assert_eq!(load(&mut ledger, Lane::Cron), Ok(None));
    }

    #[test]
    fn behind_an_entry_is_before_the_next() {
        let at = |due, id| entry(Lane::Cron, due, id);
        assert!(at(5, 7) < behind(at(5, 7)) && behind(at(5, 7)) <= at(5, 8) && behind(at(5, 7)) < at(6, 0));
    }
}
