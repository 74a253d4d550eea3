//! FLIP-330: which orders become callbacks, what they cost, and who gets the fee.
//!
//! Pure rules: nothing here reads a state, moves money or knows an ABI. `capacity` books room; `life` carries out what
//! the rules say.

mod admit;
mod rules;
mod terms;

pub use admit::{Admitted, Order, OrderError, admit};
pub use terms::{CallbackTerms, Priority};

use super::{Profile, Switches, Terms};
use crate::calendar::Queue;
use almanac_primitives::params::{CALLBACK_ENABLED, CALLBACK_PAUSED};

/// The door.
pub(super) const PROFILE: Profile = Profile {
    name: "callback",
    switches: Switches { enabled: Some(CALLBACK_ENABLED), paused: Some(CALLBACK_PAUSED) },
    queues: &[Queue::Reserved, Queue::Spare],
    decode: |input| CallbackTerms::decode(input).map(Terms::Callback),
};
