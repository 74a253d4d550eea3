//! The pending transactions in the order a block builder wants them.

use crate::fronts::FrontsIter;
use crate::offer::Rank;
use crate::pool::Pool;
use crate::sender::{Pending, Queue, Slot};
use alloy_primitives::Address;
use almanac_primitives::RecoveredTransaction;
use std::collections::{BinaryHeap, HashSet};

/// Ready transactions, highest tip at the current base fee first; each sender's in nonce order; equals by
/// arrival. Lazy: reading a few does not sort the whole pool.
#[derive(Clone, Debug)]
pub struct Best<'a> {
    pool: &'a Pool,
    fronts: FrontsIter<'a>,
    /// What follows the transactions already given out, at most one per sender.
    followers: BinaryHeap<(Rank, Slot)>,
    skipped: HashSet<Queue>,
}

impl<'a> Best<'a> {
    pub(crate) fn new(pool: &'a Pool, fronts: FrontsIter<'a>) -> Self {
        Self { pool, fronts, followers: BinaryHeap::new(), skipped: HashSet::new() }
    }

    /// Skips the rest of this sender's sequence numbers: one of them was rejected or does not fit, so those after it
    /// cannot run in this block.
    pub fn skip_sender(&mut self, sender: Address) {
        self.skipped.insert(Queue::sequence(sender));
    }

    /// Skips what cannot run without this one: nothing, if it is orderless.
    pub fn skip_after(&mut self, transaction: &RecoveredTransaction) {
        if !transaction.transaction().is_orderless() {
            self.skip_sender(transaction.sender());
        }
    }

    fn next_pending(&mut self) -> Option<&'a Pending> {
        let follower = self.followers.peek().map(|(rank, _)| *rank);
        if follower > self.fronts.peek() {
            let (_, slot) = self.followers.pop()?;
            self.pool.ready(slot)
        } else {
            self.pool.front(self.fronts.next()?)
        }
    }

    fn push_follower(&mut self, slot: Slot) {
        let Some(nonce) = slot.nonce.checked_add(1) else {
            return;
        };
        let slot = Slot { nonce, ..slot };
        // A transaction that pays too little blocks those after it.
        if let Some(rank) =
            self.pool.ready(slot).and_then(|next| next.facts.offer.rank_at(self.pool.base_fee().0))
        {
            self.followers.push((rank, slot));
        }
    }
}

impl<'a> Iterator for Best<'a> {
    type Item = &'a RecoveredTransaction;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let pending = self.next_pending()?;
            let slot = pending.facts.slot;
            if !self.skipped.contains(&slot.queue) {
                self.push_follower(slot);
                return Some(&pending.transaction);
            }
        }
    }
}
