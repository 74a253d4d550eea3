//! ARC-21's rules of admission: which orders become schedules of the cron lane.

use super::{CatchUp, Charge, CronTerms};
use crate::record::{Body, Call, Terms, Trigger};
use alloy_primitives::{Address, Bytes, U256};
use almanac_primitives::{
    Gas, GasPrice, TimestampMs, Wei,
    addresses::CRON_REGISTRY,
    params::{
        CRON_ENABLED, CRON_INPUT_BYTES_MAX, CRON_INTERVAL_SECONDS_MIN, CRON_PAUSED, CRON_RUN_GAS_MAX,
        CRON_RUN_GAS_MIN, Parameters, SCHEDULE_AHEAD_SECONDS_MAX, SECOND_MS,
    },
};
use std::num::NonZeroU64;

/// A selector has this many bytes, and calldata at least one selector.
pub const SELECTOR_BYTES: usize = 4;

/// Option bit: unused gas returns to the escrow.
const OPTION_REFUND_UNUSED: U256 = U256::ONE;
/// Where the two bits of the catch-up policy begin.
const CATCH_UP_SHIFT: usize = 8;
/// Every bit that means something.
const OPTIONS_KNOWN: U256 = U256::from_limbs([0x301, 0, 0, 0]);

/// A creation request to the cron registry, unchecked: any field may hold any number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The caller, who becomes the owner.
    pub owner: Address,
    /// Who gets refunds.
    pub refund_to: Address,
    /// The contract to call.
    pub target: Address,
    /// Calldata.
    pub input: Bytes,
    /// First run, in Unix seconds.
    pub next_run_at: U256,
    /// Seconds between runs; zero means a single run.
    pub interval_seconds: U256,
    /// Number of runs; zero means as many as the escrow pays for.
    pub runs_max: U256,
    /// Gas of a run.
    pub gas_limit: U256,
    /// Option bits.
    pub options: U256,
    /// The value sent with the call.
    pub escrow: Wei,
}

/// An admitted order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// The immutable part of its record.
    pub body: Body,
    /// First run.
    pub due: TimestampMs,
}

/// Why an order is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it, and the same names are in contracts/ICronRegistry.sol")]
pub enum OrderError {
    #[error("the cron registry is switched off")]
    Disabled,
    #[error("the cron registry is paused")]
    Paused,
    #[error("the target is the zero address")]
    TargetIsZero,
    #[error("calldata of {given} bytes is shorter than a selector of {min} bytes")]
    InputTooShort { given: usize, min: usize },
    #[error("calldata of {given} bytes is longer than {max}")]
    InputTooLong { given: usize, max: u64 },
    #[error("time {given} is not after the block's, {block}")]
    TimeNotInFuture { given: U256, block: u64 },
    #[error("time {given} is after the horizon, {max}")]
    TimeBeyondHorizon { given: U256, max: u64 },
    #[error("interval of {given} s is neither 0 nor at least {min} s")]
    IntervalTooShort { given: U256, min: u64 },
    #[error("interval of {given} s is above {max} s")]
    IntervalTooLong { given: U256, max: u64 },
    #[error("gas limit {given} is outside {min}..={max}")]
    GasLimitOutOfBounds { given: U256, min: u64, max: u64 },
    #[error("{given} runs are more than {max}")]
    RunsTooMany { given: U256, max: u64 },
    #[error("escrow {given} does not cover one run at {needed}")]
    EscrowTooLow { given: Wei, needed: Wei },
    #[error("refunds would go to the zero address")]
    RefundToIsZero,
    #[error("options {given:#x} have bits outside {known:#x}")]
    UnknownOptions { given: U256, known: U256 },
    #[error("catch-up policy {given} is above {max}")]
    UnknownCatchUp { given: u8, max: u8 },
}

/// Checks an order against the rules in force in a block.
pub fn admit(
    order: Order,
    parameters: &Parameters,
    now: TimestampMs,
    base_fee: GasPrice,
) -> Result<Admitted, OrderError> {
    if parameters.get(CRON_ENABLED) == 0 {
        return Err(OrderError::Disabled);
    }
    if parameters.get(CRON_PAUSED) == 1 {
        return Err(OrderError::Paused);
    }
    check_call(&order, parameters)?;
    let due = check_time(order.next_run_at, parameters, now)?;
    let interval_ms = check_interval(order.interval_seconds, parameters)?;
    let runs_max = check_runs(order.runs_max)?;
    let gas_limit = check_gas(order.gas_limit, parameters)?;
    let (charge, catch_up) = check_options(order.options)?;
    let needed = gas_limit.cost(base_fee);
    if order.escrow < needed {
        return Err(OrderError::EscrowTooLow { given: order.escrow, needed });
    }
    let call = Call { from: CRON_REGISTRY, to: order.target, value: Wei::ZERO, input: order.input };
    let body = Body {
        owner: order.owner,
        refund_to: order.refund_to,
        gas_limit,
        trigger: Trigger::Time,
        terms: Terms::Cron(CronTerms { interval_ms, runs_max, catch_up, charge }),
        calls: vec![call],
    };
    Ok(Admitted { body, due })
}

fn check_call(order: &Order, parameters: &Parameters) -> Result<(), OrderError> {
    if order.target.is_zero() {
        return Err(OrderError::TargetIsZero);
    }
    if order.refund_to.is_zero() {
        return Err(OrderError::RefundToIsZero);
    }
    let (given, max) = (order.input.len(), parameters.get(CRON_INPUT_BYTES_MAX));
    if given < SELECTOR_BYTES {
        return Err(OrderError::InputTooShort { given, min: SELECTOR_BYTES });
    }
    if given as u64 > max {
        return Err(OrderError::InputTooLong { given, max });
    }
    Ok(())
}

fn check_time(given: U256, parameters: &Parameters, now: TimestampMs) -> Result<TimestampMs, OrderError> {
    let block = now.seconds();
    if given <= U256::from(block) {
        return Err(OrderError::TimeNotInFuture { given, block });
    }
    let max = block.saturating_add(parameters.get(SCHEDULE_AHEAD_SECONDS_MAX));
    let beyond = OrderError::TimeBeyondHorizon { given, max };
    let seconds = u64::try_from(given).ok().filter(|seconds| *seconds <= max);
    seconds.and_then(TimestampMs::from_seconds).ok_or(beyond)
}

fn check_interval(given: U256, parameters: &Parameters) -> Result<Option<NonZeroU64>, OrderError> {
    if given.is_zero() {
        return Ok(None);
    }
    let (min, max) = (parameters.get(CRON_INTERVAL_SECONDS_MIN), parameters.get(SCHEDULE_AHEAD_SECONDS_MAX));
    if given < U256::from(min) {
        return Err(OrderError::IntervalTooShort { given, min });
    }
    let seconds = u64::try_from(given).ok().filter(|seconds| *seconds <= max);
    let milliseconds = seconds.and_then(|seconds| seconds.checked_mul(SECOND_MS));
    milliseconds.map(NonZeroU64::new).ok_or(OrderError::IntervalTooLong { given, max })
}

fn check_runs(given: U256) -> Result<Option<NonZeroU64>, OrderError> {
    let runs = u64::try_from(given).map_err(|_| OrderError::RunsTooMany { given, max: u64::MAX })?;
    Ok(NonZeroU64::new(runs))
}

fn check_gas(given: U256, parameters: &Parameters) -> Result<Gas, OrderError> {
    let (min, max) = (CRON_RUN_GAS_MIN, parameters.get(CRON_RUN_GAS_MAX));
    let gas = u64::try_from(given).ok().filter(|gas| (min..=max).contains(gas));
    gas.map(Gas).ok_or(OrderError::GasLimitOutOfBounds { given, min, max })
}

fn check_options(given: U256) -> Result<(Charge, CatchUp), OrderError> {
    if !(given & !OPTIONS_KNOWN).is_zero() {
        return Err(OrderError::UnknownOptions { given, known: OPTIONS_KNOWN });
    }
    let is_refunding = !(given & OPTION_REFUND_UNUSED).is_zero();
    let policy = (given >> CATCH_UP_SHIFT).byte(0);
    let catch_up = CatchUp::from_number(policy)
        .ok_or(OrderError::UnknownCatchUp { given: policy, max: CatchUp::Skip as u8 })?;
    Ok((if is_refunding { Charge::GasUsed } else { Charge::GasLimit }, catch_up))
}
