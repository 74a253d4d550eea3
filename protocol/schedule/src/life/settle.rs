//! The end of a run: settles its charge, and ends the schedule after its last run.

use super::{
    Event,
    begin::Begun,
    end::{end, pay},
    event::What,
};
use crate::{
    decide::{End, Moment, RunEnd, Settlement},
    ledger::{Failure, Ledger, load, save},
    record::{Broken, LastRun, Record, Status},
};
use std::convert::Infallible;

/// Settles a run that [`begin`](super::begin) began.
pub fn settle<L: Ledger>(
    ledger: &mut L,
    begun: &Begun,
    ended: RunEnd<'_>,
    moment: Moment,
) -> Result<Vec<Event>, Failure<Infallible, L::Error>> {
    let Begun { record: selected, charge } = begun;
    let mut settlement = selected.body.terms.settle_run(selected, *charge, ended, moment);
    let id = selected.id;
    if settlement.total() != Some(*charge) {
        return Err(Failure::Broken(Broken::Unsettled { id, amount: *charge }));
    }
    // The refund goes to the escrow if the schedule still exists.
    let refund = std::mem::take(&mut settlement.refund);
    pay(ledger, settlement, selected.body.refund_to, moment).map_err(Failure::Ledger)?;
    let is_success = ended.outcome.is_success();
    let fee = charge.checked_sub(refund).expect("a refund is part of the charge");
    let what = What::Executed { is_success, gas_used: ended.gas_used, fee };
    let mut events = vec![Event::of(id, &selected.body, what)];
    match load(ledger, id)?.filter(|record: &Record| !record.head.status.is_ended()) {
        // The run cancelled its own schedule, directly or not: only the unused part of the charge is left to
        // pay out.
        None => pay(ledger, Settlement::refund(refund), selected.body.refund_to, moment)
            .map_err(Failure::Ledger)?,
        Some(mut record) => {
            record.escrow =
                record.escrow.checked_add(refund).expect("no escrow exceeds what was ever issued");
            record.head.last = LastRun::of(ended.outcome);
            if record.head.status == Status::Running {
                let end_of_runs = last_end(&record, is_success);
                events.push(end(ledger, &record, end_of_runs, moment)?);
            } else {
                save(ledger, &record).map_err(Failure::Ledger)?;
            }
        }
    }
    Ok(events)
}

/// The reason with which a schedule ends after its last run: a series has made all its runs, a single run has
/// its outcome.
fn last_end(record: &Record, is_success: bool) -> End {
    match (record.is_series(), is_success) {
        (true, _) => End::RunsReached,
        (false, true) => End::Succeeded,
        (false, false) => End::Failed,
    }
}
