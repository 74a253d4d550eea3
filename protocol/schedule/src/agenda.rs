//! The question a block asks of the calendar: what is due?

use crate::calendar::{Calendar, CalendarError, Entry};
use almanac_primitives::{
    Lane, RunTransaction, StateRead, TimestampMs,
    params::{CRON_ENABLED, CRON_PAUSED, Parameters},
};

/// What is due, as the state of the parent block says it.
///
/// Execution sees the calendar only through this, so that a block can be tested with any agenda.
pub trait Agenda: Send + Sync {
    /// What is due in a lane at `now`, in the lane's own order, at most `count_max` of it: all of it, or from an entry
    /// on. What is before that entry was met in another block. Bare runs have no entry, and come from the front alone.
    ///
    /// The state is the parent's: nothing that a block schedules can run in that block.
    fn due_from(
        &self,
        state: &dyn StateRead,
        lane: Lane,
        now: TimestampMs,
        from: Option<Entry>,
        count_max: usize,
    ) -> Result<Vec<Due>, CalendarError>;

    /// The earliest moment at which anything becomes due, or `None` where nothing is scheduled. What a pause
    /// holds back is not due.
    fn next_due(
        &self,
        state: &dyn StateRead,
        parameters: &Parameters,
    ) -> Result<Option<TimestampMs>, CalendarError>;
}

/// Something that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// A schedule with a record: it is charged, run and settled.
    Schedule(Entry),
    /// A run that no record stands behind and nobody pays for. Tests of lanes are made of these.
    Bare(RunTransaction),
}

impl Due {
    /// Its place in the calendar, if it has one.
    pub fn entry(&self) -> Option<Entry> {
        match self {
            Self::Schedule(entry) => Some(*entry),
            Self::Bare(_) => None,
        }
    }
}

/// Whether governance, or a fault, holds a lane back.
pub fn is_held(lane: Lane, parameters: &Parameters) -> bool {
    match lane {
        Lane::Cron => parameters.get(CRON_ENABLED) == 0 || parameters.get(CRON_PAUSED) == 1,
        // No door leads to these lanes yet.
        Lane::Reserved | Lane::Market | Lane::Spare => false,
    }
}

/// The agenda of every real chain: the calendar in its state.
#[derive(Clone, Copy, Debug, Default)]
pub struct CalendarAgenda;

impl Agenda for CalendarAgenda {
    fn due_from(
        &self,
        state: &dyn StateRead,
        lane: Lane,
        now: TimestampMs,
        from: Option<Entry>,
        count_max: usize,
    ) -> Result<Vec<Due>, CalendarError> {
        let entries = Calendar::new(state).due_from(lane, now, from, count_max)?;
        Ok(entries.into_iter().map(Due::Schedule).collect())
    }

    fn next_due(
        &self,
        state: &dyn StateRead,
        parameters: &Parameters,
    ) -> Result<Option<TimestampMs>, CalendarError> {
        let lanes = Lane::ALL.map(|lane| Some(lane).filter(|lane| !is_held(*lane, parameters)));
        let lanes: Vec<_> = lanes.into_iter().flatten().collect();
        Calendar::new(state).next_due(&lanes)
    }
}
