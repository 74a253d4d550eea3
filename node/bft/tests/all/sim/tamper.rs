//! An agenda that is not the calendar's: what a proposer would execute by who cheats with due runs.

use crate::sim::liar::Lie;
use almanac_primitives::{GasPrice, StateRead, TimestampMs, params::Parameters};
use almanac_schedule::{
    Agenda, CalendarAgenda,
    calendar::{CalendarError, Entry, Queue},
};

pub struct Tampered(pub Lie);

impl Agenda for Tampered {
    fn due_from(
        &self,
        state: &dyn StateRead,
        queue: Queue,
        until: u64,
        from: Option<Entry>,
        count_max: usize,
    ) -> Result<Vec<Entry>, CalendarError> {
        let mut due = CalendarAgenda.due_from(state, queue, until, from, count_max)?;
        match self.0 {
            Lie::DropRun if !due.is_empty() => {
                due.remove(0);
            }
            Lie::RepeatRun if !due.is_empty() => due.insert(0, due[0]),
            Lie::ReorderRuns => due.reverse(),
            Lie::DropMarket if queue == Queue::Market && !due.is_empty() => {
                due.remove(0);
            }
            _ => {}
        }
        Ok(due)
    }

    fn next_due(
        &self,
        state: &dyn StateRead,
        parameters: &Parameters,
        base_fee: GasPrice,
    ) -> Result<Option<TimestampMs>, CalendarError> {
        CalendarAgenda.next_due(state, parameters, base_fee)
    }
}
