//! Block times between nodes: which time a proposer writes, and how verifiers treat it.
//!
//! A block's time is agreed, but each node has its own clock. A verdict must be the same on every honest node
//! forever, so no clock may reject a block: a node waits for a block from the future, and the view may time out
//! meanwhile.

use almanac_consensus::Clock;
use almanac_primitives::{DurationMs, TimestampMs};
use commonware_runtime::Clock as RuntimeClockSource;
use commonware_utils::SystemTimeExt as _;
use std::{
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

/// How a node handles time. A setting of the node, not a rule of the chain.
#[derive(Clone, Copy, Debug)]
pub struct TimeConfig {
    /// Time between a block and its parent without delays.
    pub block_time: DurationMs,
    /// How far ahead of this node's clock a block may be before the node waits for its time.
    pub tolerance: DurationMs,
}

impl Default for TimeConfig {
    /// Half a second: clocks synchronized by NTP differ by less, and no proposer gains more by running ahead.
    fn default() -> Self {
        Self { block_time: DurationMs(500), tolerance: DurationMs(500) }
    }
}

/// The verdict on a block's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeVerdict {
    /// Execute it.
    Accept,
    /// It is not after its parent: reject it permanently.
    NotAfterParent,
    /// It is from the future: check again at this time of the local clock.
    WaitUntil(TimestampMs),
}

impl TimeConfig {
    /// Judges a block's time. Only the parent's time can lead to a rejection.
    pub fn judge(&self, block: TimestampMs, parent: TimestampMs, now: TimestampMs) -> TimeVerdict {
        if block <= parent {
            return TimeVerdict::NotAfterParent;
        }
        let acceptable = TimestampMs(block.0.saturating_sub(self.tolerance.0));
        if now < acceptable { TimeVerdict::WaitUntil(acceptable) } else { TimeVerdict::Accept }
    }

    /// When to propose: a block time after the parent, but at most a block time from now, so that a parent from
    /// a fast clock does not cost this node its turn.
    pub fn propose_at(&self, parent: TimestampMs, now: TimestampMs) -> TimestampMs {
        let after = |from: TimestampMs| TimestampMs(from.0.saturating_add(self.block_time.0));
        after(parent).min(after(now))
    }

    /// How long a proposer chooses transactions, given the number of consecutive views without a block.
    ///
    /// Half of a block time, since the others need as long to verify the block. Each view that just failed may
    /// have failed because a block was too much work, so each halves the time again: blocks shrink until one
    /// passes. A leader that is down costs the next one half a block at most.
    pub fn choose_for(&self, failed_views: u64) -> DurationMs {
        let halvings = u32::try_from(failed_views.saturating_add(1)).unwrap_or(u32::MAX);
        DurationMs(self.block_time.0.checked_shr(halvings).unwrap_or(0))
    }
}

/// The time of a block that is proposed now: the clock's, or just after the parent's if the clock is behind.
/// `None` if no later time exists.
pub fn block_time(parent: TimestampMs, now: TimestampMs) -> Option<TimestampMs> {
    Some(now.max(TimestampMs(parent.0.checked_add(1)?)))
}

/// The clock of a runtime: the machine's, or a simulated one.
pub struct RuntimeClock<E>(Arc<E>);

impl<E> RuntimeClock<E> {
    /// The clock of `context`.
    pub fn new(context: E) -> Self {
        Self(Arc::new(context))
    }
}

impl<E> Clone for RuntimeClock<E> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<E: RuntimeClockSource> Clock for RuntimeClock<E> {
    fn now(&self) -> TimestampMs {
        TimestampMs(self.0.current().epoch_millis())
    }

    async fn sleep_until(&self, deadline: TimestampMs) {
        /// The wall clock may be set while we sleep, so wake up at this interval.
        const LONGEST_SLEEP: Duration = Duration::from_secs(1);
        while self.now() < deadline {
            let wake = UNIX_EPOCH + Duration::from_millis(deadline.0);
            self.0.sleep_until(wake.min(self.0.current() + LONGEST_SLEEP)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: TimestampMs = TimestampMs(10_000);
    const CONFIG: TimeConfig = TimeConfig { block_time: DurationMs(100), tolerance: DurationMs(500) };

    #[test]
    fn a_block_must_be_after_its_parent_whatever_the_clock_says() {
        for now in [0, 9_999, 10_000, 1_000_000].map(TimestampMs) {
            assert_eq!(CONFIG.judge(TimestampMs(9_999), PARENT, now), TimeVerdict::NotAfterParent);
            assert_eq!(CONFIG.judge(PARENT, PARENT, now), TimeVerdict::NotAfterParent);
            assert_ne!(CONFIG.judge(TimestampMs(10_001), PARENT, now), TimeVerdict::NotAfterParent);
        }
    }

    #[test]
    fn both_sides_of_the_tolerance() {
        let block = TimestampMs(20_000);
        let acceptable = TimestampMs(19_500);
        assert_eq!(CONFIG.judge(block, PARENT, TimestampMs(19_499)), TimeVerdict::WaitUntil(acceptable));
        assert_eq!(CONFIG.judge(block, PARENT, acceptable), TimeVerdict::Accept);
        assert_eq!(CONFIG.judge(block, PARENT, TimestampMs(u64::MAX)), TimeVerdict::Accept, "late is fine");
        let last = TimestampMs(u64::MAX);
        let wait = TimeVerdict::WaitUntil(TimestampMs(u64::MAX - 500));
        assert_eq!(CONFIG.judge(last, PARENT, TimestampMs(0)), wait, "however far ahead, it is not refused");
    }

    #[test]
    fn proposed_times_follow_the_clock_and_never_stand_still() {
        assert_eq!(block_time(PARENT, TimestampMs(12_345)), Some(TimestampMs(12_345)));
        assert_eq!(block_time(PARENT, TimestampMs(10_001)), Some(TimestampMs(10_001)));
        assert_eq!(block_time(PARENT, PARENT), Some(TimestampMs(10_001)), "a clock as late as the parent");
        assert_eq!(block_time(PARENT, TimestampMs(0)), Some(TimestampMs(10_001)), "a frozen clock");
        assert_eq!(block_time(TimestampMs(u64::MAX), TimestampMs(0)), None);
    }

    #[test]
    fn the_time_for_choosing_halves_with_every_view_that_failed() {
        let times = [0, 1, 2, 5, 6, 62, 63, 64, u64::MAX].map(|failed| CONFIG.choose_for(failed).0);
        assert_eq!(times, [50, 25, 12, 1, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_proposer_waits_for_its_beat_and_no_longer() {
        assert_eq!(CONFIG.propose_at(PARENT, TimestampMs(10_030)), TimestampMs(10_100));
        assert_eq!(CONFIG.propose_at(PARENT, TimestampMs(99_999)), TimestampMs(10_100), "late: at once");
        assert_eq!(CONFIG.propose_at(PARENT, TimestampMs(5_000)), TimestampMs(5_100), "the parent ran ahead");
    }
}
