//! Takes what a block says of schedules, and takes it back.

use super::{
    Ending, Schedule, ScheduleStatus,
    find::schedule,
    rows::{self, List, listed, run_of},
};
use crate::{
    block::{IndexedBlock, Location},
    error::Fault,
    event::ScheduleEvent,
    store::{Batch, Table, View},
};
use almanac_primitives::{Receipt, ScheduleId, StateDiff, StateKey};
use almanac_schedule::record::Body;
use std::collections::BTreeMap;

/// Adds what a block says.
pub(crate) fn add(
    batch: &mut Batch,
    view: &View<'_>,
    indexed: &IndexedBlock,
    diff: &StateDiff,
) -> Result<(), Fault> {
    let mut now = BTreeMap::new();
    for (location, receipt) in receipts(indexed) {
        if let Some(run) = receipt.schedule_ref {
            batch.insert(Table::ScheduleRuns, &run_of(run.schedule, location), []);
            if let Some(schedule) = entry(&mut now, view, run.schedule)? {
                schedule.runs += 1;
                schedule.runs_failed += u64::from(!receipt.outcome.is_success());
            }
        }
        for event in receipt.logs.iter().filter_map(ScheduleEvent::of_log) {
            let known = entry(&mut now, view, event.id())?;
            let body = || created_body(batch, diff, event.id());
            apply(known, &event, location, body);
        }
    }
    for (id, now) in now {
        replace(batch, schedule(view, id)?.as_ref(), now.as_ref());
    }
    Ok(())
}

/// Takes back what a block said.
pub(crate) fn take_back(batch: &mut Batch, view: &View<'_>, indexed: &IndexedBlock) -> Result<(), Fault> {
    let mut before = BTreeMap::new();
    for (location, receipt) in receipts(indexed) {
        if let Some(run) = receipt.schedule_ref {
            batch.remove(Table::ScheduleRuns, &run_of(run.schedule, location));
            if let Some(schedule) = entry(&mut before, view, run.schedule)? {
                schedule.runs -= 1;
                schedule.runs_failed -= u64::from(!receipt.outcome.is_success());
            }
        }
        for event in receipt.logs.iter().filter_map(ScheduleEvent::of_log) {
            if let Some(schedule) = entry(&mut before, view, event.id())? {
                let is_older = |ending: &Ending| ending.location.number < indexed.number();
                schedule.end = schedule.end.take().filter(is_older);
                schedule.quarantine = schedule.quarantine.take().filter(is_older);
            }
        }
    }
    for (id, before) in before {
        let before = before.filter(|_| id.block() < indexed.number());
        if before.is_none() {
            batch.remove(Table::ScheduleBodies, &id.0.to_be_bytes());
        }
        replace(batch, schedule(view, id)?.as_ref(), before.as_ref());
    }
    Ok(())
}

fn receipts(indexed: &IndexedBlock) -> impl Iterator<Item = (Location, &Receipt)> {
    let number = indexed.number();
    indexed.receipts.iter().enumerate().map(move |(index, receipt)| (Location { number, index }, receipt))
}

/// A schedule as it is on the way through a block; a place to put it where there is none.
fn entry<'n>(
    now: &'n mut BTreeMap<ScheduleId, Option<Schedule>>,
    view: &View<'_>,
    id: ScheduleId,
) -> Result<&'n mut Option<Schedule>, Fault> {
    if let std::collections::btree_map::Entry::Vacant(space) = now.entry(id) {
        space.insert(schedule(view, id)?);
    }
    Ok(now.get_mut(&id).expect("it was put there"))
}

/// Keeps the body of a schedule that this block made, and says whether it is for a single run.
fn created_body(batch: &mut Batch, diff: &StateDiff, id: ScheduleId) -> bool {
    let key = StateKey::Body(id);
    let found = diff.changes().binary_search_by_key(&key, |change| change.key);
    let Some(body) = found.ok().and_then(|at| diff.changes()[at].new.as_ref()) else { return false };
    batch.insert(Table::ScheduleBodies, &id.0.to_be_bytes(), &body[..]);
    Body::decode(body).is_ok_and(|body| !body.terms.is_series())
}

/// What an event makes of a schedule.
fn apply(
    known: &mut Option<Schedule>,
    event: &ScheduleEvent,
    location: Location,
    keep_body: impl FnOnce() -> bool,
) {
    let ended = |status, reason: &str| Some(Ending { status, location, reason: reason.to_owned() });
    match (known, event) {
        (known, ScheduleEvent::Created { id, owner, target, lane, due }) => {
            *known = Some(Schedule {
                id: *id,
                owner: *owner,
                target: *target,
                lane: *lane,
                first_due: *due,
                is_single: keep_body(),
                runs: 0,
                runs_failed: 0,
                quarantine: None,
                end: None,
            });
        }
        (Some(schedule), ScheduleEvent::Cancelled { .. }) => {
            schedule.end = ended(ScheduleStatus::Cancelled, "");
        }
        (Some(schedule), ScheduleEvent::Exhausted { reason, .. }) => {
            schedule.end = ended(ScheduleStatus::Exhausted, reason);
        }
        (Some(schedule), ScheduleEvent::Executed { is_success, .. }) if schedule.is_single => {
            let status = if *is_success { ScheduleStatus::Succeeded } else { ScheduleStatus::Failed };
            schedule.end = ended(status, "");
        }
        (Some(schedule), ScheduleEvent::Quarantined { reason, .. }) => {
            // What was put aside stays where it is: the first time counts.
            schedule.quarantine = schedule.quarantine.take().or(ended(ScheduleStatus::Quarantined, reason));
        }
        (_, ScheduleEvent::Executed { .. } | ScheduleEvent::ToppedUp { .. }) | (None, _) => {}
    }
}

/// Writes what has changed of a schedule, and moves it to the lists that it is in now.
pub(super) fn replace(batch: &mut Batch, old: Option<&Schedule>, new: Option<&Schedule>) {
    if old == new {
        return;
    }
    let (out_of, into) = (lists(old), lists(new));
    for (list, id) in out_of.iter().filter(|place| !into.contains(place)) {
        batch.remove(Table::ScheduleLists, &listed(list, *id));
    }
    for (list, id) in into.iter().filter(|place| !out_of.contains(place)) {
        batch.insert(Table::ScheduleLists, &listed(list, *id), []);
    }
    match (old, new) {
        (_, Some(new)) => batch.insert(Table::Schedules, &new.id.0.to_be_bytes(), rows::schedule(new)),
        (Some(old), None) => batch.remove(Table::Schedules, &old.id.0.to_be_bytes()),
        (None, None) => {}
    }
}

fn lists(schedule: Option<&Schedule>) -> Vec<(List, ScheduleId)> {
    let of = |schedule: &Schedule| {
        let lists =
            [List::Owner(schedule.owner), List::Target(schedule.target), List::Status(schedule.status())];
        lists.map(|list| (list, schedule.id))
    };
    schedule.map(of).into_iter().flatten().collect()
}
