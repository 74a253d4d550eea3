//! Chooses the ready transactions that leave a full pool for a newcomer that pays more.
//!
//! The sender of the cheapest transaction loses its last one, so that no gap opens in its nonces: a transaction behind
//! a cheap one ranks no higher than the cheap one. This repeats until the newcomer fits. The plan is made before
//! anything changes, so a refused newcomer costs nobody a place.

use crate::{
    config::PoolConfig,
    error::PoolError,
    offer::{Offer, Price},
    sender::{Facts, Queue, Sender, Slot},
};
use almanac_primitives::GasPrice;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Ready transactions, cheapest first at any base fee; of equals, the latest arrival first.
///
/// A transaction's tip is the lesser of its priority fee and its cap less the base fee. So the cheapest of all
/// is the first by priority fee or the first by cap. Neither list depends on the base fee, so a new block
/// changes nothing here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prices {
    by_tip: BTreeMap<(u128, Reverse<u64>), Slot>,
    by_cap: BTreeMap<(u128, Reverse<u64>), Slot>,
}

impl Prices {
    pub(crate) fn insert(&mut self, offer: &Offer, slot: Slot) {
        self.by_tip.insert((offer.tip_cap, Reverse(offer.arrival)), slot);
        self.by_cap.insert((offer.fee_cap, Reverse(offer.arrival)), slot);
    }

    pub(crate) fn remove(&mut self, offer: &Offer) {
        self.by_tip.remove(&(offer.tip_cap, Reverse(offer.arrival)));
        self.by_cap.remove(&(offer.fee_cap, Reverse(offer.arrival)));
    }

    pub(crate) fn len(&self) -> usize {
        self.by_tip.len()
    }

    /// The cheapest, except for one that leaves in any case.
    pub(crate) fn cheapest(&self, base_fee: u128, leaving: Option<Slot>) -> Option<(Price, Slot)> {
        self.iter(base_fee).find(|(_, slot)| leaving != Some(*slot))
    }

    /// All by price. Each comes twice; its first occurrence is at its price.
    fn iter(&self, base_fee: u128) -> impl Iterator<Item = (Price, Slot)> + '_ {
        let by_tip = self.by_tip.iter().map(|(&(tip, arrival), &slot)| ((Price::Tip(tip), arrival), slot));
        let by_cap = self.by_cap.iter();
        let by_cap =
            by_cap.map(move |(&(cap, arrival), &slot)| ((Price::of_cap(cap, base_fee), arrival), slot));
        let (mut by_tip, mut by_cap) = (by_tip.peekable(), by_cap.peekable());
        std::iter::from_fn(move || {
            let is_tip_next = match (by_tip.peek(), by_cap.peek()) {
                (Some((tip, _)), Some((cap, _))) => tip <= cap,
                (tip, _) => tip.is_some(),
            };
            let next = if is_tip_next { by_tip.next() } else { by_cap.next() };
            next.map(|((price, _), slot)| (price, slot))
        })
    }
}

/// By how much a limit is exceeded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Excess {
    count: usize,
    bytes: usize,
}

impl Excess {
    /// The excess of a pool with `count` transactions of `bytes` together.
    pub(crate) fn of_pool(count: usize, bytes: usize, config: &PoolConfig) -> Self {
        Self { count: count.saturating_sub(config.count_max), bytes: bytes.saturating_sub(config.bytes_max) }
    }

    /// The excess of `count` parked transactions of `bytes` together.
    pub(crate) fn of_parked(count: usize, bytes: usize, config: &PoolConfig) -> Self {
        Self {
            count: count.saturating_sub(config.parked_count_max),
            bytes: bytes.saturating_sub(config.parked_bytes_max),
        }
    }

    /// The larger of the two, per field.
    pub(crate) fn max(self, other: Self) -> Self {
        Self { count: self.count.max(other.count), bytes: self.bytes.max(other.bytes) }
    }

    pub(crate) fn is_over(self) -> bool {
        self.count > 0 || self.bytes > 0
    }

    pub(crate) fn without(self, left: &Facts) -> Self {
        Self { count: self.count.saturating_sub(1), bytes: self.bytes.saturating_sub(left.bytes) }
    }
}

/// The inputs of a decision about room.
pub(crate) struct Eviction<'a> {
    pub(crate) prices: &'a Prices,
    pub(crate) base_fee: u128,
    pub(crate) senders: &'a HashMap<Queue, Sender>,
    /// The transaction to be admitted.
    pub(crate) newcomer: &'a Facts,
    /// Leaves in any case: the one that the newcomer replaces, or the last of a sender whose share is full.
    pub(crate) leaving: Option<Slot>,
}

impl Eviction<'_> {
    /// The transactions to evict, or why the newcomer is rejected.
    ///
    /// Continues past the newcomer's own price, to report the price that would suffice. The number of steps is
    /// bounded by how many of the smallest transactions the largest one displaces.
    pub(crate) fn plan(&self, mut excess: Excess) -> Result<Vec<Slot>, PoolError> {
        let mut victims = Vec::new();
        let mut remaining_below = HashMap::new();
        let mut displaced = None;
        for (price, cheapest) in self.prices.iter(self.base_fee) {
            if !excess.is_over() {
                break;
            }
            if self.leaving == Some(cheapest) {
                continue;
            }
            let end = remaining_below.entry(cheapest.queue).or_insert(None);
            while excess.is_over() && end.is_none_or(|end| cheapest.nonce < end) {
                let victim = self.last_of(cheapest, *end)?;
                *end = Some(victim.slot.nonce);
                excess = excess.without(victim);
                displaced = Some(price);
                victims.push(victim.slot);
            }
        }
        if excess.is_over() {
            // Even an empty pool has no room: no price suffices.
            displaced = Some(Price::Tip(u128::MAX));
        }
        match displaced {
            // Of equals the latest leaves, which is the newcomer.
            Some(displaced) if self.newcomer.offer.price_at(self.base_fee) <= displaced => {
                Err(self.too_cheap(displaced))
            }
            _ => Ok(victims),
        }
    }

    /// The transaction that a newcomer displaces if its kind is at the limit, or why it is rejected: the
    /// cheapest, whose followers become parked.
    pub(crate) fn cheaper(&self) -> Result<Slot, PoolError> {
        let Some((price, cheapest)) = self.prices.cheapest(self.base_fee, self.leaving) else {
            return Err(self.too_cheap(Price::Tip(u128::MAX)));
        };
        if cheapest.queue == self.newcomer.slot.queue {
            return Err(self.behind(cheapest));
        }
        if self.newcomer.offer.price_at(self.base_fee) <= price {
            return Err(self.too_cheap(price));
        }
        Ok(cheapest)
    }

    /// The last ready transaction that the sender of the cheapest would have, including the newcomer.
    fn last_of(&self, cheapest: Slot, end: Option<u64>) -> Result<&Facts, PoolError> {
        let sender = &self.senders[&cheapest.queue];
        let mut last = sender.last_ready_below(end);
        if let Some(facts) = last
            && self.leaving == Some(facts.slot)
        {
            last = sender.last_ready_below(Some(facts.slot.nonce));
        }
        let last = last.expect("the cheapest itself is left");
        let own = self.newcomer.slot;
        if own.queue == cheapest.queue && own.nonce > last.slot.nonce {
            return Err(self.behind(cheapest));
        }
        Ok(last)
    }

    fn behind(&self, Slot { queue, nonce }: Slot) -> PoolError {
        let cheapest = self.senders[&queue].get(nonce).expect("what has a price is held");
        PoolError::BehindCheapest { nonce, fee_cap: GasPrice(cheapest.facts.offer.fee_cap) }
    }

    fn too_cheap(&self, displaced: Price) -> PoolError {
        let (needed_cap, needed_tip) = displaced.beaten_by(self.base_fee);
        PoolError::PoolFull {
            given_cap: GasPrice(self.newcomer.offer.fee_cap),
            needed_cap: GasPrice(needed_cap),
            given_tip: GasPrice(self.newcomer.offer.tip_cap),
            needed_tip: GasPrice(needed_tip),
        }
    }
}
