//! The schedule service: Hedera's transactions that wait for signatures.

mod body;
mod create;
mod delete;
mod fund;
mod gather;
mod hip1215;
mod info;
mod throttle;

pub(crate) use body::transaction_body;
pub(super) use hip1215::{call as call_hip1215, call_facade, is_facade_call, may_be_schedule};

use super::{
    About,
    accounts::HASH_WORD_GAS,
    call::{CALL_GAS, DoorCall, DoorError, revert},
    schedules,
};
use alloy_primitives::{Address, Bytes, Log, U256};
use alloy_sol_types::SolEvent as _;
use almanac_primitives::{
    Halt, Outcome, ScheduleId,
    addresses::SCHEDULE_SERVICE,
    params::{SIGNED_ENABLED, SIGNED_PAUSED, SIGNED_RUN_GAS_MAX},
    transaction_body::identity_hash,
};
use almanac_schedule::{
    Failure, Record,
    capacity::{self, Class},
    decide::End,
    life::{self, Event, What},
    record::{Door, Status},
    signed::{Code, Identity, SignedTerms, book, readiness_gas},
};
use std::convert::Infallible;

alloy_sol_types::sol!("../../contracts/IScheduleService.sol");
use IScheduleService::{IScheduleServiceCalls as Method, SignatureEntry};

/// Gas of a call, with what any door's costs: to read it and refuse it takes as long as this much of plain code
/// (`make bench-prices`).
const ORDER_GAS: u64 = 1_000;

/// Longest input of any method: the longest body and admin key, and as many signatures as a call may bring.
const INPUT_BYTES_MAX: usize = 32 * 1024;

/// How a creator prepays what waits for its second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pays {
    /// With the value of the call.
    WithValue,
    /// From its fund: contracts written for Hedera send none.
    FromFund,
}

/// Answers one call.
pub(super) fn call(call: &mut DoorCall<'_, '_>) -> Result<Bytes, DoorError> {
    if call.input_len() > INPUT_BYTES_MAX {
        return Err(refused(Code::TooLarge));
    }
    call.charge(ORDER_GAS - CALL_GAS)?;
    charge_copies(call, call.input_len())?;
    match call.decode::<Method>()? {
        Method::createSchedule(args) => {
            let (body, key, entries) = (&args.transactionBody, &args.adminKey, &args.sigMap);
            let id = create::create(call, body, key, args.payer, entries, Pays::WithValue)?;
            call.answer(&id.0)
        }
        Method::signSchedule(args) => {
            sign(call, ScheduleId(args.scheduleID), &args.sigMap)?;
            Ok(Bytes::new())
        }
        Method::deleteSchedule(args) => {
            delete::delete(call, ScheduleId(args.scheduleID), &args.sigMap)?;
            Ok(Bytes::new())
        }
        Method::getScheduleInfo(args) => info::info(call, ScheduleId(args.scheduleID)),
        Method::roundOf(args) => {
            let identity = identity_of(call, &args.transactionBody, some(args.payer), &args.adminKey)?;
            let round = Identity::load(call, identity)?.round;
            call.answer(&round)
        }
        Method::hasScheduleCapacity(args) => {
            let has_capacity = has_capacity(call, args.second, args.gasLimit)?;
            call.answer(&has_capacity)
        }
        Method::fund(args) => fund::fund(call, args.account),
        Method::fundOf(args) => fund::fund_of(call, args.account),
        Method::withdraw(args) => fund::withdraw(call, args.amount),
    }
}

/// The items of a list of byte strings may overlap, so that decoding copies up to a quarter of the square of the bytes:
/// paid at the price of copying, and bounded.
fn charge_copies(call: &mut DoorCall<'_, '_>, bytes: usize) -> Result<(), DoorError> {
    let words = bytes.div_ceil(32) as u64;
    call.charge(words * words * 3 / 4)
}

/// Adds signatures to a schedule (HEDERA-06).
fn sign(call: &mut DoorCall<'_, '_>, id: ScheduleId, entries: &[SignatureEntry]) -> Result<(), DoorError> {
    call.refuse_static()?;
    // Before the throttle: who has a wrong id hears so whatever others do.
    let record = find(call, id)?;
    check_service(call)?;
    throttle::take(call, throttle::SIGN)?;
    let gathered = gather::gather(call, record, entries)?;
    if !gathered.is_new && !gathered.is_triggered {
        return Err(refused(Code::NoNewSignatures));
    }
    Ok(())
}

/// Whether a schedule that waits for this second would find room, by the code that books it (HEDERA-21).
fn has_capacity(call: &mut DoorCall<'_, '_>, second: U256, gas_limit: U256) -> Result<bool, DoorError> {
    let (Ok(second), Ok(gas_limit)) = (u64::try_from(second), u64::try_from(gas_limit)) else {
        return Ok(false);
    };
    let (parameters, moment) = (call.parameters(), call.moment());
    if check_service(call).is_err() || gas_limit > parameters.get(SIGNED_RUN_GAS_MAX) {
        return Ok(false);
    }
    // For the calls of one account with a key of one leaf, as contracts have.
    let booked = book(second, gas_limit, readiness_gas(1, 1), parameters, moment);
    let Ok((terms, _)) = booked else { return Ok(false) };
    Ok(capacity::available(call, moment.shares, second, Class::Medium)? >= terms.effort)
}

/// A schedule that can be signed, or why it cannot.
fn find(call: &mut DoorCall<'_, '_>, id: ScheduleId) -> Result<Record, DoorError> {
    let Some(record) = read(call, id)? else { return Err(refused(Code::InvalidScheduleId)) };
    match record.head.status {
        Status::Pending if SignedTerms::is_open(&record, call.moment()) => Ok(record),
        Status::Pending => Err(refused(Code::Expired)),
        status => Err(refused(ended_code(status))),
    }
}

/// What a schedule that is not pending answers with.
fn ended_code(status: Status) -> Code {
    match status {
        Status::Cancelled => Code::Deleted,
        // Its second came while the service was switched off.
        Status::Expired | Status::Shutdown => Code::Expired,
        Status::Processed | Status::Running | Status::Succeeded | Status::Failed => Code::Executed,
        Status::Pending | Status::Waiting | Status::Quarantined => Code::Unknown,
    }
}

fn read(call: &mut DoorCall<'_, '_>, id: ScheduleId) -> Result<Option<Record>, DoorError> {
    life::look_up(call, Door::Signed, id).map_err(|failure: Failure<Infallible, _>| thrown(failure))
}

/// Ends a call whose operation a fault of the chain's own prevents.
fn thrown(failure: Failure<Infallible, DoorError>) -> DoorError {
    schedules::thrown(failure, |never| match never {}, |_| refused(Code::Unknown))
}

/// Whether the service takes anything.
fn check_service(call: &DoorCall<'_, '_>) -> Result<(), DoorError> {
    if call.parameters().get(SIGNED_ENABLED) == 0 {
        return Err(refused(Code::NotSupported));
    }
    if call.parameters().get(SIGNED_PAUSED) == 1 {
        return Err(refused(Code::Busy));
    }
    Ok(())
}

/// The hash by which a schedule is found, paid for.
fn identity_of(
    call: &mut DoorCall<'_, '_>,
    transaction_body: &[u8],
    payer: Option<Address>,
    admin_key: &[u8],
) -> Result<alloy_primitives::B256, DoorError> {
    call.charge_words(transaction_body.len() + admin_key.len() + 64, HASH_WORD_GAS)?;
    Ok(identity_hash(transaction_body, payer, admin_key))
}

/// An address that may be absent.
fn some(address: Address) -> Option<Address> {
    (!address.is_zero()).then_some(address)
}

fn refused(code: Code) -> DoorError {
    revert(IScheduleService::Refused { responseCode: code.number() })
}

/// What the service says of something that happened to a schedule. Its own calls say the rest.
pub(super) fn event_log(event: &Event, about: &About<'_>) -> Option<Log> {
    let id = event.id.0;
    let data = match event.what {
        What::Processed { .. } => IScheduleService::ScheduleTriggered { id }.encode_log_data(),
        What::Executed { .. } => {
            IScheduleService::ScheduleExecuted { id, code: run_code(about.outcome).number() }
                .encode_log_data()
        }
        What::Ended { end: End::Cancelled, .. } => IScheduleService::ScheduleDeleted { id }.encode_log_data(),
        What::Ended { end: End::Expired | End::Shutdown, .. } => {
            IScheduleService::ScheduleExpired { id }.encode_log_data()
        }
        What::Ended { .. } | What::Created { .. } | What::ToppedUp { .. } | What::Quarantined { .. } => {
            return None;
        }
    };
    Some(Log { address: SCHEDULE_SERVICE, data })
}

/// How a run ended (HEDERA-14, -15).
fn run_code(outcome: &Outcome) -> Code {
    match outcome {
        Outcome::Success => Code::Success,
        Outcome::Halted(Halt::OutOfGas) => Code::InsufficientGas,
        Outcome::Halted(Halt::InsufficientBalance) => Code::InsufficientPayerBalance,
        Outcome::Reverted(_) | Outcome::Halted(_) => Code::Reverted,
    }
}
