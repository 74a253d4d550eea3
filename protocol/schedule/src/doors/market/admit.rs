//! AIP-125's rules of admission: which orders may become scheduled transactions, and what deposit they need.

use super::terms::due;
use crate::decide::Moment;
use alloy_primitives::{Address, U256};
use almanac_primitives::{
    Gas, GasPrice, TimestampMs, Wei,
    params::{
        MARKET_EXPIRY_BLOCKS, MARKET_EXPIRY_BLOCKS_LARGEST, MARKET_INPUT_BYTES_MAX, MARKET_RUN_GAS_MAX,
        Parameters, SCHEDULE_AHEAD_SECONDS_MAX, SECOND_MS,
    },
};

/// What somebody asks for, as it came: any number may be in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The contract that is to be called.
    pub to: Address,
    /// How many bytes of calldata go with the call.
    pub input_bytes: usize,
    /// The gas that the call costs before its first step.
    pub intrinsic_gas: Gas,
    /// When to run, in milliseconds.
    pub scheduled_ms: u64,
    /// Gas that the run may use.
    pub gas_limit: Gas,
    /// The most that it pays per gas.
    pub bid: u64,
    /// Value that goes with the call.
    pub value: Wei,
    /// Blocks to wait for a price; 0 is the parameter.
    pub expiry_blocks: u32,
}

/// An order that passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// When its run is due.
    pub due: TimestampMs,
    /// Blocks that it waits for a price.
    pub expiry_blocks: u32,
    /// What it needs: the most that its gas can cost, and the value.
    pub deposit: Wei,
}

/// Why an order is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the messages say it, and contracts/IScheduledTransactions.sol has the same names"
)]
pub enum OrderError {
    #[error("the target is the zero address")]
    TargetIsZero,
    #[error("calldata of {given} bytes is longer than {max}")]
    InputTooLong { given: usize, max: u64 },
    #[error("time {given} ms is not after the block's, {now} ms")]
    TimeNotInFuture { given: u64, now: u64 },
    #[error("time {given} ms is after the horizon, {max} ms")]
    TimeBeyondHorizon { given: u64, max: u64 },
    #[error("{given} gas is outside {min}..={max}")]
    GasAmountOutOfBounds { given: u64, min: u64, max: u64 },
    #[error("{given} wei per gas is below the base fee, {base_fee}")]
    GasUnitPriceTooLow { given: u64, base_fee: GasPrice },
    #[error("an expiry of {given} blocks is above {max}")]
    ExpiryOutOfBounds { given: u32, max: u64 },
}

/// Checks an order against the rules in force in a block (AIP125-04, -05, -08).
pub fn admit(order: Order, parameters: &Parameters, moment: Moment) -> Result<Admitted, OrderError> {
    if order.to.is_zero() {
        return Err(OrderError::TargetIsZero);
    }
    let (given, max) = (order.input_bytes, parameters.get(MARKET_INPUT_BYTES_MAX));
    if given as u64 > max {
        return Err(OrderError::InputTooLong { given, max });
    }
    check_time(order.scheduled_ms, parameters, moment.now)?;
    let (given, min, max) = (order.gas_limit.0, order.intrinsic_gas.0, parameters.get(MARKET_RUN_GAS_MAX));
    if !(min..=max).contains(&given) {
        return Err(OrderError::GasAmountOutOfBounds { given, min, max });
    }
    let (given, base_fee) = (order.bid, moment.base_fee);
    if u128::from(given) < base_fee.0 {
        return Err(OrderError::GasUnitPriceTooLow { given, base_fee });
    }
    Ok(Admitted {
        due: due(order.scheduled_ms),
        expiry_blocks: expiry(order.expiry_blocks, parameters)?,
        deposit: deposit(&order),
    })
}

/// AIP125-04.
fn check_time(given: u64, parameters: &Parameters, now: TimestampMs) -> Result<(), OrderError> {
    if given <= now.0 {
        return Err(OrderError::TimeNotInFuture { given, now: now.0 });
    }
    let ahead = parameters.get(SCHEDULE_AHEAD_SECONDS_MAX).saturating_mul(SECOND_MS);
    let max = now.0.saturating_add(ahead);
    if given > max {
        return Err(OrderError::TimeBeyondHorizon { given, max });
    }
    Ok(())
}

/// AIP125-11: the parameter of this block, or the sender's own number.
fn expiry(given: u32, parameters: &Parameters) -> Result<u32, OrderError> {
    let max = MARKET_EXPIRY_BLOCKS_LARGEST;
    match given {
        0 => Ok(u32::try_from(parameters.get(MARKET_EXPIRY_BLOCKS)).unwrap_or(u32::MAX)),
        given if u64::from(given) > max => Err(OrderError::ExpiryOutOfBounds { given, max }),
        given => Ok(given),
    }
}

/// AIP125-05. A value that overflows needs more than there is.
fn deposit(order: &Order) -> Wei {
    let gas = U256::from(order.gas_limit.0) * U256::from(order.bid);
    Wei(gas.saturating_add(order.value.0))
}
