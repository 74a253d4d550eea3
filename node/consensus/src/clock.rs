//! The only place where a node reads a clock, and a clock that tests set by hand.

use almanac_primitives::{DurationMs, TimestampMs};
use std::{
    future::Future,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::sync::watch;

/// Reads the time and waits for it.
pub trait Clock: Clone + Send + Sync + 'static {
    /// Now.
    fn now(&self) -> TimestampMs;

    /// Returns once `now` is at or after `deadline`.
    fn sleep_until(&self, deadline: TimestampMs) -> impl Future<Output = ()> + Send;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> TimestampMs {
        // A clock before 1970 counts as 1970: blocks then follow their parents by a millisecond each.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        TimestampMs(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    async fn sleep_until(&self, deadline: TimestampMs) {
        // The wall clock may be set while we sleep, so check again before returning.
        while let Some(left) = deadline.since(self.now()).filter(|left| left.0 > 0) {
            tokio::time::sleep(Duration::from_millis(left.0.min(LONGEST_SLEEP.0))).await;
        }
    }
}

/// Longest sleep between two reads of the wall clock.
const LONGEST_SLEEP: DurationMs = DurationMs(1_000);

/// A clock that moves only by hand.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<watch::Sender<TimestampMs>>);

impl ManualClock {
    /// A clock that shows `now`.
    pub fn new(now: TimestampMs) -> Self {
        Self(Arc::new(watch::Sender::new(now)))
    }

    /// Moves the clock forward and wakes tasks whose deadline has passed.
    pub fn advance(&self, by: DurationMs) {
        self.0.send_modify(|now| *now = TimestampMs(now.0.saturating_add(by.0)));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> TimestampMs {
        *self.0.borrow()
    }

    async fn sleep_until(&self, deadline: TimestampMs) {
        let mut now = self.0.subscribe();
        // Cannot fail: the sender lives in this clock.
        let _ = now.wait_for(|now| *now >= deadline).await;
    }
}
