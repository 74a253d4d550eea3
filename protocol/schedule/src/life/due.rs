//! What happens to a due schedule that does not run.

use super::{Event, end::end};
use crate::{
    decide::{End, Moment},
    ledger::{Failure, Ledger, save},
    record::{Record, Status},
};
use almanac_primitives::TimestampMs;

/// Ends a schedule without a run and settles its escrow.
pub fn end_without_run<L: Ledger, R>(
    ledger: &mut L,
    record: &Record,
    reason: End,
    moment: Moment,
) -> Result<Event, Failure<R, L::Error>> {
    end(ledger, record, reason, moment)
}

/// Moves a schedule to a later time, without a run and without a charge.
pub fn skip<L: Ledger>(ledger: &mut L, mut record: Record, until: TimestampMs) -> Result<(), L::Error> {
    record.head.due = Some(until);
    ledger.move_entry()?;
    save(ledger, &record)
}

/// Lets a due schedule wait for a better price until it expires at `until`, in its door's unit.
pub fn wait<L: Ledger>(ledger: &mut L, mut record: Record, until: u64) -> Result<(), L::Error> {
    record.head.status = Status::Waiting;
    record.head.until = until;
    ledger.move_entry()?;
    save(ledger, &record)
}
