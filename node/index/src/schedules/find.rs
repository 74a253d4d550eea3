//! Reads schedules and their runs from the rows.

use super::{
    KnownSchedule, PastRun, Schedule, ScheduleFilter, SchedulePage, ScheduleStatus,
    rows::{List, listed, read_run, read_schedule, run_of},
};
use crate::{
    block::Location,
    error::Fault,
    participants::Direction,
    rows,
    store::{Row, Table, View},
};
use alloy_primitives::Bytes;
use almanac_primitives::{ScheduleId, StateKey, StateRead, StateReadError};
use almanac_schedule::{
    Record,
    record::{Body, LastRun, RecordError},
};
use std::ops::RangeInclusive;

/// A schedule with everything known of it.
pub(crate) fn known(view: &View<'_>, id: ScheduleId) -> Result<Option<KnownSchedule>, Fault> {
    schedule(view, id)?.map(|schedule| complete(view, schedule)).transpose()
}

/// A schedule as its events describe it.
pub(super) fn schedule(view: &View<'_>, id: ScheduleId) -> Result<Option<Schedule>, Fault> {
    view.get(Table::Schedules, &id.0.to_be_bytes(), |row| read_schedule(id, row))
}

/// The body of a schedule, also after its end; `None` if it ended in the block that created it.
pub(crate) fn body(view: &View<'_>, id: ScheduleId) -> Result<Option<Body>, Fault> {
    let row = |error| Fault::Row { table: "schedule bodies", error };
    view.get(Table::ScheduleBodies, &id.0.to_be_bytes(), |body| Body::decode(body).map_err(row))
}

fn complete(view: &View<'_>, schedule: Schedule) -> Result<KnownSchedule, Fault> {
    let id = schedule.id;
    let body = body(view, id)?;
    let record = match Record::read(&Tip(view), id) {
        Ok(record) => record,
        Err(RecordError::Read(error)) => return Err(error.into()),
        // A broken record: the schedule is quarantined for it, or will be.
        Err(RecordError::Broken(_)) => None,
    };
    let all = Location::first_of(0)..=Location::last_of(u64::MAX);
    let last_run = match &record {
        Some(record) => record.head.last,
        // Its record is gone with its end.
        None => {
            runs_of(view, id, &all, Direction::Descending, 1)?.first().map_or(LastRun::None, |run| run.result)
        }
    };
    Ok(KnownSchedule { schedule, body, record, last_run })
}

/// The state after the last block, read from a view of the rows.
pub(super) struct Tip<'v, 's>(pub(super) &'v View<'s>);

impl StateRead for Tip<'_, '_> {
    fn read(&self, key: StateKey) -> Result<Option<Bytes>, StateReadError> {
        let value = self.0.get(Table::State, &rows::state_key(&key), |row| Ok(Bytes::copy_from_slice(row)));
        value.map_err(|fault| StateReadError::failed(key, fault.to_string()))
    }
}

/// A page of the schedules that match a filter. Reads at most `looked_at_max` schedules, so that a filter
/// without matches does not scan all of them.
pub(crate) fn find(
    view: &View<'_>,
    filter: &ScheduleFilter,
    after: Option<ScheduleId>,
    limit: usize,
    looked_at_max: usize,
) -> Result<SchedulePage, Fault> {
    let mut page = SchedulePage { schedules: Vec::new(), next: None };
    let (all, past) = (0..=u64::MAX, after.map(|after| after.0));
    let wanted = match (filter.order, past) {
        (_, None) => Some(all),
        (Direction::Ascending, Some(past)) => past.checked_add(1).map(|from| from..=u64::MAX),
        (Direction::Descending, Some(past)) => past.checked_sub(1).map(|to| 0..=to),
    };
    let Some(wanted) = wanted else { return Ok(page) };
    let mut last = after;
    for (looked_at, id) in candidates(view, filter, &wanted).enumerate() {
        // At least one, so that every page makes progress.
        if page.schedules.len() == limit || looked_at == looked_at_max.max(1) {
            page.next = last;
            break;
        }
        let id = id?;
        last = Some(id);
        let found = schedule(view, id)?;
        let found = found.ok_or_else(|| Fault::Missing(format!("schedule {id}, which is in a list,")))?;
        if filter.matches(&found) {
            let found = complete(view, found)?;
            page.schedules.extend(Some(found).filter(|found| filter.matches_due(found)));
        }
    }
    Ok(page)
}

/// The schedules with ids in a range, in the filter's order: of the filter's owner, else of its target, else of its door and status, else with its
/// status, else all.
fn candidates<'v>(
    view: &'v View<'_>,
    filter: &ScheduleFilter,
    ids: &RangeInclusive<u64>,
) -> Box<dyn Iterator<Item = Result<ScheduleId, Fault>> + 'v> {
    let status = filter.status.or(filter.due.as_ref().map(|_| ScheduleStatus::Pending));
    let list = filter.owner.map(List::Owner).or(filter.target.map(List::Target));
    let list = list.or(filter.door.zip(status).map(|(door, status)| List::Door(door, status)));
    let list = list.or(status.map(List::Status));
    let (first, last) = (ScheduleId(*ids.start()), ScheduleId(*ids.end()));
    let rows = match list {
        Some(list) => view.range(Table::ScheduleLists, &listed(&list, first)..=&listed(&list, last)),
        None => view.range(Table::Schedules, &first.0.to_be_bytes()..=&last.0.to_be_bytes()),
    };
    Box::new(filter.order.of(rows).map(|row: Result<Row, Fault>| Ok(ScheduleId(rows::height_of(&row?.0)?))))
}

impl ScheduleFilter {
    fn matches(&self, schedule: &Schedule) -> bool {
        self.owner.is_none_or(|owner| owner == schedule.owner)
            && self.target.is_none_or(|target| target == schedule.target)
            && self.status.is_none_or(|status| status == schedule.status())
            && self.lane.is_none_or(|lane| lane == schedule.lane)
            && self.door.is_none_or(|door| Some(door) == schedule.door)
    }

    fn matches_due(&self, known: &KnownSchedule) -> bool {
        let waiting = known.record.as_ref().filter(|record| record.head.status.awaits_run());
        let due = waiting.and_then(|record| record.head.due);
        self.due.as_ref().is_none_or(|times| due.is_some_and(|due| times.contains(&due)))
    }
}

/// Where a schedule ran.
pub(crate) fn runs_of(
    view: &View<'_>,
    id: ScheduleId,
    range: &RangeInclusive<Location>,
    direction: Direction,
    limit: usize,
) -> Result<Vec<PastRun>, Fault> {
    let (first, last) = (run_of(id, *range.start()), run_of(id, *range.end()));
    let found = direction.of(view.range(Table::ScheduleRuns, &first..=&last));
    let read = |row: Result<Row, Fault>| row.and_then(|(key, row)| read_run(&key, &row));
    found.take(limit).map(read).collect()
}
