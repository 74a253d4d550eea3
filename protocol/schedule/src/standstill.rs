//! Until when the chain itself kept booked callbacks from running: it stood still, or their door was held.
//!
//! A fee returns for what was due by then and ran late (FLIP330-18). Lateness alone is not enough: who books many
//! seconds of slow work makes blocks slow, and everything late, and would get all the fees back.

use alloy_primitives::U256;
use almanac_primitives::{DurationMs, TimestampMs, params::CALLBACK_LATE_MS};

/// The slot of the ledger account that stores the time. Its kind is that of no record, mark or booking.
pub const STANDSTILL_SLOT: U256 = U256::from_limbs([0, 0, 6, 0]);

/// The time in the slot. Zero if the chain has never stood still.
pub fn from_word(word: U256) -> TimestampMs {
    TimestampMs(word.as_limbs()[0])
}

/// What the slot holds for a time.
pub fn to_word(until: TimestampMs) -> U256 {
    U256::from(until.0)
}

/// The time after a block. No booking can keep a network from blocks for a minute: after failed views the budget of
/// booked runs is a single run (FLIP330-11).
pub fn after(stored: TimestampMs, parent: TimestampMs, now: TimestampMs, is_held: bool) -> TimestampMs {
    let has_stood_still = now.since(parent).is_some_and(|gap| gap > DurationMs(CALLBACK_LATE_MS));
    if is_held || has_stood_still { now } else { stored }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_without_a_block_is_a_standstill() {
        let at = TimestampMs;
        assert_eq!(after(at(5), at(1_000), at(61_000), false), at(5));
        assert_eq!(after(at(5), at(1_000), at(61_001), false), at(61_001));
        assert_eq!(after(at(5), at(1_000), at(1_001), true), at(1_001), "held");
    }

    #[test]
    fn a_time_is_what_was_stored() {
        for time in [0, 1, u64::MAX].map(TimestampMs) {
            assert_eq!(from_word(to_word(time)), time);
        }
    }
}
