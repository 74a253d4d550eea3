//! ARC-21: which orders become jobs, what happens to a due job, and who gets its money.
//!
//! The rules are pure: they read no state, move no money and know no ABI. `life` carries them out.

mod admit;
mod method;
mod rules;
mod terms;

pub use admit::{Admitted, Order, OrderError, SELECTOR_BYTES, admit};
pub use method::canonical_method;
pub use terms::{CatchUp, Charge, CronTerms};

pub(crate) use rules::is_passed_over;

use super::{Profile, Switches, Terms};
use crate::calendar::Queue;
use almanac_primitives::params::{CRON_ENABLED, CRON_PAUSED};

/// The door.
pub(super) const PROFILE: Profile = Profile {
    name: "cron",
    switches: Switches { enabled: Some(CRON_ENABLED), paused: Some(CRON_PAUSED) },
    queues: &[Queue::Cron],
    decode: |input| CronTerms::decode(input).map(Terms::Cron),
};
