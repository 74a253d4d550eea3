//! How much of each second is booked: reserved runs get their room when they are created, or not at all.
//!
//! One slot of the ledger per second, in the EVM's journal, since later transactions of a block must see what
//! earlier ones booked. A second in which nothing is booked has no slot.
//!
//! ```text
//!   |<---- High only ---->|<- Medium only ->|<---- both ---->|      effort of one second
//! ```

use crate::ledger::Ledger;
use alloy_primitives::U256;
use almanac_primitives::params::{SECOND_EFFORT_HIGH, SECOND_EFFORT_MEDIUM, SECOND_EFFORT_SHARED};

/// Slots of this kind hold bookings.
const CAPACITY_KIND: u64 = 2;

/// How a run books its room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// In its second, or not at all.
    High,
    /// In its second or a later one.
    Medium,
}

/// What is booked in one second, in effort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Booked {
    /// By High runs.
    pub high: u32,
    /// By Medium runs.
    pub medium: u32,
}

impl Booked {
    /// Room that is left for a class.
    pub fn free(&self, class: Class) -> u32 {
        let (own, used, other) = match class {
            Class::High => (SECOND_EFFORT_HIGH, self.high, self.medium.saturating_sub(SECOND_EFFORT_MEDIUM)),
            Class::Medium => {
                (SECOND_EFFORT_MEDIUM, self.medium, self.high.saturating_sub(SECOND_EFFORT_HIGH))
            }
        };
        (own + SECOND_EFFORT_SHARED.saturating_sub(other)).saturating_sub(used)
    }

    fn of(&mut self, class: Class) -> &mut u32 {
        match class {
            Class::High => &mut self.high,
            Class::Medium => &mut self.medium,
        }
    }

    fn from_word(word: U256) -> Self {
        let part = |shift: usize| (word >> shift).wrapping_to::<u32>();
        Self { high: part(32), medium: part(0) }
    }

    fn to_word(self) -> U256 {
        U256::from(u64::from(self.high) << 32 | u64::from(self.medium))
    }
}

/// What is booked in a second.
pub fn booked<L: Ledger>(ledger: &mut L, second: u64) -> Result<Booked, L::Error> {
    ledger.load(slot(second)).map(Booked::from_word)
}

/// Books room in the first of `seconds_max` seconds from `second` on that has it, and answers with that second; or
/// with `None`, and nothing has changed.
pub fn book<L: Ledger>(
    ledger: &mut L,
    class: Class,
    effort: u32,
    second: u64,
    seconds_max: u64,
) -> Result<Option<u64>, L::Error> {
    for second in second..second.saturating_add(seconds_max) {
        let mut booked = booked(ledger, second)?;
        if booked.free(class) >= effort {
            *booked.of(class) += effort;
            ledger.store(slot(second), booked.to_word())?;
            return Ok(Some(second));
        }
    }
    Ok(None)
}

/// Gives room back that was booked.
pub fn release<L: Ledger>(ledger: &mut L, class: Class, effort: u32, second: u64) -> Result<(), L::Error> {
    let mut booked = booked(ledger, second)?;
    let used = booked.of(class);
    *used = used.saturating_sub(effort);
    ledger.store(slot(second), booked.to_word())
}

fn slot(second: u64) -> U256 {
    U256::from_limbs([0, second, CAPACITY_KIND, 0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::MemoryLedger;
    use proptest::prelude::*;

    const SECOND: u64 = 1_700_000_000;

    fn booked_now(ledger: &mut MemoryLedger) -> Booked {
        booked(ledger, SECOND).unwrap()
    }

    #[test]
    fn both_sides_of_each_share() {
        let mut ledger = MemoryLedger::default();
        let high = SECOND_EFFORT_HIGH + SECOND_EFFORT_SHARED;
        assert_eq!(book(&mut ledger, Class::High, high + 1, SECOND, 1), Ok(None));
        assert_eq!(book(&mut ledger, Class::High, high, SECOND, 1), Ok(Some(SECOND)));
        assert_eq!(booked_now(&mut ledger).free(Class::Medium), SECOND_EFFORT_MEDIUM, "its own part is left");
        assert_eq!(book(&mut ledger, Class::Medium, SECOND_EFFORT_MEDIUM + 1, SECOND, 1), Ok(None));
        assert_eq!(book(&mut ledger, Class::Medium, SECOND_EFFORT_MEDIUM, SECOND, 1), Ok(Some(SECOND)));
        assert_eq!(booked_now(&mut ledger).free(Class::High), 0);
    }

    #[test]
    fn medium_moves_to_the_next_second_with_room_and_the_search_ends() {
        let mut ledger = MemoryLedger::default();
        for second in SECOND..SECOND + 3 {
            book(&mut ledger, Class::Medium, SECOND_EFFORT_MEDIUM + SECOND_EFFORT_SHARED, second, 1).unwrap();
        }
        let before = ledger.clone();
        assert_eq!(book(&mut ledger, Class::Medium, 1, SECOND, 3), Ok(None));
        assert_eq!(ledger, before, "nothing changed");
        assert_eq!(book(&mut ledger, Class::Medium, 1, SECOND, 4), Ok(Some(SECOND + 3)));
        assert_eq!(book(&mut ledger, Class::Medium, 1, u64::MAX, 10), Ok(None), "the end of time");
    }

    proptest! {
        /// Any order of bookings and releases: never over a share, and what is released is free again exactly.
        #[test]
        fn never_over_and_exactly_back(orders in prop::collection::vec((any::<bool>(), 1u32..12_000), 0..30)) {
            let mut ledger = MemoryLedger::default();
            let mut held = Vec::new();
            for (is_high, effort) in orders {
                let class = if is_high { Class::High } else { Class::Medium };
                if book(&mut ledger, class, effort, SECOND, 1).unwrap().is_some() {
                    held.push((class, effort));
                }
                let Booked { high, medium } = booked_now(&mut ledger);
                let shared = high.saturating_sub(SECOND_EFFORT_HIGH) + medium.saturating_sub(SECOND_EFFORT_MEDIUM);
                prop_assert!(shared <= SECOND_EFFORT_SHARED);
            }
            for (class, effort) in held {
                release(&mut ledger, class, effort, SECOND).unwrap();
            }
            prop_assert!(ledger.slots.is_empty(), "as if nobody had booked");
        }
    }
}
