//! The parked transactions: how much room each sender uses, and since when.
//!
//! The price of a transaction that cannot run is meaningless, because it is never charged. So if there is no
//! room, the sender with the largest share loses its last transaction, not the cheapest sender; of equals, the
//! one that came first. One account cannot crowd the others out, and many accounts cannot keep a newcomer out.

use crate::{
    evict::Excess,
    sender::{Facts, Queue, Sender, Slot},
};
use almanac_primitives::{DurationMs, TimestampMs};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Bytes that weigh as much as a transaction. Coarse, because signatures differ by a byte or two, and that must
/// not decide anything.
const WEIGHT_BYTES: usize = 1_024;

/// All parked transactions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parked {
    count: usize,
    bytes: usize,
    shares: HashMap<Queue, Share>,
    by_share: BTreeSet<(Share, Queue)>,
    by_age: BTreeMap<(TimestampMs, u64), Slot>,
}

/// The share of one sender. The greater share yields first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Share {
    weight: usize,
    /// Arrival of its last transaction, the one that would leave.
    arrival: Reverse<u64>,
}

/// The weight of a transaction in its sender's share.
fn weight(facts: &Facts) -> usize {
    1 + facts.bytes / WEIGHT_BYTES
}

impl Parked {
    pub(crate) fn insert(&mut self, facts: &Facts, at: TimestampMs) {
        self.count += 1;
        self.bytes += facts.bytes;
        self.by_age.insert((at, facts.offer.arrival), facts.slot);
        let sender = facts.slot.queue;
        let share = self.unlist(sender).unwrap_or(Share { weight: 0, arrival: Reverse(facts.offer.arrival) });
        self.list(sender, Share { weight: share.weight + weight(facts), ..share });
    }

    pub(crate) fn remove(&mut self, facts: &Facts, at: TimestampMs) {
        self.count -= 1;
        self.bytes -= facts.bytes;
        self.by_age.remove(&(at, facts.offer.arrival));
        let sender = facts.slot.queue;
        let share = self.unlist(sender).expect("the sender of a parked transaction has a share");
        self.list(sender, Share { weight: share.weight - weight(facts), ..share });
    }

    /// Sets which transaction of a sender would leave first.
    pub(crate) fn set_last(&mut self, sender: Queue, last: Option<&Facts>) {
        if let Some(last) = last
            && let Some(share) = self.unlist(sender)
        {
            self.list(sender, Share { arrival: Reverse(last.offer.arrival), ..share });
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The one parked longest, if that is at least `time`.
    pub(crate) fn expired(&self, now: TimestampMs, time: DurationMs) -> Option<Slot> {
        let (&(at, _), &slot) = self.by_age.first_key_value()?;
        (now.0.saturating_sub(at.0) >= time.0).then_some(slot)
    }

    /// The share of a parked newcomer's sender, including the newcomer and without the one that leaves for it.
    pub(crate) fn weight_with(&self, newcomer: &Facts, leaving: Option<&Facts>) -> usize {
        let held = self.shares.get(&newcomer.slot.queue).map_or(0, |share| share.weight);
        held + weight(newcomer) - leaving.map_or(0, weight)
    }

    /// The parked transactions to evict, and the excess that remains. For a parked newcomer, only senders with
    /// at least its own sender's share yield.
    pub(crate) fn plan(
        &self,
        senders: &HashMap<Queue, Sender>,
        mut excess: Excess,
        newcomer: Option<(Queue, usize)>,
        leaving: Option<Slot>,
    ) -> (Vec<Slot>, Excess) {
        let mut victims = Vec::new();
        for (share, sender) in self.by_share.iter().rev() {
            if !excess.is_over() || newcomer.is_some_and(|(_, weight)| share.weight < weight) {
                break;
            }
            if newcomer.is_some_and(|(own, _)| own == *sender) {
                continue;
            }
            for facts in senders[sender].parked_from_last().filter(|facts| leaving != Some(facts.slot)) {
                if !excess.is_over() {
                    break;
                }
                excess = excess.without(facts);
                victims.push(facts.slot);
            }
        }
        (victims, excess)
    }

    fn unlist(&mut self, sender: Queue) -> Option<Share> {
        let share = self.shares.remove(&sender)?;
        self.by_share.remove(&(share, sender));
        Some(share)
    }

    fn list(&mut self, sender: Queue, share: Share) {
        if share.weight > 0 {
            self.shares.insert(sender, share);
            self.by_share.insert((share, sender));
        }
    }
}
