//! Transactions that wait to be passed on, and whose turn it is.
//!
//! Senders take turns, by what their transactions cost: one cheap transaction comes before the expensive ones of others,
//! however many wait, and an expensive one comes when each of the others has had as much as it costs.

use alloy_primitives::{Address, TxHash};
use std::collections::BTreeMap;

/// When a transaction is sent: after so much of each sender, then in the order of arrival.
type Turn = (u64, u64);

/// One that waits to be sent.
#[derive(Debug)]
struct Waiting {
    hash: TxHash,
    sender: Address,
    cost: u64,
}

/// Transactions that wait to be sent. Those of a sender keep their order.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    waiting: BTreeMap<Turn, Waiting>,
    arrived: u64,
    /// The turn of the last one that was sent.
    turn: Turn,
    /// The turns of the last ones that senders have waiting; some were taken since the last [`Self::retain`].
    last: BTreeMap<Address, Turn>,
}

impl Turns {
    /// Adds a sender's transaction, which costs so much.
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

    /// Takes out the one whose turn it is.
    pub(crate) fn next(&mut self) -> Option<TxHash> {
        let (turn, Waiting { hash, .. }) = self.waiting.pop_first()?;
        self.turn = turn;
        Some(hash)
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(n: u8) -> TxHash {
        TxHash::repeat_byte(n)
    }

    fn sender(n: u8) -> Address {
        Address::repeat_byte(n)
    }

    /// The next ones, up to so many.
    fn take(turns: &mut Turns, count: usize) -> Vec<TxHash> {
        std::iter::from_fn(|| turns.next()).take(count).collect()
    }

    /// Regression: the cheapest went first however long others had waited; then a backlog of lists held up all that came
    /// later.
    #[test]
    fn senders_take_turns_by_cost() {
        let mut turns = Turns::default();
        for n in 0..100 {
            turns.add(hash(n), sender(1), 63);
        }
        assert_eq!(turns.next(), Some(hash(0)));
        turns.add(hash(200), sender(2), 1);
        assert_eq!(turns.next(), Some(hash(200)), "a cheap one, before the other 99");
        turns.add(hash(201), sender(3), 130);
        // One who sends cheap ones all the time.
        let before = (0..200).take_while(|n| {
            turns.add(hash(*n), sender(4), 1);
            turns.next() != Some(hash(201))
        });
        assert_eq!(before.count(), 131, "129 cheap ones, and two of the other 99");
    }

    /// Regression: each version of a replaced list went on counting for its sender, whose other transactions then waited for
    /// as many signatures of everybody else.
    #[test]
    fn what_was_never_sent_holds_up_nothing() {
        let mut turns = Turns::default();
        for n in 0..10 {
            turns.add(hash(n), sender(1), 1_000);
        }
        turns.add(hash(100), sender(2), 3_000);
        turns.add(hash(10), sender(1), 1);
        turns.retain(|known| known == hash(9) || known == hash(10) || known == hash(100));
        assert_eq!(take(&mut turns, 4), [9, 10, 100].map(hash));
        turns.add(hash(0), sender(1), 1);
        turns.retain(|_| false);
        assert!(turns.last.is_empty() && turns.is_empty());
    }

    /// A turn that came nearer does not go away again because others had theirs.
    #[test]
    fn nobody_is_put_off_by_the_turns_of_others() {
        let mut turns = Turns::default();
        turns.add(hash(200), sender(1), 100);
        for n in 0..99 {
            turns.add(hash(n), sender(2), 1);
            assert_eq!(turns.next(), Some(hash(n)));
            turns.retain(|_| true);
        }
        turns.add(hash(99), sender(2), 2);
        assert_eq!(take(&mut turns, 3), [200, 99].map(hash));
    }

    #[test]
    fn senders_are_forgotten_when_their_turn_has_passed() {
        let mut turns = Turns::default();
        for n in 0..10 {
            turns.add(hash(n), sender(n), usize::from(n) + 1);
        }
        assert_eq!(take(&mut turns, 11).len(), 10);
        turns.retain(|_| true);
        assert!(turns.last.is_empty());
    }
}
