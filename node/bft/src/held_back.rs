//! Transactions that stay here while they cannot be sent, and what keeps others of their senders from overtaking them.
//!
//! A peer that gets a transaction before an earlier one of the same sender lets it wait, where it may displace others, or
//! refuses it; either way it counts what that costs. Orderless transactions overtake nothing.

use alloy_primitives::{Address, TxHash};
use almanac_mempool::Pool;
use almanac_primitives::RecoveredTransaction;
use std::collections::{BTreeMap, BTreeSet};

/// A sender and its sequence number.
pub(crate) type Place = (Address, u64);

#[derive(Default)]
pub(crate) struct HeldBack {
    /// Ordered transactions that have not been sent, and are not about to be.
    unsent: BTreeMap<Place, TxHash>,
    /// Those that cannot be sent now, ordered or not. The others wait elsewhere, or expire before a peer gets them.
    parked: BTreeSet<TxHash>,
}

impl HeldBack {
    /// Whether something at an earlier place of the same sender is held back.
    pub(crate) fn is_overtaken_by(&self, place: Option<Place>) -> bool {
        place.is_some_and(|(sender, nonce)| self.unsent.range((sender, 0)..(sender, nonce)).next().is_some())
    }

    /// Holds up what its sender sends behind it.
    pub(crate) fn hold(&mut self, place: Option<Place>, hash: TxHash) {
        if let Some(place) = place {
            self.unsent.insert(place, hash);
        }
    }

    /// Keeps one until it can be sent.
    pub(crate) fn park(&mut self, transaction: &RecoveredTransaction) {
        self.hold(place_of(transaction), transaction.hash());
        self.parked.insert(transaction.hash());
    }

    /// Lets go of one that is sent.
    pub(crate) fn release(&mut self, transaction: &RecoveredTransaction) {
        if let Some(place) = place_of(transaction) {
            self.unsent.remove(&place);
        }
    }

    /// Takes out those that can be sent now, each sender's in their order. They are held back until they are released.
    pub(crate) fn take_ready<'a>(&mut self, pool: &'a Pool) -> Vec<&'a RecoveredTransaction> {
        let ready = self.parked.extract_if(.., |hash| pool.is_ready(*hash));
        let mut ready: Vec<_> = ready.filter_map(|hash| pool.get(hash)).collect();
        ready.sort_by_key(|transaction| place_of(transaction));
        ready
    }

    /// Forgets those that the pool no longer has.
    pub(crate) fn retain(&mut self, is_pending: impl Fn(TxHash) -> bool) {
        self.unsent.retain(|_, hash| is_pending(*hash));
        self.parked.retain(|hash| is_pending(*hash));
    }
}

/// Its place, if it is ordered.
pub(crate) fn place_of(transaction: &RecoveredTransaction) -> Option<Place> {
    let is_ordered = !transaction.transaction().is_orderless();
    is_ordered.then(|| (transaction.sender(), transaction.transaction().nonce()))
}

#[cfg(test)]
impl HeldBack {
    pub(crate) fn is_empty(&self) -> bool {
        self.unsent.is_empty() && self.parked.is_empty()
    }
}
