//! How far the walk through a lane has come, where it has left something behind.
//!
//! ```text
//!   lane:  [ a  b  c  d ][ e  f  g … ]      by time, then id
//!             set aside  ^ mark: the walk goes on here
//! ```
//!
//! A schedule that does not run when its turn comes, because it cannot pay or skips what it missed, must not hold up
//! those behind it. A block ends or moves a bounded number of these; the others it sets aside by putting the mark
//! behind them. They never run any more for that time: later blocks end them, from the front, a bounded number each.
//! Everything that may run is behind the mark, so order never inverts.

use crate::{calendar::Entry, ledger::Ledger};
use alloy_primitives::U256;
use almanac_primitives::{Lane, ScheduleId};

/// Slots of this kind hold marks, one per lane.
const MARK_KIND: u64 = 3;

/// Tells a mark from an empty slot: the first lane has the number zero.
const VERSION: u8 = 1;

/// Where the walk through a lane goes on: the first entry that was not set aside, which may not exist. `None` where
/// nothing waits for its end.
pub fn load<L: Ledger>(ledger: &mut L, lane: Lane) -> Result<Option<Entry>, L::Error> {
    Ok(from_word(ledger.load(slot(lane))?).filter(|mark| mark.lane == lane))
}

/// Sets or removes the mark of a lane.
pub fn store<L: Ledger>(ledger: &mut L, lane: Lane, mark: Option<Entry>) -> Result<(), L::Error> {
    ledger.store(slot(lane), mark.map_or(U256::ZERO, to_word))
}

/// The place directly behind an entry.
pub fn behind(entry: Entry) -> Entry {
    // Ids are numbered by blocks, whose numbers end long before the ids do.
    Entry { schedule: ScheduleId(entry.schedule.0.saturating_add(1)), ..entry }
}

fn slot(lane: Lane) -> U256 {
    U256::from_limbs([0, lane as u64, MARK_KIND, 0])
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

    #[test]
    fn each_lane_has_its_own_mark() {
        let mut ledger = MemoryLedger::default();
        for lane in Lane::ALL {
            assert_eq!(load(&mut ledger, lane), Ok(None));
            store(&mut ledger, lane, Some(entry(lane, 7, lane as u64))).unwrap();
        }
        for lane in Lane::ALL {
            assert_eq!(load(&mut ledger, lane), Ok(Some(entry(lane, 7, lane as u64))));
            store(&mut ledger, lane, None).unwrap();
        }
        assert!(ledger.slots.is_empty());
    }

    #[test]
    fn a_mark_of_another_lane_is_none() {
        let mut ledger = MemoryLedger::default();
        store(&mut ledger, Lane::Cron, Some(entry(Lane::Market, 7, 1))).unwrap();
        assert_eq!(load(&mut ledger, Lane::Cron), Ok(None));
        ledger.slots.insert(slot(Lane::Cron), U256::MAX);
        assert_eq!(load(&mut ledger, Lane::Cron), Ok(None));
    }

    #[test]
    fn behind_an_entry_is_before_the_next() {
        let at = |due, id| entry(Lane::Cron, due, id);
        assert!(at(5, 7) < behind(at(5, 7)) && behind(at(5, 7)) <= at(5, 8) && behind(at(5, 7)) < at(6, 0));
    }
}
