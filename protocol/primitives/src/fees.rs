//! The EIP-1559 base fee, with a floor.

use crate::{
    params::{BASE_FEE_CHANGE_DENOMINATOR, BASE_FEE_MAX, GAS_TARGET_DIVISOR},
    units::{Gas, GasPrice},
};

/// The base fee of the block after one that used `gas_used` of `gas_limit` at `base_fee`.
pub fn next_base_fee(base_fee: GasPrice, gas_used: Gas, gas_limit: Gas, floor: GasPrice) -> GasPrice {
    let target = u128::from(gas_limit.0 / GAS_TARGET_DIVISOR).max(1);
    let used = u128::from(gas_used.0);
    let step = |distance: u128| {
        // Capped like the fee of any real block could be: u128 holds it with room to spare, and an absurd
        // fee saturates instead of wrapping.
        base_fee.0.saturating_mul(distance) / target / BASE_FEE_CHANGE_DENOMINATOR
    };
    let next = if used > target {
        base_fee.0.saturating_add(step(used - target).max(1))
    } else {
        base_fee.0.saturating_sub(step(target - used))
    };
    GasPrice(next.max(floor.0).min(BASE_FEE_MAX.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: Gas = Gas(30_000_000);

    fn next(base_fee: u128, used: u64, floor: u128) -> u128 {
        next_base_fee(GasPrice(base_fee), Gas(used), LIMIT, GasPrice(floor)).0
    }

    #[test]
    fn moves_by_an_eighth_at_most() {
        assert_eq!(next(800, 30_000_000, 1), 900);
        assert_eq!(next(800, 0, 1), 700);
        assert_eq!(next(800, 15_000_000, 1), 800);
        assert_eq!(next(1, 15_000_001, 1), 2, "above the target it always rises");
    }

    #[test]
    fn never_below_the_floor() {
        assert_eq!(next(800, 0, 750), 750);
        assert_eq!(next(0, 0, 7), 7);
        assert_eq!(next(800, 0, 700), 700);
    }

    proptest! {
        /// The formula of EIP-1559, written out dully in wide integers.
        #[test]
        fn agrees_with_the_written_rule(base in 0..u128::from(u64::MAX), used in 0..=LIMIT.0, floor in 0..2_000u128) {
            use alloy_primitives::U256;
            let target = U256::from(LIMIT.0 / 2);
            let (b, u) = (U256::from(base), U256::from(used));
            let expected = if u > target {
                b + (b * (u - target) / target / U256::from(8)).max(U256::from(1))
            } else {
                b - b * (target - u) / target / U256::from(8)
            }.max(U256::from(floor)).min(U256::from(u64::MAX));
            prop_assert_eq!(U256::from(next(base, used, floor)), expected);
        }
    }
}
