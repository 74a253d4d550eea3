//! Lists schedules of which only the state is known, as where it was copied.
//!
//! The state does not say when a series was first due, nor how many of its runs failed: it counts from here on.

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

/// Lists a schedule as the state has it after block `floor`.
pub(crate) fn add_living(
    batch: &mut Batch,
    view: &View<'_>,
    id: ScheduleId,
    floor: u64,
) -> Result<(), Fault> {
    let record = match Record::read(&Tip(view), id) {
        Ok(Some(record)) => record,
        // It is quarantined for that very reason, or will be.
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
