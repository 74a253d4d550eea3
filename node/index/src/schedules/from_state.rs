//! Adds schedules to an index that starts from a copied state.
//!
//! The state does not contain the first due time of a series, the number of failed runs or what runs cost: counting
//! starts here. Of schedules that have ended and are kept readable, it has how they ended.

use super::{EndReason, Ending, Schedule, find::Tip, write::replace};
use crate::{
    block::Location,
    error::Fault,
    rows::{height_of, state_key},
    store::{Batch, Table, View},
};
use almanac_primitives::{ScheduleId, StateKey, Wei};
use almanac_schedule::{
    Record,
    decide::End,
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
    let (status, location) = (record.head.status, Location::first_of(floor));
    let aside = || Ending { reason: EndReason::Fault(String::new()), refunded: None, location };
    let ended = |end| Ending { reason: EndReason::Ended(end), refunded: None, location };
    let schedule = Schedule {
        id,
        owner: record.body.owner,
        target: record.body.call().to,
        lane: record.head.lane,
        door: Some(record.body.door()),
        first_due: record.head.due,
        runs: record.head.runs.into(),
        runs_failed: u64::from(status == Status::Failed),
        fees: Wei::ZERO,
        quarantine: (status == Status::Quarantined).then(aside),
        end: end_of(status).map(ended),
    };
    batch.insert(Table::ScheduleBodies, &id.0.to_be_bytes(), record.body.encode());
    replace(batch, None, Some(&schedule));
    Ok(())
}

/// How a schedule ended that is kept with this status; `None` if it has not.
fn end_of(status: Status) -> Option<End> {
    End::ALL.into_iter().find(|end| end.status() == status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_says_how_it_ended() {
        let kept = [Status::Succeeded, Status::Failed, Status::Cancelled, Status::Expired, Status::Shutdown];
        let ends = kept.map(|status| end_of(status).unwrap());
        assert_eq!(ends, [End::Succeeded, End::Failed, End::Cancelled, End::Expired, End::Shutdown]);
        for lives in
            [Status::Pending, Status::Processed, Status::Running, Status::Quarantined, Status::Waiting]
        {
            assert_eq!(end_of(lives), None, "{lives:?}");
        }
    }
}
