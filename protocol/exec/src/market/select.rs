//! Finds the market runs of a block in the parent's state, and ends what expired, was cancelled or is shut down.
//!
//! ```text
//!   Market   by time    ─┐ the first `market_looks_max` that are due
//!                        ├─→ by price: the best `market_ready_max` run, the others stand behind them, and wait
//!   Waiting  by price   ─┘ the first `market_ready_max` whose bid reaches the base fee
//!   Expiring by clock   ──→ the first `market_expiries_max` that waited too long end
//! ```
//!
//! Each one leaves the first queue when it is first met, so nobody is looked at twice in it, and those that cannot pay
//! stand in nobody's way (AIP125-10).

use super::MarketRuns;
use crate::{
    block::{Execution, SelectedRun},
    doors::{self, About},
    error::BlockError,
    ledger::{ScheduleFault, SystemLedger},
    machine::EvmContext,
    select::{ANNOUNCED_SCHEDULES, Selection, WalkError, announce, put_aside, read},
};
use almanac_primitives::{
    Lane, Outcome, ScheduleId,
    params::{MARKET_EXPIRIES_MAX, MARKET_SHUTDOWN_BATCH, Parameter},
};
use almanac_schedule::{
    Agenda, Record, budget,
    calendar::{Entry, Queue},
    decide::{Decision, End, Moment, decide},
    halved,
    life::{self, Event},
    looks_max,
    market::{MarketLane, Phase, is_shut},
    record::Status,
    runs_max,
};
use revm::Inspector;
use std::collections::BTreeSet;

/// What became of one that a block met.
enum Met {
    Runs(Box<Record>),
    Waits,
    Ended(Box<Record>, Event),
}

/// Selects the runs of the lane, and does what the lane owes to those that do not run.
pub(crate) fn select<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    agenda: &dyn Agenda,
    selection: &mut Selection,
) -> Result<MarketRuns, WalkError> {
    let loaded = execution.act::<_, BlockError>(|ledger| Ok(MarketLane::load(ledger)?))?;
    let stored = loaded.map_err(WalkError::Lane)?;
    let mut walk = MarketWalk { execution, agenda, selection, lane: stored, ended: BTreeSet::new() };
    let runs = if is_shut(&walk.execution.environment.parameters) {
        walk.shut_down()?;
        MarketRuns::default()
    } else {
        walk.lane.phase = Phase::Open;
        walk.expire()?;
        walk.get_ready()?
    };
    let lane = walk.lane;
    if lane != stored {
        execution.act::<_, BlockError>(|ledger| Ok(lane.store(ledger)?))?;
    }
    Ok(runs)
}

/// One block's way through the lane.
struct MarketWalk<'w, 'a, 'o, I> {
    execution: &'w mut Execution<'a, 'o, I>,
    agenda: &'w dyn Agenda,
    selection: &'w mut Selection,
    lane: MarketLane,
    /// What ended in this block: the parent's calendar still has it.
    ended: BTreeSet<ScheduleId>,
}

impl<'a, I: Inspector<EvmContext<'a>>> MarketWalk<'_, 'a, '_, I> {
    /// The first entries of a queue in the parent's state.
    fn first(&self, queue: Queue, until: u64, count_max: u64) -> Result<Vec<Entry>, WalkError> {
        let count_max = usize::try_from(count_max).unwrap_or(usize::MAX);
        let parent = self.execution.machine.parent();
        self.agenda.due_from(parent, queue, until, None, count_max).map_err(WalkError::Calendar)
    }

    /// A bound on this block's mandatory work, which a proposer cannot leave out: it shrinks when views fail.
    fn bound(&self, parameter: Parameter) -> u64 {
        halved(self.execution.environment.parameters.get(parameter), self.failed_views(), 1)
    }

    fn failed_views(&self) -> u64 {
        self.execution.environment.consensus.failed_views()
    }

    /// Lets the clock of waiting go on, and ends those that waited for too many blocks (AIP125-11).
    fn expire(&mut self) -> Result<(), WalkError> {
        if self.first(Queue::Expiring, u64::MAX, 1)?.is_empty() {
            return Ok(());
        }
        self.lane.clock = self.lane.clock.saturating_add(1);
        let over = self.first(Queue::Expiring, self.lane.clock - 1, self.bound(MARKET_EXPIRIES_MAX))?;
        self.end_all(&over, End::Expired)
    }

    /// Refunds the next batch of what is pending, and says when a shutdown begins and ends (AIP125-21).
    fn shut_down(&mut self) -> Result<(), WalkError> {
        match self.lane.phase {
            Phase::ShutDown => return Ok(()),
            Phase::Open => self.selection.logs.push(doors::shutdown_log(false)),
            Phase::ShuttingDown => {}
        }
        self.lane.phase = Phase::ShuttingDown;
        let batch = self.bound(MARKET_SHUTDOWN_BATCH);
        let mut pending = self.first(Queue::Waiting, u64::MAX, batch)?;
        pending.extend(self.first(Queue::Market, u64::MAX, batch - pending.len() as u64)?);
        if pending.is_empty() {
            self.lane.phase = Phase::ShutDown;
            self.selection.logs.push(doors::shutdown_log(true));
        }
        self.end_all(&pending, End::Shutdown)
    }

    fn end_all(&mut self, entries: &[Entry], end: End) -> Result<(), WalkError> {
        for entries in entries.chunks(ANNOUNCED_SCHEDULES) {
            announce(self.execution, entries, |entry| Record::keys(entry.schedule));
            for entry in entries {
                let moment = self.execution.moment();
                let ended = self.execution.act(|ledger| {
                    let record = read(ledger, *entry)?;
                    let end = if life::is_stale(ledger, &record)? { End::Cancelled } else { end };
                    end_now(ledger, record, end, moment)
                });
                self.note(*entry, ended)?;
            }
        }
        Ok(())
    }

    /// AIP125-10: meets those that are due, and those that wait and can pay; the best of all of them run.
    fn get_ready(&mut self) -> Result<MarketRuns, WalkError> {
        let (parameters, failed_views) = (self.execution.environment.parameters.clone(), self.failed_views());
        let ready_max = halved(runs_max(Lane::Market, &parameters), failed_views, 1);
        let looks_max = looks_max(Lane::Market, &parameters, failed_views, 1);
        let (now, base_fee) = (self.execution.environment.timestamp, self.execution.environment.base_fee);
        let cheapest = u64::MAX - u64::try_from(base_fee.0).unwrap_or(u64::MAX);
        let mut entries = self.first(Queue::Waiting, cheapest, ready_max)?;
        entries.extend(self.first(Queue::Market, now.0, looks_max)?);
        entries.retain(|entry| !self.ended.contains(&entry.schedule));
        entries.sort_by_cached_key(Entry::market_order);
        let mut runs = MarketRuns {
            gas_left: budget(Lane::Market, &parameters, Default::default(), failed_views),
            clock: self.lane.clock,
            ..MarketRuns::default()
        };
        for entries in entries.chunks(ANNOUNCED_SCHEDULES) {
            announce(self.execution, entries, |entry| Record::keys(entry.schedule));
            for entry in entries {
                match self.meet(*entry)? {
                    Some(record) if (runs.runs.len() as u64) < ready_max => {
                        runs.push(SelectedRun { run: record.run(base_fee), entry: *entry, is_signed: false });
                    }
                    Some(_) => runs.behind.push_back(*entry),
                    None => {}
                }
            }
        }
        Ok(runs)
    }

    /// Meets one that is due or waits. Returns the record of one that can run.
    fn meet(&mut self, entry: Entry) -> Result<Option<Box<Record>>, WalkError> {
        let (moment, clock) = (self.execution.moment(), self.lane.clock);
        let met = self.execution.act(|ledger| {
            let record = read(ledger, entry)?;
            if life::is_stale(ledger, &record)? {
                return end_now(ledger, record, End::Cancelled, moment);
            }
            // More may have expired than a block ends.
            if record.head.status == Status::Waiting && record.head.until < clock {
                return end_now(ledger, record, End::Expired, moment);
            }
            match decide(&record, moment) {
                Decision::Run { .. } => Ok(Met::Runs(Box::new(record))),
                _ => {
                    life::wait(ledger, entry.schedule, clock)?;
                    Ok(Met::Waits)
                }
            }
        });
        self.note(entry, met)
    }

    /// Tells of what ended, and quarantines what cannot be read (AIP125-23).
    fn note(
        &mut self,
        entry: Entry,
        met: Result<Met, ScheduleFault>,
    ) -> Result<Option<Box<Record>>, WalkError> {
        match met {
            Ok(Met::Runs(record)) => return Ok(Some(record)),
            Ok(Met::Waits) => {}
            Ok(Met::Ended(record, event)) => {
                self.ended.insert(entry.schedule);
                let about = About { record: Some(&record), ..About::of(&Outcome::Success) };
                self.selection.logs.extend(doors::event_logs(&event, &about));
                self.selection.events.push(event);
            }
            Err(ScheduleFault::Block(error)) => return Err(error.into()),
            Err(ScheduleFault::Broken(broken)) => {
                self.ended.insert(entry.schedule);
                self.selection.events.push(put_aside(self.execution, entry, &broken)?);
            }
        }
        Ok(None)
    }
}

fn end_now(
    ledger: &mut SystemLedger<'_, '_>,
    record: Record,
    end: End,
    moment: Moment,
) -> Result<Met, ScheduleFault> {
    let event = life::end_without_run(ledger, &record, end, moment)?;
    Ok(Met::Ended(Box::new(record), event))
}
