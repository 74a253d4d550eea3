//! Creates a schedule, or adds signatures to the one that is pending already (HEDERA-03, -04, -05).

use super::{
    DoorCall, DoorError, IScheduleService, Pays, SignatureEntry, body, check_service, gather, identity_of,
    read, refused, some, throttle, thrown, transaction_body,
};
use crate::{doors::schedules::take_exactly, native::gas::list, signed::load_parties, validate::least_gas};
use alloy_primitives::{Address, Bytes, U256};
use almanac_primitives::{
    Gas, Lane, ScheduleId, Wei,
    addresses::SCHEDULE_SERVICE,
    keys::{KEY_BYTES_MAX, KeyTree},
    params::KEY_BYTE_GAS,
    transaction_body::{BodyCall, TransactionBody},
};
use almanac_schedule::{
    Failure, Record,
    callback::{CallbackTerms, Priority},
    decide::End,
    life::{self, NewSchedule},
    record::{Body, Call, Status, Terms, Trigger},
    signed::{
        self, Admitted, Code, Identity, Order, SignedTerms, Tally, admit, book, readiness_gas, required,
    },
};

pub(super) fn create(
    call: &mut DoorCall<'_, '_>,
    encoded: &Bytes,
    admin_key: &Bytes,
    payer: Address,
    entries: &[SignatureEntry],
    pays: Pays,
) -> Result<ScheduleId, DoorError> {
    call.refuse_static()?;
    check_service(call)?;
    let (body, payer) = (body::read(call, encoded)?, some(payer));
    check_admin_key(call, admin_key)?;
    let intrinsic_gas = Gas(least_gas(&list(body.calls.iter().map(|call| (call.value, &call.data)))));
    let order = Order { body: &body, body_bytes: encoded.len(), intrinsic_gas, payer };
    let admitted = admit(order, call.parameters(), call.moment()).map_err(refused)?;
    throttle::take(call, throttle::CREATE)?;
    let identity = identity_of(call, encoded, payer, admin_key)?;
    let known = Identity::load(call, identity)?;
    let found = pending(call, known, encoded, payer, admin_key)?;
    let record = match found {
        Some(record) => {
            take_fee(call, Wei::ZERO, pays)?;
            // Who sends a transaction sees its logs, not the answer.
            let found = IScheduleService::ScheduleFound { id: record.id.0, creator: call.caller() };
            call.emit_from(SCHEDULE_SERVICE, &found)?;
            record
        }
        None => {
            let booked = check_parties(call, &body, payer)?;
            // Only what waits for its second is prepaid; otherwise whoever pays does so when it runs.
            let fee = booked.map_or(Wei::ZERO, |(_, fee)| fee);
            take_fee(call, fee, pays)?;
            let terms = SignedTerms {
                payer,
                admin_key: admin_key.clone(),
                max_fee_per_gas: body.max_fee_per_gas,
                memo: body.memo.clone(),
                nonce: body.nonce,
                execution_time: body.execution_time,
                round: known.round,
                identity,
                booked: booked.map(|(terms, _)| terms),
            };
            store(call, body, terms, admitted, fee)?
        }
    };
    let id = record.id;
    gather::gather(call, record, entries)?;
    Ok(id)
}

/// Whether the keys that must sign can be collected, and the room of what waits for its second, with its price.
fn check_parties(
    call: &mut DoorCall<'_, '_>,
    body: &TransactionBody,
    payer: Option<Address>,
) -> Result<Option<(CallbackTerms, Wei)>, DoorError> {
    let accounts = required(body.calls.iter().map(|call| call.from), payer, call.caller());
    let needed = load_parties(call, accounts)?;
    let leaves = gather::check_leaves(&needed)?;
    if !body.wait_for_expiry {
        return Ok(None);
    }
    let (readiness, moment) = (readiness_gas(needed.len(), leaves), call.moment());
    let booked = book(body.execution_time, body.gas_limit, readiness, call.parameters(), moment);
    let (terms, fee) = booked.map_err(refused)?;
    // Another payer returns the fee to the creator at the run, and its signature allows no more than this (HEDERA-15).
    let is_foreign = payer.is_some_and(|payer| payer != call.caller());
    let most = body.max_fee_per_gas.saturating_mul(U256::from(body.gas_limit));
    if is_foreign && fee.0 > most {
        return Err(refused(Code::InsufficientFee));
    }
    Ok(Some((terms, fee)))
}

fn take_fee(call: &mut DoorCall<'_, '_>, fee: Wei, pays: Pays) -> Result<(), DoorError> {
    match pays {
        Pays::WithValue => take_exactly(call, fee, |_, _| refused(Code::InsufficientFee)),
        Pays::FromFund => take_from_fund(call, fee),
    }
}

fn take_from_fund(call: &mut DoorCall<'_, '_>, fee: Wei) -> Result<(), DoorError> {
    let creator = call.caller();
    if fee > Wei::ZERO && !signed::take(call, creator, fee)? {
        return Err(refused(Code::InsufficientPayerBalance));
    }
    Ok(())
}

/// Pays for an admin key, then checks it.
fn check_admin_key(call: &mut DoorCall<'_, '_>, key: &Bytes) -> Result<(), DoorError> {
    if key.is_empty() {
        return Ok(());
    }
    if key.len() > KEY_BYTES_MAX {
        return Err(refused(Code::BadEncoding));
    }
    call.charge(key.len() as u64 * KEY_BYTE_GAS)?;
    KeyTree::decode(key).map(|_| ()).map_err(|_| refused(Code::BadEncoding))
}

/// The schedule of this identity that is pending. Compares bytes: a hash alone would let a collision sign for another.
fn pending(
    call: &mut DoorCall<'_, '_>,
    known: Identity,
    encoded: &Bytes,
    payer: Option<Address>,
    admin_key: &Bytes,
) -> Result<Option<Record>, DoorError> {
    let Some(id) = known.live else { return Ok(None) };
    let Some(record) = read(call, id)? else { return Err(refused(Code::Unknown)) };
    let is_same = |terms: &SignedTerms| terms.payer == payer && terms.admin_key == *admin_key;
    if !record.body.terms.signed().is_some_and(is_same) || transaction_body(&record.body) != *encoded {
        return Err(refused(Code::Unknown));
    }
    if SignedTerms::is_open(&record, call.moment()) {
        return Ok(Some(record));
    }
    match record.head.status {
        // No block has ended it yet: there was too much to end.
        Status::Pending => {
            let moment = call.moment();
            let event = life::end_without_run(call, &record, End::Expired, moment).map_err(thrown)?;
            call.tell(event)?;
            Ok(None)
        }
        Status::Processed | Status::Running => Err(refused(Code::Executed)),
        _ => Err(refused(Code::Unknown)),
    }
}

fn store(
    call: &mut DoorCall<'_, '_>,
    body: TransactionBody,
    terms: SignedTerms,
    admitted: Admitted,
    fee: Wei,
) -> Result<Record, DoorError> {
    let (creator, payer, round, is_timed) = (call.caller(), terms.payer, terms.round, terms.booked.is_some());
    let calls = body.calls.into_iter().map(|call| {
        let BodyCall { from, to, value, data } = call;
        Call { from, to, value: Wei(value), input: data }
    });
    let body = Body {
        owner: creator,
        // Who prepaid it gets back what is left of that.
        refund_to: payer.filter(|_| !is_timed).unwrap_or(creator),
        gas_limit: Gas(body.gas_limit),
        trigger: if is_timed { Trigger::SignaturesByTime } else { Trigger::Signatures },
        terms: Terms::Signed(terms),
        calls: calls.collect(),
    };
    let (lane, priority) = match is_timed {
        true => (Lane::Reserved, Priority::Medium.rank()),
        false => (Lane::Signed, 0),
    };
    let id = call.next_id()?;
    let new = NewSchedule { body, lane, due: Some(admitted.expires), priority, escrow: fee };
    let shares = call.moment().shares;
    let event = life::create_booked(call, id, new, shares).map_err(|failure| match failure {
        Failure::Refused(_) => refused(Code::ExpiryIsBusy),
        Failure::Broken(_) => refused(Code::Unknown),
        Failure::Ledger(error) => error,
    })?;
    call.tell(event)?;
    let payer = payer.unwrap_or_default();
    let made = IScheduleService::ScheduleCreated { id: id.0, creator, payer, round };
    call.emit_from(SCHEDULE_SERVICE, &made)?;
    let tally = Tally { is_created_nested: !call.is_direct(), ..Tally::default() };
    tally.store(call, id)?;
    // Its creator agrees to pay in `gather`, as whenever it calls.
    read(call, id)?.ok_or_else(|| refused(Code::Unknown))
}
