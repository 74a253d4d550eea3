//! FLIP-330's rules of admission: which orders may become callbacks, and what they cost.

use super::{CallbackTerms, Priority};
use crate::decide::Moment;
use alloy_primitives::U256;
use almanac_primitives::{
    Gas, TimestampMs, Wei,
    params::{
        CALLBACK_DATA_BYTES_MAX, CALLBACK_EFFORT_MAX, CALLBACK_EFFORT_MIN, CALLBACK_ENABLED,
        CALLBACK_FEE_FLOOR_WEI, CALLBACK_HIGH_PERCENT, CALLBACK_LOW_EFFORT_MAX, CALLBACK_LOW_PERCENT,
        CALLBACK_MEDIUM_PERCENT, CALLBACK_PAUSED, CALLBACK_REFUND_BPS, EFFORT_GAS, Parameter, Parameters,
        SCHEDULE_AHEAD_SECONDS_MAX,
    },
};

/// What somebody asks for, as it came: any number may be in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// How many bytes of data go to the handler.
    pub data_bytes: usize,
    /// The gas that the call costs before the handler's first step.
    pub intrinsic_gas: Gas,
    /// The second to run in; 0 is the next.
    pub timestamp: u64,
    /// How urgent it is.
    pub priority: Priority,
    /// Units of work that it may use.
    pub effort: u64,
}

/// An order that passed. Room is still to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// The second that it asks for.
    pub second: u64,
    /// What its run may use.
    pub gas_limit: Gas,
    /// What binds it.
    pub terms: CallbackTerms,
    /// What it costs.
    pub fee: Wei,
}

/// Why an order is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the messages say it, and contracts/ICallbackScheduler.sol has the same names"
)]
pub enum OrderError {
    #[error("the callback scheduler is switched off")]
    Disabled,
    #[error("the callback scheduler is paused")]
    Paused,
    #[error("data of {given} bytes is longer than {max}")]
    DataTooLong { given: usize, max: u64 },
    #[error("timestamp {given} is not after the block's, {block}")]
    TimestampNotInFuture { given: u64, block: u64 },
    #[error("timestamp {given} is after the horizon, {max}")]
    TimestampBeyondHorizon { given: u64, max: u64 },
    #[error("effort {given} is below {min}")]
    EffortTooLow { given: u64, min: u64 },
    #[error("effort {given} is above {max}")]
    EffortTooHigh { given: u64, max: u64 },
}

/// Checks an order against the rules in force in a block.
pub fn admit(order: Order, parameters: &Parameters, moment: Moment) -> Result<Admitted, OrderError> {
    if parameters.get(CALLBACK_ENABLED) == 0 {
        return Err(OrderError::Disabled);
    }
    if parameters.get(CALLBACK_PAUSED) == 1 {
        return Err(OrderError::Paused);
    }
    let (given, max) = (order.data_bytes, parameters.get(CALLBACK_DATA_BYTES_MAX));
    if given as u64 > max {
        return Err(OrderError::DataTooLong { given, max });
    }
    let second = check_time(order.timestamp, parameters, moment.now)?;
    check_effort(order, parameters)?;
    let floor = parameters.get(CALLBACK_FEE_FLOOR_WEI);
    let terms = CallbackTerms {
        priority: order.priority,
        effort: order.effort,
        price: u64::try_from(moment.base_fee.0).unwrap_or(u64::MAX).max(floor),
        refund_bps: parameters.get(CALLBACK_REFUND_BPS),
    };
    let gas_limit = Gas(order.effort.saturating_mul(EFFORT_GAS));
    Ok(Admitted { second, gas_limit, terms, fee: fee(&terms, parameters) })
}

/// FLIP330-02.
fn check_time(given: u64, parameters: &Parameters, now: TimestampMs) -> Result<u64, OrderError> {
    let block = now.seconds();
    let max = block.saturating_add(parameters.get(SCHEDULE_AHEAD_SECONDS_MAX));
    let second = if given == 0 { block.saturating_add(1) } else { given };
    if second <= block {
        return Err(OrderError::TimestampNotInFuture { given, block });
    }
    if second > max {
        return Err(OrderError::TimestampBeyondHorizon { given, max });
    }
    Ok(second)
}

/// FLIP330-04.
fn check_effort(order: Order, parameters: &Parameters) -> Result<(), OrderError> {
    let given = order.effort;
    let min = parameters.get(CALLBACK_EFFORT_MIN).max(order.intrinsic_gas.0.div_ceil(EFFORT_GAS));
    let max = match order.priority {
        Priority::High | Priority::Medium => parameters.get(CALLBACK_EFFORT_MAX),
        Priority::Low => parameters.get(CALLBACK_EFFORT_MAX).min(parameters.get(CALLBACK_LOW_EFFORT_MAX)),
    };
    if given < min {
        return Err(OrderError::EffortTooLow { given, min });
    }
    if given > max {
        return Err(OrderError::EffortTooHigh { given, max });
    }
    Ok(())
}

/// FLIP330-05, rounded up.
fn fee(terms: &CallbackTerms, parameters: &Parameters) -> Wei {
    let percent: Parameter = match terms.priority {
        Priority::High => CALLBACK_HIGH_PERCENT,
        Priority::Medium => CALLBACK_MEDIUM_PERCENT,
        Priority::Low => CALLBACK_LOW_PERCENT,
    };
    // A base part has at most 90 bits, a percentage 17.
    let hundredfold = terms.base_part().0 * U256::from(parameters.get(percent));
    Wei(hundredfold.div_ceil(U256::from(100)))
}
