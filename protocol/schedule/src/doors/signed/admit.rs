//! Which bodies become schedules, and until when they wait for signatures.

use super::Code;
use crate::{
    callback::{self, CallbackTerms, OrderError, Priority},
    decide::Moment,
};
use alloy_primitives::Address;
use almanac_primitives::{
    Gas, TimestampMs, Wei,
    addresses::is_system,
    params::{
        CALLBACK_EFFORT_MIN, EFFORT_GAS, Parameters, SECOND_MS, SIGNED_BODY_BYTES_MAX, SIGNED_CALLS_MAX,
        SIGNED_EXPIRY_SECONDS, SIGNED_MEMO_BYTES_MAX, SIGNED_RUN_GAS_MAX, SIGNED_SENDERS_MAX,
    },
    transaction_body::TransactionBody,
};

/// Furthest that an execution time may be ahead: 62 days (HEDERA-20).
const AHEAD_SECONDS_MAX: u64 = 62 * 24 * 60 * 60;

/// What somebody asks for, as it came.
#[derive(Clone, Copy, Debug)]
pub struct Order<'b> {
    /// What to run.
    pub body: &'b TransactionBody,
    /// How long it is as it was given.
    pub body_bytes: usize,
    /// The gas that its calls cost before their first step.
    pub intrinsic_gas: Gas,
    /// Who pays, if that was said.
    pub payer: Option<Address>,
}

/// An order that passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// When it expires.
    pub expires: TimestampMs,
}

/// Checks an order against the rules in force in a block.
pub fn admit(order: Order<'_>, parameters: &Parameters, moment: Moment) -> Result<Admitted, Code> {
    let body = order.body;
    if order.body_bytes > SIGNED_BODY_BYTES_MAX {
        return Err(Code::TooLarge);
    }
    if body.memo.len() > SIGNED_MEMO_BYTES_MAX {
        return Err(Code::MemoTooLong);
    }
    check_calls(body)?;
    if order.payer.is_some_and(|payer| !may_agree(payer)) {
        return Err(Code::InvalidBody);
    }
    if !(order.intrinsic_gas.0..=parameters.get(SIGNED_RUN_GAS_MAX)).contains(&body.gas_limit) {
        return Err(Code::GasLimit);
    }
    Ok(Admitted { expires: expiry(body, parameters, moment.now)? })
}

/// What room in a second costs, as a Medium callback of the gas of the run and of judging its signatures (HEDERA-21).
pub fn book(
    second: u64,
    gas_limit: u64,
    readiness_gas: u64,
    parameters: &Parameters,
    moment: Moment,
) -> Result<(CallbackTerms, Wei), Code> {
    check_second(second, moment.now)?;
    let gas = gas_limit.saturating_add(readiness_gas);
    let effort = gas.div_ceil(EFFORT_GAS).max(parameters.get(CALLBACK_EFFORT_MIN));
    let (data_bytes, intrinsic_gas, priority) = (0, Gas::ZERO, Priority::Medium);
    let order = callback::Order { data_bytes, intrinsic_gas, timestamp: second, priority, effort };
    let admitted = callback::admit(order, parameters, moment).map_err(|error| match error {
        OrderError::Disabled => Code::NotSupported,
        OrderError::Paused => Code::Busy,
        OrderError::DataTooLong { .. } => Code::TooLarge,
        OrderError::TimestampNotInFuture { .. } => Code::NotAfterNow,
        OrderError::TimestampBeyondHorizon { .. } => Code::TooFar,
        OrderError::EffortTooLow { .. } | OrderError::EffortTooHigh { .. } => Code::GasLimit,
    })?;
    Ok((admitted.terms, admitted.fee))
}

fn check_calls(body: &TransactionBody) -> Result<(), Code> {
    if body.calls.is_empty() || body.calls.len() > SIGNED_CALLS_MAX {
        return Err(Code::InvalidBody);
    }
    if body.calls.iter().any(|call| call.to.is_zero()) {
        return Err(Code::InvalidTarget);
    }
    let mut senders: Vec<Address> = body.calls.iter().map(|call| call.from).collect();
    senders.sort_unstable();
    senders.dedup();
    if senders.len() > SIGNED_SENDERS_MAX || !senders.iter().all(|sender| may_agree(*sender)) {
        return Err(Code::InvalidBody);
    }
    Ok(())
}

/// Nobody signs for the zero address, and the chain's own accounts act for nobody.
fn may_agree(account: Address) -> bool {
    !account.is_zero() && !is_system(account)
}

fn expiry(body: &TransactionBody, parameters: &Parameters, now: TimestampMs) -> Result<TimestampMs, Code> {
    if body.execution_time == 0 {
        if body.wait_for_expiry {
            return Err(Code::InvalidBody);
        }
        let wait = parameters.get(SIGNED_EXPIRY_SECONDS).saturating_mul(SECOND_MS);
        return Ok(TimestampMs(now.0.saturating_add(wait)));
    }
    check_second(body.execution_time, now)?;
    Ok(TimestampMs(body.execution_time.saturating_mul(SECOND_MS)))
}

/// HEDERA-20.
fn check_second(second: u64, now: TimestampMs) -> Result<(), Code> {
    match second.checked_sub(now.seconds()) {
        None | Some(0) => Err(Code::NotAfterNow),
        Some(ahead) if ahead > AHEAD_SECONDS_MAX => Err(Code::TooFar),
        Some(_) => Ok(()),
    }
}
