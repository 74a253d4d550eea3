//! Transactions that peers may count, on their way to them.
//!
//! A peer counts the signatures of a transaction by which its pool does not grow, and ignores a node that costs too much.
//! A client may replace one transaction many times a second, or hand two versions of many to two nodes. So what displaced
//! others, waited for its turn or has many signatures is passed on at half the rate that peers allow. Meanwhile much of it
//! has been replaced itself, and is never sent.

use crate::{
    credit::{Allowance, Credits},
    gossip::{FRUITLESS_AT_ONCE, FRUITLESS_PER_SECOND},
    turns::Turns,
};
use alloy_primitives::{Address, TxHash};
use almanac_consensus::AUTHORIZATIONS_MAX;
use almanac_primitives::TimestampMs;

/// Half of what peers allow. The last one that is sent may exceed it.
const ALLOWANCE: Allowance = Allowance { per_second: FRUITLESS_PER_SECOND / 2, burst: FRUITLESS_AT_ONCE / 2 };

const _: () = assert!(
    (AUTHORIZATIONS_MAX as u64) < FRUITLESS_AT_ONCE / 2,
    "one transaction above half of the burst is within the burst"
);

/// Transactions that wait to be sent. Their senders take turns, by signatures.
#[derive(Debug)]
pub(crate) struct Rationed {
    waiting: Turns,
    used: Credits<()>,
}

impl Default for Rationed {
    fn default() -> Self {
        Self { waiting: Turns::default(), used: Credits::new(ALLOWANCE) }
    }
}

impl Rationed {
    /// Adds a sender's transaction, which costs a peer so many recoveries of signatures.
    pub(crate) fn add(&mut self, hash: TxHash, sender: Address, cost: usize) {
        self.waiting.add(hash, sender, cost);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Forgets those that the pool no longer has.
    pub(crate) fn retain(&mut self, is_pending: impl Fn(TxHash) -> bool) {
        self.waiting.retain(is_pending);
    }

    /// Takes out the next one that may be sent now, if any.
    pub(crate) fn next(&mut self, now: TimestampMs) -> Option<TxHash> {
        if self.used.is_good(&(), now) { self.waiting.next() } else { None }
    }

    /// Notes that one was sent. One that was not costs nothing.
    pub(crate) fn charge(&mut self, cost: usize, now: TimestampMs) {
        self.used.charge((), cost, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: TimestampMs = TimestampMs(1_000_000);

    fn hash(n: u8) -> TxHash {
        TxHash::repeat_byte(n)
    }

    /// Sends what may be sent now.
    fn send(rationed: &mut Rationed, now: TimestampMs) -> Vec<TxHash> {
        std::iter::from_fn(|| {
            let hash = rationed.next(now)?;
            rationed.charge(1_000, now);
            Some(hash)
        })
        .collect()
    }

    #[test]
    fn as_many_are_sent_as_half_of_what_peers_allow() {
        let mut rationed = Rationed::default();
        for n in 0..5 {
            rationed.add(hash(n), Address::ZERO, 1_000);
        }
        assert_eq!(send(&mut rationed, START), [0, 1, 2].map(hash), "the last one above half of the burst");
        assert!(send(&mut rationed, START).is_empty());
        // 3,000 are used and 2,048 allowed, and each millisecond gives back one.
        assert!(send(&mut rationed, TimestampMs(START.0 + 952)).is_empty(), "exactly at the burst");
        assert_eq!(send(&mut rationed, TimestampMs(START.0 + 953)), [hash(3)]);
        assert!(!rationed.is_empty());
        assert_eq!(send(&mut rationed, TimestampMs(START.0 + 10_000)), [hash(4)]);
        assert!(rationed.is_empty());
    }

    #[test]
    fn what_is_not_sent_costs_nothing() {
        let mut rationed = Rationed::default();
        for n in 1..=4 {
            rationed.add(hash(n), Address::repeat_byte(n), 1_024);
        }
        rationed.retain(|known| known != hash(4));
        assert_eq!(rationed.next(START), Some(hash(1)), "and it is not sent after all");
        assert_eq!(send(&mut rationed, START), [2, 3].map(hash));
        assert!(rationed.is_empty());
    }
}
