//! What goes wrong in a run, and when.

use crate::sim::{
    disk::{Failure, Slowness},
    host::ClockFaults,
    network::Network,
};
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

/// A validator that is down for a while, and starts on an older copy of its files.
#[derive(Clone, Debug)]
pub struct Restore {
    pub validator: usize,
    pub copied_at: Duration,
    during: Range<Duration>,
    /// Who notices.
    pub notice: Notice,
}

/// Who notices that files are of an older copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The validator itself, by the note beside its key.
    Note,
    /// The other validators: the note is as old as the files.
    Peers,
    /// Nobody. It votes, and may sign twice.
    Nobody,
}

impl Restore {
    /// Whether the copy is put back at a start, or was before.
    pub fn is_due(&self, validator: usize, now: Duration) -> bool {
        self.validator == validator && now >= self.during.end
    }
}

#[derive(Clone, Default)]
pub struct Faults {
    events: Vec<(Duration, Action<PublicKey>)>,
    cuts: Vec<Cut>,
    pub disks: Vec<DiskFailure>,
    crashed: Vec<(usize, Range<Duration>)>,
    slow: Vec<(usize, Slowness)>,
    seals: Vec<(usize, Slowness)>,
    pauses: Vec<(usize, Range<Duration>)>,
    clocks: Vec<(usize, ClockFaults)>,
    pub restores: Vec<Restore>,
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

    /// Makes writes and syncs take up to so many milliseconds.
    pub fn slow_disk(mut self, validator: usize, during: Range<Duration>, most_ms: u64) -> Self {
        self.slow.push((validator, (during, most_ms)));
        self
    }

    /// Makes the state after each block take up to so many milliseconds, and sometimes fail to be made.
    pub fn slow_seals(mut self, validator: usize, during: Range<Duration>, most_ms: u64) -> Self {
        self.seals.push((validator, (during, most_ms)));
        self
    }

    /// Lets a process stand still, with all that it has under way.
    pub fn pause(mut self, validator: usize, during: Range<Duration>) -> Self {
        self.pauses.push((validator, during));
        self
    }

    /// Sets a clock by some milliseconds, and back.
    pub fn jump(mut self, validator: usize, during: Range<Duration>, by: i64) -> Self {
        let jumps = vec![(during.start, by), (during.end, -by)];
        self.clocks.push((validator, ClockFaults { jumps, ..ClockFaults::default() }));
        self
    }

    /// Lets a clock run too fast, or too slow where negative, until it is set right.
    pub fn drift(mut self, validator: usize, drift_ppm: i64, until: Duration) -> Self {
        let clock = ClockFaults { jumps: Vec::new(), drift_ppm, drifts_until: until };
        self.clocks.push((validator, clock));
        self
    }

    /// Kills a validator, and starts it on a copy of its files from earlier on.
    pub fn restore(
        mut self,
        network: &Network,
        validator: usize,
        copied_at: Duration,
        during: Range<Duration>,
        notice: Notice,
    ) -> Self {
        self.restores.push(Restore { validator, copied_at, during: during.clone(), notice });
        self.crash(network, &[validator], during)
    }

    pub fn slowness_of(&self, validator: usize) -> Vec<Slowness> {
        of_validator(&self.slow, validator)
    }

    pub fn seals_of(&self, validator: usize) -> Vec<Slowness> {
        of_validator(&self.seals, validator)
    }

    pub fn pauses_of(&self, validator: usize) -> Vec<Range<Duration>> {
        self.pauses.iter().filter(|(of, _)| *of == validator).map(|(_, pause)| pause.clone()).collect()
    }

    pub fn clock_of(&self, validator: usize) -> ClockFaults {
        let found = self.clocks.iter().find(|(of, _)| *of == validator);
        found.map(|(_, clock)| clock.clone()).unwrap_or_default()
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
        let slow = self.slow.iter().chain(&self.seals).map(|(_, (during, _))| during.start);
        let pauses = self.pauses.iter().map(|(_, during)| during.start);
        let jumps =
            self.clocks.iter().map(|(_, clock)| clock.jumps.first().map_or(Duration::ZERO, |jump| jump.0));
        cuts.chain(disks).chain(events).chain(slow).chain(pauses).chain(jumps).min().unwrap_or_default()
    }

    /// The time at which nothing is wrong any more but links, liars, and clocks that were wrong from the start.
    pub fn end(&self) -> Duration {
        let cuts = self.cuts.iter().map(|cut| cut.during.end);
        let events = self.events.iter().map(|(at, _)| *at);
        let slow = self.slow.iter().chain(&self.seals).map(|(_, (during, _))| during.end);
        let pauses = self.pauses.iter().map(|(_, during)| during.end);
        let jumps = self.clocks.iter().flat_map(|(_, clock)| clock.jumps.iter().map(|jump| jump.0));
        let drifts = self.clocks.iter().map(|(_, clock)| clock.drifts_until);
        cuts.chain(events).chain(slow).chain(pauses).chain(jumps).chain(drifts).max().unwrap_or_default()
    }

    pub fn schedule(&self) -> Schedule<PublicKey> {
        let mut events = self.events.clone();
        events.sort_by_key(|(at, _)| *at);
        events.into_iter().fold(Schedule::new(), |all, (at, action)| all.at(at, action))
    }
}

fn of_validator(slow: &[(usize, Slowness)], validator: usize) -> Vec<Slowness> {
    slow.iter().filter(|(of, _)| *of == validator).map(|(_, slowness)| slowness.clone()).collect()
}
