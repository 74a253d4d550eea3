//! What is known about a schedule (HEDERA-09).

use super::{DoorCall, DoorError, IScheduleService::Info, read, transaction_body};
use alloy_primitives::{Address, Bytes};
use almanac_primitives::{ScheduleId, TimestampMs};
use almanac_schedule::{
    Record,
    record::Status,
    signed::{Code, SignedTerms, Tally, signers},
};

/// 22 while it is pending, 212 after every end, 201 once the record is gone.
pub(super) fn info(call: &mut DoorCall<'_, '_>, id: ScheduleId) -> Result<Bytes, DoorError> {
    let Some(record) = read(call, id)? else {
        return call.answer_all(&(Code::InvalidScheduleId.number(), nothing()));
    };
    let tally = Tally::load(call, id)?;
    let recorded = signers(call, id, &tally)?;
    let (ended, ended_at) = end_of(call, &record, &tally);
    let code = match ended {
        0 => Code::Success,
        _ => Code::Deleted,
    };
    let terms = record.body.terms.signed();
    let info = Info {
        scheduleID: id.0,
        creatorAccountID: record.body.owner,
        payerAccountID: terms.and_then(|terms| terms.payer).unwrap_or_default(),
        transactionBody: transaction_body(&record.body),
        signers: recorded.iter().flatten().map(|signer| signer.shown().into()).collect(),
        adminKey: terms.map(|terms| terms.admin_key.clone()).unwrap_or_default(),
        round: terms.map_or(0, |terms| terms.round),
        expiresAt: record.head.due.map_or(0, TimestampMs::seconds),
        ended,
        endedAt: ended_at,
    };
    call.answer_all(&(code.number(), info))
}

/// How it ended, and when: 0 pending, 1 executed, 2 deleted, 3 expired. One that is triggered is executed, and one whose
/// time is over has expired, whether a block has ended it already or not.
fn end_of(call: &DoorCall<'_, '_>, record: &Record, tally: &Tally) -> (u8, u64) {
    let at = tally.ended.map_or(call.moment().now, |ended| ended).seconds();
    match record.head.status {
        Status::Pending if SignedTerms::is_open(record, call.moment()) => (0, 0),
        Status::Pending => (3, record.head.due.map_or(at, TimestampMs::seconds)),
        Status::Waiting | Status::Quarantined => (0, 0),
        Status::Processed | Status::Running | Status::Succeeded | Status::Failed => (1, at),
        Status::Cancelled => (2, at),
        Status::Expired | Status::Shutdown => (3, at),
    }
}

fn nothing() -> Info {
    Info {
        scheduleID: 0,
        creatorAccountID: Address::ZERO,
        payerAccountID: Address::ZERO,
        transactionBody: Bytes::new(),
        signers: Vec::new(),
        adminKey: Bytes::new(),
        round: 0,
        expiresAt: 0,
        ended: 0,
        endedAt: 0,
    }
}
