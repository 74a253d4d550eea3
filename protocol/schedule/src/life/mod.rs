//! The life of a schedule: created, topped up, run, settled, cancelled; or put aside by a fault.
//!
//! ```text
//!   create ──→ Pending ──→ begin ──→ (call) ──→ settle ──→ Pending, or gone after the last run
//!                 │
//!                 ├── cancel ──→ gone, escrow refunded
//!                 ├── exhaust ─→ gone, rest refunded       the escrow does not pay for the next run
//!                 ├── skip ────→ Pending at a later time   missed times, by the schedule's own policy
//!                 └── quarantine → Quarantined             a fault of our own; cancel still refunds
//! ```
//!
//! Nothing here calls anyone, reads a clock or knows an interface. Doors check what they admit, and turn the
//! [`Event`]s into their own.

mod begin;
mod change;
mod due;
mod event;
mod settle;

pub use begin::begin;
pub use change::{CancelError, Cancelled, TopUpError, cancel, create, quarantine, top_up};
pub use due::{Verdict, exhaust, judge, skip};
pub use event::{EXHAUSTED_ESCROW, EXHAUSTED_RUNS, Event};
pub use settle::{Ended, settle};

use almanac_primitives::{GasPrice, TimestampMs};

/// What a block brings to the schedules that are due in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The block's time.
    pub now: TimestampMs,
    /// The price of a run's gas.
    pub base_fee: GasPrice,
}
