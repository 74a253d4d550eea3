//! Operations on a schedule: create it, top it up, cancel it; and quarantine it after a fault.

use super::{
    end::end,
    event::{Event, What},
};
use crate::{
    capacity::{self, Booking, NoRoom, RELEASE_GAS, Shares},
    decide::{End, Moment},
    doors::{Door, Terms, signed::Identity},
    ledger::{Failure, Ledger, load, save},
    record::{Body, Head, LastRun, Record, Status, escrow_slot, head_slot, name_slot, name_word, named_by},
};
use alloy_primitives::{Address, B256};
use almanac_primitives::{Lane, ScheduleId, TimestampMs, Wei, params::SCHEDULE_ENDING_GAS};

/// Why a schedule cannot be cancelled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CancelError {
    /// No schedule has this id, or it has ended.
    #[error("there is no schedule {id}")]
    Unknown {
        /// The id.
        id: ScheduleId,
    },
    /// The caller is not the owner.
    #[error("schedule {id} belongs to {owner}, not to {caller}")]
    NotOwner {
        /// The id.
        id: ScheduleId,
        /// The caller.
        caller: Address,
        /// The owner.
        owner: Address,
    },
    /// Its last run is in progress; nothing is left to cancel.
    #[error("schedule {id} is in its last run")]
    UnderWay {
        /// The id.
        id: ScheduleId,
        /// How far it is.
        status: Status,
    },
    /// It has ended, which its door keeps readable for a while.
    #[error("schedule {id} has ended")]
    Ended {
        /// The id.
        id: ScheduleId,
        /// How.
        status: Status,
    },
}

/// Why a schedule cannot be topped up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopUpError {
    /// No schedule has this id, or it has ended.
    #[error("there is no schedule {id}")]
    Unknown {
        /// The id.
        id: ScheduleId,
    },
    /// The escrow would overflow.
    #[error("schedule {id} holds {escrow} and cannot take {amount} more")]
    TooMuch {
        /// The id.
        id: ScheduleId,
        /// The current escrow.
        escrow: Wei,
        /// The amount to add.
        amount: Wei,
    },
}

/// A schedule that a door has admitted, not yet created.
#[derive(Clone, Debug)]
pub struct NewSchedule {
    /// The immutable part of its record.
    pub body: Body,
    /// The lane of its runs.
    pub lane: Lane,
    /// When its first run is due, if a time triggers it.
    pub due: Option<TimestampMs>,
    /// The priority in its door's order. Cron jobs derive it from the record.
    pub priority: u64,
    /// Its money, which the ledger's balance already includes.
    pub escrow: Wei,
}

/// Creates a schedule that its door has checked, and books the room that its terms ask for: all of it, or nothing.
pub fn create_booked<L: Ledger>(
    ledger: &mut L,
    id: ScheduleId,
    new: NewSchedule,
    shares: Shares,
) -> Result<Event, Failure<NoRoom, L::Error>> {
    let record = new.into_record(id);
    if let Some(Booking { second, class, effort }) = record.body.terms.booking(&record) {
        capacity::book(ledger, shares, second, class, effort)?;
    }
    keep(ledger, &record).map_err(Failure::Ledger)
}

/// Creates a schedule that its door has checked, of a door whose terms book no room.
pub fn create<L: Ledger>(ledger: &mut L, id: ScheduleId, new: NewSchedule) -> Result<Event, L::Error> {
    keep(ledger, &new.into_record(id))
}

impl NewSchedule {
    fn into_record(self, id: ScheduleId) -> Record {
        let Self { body, lane, due, priority, escrow } = self;
        let (status, last) = (Status::Pending, LastRun::None);
        Record { id, head: Head { status, lane, last, due, priority, runs: 0, until: 0 }, escrow, body }
    }
}

/// Stores a new record, paid for until its end.
fn keep<L: Ledger>(ledger: &mut L, record: &Record) -> Result<Event, L::Error> {
    ledger.move_entry()?;
    prepay(ledger, record)?;
    ledger.keep_body(record.id, record.body.encode())?;
    save(ledger, record)?;
    if let Some(name) = record.body.terms.hash_name() {
        ledger.store(name_slot(name), name_word(record.id))?;
    }
    if let Terms::Signed(terms) = &record.body.terms {
        Identity { round: terms.round, live: Some(record.id) }.store(ledger, terms.identity)?;
    }
    let Head { lane, due, priority, .. } = record.head;
    let (owner, target, gas_limit) = (record.body.owner, record.body.call().to, record.body.gas_limit);
    Ok(Event::of(record.id, &record.body, What::Created { owner, target, lane, due, gas_limit, priority }))
}

/// Takes the price of what happens to a schedule where nobody pays: its end, the release of its room, where ends
/// are kept two more changes of the calendar, and where it may wait one more.
fn prepay<L: Ledger>(ledger: &mut L, record: &Record) -> Result<(), L::Error> {
    ledger.prepay(SCHEDULE_ENDING_GAS)?;
    if record.body.terms.booking(record).is_some() {
        ledger.prepay(RELEASE_GAS)?;
    }
    if record.body.terms.keeps_ends() {
        ledger.move_entry()?;
        ledger.move_entry()?;
    }
    if record.body.terms.may_wait() {
        ledger.move_entry()?;
    }
    Ok(())
}

/// Finds a schedule of a door that has not ended. A door cannot see the schedules of other doors.
pub fn find<L: Ledger, R>(
    ledger: &mut L,
    door: Door,
    id: ScheduleId,
) -> Result<Option<Record>, Failure<R, L::Error>> {
    Ok(look_up(ledger, door, id)?.filter(|record| !record.head.status.is_ended()))
}

/// A schedule of a door, also one that has ended and is kept. To one door, the schedules of another do not exist.
pub fn look_up<L: Ledger, R>(
    ledger: &mut L,
    door: Door,
    id: ScheduleId,
) -> Result<Option<Record>, Failure<R, L::Error>> {
    Ok(load(ledger, id)?.filter(|record: &Record| record.body.door() == door))
}

/// The schedule that a door's hash leads to, if there is one.
pub fn find_name<L: Ledger>(ledger: &mut L, name: B256) -> Result<Option<ScheduleId>, L::Error> {
    Ok(named_by(ledger.load(name_slot(name))?))
}

/// Cancels a schedule for its owner. Its door's rules define the refund.
pub fn cancel<L: Ledger>(
    ledger: &mut L,
    door: Door,
    id: ScheduleId,
    caller: Address,
    moment: Moment,
) -> Result<Event, Failure<CancelError, L::Error>> {
    let Some(record) = look_up(ledger, door, id)? else {
        return Err(Failure::Refused(CancelError::Unknown { id }));
    };
    let (owner, status) = (record.body.owner, record.head.status);
    if caller != owner {
        return Err(Failure::Refused(CancelError::NotOwner { id, caller, owner }));
    }
    match status {
        Status::Running | Status::Processed => {
            return Err(Failure::Refused(CancelError::UnderWay { id, status }));
        }
        status if status.is_ended() => return Err(Failure::Refused(CancelError::Ended { id, status })),
        _ => {}
    }
    end(ledger, &record, End::Cancelled, moment)
}

/// Adds money that the ledger's balance already includes.
pub fn top_up<L: Ledger>(
    ledger: &mut L,
    door: Door,
    id: ScheduleId,
    amount: Wei,
) -> Result<Event, Failure<TopUpError, L::Error>> {
    let Some(mut record) = find(ledger, door, id)? else {
        return Err(Failure::Refused(TopUpError::Unknown { id }));
    };
    let escrow = record.escrow;
    record.escrow =
        escrow.checked_add(amount).ok_or(Failure::Refused(TopUpError::TooMuch { id, escrow, amount }))?;
    save(ledger, &record).map_err(Failure::Ledger)?;
    Ok(Event::of(id, &record.body, What::ToppedUp { amount, escrow: record.escrow }))
}

/// Takes a schedule out of the calendar because of a fault of our own, and returns the charge of a run that did
/// not take place. Its owner may still cancel it. Returns whether there was a valid head to change.
///
/// Only the head has to be valid. Other damage to the record is left as it is, and the schedule cannot run.
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
