//! An agenda with a single schedule, so that a simulated block runs only that one.

use almanac_primitives::{GasPrice, ScheduleId, StateRead, TimestampMs, params::Parameters};
use almanac_schedule::{
    Agenda, Record,
    calendar::{CalendarError, Entry, Queue},
    record::RecordError,
};

/// An agenda with a single schedule.
pub(super) struct OneSchedule(pub(super) ScheduleId);

impl OneSchedule {
    fn record(&self, state: &dyn StateRead) -> Result<Option<Record>, CalendarError> {
        match Record::read(state, self.0) {
            Ok(record) => Ok(record),
            Err(RecordError::Read(error)) => Err(CalendarError::Read(error)),
            Err(RecordError::Broken(_)) => Ok(None),
        }
    }
}

impl Agenda for OneSchedule {
    fn due_from(
        &self,
        state: &dyn StateRead,
        queue: Queue,
        until: u64,
        from: Option<Entry>,
        count_max: usize,
    ) -> Result<Vec<Entry>, CalendarError> {
        let entries = self.record(state)?.into_iter().flat_map(|record| record.head.entries(record.id));
        let due = entries.filter(|entry| entry.queue == queue && entry.at <= until);
        let due = due.filter(|entry| from.is_none_or(|from| from <= *entry));
        Ok(due.take(count_max).collect())
    }

    fn next_due(
        &self,
        state: &dyn StateRead,
        _: &Parameters,
        _: GasPrice,
    ) -> Result<Option<TimestampMs>, CalendarError> {
        Ok(self.record(state)?.and_then(|record| record.entry()).map(|entry| entry.due()))
    }
}
