//! What goes wrong in a run, and when.

use crate::network::Network;
use commonware_cryptography::{Signer as _, ed25519::PublicKey};
use commonware_glue::simulate::action::{Action, Schedule};
use commonware_p2p::simulated::Link;
use commonware_utils::{Probability, probability};
use std::time::Duration;

/// Faults in the order of their times.
#[derive(Clone, Default)]
pub struct Faults {
    events: Vec<(Duration, Action<PublicKey>)>,
}

impl Faults {
    /// Cuts the links from some validators to others, in this direction alone.
    pub fn cut(mut self, network: &Network, at: Duration, from: &[usize], to: &[usize]) -> Self {
        for from in from {
            for to in to.iter().filter(|to| *to != from) {
                let (from, to) = (key(network, *from), key(network, *to));
                self.events.push((at, Action::UpdateLink { from, to, link: lossy(probability!(0.0)) }));
            }
        }
        self
    }

    /// Cuts the links between two groups, both ways.
    pub fn partition(self, network: &Network, at: Duration, a: &[usize], b: &[usize]) -> Self {
        self.cut(network, at, a, b).cut(network, at, b, a)
    }

    /// Makes all links alike again.
    pub fn heal(mut self, at: Duration, link: Link) -> Self {
        self.events.push((at, Action::Heal(link)));
        self
    }

    /// Kills validators, and starts them again on what they have on disk.
    pub fn crash(mut self, network: &Network, validators: &[usize], at: Duration, until: Duration) -> Self {
        for validator in validators {
            self.events.push((at, Action::Crash(key(network, *validator))));
            self.events.push((until, Action::Restart(key(network, *validator))));
        }
        self
    }

    /// The schedule, and the time of the last event.
    pub fn schedule(mut self) -> (Schedule<PublicKey>, Duration) {
        self.events.sort_by_key(|(at, _)| *at);
        let last = self.events.last().map_or(Duration::ZERO, |(at, _)| *at);
        let schedule = self.events.into_iter().fold(Schedule::new(), |all, (at, action)| all.at(at, action));
        (schedule, last)
    }
}

fn key(network: &Network, index: usize) -> PublicKey {
    network.keys[index].public_key()
}

/// A link that loses some messages and delivers the others late, each by another delay.
pub fn lossy(success_rate: Probability) -> Link {
    Link { latency: Duration::from_millis(10), jitter: Duration::from_millis(5), success_rate }
}

pub fn good() -> Link {
    lossy(probability!(1.0))
}
