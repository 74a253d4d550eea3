//! The effort of each second: what High and Medium callbacks have booked, and what they can still book.

use crate::{error, types::RpcTime};
use alloy_primitives::{U64, U256};
use almanac_primitives::{
    StateKey, StateRead, TimestampMs,
    addresses::LEDGER,
    params::{EFFORT_GAS, Parameters, SECOND_MS},
    state::decode_slot,
};
use almanac_schedule::capacity::{Booked, Bookings, Class, Shares, bookings_slot};
use jsonrpsee::core::RpcResult;
use serde::Serialize;
use std::ops::RangeInclusive;

/// What is booked in a span.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BookedSeconds {
    /// Gas of one unit of effort.
    effort_gas: U64,
    /// Most effort that High can book in a second: its own part and the shared one.
    high_max: U64,
    /// The same for Medium.
    medium_max: U64,
    /// Seconds in which something is booked, in order.
    seconds: Vec<BookedSecond>,
}

/// What is booked in one second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct BookedSecond {
    time: RpcTime,
    high: Room,
    medium: Room,
}

/// The effort of one class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Room {
    booked: U64,
    /// What can still be booked; zero once the second has begun.
    available: U64,
}

/// Reads what is booked in these seconds: a slot for each eight of them. The last block's time is `now`.
pub(super) fn booked_seconds(
    state: &dyn StateRead,
    parameters: &Parameters,
    seconds: &RangeInclusive<u64>,
    now: TimestampMs,
) -> RpcResult<BookedSeconds> {
    let shares = Shares::of(parameters);
    let (mut found, mut slot, mut bookings) = (Vec::new(), None, Bookings::from_word(U256::ZERO));
    for second in seconds.clone() {
        let needed = bookings_slot(second);
        if slot != Some(needed) {
            (slot, bookings) = (Some(needed), Bookings::from_word(read_word(state, needed)?));
        }
        let booked = bookings.at(second);
        if booked != Booked::default() {
            found.push(BookedSecond::new(second, booked, shares, second > now.seconds()));
        }
    }
    Ok(BookedSeconds {
        effort_gas: U64::from(EFFORT_GAS),
        high_max: U64::from(shares.most(Class::High)),
        medium_max: U64::from(shares.most(Class::Medium)),
        seconds: found,
    })
}

fn read_word(state: &dyn StateRead, slot: U256) -> RpcResult<U256> {
    let stored = state.read(StateKey::Slot(LEDGER, slot)).map_err(error::internal)?;
    stored.map_or(Ok(U256::ZERO), |stored| decode_slot(&stored)).map_err(error::internal)
}

impl BookedSecond {
    fn new(second: u64, booked: Booked, shares: Shares, is_open: bool) -> Self {
        let room = |class, effort: u16| Room {
            booked: U64::from(effort),
            available: U64::from(if is_open { shares.available(booked, class) } else { 0 }),
        };
        Self {
            time: RpcTime::new(TimestampMs(second.saturating_mul(SECOND_MS))),
            high: room(Class::High, booked.high),
            medium: room(Class::Medium, booked.medium),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::Bytes;
    use almanac_primitives::{StateReadError, params::SECOND_HIGH_EFFORT, state::encode_slot};
    use std::{cell::RefCell, collections::BTreeMap};

    /// Slots of the ledger, and how often they were read.
    #[derive(Default)]
    struct Slots(BTreeMap<U256, U256>, RefCell<usize>);

    impl StateRead for Slots {
        fn read(&self, key: StateKey) -> Result<Option<Bytes>, StateReadError> {
            *self.1.borrow_mut() += 1;
            let StateKey::Slot(LEDGER, slot) = key else { panic!("{key:?}") };
            Ok(self.0.get(&slot).and_then(|word| encode_slot(*word)))
        }
    }

    fn slots(booked: &[(u64, u16, u16)]) -> Slots {
        let mut slots = Slots::default();
        for (second, high, medium) in booked {
            let mut word = slots.0.get(&bookings_slot(*second)).map_or([0; 32], |word| word.to_be_bytes());
            let at = usize::try_from(second % 8).unwrap() * 4;
            word[at..at + 2].copy_from_slice(&high.to_be_bytes());
            word[at + 2..at + 4].copy_from_slice(&medium.to_be_bytes());
            slots.0.insert(bookings_slot(*second), U256::from_be_bytes(word));
        }
        slots
    }

    fn rows(slots: &Slots, parameters: &Parameters, seconds: RangeInclusive<u64>, now: u64) -> Vec<[u64; 5]> {
        let found = booked_seconds(slots, parameters, &seconds, TimestampMs(now * SECOND_MS)).unwrap();
        let row = |second: &BookedSecond| {
            let BookedSecond { time, high, medium } = second;
            let time: U64 = serde_json::from_value(serde_json::to_value(time).unwrap()["ms"].take()).unwrap();
            let second = time / U64::from(SECOND_MS);
            [second, high.booked, high.available, medium.booked, medium.available].map(|one| one.to::<u64>())
        };
        found.seconds.iter().map(row).collect()
    }

    #[test]
    fn seconds_with_bookings_and_what_is_left_of_them() {
        let slots = slots(&[(7, 1, 0), (8, 25_000, 2_000), (15, 30_000, 5_000), (16, 0, 15_000), (30, 1, 1)]);
        let all = [[7, 1, 29_999, 0, 15_000], [8, 25_000, 5_000, 2_000, 8_000]];
        let later = [[15, 30_000, 0, 5_000, 0], [16, 0, 20_000, 15_000, 0]];
        let defaults = Parameters::default();
        assert_eq!(rows(&slots, &defaults, 0..=29, 0), [all, later].concat());
        assert_eq!(*slots.1.borrow(), 4, "one read for eight seconds");
        assert_eq!(rows(&slots, &defaults, 9..=15, 0), [later[0]]);
        assert_eq!(rows(&slots, &defaults, 8..=8, 7), [all[1]]);
        assert_eq!(rows(&slots, &defaults, 8..=8, 8), [[8, 25_000, 0, 2_000, 0]], "it has begun");
        assert!(rows(&slots, &defaults, u64::MAX - 1..=u64::MAX, 0).is_empty());
    }

    #[test]
    fn parts_are_those_in_force() {
        let mut parameters = Parameters::default();
        parameters.set(SECOND_HIGH_EFFORT, 100).unwrap();
        let slots = slots(&[(8, 25_000, 0)]);
        assert_eq!(
            rows(&slots, &parameters, 8..=8, 0),
            [[8, 25_000, 0, 0, 0]],
            "what is booked stays booked"
        );
        let found = booked_seconds(&slots, &parameters, &(9..=9), TimestampMs(0)).unwrap();
        assert_eq!((found.high_max, found.medium_max), (U64::from(10_100), U64::from(15_000)));
    }
}
