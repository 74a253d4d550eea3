//! The sequencer's time: a clock that a developer can move, and a moment kept for the next block.

use crate::clock::Clock;
use almanac_primitives::{DurationMs, TimestampMs};
use std::sync::{Arc, Mutex, MutexGuard};

/// Latest moment that a developer can move to: the largest integer that every client can hold, in milliseconds.
pub const TIME_MAX: TimestampMs = TimestampMs((1 << 53) - 1);

/// A clock that stands apart from the one below it.
pub(crate) struct Time<C> {
    clock: C,
    setting: Arc<Mutex<TimeSetting>>,
}

/// What a developer has done to the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeSetting {
    /// How far the clock is ahead of the one below.
    pub(crate) offset_ms: i64,
    /// The time of the next block.
    pub(crate) next: Option<TimestampMs>,
}

/// Tells others what time the next block would have.
pub(super) type NextTime = Arc<dyn Fn() -> TimestampMs + Send + Sync>;

impl<C: Clock> Time<C> {
    pub(crate) fn new(clock: C) -> Self {
        Self { clock, setting: Arc::default() }
    }

    pub(super) fn next_time(&self) -> NextTime {
        let time = Self { clock: self.clock.clone(), setting: self.setting.clone() };
        Arc::new(move || time.setting().next.unwrap_or_else(|| time.now()))
    }

    pub(crate) fn now(&self) -> TimestampMs {
        TimestampMs(self.clock.now().0.saturating_add_signed(self.setting().offset_ms))
    }

    pub(crate) async fn sleep_until(&self, deadline: TimestampMs) {
        let below = deadline.0.saturating_add_signed(self.setting().offset_ms.saturating_neg());
        self.clock.sleep_until(TimestampMs(below)).await;
    }

    /// Makes it `now`; the clock goes on from there.
    pub(crate) fn move_to(&mut self, now: TimestampMs) {
        let offset = i128::from(now.0) - i128::from(self.clock.now().0);
        let offset_ms = i64::try_from(offset).unwrap_or(if offset < 0 { i64::MIN } else { i64::MAX });
        self.restore(TimeSetting { offset_ms, ..self.setting() });
    }

    /// Keeps a moment for the next block.
    pub(crate) fn set_next(&mut self, next: TimestampMs) {
        self.restore(TimeSetting { next: Some(next), ..self.setting() });
    }

    /// The time of the next block. A moment that was kept for it is used up, and the clock goes on from there.
    pub(crate) fn take_next(&mut self) -> TimestampMs {
        let setting = self.setting();
        let Some(next) = setting.next else { return self.now() };
        self.restore(TimeSetting { next: None, ..setting });
        self.move_to(next);
        next
    }

    /// What has been done to the time, to come back to it.
    pub(crate) fn setting(&self) -> TimeSetting {
        *self.lock()
    }

    pub(crate) fn restore(&mut self, setting: TimeSetting) {
        *self.lock() = setting;
    }

    fn lock(&self) -> MutexGuard<'_, TimeSetting> {
        self.setting.lock().expect("nobody panics while holding the time")
    }
}

/// The moment `wait` after `from`, if a developer may move there.
pub(crate) fn later(from: TimestampMs, wait: DurationMs) -> Option<TimestampMs> {
    from.checked_add(wait).filter(|moment| *moment <= TIME_MAX)
}
