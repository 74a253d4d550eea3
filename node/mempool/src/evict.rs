//! Who leaves a full pool for a newcomer.
//!
//! The cheapest transaction marks the sender that gives way, and that sender loses its last transaction, so
//! that no gap is torn into it. The same again until all fits. A plan is made before anything is touched: a
//! newcomer that is refused has cost nobody a place.

use crate::{
    config::PoolConfig,
    error::PoolError,
    offer::Offer,
    sender::{Pending, Sender, Slot},
};
use alloy_primitives::Address;
use almanac_primitives::GasPrice;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// All transactions of a pool, cheapest first; of equals, the latest arrival first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prices(BTreeMap<(u128, Reverse<u64>), Slot>);

impl Prices {
    pub(crate) fn insert(&mut self, offer: &Offer, slot: Slot) {
        self.0.insert((offer.fee_cap, Reverse(offer.arrival)), slot);
    }

    pub(crate) fn remove(&mut self, offer: &Offer) {
        self.0.remove(&(offer.fee_cap, Reverse(offer.arrival)));
    }

    fn iter(&self) -> impl Iterator<Item = (u128, Slot)> + '_ {
        self.0.iter().map(|(&(fee_cap, _), &slot)| (fee_cap, slot))
    }
}

/// By how much a pool is over its bounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Excess {
    count: usize,
    bytes: usize,
}

impl Excess {
    /// What a pool that holds `count` transactions of `bytes` together has too much.
    pub(crate) fn new(count: usize, bytes: usize, config: &PoolConfig) -> Self {
        Self { count: count.saturating_sub(config.count_max), bytes: bytes.saturating_sub(config.bytes_max) }
    }

    fn is_over(self) -> bool {
        self.count > 0 || self.bytes > 0
    }

    fn without(self, pending: &Pending) -> Self {
        Self { count: self.count.saturating_sub(1), bytes: self.bytes.saturating_sub(pending.bytes()) }
    }
}

/// A decision about room in the making.
pub(crate) struct Eviction<'a> {
    pub(crate) prices: &'a Prices,
    pub(crate) senders: &'a HashMap<Address, Sender>,
    /// Wants to come in.
    pub(crate) newcomer: &'a Pending,
    /// Leaves in any case: the one that the newcomer replaces, or crowds out of its sender's share.
    pub(crate) leaving: Option<Slot>,
}

impl Eviction<'_> {
    /// The transactions that leave, or why the newcomer must not come in.
    ///
    /// Carries on past the newcomer's own price, to name the one that would do. The number of steps is
    /// bounded by how many of the smallest transactions the largest one displaces.
    pub(crate) fn plan(&self, mut excess: Excess) -> Result<Vec<Slot>, PoolError> {
        let mut victims = Vec::new();
        let mut remaining_below = HashMap::new();
        let mut cap_displaced = None;
        for (fee_cap, cheapest) in self.prices.iter() {
            if !excess.is_over() {
                break;
            }
            if self.leaving == Some(cheapest) {
                continue;
            }
            let end = remaining_below.entry(cheapest.sender).or_insert(None);
            while excess.is_over() && end.is_none_or(|end| cheapest.nonce < end) {
                let victim = self.last_of(cheapest, *end, fee_cap)?;
                *end = Some(victim.nonce());
                excess = excess.without(victim);
                cap_displaced = Some(fee_cap);
                victims.push(victim.slot());
            }
        }
        if excess.is_over() {
            // Not even an empty pool has room: no price helps.
            cap_displaced = Some(u128::MAX);
        }
        let fee_cap = self.newcomer.offer.fee_cap;
        match cap_displaced {
            // Of equals the latest leaves, and that is the newcomer.
            Some(displaced) if fee_cap <= displaced => Err(PoolError::PoolFull {
                fee_cap: GasPrice(fee_cap),
                needed: GasPrice(displaced.saturating_add(1)),
            }),
            _ => Ok(victims),
        }
    }

    /// The last transaction that the owner of the cheapest would have with the newcomer in.
    fn last_of(&self, cheapest: Slot, end: Option<u64>, fee_cap: u128) -> Result<&Pending, PoolError> {
        let sender = &self.senders[&cheapest.sender];
        let mut last = sender.highest_below(end);
        if let Some(pending) = last
            && self.leaving == Some(pending.slot())
        {
            last = sender.highest_below(Some(pending.nonce()));
        }
        let last = last.expect("the cheapest itself is left");
        let own = self.newcomer.slot();
        if own.sender == cheapest.sender && own.nonce > last.nonce() {
            return Err(PoolError::BehindCheapest { nonce: cheapest.nonce, fee_cap: GasPrice(fee_cap) });
        }
        Ok(last)
    }
}
