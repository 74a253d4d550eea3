//! The order of senders for a block, maintained without sorting again when the base fee changes.
//!
//! Only a sender's first ready transaction, its front, is ordered. Which of its limits decides a front's tip
//! depends on the base fee, but within one kind the order does not:
//!
//! ```text
//!   base fee:      0 ........ full_tip_base_fee ........ fee_cap ........
//!   limited by:    tip: by priority fee        | cap: by fee cap | underpriced: not offered
//! ```
//!
//! So there is one ordered list per kind, and a new base fee moves only the fronts for which one of the two
//! borders lies between the old fee and the new. Two indexes by border find those.

use crate::{
    offer::{Limit, Offer, Rank},
    sender::Queue,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, btree_map};
use std::ops::Range;

/// A price, and the arrival as a tie-breaker.
type Key<Price> = (Price, u64);

/// The fronts of all senders that have one, in order.
#[derive(Clone, Debug)]
pub(crate) struct Fronts {
    base_fee: u128,
    offers: HashMap<Queue, Offer>,
    tip_limited: BTreeMap<Key<Reverse<u128>>, Queue>,
    cap_limited: BTreeMap<Key<Reverse<u128>>, Queue>,
    by_full_tip_base_fee: BTreeMap<Key<u128>, Queue>,
    by_fee_cap: BTreeMap<Key<u128>, Queue>,
}

impl Fronts {
    pub(crate) fn new(base_fee: u128) -> Self {
        Self {
            base_fee,
            offers: HashMap::new(),
            tip_limited: BTreeMap::new(),
            cap_limited: BTreeMap::new(),
            by_full_tip_base_fee: BTreeMap::new(),
            by_fee_cap: BTreeMap::new(),
        }
    }

    pub(crate) fn base_fee(&self) -> u128 {
        self.base_fee
    }

    /// Says what a sender's front offers now, or that it has none.
    pub(crate) fn set(&mut self, sender: Queue, front: Option<Offer>) {
        if self.offers.get(&sender) == front.as_ref() {
            return;
        }
        if let Some(old) = self.offers.remove(&sender) {
            self.unlist(&old);
            self.by_full_tip_base_fee.remove(&(old.full_tip_base_fee(), old.arrival));
            self.by_fee_cap.remove(&(old.fee_cap, old.arrival));
        }
        if let Some(new) = front {
            self.offers.insert(sender, new);
            self.by_full_tip_base_fee.insert((new.full_tip_base_fee(), new.arrival), sender);
            self.by_fee_cap.insert((new.fee_cap, new.arrival), sender);
            self.list(sender, &new);
        }
    }

    /// Changes the base fee. The cost is proportional to the heads that are affected.
    pub(crate) fn set_base_fee(&mut self, base_fee: u128) {
        let moving = self.crossed_by(base_fee);
        for (_, offer) in &moving {
            self.unlist(offer);
        }
        self.base_fee = base_fee;
        for (sender, offer) in &moving {
            self.list(*sender, offer);
        }
    }

    /// Walks the fronts, best first.
    pub(crate) fn iter(&self) -> FrontsIter<'_> {
        FrontsIter {
            base_fee: self.base_fee,
            tip_limited: self.tip_limited.iter(),
            cap_limited: self.cap_limited.iter(),
            next_by_tip: None,
            next_by_cap: None,
        }
        .filled()
    }

    /// Heads with a border between the current base fee and another; twice if both borders are.
    fn crossed_by(&self, base_fee: u128) -> Vec<(Queue, Offer)> {
        // A base fee on the border belongs to the side below, so the range is half open in either direction.
        let span = self.base_fee.min(base_fee)..self.base_fee.max(base_fee);
        let senders = within(&self.by_full_tip_base_fee, &span).chain(within(&self.by_fee_cap, &span));
        senders.map(|sender| (sender, self.offers[&sender])).collect()
    }

    fn list(&mut self, sender: Queue, offer: &Offer) {
        match offer.limit_at(self.base_fee) {
            Limit::Tip => self.tip_limited.insert(by_tip(offer), sender),
            Limit::Cap => self.cap_limited.insert(by_cap(offer), sender),
            Limit::Underpriced => None,
        };
    }

    fn unlist(&mut self, offer: &Offer) {
        match offer.limit_at(self.base_fee) {
            Limit::Tip => self.tip_limited.remove(&by_tip(offer)),
            Limit::Cap => self.cap_limited.remove(&by_cap(offer)),
            Limit::Underpriced => None,
        };
    }
}

fn within<'a>(index: &'a BTreeMap<Key<u128>, Queue>, span: &Range<u128>) -> impl Iterator<Item = Queue> + 'a {
    index.range((span.start, 0)..(span.end, 0)).map(|(_, sender)| *sender)
}

fn by_tip(offer: &Offer) -> Key<Reverse<u128>> {
    (Reverse(offer.tip_cap), offer.arrival)
}

fn by_cap(offer: &Offer) -> Key<Reverse<u128>> {
    (Reverse(offer.fee_cap), offer.arrival)
}

/// The two ordered lists, merged lazily.
#[derive(Clone, Debug)]
pub(crate) struct FrontsIter<'a> {
    base_fee: u128,
    tip_limited: btree_map::Iter<'a, Key<Reverse<u128>>, Queue>,
    cap_limited: btree_map::Iter<'a, Key<Reverse<u128>>, Queue>,
    next_by_tip: Option<(Rank, Queue)>,
    next_by_cap: Option<(Rank, Queue)>,
}

impl FrontsIter<'_> {
    /// The rank of the next front.
    pub(crate) fn peek(&self) -> Option<Rank> {
        self.next_by_tip.max(self.next_by_cap).map(|(rank, _)| rank)
    }

    fn filled(mut self) -> Self {
        self.fill_by_tip();
        self.fill_by_cap();
        self
    }

    fn fill_by_tip(&mut self) {
        self.next_by_tip = self.tip_limited.next().map(|(&(Reverse(tip_cap), arrival), sender)| {
            (Rank { tip: tip_cap, arrival: Reverse(arrival) }, *sender)
        });
    }

    fn fill_by_cap(&mut self) {
        self.next_by_cap = self.cap_limited.next().map(|(&(Reverse(fee_cap), arrival), sender)| {
            (Rank { tip: fee_cap - self.base_fee, arrival: Reverse(arrival) }, *sender)
        });
    }
}

impl Iterator for FrontsIter<'_> {
    type Item = Queue;

    fn next(&mut self) -> Option<Queue> {
        let by_tip = self.next_by_tip.map(|(rank, _)| rank);
        let by_cap = self.next_by_cap.map(|(rank, _)| rank);
        // `None` ranks below `Some`, so an exhausted list never wins.
        let (_, sender) = if by_tip >= by_cap {
            let next = self.next_by_tip?;
            self.fill_by_tip();
            next
        } else {
            let next = self.next_by_cap?;
            self.fill_by_cap();
            next
        };
        Some(sender)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::Address;
    use proptest::prelude::*;

    fn sender(index: usize) -> Queue {
        Queue::sequence(Address::with_last_byte(u8::try_from(index).unwrap()))
    }

    fn fronts(offers: &[(u128, u128)], base_fee: u128) -> Fronts {
        let mut fronts = Fronts::new(base_fee);
        for (index, &(fee_cap, tip)) in offers.iter().enumerate() {
            let offer = Offer { fee_cap, tip_cap: tip.min(fee_cap), arrival: index as u64 };
            fronts.set(sender(index), Some(offer));
        }
        fronts
    }

    #[test]
    fn a_fee_that_crosses_nothing_moves_nothing() {
        let fronts = fronts(&[(100, 10), (200, 20)], 50);
        assert_eq!(fronts.crossed_by(90), [], "at its border a front still tips in full");
        assert_eq!(fronts.crossed_by(91).len(), 1);
        assert_eq!(fronts.crossed_by(100).len(), 1);
        assert_eq!(fronts.crossed_by(101).len(), 2, "both borders of the first");
        assert_eq!(fronts.crossed_by(0), []);
    }

    #[test]
    fn fronts_that_leave_are_forgotten_everywhere() {
        let mut fronts = fronts(&[(100, 10), (100, 100), (1, 1)], 50);
        for index in 0..3 {
            fronts.set(sender(index), None);
        }
        assert!(fronts.tip_limited.is_empty() && fronts.cap_limited.is_empty());
        assert!(fronts.by_fee_cap.is_empty() && fronts.by_full_tip_base_fee.is_empty());
        assert!(fronts.offers.is_empty());
    }

    proptest! {
        /// However the base fee moved, the order equals sorting all heads at the last one.
        #[test]
        fn order_is_that_of_a_fresh_sort(
            offers in prop::collection::vec((0..40u128, 0..40u128), 0..40),
            base_fees in prop::collection::vec(0..45u128, 1..6),
        ) {
            let mut fronts = fronts(&offers, base_fees[0]);
            for &base_fee in &base_fees {
                let changing = fronts
                    .offers
                    .values()
                    .filter(|offer| offer.limit_at(fronts.base_fee) != offer.limit_at(base_fee))
                    .count();
                let mut moving = fronts.crossed_by(base_fee);
                moving.sort_by_key(|(sender, _)| *sender);
                moving.dedup_by_key(|(sender, _)| *sender);
                prop_assert_eq!(moving.len(), changing, "moves exactly those that change their kind");

                fronts.set_base_fee(base_fee);
                let mut sorted: Vec<_> = offers
                    .iter()
                    .enumerate()
                    .filter(|(_, (cap, _))| *cap >= base_fee)
                    .map(|(index, (cap, tip))| (Reverse((*tip).min(cap - base_fee)), index))
                    .collect();
                sorted.sort_unstable();
                let expected: Vec<_> = sorted.into_iter().map(|(_, index)| sender(index)).collect();
                prop_assert_eq!(fronts.iter().collect::<Vec<_>>(), expected);
            }
        }
    }
}
