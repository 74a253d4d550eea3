//! The stretches of time that one slot of the ledger is about.

use alloy_primitives::U256;
use std::ops::Range;

/// Slots of this kind are about stretches of time.
const CAPACITY_KIND: u64 = 2;

/// Seconds in a stretch of rank 0: as many as a slot has room for.
pub(super) const BOOKINGS_SECONDS: usize = 8;
/// Parts of a stretch of any other rank: as many hints as a slot has room for.
pub(super) const PARTS: usize = 16;
/// The rank of the longest stretches, 32,768 s. One more would make every release dearer and no search of a day shorter.
pub(super) const RANK_MAX: u32 = 3;
/// Seconds in one of the longest stretches.
pub(super) const LONGEST_SECONDS: u64 = 1 << shift(RANK_MAX);

/// Seconds that one slot is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) rank: u32,
    index: u64,
}

impl Stretch {
    /// The stretch of this rank in which a second is.
    pub(super) fn of(rank: u32, second: u64) -> Self {
        Self { rank, index: second >> shift(rank) }
    }

    /// Its slot of the ledger.
    pub(super) fn slot(&self) -> U256 {
        U256::from_limbs([self.index, self.rank.into(), CAPACITY_KIND, 0])
    }

    /// Its seconds. The very last second of all is in none: no time in milliseconds reaches it.
    pub(super) fn seconds(&self) -> Range<u64> {
        let start = self.index << shift(self.rank);
        start..start.saturating_add(1 << shift(self.rank))
    }

    /// Its parts in order, of the rank below. Only for those that have hints.
    pub(super) fn parts(&self) -> impl Iterator<Item = Self> + use<> {
        let (rank, first) = (self.rank - 1, self.index * PARTS as u64);
        (0..PARTS as u64).map(move |part| Self { rank, index: first + part })
    }

    /// Which part of the stretch above it this one is.
    pub(super) fn place(&self) -> usize {
        usize::try_from(self.index % PARTS as u64).expect("there are sixteen")
    }
}

const fn shift(rank: u32) -> u32 {
    BOOKINGS_SECONDS.ilog2() + rank * PARTS.ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{escrow_slot, head_slot, schedule_of_head_slot};
    use almanac_primitives::ScheduleId;

    #[test]
    fn parts_tile_their_stretch() {
        for (rank, seconds) in [(1, 128), (2, 2_048), (3, 32_768)] {
            let stretch = Stretch::of(rank, 1_700_000_000);
            let all = stretch.seconds();
            assert_eq!((all.end - all.start, all.contains(&1_700_000_000)), (seconds, true));
            let mut at = all.start;
            for (place, part) in stretch.parts().enumerate() {
                assert_eq!((part.place(), part.seconds().start), (place, at));
                assert_eq!(part, Stretch::of(rank - 1, at));
                at = part.seconds().end;
            }
            assert_eq!(at, all.end);
        }
        assert_eq!(LONGEST_SECONDS, 32_768);
    }

    #[test]
    fn the_end_of_time_does_not_overflow() {
        for rank in 0..=RANK_MAX {
            let stretch = Stretch::of(rank, u64::MAX);
            assert_eq!(stretch.seconds().end, u64::MAX);
            if rank > 0 {
                assert_eq!(stretch.parts().last(), Some(Stretch::of(rank - 1, u64::MAX)));
            }
        }
    }

    #[test]
    fn no_slot_is_one_of_a_record() {
        for rank in 0..=RANK_MAX {
            for second in [0, 1, 1 << 20, u64::MAX] {
                let slot = Stretch::of(rank, second).slot();
                assert_eq!(schedule_of_head_slot(slot), None);
                let id = ScheduleId(rank.into());
                assert!(slot != head_slot(id) && slot != escrow_slot(id));
            }
        }
    }
}
