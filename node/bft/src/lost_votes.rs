//! When a validator that does not know its past votes may sign again.
//!
//! Simplex writes every vote to disk before it sends it. A validator without those files could sign another
//! block, or conflicting votes, in a view in which it voted before; so it must not sign in any view that it may
//! have been in. The time of a final block bounds these views:
//!
//! - A validator leaves a view with the certificate of a block that it has verified itself, or with a quorum's
//!   certificate that the view has failed or is final. Honest validators verify no block before its time (`voter.rs`).
//! - So when a block with a time after this node's start is final, no honest validator had left its view by then:
//!   the first to leave did so by verifying it, and a quorum for "failed" cannot exist beside the one for "final".
//!   That holds for this node before it lost its votes, too: it never was in a later view.
//!
//! Clocks differ, so the block must be later by more than that difference.

use almanac_primitives::{DurationMs, Header, TimestampMs};

/// How far apart the clocks of honest validators may be, including the tolerance for early blocks: twenty times
/// what counts as a clock fault.
pub const CLOCKS_APART_MAX: DurationMs = DurationMs(10_000);

/// The period in which a node must not sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// A block with a later time ends it.
    pub until: TimestampMs,
}

impl Silence {
    /// Begins when the node starts. `tip` is the newest final block that peers knew then: its time counts if
    /// this node's clock is behind.
    pub fn new(start: TimestampMs, tip: &Header) -> Self {
        let latest = start.max(tip.timestamp);
        Self { until: TimestampMs(latest.0.saturating_add(CLOCKS_APART_MAX.0)) }
    }

    /// Whether a validator may sign in the views after that of this final block.
    pub fn ends_with(&self, block: &Header) -> bool {
        block.timestamp > self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(timestamp: u64) -> Header {
        Header { timestamp: TimestampMs(timestamp), ..Header::default() }
    }

    #[test]
    fn a_block_ends_it_that_is_later_than_the_start_by_more_than_clocks_differ() {
        let silence = Silence::new(TimestampMs(100_000), &at(99_000));
        assert!(!silence.ends_with(&at(99_000)));
        assert!(!silence.ends_with(&at(100_001)));
        assert!(!silence.ends_with(&at(110_000)));
        assert!(silence.ends_with(&at(110_001)));
    }

    /// If the clock is an hour behind, a block of half an hour ago would seem to come after the start.
    #[test]
    fn a_clock_that_is_behind_does_not_end_it_early() {
        let tip = at(3_700_000);
        let silence = Silence::new(TimestampMs(100_000), &tip);
        assert!(!silence.ends_with(&at(1_900_000)));
        assert!(!silence.ends_with(&tip));
        assert!(!silence.ends_with(&at(3_710_000)));
        assert!(silence.ends_with(&at(3_710_001)));
    }

    #[test]
    fn at_the_end_of_time_it_lasts_for_ever() {
        let silence = Silence::new(TimestampMs(u64::MAX), &at(0));
        assert!(!silence.ends_with(&at(u64::MAX)));
    }
}
