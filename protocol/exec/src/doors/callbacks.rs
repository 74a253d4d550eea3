//! The FLIP-330 callback scheduler.

use super::{
    About,
    call::{CALL_GAS, DoorCall, DoorError, revert},
    schedules,
};
use crate::validate::{call_gas, least_gas};
use alloy_primitives::{Address, Bytes, Log, U256, keccak256};
use alloy_sol_types::{SolCall as _, SolEvent as _};
use almanac_primitives::{
    Gas, ScheduleId, TimestampMs, Wei,
    addresses::CALLBACKS,
    params::{
        CALLBACK_DATA_BYTES_MAX, CALLBACK_EFFORT_MAX, CALLBACK_LOW_EFFORT_MAX, CALLBACK_SEARCH_READS_MAX,
        CALLBACK_SEARCH_SECONDS_MAX, EFFORT_GAS,
    },
};
use almanac_schedule::{
    Failure,
    callback::{Admitted, Order, OrderError, Priority, admit},
    capacity::{self, Class, NextFree, NoRoom, Reach},
    decide::End,
    life::{self, CancelError, Event, NewSchedule, What},
    record::{Body, Call, Door, Status, Terms, Trigger},
};
use std::convert::Infallible;

alloy_sol_types::sol!("../../contracts/ICallbackScheduler.sol");
alloy_sol_types::sol!("../../contracts/ICallbackHandler.sol");
use ICallbackScheduler::{EstimatedCallback, ICallbackSchedulerCalls as Method, ScheduledCallback};

/// Gas of a call, with what any door's costs: to read an order and refuse it takes as long as this much of plain code
/// (`make bench-prices`).
const ORDER_GAS: u64 = 1_000;

/// Gas of finding the slot that says whether a handler allows a scheduler: a hash of 40 bytes.
const PERMISSION_GAS: u64 = 42;

/// Answers one call.
pub(super) fn call(call: &mut DoorCall<'_, '_>) -> Result<Bytes, DoorError> {
    call.charge(ORDER_GAS - CALL_GAS)?;
    match call.decode::<Method>()? {
        Method::schedule(args) => schedule(call, &args),
        Method::estimate(args) => estimate(call, &args),
        Method::cancel(args) => cancel(call, args.id),
        Method::getStatus(args) => {
            let status = status_of(call, args.id)?;
            call.answer(&status)
        }
        Method::getSlotAvailableEffort(args) => available_effort(call, args.timestamp, args.priority),
        Method::setScheduler(args) => set_scheduler(call, args.scheduler, args.allowed),
        Method::mayScheduleCallback(args) => {
            let allowed = may_schedule(call, args.handler, args.scheduler)?;
            call.answer(&allowed)
        }
    }
}

/// What an order comes to.
struct Plan {
    admitted: Admitted,
    /// The second that it gets.
    second: u64,
}

/// Checks an order, prices it and finds room for it. Changes nothing: `estimate` asks the same as `schedule`.
fn plan(
    call: &mut DoorCall<'_, '_>,
    data: &Bytes,
    timestamp: u64,
    priority: Priority,
    effort: u64,
) -> Result<Plan, DoorError> {
    let (parameters, moment) = (call.parameters(), call.moment());
    // Data that is too long is refused for its length; nobody pays for a look at the rest.
    let is_short = data.len() as u64 <= parameters.get(CALLBACK_DATA_BYTES_MAX);
    let intrinsic_gas = if is_short { intrinsic_gas(data) } else { Gas::ZERO };
    let order = Order { data_bytes: data.len(), intrinsic_gas, timestamp, priority, effort };
    let admitted = admit(order, parameters, moment).map_err(|error| refusal(&error))?;
    let second = find_room(call, admitted.second, priority, effort)?;
    Ok(Plan { admitted, second })
}

/// Intrinsic gas of a callback's run. All bytes of the id count as if they were not zero, so that it does not depend on
/// the id, which an estimate cannot know.
fn intrinsic_gas(data: &Bytes) -> Gas {
    Gas(least_gas(&call_gas(&handler_input(u64::MAX, data))))
}

fn handler_input(id: u64, data: &Bytes) -> Bytes {
    ICallbackHandler::executeCallbackCall { id, data: data.clone() }.abi_encode().into()
}

/// The second that a callback gets: High its own, Medium its own or a later one, Low no booked one (FLIP330-07, -08).
fn find_room(
    call: &mut DoorCall<'_, '_>,
    second: u64,
    priority: Priority,
    effort: u64,
) -> Result<u64, DoorError> {
    let (parameters, shares) = (call.parameters(), call.moment().shares);
    let Some(class) = priority.class() else { return Ok(second) };
    let found = match class {
        Class::High => {
            let available = capacity::available(call, shares, second, class)?;
            (effort <= available).then_some(second)
        }
        Class::Medium => {
            let seconds = parameters.get(CALLBACK_SEARCH_SECONDS_MAX);
            let reach = Reach { seconds, reads: parameters.get(CALLBACK_SEARCH_READS_MAX) };
            match capacity::next_free(call, shares, second, effort, reach)? {
                NextFree::At(second) => Some(second),
                NextFree::Nowhere | NextFree::Unsearched { .. } => None,
            }
        }
    };
    match found {
        Some(second) => Ok(second),
        None => {
            let available = capacity::available(call, shares, second, class)?;
            Err(no_capacity(&NoRoom { second, class, effort, available }))
        }
    }
}

fn schedule(
    call: &mut DoorCall<'_, '_>,
    order: &ICallbackScheduler::scheduleCall,
) -> Result<Bytes, DoorError> {
    call.refuse_static()?;
    let (handler, caller) = (order.handler, call.caller());
    if !may_schedule(call, handler, caller)? {
        return Err(revert(ICallbackScheduler::HandlerNotAllowed { handler, caller }));
    }
    let priority = priority_of(order.priority);
    let Plan { admitted, second } =
        plan(call, &order.data, order.timestamp, priority, order.executionEffort)?;
    schedules::take_exactly(call, admitted.fee, |given, needed| {
        revert(ICallbackScheduler::FeeTooLow { given: given.0, needed: needed.0 })
    })?;
    let id = call.next_id()?;
    let input = handler_input(id.0, &order.data);
    let body = Body {
        owner: caller,
        refund_to: caller,
        gas_limit: admitted.gas_limit,
        trigger: Trigger::Time,
        terms: Terms::Callback(admitted.terms),
        calls: vec![Call { from: CALLBACKS, to: handler, value: Wei::ZERO, input }],
    };
    let (lane, due) = (priority.lane(), TimestampMs::from_seconds(second));
    let new = NewSchedule { body, lane, due, priority: priority.rank(), escrow: admitted.fee };
    let shares = call.moment().shares;
    let created = life::create_booked(call, id, new, shares);
    let event = created.map_err(|failure| thrown(failure, |room| no_capacity(&room)))?;
    call.tell(event)?;
    let timestamp = predicted(priority, second);
    call.answer(&ScheduledCallback { id: id.0, timestamp, status: ICallbackScheduler::Status::Scheduled })
}

fn estimate(
    call: &mut DoorCall<'_, '_>,
    order: &ICallbackScheduler::estimateCall,
) -> Result<Bytes, DoorError> {
    let priority = priority_of(order.priority);
    let estimated = match plan(call, &order.data, order.timestamp, priority, order.executionEffort) {
        Ok(Plan { admitted, second }) => {
            let timestamp = predicted(priority, second);
            EstimatedCallback { fee: admitted.fee.0, timestamp, reason: Bytes::new() }
        }
        Err(DoorError::Revert(reason)) => EstimatedCallback { fee: U256::ZERO, timestamp: 0, reason },
        Err(error) => return Err(error),
    };
    call.answer(&estimated)
}

fn cancel(call: &mut DoorCall<'_, '_>, id: u64) -> Result<Bytes, DoorError> {
    call.refuse_static()?;
    let (known, caller, moment) = (ScheduleId(id), call.caller(), call.moment());
    let number = U256::from(id);
    let event = life::cancel(call, Door::Callback, known, caller, moment).map_err(|failure| {
        let refused = |error| match error {
            CancelError::Unknown { .. } => revert(ICallbackScheduler::UnknownCallback { id: number }),
            CancelError::NotOwner { caller, owner, .. } => {
                revert(ICallbackScheduler::NotOwner { id: number, caller, owner })
            }
            CancelError::UnderWay { status, .. } | CancelError::Ended { status, .. } => {
                revert(ICallbackScheduler::NotScheduled { id: number, status: shown(status) })
            }
        };
        thrown(failure, refused)
    })?;
    let refunded = schedules::refunded(&event);
    call.tell(event)?;
    call.answer(&refunded.0)
}

fn status_of(call: &mut DoorCall<'_, '_>, id: u64) -> Result<ICallbackScheduler::Status, DoorError> {
    let record = life::look_up(call, Door::Callback, ScheduleId(id))
        .map_err(|failure: Failure<Infallible, _>| thrown(failure, |never| match never {}))?;
    Ok(record.map_or(ICallbackScheduler::Status::Unknown, |record| shown(record.head.status)))
}

/// FLIP330-17. A run that is under way is not executed yet.
fn shown(status: Status) -> ICallbackScheduler::Status {
    match status {
        Status::Pending => ICallbackScheduler::Status::Scheduled,
        Status::Processed | Status::Running => ICallbackScheduler::Status::Processed,
        Status::Quarantined => ICallbackScheduler::Status::Quarantined,
        Status::Succeeded => ICallbackScheduler::Status::Executed,
        Status::Failed => ICallbackScheduler::Status::Failed,
        Status::Cancelled => ICallbackScheduler::Status::Canceled,
        // Callbacks neither wait for a price nor expire, and this door has no shutdown.
        Status::Waiting | Status::Expired | Status::Shutdown => ICallbackScheduler::Status::Unknown,
    }
}

fn available_effort(
    call: &mut DoorCall<'_, '_>,
    second: u64,
    priority: ICallbackScheduler::Priority,
) -> Result<Bytes, DoorError> {
    let (parameters, moment) = (call.parameters(), call.moment());
    let available = match priority_of(priority).class() {
        None => parameters.get(CALLBACK_LOW_EFFORT_MAX).min(parameters.get(CALLBACK_EFFORT_MAX)),
        Some(_) if second <= moment.now.seconds() => 0,
        Some(class) => capacity::available(call, moment.shares, second, class)?,
    };
    call.answer(&available)
}

fn set_scheduler(call: &mut DoorCall<'_, '_>, scheduler: Address, allowed: bool) -> Result<Bytes, DoorError> {
    let handler = call.caller();
    call.charge(PERMISSION_GAS)?;
    call.store_word(CALLBACKS, permission_slot(handler, scheduler), U256::from(u8::from(allowed)))?;
    call.emit(&ICallbackScheduler::SchedulerSet { handler, scheduler, allowed })?;
    Ok(Bytes::new())
}

/// FLIP330-01: a handler may always book itself.
fn may_schedule(
    call: &mut DoorCall<'_, '_>,
    handler: Address,
    scheduler: Address,
) -> Result<bool, DoorError> {
    if handler == scheduler {
        return Ok(true);
    }
    call.charge(PERMISSION_GAS)?;
    Ok(!call.load_word(CALLBACKS, permission_slot(handler, scheduler))?.is_zero())
}

/// Slot of the door's own storage that is 1 where a handler allows a scheduler.
fn permission_slot(handler: Address, scheduler: Address) -> U256 {
    keccak256([handler.as_slice(), scheduler.as_slice()].concat()).into()
}

/// What people are told of the time of a run: Low has none (FLIP330-01).
fn predicted(priority: Priority, second: u64) -> u64 {
    if priority == Priority::Low { 0 } else { second }
}

fn priority_of(given: ICallbackScheduler::Priority) -> Priority {
    match given {
        ICallbackScheduler::Priority::High => Priority::High,
        ICallbackScheduler::Priority::Medium => Priority::Medium,
        // Decoding has refused every other number.
        _ => Priority::Low,
    }
}

fn priority_shown(priority: Priority) -> ICallbackScheduler::Priority {
    match priority {
        Priority::High => ICallbackScheduler::Priority::High,
        Priority::Medium => ICallbackScheduler::Priority::Medium,
        Priority::Low => ICallbackScheduler::Priority::Low,
    }
}

/// FLIP330-22: what the door says of something that happened to a callback.
pub(super) fn event_log(event: &Event, about: &About<'_>) -> Option<Log> {
    let id = event.id.0;
    let data = match event.what {
        What::Created { owner, target: handler, due, gas_limit, priority, .. } => {
            let priority = Priority::of_rank(priority)?;
            ICallbackScheduler::CallbackScheduled {
                id,
                owner,
                handler,
                timestamp: predicted(priority, due.map_or(0, TimestampMs::seconds)),
                priority: priority_shown(priority),
                executionEffort: effort(gas_limit),
            }
            .encode_log_data()
        }
        What::Processed { gas_limit } => {
            let said = ICallbackScheduler::CallbackProcessed { id, executionEffort: effort(gas_limit) };
            said.encode_log_data()
        }
        What::Executed { is_success: true, .. } => {
            ICallbackScheduler::CallbackExecuted { id }.encode_log_data()
        }
        What::Executed { is_success: false, .. } => {
            ICallbackScheduler::CallbackFailed { id, reason: schedules::reason(about.outcome) }
                .encode_log_data()
        }
        What::Ended { end: End::Cancelled, refunded, .. } => {
            ICallbackScheduler::CallbackCanceled { id, refunded: refunded.0 }.encode_log_data()
        }
        What::Ended { refunded, .. } if refunded > Wei::ZERO => {
            ICallbackScheduler::CallbackRefunded { id, amount: refunded.0 }.encode_log_data()
        }
        What::Ended { .. } | What::ToppedUp { .. } | What::Quarantined { .. } => return None,
    };
    Some(Log { address: CALLBACKS, data })
}

/// The effort of a callback, whose gas is always a multiple of it.
fn effort(gas_limit: Gas) -> u64 {
    gas_limit.0 / EFFORT_GAS
}

fn no_capacity(room: &NoRoom) -> DoorError {
    let NoRoom { second, effort, available, .. } = *room;
    revert(ICallbackScheduler::NoCapacity {
        timestamp: U256::from(second),
        effort: U256::from(effort),
        available: U256::from(available),
    })
}

/// Ends a call whose operation did not happen.
fn thrown<R>(failure: Failure<R, DoorError>, refused: impl FnOnce(R) -> DoorError) -> DoorError {
    schedules::thrown(failure, refused, |reason| revert(ICallbackScheduler::Unreadable { reason }))
}

fn refusal(error: &OrderError) -> DoorError {
    use ICallbackScheduler as Callback;
    let number = U256::from::<u64>;
    match *error {
        OrderError::Disabled => revert(Callback::SchedulerDisabled {}),
        OrderError::Paused => revert(Callback::SchedulerPaused {}),
        OrderError::DataTooLong { given, max } => {
            revert(Callback::DataTooLong { given: U256::from(given), max: number(max) })
        }
        OrderError::TimestampNotInFuture { given, block } => {
            revert(Callback::TimestampNotInFuture { given: number(given), blockTime: number(block) })
        }
        OrderError::TimestampBeyondHorizon { given, max } => {
            revert(Callback::TimestampBeyondHorizon { given: number(given), max: number(max) })
        }
        OrderError::EffortTooLow { given, min } => {
            revert(Callback::EffortTooLow { given: number(given), min: number(min) })
        }
        OrderError::EffortTooHigh { given, max } => {
            revert(Callback::EffortTooHigh { given: number(given), max: number(max) })
        }
    }
}
