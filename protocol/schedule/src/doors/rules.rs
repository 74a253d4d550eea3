//! What every door answers about one of its schedules. `life` carries the answers out for all doors.

use super::Door;
use crate::{
    capacity::Booking,
    decide::{Decision, End, Moment, RunEnd, Settlement},
    record::{Head, Record},
};
use alloy_primitives::B256;
use almanac_primitives::{DurationMs, GasPrice, Wei, codec::Writer};
use std::fmt::Debug;

/// The rules of a door, for one schedule. Pure: they read no state and move no money.
pub trait Rules: Debug {
    /// The door.
    fn door(&self) -> Door;

    /// Encodes the terms as they are stored.
    fn encode(&self, out: &mut Writer);

    /// What a block does with a due schedule.
    fn decide(&self, record: &Record, moment: Moment) -> Decision;

    /// What a run takes from the escrow when it begins.
    fn charge(&self, record: &Record, base_fee: GasPrice) -> Wei {
        record.body.gas_limit.cost(base_fee)
    }

    /// Who gets what a run was charged.
    fn settle_run(&self, record: &Record, charge: Wei, ended: RunEnd<'_>, moment: Moment) -> Settlement;

    /// Who gets what is left of an escrow when its schedule ends.
    fn settle_end(&self, record: &Record, end: End, moment: Moment) -> Settlement;

    /// The terms for display, in RPC answers.
    fn facts(&self) -> Vec<(&'static str, Fact)>;

    /// Most calls that a schedule makes.
    fn calls_max(&self) -> usize {
        1
    }

    /// Time from one due time to the next, for a series.
    fn interval(&self) -> Option<DurationMs> {
        None
    }

    /// Most runs, or `None` if only the escrow limits them.
    fn runs_max(&self) -> Option<u64> {
        Some(1)
    }

    /// Whether part of a run's charge may be refunded.
    fn returns_unused(&self) -> bool {
        false
    }

    /// Whether an ended schedule stays readable for a while.
    fn keeps_ends(&self) -> bool {
        false
    }

    /// Whether the start of a block marks its runs before any of them begins.
    fn is_processed(&self) -> bool {
        false
    }

    /// The room that a schedule has booked and holds until it begins or ends.
    fn booking(&self, _: &Record) -> Option<Booking> {
        None
    }

    /// Whether a due schedule may wait for a better price.
    fn may_wait(&self) -> bool {
        false
    }

    /// Whether the escrow holds the value of the call, which the run's sender then gets as the run begins.
    fn holds_value(&self) -> bool {
        false
    }

    /// A hash under which its door finds a schedule, beside its id.
    fn hash_name(&self) -> Option<B256> {
        None
    }

    /// The hash of what makes two schedules the same one, where only one of them may be pending.
    fn identity(&self) -> Option<B256> {
        None
    }

    /// Its owner's epoch at its creation. A later one has cancelled it.
    fn epoch(&self) -> Option<u64> {
        None
    }

    /// The price per gas of a run whose price is known at the end of the block only, given the highest price that a
    /// user transaction of the block pays. `None` for doors whose runs are settled as they end.
    fn price_at_end(&self, _base_fee: GasPrice, _top: GasPrice) -> Option<GasPrice> {
        None
    }

    /// The head with the values it caches from escrow and terms, for
    /// [`is_passed_over`](crate::decide::is_passed_over).
    fn full_head(&self, record: &Record) -> Head {
        record.head
    }

    /// Whether a schedule may run more than once.
    fn is_series(&self) -> bool {
        self.interval().is_some()
    }
}

/// One of the terms, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A number; `None` means unbounded.
    Number(Option<u64>),
    /// A word.
    Word(&'static str),
}
