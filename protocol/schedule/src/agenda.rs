//! The question a block asks of the calendar: what is due?

use almanac_primitives::{Lane, RunTransaction, StateRead, StateReadError, TimestampMs};

/// What is due, as the state of the parent block says it.
///
/// Execution sees the calendar only through this, so that a block can be tested with any agenda.
pub trait Agenda: Send + Sync {
    /// The runs of a lane that are due at `now`, in the lane's own order, at most `count_max` of them.
    ///
    /// The state is the parent's: nothing that a block schedules can run in that block.
    fn due(
        &self,
        state: &dyn StateRead,
        lane: Lane,
        now: TimestampMs,
        count_max: usize,
    ) -> Result<Vec<RunTransaction>, StateReadError>;

    /// The earliest moment at which anything becomes due, or `None` where nothing is scheduled.
    fn next_due(&self, state: &dyn StateRead) -> Result<Option<TimestampMs>, StateReadError>;
}

/// The agenda of a chain without schedules.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmptyAgenda;

impl Agenda for EmptyAgenda {
    fn due(
        &self,
        _: &dyn StateRead,
        _: Lane,
        _: TimestampMs,
        _: usize,
    ) -> Result<Vec<RunTransaction>, StateReadError> {
        Ok(Vec::new())
    }

    fn next_due(&self, _: &dyn StateRead) -> Result<Option<TimestampMs>, StateReadError> {
        Ok(None)
    }
}
