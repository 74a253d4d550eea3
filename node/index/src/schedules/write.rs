//! Adds and reverts a block's changes to schedules.

use super::{
    EndReason, Ending, Schedule,
    events::events,
    find::schedule,
    rows::{self, List, listed, run_of},
};
use crate::{
    block::{IndexedBlock, Location},
    error::Fault,
    store::{Batch, Table, View},
};
use almanac_primitives::{Receipt, ScheduleId, ScheduleRef, StateDiff, StateKey, Wei};
use almanac_schedule::{
    life::{Event, LifeEvent, What},
    record::LastRun,
};
use std::collections::BTreeMap;

/// Adds the events and runs of a block.
pub(crate) fn add(
    batch: &mut Batch,
    view: &View<'_>,
    indexed: &IndexedBlock,
    diff: &StateDiff,
) -> Result<(), Fault> {
    let number = indexed.number();
    if !indexed.events.is_empty() {
        batch.insert(Table::ScheduleEvents, &number.to_be_bytes(), events(&indexed.events));
    }
    let mut now = BTreeMap::new();
    for LifeEvent { index, event } in &indexed.events {
        if let What::Created { .. } = event.what {
            keep_body(batch, diff, event.id);
        }
        apply(entry(&mut now, view, event.id)?, event, Location { number, index: *index });
    }
    for (location, run, receipt) in runs(indexed) {
        let fee = fee_of(indexed, location.index);
        let row = rows::run(fee, LastRun::of(&receipt.outcome));
        batch.insert(Table::ScheduleRuns, &run_of(run.schedule, location), row);
        if let Some(schedule) = entry(&mut now, view, run.schedule)? {
            schedule.runs += 1;
            schedule.fees = Wei(schedule.fees.0.saturating_add(fee.0));
            schedule.runs_failed += u64::from(!receipt.outcome.is_success());
        }
    }
    for (id, now) in now {
        replace(batch, schedule(view, id)?.as_ref(), now.as_ref());
    }
    Ok(())
}

/// Reverts the events and runs of a block.
pub(crate) fn take_back(batch: &mut Batch, view: &View<'_>, indexed: &IndexedBlock) -> Result<(), Fault> {
    let number = indexed.number();
    if !indexed.events.is_empty() {
        batch.remove(Table::ScheduleEvents, &number.to_be_bytes());
    }
    let mut before = BTreeMap::new();
    for LifeEvent { event, .. } in &indexed.events {
        if let Some(schedule) = entry(&mut before, view, event.id)? {
            let is_older = |ending: &Ending| ending.location.number < number;
            schedule.end = schedule.end.take().filter(is_older);
            schedule.quarantine = schedule.quarantine.take().filter(is_older);
        }
    }
    for (location, run, receipt) in runs(indexed) {
        batch.remove(Table::ScheduleRuns, &run_of(run.schedule, location));
        if let Some(schedule) = entry(&mut before, view, run.schedule)? {
            schedule.runs -= 1;
            schedule.fees = Wei(schedule.fees.0.saturating_sub(fee_of(indexed, location.index).0));
            schedule.runs_failed -= u64::from(!receipt.outcome.is_success());
        }
    }
    for (id, before) in before {
        let before = before.filter(|_| id.block() < number);
        if before.is_none() {
            batch.remove(Table::ScheduleBodies, &id.0.to_be_bytes());
        }
        replace(batch, schedule(view, id)?.as_ref(), before.as_ref());
    }
    Ok(())
}

/// The runs of schedules in a block.
fn runs(indexed: &IndexedBlock) -> impl Iterator<Item = (Location, ScheduleRef, &Receipt)> {
    let number = indexed.number();
    let receipts = indexed.receipts.iter().enumerate();
    receipts.filter_map(move |(index, receipt)| {
        Some((Location { number, index }, receipt.schedule_ref?, receipt))
    })
}

/// What the run at a receipt index cost; nothing if a fault of the chain's own kept it from being settled.
fn fee_of(indexed: &IndexedBlock, index: usize) -> Wei {
    // Events are in the order of receipts.
    let first = indexed.events.partition_point(|event| event.index < index);
    let of_run = indexed.events[first..].iter().take_while(|event| event.index == index);
    let mut fees = of_run.filter_map(|LifeEvent { event, .. }| match event.what {
        What::Executed { fee, .. } => Some(fee),
        _ => None,
    });
    fees.next().unwrap_or_default()
}

/// The current version of a schedule while a block is processed; loads it on first use.
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

/// Stores the body of a schedule that this block created. There is none if it ended in the same block.
fn keep_body(batch: &mut Batch, diff: &StateDiff, id: ScheduleId) {
    let key = StateKey::Body(id);
    let found = diff.changes().binary_search_by_key(&key, |change| change.key);
    if let Some(body) = found.ok().and_then(|at| diff.changes()[at].new.as_ref()) {
        batch.insert(Table::ScheduleBodies, &id.0.to_be_bytes(), &body[..]);
    }
}

/// Applies an event to a schedule.
fn apply(known: &mut Option<Schedule>, event: &Event, location: Location) {
    match (known, &event.what) {
        (known, What::Created { owner, target, lane, due, .. }) => {
            *known = Some(Schedule {
                id: event.id,
                owner: *owner,
                target: *target,
                lane: *lane,
                door: event.door,
                first_due: *due,
                runs: 0,
                runs_failed: 0,
                fees: Wei::ZERO,
                quarantine: None,
                end: None,
            });
        }
        (Some(schedule), What::Ended { end, refunded, .. }) => {
            let (reason, refunded) = (EndReason::Ended(*end), Some(*refunded));
            schedule.end = Some(Ending { reason, refunded, location });
        }
        (Some(schedule), What::Quarantined { reason }) => {
            // Keep the first quarantine.
            let reason = EndReason::Fault(reason.clone());
            schedule.quarantine.get_or_insert(Ending { reason, refunded: None, location });
        }
        (_, What::Processed { .. } | What::Executed { .. } | What::ToppedUp { .. }) | (None, _) => {}
    }
}

/// Writes the changes of a schedule, and updates the lists that contain it.
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
    let of = |schedule: &Schedule| -> Vec<(List, ScheduleId)> {
        let status = schedule.status();
        let lists = [List::Owner(schedule.owner), List::Target(schedule.target), List::Status(status)];
        let of_door = schedule.door.map(|door| List::Door(door, status));
        lists.into_iter().chain(of_door).map(|list| (list, schedule.id)).collect()
    };
    schedule.map(of).unwrap_or_default()
}
