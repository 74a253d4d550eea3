//! What becomes of a schedule that does not run when its turn comes.

use super::{Event, end::end};
use crate::{
    decide::{End, Moment},
    ledger::{Failure, Ledger, save},
    record::{Record, Status},
};
use almanac_primitives::TimestampMs;

/// Ends a schedule without a run, and divides what it has.
pub fn end_without_run<L: Ledger, R>(
    ledger: &mut L,
    record: &Record,
    reason: End,
    moment: Moment,
) -> Result<Event, Failure<R, L::Error>> {
    end(ledger, record, reason, moment)
}

/// Lets a schedule wait for a later time, without a run and without money.
pub fn skip<L: Ledger>(ledger: &mut L, mut record: Record, until: TimestampMs) -> Result<(), L::Error> {
    record.head.due = Some(until);
    ledger.move_entry()?;
    save(ledger, &record)
}

/// Lets a schedule whose time has come wait for a better price, at most until its door's clock says `until`.
pub fn wait<L: Ledger>(ledger: &mut L, mut record: Record, until: u64) -> Result<(), L::Error> {
    record.head.status = Status::Waiting;
    record.head.until = until;
    ledger.move_entry()?;
    save(ledger, &record)
}
