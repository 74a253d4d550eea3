//! Transactions that peers may count, on their way to them.
//!
//! A peer counts the signatures of a transaction by which its pool does not grow, and ignores a node that costs too much.
//! A client may replace one transaction many times a second, or hand two versions of many to two nodes. So what displaced
//! others, waited for its turn or has many signatures is passed on at half the rate that peers allow. Meanwhile much of it
//! has been replaced itself, and is never sent.

use crate::{
    credit::{Allowance, Credits},
    gossip::{FRUITLESS_AT_ONCE, FRUITLESS_PER_SECOND},
};
use alloy_primitives::{Address, TxHash};
use almanac_consensus::AUTHORIZATIONS_MAX;
use almanac_primitives::TimestampMs;
use std::collections::BTreeMap;

/// Half of what peers allow. The last one that is sent may exceed it.
const ALLOWANCE: Allowance = Allowance { per_second: FRUITLESS_PER_SECOND / 2, burst: FRUITLESS_AT_ONCE / 2 };

const _: () = assert!(
    (AUTHORIZATIONS_MAX as u64) < FRUITLESS_AT_ONCE / 2,
    "one transaction above half of the burst is within the burst"
);

/// When a transaction is sent: after so many signatures of each sender, then in the order of arrival.
type Turn = (u64, u64);

/// One that waits to be sent.
#[derive(Debug)]
struct Waiting {
    hash: TxHash,
    sender: Address,
    cost: u64,
}

/// Transactions that wait to be sent.
///
/// Senders take turns, by signatures: whoever sends one plain transaction comes before the long lists of others, however
/// many wait, and a long list comes when each of the others has had as many signatures as it has.
#[derive(Debug)]
pub(crate) struct Rationed {
    waiting: BTreeMap<Turn, Waiting>,
    arrived: u64,
    /// The turn of the last one that was sent.
    turn: Turn,
    /// The turns of the last ones that senders have waiting; some were taken since the last [`Self::retain`].
    last: BTreeMap<Address, Turn>,
    used: Credits<()>,
}

impl Default for Rationed {
    fn default() -> Self {
        Self {
            waiting: BTreeMap::new(),
            arrived: 0,
            turn: Turn::default(),
            last: BTreeMap::new(),
            used: Credits::new(ALLOWANCE),
        }
    }
}

impl Rationed {
    /// Adds a sender's transaction, which costs a peer so many recoveries of signatures.
    pub(crate) fn add(&mut self, hash: TxHash, sender: Address, cost: usize) {
        let cost = u64::try_from(cost).expect("a length fits 64 bits");
        self.arrived += 1;
        self.insert((u64::MAX, self.arrived), Waiting { hash, sender, cost });
    }

    /// Queues one. A turn that it had before can come nearer and is never put off.
    fn insert(&mut self, (until, arrived): Turn, waiting: Waiting) {
        let (last, _) = self.last.get(&waiting.sender).copied().unwrap_or_default();
        let turn = (last.max(self.turn.0).saturating_add(waiting.cost).min(until), arrived);
        self.last.insert(waiting.sender, turn);
        self.waiting.insert(turn, waiting);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Forgets those that the pool no longer has. Their senders' other ones come as if they had never been.
    pub(crate) fn retain(&mut self, is_pending: impl Fn(TxHash) -> bool) {
        self.last.clear();
        for (turn, waiting) in std::mem::take(&mut self.waiting) {
            if is_pending(waiting.hash) {
                self.insert(turn, waiting);
            }
        }
    }

    /// Those that may be sent now. `cost` answers with `None` for one that is not sent after all, and costs nothing.
    pub(crate) fn take(
        &mut self,
        now: TimestampMs,
        mut cost: impl FnMut(TxHash) -> Option<usize>,
    ) -> Vec<TxHash> {
        let mut taken = Vec::new();
        while self.used.is_good(&(), now) {
            let Some((turn, Waiting { hash, .. })) = self.waiting.pop_first() else { break };
            self.turn = turn;
            if let Some(cost) = cost(hash) {
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

    /// Cost of one that uses up all there is.
    const BURST: usize = 2_048;

    fn hash(n: u8) -> TxHash {
        TxHash::repeat_byte(n)
    }

    fn sender(n: u8) -> Address {
        Address::repeat_byte(n)
    }

    #[test]
    fn as_many_are_sent_as_half_of_what_peers_allow() {
        let (mut rationed, cost) = (Rationed::default(), |_| Some(1_000));
        for n in 0..5 {
            rationed.add(hash(n), sender(0), 1_000);
        }
        assert_eq!(rationed.take(START, cost), [0, 1, 2].map(hash), "the last one above half of the burst");
        assert!(rationed.take(START, cost).is_empty());
        // 3,000 are used and 2,048 allowed, and each millisecond gives back one.
        assert!(rationed.take(TimestampMs(START.0 + 952), cost).is_empty(), "exactly at the burst");
        assert_eq!(rationed.take(TimestampMs(START.0 + 953), cost), [hash(3)]);
        assert!(!rationed.is_empty());
        assert_eq!(rationed.take(TimestampMs(START.0 + 10_000), cost), [hash(4)]);
        assert!(rationed.is_empty());
    }

    #[test]
    fn what_is_not_sent_costs_nothing() {
        let mut rationed = Rationed::default();
        for n in 1..=4 {
            rationed.add(hash(n), sender(n), 1_024);
        }
        rationed.retain(|known| known != hash(4));
        let cost = |known| (known != hash(1)).then_some(1_024);
        assert_eq!(rationed.take(START, cost), [2, 3].map(hash));
        assert!(rationed.is_empty());
    }

    /// Regression: the cheapest went first however long others had waited; then a backlog of lists held up all that came
    /// later.
    #[test]
    fn senders_take_turns_by_signatures() {
        let (mut rationed, mut now) = (Rationed::default(), START);
        let next = |rationed: &mut Rationed, now: &mut TimestampMs| {
            now.0 += 1_000_000;
            rationed.take(*now, |_| Some(BURST))[..].try_into().map(|[hash]: [TxHash; 1]| hash).ok()
        };
        for n in 0..100 {
            rationed.add(hash(n), sender(1), 63);
        }
        assert_eq!(next(&mut rationed, &mut now), Some(hash(0)));
        rationed.add(hash(200), sender(2), 1);
        assert_eq!(next(&mut rationed, &mut now), Some(hash(200)), "a plain one, before the other 99");
        rationed.add(hash(201), sender(3), 130);
        // One who sends plain ones all the time.
        let before = (0..200).take_while(|n| {
            rationed.add(hash(*n), sender(4), 1);
            next(&mut rationed, &mut now) != Some(hash(201))
        });
        assert_eq!(before.count(), 131, "129 plain ones, and two of the other 99");
    }

    /// Regression: each version of a replaced list went on counting for its sender, whose other transactions then waited for
    /// as many signatures of everybody else.
    #[test]
    fn what_was_never_sent_holds_up_nothing() {
        let (mut rationed, now) = (Rationed::default(), TimestampMs(START.0 + 1_000_000));
        for n in 0..10 {
            rationed.add(hash(n), sender(1), 1_000);
        }
        rationed.add(hash(100), sender(2), 3_000);
        rationed.add(hash(10), sender(1), 1);
        rationed.retain(|known| known == hash(9) || known == hash(10) || known == hash(100));
        assert_eq!(rationed.take(now, |_| Some(1)), [9, 10, 100].map(hash));
        rationed.add(hash(0), sender(1), 1);
        rationed.retain(|_| false);
        assert!(rationed.last.is_empty() && rationed.is_empty());
    }

    /// A turn that came nearer does not go away again because others had theirs.
    #[test]
    fn nobody_is_put_off_by_the_turns_of_others() {
        let (mut rationed, mut now) = (Rationed::default(), START);
        rationed.add(hash(200), sender(1), 100);
        for n in 0..99 {
            rationed.add(hash(n), sender(2), 1);
            now.0 += 1_000_000;
            assert_eq!(rationed.take(now, |_| Some(2 * BURST)), [hash(n)]);
            rationed.retain(|_| true);
        }
        rationed.add(hash(99), sender(2), 2);
        now.0 += 1_000_000;
        assert_eq!(rationed.take(now, |_| Some(1)), [200, 99].map(hash));
    }

    #[test]
    fn senders_are_forgotten_when_their_turn_has_passed() {
        let mut rationed = Rationed::default();
        for n in 0..10 {
            rationed.add(hash(n), sender(n), usize::from(n) + 1);
        }
        assert_eq!(rationed.take(START, |_| Some(1)).len(), 10);
        rationed.retain(|_| true);
        assert!(rationed.last.is_empty());
    }
}
