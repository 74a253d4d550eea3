//! The ARC-21 cron registry. It shares its address with Ethereum's ecAdd.

use super::{
    About,
    call::{CALL_GAS, DoorCall, DoorError, revert},
    schedules,
};
use alloy_primitives::{Address, Bytes, Log, U256, keccak256};
use alloy_sol_types::{SolCall as _, SolEvent, SolInterface};
use almanac_primitives::{Lane, ScheduleId, TimestampMs, Wei, addresses::CRON_REGISTRY};
use almanac_schedule::{
    Failure,
    cron::{Admitted, Order, OrderError, SELECTOR_BYTES, admit, canonical_method},
    decide::End,
    life::{self, CancelError, Event, NewSchedule, TopUpError, What},
    record::{Door, Record},
};
use std::convert::Infallible;

alloy_sol_types::sol!("../../contracts/ICronRegistry.sol");
use ICronRegistry::{ICronRegistryCalls as Method, Job};

/// Whether a call of the shared address is for the registry. Every other call is ecAdd: no input that matches
/// here could be a successful ecAdd.
pub(super) fn is_registry_call(input: &[u8]) -> bool {
    let selector = input.first_chunk::<SELECTOR_BYTES>();
    input.len() % 32 == SELECTOR_BYTES && selector.is_some_and(|selector| Method::valid_selector(*selector))
}

/// Gas of a call in addition to any door's base gas: decoding and rejecting an order takes as long as this much
/// gas of EVM code.
const ORDER_GAS: u64 = 1_000;

/// Additional gas per 32 bytes of an order with a textual method signature, which is checked, hashed and joined
/// with the arguments. Text and arguments may each span the whole input, even both at once (`make
/// bench-prices`).
const TEXT_WORD_GAS: u64 = 60;

/// Answers one call.
pub(super) fn call(call: &mut DoorCall<'_, '_>) -> Result<Bytes, DoorError> {
    call.charge(ORDER_GAS - CALL_GAS)?;
    if call.selector() == Some(ICronRegistry::scheduleCall::SELECTOR) {
        call.charge_input(TEXT_WORD_GAS)?;
    }
    match call.decode::<Method>()? {
        Method::schedule(args) => {
            if args.method.is_empty() {
                return Err(revert(ICronRegistry::MethodIsEmpty {}));
            }
            check_method(&args.method)?;
            let selector = &keccak256(&args.method)[..SELECTOR_BYTES];
            let input = [selector, &args.args].concat().into();
            let numbers = [args.nextRunAt, args.intervalSec, args.maxRuns, args.gasLimit];
            let order = plain_order(call.caller(), args.target, input, numbers);
            schedule(call, order)
        }
        Method::scheduleCalldata(args) => {
            let numbers = [args.nextRunAt, args.intervalSec, args.maxRuns, args.gasLimit];
            let order = plain_order(call.caller(), args.target, args.data, numbers);
            schedule(call, order)
        }
        Method::scheduleWith(args) => {
            let numbers = [args.nextRunAt, args.intervalSec, args.maxRuns, args.gasLimit];
            let plain = plain_order(call.caller(), args.target, args.data, numbers);
            schedule(call, Order { refund_to: args.refundTo, options: args.options, ..plain })
        }
        Method::cancel(args) => cancel(call, args.id),
        Method::topUp(args) => top_up(call, args.id),
        Method::getJob(args) => get_job(call, args.id),
    }
}

/// Longest method whose canonical form an error repeats.
const SHOWN_METHOD_BYTES_MAX: usize = 256;

/// ARC21-05: only the canonical signature has the selector that was meant.
fn check_method(given: &str) -> Result<(), DoorError> {
    let probable = canonical_method(given);
    if probable.as_deref() == Some(given) {
        return Ok(());
    }
    let probable = probable.filter(|_| given.len() <= SHOWN_METHOD_BYTES_MAX).unwrap_or_default();
    Err(revert(ICronRegistry::MethodNotCanonical { probable }))
}

/// An order without options whose refunds go to `owner`. The numbers are first run, interval, runs and gas.
fn plain_order(owner: Address, target: Address, input: Bytes, numbers: [U256; 4]) -> Order {
    let [next_run_at, interval_seconds, runs_max, gas_limit] = numbers;
    Order {
        owner,
        refund_to: owner,
        target,
        input,
        next_run_at,
        interval_seconds,
        runs_max,
        gas_limit,
        options: U256::ZERO,
        escrow: Wei::ZERO,
    }
}

fn schedule(call: &mut DoorCall<'_, '_>, mut order: Order) -> Result<Bytes, DoorError> {
    call.refuse_static()?;
    order.escrow = call.take_escrow()?;
    let (escrow, moment) = (order.escrow, call.moment());
    let admitted = admit(order, call.parameters(), moment.now, moment.base_fee);
    let Admitted { body, due } = admitted.map_err(|error| refusal(&error))?;
    let id = call.next_id()?;
    let new = NewSchedule { body, lane: Lane::Cron, due: Some(due), priority: 0, escrow };
    let event = life::create(call, id, new)?;
    call.tell(event)?;
    call.answer(&U256::from(id.0))
}

fn cancel(call: &mut DoorCall<'_, '_>, id: U256) -> Result<Bytes, DoorError> {
    call.refuse_static()?;
    let (known, caller, moment) = (known_id(id)?, call.caller(), call.moment());
    let event = life::cancel(call, Door::Cron, known, caller, moment).map_err(|failure| {
        thrown(failure, |error| match error {
            // A job that has ended is gone at once.
            CancelError::Unknown { .. } | CancelError::Ended { .. } => {
                revert(ICronRegistry::UnknownJob { id })
            }
            CancelError::NotOwner { caller, owner, .. } => {
                revert(ICronRegistry::NotJobOwner { id, caller, owner })
            }
            CancelError::UnderWay { .. } => revert(ICronRegistry::JobInLastRun { id }),
        })
    })?;
    call.tell(event)?;
    call.answer(&true)
}

fn top_up(call: &mut DoorCall<'_, '_>, id: U256) -> Result<Bytes, DoorError> {
    call.refuse_static()?;
    let known = known_id(id)?;
    let amount = call.take_escrow()?;
    let event = life::top_up(call, Door::Cron, known, amount).map_err(|failure| {
        thrown(failure, |error| match error {
            // `TooMuch` cannot happen, because nobody can send more than the total supply.
            TopUpError::Unknown { .. } | TopUpError::TooMuch { .. } => {
                revert(ICronRegistry::UnknownJob { id })
            }
        })
    })?;
    call.tell(event)?;
    call.answer(&true)
}

fn get_job(call: &mut DoorCall<'_, '_>, id: U256) -> Result<Bytes, DoorError> {
    let record = match u64::try_from(id) {
        Ok(known) => life::find(call, Door::Cron, ScheduleId(known))
            .map_err(|failure: Failure<Infallible, _>| thrown(failure, |never| match never {}))?,
        Err(_) => None,
    };
    call.answer(&record.and_then(job).unwrap_or_else(no_job))
}

/// The job of a record; `None` for schedules of other doors.
fn job(record: Record) -> Option<Job> {
    let Record { id, head, escrow, body } = record;
    let terms = body.terms.cron()?;
    let call = body.call();
    let selector = &call.input[..SELECTOR_BYTES.min(call.input.len())];
    let runs_max = terms.runs_max.map_or(0, |max| max.get());
    let seconds = |ms: u64| U256::from(TimestampMs(ms).seconds());
    Some(Job {
        id: U256::from(id.0),
        owner: body.owner,
        target: call.to,
        selector: selector.try_into().unwrap_or_default(),
        args: call.input.slice(selector.len()..),
        nextRunAt: seconds(head.due.map_or(0, |due| due.0)),
        intervalSec: seconds(terms.interval_ms.map_or(0, |ms| ms.get())),
        maxRuns: U256::from(runs_max),
        runsLeft: U256::from(runs_max.saturating_sub(head.runs.into())),
        gasLimit: U256::from(body.gas_limit.0),
        gasEscrow: escrow.0,
    })
}

fn no_job() -> Job {
    Job {
        id: U256::ZERO,
        owner: Address::ZERO,
        target: Address::ZERO,
        selector: Default::default(),
        args: Bytes::new(),
        nextRunAt: U256::ZERO,
        intervalSec: U256::ZERO,
        maxRuns: U256::ZERO,
        runsLeft: U256::ZERO,
        gasLimit: U256::ZERO,
        gasEscrow: U256::ZERO,
    }
}

/// Converts an id, if a job can have it.
fn known_id(id: U256) -> Result<ScheduleId, DoorError> {
    u64::try_from(id).map(ScheduleId).map_err(|_| revert(ICronRegistry::UnknownJob { id }))
}

/// The registry's log of an event. The end of a single run is its `JobExecuted`.
pub(super) fn event_log(event: &Event, _: &About<'_>) -> Option<Log> {
    let id = U256::from(event.id.0);
    let data = match event.what {
        What::Created { owner, target, due, .. } => {
            let next_run_at = U256::from(due.map_or(0, TimestampMs::seconds));
            ICronRegistry::JobScheduled { id, owner, target, nextRunAt: next_run_at }.encode_log_data()
        }
        What::ToppedUp { amount, escrow } => {
            ICronRegistry::JobToppedUp { id, amount: amount.0, totalEscrow: escrow.0 }.encode_log_data()
        }
        What::Executed { is_success, gas_used, .. } => {
            let gas_used = U256::from(gas_used.0);
            ICronRegistry::JobExecuted { id, success: is_success, gasUsed: gas_used }.encode_log_data()
        }
        What::Ended { end: End::Cancelled, owner, refunded } => {
            ICronRegistry::JobCancelled { id, owner, refunded: refunded.0 }.encode_log_data()
        }
        What::Ended { end: end @ (End::OutOfMoney | End::RunsReached), .. } => {
            ICronRegistry::JobExhausted { id, reason: end.to_string() }.encode_log_data()
        }
        What::Ended { .. } | What::Processed { .. } | What::Quarantined { .. } => return None,
    };
    Some(Log { address: CRON_REGISTRY, data })
}

/// Ends a call whose operation did not happen.
fn thrown<R>(failure: Failure<R, DoorError>, refused: impl FnOnce(R) -> DoorError) -> DoorError {
    schedules::thrown(failure, refused, |reason| revert(ICronRegistry::JobUnreadable { reason }))
}

/// The error as a Solidity revert.
fn refusal(error: &OrderError) -> DoorError {
    use ICronRegistry as Cron;
    let number = U256::from::<u64>;
    match *error {
        OrderError::Disabled => revert(Cron::CronDisabled {}),
        OrderError::Paused => revert(Cron::CronPaused {}),
        OrderError::TargetIsZero => revert(Cron::TargetIsZero {}),
        OrderError::InputTooShort { given, min } => {
            revert(Cron::InputTooShort { given: U256::from(given), min: U256::from(min) })
        }
        OrderError::InputTooLong { given, max } => {
            revert(Cron::InputTooLong { given: U256::from(given), max: number(max) })
        }
        OrderError::TimeNotInFuture { given, block } => {
            revert(Cron::TimeNotInFuture { given, blockTime: number(block) })
        }
        OrderError::TimeBeyondHorizon { given, max } => {
            revert(Cron::TimeBeyondHorizon { given, max: number(max) })
        }
        OrderError::IntervalTooShort { given, min } => {
            revert(Cron::IntervalTooShort { given, min: number(min) })
        }
        OrderError::IntervalTooLong { given, max } => {
            revert(Cron::IntervalTooLong { given, max: number(max) })
        }
        OrderError::GasLimitOutOfBounds { given, min, max } => {
            let (min, max) = (number(min), number(max));
            revert(Cron::GasLimitOutOfBounds { given, min, max })
        }
        OrderError::RunsTooMany { given, max } => revert(Cron::RunsTooMany { given, max: number(max) }),
        OrderError::EscrowTooLow { given, needed } => {
            revert(Cron::EscrowTooLow { given: given.0, needed: needed.0 })
        }
        OrderError::RefundToIsZero => revert(Cron::RefundToIsZero {}),
        OrderError::UnknownOptions { given, known } => revert(Cron::UnknownOptions { given, known }),
        OrderError::UnknownCatchUp { given, max } => {
            revert(Cron::UnknownCatchUp { given: U256::from(given), max: U256::from(max) })
        }
    }
}
