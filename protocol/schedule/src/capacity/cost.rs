//! What booking, releasing and searching cost at most, in slots of the ledger: doors charge before they touch.

use super::stretch::{LONGEST_SECONDS, RANK_MAX};
use almanac_primitives::params::{CAPACITY_SEARCH_READS_MAX, CAPACITY_SEARCH_SECONDS_MAX, SLOT_CHANGE_GAS};

/// Slots that a booking reads: one of each rank.
pub const BOOK_READS_MAX: u64 = RANK_MAX as u64 + 1;
/// Slots that a booking writes.
pub const BOOK_WRITES_MAX: u64 = BOOK_READS_MAX;
/// Slots that a booking writes where there was none. A new slot is about one second or part of it, so the others promise
/// room, and nothing above changes.
pub const BOOK_SLOTS_NEW_MAX: u64 = 1;

/// Slots that a release reads: one of each rank.
pub const RELEASE_READS_MAX: u64 = RANK_MAX as u64 + 1;
/// Slots that a release writes. It makes none.
pub const RELEASE_WRITES_MAX: u64 = RELEASE_READS_MAX;
/// Gas of a release, for those who pay when they book: a run releases where nobody pays.
pub const RELEASE_GAS: u64 = RELEASE_WRITES_MAX * SLOT_CHANGE_GAS;

/// Slots that a search over so many seconds reads where hints are exact: the bookings of its first second; the hints
/// above, each of which may promise what is before that second; the longest stretches from there on; and the way down
/// to the second that it finds, or to one behind its end.
pub const fn search_reads_exact(seconds: u64) -> u64 {
    if seconds == 0 {
        return 0;
    }
    let longest = (seconds - 1).div_ceil(LONGEST_SECONDS) + 1;
    let (way_up, way_down) = (RANK_MAX as u64, RANK_MAX as u64);
    way_up + longest + way_down
}

const _: () = assert!(
    search_reads_exact(CAPACITY_SEARCH_SECONDS_MAX) <= CAPACITY_SEARCH_READS_MAX,
    "with exact hints no search is stopped"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_grow_with_the_longest_stretches_that_a_search_touches() {
        let reads = [0, 1, 2, 32_769, 32_770, 86_400].map(search_reads_exact);
        assert_eq!(reads, [0, 7, 8, 8, 9, 10]);
    }
}
