//! The sequencer's time: a clock that a developer can move, and a moment kept for the next block.

use crate::clock::Clock;
use almanac_primitives::{DurationMs, TimestampMs};

/// Latest moment that a developer can move to: the largest integer that every client can hold, in milliseconds.
pub const TIME_MAX: TimestampMs = TimestampMs((1 << 53) - 1);

/// A clock that stands apart from the one below it.
#[derive(Debug)]
pub(crate) struct Time<C> {
    clock: C,
    setting: TimeSetting,
}

/// What a developer has done to the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeSetting {
    /// How far the clock is ahead of the one below.
    pub(crate) offset_ms: i64,
    /// The time of the next block.
    pub(crate) next: Option<TimestampMs>,
}

impl<C: Clock> Time<C> {
    pub(crate) fn new(clock: C) -> Self {
        Self { clock, setting: TimeSetting::default() }
    }

    pub(crate) fn now(&self) -> TimestampMs {
        TimestampMs(self.clock.now().0.saturating_add_signed(self.setting.offset_ms))
    }

    pub(crate) async fn sleep_until(&self, deadline: TimestampMs) {
        let below = deadline.0.saturating_add_signed(self.setting.offset_ms.saturating_neg());
        self.clock.sleep_until(TimestampMs(below)).await;
    }

    /// Makes it `now`; the clock goes on from there.
    pub(crate) fn move_to(&mut self, now: TimestampMs) {
        let offset = i128::from(now.0) - i128::from(self.clock.now().0);
        self.setting.offset_ms =
            i64::try_from(offset).unwrap_or(if offset < 0 { i64::MIN } else { i64::MAX });
    }

    /// Keeps a moment for the next block.
    pub(crate) fn set_next(&mut self, next: TimestampMs) {
        self.setting.next = Some(next);
    }

    /// The time of the next block. A moment that was kept for it is used up, and the clock goes on from there.
    pub(crate) fn take_next(&mut self) -> TimestampMs {
        if let Some(next) = self.setting.next.take() {
            self.move_to(next);
            return next;
        }
        self.now()
    }

    /// What has been done to the time, to come back to it.
    pub(crate) fn setting(&self) -> TimeSetting {
        self.setting
    }

    pub(crate) fn restore(&mut self, setting: TimeSetting) {
        self.setting = setting;
    }
}

/// The moment `wait` after `from`, if a developer may move there.
pub(crate) fn later(from: TimestampMs, wait: DurationMs) -> Option<TimestampMs> {
    from.checked_add(wait).filter(|moment| *moment <= TIME_MAX)
}
