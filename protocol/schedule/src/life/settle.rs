//! The end of a run: what it used is burned, what it did not use returns, and a series that is over ends.

use super::{EXHAUSTED_RUNS, Event, Moment, change::end};
use crate::{
    ledger::{Failure, Ledger, Treasury, load, save},
    record::{LastRun, Record, Status},
};
use almanac_primitives::{Gas, Outcome, Wei};
use std::convert::Infallible;

/// How a run ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'o> {
    /// What became of the call.
    pub outcome: &'o Outcome,
    /// Gas it used.
    pub gas_used: Gas,
}

/// Settles a run that [`begin`](super::begin) began with this record.
pub fn settle<L: Treasury>(
    ledger: &mut L,
    begun: &Record,
    ended: Ended<'_>,
    moment: Moment,
) -> Result<Vec<Event>, Failure<Infallible, L::Error>> {
    let charge = begun.charge(moment.base_fee);
    let cost = begun.cost(moment.base_fee, ended.gas_used);
    let unused = charge.checked_sub(cost).unwrap_or(Wei::ZERO);
    if cost > Wei::ZERO {
        ledger.burn(cost).map_err(Failure::Ledger)?;
    }
    let (id, is_success) = (begun.id, ended.outcome.is_success());
    let mut events = vec![Event::Executed { id, is_success, gas_used: ended.gas_used }];
    match load(ledger, id)? {
        // The run cancelled its own series, or had it cancelled: what it did not use is all that is left.
        None if unused > Wei::ZERO => {
            ledger.credit(begun.body.refund_to, unused).map_err(Failure::Ledger)?;
        }
        None => {}
        Some(mut record) => {
            record.escrow =
                record.escrow.checked_add(unused).expect("no escrow exceeds what was ever issued");
            record.head.last = LastRun::of(ended.outcome);
            events.extend(close(ledger, &record).map_err(Failure::Ledger)?);
        }
    }
    Ok(events)
}

/// Ends a schedule after its last run, or keeps it for the next.
fn close<L: Ledger>(ledger: &mut L, record: &Record) -> Result<Option<Event>, L::Error> {
    if record.head.status != Status::Running {
        save(ledger, record)?;
        return Ok(None);
    }
    end(ledger, record)?;
    let is_series = record.body.interval_ms.is_some();
    Ok(is_series.then_some(Event::Exhausted { id: record.id, reason: EXHAUSTED_RUNS }))
}
