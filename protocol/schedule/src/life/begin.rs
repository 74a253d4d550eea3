//! The start of a run: deducts the charge and re-arms the series before the call.

use super::is_stale;
use crate::{
    decide::{Decision, Moment, NextRun, decide},
    ledger::{Failure, Ledger, load, save},
    record::{Broken, Record, Status},
};
use almanac_primitives::{ScheduleRef, Wei};
use std::convert::Infallible;

/// A run that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Its schedule as the call will see it.
    pub record: Record,
    /// The amount deducted from the escrow. It stays in the ledger until the run is settled.
    pub charge: Wei,
}

/// Begins a run that the start of the block selected. Returns `None` if another run of the block has ended the
/// schedule in the meantime, or a later epoch of its owner.
///
/// The charge leaves the escrow and stays in the ledger until the run is settled. A series is re-armed before
/// the call, so that no call can stop it. A last run is marked as running, so that it cannot be cancelled.
pub fn begin<L: Ledger>(
    ledger: &mut L,
    reference: ScheduleRef,
    moment: Moment,
) -> Result<Option<Begun>, Failure<Infallible, L::Error>> {
    let Some(mut record) = load(ledger, reference.schedule)? else { return Ok(None) };
    if record.head.status.is_ended() {
        return Ok(None);
    }
    if is_stale(ledger, &record).map_err(Failure::Ledger)? {
        return Ok(None);
    }
    // Since its selection the schedule can only have been cancelled: escrows only grow, and the time is the
    // block's.
    let changed = Broken::Changed { id: record.id };
    let is_expected = match record.head.status {
        Status::Processed => record.body.terms.is_processed(),
        Status::Pending => !record.body.terms.is_processed(),
        Status::Waiting => record.body.terms.may_wait(),
        _ => false,
    };
    let is_selected = is_expected && u64::from(record.head.runs) == reference.number;
    let (true, Decision::Run { charge, again, .. }) = (is_selected, decide(&record, moment)) else {
        return Err(Failure::Broken(changed));
    };
    let lent = lent(&record);
    let left = record.escrow.checked_sub(charge).and_then(|left| left.checked_sub(lent));
    record.escrow = left.ok_or(Failure::Broken(changed))?;
    match again {
        NextRun::At(next) => record.head.due = Some(next),
        NextRun::Never => record.head.status = Status::Running,
    }
    record.head.runs = record.head.runs.saturating_add(1);
    save(ledger, &record).map_err(Failure::Ledger)?;
    if lent > Wei::ZERO {
        ledger.credit(record.body.call().from, lent).map_err(Failure::Ledger)?;
    }
    Ok(Some(Begun { record, charge }))
}

/// The value of the call, where the escrow holds it: the sender of the call must have it.
fn lent(record: &Record) -> Wei {
    if record.body.terms.holds_value() { record.body.call().value } else { Wei::ZERO }
}
