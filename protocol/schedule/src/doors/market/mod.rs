//! AIP-125: which orders become scheduled transactions, what becomes of them, and who gets their deposits.
//!
//! Pure rules: nothing here moves money or knows an ABI. `life` carries out what the rules say.

mod admit;
mod lane;
mod rules;
mod terms;

pub use admit::{Admitted, Order, OrderError, admit};
pub use lane::{MarketLane, Phase, Service, is_paused, is_shut};
pub use terms::{BidTerms, Key, Named};

use super::{Profile, Switches, Terms};
use crate::calendar::Queue;
use almanac_primitives::params::{MARKET_ENABLED, MARKET_PAUSED};

/// The door.
pub(super) const PROFILE: Profile = Profile {
    name: "market",
    switches: Switches { enabled: Some(MARKET_ENABLED), paused: Some(MARKET_PAUSED) },
    queues: &[Queue::Market, Queue::Waiting, Queue::Expiring],
    decode: |input| BidTerms::decode(input).map(Terms::Market),
};
