//! Adds schedules to an index that starts from a copied state.
//!
//! The state does not contain the first due time of a series or the number of failed runs: counting starts
//! here.

use super::{EndReason, Ending, Schedule, find::Tip, write::replace};
use crate::{
    block::Location,
    error::Fault,
    rows::{height_of, state_key},
    store::{Batch, Table, View},
};
use almanac_primitives::{ScheduleId, StateKey};
use almanac_schedule::{
    Record,
    record::{RecordError, Status},
};

/// The schedules that have a body in the state.
pub(crate) fn living(view: &View<'_>) -> Result<Vec<ScheduleId>, Fault> {
    let key = |number| state_key(&StateKey::Body(ScheduleId(number)));
    let rows = view.range(Table::State, &key(0)..=&key(u64::MAX));
    rows.map(|row| height_of(&row?.0).map(ScheduleId)).collect()
}

/// Adds a schedule as it is in the state after block `floor`.
pub(crate) fn add_living(
    batch: &mut Batch,
    view: &View<'_>,
    id: ScheduleId,
    floor: u64,
) -> Result<(), Fault> {
    let record = match Record::read(&Tip(view), id) {
        Ok(Some(record)) => record,
        // A broken record: the schedule is quarantined for it, or will be.
        Ok(None) | Err(RecordError::Broken(_)) => return Ok(()),
        Err(RecordError::Read(error)) => return Err(error.into()),
    };
    let is_aside = record.head.status == Status::Quarantined;
    let schedule = Schedule {
        id,
        owner: record.body.owner,
        target: record.body.call().to,
        lane: record.head.lane,
        first_due: record.head.due,
        runs: record.head.runs.into(),
        runs_failed: 0,
        quarantine: is_aside
            .then(|| Ending { reason: EndReason::Fault(String::new()), location: Location::first_of(floor) }),
        end: None,
    };
    batch.insert(Table::ScheduleBodies, &id.0.to_be_bytes(), record.body.encode());
    replace(batch, None, Some(&schedule));
    Ok(())
}
