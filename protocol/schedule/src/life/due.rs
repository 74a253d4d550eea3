//! What happens to a due schedule that does not run.

use super::{Event, end::end};
use crate::{
    decide::{End, Moment},
    ledger::{Failure, Ledger, save},
    record::{Head, Record, Status, head_slot},
};
use almanac_primitives::{ScheduleId, TimestampMs};

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

/// Lets a pending schedule wait for a better price, from `now` of its lane's clock for as long as its head says. Does
/// nothing to any other.
pub fn wait<L: Ledger>(ledger: &mut L, id: ScheduleId, now: u64) -> Result<(), L::Error> {
    let Ok(mut head) = Head::from_word(ledger.load(head_slot(id))?) else { return Ok(()) };
    if head.status != Status::Pending {
        return Ok(());
    }
    head.status = Status::Waiting;
    head.until = now.saturating_add(head.until);
    ledger.move_entry()?;
    ledger.store(head_slot(id), head.to_word())
}
