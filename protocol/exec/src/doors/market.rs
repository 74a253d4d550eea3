//! AIP-125: scheduled transactions that compete by price.

use super::{
    About,
    call::{CALL_GAS, DoorCall, DoorError, revert},
    schedules,
};
use crate::validate::call_gas_min;
use alloy_primitives::{Address, B256, Bytes, Log, U256};
use alloy_sol_types::SolEvent as _;
use almanac_primitives::{
    Gas, Lane, Outcome, ScheduleId, Wei, addresses::SCHEDULED_TRANSACTIONS, params::MARKET_INPUT_BYTES_MAX,
};
use almanac_schedule::{
    Failure, Record,
    decide::End,
    life::{self, CancelError, Event, NewSchedule, What},
    market::{Admitted, BidTerms, Key, MarketLane, Named, Order, OrderError, Service, admit, is_shut},
    record::{Body, Call, Door, Status, Terms, Trigger},
};
use std::convert::Infallible;

alloy_sol_types::sol!("../../contracts/IScheduledTransactions.sol");
use IScheduledTransactions::{
    CancelledTxnCode, IScheduledTransactionsCalls as Method, ScheduleMapKey, ScheduledTransaction,
};

/// Gas of a call, with what any door's costs: to read an order and refuse it takes as long as this much of plain code
/// (`make bench-prices`).
const ORDER_GAS: u64 = 1_000;

/// Gas of hashing an order: Ethereum's price of KECCAK256, whose permutation is the same, twice per word for writing the
/// encoding.
const HASH_GAS: u64 = 30;
const HASH_WORD_GAS: u64 = 12;

/// Gas per 32 bytes of calldata whose zeroes are counted for its intrinsic gas, before anything is paid in.
const COUNT_WORD_GAS: u64 = 6;

/// Answers one call.
pub(super) fn call(call: &mut DoorCall<'_, '_>) -> Result<Bytes, DoorError> {
    call.charge(ORDER_GAS - CALL_GAS)?;
    match call.decode::<Method>()? {
        Method::insert(args) => insert(call, args.txn),
        Method::cancel(args) => cancel(call, &args.key),
        Method::cancelAll(_) => cancel_all(call),
        Method::claim(args) => claim(call, &args.key),
        Method::get(args) => get(call, &args.key),
        Method::keyOf(args) => key_of(call, args.id),
        Method::nowMs(_) => {
            let now = call.moment().now.0;
            call.answer(&now)
        }
        Method::service(_) => {
            let service = service(call)?;
            call.answer(&shown_service(service))
        }
    }
}

fn insert(call: &mut DoorCall<'_, '_>, txn: ScheduledTransaction) -> Result<Bytes, DoorError> {
    call.refuse_static()?;
    let (caller, sender) = (call.caller(), txn.senderAddr);
    if caller != sender {
        return Err(revert(IScheduledTransactions::NotSender { caller, senderAddr: sender }));
    }
    let service = service(call)?;
    if service != Service::Active {
        let service = shown_service(service);
        return Err(revert(IScheduledTransactions::ServiceNotActive { service }));
    }
    let order = order(call, &txn)?;
    let Admitted { due, expiry_blocks, deposit } =
        admit(order, call.parameters(), call.moment()).map_err(|error| refusal(&error))?;
    schedules::take_exactly(call, deposit, |given, needed| {
        revert(IScheduledTransactions::DepositTooLow { given: given.0, needed: needed.0 })
    })?;
    let (id, epoch) = (call.next_id()?, life::epoch(call, Door::Market, sender)?);
    call.charge(HASH_GAS)?;
    call.charge_input(HASH_WORD_GAS)?;
    let txn_id = named(&txn, id, expiry_blocks).txn_id();
    let from = if txn.passSigner { sender } else { SCHEDULED_TRANSACTIONS };
    let (scheduled_ms, bid) = (txn.scheduledTimeMs, txn.maxGasUnitPrice);
    let body = Body {
        owner: sender,
        refund_to: sender,
        gas_limit: Gas(txn.maxGasAmount),
        trigger: Trigger::Time,
        terms: Terms::Market(BidTerms { scheduled_ms, bid, expiry_blocks, epoch, txn_id }),
        calls: vec![Call { from, to: txn.to, value: Wei(txn.value), input: txn.data }],
    };
    let key = shown_key(key_in(&body));
    let new = NewSchedule { body, lane: Lane::Market, due: Some(due), priority: bid, escrow: deposit };
    let event = life::create(call, id, new)?;
    // What the log says beyond the event is known here, where the record is not.
    let said = IScheduledTransactions::TransactionScheduledEvent {
        id: U256::from(id.0),
        senderAddr: sender,
        to: txn.to,
        key: key.clone(),
    };
    call.emit(&said)?;
    call.tell(event)?;
    call.answer(&key)
}

/// An order as the rules take it.
fn order(call: &mut DoorCall<'_, '_>, txn: &ScheduledTransaction) -> Result<Order, DoorError> {
    // Calldata that is too long is refused for its length; nobody pays for a look at the rest.
    let is_short = txn.data.len() as u64 <= call.parameters().get(MARKET_INPUT_BYTES_MAX);
    let intrinsic_gas = if is_short {
        call.charge_words(txn.data.len(), COUNT_WORD_GAS)?;
        call_gas_min(&txn.data)
    } else {
        Gas(0)
    };
    Ok(Order {
        to: txn.to,
        input_bytes: txn.data.len(),
        intrinsic_gas,
        scheduled_ms: txn.scheduledTimeMs,
        gas_limit: Gas(txn.maxGasAmount),
        bid: txn.maxGasUnitPrice,
        value: Wei(txn.value),
        expiry_blocks: txn.expiryBlocks,
    })
}

fn named(txn: &ScheduledTransaction, id: ScheduleId, expiry_blocks: u32) -> Named<'_> {
    Named {
        id,
        sender: txn.senderAddr,
        scheduled_ms: txn.scheduledTimeMs,
        gas_limit: Gas(txn.maxGasAmount),
        bid: txn.maxGasUnitPrice,
        passes_signer: txn.passSigner,
        to: txn.to,
        value: Wei(txn.value),
        input: &txn.data,
        expiry_blocks,
    }
}

fn cancel(call: &mut DoorCall<'_, '_>, key: &ScheduleMapKey) -> Result<Bytes, DoorError> {
    call.refuse_static()?;
    let Some(record) = look_up(call, key)? else { return Err(unknown(key)) };
    let (caller, owner, moment) = (call.caller(), record.body.owner, call.moment());
    if caller != owner {
        return Err(revert(IScheduledTransactions::NotSender { caller, senderAddr: owner }));
    }
    if is_stale(call, &record)? {
        return Err(ended(key, IScheduledTransactions::Status::Cancelled));
    }
    let cancelled = life::cancel(call, Door::Market, record.id, caller, moment);
    let event = cancelled.map_err(|failure| {
        let refused = |error| match error {
            CancelError::UnderWay { .. } => executed(key),
            CancelError::Ended { status: Status::Succeeded | Status::Failed, .. } => executed(key),
            CancelError::Ended { status, .. } => ended(key, shown(status)),
            CancelError::NotOwner { .. } | CancelError::Unknown { .. } => unknown(key),
        };
        thrown(failure, refused)
    })?;
    tell_end(call, event, &record)
}

/// AIP125-22: one slot, however many there are.
fn cancel_all(call: &mut DoorCall<'_, '_>) -> Result<Bytes, DoorError> {
    call.refuse_static()?;
    let epoch = cancel_all_of(call, call.caller())?;
    call.answer(&epoch)
}

/// Cancels all that an account has scheduled so far. A rotation of its key does so too.
pub(super) fn cancel_all_of(call: &mut DoorCall<'_, '_>, sender: Address) -> Result<u64, DoorError> {
    let epoch = life::raise_epoch(call, Door::Market, sender)?;
    let said = IScheduledTransactions::AllCancelledEvent { senderAddr: sender, epoch };
    call.emit_from(SCHEDULED_TRANSACTIONS, &said)?;
    Ok(epoch)
}

/// Refunds one that `cancelAll` or a shutdown ended, before a block meets it.
fn claim(call: &mut DoorCall<'_, '_>, key: &ScheduleMapKey) -> Result<Bytes, DoorError> {
    call.refuse_static()?;
    let Some(record) = look_up(call, key)? else { return Err(unknown(key)) };
    let is_open = matches!(record.head.status, Status::Pending | Status::Waiting | Status::Quarantined);
    let end = if is_stale(call, &record)? {
        End::Cancelled
    } else if is_open && is_shut(call.parameters()) {
        End::Shutdown
    } else {
        let status = shown(record.head.status);
        return Err(revert(IScheduledTransactions::NotClaimable { txnId: key.txnId, status }));
    };
    let moment = call.moment();
    let event = life::end_without_run(call, &record, end, moment)
        .map_err(|failure: Failure<Infallible, _>| thrown(failure, |never| match never {}))?;
    tell_end(call, event, &record)
}

fn tell_end(call: &mut DoorCall<'_, '_>, event: Event, record: &Record) -> Result<Bytes, DoorError> {
    let refunded = schedules::refunded(&event);
    call.tell_about(event, &About { record: Some(record), ..About::of(&Outcome::Success) })?;
    call.answer(&refunded.0)
}

fn get(call: &mut DoorCall<'_, '_>, key: &ScheduleMapKey) -> Result<Bytes, DoorError> {
    let Some(record) = look_up(call, key)? else {
        let nothing = (no_transaction(), IScheduledTransactions::Status::Unknown, U256::ZERO, U256::ZERO);
        return call.answer_all(&nothing);
    };
    let status = if is_stale(call, &record)? {
        IScheduledTransactions::Status::Cancelled
    } else {
        shown(record.head.status)
    };
    let (id, deposit) = (U256::from(record.id.0), record.escrow.0);
    call.answer_all(&(transaction(record), status, id, deposit))
}

fn key_of(call: &mut DoorCall<'_, '_>, id: U256) -> Result<Bytes, DoorError> {
    let record = match u64::try_from(id) {
        Ok(known) => read(call, ScheduleId(known))?,
        Err(_) => None,
    };
    match record {
        Some(record) => call.answer(&shown_key(key_in(&record.body))),
        None => Err(revert(IScheduledTransactions::UnknownKey { txnId: id.into() })),
    }
}

/// The scheduled transaction with a key, also one that has ended and is kept.
fn look_up(call: &mut DoorCall<'_, '_>, key: &ScheduleMapKey) -> Result<Option<Record>, DoorError> {
    let Some(id) = life::find_name(call, key.txnId)? else { return Ok(None) };
    let given = Key { time: key.time, gas_priority: key.gasPriority, txn_id: key.txnId };
    Ok(read(call, id)?.filter(|record| key_in(&record.body) == given))
}

fn read(call: &mut DoorCall<'_, '_>, id: ScheduleId) -> Result<Option<Record>, DoorError> {
    life::look_up(call, Door::Market, id)
        .map_err(|failure: Failure<Infallible, _>| thrown(failure, |never| match never {}))
}

/// Whether `cancelAll` has cancelled one that has neither run nor ended.
fn is_stale(call: &mut DoorCall<'_, '_>, record: &Record) -> Result<bool, DoorError> {
    let is_open = matches!(record.head.status, Status::Pending | Status::Waiting | Status::Quarantined);
    Ok(is_open && life::is_stale(call, record)?)
}

fn service(call: &mut DoorCall<'_, '_>) -> Result<Service, DoorError> {
    let lane = MarketLane::load(call)?
        .map_err(|error| revert(IScheduledTransactions::Unreadable { reason: error.to_string() }))?;
    Ok(Service::of(call.parameters(), lane.phase))
}

/// The key of a scheduled transaction's body.
fn key_in(body: &Body) -> Key {
    let nameless = Key { time: 0, gas_priority: 0, txn_id: B256::ZERO };
    body.terms.market().map_or(nameless, BidTerms::key)
}

fn shown_key(key: Key) -> ScheduleMapKey {
    ScheduleMapKey { time: key.time, gasPriority: key.gas_priority, txnId: key.txn_id }
}

fn transaction(record: Record) -> ScheduledTransaction {
    let Body { owner, gas_limit, terms, mut calls, .. } = record.body;
    let (Some(terms), Some(Call { from, to, value, input })) = (terms.market(), calls.pop()) else {
        return no_transaction();
    };
    ScheduledTransaction {
        senderAddr: owner,
        scheduledTimeMs: terms.scheduled_ms,
        maxGasAmount: gas_limit.0,
        maxGasUnitPrice: terms.bid,
        passSigner: from == owner,
        to,
        value: value.0,
        data: input,
        expiryBlocks: terms.expiry_blocks,
    }
}

fn no_transaction() -> ScheduledTransaction {
    ScheduledTransaction {
        senderAddr: Default::default(),
        scheduledTimeMs: 0,
        maxGasAmount: 0,
        maxGasUnitPrice: 0,
        passSigner: false,
        to: Default::default(),
        value: U256::ZERO,
        data: Bytes::new(),
        expiryBlocks: 0,
    }
}

fn shown(status: Status) -> IScheduledTransactions::Status {
    match status {
        Status::Pending => IScheduledTransactions::Status::Scheduled,
        Status::Waiting => IScheduledTransactions::Status::Waiting,
        Status::Processed | Status::Running => IScheduledTransactions::Status::Running,
        Status::Quarantined => IScheduledTransactions::Status::Quarantined,
        Status::Succeeded => IScheduledTransactions::Status::Succeeded,
        Status::Failed => IScheduledTransactions::Status::Failed,
        Status::Cancelled => IScheduledTransactions::Status::Cancelled,
        Status::Expired => IScheduledTransactions::Status::Expired,
        Status::Shutdown => IScheduledTransactions::Status::Shutdown,
    }
}

fn shown_service(service: Service) -> IScheduledTransactions::Service {
    match service {
        Service::Active => IScheduledTransactions::Service::Active,
        Service::Paused => IScheduledTransactions::Service::Paused,
        Service::Disabled => IScheduledTransactions::Service::Disabled,
        Service::ShutdownInProgress => IScheduledTransactions::Service::ShutdownInProgress,
        Service::ShutdownComplete => IScheduledTransactions::Service::ShutdownComplete,
    }
}

/// What the door says of something that happened to a scheduled transaction. Its logs name the key, which only the
/// record knows.
pub(super) fn event_log(event: &Event, about: &About<'_>) -> Option<Log> {
    let record = about.record?;
    let (id, sender) = (U256::from(event.id.0), record.body.owner);
    let key = shown_key(key_in(&record.body));
    let failed = |code, reason| {
        let failed = IScheduledTransactions::TransactionFailedEvent {
            id,
            senderAddr: sender,
            key: key.clone(),
            cancelledTxnCode: code,
            reason,
        };
        failed.encode_log_data()
    };
    let data = match event.what {
        What::Executed { is_success, gas_used, .. } => IScheduledTransactions::TransactionExecutedEvent {
            id,
            senderAddr: sender,
            key: key.clone(),
            success: is_success,
            gasUsed: U256::from(gas_used.0),
            gasUnitPriceCharged: U256::from(about.price.0),
            refunded: about.refunded.0,
        }
        .encode_log_data(),
        What::Ended { end: End::Cancelled, refunded, .. } => {
            let refunded = refunded.0;
            let cancelled = IScheduledTransactions::TransactionCancelledEvent {
                id,
                senderAddr: sender,
                key: key.clone(),
                refunded,
            };
            cancelled.encode_log_data()
        }
        What::Ended { end: End::Expired, .. } => failed(CancelledTxnCode::Expired, Bytes::new()),
        What::Ended { end: End::Shutdown, .. } => failed(CancelledTxnCode::Shutdown, Bytes::new()),
        What::Ended { end: End::Failed, .. } => {
            failed(CancelledTxnCode::Failed, schedules::reason(about.outcome))
        }
        What::Ended { .. }
        | What::Created { .. }
        | What::Processed { .. }
        | What::ToppedUp { .. }
        | What::Quarantined { .. } => return None,
    };
    Some(Log { address: SCHEDULED_TRANSACTIONS, data })
}

/// The log of a shutdown that begins or is complete.
pub(super) fn shutdown_log(complete: bool) -> Log {
    let data = IScheduledTransactions::ShutdownEvent { complete }.encode_log_data();
    Log { address: SCHEDULED_TRANSACTIONS, data }
}

fn unknown(key: &ScheduleMapKey) -> DoorError {
    revert(IScheduledTransactions::UnknownKey { txnId: key.txnId })
}

fn executed(key: &ScheduleMapKey) -> DoorError {
    revert(IScheduledTransactions::AlreadyExecuted { txnId: key.txnId })
}

fn ended(key: &ScheduleMapKey, status: IScheduledTransactions::Status) -> DoorError {
    revert(IScheduledTransactions::AlreadyEnded { txnId: key.txnId, status })
}

/// Ends a call whose operation did not happen.
fn thrown<R>(failure: Failure<R, DoorError>, refused: impl FnOnce(R) -> DoorError) -> DoorError {
    schedules::thrown(failure, refused, |reason| revert(IScheduledTransactions::Unreadable { reason }))
}

fn refusal(error: &OrderError) -> DoorError {
    use IScheduledTransactions as Market;
    let number = U256::from::<u64>;
    match *error {
        OrderError::TargetIsZero => revert(Market::TargetIsZero {}),
        OrderError::InputTooLong { given, max } => {
            revert(Market::InputTooLong { given: U256::from(given), max: number(max) })
        }
        OrderError::TimeNotInFuture { given, now } => {
            revert(Market::TimeNotInFuture { given: number(given), nowMs: number(now) })
        }
        OrderError::TimeBeyondHorizon { given, max } => {
            revert(Market::TimeBeyondHorizon { given: number(given), max: number(max) })
        }
        OrderError::GasAmountOutOfBounds { given, min, max } => {
            revert(Market::GasAmountOutOfBounds { given: number(given), min: number(min), max: number(max) })
        }
        OrderError::GasUnitPriceTooLow { given, base_fee } => {
            revert(Market::GasUnitPriceTooLow { given: number(given), baseFee: U256::from(base_fee.0) })
        }
        OrderError::ExpiryOutOfBounds { given, max } => {
            revert(Market::ExpiryOutOfBounds { given: U256::from(given), max: number(max) })
        }
    }
}
