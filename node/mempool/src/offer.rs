//! What a transaction pays per gas, and when it arrived.

use almanac_primitives::{GasPrice, UserTransaction};
use std::cmp::Reverse;

/// What a transaction pays per gas, and when it arrived. All ordering in the pool is based on this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// The most it pays per gas, in wei.
    pub(crate) fee_cap: u128,
    /// The most it pays beyond the base fee. At most the cap; equal to the cap for a transaction with a single
    /// price.
    pub(crate) tip_cap: u128,
    /// Position in the order of arrival; unique in a pool.
    pub(crate) arrival: u64,
}

/// Which of its two limits determines an offer's tip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The tip is its priority fee, whatever the base fee is.
    Tip,
    /// The tip is its cap less the base fee.
    Cap,
    /// Its cap is below the base fee.
    Underpriced,
}

/// The value of a transaction for a block at some base fee. Lower values leave a full pool first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Price {
    /// Its fee cap, which is below the base fee: it cannot be included now.
    Underpriced(u128),
    /// Its tip.
    Tip(u128),
}

/// Order in a block: greater goes first. By tip at the current base fee, then by earlier arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    pub(crate) tip: u128,
    pub(crate) arrival: Reverse<u64>,
}

impl Offer {
    pub(crate) fn new(transaction: &UserTransaction, arrival: u64) -> Self {
        let fee_cap = transaction.fee_cap().0;
        // At a base fee of zero only its own limits bound the tip.
        let tip_cap = transaction.tip_at(GasPrice(0)).map_or(fee_cap, |tip| tip.0);
        Self { fee_cap, tip_cap, arrival }
    }

    /// The highest base fee at which its tip is still the whole priority fee.
    pub(crate) fn full_tip_base_fee(&self) -> u128 {
        self.fee_cap - self.tip_cap
    }

    /// Which limit applies at this base fee.
    pub(crate) fn limit_at(&self, base_fee: u128) -> Limit {
        if base_fee <= self.full_tip_base_fee() {
            Limit::Tip
        } else if base_fee <= self.fee_cap {
            Limit::Cap
        } else {
            Limit::Underpriced
        }
    }

    /// Its rank in a block with this base fee; `None` if it pays too little.
    pub(crate) fn rank_at(&self, base_fee: u128) -> Option<Rank> {
        let room = self.fee_cap.checked_sub(base_fee)?;
        Some(Rank { tip: self.tip_cap.min(room), arrival: Reverse(self.arrival) })
    }

    /// Its value at this base fee.
    pub(crate) fn price_at(&self, base_fee: u128) -> Price {
        Price::of_cap(self.fee_cap, base_fee).min(Price::Tip(self.tip_cap))
    }

    /// The lowest fee cap and priority fee of a replacement.
    pub(crate) fn replacement_needed(&self, bump_percent: u32) -> (u128, u128) {
        (raised(self.fee_cap, bump_percent), raised(self.tip_cap, bump_percent))
    }

    /// Whether it pays enough more than `old` to replace it.
    pub(crate) fn replaces(&self, old: &Self, bump_percent: u32) -> bool {
        let (cap, tip) = old.replacement_needed(bump_percent);
        // The highest possible price cannot be raised, and the needed price saturates at it.
        let is_raised = self.fee_cap > old.fee_cap && self.tip_cap > old.tip_cap;
        is_raised && self.fee_cap >= cap && self.tip_cap >= tip
    }
}

impl Price {
    /// A fee cap less the base fee.
    pub(crate) fn of_cap(fee_cap: u128, base_fee: u128) -> Self {
        fee_cap.checked_sub(base_fee).map_or(Self::Underpriced(fee_cap), Self::Tip)
    }

    /// The lowest fee cap and priority fee that exceed this value at this base fee.
    pub(crate) fn beaten_by(self, base_fee: u128) -> (u128, u128) {
        match self {
            Self::Underpriced(fee_cap) => (fee_cap.saturating_add(1), 0),
            Self::Tip(tip) => (base_fee.saturating_add(tip).saturating_add(1), tip.saturating_add(1)),
        }
    }
}

/// `price` plus `percent` of it, rounded up, and at least one wei more, since a percentage of zero is zero.
fn raised(price: u128, percent: u32) -> u128 {
    let percent = u128::from(percent);
    // Split, so that the product overflows only if the sum would.
    let rise = (price / 100).saturating_mul(percent).saturating_add((price % 100 * percent).div_ceil(100));
    price.saturating_add(rise.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::U256;
    use proptest::prelude::*;

    fn offer(fee_cap: u128, tip_cap: u128) -> Offer {
        Offer { fee_cap, tip_cap, arrival: 0 }
    }

    #[test]
    fn limits_meet_where_they_should() {
        let o = offer(100, 30);
        assert_eq!(o.limit_at(70), Limit::Tip);
        assert_eq!(o.limit_at(71), Limit::Cap);
        assert_eq!(o.limit_at(100), Limit::Cap);
        assert_eq!(o.limit_at(101), Limit::Underpriced);
        assert_eq!(offer(100, 100).limit_at(0), Limit::Tip);
        assert_eq!(offer(100, 100).limit_at(1), Limit::Cap);
    }

    #[test]
    fn both_prices_must_rise() {
        let old = offer(100, 10);
        assert!(offer(110, 11).replaces(&old, 10));
        assert!(!offer(109, 11).replaces(&old, 10));
        assert!(!offer(110, 10).replaces(&old, 10));
        assert!(!offer(u128::MAX, 10).replaces(&old, 10));
        assert!(offer(112, 12).replaces(&offer(101, 10), 10), "101 + 10.1 rounds up to 112");
        assert!(!offer(111, 12).replaces(&offer(101, 10), 10));
    }

    #[test]
    fn extremes_neither_wrap_nor_stand_still() {
        assert!(!offer(100, 10).replaces(&offer(100, 10), 0), "no bump still means more");
        assert!(offer(101, 11).replaces(&offer(100, 10), 0));
        assert!(!offer(1, 0).replaces(&offer(0, 0), 10), "a tip of zero rises by a wei");
        assert!(offer(1, 1).replaces(&offer(0, 0), 10));
        let most = offer(u128::MAX, u128::MAX);
        assert!(!most.replaces(&most, 10));
        assert!(most.replaces(&offer(u128::MAX - 1, u128::MAX - 1), 10), "needed saturates at the highest");
        assert!(most.replaces(&offer(1, 1), u32::MAX));
    }

    proptest! {
        /// What beats a price has a higher value, and nothing lower beats it.
        #[test]
        fn the_price_to_beat_is_the_lowest(
            (cap, tip) in (0..60u128, 0..60u128), base_fee in 0..60u128,
        ) {
            let price = offer(cap, tip.min(cap)).price_at(base_fee);
            let (needed_cap, needed_tip) = price.beaten_by(base_fee);
            prop_assert!(offer(needed_cap, needed_tip).price_at(base_fee) > price);
            prop_assert!(offer(needed_cap - 1, needed_tip.min(needed_cap - 1)).price_at(base_fee) <= price);
            if needed_tip > 0 {
                prop_assert!(offer(needed_cap + 9, needed_tip - 1).price_at(base_fee) <= price);
            }
        }

        #[test]
        fn rise_agrees_with_wide_arithmetic(price: u128, percent: u32) {
            let (p, hundred) = (U256::from(price), U256::from(100));
            let exact = p + (p * U256::from(percent)).div_ceil(hundred).max(U256::from(1));
            prop_assert_eq!(U256::from(raised(price, percent)), exact.min(U256::from(u128::MAX)));
        }
    }
}
