//! The calendar: which schedule does what at which time. Queues in one ordered map that lives in the state.
//!
//! ```text
//!   Calendar(0)   anchor: root, levels, entries per queue
//!                          |
//!   Calendar(9)   branch  [ (first) → 4 | (Cron, 12:00) → 7 | (Cron, 18:00) → 2 ]
//!                              |                 |                   |
//!                          Calendar(4)       Calendar(7)         Calendar(2)
//!                          leaf              leaf                leaf
//!                          (first)…12:00     12:00…18:00         18:00…(end)
//!                          entry entry …     entry entry …       entry entry …
//! ```
//!
//! The map is a B+tree whose nodes are state values (decision 0012). A block reads it in the prologue and
//! writes it once, in the epilogue; the EVM never sees it. The record of a schedule is stored elsewhere, in
//! slots of the ledger account.
//!
//! The sequence of blocks determines the entries and also how they are split into nodes: the same blocks give
//! the same nodes.

mod anchor;
mod apply;
mod check;
mod entry;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod leaf;
mod level;
mod node;
mod outline;
mod queue;
mod read;
#[cfg(test)]
mod small;
mod tree;

pub use apply::{ApplyError, Change};
pub use check::{Census, CheckError};
pub use entry::{ENTRY_BYTES, Entry, Priority};
pub use leaf::{Leaf, SpanError, due_in};
pub use node::NodeError;
pub use outline::{Outline, Part};
pub use queue::Queue;
pub use read::Cursor;
pub use tree::CalendarError;

use almanac_primitives::StateRead;
use std::fmt;

/// The calendar in a state.
///
/// A state without an anchor has an empty calendar.
#[derive(Clone, Copy)]
pub struct Calendar<'a> {
    state: &'a dyn StateRead,
}

impl<'a> Calendar<'a> {
    /// The calendar of this state. Reads nothing yet.
    pub fn new(state: &'a dyn StateRead) -> Self {
        Self { state }
    }
}

impl fmt::Debug for Calendar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Calendar")
    }
}
