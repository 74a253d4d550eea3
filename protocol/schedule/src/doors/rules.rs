//! What every door answers about a schedule with its terms. `life` carries the answers out, for all doors alike.

use super::Door;
use crate::{
    decide::{Decision, End, Moment, RunEnd, Settlement},
    record::{Head, Record},
};
use almanac_primitives::{DurationMs, Wei, codec::Writer};
use std::fmt::Debug;

/// The rules of a door, for one schedule. Pure: they read no state and move no money.
pub trait Rules: Debug {
    /// The door.
    fn door(&self) -> Door;

    /// Writes the terms as they are stored.
    fn encode(&self, out: &mut Writer);

    /// What a block does with a schedule that it meets.
    fn decide(&self, record: &Record, moment: Moment) -> Decision;

    /// Who gets what a run was charged.
    fn settle_run(&self, record: &Record, charge: Wei, ended: RunEnd<'_>, moment: Moment) -> Settlement;

    /// Who gets what is left of an escrow when its schedule ends.
    fn settle_end(&self, record: &Record, end: End) -> Settlement;

    /// The terms as people are shown them.
    fn facts(&self) -> Vec<(&'static str, Fact)>;

    /// How many calls a schedule makes at most.
    fn calls_max(&self) -> usize {
        1
    }

    /// From one due time to the next, if there is more than one.
    fn interval(&self) -> Option<DurationMs> {
        None
    }

    /// How many runs there are by number, or `None` where only money bounds them.
    fn runs_max(&self) -> Option<u64> {
        Some(1)
    }

    /// Whether part of what a run is charged may come back.
    fn returns_unused(&self) -> bool {
        false
    }

    /// Whether the end of a schedule stays readable for a while.
    fn keeps_ends(&self) -> bool {
        false
    }

    /// The head with what it repeats of escrow and terms, for [`is_passed_over`](crate::decide::is_passed_over).
    fn full_head(&self, record: &Record) -> Head {
        record.head
    }

    /// Whether a schedule may run more than once.
    fn is_series(&self) -> bool {
        self.interval().is_some()
    }
}

/// One of the terms as people are shown it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A number; `None` where there is no such bound.
    Number(Option<u64>),
    /// A word.
    Word(&'static str),
}
