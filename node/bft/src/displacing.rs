//! Transactions that displaced others in the pool, on their way to the peers.
//!
//! A peer counts what they cost it, since its pool does not grow by them, and ignores a node that costs too much. A client
//! may replace one transaction many times a second, so they are passed on at half the rate that peers allow. Meanwhile
//! most of them have been replaced themselves, and are never sent.

use crate::{
    credit::{Allowance, Credits},
    gossip::{FRUITLESS_AT_ONCE, FRUITLESS_PER_SECOND},
};
use alloy_primitives::TxHash;
use almanac_primitives::{TimestampMs, params::TRANSACTION_BYTES_MAX};
use std::collections::BTreeSet;

/// Half of what peers allow. The last one that is sent may exceed it.
const ALLOWANCE: Allowance = Allowance { per_second: FRUITLESS_PER_SECOND / 2, burst: FRUITLESS_AT_ONCE / 2 };

/// Bytes of an authorization, at least: bounds how many a transaction has.
const AUTHORIZATION_BYTES_MIN: usize = 94;

const _: () = assert!(
    ((TRANSACTION_BYTES_MAX / AUTHORIZATION_BYTES_MIN) as u64) < FRUITLESS_AT_ONCE / 2,
    "one transaction above half of the burst is within the burst"
);

/// Transactions that wait to be sent, the cheapest first: a client who replaces a plain one does not wait for others'
/// long lists.
#[derive(Debug)]
pub(crate) struct Displacing {
    /// By what they cost, then in the order of their arrival.
    waiting: BTreeSet<(usize, u64, TxHash)>,
    arrived: u64,
    used: Credits<()>,
}

impl Default for Displacing {
    fn default() -> Self {
        Self { waiting: BTreeSet::new(), arrived: 0, used: Credits::new(ALLOWANCE) }
    }
}

impl Displacing {
    /// Adds a transaction that costs a peer so many recoveries of signatures.
    pub(crate) fn add(&mut self, hash: TxHash, cost: usize) {
        self.waiting.insert((cost, self.arrived, hash));
        self.arrived += 1;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Forgets those that the pool no longer has.
    pub(crate) fn retain(&mut self, is_pending: impl Fn(TxHash) -> bool) {
        self.waiting.retain(|(_, _, hash)| is_pending(*hash));
    }

    /// Those that may be sent now. What is no longer pending is dropped, and costs nothing.
    pub(crate) fn take(&mut self, now: TimestampMs, is_pending: impl Fn(TxHash) -> bool) -> Vec<TxHash> {
        let mut taken = Vec::new();
        while self.used.is_good(&(), now) {
            let Some((cost, _, hash)) = self.waiting.pop_first() else { break };
            if is_pending(hash) {
                self.used.charge((), cost, now);
                taken.push(hash);
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: TimestampMs = TimestampMs(1_000_000);

    fn hash(n: u8) -> TxHash {
        TxHash::repeat_byte(n)
    }

    #[test]
    fn as_many_are_sent_as_half_of_what_peers_allow() {
        let mut displacing = Displacing::default();
        for n in 0..5 {
            displacing.add(hash(n), 1_000);
        }
        assert_eq!(
            displacing.take(START, |_| true),
            [0, 1, 2].map(hash),
            "the last one above half of the burst"
        );
        assert!(displacing.take(START, |_| true).is_empty());
        // 3,000 are used and 2,048 allowed, and each millisecond gives back one.
        assert!(displacing.take(TimestampMs(START.0 + 952), |_| true).is_empty(), "exactly at the burst");
        assert_eq!(displacing.take(TimestampMs(START.0 + 953), |_| true), [hash(3)]);
        assert!(!displacing.is_empty());
        assert_eq!(displacing.take(TimestampMs(START.0 + 10_000), |_| true), [hash(4)]);
        assert!(displacing.is_empty());
    }

    #[test]
    fn cheap_ones_go_first_and_what_was_replaced_costs_nothing() {
        let mut displacing = Displacing::default();
        for (n, cost) in [(1, 1_101), (2, 64), (3, 1), (4, 64)] {
            displacing.add(hash(n), cost);
        }
        displacing.retain(|known| known != hash(4));
        assert_eq!(displacing.take(START, |known| known != hash(1)), [3, 2].map(hash));
        displacing.add(hash(5), 1_101);
        displacing.add(hash(6), 1_101);
        assert_eq!(displacing.take(START, |_| true), [5, 6].map(hash), "65 of 2,048 were used");
    }
}
