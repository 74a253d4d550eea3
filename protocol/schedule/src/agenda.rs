//! The question a block asks of the calendar: what is due?

use crate::calendar::{Calendar, CalendarError, Entry, Queue};
use almanac_primitives::{Lane, StateRead, TimestampMs, params::Parameters};

/// What is due, as the state of the parent block says it.
///
/// Execution sees the calendar only through this, so that a block can be tested with any agenda.
pub trait Agenda: Send + Sync {
    /// What is in a queue up to `until`, in the queue's own order, at most `count_max` of it: all of it, or from an
    /// entry on. What is before that entry was met in another block.
    ///
    /// The state is the parent's: nothing that a block schedules can run in that block.
    fn due_from(
        &self,
        state: &dyn StateRead,
        queue: Queue,
        until: u64,
        from: Option<Entry>,
        count_max: usize,
    ) -> Result<Vec<Entry>, CalendarError>;

    /// The earliest moment at which anything becomes due, or `None` where nothing is scheduled. What a pause
    /// holds back is not due.
    fn next_due(
        &self,
        state: &dyn StateRead,
        parameters: &Parameters,
    ) -> Result<Option<TimestampMs>, CalendarError>;
}

/// Whether governance, or a fault, holds a lane back.
pub fn is_held(lane: Lane, parameters: &Parameters) -> bool {
    Queue::of_lane(lane).is_held(parameters)
}

/// The agenda of every real chain: the calendar in its state.
#[derive(Clone, Copy, Debug, Default)]
pub struct CalendarAgenda;

impl Agenda for CalendarAgenda {
    fn due_from(
        &self,
        state: &dyn StateRead,
        queue: Queue,
        until: u64,
        from: Option<Entry>,
        count_max: usize,
    ) -> Result<Vec<Entry>, CalendarError> {
        Calendar::new(state).due_from(queue, until, from, count_max)
    }

    fn next_due(
        &self,
        state: &dyn StateRead,
        parameters: &Parameters,
    ) -> Result<Option<TimestampMs>, CalendarError> {
        let queues = Queue::TIMED.into_iter().filter(|queue| !queue.is_held(parameters));
        Calendar::new(state).next_due(&queues.collect::<Vec<_>>())
    }
}
