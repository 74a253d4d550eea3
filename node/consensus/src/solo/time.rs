//! The sequencer's clock, which a developer can move, and the time reserved for the next block.

use crate::clock::Clock;
use almanac_primitives::{DurationMs, TimestampMs};
use std::sync::{Arc, Mutex, MutexGuard};

/// Latest time that a developer can move to: the largest integer that every client can represent, in
/// milliseconds.
pub const TIME_MAX: TimestampMs = TimestampMs((1 << 53) - 1);

/// A clock with an offset from the machine's.
pub(crate) struct Time<C> {
    clock: C,
    setting: Arc<Mutex<TimeSetting>>,
    /// Stores the settings, where they outlive the process.
    keep: Option<KeepTime>,
    /// What was stored last.
    kept: TimeSetting,
}

/// A developer's settings of the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeSetting {
    /// The offset from the machine's clock.
    pub offset_ms: i64,
    /// The time set for the next block.
    pub next: Option<TimestampMs>,
    /// The distance between a block and its parent, if it is set.
    pub distance: Option<DurationMs>,
}

/// Stores a developer's settings of the time, so that a restart continues with them.
pub type KeepTime = Arc<dyn Fn(TimeSetting) + Send + Sync>;

/// Returns the time that the next block would have.
pub(super) type NextTime = Arc<dyn Fn() -> TimestampMs + Send + Sync>;

impl<C: Clock> Time<C> {
    /// A clock with the settings of the last start, for a chain whose last block has the time `tip`.
    pub(crate) fn new(clock: C, setting: TimeSetting, tip: TimestampMs, keep: Option<KeepTime>) -> Self {
        let mut time = Self { clock, setting: Arc::new(Mutex::new(setting)), keep, kept: setting };
        time.reach(tip);
        let setting = time.setting();
        // A crash may have come between the block that used the time up and the note of it.
        time.restore(TimeSetting { next: setting.next.filter(|next| *next > tip), ..setting });
        time.keep_distance(tip);
        time
    }

    pub(super) fn next_time(&self) -> NextTime {
        let (clock, setting) = (self.clock.clone(), self.setting.clone());
        Arc::new(move || {
            let TimeSetting { next, offset_ms, .. } = *lock(&setting);
            next.unwrap_or_else(|| TimestampMs(clock.now().0.saturating_add_signed(offset_ms)))
        })
    }

    pub(crate) fn now(&self) -> TimestampMs {
        TimestampMs(self.machine_now().0.saturating_add_signed(self.setting().offset_ms))
    }

    /// The machine's time, which no developer moves.
    pub(crate) fn machine_now(&self) -> TimestampMs {
        self.clock.now()
    }

    /// Moves the clock forward to the time of a block, if it is behind. Otherwise every later block would come a
    /// millisecond after its parent, and nothing would become due, until the machine's clock has caught up.
    pub(crate) fn reach(&mut self, tip: TimestampMs) {
        if self.now() < tip {
            self.move_to(tip);
        }
    }

    /// Stores the settings, if they changed.
    pub(crate) fn keep(&mut self) {
        let setting = self.setting();
        if let Some(keep) = self.keep.as_ref().filter(|_| setting != self.kept) {
            keep(setting);
            self.kept = setting;
        }
    }

    pub(crate) async fn sleep_until(&self, deadline: TimestampMs) {
        let below = deadline.0.saturating_add_signed(self.setting().offset_ms.saturating_neg());
        self.clock.sleep_until(TimestampMs(below)).await;
    }

    /// Sets the clock to `now`; it continues from there.
    pub(crate) fn move_to(&mut self, now: TimestampMs) {
        self.shift(self.now(), now);
    }

    /// Moves the clock by the difference of two times, however long ago `from` was the current time.
    pub(crate) fn shift(&mut self, from: TimestampMs, to: TimestampMs) {
        let setting = self.setting();
        // Times are far below 2^63, so the difference fits.
        let by = to.0.wrapping_sub(from.0).cast_signed();
        self.restore(TimeSetting { offset_ms: setting.offset_ms.saturating_add(by), ..setting });
    }

    /// Sets the time of the next block.
    pub(crate) fn set_next(&mut self, next: TimestampMs) {
        self.restore(TimeSetting { next: Some(next), ..self.setting() });
    }

    /// The time of the next block. Uses up a time that was set for it, and the clock continues from there.
    pub(crate) fn take_next(&mut self) -> TimestampMs {
        let setting = self.setting();
        let Some(next) = setting.next else { return self.now() };
        self.restore(TimeSetting { next: None, ..setting });
        self.move_to(next);
        next
    }

    /// Sets or removes the distance between blocks. Returns whether one was set before.
    pub(crate) fn set_distance(&mut self, distance: Option<DurationMs>, tip: TimestampMs) -> bool {
        let before = self.setting();
        if before.distance.is_some() || distance.is_some() {
            self.restore(TimeSetting { next: None, distance, ..before });
            self.keep_distance(tip);
        }
        before.distance.is_some()
    }

    /// If a distance is set, sets the next block's time to that distance after the last block.
    pub(crate) fn keep_distance(&mut self, tip: TimestampMs) {
        let setting = self.setting();
        if let Some(distance) = setting.distance {
            self.restore(TimeSetting { next: later(tip, distance), ..setting });
        }
    }

    /// The current settings, to restore them later.
    pub(crate) fn setting(&self) -> TimeSetting {
        *self.lock()
    }

    pub(crate) fn restore(&mut self, setting: TimeSetting) {
        *self.lock() = setting;
    }

    fn lock(&self) -> MutexGuard<'_, TimeSetting> {
        lock(&self.setting)
    }
}

fn lock(setting: &Mutex<TimeSetting>) -> MutexGuard<'_, TimeSetting> {
    setting.lock().expect("nobody panics while holding the time")
}

/// The time `wait` after `from`, if a developer may move there.
pub(crate) fn later(from: TimestampMs, wait: DurationMs) -> Option<TimestampMs> {
    from.checked_add(wait).filter(|moment| *moment <= TIME_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A clock that never shows the same time twice.
    #[derive(Clone, Default)]
    struct Ticking(Arc<AtomicU64>);

    impl Clock for Ticking {
        fn now(&self) -> TimestampMs {
            TimestampMs(1_000_000 + self.0.fetch_add(1, Ordering::Relaxed))
        }

        async fn sleep_until(&self, _: TimestampMs) {}
    }

    fn time() -> Time<Ticking> {
        Time::new(Ticking::default(), TimeSetting::default(), TimestampMs(0), None)
    }

    /// Clients are told how far the clock was moved; a second must not become 999 ms because reading it took
    /// one.
    #[test]
    fn a_clock_is_moved_exactly_while_it_runs() {
        let mut time = time();
        for moved in 1..=3 {
            let from = time.now();
            time.now();
            time.shift(from, TimestampMs(from.0 + 1_000));
            assert_eq!(time.setting().offset_ms, moved * 1_000);
        }
        let from = time.now();
        time.shift(from, TimestampMs(from.0 - 5_000));
        assert_eq!(time.setting().offset_ms, -2_000);
    }

    #[test]
    fn a_moment_is_kept_for_one_block() {
        let mut time = time();
        let next_time = time.next_time();
        time.set_next(TimestampMs(5));
        assert_eq!(next_time(), TimestampMs(5));
        assert_eq!(time.take_next(), TimestampMs(5));
        assert!((5..50).contains(&time.take_next().0), "the clock goes on from there");
        assert!((5..50).contains(&next_time().0));
    }

    #[test]
    fn both_sides_of_the_latest_time() {
        let from = TimestampMs(TIME_MAX.0 - 10);
        assert_eq!(later(from, DurationMs(10)), Some(TIME_MAX));
        assert_eq!(later(from, DurationMs(11)), None);
        assert_eq!(later(from, DurationMs(u64::MAX)), None);
    }

    #[test]
    fn blocks_keep_their_distance_as_long_as_it_is_set() {
        let mut time = time();
        assert!(!time.set_distance(Some(DurationMs(100)), TimestampMs(7)));
        for tip in [7, 107, 500] {
            time.keep_distance(TimestampMs(tip));
            assert_eq!(time.take_next(), TimestampMs(tip + 100));
        }
        time.keep_distance(TIME_MAX);
        assert_eq!(time.setting().next, None, "beyond the latest time the clock counts");
        time.keep_distance(TimestampMs(7));
        assert!(time.set_distance(None, TimestampMs(7)));
        assert!(!time.set_distance(None, TimestampMs(7)));
        time.keep_distance(TimestampMs(7));
        assert_eq!(time.setting().next, None);
        time.set_next(TimestampMs(5_000));
        assert!(!time.set_distance(None, TimestampMs(7)));
        assert_eq!(time.take_next(), TimestampMs(5_000), "nothing was taken back that was not its own");
    }

    /// A restarted chain whose last block is ahead of the machine continues from that block, with what was set.
    #[test]
    fn settings_outlive_a_restart_and_the_clock_is_never_behind_the_tip() {
        let stored: Arc<Mutex<Vec<TimeSetting>>> = Arc::default();
        let keep: KeepTime = {
            let stored = stored.clone();
            Arc::new(move |setting| stored.lock().unwrap().push(setting))
        };
        let start =
            |setting, tip| Time::new(Ticking::default(), setting, TimestampMs(tip), Some(keep.clone()));
        let mut time = start(TimeSetting::default(), 5_000_000);
        assert!((5_000_000..5_000_050).contains(&time.now().0));
        time.keep();
        time.keep();
        assert_eq!(stored.lock().unwrap().len(), 1, "once for each change");
        let kept = stored.lock().unwrap()[0];
        assert!((5_000_000..5_000_050).contains(&start(kept, 0).now().0), "without the block too");

        let set = TimeSetting { next: Some(TimestampMs(700)), ..TimeSetting::default() };
        assert_eq!(start(set, 699).take_next(), TimestampMs(700));
        assert!(start(set, 700).take_next().0 >= 1_000_000, "the block that it was set for is there");
        let distance = TimeSetting { distance: Some(DurationMs(9)), ..TimeSetting::default() };
        assert_eq!(start(distance, 50).take_next(), TimestampMs(59));
    }
}
