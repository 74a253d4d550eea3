//! How far the walk through a queue has come when it skipped entries.
//!
//! ```text
//!   lane:  [ a  b  S  c  d ][ e  f  g … ]      by time, then id
//!      set aside  ^ late    ^ mark: the walk goes on here, after S
//! ```
//!
//! A due schedule that does not run, because it cannot pay or skips missed times, must not block those behind
//! it. A block ends or moves a bounded number of these. It sets the others aside by moving the mark past them.
//! They will not run for that due time: later blocks end them from the front, a bounded number each.
//!
//! A schedule that still has a run to come may also be before the mark: a series that is late by an interval or
//! more waits there for its next missed time. The mark lists these late entries, and the next block begins with
//! them. Everything else that may run is after the mark, so runs never change order, and no block looks at the
//! same flood twice.

use crate::{
    calendar::{Entry, Queue},
    ledger::Ledger,
};
use alloy_primitives::U256;
use almanac_primitives::{
    ScheduleId,
    params::{CRON_BLOCK_GAS_MAX, CRON_RUN_GAS_MIN},
};

/// Slots of this kind hold marks, one per queue, and their late entries.
const MARK_KIND: u64 = 3;

/// Distinguishes a mark from an empty slot, because the first queue has number zero.
const VERSION: u8 = 1;

/// Most late entries that a mark lists: as many as the largest queue runs in one block. A block adds late
/// entries only after it has processed all earlier ones, and those that it adds are among its own runs.
pub const LATE_MAX: usize = (CRON_BLOCK_GAS_MAX.max / CRON_RUN_GAS_MIN) as usize;

/// Where the walk through a queue continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The first entry that was not set aside. It need not exist.
    pub next: Entry,
    /// Entries before it that were not set aside, in order.
    late: Vec<Entry>,
}

impl Mark {
    /// A mark before `next` with these late entries. If there are too many, it stands before the first one that
    /// does not fit, and the next block looks at everything after that again.
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

    /// Whether an entry was set aside and will not run for this due time.
    pub fn is_aside(&self, entry: Entry) -> bool {
        entry < self.next && self.late.binary_search(&entry).is_err()
    }
}

/// The mark of a queue; `None` if nothing is set aside.
pub fn load<L: Ledger>(ledger: &mut L, queue: Queue) -> Result<Option<Mark>, L::Error> {
    let Some(next) = load_entry(ledger, queue, 0)? else { return Ok(None) };
    let mut late = Vec::new();
    for place in 1..=LATE_MAX as u64 {
        match load_entry(ledger, queue, place)? {
            Some(entry) => late.push(entry),
            None => break,
        }
    }
    Ok(Some(Mark::new(next, late)))
}

/// Replaces or removes the mark of a queue. `stored` is the mark that is stored now.
pub fn store<L: Ledger>(
    ledger: &mut L,
    queue: Queue,
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
            ledger.store(slot(queue, at), word)?;
        }
    }
    Ok(())
}

fn load_entry<L: Ledger>(ledger: &mut L, queue: Queue, place: u64) -> Result<Option<Entry>, L::Error> {
    Ok(from_word(ledger.load(slot(queue, place))?).filter(|entry| entry.queue == queue))
}

/// The position directly after an entry.
pub fn behind(entry: Entry) -> Entry {
    // Cannot saturate: ids derive from block numbers, which never get that large.
    Entry { schedule: ScheduleId(entry.schedule.0.saturating_add(1)), ..entry }
}

/// The mark is at place 0, late entries follow it.
fn slot(queue: Queue, place: u64) -> U256 {
    U256::from_limbs([place, queue as u64, MARK_KIND, 0])
}

fn to_word(mark: Entry) -> U256 {
    let mut word = [0; 32];
    word[6] = VERSION;
    word[7..].copy_from_slice(&mark.encode());
    U256::from_be_bytes(word)
}

/// Treats an invalid word as no mark: the walk then begins at the front, which is slower but correct.
fn from_word(word: U256) -> Option<Entry> {
    let bytes = word.to_be_bytes::<32>();
    let is_mark = bytes[..6] == [0; 6] && bytes[6] == VERSION;
    is_mark.then(|| Entry::decode(&bytes[7..]).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{calendar::Priority, ledger::MemoryLedger};

    fn entry(queue: Queue, due: u64, id: u64) -> Entry {
        Entry { queue, at: due, priority: Priority(0), schedule: ScheduleId(id) }
    }

    fn set(ledger: &mut MemoryLedger, queue: Queue, mark: Option<&Mark>) {
        let stored = load(ledger, queue).unwrap();
        store(ledger, queue, stored.as_ref(), mark).unwrap();
        assert_eq!(load(ledger, queue).unwrap().as_ref(), mark);
    }

    #[test]
    fn each_queue_has_its_own_mark() {
        let mut ledger = MemoryLedger::default();
        let mark = |queue: Queue, late: u64| {
            Mark::new(entry(queue, 7, queue as u64), (0..late).map(|id| entry(queue, 6, id)))
        };
        for queue in Queue::ALL {
            assert_eq!(load(&mut ledger, queue), Ok(None));
            set(&mut ledger, queue, Some(&mark(queue, 2 + queue as u64)));
        }
        for queue in Queue::ALL {
            assert_eq!(load(&mut ledger, queue), Ok(Some(mark(queue, 2 + queue as u64))));
            set(&mut ledger, queue, Some(&mark(queue, 9)));
            set(&mut ledger, queue, Some(&mark(queue, 1)));
            set(&mut ledger, queue, None);
        }
        assert!(ledger.slots.is_empty(), "nothing is left of longer ones");
    }

    #[test]
    fn a_mark_knows_what_is_before_it_and_was_not_set_aside() {
        let at = |due, id| entry(Queue::Cron, due, id);
        let mark = Mark::new(at(9, 5), [at(9, 5), at(8, 2), at(3, 4), at(9, 4), at(3, 4), at(10, 0)]);
        assert_eq!(mark.late(), [at(3, 4), at(8, 2), at(9, 4)]);
        assert!([at(0, 0), at(3, 3), at(9, 3)].into_iter().all(|entry| mark.is_aside(entry)));
        assert!([at(3, 4), at(9, 4), at(9, 5), at(10, 0)].into_iter().all(|entry| !mark.is_aside(entry)));
    }

    /// Both sides of how many it knows.
    #[test]
    fn a_mark_that_cannot_know_all_stands_before_the_first_of_the_others() {
        let at = |id| entry(Queue::Cron, 1, id);
        let count = LATE_MAX as u64;
        let full = Mark::new(at(u64::MAX), (0..count).map(at));
        assert_eq!((full.next, full.late().len()), (at(u64::MAX), LATE_MAX));
        let more = Mark::new(at(u64::MAX), (0..=count).map(at));
        assert_eq!((more.next, more.late().len()), (at(count), LATE_MAX));
        set(&mut MemoryLedger::default(), Queue::Cron, Some(&more));
    }

    #[test]
    fn a_mark_of_another_queue_is_none() {
        let mut ledger = MemoryLedger::default();
        ledger.slots.insert(slot(Queue::Cron, 0), to_word(entry(Queue::Market, 7, 1)));
        assert_eq!(load(&mut ledger, Queue::Cron), Ok(None));
        ledger.slots.insert(slot(Queue::Cron, 0), U256::MAX);
        assert_eq!(load(&mut ledger, Queue::Cron), Ok(None));
    }

    #[test]
    fn behind_an_entry_is_before_the_next() {
        let at = |due, id| entry(Queue::Cron, due, id);
        assert!(at(5, 7) < behind(at(5, 7)) && behind(at(5, 7)) <= at(5, 8) && behind(at(5, 7)) < at(6, 0));
    }
}
