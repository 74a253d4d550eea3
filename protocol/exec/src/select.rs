//! Selects the runs of a block from what is due in the parent's state, and ends or moves schedules that do not
//! run.
//!
//! Selection changes no schedule that will run, but for those whose door marks them first: each run's own start takes
//! the charge and re-arms the series.
//! Schedules that do not run block nothing: a block ends a bounded number of them and sets the others aside
//! (`mark`).

use crate::{
    block::{DueRuns, Execution, SelectedRun},
    doors,
    error::{BlockError, StateFault},
    ledger::{ScheduleFault, SystemLedger},
    machine::EvmContext,
    market::{self, MarketRuns},
    signed,
};
use alloy_primitives::{Log, U256};
use almanac_primitives::{
    Gas, Lane, RunTransaction, StateKey, Wei,
    addresses::{LEDGER, PARAMETERS},
    codec::DecodeError,
    params::{CRON_BLOCK_EXHAUSTIONS_MAX, LANE_BLOCK_RUNS_MAX, Parameter},
};
use almanac_schedule::{
    Agenda, Budget, budget,
    calendar::{CalendarError, Entry, Queue},
    decide::{Decision, End, Moment, decide, is_passed_over},
    halved, is_held, ledger,
    life::{self, Event, What},
    looks_max,
    mark::{self, Mark},
    market::{is_paused, is_shut},
    record::{Broken, Door, Head, Record, head_slot},
    runs_max,
};
use revm::{Database, Inspector};
use std::{collections::VecDeque, fmt::Display, ops::ControlFlow};

/// Records to fetch at a time. If the budget ends early, up to this many were fetched for nothing.
pub(crate) const ANNOUNCED_SCHEDULES: usize = 64;

/// Due entries to read from the calendar at a time.
const PAGE: usize = LANE_BLOCK_RUNS_MAX;

/// Fewest due schedules that a block looks at, after any number of failed views: one batch of fetched records.
const LOOKS_LEAST: u64 = ANNOUNCED_SCHEDULES as u64;

/// The result of selecting.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    pub(crate) runs: DueRuns,
    /// Events of the schedules that do not run.
    pub(crate) events: Vec<Event>,
    /// Logs of the chain's own faults.
    pub(crate) logs: Vec<Log>,
    /// The walk through the cron lane, which continues if a selected run does not take place.
    pub(crate) cron: Option<Walk>,
}

/// Selects what is due in each lane, up to the lane's budget. The rest stays due.
pub(crate) fn select<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    agenda: &dyn Agenda,
) -> Result<Selection, BlockError> {
    let mut selection = Selection::default();
    let mut reserved_gas = Gas::ZERO;
    for lane in Lane::ALL {
        if lane == Lane::Market {
            selection.runs.market = select_market(execution, agenda, &mut selection)?;
            continue;
        }
        if is_held(lane, &execution.environment.parameters) {
            continue;
        }
        if lane == Lane::Signed {
            if let Err(error) = signed::expire(execution, agenda, &mut selection) {
                selection.logs.extend(error.pause(execution, lane)?);
            }
            continue;
        }
        let failed_views = execution.environment.consensus.failed_views();
        let budget = Budget::new(budget(lane, &execution.environment.parameters, reserved_gas, failed_views));
        let mut walk = Walk::begin(execution, lane, budget)?;
        let mut runs = Vec::new();
        match walk.open(execution, agenda, &mut runs, &mut selection.events) {
            Ok(()) => {}
            Err(error) => {
                selection.logs.extend(error.pause(execution, lane)?);
                // Cron jobs wait until governance resumes the lane. Runs that are marked already must take place: no
                // later block would run them, and nobody could cancel them.
                if lane == Lane::Cron {
                    continue;
                }
            }
        }
        match lane {
            Lane::Reserved => {
                reserved_gas = Gas(runs.iter().map(|selected| selected.run.gas_limit.0).sum());
                selection.runs.reserved = runs;
            }
            Lane::Cron => {
                selection.runs.cron = runs;
                selection.cron = Some(walk);
            }
            Lane::Spare => selection.runs.spare = runs,
            Lane::Market | Lane::Signed => {}
        }
    }
    Ok(selection)
}

/// Selects in the market lane, which has rules of its own. A shutdown refunds although the door is switched off.
fn select_market<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    agenda: &dyn Agenda,
    selection: &mut Selection,
) -> Result<MarketRuns, BlockError> {
    let parameters = &execution.environment.parameters;
    let is_held = if is_shut(parameters) { is_paused(parameters) } else { is_held(Lane::Market, parameters) };
    if is_held {
        return Ok(MarketRuns::default());
    }
    match market::select(execution, agenda, selection) {
        Ok(runs) => Ok(runs),
        Err(error) => {
            selection.logs.extend(error.pause(execution, Lane::Market)?);
            Ok(MarketRuns::default())
        }
    }
}

/// A block's walk through a lane, in the lane's order, within bounds.
#[derive(Debug)]
pub(crate) struct Walk {
    lane: Lane,
    queue: Queue,
    budget: Budget,
    looks_left: u64,
    runs_left: u64,
    endings_left: u64,
    /// The lane's mark in the parent's state.
    stored: Option<Mark>,
    /// Entries before the mark that still have a run to come and that the walk has not reached yet.
    late: VecDeque<Entry>,
    /// Where the walk continues after those.
    next: Option<Entry>,
    /// Entries with a run to come in a later block.
    kept: Vec<Entry>,
    /// Whether entries before `next` are set aside and wait for their end.
    has_aside: bool,
}

/// Why a walk cannot continue.
pub(crate) enum WalkError {
    /// The calendar is invalid: a fault of the lane, not of the block.
    Calendar(CalendarError),
    /// What the lane remembers is invalid.
    Lane(DecodeError),
    Block(BlockError),
}

impl WalkError {
    /// Pauses a lane that cannot be read until governance resumes it. User transactions continue. Every other error is
    /// the block's.
    fn pause<'a, I: Inspector<EvmContext<'a>>>(
        self,
        execution: &mut Execution<'a, '_, I>,
        lane: Lane,
    ) -> Result<Option<Log>, BlockError> {
        match self {
            Self::Block(error) => Err(error),
            Self::Calendar(CalendarError::Read(error)) => Err(StateFault::Read(error).into()),
            Self::Calendar(broken) => pause(execution, lane, &broken),
            Self::Lane(broken) => pause(execution, lane, &broken),
        }
    }
}

impl<E: Into<BlockError>> From<E> for WalkError {
    fn from(error: E) -> Self {
        Self::Block(error.into())
    }
}

impl Walk {
    fn begin<'a, I: Inspector<EvmContext<'a>>>(
        execution: &mut Execution<'a, '_, I>,
        lane: Lane,
        budget: Budget,
    ) -> Result<Self, BlockError> {
        let queue = Queue::of_lane(lane);
        let stored = match lane {
            Lane::Cron => execution.act::<_, BlockError>(|ledger| Ok(mark::load(ledger, queue)?))?,
            Lane::Reserved | Lane::Market | Lane::Spare | Lane::Signed => None,
        };
        // Looks and endings are mandatory work too: a proposer cannot leave them out, so they shrink when views
        // fail.
        let failed_views = execution.environment.consensus.failed_views();
        let parameters = &execution.environment.parameters;
        let endings_max = parameters.get(CRON_BLOCK_EXHAUSTIONS_MAX);
        Ok(Self {
            lane,
            queue,
            budget,
            looks_left: looks_max(lane, parameters, failed_views, LOOKS_LEAST),
            runs_left: runs_max(lane, parameters),
            endings_left: halved(endings_max, failed_views, 1),
            late: stored.iter().flat_map(Mark::late).copied().collect(),
            next: stored.as_ref().map(|mark| mark.next),
            stored,
            kept: Vec::new(),
            has_aside: false,
        })
    }

    /// The walk at the start of the block: ends schedules that were set aside earlier, then selects. Nothing
    /// ends after it.
    fn open<'a, I: Inspector<EvmContext<'a>>>(
        &mut self,
        execution: &mut Execution<'a, '_, I>,
        agenda: &dyn Agenda,
        runs: &mut Vec<SelectedRun>,
        events: &mut Vec<Event>,
    ) -> Result<(), WalkError> {
        self.end_aside(execution, agenda, events)?;
        self.select(execution, agenda, PAGE, runs, events)?;
        self.endings_left = 0;
        Ok(())
    }

    /// Ends schedules that were set aside, oldest first. Does not check again whether they can pay: their turn
    /// is over.
    fn end_aside<'a, I: Inspector<EvmContext<'a>>>(
        &mut self,
        execution: &mut Execution<'a, '_, I>,
        agenda: &dyn Agenda,
        events: &mut Vec<Event>,
    ) -> Result<(), WalkError> {
        let Some(mark) = self.stored.clone() else { return Ok(()) };
        let (parent, now) = (execution.machine.state().parent(), execution.environment.timestamp);
        let endings = usize::try_from(self.endings_left).unwrap_or(usize::MAX).saturating_add(1);
        let count_max = endings.saturating_add(mark.late().len());
        let due = agenda.due_from(parent, self.queue, now.0, None, count_max).map_err(WalkError::Calendar)?;
        let aside: Vec<_> = due.into_iter().filter(|entry| mark.is_aside(*entry)).take(endings).collect();
        for entries in aside.chunks(ANNOUNCED_SCHEDULES) {
            announce(execution, entries, |entry| Record::keys(entry.schedule));
            for entry in entries {
                self.end(execution, *entry, events)?;
            }
        }
        Ok(())
    }

    /// Selects the next runs until the budget or the limit of looks is used up. Reads `page` entries at a time
    /// from the agenda.
    fn select<'a, I: Inspector<EvmContext<'a>>>(
        &mut self,
        execution: &mut Execution<'a, '_, I>,
        agenda: &dyn Agenda,
        page: usize,
        runs: &mut Vec<SelectedRun>,
        events: &mut Vec<Event>,
    ) -> Result<(), WalkError> {
        if self.select_late(execution, runs, events)?.is_break() {
            return Ok(());
        }
        let (parent, now) = (execution.machine.state().parent(), execution.environment.timestamp);
        loop {
            let count_max = usize::try_from(self.looks_left).unwrap_or(usize::MAX).min(page);
            let due = agenda.due_from(parent, self.queue, now.0, self.next, count_max);
            let due = due.map_err(WalkError::Calendar)?;
            for part in due.chunks(ANNOUNCED_SCHEDULES) {
                let running = self.may_run(execution, part)?;
                for entry in part {
                    if self.step(execution, *entry, &running, runs, events)?.is_break() {
                        return Ok(());
                    }
                    self.next = Some(mark::behind(*entry));
                }
            }
            if due.len() < count_max || self.looks_left == 0 {
                return Ok(());
            }
        }
    }

    /// Selects entries before the mark that have a run to come: they are first in order. Breaks if the walk
    /// ends before it has reached all of them.
    fn select_late<'a, I: Inspector<EvmContext<'a>>>(
        &mut self,
        execution: &mut Execution<'a, '_, I>,
        runs: &mut Vec<SelectedRun>,
        events: &mut Vec<Event>,
    ) -> Result<ControlFlow<()>, WalkError> {
        while !self.late.is_empty() {
            let entries: Vec<_> = self.late.iter().take(ANNOUNCED_SCHEDULES).copied().collect();
            let running = self.may_run(execution, &entries)?;
            for entry in entries {
                if self.looks_left == 0 {
                    return Ok(ControlFlow::Break(()));
                }
                let is_waiting = is_waiting(execution, entry)?;
                if is_waiting && self.step(execution, entry, &running, runs, events)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                self.late.pop_front();
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The entries whose heads do not rule out a run. Prefetches the values that will be read of each.
    fn may_run<'a, I: Inspector<EvmContext<'a>>>(
        &self,
        execution: &mut Execution<'a, '_, I>,
        entries: &[Entry],
    ) -> Result<Vec<Entry>, StateFault> {
        let (moment, mut running) = (execution.moment(), Vec::new());
        announce(execution, entries, |entry| [StateKey::Slot(LEDGER, head_slot(entry.schedule))]);
        for entry in entries {
            let head = execution.machine.state().storage(LEDGER, head_slot(entry.schedule))?;
            if Head::from_word(head).is_ok_and(|head| !is_passed_over(&head, moment)) {
                running.push(*entry);
            }
        }
        announce(execution, &running, |entry| Record::keys(entry.schedule));
        Ok(running)
    }

    /// Handles one due entry, or breaks before it: later entries must not overtake it.
    fn step<'a, I: Inspector<EvmContext<'a>>>(
        &mut self,
        execution: &mut Execution<'a, '_, I>,
        entry: Entry,
        running: &[Entry],
        runs: &mut Vec<SelectedRun>,
        events: &mut Vec<Event>,
    ) -> Result<ControlFlow<()>, WalkError> {
        match if running.contains(&entry) { judge(execution, entry)? } else { None } {
            Some(Judged { room, .. }) if !self.take_room(room) => {
                // FLIP330-13: what is left goes to the oldest that fit. In every other lane nobody overtakes.
                if self.lane != Lane::Spare {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Some(Judged { run, is_marked, is_signed, .. }) => {
                if is_marked && !mark_taken_up(execution, entry, events)? {
                    // What was kept to judge signatures is used up.
                    self.budget.give_back(run.gas_limit);
                } else {
                    self.runs_left -= 1;
                    runs.push(SelectedRun { run, entry, is_signed });
                }
            }
            None if self.endings_left > 0 => self.end(execution, entry, events)?,
            // Only the cron lane runs everything that it selects, so only its walk may set entries aside.
            None if self.lane == Lane::Cron => self.has_aside = true,
            None => return Ok(ControlFlow::Break(())),
        }
        self.looks_left = self.looks_left.saturating_sub(1);
        Ok(ControlFlow::Continue(()))
    }

    /// Takes the room of a run, if there is enough.
    fn take_room(&mut self, gas_limit: Gas) -> bool {
        self.runs_left > 0
            && match self.lane {
                Lane::Spare => self.budget.take_fitting(gas_limit),
                Lane::Reserved | Lane::Cron | Lane::Market | Lane::Signed => self.budget.take(gas_limit),
            }
    }

    /// Ends a schedule that did not run, or moves it if its policy skips missed times. Sets it aside if the
    /// block has reached its limit of endings.
    fn end<'a, I: Inspector<EvmContext<'a>>>(
        &mut self,
        execution: &mut Execution<'a, '_, I>,
        entry: Entry,
        events: &mut Vec<Event>,
    ) -> Result<(), BlockError> {
        match self.endings_left.checked_sub(1) {
            None => self.has_aside = true,
            Some(left) => {
                self.endings_left = left;
                events.extend(end(execution, entry)?);
            }
        }
        Ok(())
    }

    /// Continues after the runs selected so far, with gas that was given back. A block may get here once for
    /// each run that cancels another, so this reads no more at a time than it fetches together.
    pub(crate) fn go_on<'a, I: Inspector<EvmContext<'a>>>(
        &mut self,
        execution: &mut Execution<'a, '_, I>,
        agenda: &dyn Agenda,
    ) -> Result<Vec<SelectedRun>, BlockError> {
        let mut runs = Vec::new();
        match self.select(execution, agenda, ANNOUNCED_SCHEDULES, &mut runs, &mut Vec::new()) {
            Err(WalkError::Block(error)) => Err(error),
            Err(WalkError::Calendar(CalendarError::Read(error))) => Err(StateFault::Read(error).into()),
            // A later block hits the error at its start and pauses the lane. The runs selected before it must
            // run, because the mark may move past them.
            Ok(()) | Err(WalkError::Calendar(_) | WalkError::Lane(_)) => Ok(runs),
        }
    }

    /// Gives back the gas of a run that did not take place because another run cancelled its schedule.
    pub(crate) fn give_back(&mut self, gas_limit: Gas) {
        self.budget.give_back(gas_limit);
    }

    /// Keeps an entry from being set aside, because it has a run to come.
    pub(crate) fn keep(&mut self, entry: Entry) {
        self.kept.push(entry);
    }

    /// Stores the mark for the next block.
    pub(crate) fn close<'a, I: Inspector<EvmContext<'a>>>(
        self,
        execution: &mut Execution<'a, '_, I>,
    ) -> Result<(), BlockError> {
        let next = self.next.filter(|_| self.has_aside);
        let mark = next.map(|next| Mark::new(next, self.late.into_iter().chain(self.kept)));
        if mark == self.stored {
            return Ok(());
        }
        execution.act(|ledger| Ok(mark::store(ledger, self.queue, self.stored.as_ref(), mark.as_ref())?))
    }
}

/// Prefetches the next values in parallel, instead of waiting for the disk once per read.
pub(crate) fn announce<'a, I: Inspector<EvmContext<'a>>, const N: usize>(
    execution: &mut Execution<'a, '_, I>,
    entries: &[Entry],
    keys: impl Fn(&Entry) -> [StateKey; N],
) {
    let keys: Vec<StateKey> = entries.iter().flat_map(keys).collect();
    execution.machine.state().parent().announce(&keys);
}

/// Whether a schedule still has this entry: a late one may have been cancelled since.
fn is_waiting<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    entry: Entry,
) -> Result<bool, StateFault> {
    let head = execution.machine.state().storage(LEDGER, head_slot(entry.schedule))?;
    Ok(Head::from_word(head).is_ok_and(|head| head.entry(entry.schedule) == Some(entry)))
}

/// A due schedule that runs.
struct Judged {
    run: RunTransaction,
    /// Gas that the block keeps for it.
    room: Gas,
    /// Whether its door wants it marked before anything of the block runs.
    is_marked: bool,
    /// Whether it needs signatures.
    is_signed: bool,
}

/// The run of a due schedule, or `None` if it does not run. Changes nothing.
fn judge<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    entry: Entry,
) -> Result<Option<Judged>, BlockError> {
    let moment = execution.moment();
    match execution.act(|ledger| read(ledger, entry)) {
        Ok(record) => {
            let Decision::Run { price, .. } = decide(&record, moment) else { return Ok(None) };
            let signed = record.body.terms.signed();
            let run = match signed {
                Some(_) => signed::run_transaction(&record, price),
                None => record.run(price),
            };
            let room = signed.map_or(run.gas_limit, |terms| terms.room(&record.body));
            let is_signed = signed.is_some();
            Ok(Some(Judged { run, room, is_marked: record.body.terms.is_processed(), is_signed }))
        }
        Err(ScheduleFault::Broken(_)) => Ok(None),
        Err(ScheduleFault::Block(error)) => Err(error),
    }
}

/// Marks a schedule whose run follows in this block. Returns false for one that a fault of our own has quarantined, and for
/// one whose signatures are missing, which ends.
fn mark_taken_up<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    entry: Entry,
    events: &mut Vec<Event>,
) -> Result<bool, BlockError> {
    let moment = execution.moment();
    let marked = match execution.act(|ledger| read(ledger, entry)) {
        Ok(record) if record.body.door() == Door::Signed => signed::take_up(execution, record),
        Ok(record) => execution.act(|ledger| Ok((life::process(ledger, record, moment)?, true))),
        Err(error) => Err(error),
    };
    match marked {
        Ok((event, runs)) => {
            events.push(event);
            Ok(runs)
        }
        Err(ScheduleFault::Block(error)) => Err(error),
        Err(ScheduleFault::Broken(broken)) => {
            events.push(put_aside(execution, entry, &broken)?);
            Ok(false)
        }
    }
}

/// Carries out the decision on a schedule that does not run. Quarantines one whose record is broken.
fn end<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    entry: Entry,
) -> Result<Option<Event>, BlockError> {
    let moment = execution.moment();
    let ended = execution.act(|ledger| {
        let record = read(ledger, entry)?;
        Ok(match decide(&record, moment) {
            Decision::Skip { until } => {
                life::skip(ledger, record, until)?;
                None
            }
            // Only the market lane has places to wait.
            Decision::Wait => None,
            Decision::End(end) => Some(life::end_without_run(ledger, &record, end, moment)?),
            // Its turn is over: it could not pay then.
            Decision::Run { .. } => Some(life::end_without_run(ledger, &record, End::OutOfMoney, moment)?),
        })
    });
    match ended {
        Ok(event) => Ok(event),
        Err(ScheduleFault::Block(error)) => Err(error),
        Err(ScheduleFault::Broken(broken)) => put_aside(execution, entry, &broken).map(Some),
    }
}

/// The record behind an entry of the calendar.
pub(crate) fn read(ledger: &mut SystemLedger<'_, '_>, entry: Entry) -> Result<Record, ScheduleFault> {
    let record = ledger::load(ledger, entry.schedule)?;
    let record = record.filter(|record: &Record| record.head.entries(record.id).any(|place| place == entry));
    record.ok_or(ScheduleFault::Broken(Broken::NotDue { entry }))
}

/// Quarantines a schedule that cannot run because of a fault of our own. The others continue.
pub(crate) fn put_aside<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    entry: Entry,
    broken: &Broken,
) -> Result<Event, BlockError> {
    let id = entry.schedule;
    // Quarantine removes the entry if the head agrees with the calendar. If not, nothing else would remove it.
    let is_quarantined = !matches!(broken, Broken::NotDue { .. })
        && execution.act::<_, BlockError>(|ledger| Ok(life::quarantine(ledger, id, Wei::ZERO)?))?;
    if !is_quarantined {
        execution.machine.state().drop_stray(entry);
    }
    let what = What::Quarantined { reason: broken.to_string() };
    Ok(Event { id, door: None, what })
}

/// Sets the switch of a lane's door.
fn pause<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    lane: Lane,
    broken: &dyn Display,
) -> Result<Option<Log>, BlockError> {
    let door = Queue::of_lane(lane).door();
    let Some(paused) = door.and_then(|door| door.switches().paused) else { return Ok(None) };
    let paused = (PARAMETERS, U256::from(paused.slot), Parameter::slot_value(1));
    execution.machine.write_slots(&[paused], false)?;
    Ok(Some(doors::pause_log(lane, broken)))
}

impl<'a, I: Inspector<EvmContext<'a>>> Execution<'a, '_, I> {
    /// What this block brings to its schedules.
    pub(crate) fn moment(&self) -> Moment {
        self.environment.moment()
    }
}
