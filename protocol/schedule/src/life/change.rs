//! What people do to a schedule: create it, add money, end it. And what a fault does: put it aside.

use crate::{
    ledger::{Failure, Ledger, load, remove, save},
    record::{Body, Head, LastRun, Record, Status, escrow_slot, head_slot},
};
use alloy_primitives::Address;
use almanac_primitives::{Lane, ScheduleId, TimestampMs, Wei};

/// Why a schedule cannot be cancelled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CancelError {
    /// There is none with this id, or no longer.
    #[error("there is no schedule {id}")]
    Unknown {
        /// The id.
        id: ScheduleId,
    },
    /// It is somebody else's.
    #[error("schedule {id} belongs to {owner}, not to {caller}")]
    NotOwner {
        /// The id.
        id: ScheduleId,
        /// Who asked.
        caller: Address,
        /// Who may.
        owner: Address,
    },
    /// Its last run is under way, and there is nothing left to cancel.
    #[error("schedule {id} is in its last run")]
    InLastRun {
        /// The id.
        id: ScheduleId,
    },
}

/// Why a schedule cannot be topped up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopUpError {
    /// There is none with this id, or no longer.
    #[error("there is no schedule {id}")]
    Unknown {
        /// The id.
        id: ScheduleId,
    },
    /// No schedule can hold so much.
    #[error("schedule {id} holds {escrow} and cannot take {amount} more")]
    TooMuch {
        /// The id.
        id: ScheduleId,
        /// What it holds.
        escrow: Wei,
        /// What was offered.
        amount: Wei,
    },
}

/// A schedule that was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled {
    /// Whose it was.
    pub owner: Address,
    /// What was paid back.
    pub refunded: Wei,
}

/// Creates a schedule whose escrow is in the ledger's balance already. Its door has checked everything.
pub fn create<L: Ledger>(
    ledger: &mut L,
    id: ScheduleId,
    body: &Body,
    lane: Lane,
    due: TimestampMs,
    escrow: Wei,
) -> Result<(), L::Error> {
    let (price, skip_seconds) = (body.price(escrow), body.skip_seconds());
    let head = Head { status: Status::Pending, lane, last: LastRun::None, due, price, runs: 0, skip_seconds };
    ledger.move_entry()?;
    ledger.prepay_ending()?;
    ledger.keep_body(id, body.encode())?;
    ledger.store(head_slot(id), head.to_word())?;
    ledger.store(escrow_slot(id), escrow.0)
}

/// Ends a schedule for its owner and pays the whole escrow back.
pub fn cancel<L: Ledger>(
    ledger: &mut L,
    id: ScheduleId,
    caller: Address,
) -> Result<Cancelled, Failure<CancelError, L::Error>> {
    let Some(record) = load(ledger, id)? else {
        return Err(Failure::Refused(CancelError::Unknown { id }));
    };
    let owner = record.body.owner;
    if caller != owner {
        return Err(Failure::Refused(CancelError::NotOwner { id, caller, owner }));
    }
    if record.head.status == Status::Running {
        return Err(Failure::Refused(CancelError::InLastRun { id }));
    }
    end(ledger, &record).map_err(Failure::Ledger)?;
    Ok(Cancelled { owner, refunded: record.escrow })
}

/// Adds money that is in the ledger's balance already, and answers with what the schedule then holds.
pub fn top_up<L: Ledger>(
    ledger: &mut L,
    id: ScheduleId,
    amount: Wei,
) -> Result<Wei, Failure<TopUpError, L::Error>> {
    let Some(mut record) = load(ledger, id)? else {
        return Err(Failure::Refused(TopUpError::Unknown { id }));
    };
    let escrow = record.escrow;
    record.escrow =
        escrow.checked_add(amount).ok_or(Failure::Refused(TopUpError::TooMuch { id, escrow, amount }))?;
    save(ledger, &record).map_err(Failure::Ledger)?;
    Ok(record.escrow)
}

/// Takes a schedule out of the calendar because of a fault of our own, and gives back what a run of it that never
/// took place was charged. Its owner may still cancel it. Answers whether there was a head to change.
///
/// Only the head has to make sense: what else is wrong with the record is left as it is, and nothing can run it.
pub fn quarantine<L: Ledger>(ledger: &mut L, id: ScheduleId, returned: Wei) -> Result<bool, L::Error> {
    let Ok(mut head) = Head::from_word(ledger.load(head_slot(id))?) else { return Ok(false) };
    head.status = Status::Quarantined;
    ledger.store(head_slot(id), head.to_word())?;
    if returned > Wei::ZERO {
        let escrow = ledger.load(escrow_slot(id))?;
        ledger.store(escrow_slot(id), escrow.saturating_add(returned.0))?;
    }
    Ok(true)
}

/// Takes a record away and pays what is left of its escrow back.
pub(super) fn end<L: Ledger>(ledger: &mut L, record: &Record) -> Result<(), L::Error> {
    ledger.move_entry()?;
    remove(ledger, record.id)?;
    if record.escrow > Wei::ZERO {
        ledger.credit(record.body.refund_to, record.escrow)?;
    }
    Ok(())
}
