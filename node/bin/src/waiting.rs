//! The number of pending schedules and the next due time, for the banner, the log and the metrics.

use almanac_index::Index;
use almanac_primitives::TimestampMs;
use almanac_rpc::types::time::iso;
use almanac_schedule::{
    Calendar,
    calendar::{CalendarError, Queue},
};
use std::fmt;

/// How much waits after the last block, for its time or for a price, and when the first is due that waits for its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) schedules: u64,
    pub(crate) next: Option<TimestampMs>,
}

impl Waiting {
    /// Looks into the calendar of the last block.
    pub(crate) fn read(index: &Index) -> Result<Self, CalendarError> {
        let state = index.tip_state();
        let calendar = Calendar::new(&state);
        let queues = Queue::TIMED.into_iter().chain([Queue::Waiting]);
        let counts = queues.map(|queue| calendar.count(queue)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { schedules: counts.iter().sum(), next: calendar.first()?.map(|entry| entry.due()) })
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.next {
            Some(next) => write!(f, "{} waiting, the next is due at {}", self.schedules, iso(next)),
            None if self.schedules > 0 => write!(f, "{} due and waiting for a price", self.schedules),
            None => f.write_str("none waiting"),
        }
    }
}
