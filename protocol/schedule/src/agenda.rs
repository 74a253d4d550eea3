//! The interface through which a block asks the calendar what is due.

use crate::{
    calendar::{Calendar, CalendarError, Entry, Queue},
    doors::market::{MarketLane, Phase, is_paused, is_shut},
};
use almanac_primitives::{GasPrice, Lane, StateRead, TimestampMs, params::Parameters};

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

    /// The earliest time at which a block has something to do, or `None` if nothing is scheduled. Ignores lanes that
    /// are paused. What waits for a price counts if its bid reaches the base fee of the next block.
    fn next_due(
        &self,
        state: &dyn StateRead,
        parameters: &Parameters,
        base_fee: GasPrice,
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
        base_fee: GasPrice,
    ) -> Result<Option<TimestampMs>, CalendarError> {
        if has_work_now(state, parameters, base_fee)? {
            return Ok(Some(TimestampMs(0)));
        }
        let queues = Queue::TIMED.into_iter().filter(|queue| !queue.is_held(parameters));
        Calendar::new(state).next_due(&queues.collect::<Vec<_>>())
    }
}

/// Whether the next block has market work whatever its time: a run that waits and can pay, or refunds of a shutdown.
fn has_work_now(
    state: &dyn StateRead,
    parameters: &Parameters,
    base_fee: GasPrice,
) -> Result<bool, CalendarError> {
    if is_shut(parameters) {
        let is_over = MarketLane::read(state)?.is_ok_and(|lane| lane.phase == Phase::ShutDown);
        return Ok(!is_paused(parameters) && !is_over);
    }
    if Queue::Waiting.is_held(parameters) {
        return Ok(false);
    }
    let highest = Calendar::new(state).highest_bid()?;
    Ok(highest.is_some_and(|bid| u128::from(bid) >= base_fee.0))
}
