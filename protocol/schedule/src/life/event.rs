//! What happened to a schedule outside of a caller's own transaction.

use almanac_primitives::{Gas, ScheduleId};

/// Why a schedule whose escrow is empty has ended.
pub const EXHAUSTED_ESCROW: &str = "insufficient escrow";

/// Why a schedule that has run as often as it should has ended.
pub const EXHAUSTED_RUNS: &str = "max runs reached";

/// Something that the owner of a schedule wants to hear of. Its door says it in its own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A run is over.
    Executed {
        /// Whose.
        id: ScheduleId,
        /// Whether the call returned.
        is_success: bool,
        /// Gas it used.
        gas_used: Gas,
    },
    /// A series has come to its end.
    Exhausted {
        /// Which.
        id: ScheduleId,
        /// Why.
        reason: &'static str,
    },
}
