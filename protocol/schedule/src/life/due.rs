//! What becomes of a schedule whose time has come, decided at the start of a block.

use super::{EXHAUSTED_ESCROW, Event, Moment, change::end};
use crate::{
    ledger::{Ledger, save},
    record::{CatchUp, Record},
};
use almanac_primitives::TimestampMs;

/// What a block does with a due schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It runs, for this due time.
    Run(TimestampMs),
    /// Its escrow does not pay for a run: it ends.
    Exhausted,
    /// It missed its times and wants none of them: it waits until then.
    Skipped(TimestampMs),
}

/// Decides on a due schedule. Nothing changes.
pub fn judge(record: &Record, moment: Moment) -> Verdict {
    let due = match missed(record, moment.now) {
        Missed::None => record.head.due,
        Missed::Some { latest, .. } if record.body.catch_up == CatchUp::Latest => latest,
        Missed::Some { next: Some(next), .. } if record.body.catch_up == CatchUp::Skip => {
            return Verdict::Skipped(next);
        }
        Missed::Some { .. } => record.head.due,
    };
    if record.escrow < record.charge(moment.base_fee) { Verdict::Exhausted } else { Verdict::Run(due) }
}

/// Whether a series has missed a time entirely: the one after it has come as well.
enum Missed {
    None,
    Some {
        /// The latest time that has come.
        latest: TimestampMs,
        /// The first that has not; `None` at the end of time.
        next: Option<TimestampMs>,
    },
}

fn missed(record: &Record, now: TimestampMs) -> Missed {
    let (Some(interval), Some(late)) = (record.body.interval(), now.since(record.head.due)) else {
        return Missed::None;
    };
    let Some(intervals) = late.0.checked_div(interval.0).filter(|intervals| *intervals > 0) else {
        return Missed::None;
    };
    // At most `now`: no overflow.
    let latest = TimestampMs(record.head.due.0 + intervals * interval.0);
    Missed::Some { latest, next: latest.checked_add(interval) }
}

/// Ends a schedule that cannot pay, and pays back what it has.
pub fn exhaust<L: Ledger>(ledger: &mut L, record: &Record) -> Result<Event, L::Error> {
    end(ledger, record)?;
    Ok(Event::Exhausted { id: record.id, reason: EXHAUSTED_ESCROW })
}

/// Lets a schedule wait for a later time, without a run and without money.
pub fn skip<L: Ledger>(ledger: &mut L, mut record: Record, until: TimestampMs) -> Result<(), L::Error> {
    record.head.due = until;
    ledger.move_entry()?;
    save(ledger, &record)
}
