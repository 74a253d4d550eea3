//! The step before a run, for doors that mark what a block takes up before anything of it begins.

use super::{Event, event::What};
use crate::{
    capacity::{self, Booking},
    decide::Moment,
    ledger::{Failure, Ledger, save},
    record::{Broken, Record, Status},
};
use std::convert::Infallible;

/// Marks a schedule whose run follows in this block, and releases its room: seconds that have passed leave nothing
/// behind.
pub fn process<L: Ledger>(
    ledger: &mut L,
    mut record: Record,
    moment: Moment,
) -> Result<Event, Failure<Infallible, L::Error>> {
    release(ledger, &record, moment)?;
    record.head.status = Status::Processed;
    save(ledger, &record).map_err(Failure::Ledger)?;
    Ok(Event::of(record.id, &record.body, What::Processed { gas_limit: record.body.gas_limit }))
}

/// Releases the room that a schedule holds: from its creation until it is processed or ends.
pub(super) fn release<L: Ledger, R>(
    ledger: &mut L,
    record: &Record,
    moment: Moment,
) -> Result<(), Failure<R, L::Error>> {
    let booking = record.body.terms.booking(record).filter(|_| record.head.status == Status::Pending);
    let Some(Booking { second, class, effort }) = booking else { return Ok(()) };
    capacity::release(ledger, moment.shares, second, class, effort).map_err(|failure| match failure {
        Failure::Refused(error) => Failure::Broken(Broken::NotBooked { id: record.id, error }),
        Failure::Broken(broken) => Failure::Broken(broken),
        Failure::Ledger(error) => Failure::Ledger(error),
    })
}
