//! The interface through which a block asks the calendar what is due.

use crate::calendar::{Calendar, CalendarError, Entry, Queue};
use almanac_primitives::{Lane, StateRead, TimestampMs, params::Parameters};

/// What is due according to the state of the parent block.
///
/// Execution sees the calendar only through this, so that a block can be tested with any agenda.
pub trait Agenda: Send + Sync {
    /// The entries of a queue up to `until`, in the queue's order, at most `count_max` of them. With a starting
    /// entry, the entries before it are left out: an earlier block has handled them.
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

    /// The earliest time at which anything becomes due, or `None` if nothing is scheduled. Ignores lanes that
    /// are paused.
    fn next_due(
        &self,
        state: &dyn StateRead,
        parameters: &Parameters,
    ) -> Result<Option<TimestampMs>, CalendarError>;
}

/// Whether governance or a fault has paused a lane.
pub fn is_held(lane: Lane, parameters: &Parameters) -> bool {
    Queue::of_lane(lane).is_held(parameters)
}

/// Reads the agenda from the calendar in the state. Every real chain uses this one.
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
