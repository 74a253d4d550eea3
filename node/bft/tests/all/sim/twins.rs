//! Two validators with one key: each has a disk and a mind of its own, and the others take them for one.

use crate::sim::{draw::Draw, faults::Weather, liar::Lie};
use std::time::Duration;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    First,
    Second,
}

/// Time for which a half can reach the same peers.
const SLOT_MS: u128 = 400;

impl Lie {
    /// Whether two validators share a key.
    pub fn is_twin(self) -> bool {
        matches!(self, Self::Equivocate | Self::Twins | Self::Sides)
    }

    /// Whether a half sends to a peer.
    pub fn speaks(self, half: Half, weather: &Weather, index: usize, peer: usize, now: Duration) -> bool {
        match self {
            // Each peer hears one half only.
            Self::Equivocate => role(weather, index, peer, now).is_multiple_of(2) == (half == Half::First),
            Self::Twins => is_reached(half, role(weather, index, peer, now)),
            Self::Sides => is_on_side(half, peer),
            _ => true,
        }
    }

    /// Whether a half receives from a peer.
    pub fn hears(self, half: Half, weather: &Weather, index: usize, peer: usize, now: Duration) -> bool {
        match self {
            Self::Twins => is_reached(half, role(weather, index, peer, now)),
            Self::Sides => is_on_side(half, peer),
            _ => true,
        }
    }
}

/// What a peer is to a pair of twins for a while: a number below 8.
fn role(weather: &Weather, index: usize, peer: usize, now: Duration) -> u64 {
    let slot = u64::try_from(now.as_millis() / SLOT_MS).unwrap();
    let place = (index as u64) << 8 | peer as u64;
    Draw(Draw(weather.seed ^ place << 40).next() ^ slot).below(8)
}

/// Most peers are reached by one half, some by both, a few by none.
fn is_reached(half: Half, role: u64) -> bool {
    match role {
        0..3 => half == Half::First,
        3..6 => half == Half::Second,
        6 => true,
        _ => false,
    }
}

/// Validator 0 is on the side of the first halves, validator 1 on that of the second. The others are twins.
fn is_on_side(half: Half, peer: usize) -> bool {
    matches!((half, peer), (Half::First, 0) | (Half::Second, 1))
}
