//! What goes wrong in a run, and when.

use crate::{disk::Failure, network::Network};
use commonware_cryptography::{Signer as _, ed25519::PublicKey};
use commonware_glue::simulate::action::{Action, Schedule};
use std::{ops::Range, time::Duration};

/// How well links carry messages, all through a run.
#[derive(Clone, Copy, Debug)]
pub struct Links {
    pub latency: Duration,
    pub jitter: Duration,
    /// Messages of a thousand that are lost.
    pub loss: u64,
    /// Messages of a thousand that arrive twice.
    pub duplicates: u64,
    /// Messages of a thousand that arrive up to a second late, after others.
    pub delays: u64,
}

pub fn good() -> Links {
    let (latency, jitter) = (Duration::from_millis(10), Duration::from_millis(5));
    Links { latency, jitter, loss: 0, duplicates: 0, delays: 0 }
}

pub fn lossy(loss: u64) -> Links {
    Links { loss, ..good() }
}

/// Messages from some validators do not reach others for a while.
#[derive(Clone, Debug)]
struct Cut {
    during: Range<Duration>,
    from: Vec<usize>,
    to: Vec<usize>,
    is_one_way: bool,
}

/// What wires have to know.
#[derive(Clone, Debug)]
pub struct Weather {
    pub seed: u64,
    pub links: Links,
    cuts: Vec<Cut>,
}

impl Weather {
    /// Whether messages are stopped now, and if so, whether those the other way are not.
    pub fn is_cut(&self, from: usize, to: usize, now: Duration) -> Option<bool> {
        let is_cut = |cut: &&Cut| {
            cut.during.contains(&now) && cut.from.contains(&from) && cut.to.contains(&to) && from != to
        };
        self.cuts.iter().find(is_cut).map(|cut| cut.is_one_way)
    }
}

/// A disk that fails at a moment.
#[derive(Clone, Copy, Debug)]
pub struct DiskFailure {
    pub validator: usize,
    pub at: Duration,
    pub failure: Failure,
    /// Writes and syncs after that moment that are done as ever.
    pub after: u64,
}

#[derive(Clone, Default)]
pub struct Faults {
    events: Vec<(Duration, Action<PublicKey>)>,
    cuts: Vec<Cut>,
    pub disks: Vec<DiskFailure>,
    crashed: Vec<(usize, Range<Duration>)>,
}

impl Faults {
    /// Cuts the links from some validators to others, in this direction alone.
    pub fn cut(mut self, during: Range<Duration>, from: &[usize], to: &[usize]) -> Self {
        self.cuts.push(Cut { during, from: from.to_vec(), to: to.to_vec(), is_one_way: true });
        self
    }

    /// Cuts the links between two groups, both ways.
    pub fn partition(mut self, during: Range<Duration>, a: &[usize], b: &[usize]) -> Self {
        for (from, to) in [(a, b), (b, a)] {
            let during = during.clone();
            self.cuts.push(Cut { during, from: from.to_vec(), to: to.to_vec(), is_one_way: false });
        }
        self
    }

    /// Kills validators, and starts them again on what they have on disk.
    pub fn crash(mut self, network: &Network, validators: &[usize], during: Range<Duration>) -> Self {
        for validator in validators {
            let key = network.keys[*validator].public_key();
            self.events.push((during.start, Action::Crash(key.clone())));
            self.events.push((during.end, Action::Restart(key)));
            self.crashed.push((*validator, during.clone()));
        }
        self
    }

    /// Lets a disk fail after some more writes and syncs, and starts the validator again later.
    pub fn disk(
        mut self,
        network: &Network,
        validator: usize,
        failure: Failure,
        after: u64,
        during: Range<Duration>,
    ) -> Self {
        self.disks.push(DiskFailure { validator, at: during.start, failure, after });
        let killed = during.end - Duration::from_millis(200);
        self.crash(network, &[validator], killed..during.end)
    }

    /// How many validators are killed, and whether all of `size` are down at once.
    pub fn crashes(&self, size: usize) -> (u64, bool) {
        let is_down = |validator: usize, at: Duration| {
            self.crashed.iter().any(|(crashed, during)| *crashed == validator && during.contains(&at))
        };
        let is_cluster = self
            .crashed
            .iter()
            .any(|(_, during)| (0..size).all(|validator| is_down(validator, during.start)));
        (self.crashed.len() as u64, is_cluster)
    }

    /// What wires have to know of it.
    pub fn weather(&self, seed: u64, links: Links) -> Weather {
        Weather { seed, links, cuts: self.cuts.clone() }
    }

    /// The time at which the first thing goes wrong. Links, clocks and liars are wrong from the start.
    pub fn begin(&self) -> Duration {
        let cuts = self.cuts.iter().map(|cut| cut.during.start);
        let disks = self.disks.iter().map(|disk| disk.at);
        let events = self.events.iter().map(|(at, _)| *at);
        cuts.chain(disks).chain(events).min().unwrap_or_default()
    }

    /// The time at which nothing is wrong any more but links, clocks and liars.
    pub fn end(&self) -> Duration {
        let cuts = self.cuts.iter().map(|cut| cut.during.end);
        let events = self.events.iter().map(|(at, _)| *at);
        cuts.chain(events).max().unwrap_or_default()
    }

    pub fn schedule(mut self) -> Schedule<PublicKey> {
        self.events.sort_by_key(|(at, _)| *at);
        self.events.into_iter().fold(Schedule::new(), |all, (at, action)| all.at(at, action))
    }
}
