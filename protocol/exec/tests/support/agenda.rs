//! The test lane: an agenda whose runs are written down by hand.

use super::{MapState, contracts::COUNTER};
use alloy_primitives::{Address, Bytes, U256};
use almanac_primitives::{
    Gas, GasPrice, Lane, RunTransaction, ScheduleId, ScheduleRef, StateKey, StateRead, TimestampMs, Wei,
    params::Parameters,
};
use almanac_schedule::{
    Agenda, Due as Scheduled,
    calendar::{CalendarError, Entry},
};
use std::sync::Mutex;

/// Runs with the moment from which each is due, in the order of their lane.
#[derive(Debug, Default)]
pub struct TestAgenda {
    runs: Vec<(Due, RunTransaction)>,
    /// Every question that was asked: lane, time, most runs.
    pub asked: Mutex<Vec<(Lane, TimestampMs, usize)>>,
}

/// When a run is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// In the block with exactly this time, whatever becomes of it.
    In(TimestampMs),
    /// From this time on, until the counter has counted a call of its sender.
    Until(TimestampMs),
}

impl TestAgenda {
    pub fn new(runs: Vec<(Due, RunTransaction)>) -> Self {
        Self { runs, asked: Mutex::default() }
    }
}

impl Agenda for TestAgenda {
    fn due_from(
        &self,
        state: &dyn StateRead,
        lane: Lane,
        now: TimestampMs,
        _: Option<Entry>,
        count_max: usize,
    ) -> Result<Vec<Scheduled>, CalendarError> {
        self.asked.lock().unwrap().push((lane, now, count_max));
        let mut due = Vec::new();
        for (when, run) in self.runs.iter().filter(|(_, run)| run.lane == lane) {
            let is_due = match *when {
                Due::In(moment) => now == moment,
                Due::Until(moment) => now >= moment && state.read(counted(run.from))?.is_none(),
            };
            if is_due && due.len() < count_max {
                due.push(Scheduled::Bare(run.clone()));
            }
        }
        Ok(due)
    }

    fn next_due(&self, _: &dyn StateRead, _: &Parameters) -> Result<Option<TimestampMs>, CalendarError> {
        Ok(self.runs.iter().map(|(Due::In(moment) | Due::Until(moment), _)| *moment).min())
    }
}

/// The slot in which the counter counts the calls of `caller`.
pub fn counted(caller: Address) -> StateKey {
    StateKey::Slot(COUNTER, U256::from_be_slice(caller.as_slice()))
}

/// How often the counter was called by `caller`.
pub fn count_of(state: &MapState, caller: Address) -> U256 {
    state.0.get(&counted(caller)).map_or(U256::ZERO, |bytes| U256::from_be_slice(bytes))
}

/// A run of the schedule `id` to fill in: nothing but a call, at 1 gwei.
pub fn run(id: u64, lane: Lane, from: Address, to: Address, gas: u64) -> RunTransaction {
    RunTransaction {
        schedule_ref: ScheduleRef { schedule: ScheduleId(id), number: 0 },
        lane,
        from,
        to,
        value: Wei::ZERO,
        input: Bytes::new(),
        gas_limit: Gas(gas),
        gas_price: GasPrice(1_000_000_000),
    }
}
