//! Selects the runs of a block from what is due by the parent's state, and ends or moves what does not run.
//!
//! Selecting changes no schedule that will run: money is taken and series are re-armed at each run's own start.

use crate::{
    block::{DueRuns, Execution, SelectedRun},
    doors,
    error::{BlockError, StateFault},
    ledger::{ScheduleFault, SystemLedger},
    machine::EvmContext,
};
use alloy_primitives::{Log, U256};
use almanac_primitives::{
    Gas, Lane, RunTransaction, StateKey, Wei,
    addresses::PARAMETERS,
    params::{CRON_BLOCK_EXHAUSTIONS_MAX, CRON_PAUSED, LANE_BLOCK_RUNS_MAX, Parameter},
};
use almanac_schedule::{
    Agenda, Budget, Due, budget,
    calendar::{CalendarError, Entry},
    is_held, ledger,
    life::{self, Moment, Verdict},
    record::{Broken, Record},
};
use revm::Inspector;

/// Records that are fetched at a time. Where the budget ends early, so many were fetched for nothing.
const ANNOUNCED_SCHEDULES: usize = 64;

/// What the start of a block decided.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    pub(crate) runs: DueRuns,
    /// What those are told who do not run.
    pub(crate) logs: Vec<Log>,
    exhausted: u64,
}

/// Looks at what is due in each lane, up to the lane's budget. The rest stays due.
pub(crate) fn select<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    agenda: &dyn Agenda,
) -> Result<Selection, BlockError> {
    let mut selection = Selection::default();
    let mut reserved_gas = Gas::ZERO;
    for lane in Lane::ALL {
        if is_held(lane, &execution.environment.parameters) {
            continue;
        }
        let parent = execution.machine.state().parent();
        match agenda.due(parent, lane, execution.environment.timestamp, LANE_BLOCK_RUNS_MAX) {
            Ok(due) => select_lane(execution, lane, &due, reserved_gas, &mut selection)?,
            Err(CalendarError::Read(error)) => return Err(StateFault::Read(error).into()),
            Err(broken) => selection.logs.extend(pause(execution, lane, &broken)?),
        }
        if lane == Lane::Reserved {
            reserved_gas = Gas(selection.runs.reserved.iter().map(|selected| selected.run.gas_limit.0).sum());
        }
    }
    Ok(selection)
}

fn select_lane<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    lane: Lane,
    due: &[Due],
    reserved_gas: Gas,
    selection: &mut Selection,
) -> Result<(), BlockError> {
    let failed_views = execution.environment.consensus.failed_views();
    let mut budget = Budget::new(budget(lane, &execution.environment.parameters, reserved_gas, failed_views));
    for (place, next) in due.iter().enumerate() {
        if place.is_multiple_of(ANNOUNCED_SCHEDULES) {
            announce(execution, &due[place..]);
        }
        let selected = match next {
            Due::Bare(run) => Some(SelectedRun { run: run.clone(), has_record: false }),
            Due::Schedule(entry) => match judge(execution, *entry, selection)? {
                Judged::Runs(run) => Some(SelectedRun { run, has_record: true }),
                Judged::RunsNot => None,
                // What is behind must not overtake it.
                Judged::Waits => break,
            },
        };
        let Some(selected) = selected else { continue };
        if !budget.take(selected.run.gas_limit) {
            break;
        }
        selection.runs.lane_mut(lane).push(selected);
    }
    Ok(())
}

/// Has a store fetch the next records side by side: a read each, one after the other, would wait for the disk as often.
fn announce<'a, I: Inspector<EvmContext<'a>>>(execution: &mut Execution<'a, '_, I>, due: &[Due]) {
    let next = due.iter().take(ANNOUNCED_SCHEDULES).filter_map(|due| match due {
        Due::Schedule(entry) => Some(entry.schedule),
        Due::Bare(_) => None,
    });
    let keys: Vec<StateKey> = next.flat_map(Record::keys).collect();
    execution.machine.state().parent().announce(&keys);
}

/// What becomes of a due schedule.
enum Judged {
    Runs(RunTransaction),
    RunsNot,
    Waits,
}

fn judge<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    entry: Entry,
    selection: &mut Selection,
) -> Result<Judged, BlockError> {
    let moment = execution.moment();
    let record = match execution.act(|ledger| read(ledger, entry)) {
        Ok(record) => record,
        Err(ScheduleFault::Block(error)) => return Err(error),
        Err(ScheduleFault::Broken(broken)) => {
            selection.logs.push(put_aside(execution, entry, &broken)?);
            return Ok(Judged::RunsNot);
        }
    };
    match life::judge(&record, moment) {
        Verdict::Run(_) => return Ok(Judged::Runs(record.run(moment.base_fee))),
        Verdict::Skipped(until) => {
            execution.act::<_, BlockError>(|ledger| Ok(life::skip(ledger, record, until)?))?;
        }
        Verdict::Exhausted => {
            if selection.exhausted == execution.environment.parameters.get(CRON_BLOCK_EXHAUSTIONS_MAX) {
                return Ok(Judged::Waits);
            }
            selection.exhausted += 1;
            match execution.act(|ledger| Ok(life::exhaust(ledger, &record)?)) {
                Ok(event) => selection.logs.push(doors::event_log(record.body.door, event)),
                Err(ScheduleFault::Block(error)) => return Err(error),
                Err(ScheduleFault::Broken(broken)) => {
                    selection.logs.push(put_aside(execution, entry, &broken)?);
                }
            }
        }
    }
    Ok(Judged::RunsNot)
}

/// The record behind an entry of the calendar.
fn read(ledger: &mut SystemLedger<'_, '_>, entry: Entry) -> Result<Record, ScheduleFault> {
    let record = ledger::load(ledger, entry.schedule)?;
    let record = record.filter(|record| record.entry() == Some(entry));
    record.ok_or(ScheduleFault::Broken(Broken::NotDue { entry }))
}

/// Takes a schedule out of the calendar that a fault of our own keeps from running. The others go on.
fn put_aside<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    entry: Entry,
    broken: &Broken,
) -> Result<Log, BlockError> {
    let id = entry.schedule;
    // Where the head says the same as the calendar, quarantine takes the entry away; else nothing else would.
    let has_record = !matches!(broken, Broken::NotDue { .. })
        && execution.act::<_, BlockError>(|ledger| Ok(life::quarantine(ledger, id, Wei::ZERO)?))?;
    if !has_record {
        execution.machine.state().drop_stray(entry);
    }
    Ok(doors::quarantine_log(id, broken))
}

/// Holds a lane back that cannot be read, until governance lets it go on. User transactions go on.
fn pause<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    lane: Lane,
    broken: &CalendarError,
) -> Result<Option<Log>, BlockError> {
    // No door leads to the other lanes, so nothing can be due in them.
    if lane != Lane::Cron {
        return Ok(None);
    }
    let paused = (PARAMETERS, U256::from(CRON_PAUSED.slot), Parameter::slot_value(1));
    execution.machine.write_slots(&[paused], false)?;
    Ok(Some(doors::pause_log(lane, broken)))
}

impl<'a, I: Inspector<EvmContext<'a>>> Execution<'a, '_, I> {
    /// What this block brings to its schedules.
    pub(crate) fn moment(&self) -> Moment {
        Moment { now: self.environment.timestamp, base_fee: self.environment.base_fee }
    }
}
