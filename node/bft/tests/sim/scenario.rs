//! Networks, links and faults that are drawn from seeds.

use crate::{
    clock::Skew,
    disk::{Failure, Unsynced},
    draw::Draw,
    faults::{Faults, Links, good},
    liar::Lie,
    network::Network,
};
use std::time::Duration;

/// A network and what goes wrong in it, all from one number.
pub struct Scenario {
    pub network: Network,
    pub links: Links,
    pub faults: Faults,
}

/// Height that every run reaches.
pub const HEIGHT: u64 = 20;

impl Scenario {
    fn new(draw: &mut Draw) -> Self {
        let mut network = Network::new(draw.one_of(&[4, 4, 4, 7]));
        network.transfers = 10;
        network.unsynced = draw.one_of(&[Unsynced::Lost, Unsynced::Kept, Unsynced::Prefix, Unsynced::Subset]);
        Self { network, links: good(), faults: Faults::default() }
    }

    /// Something of everything.
    pub fn swarm(seed: u64) -> Self {
        let mut draw = Draw(seed);
        let mut scenario = Self::new(&mut draw);
        scenario.links = draw_links(&mut draw);
        let liars = scenario.faulty_max() - usize::from(draw.chance(250));
        scenario.draw_liars(&mut draw, liars, &[&Lie::OF_PROPOSERS[..], &[Lie::Votes]].concat());
        scenario.draw_clocks(&mut draw);
        scenario.draw_partition(&mut draw);
        match draw.below(5) {
            0 => scenario.crash_all(&mut draw),
            crashes => scenario.crash_some(&mut draw, crashes - 1),
        }
        scenario
    }

    /// Crashes and disks that fail, one after the other, with the links in order.
    pub fn crash_storage(seed: u64) -> Self {
        let mut draw = Draw(seed);
        let mut scenario = Self::new(&mut draw);
        let mut at = Duration::from_millis(500);
        for _ in 0..2 + draw.below(3) {
            let validator = draw.index(scenario.network.keys.len());
            let start = at + draw.millis(0, 1_500);
            at = start + draw.millis(600, 2_000);
            let during = start..at;
            let Self { network, faults, .. } = &mut scenario;
            let so_far = std::mem::take(faults);
            *faults = match draw.below(4) {
                0 => so_far.crash(network, &[validator], during),
                kind => {
                    let failure = [Failure::Once, Failure::Dead, Failure::Halt][kind as usize - 1];
                    so_far.disk(network, validator, failure, draw.below(20), during)
                }
            };
        }
        if draw.chance(300) {
            let everyone: Vec<_> = (0..scenario.network.keys.len()).collect();
            let start = at + draw.millis(100, 1_000);
            let during = start..start + draw.millis(200, 1_000);
            scenario.faults = scenario.faults.crash(&scenario.network, &everyone, during);
        }
        scenario
    }

    /// As many that mean ill as a network bears, on links that lose messages.
    pub fn byzantine(seed: u64) -> Self {
        let mut draw = Draw(seed);
        let mut scenario = Self::new(&mut draw);
        scenario.links = Links { loss: draw.below(50), ..draw_links(&mut draw) };
        let most = scenario.faulty_max();
        let lies = [&[Lie::Equivocate; 7], &Lie::OF_PROPOSERS[..], &[Lie::Votes]].concat();
        scenario.draw_liars(&mut draw, most, &lies);
        scenario
    }

    /// As many pairs of twins as a network bears.
    pub fn twins(seed: u64) -> Self {
        let mut draw = Draw(seed);
        let mut scenario = Self::new(&mut draw);
        scenario.links = draw_links(&mut draw);
        let most = scenario.faulty_max();
        scenario.draw_liars(&mut draw, most, &[Lie::Twins, Lie::Twins, Lie::Equivocate]);
        scenario.draw_partition(&mut draw);
        scenario
    }

    /// How many validators may do anything.
    fn faulty_max(&self) -> usize {
        (self.network.keys.len() - 1) / 3
    }

    fn draw_liars(&mut self, draw: &mut Draw, count: usize, lies: &[Lie]) {
        let (first, size) = (draw.index(self.network.keys.len()), self.network.keys.len());
        for offset in 0..count {
            self.network.lies[(first + offset) % size] = draw.one_of(lies);
        }
    }

    /// Clocks up to 2 seconds off: a validator whose clock is behind by the tolerance and the certification timeout,
    /// 2.2 seconds here, gives every view up before it may vote to make it final, and is as good as down.
    fn draw_clocks(&mut self, draw: &mut Draw) {
        for index in 0..self.network.keys.len() {
            if draw.below(3) == 0 {
                let skew = Skew::Offset(i64::try_from(draw.below(4_001)).unwrap() - 2_000);
                (self.network.clocks[index], self.network.proposer_clocks[index]) = (skew, skew);
            }
        }
    }

    /// Cuts a random group off for a while, both ways or one way, or nobody.
    fn draw_partition(&mut self, draw: &mut Draw) {
        let kind = draw.below(3);
        let (group, others): (Vec<_>, Vec<_>) =
            (0..self.network.keys.len()).partition(|_| draw.below(2) == 0);
        let during = draw.millis(500, 3_000)..draw.millis(3_500, 7_000);
        let so_far = std::mem::take(&mut self.faults);
        self.faults = match kind {
            0 => so_far,
            1 => so_far.cut(during, &group, &others),
            _ => so_far.partition(during, &group, &others),
        };
    }

    /// Kills validators, one after the other: none can crash while it is down.
    fn crash_some(&mut self, draw: &mut Draw, count: u64) {
        let mut at = Duration::from_millis(500);
        for _ in 0..count {
            let validator = draw.index(self.network.keys.len());
            let start = at + draw.millis(0, 2_000);
            at = start + draw.millis(200, 3_000);
            let so_far = std::mem::take(&mut self.faults);
            self.faults = so_far.crash(&self.network, &[validator], start..at);
        }
    }

    /// Kills all validators at once; they come back one by one.
    fn crash_all(&mut self, draw: &mut Draw) {
        let start = draw.millis(1_000, 4_000);
        for validator in 0..self.network.keys.len() {
            let during = start..start + draw.millis(200, 2_000);
            let so_far = std::mem::take(&mut self.faults);
            self.faults = so_far.crash(&self.network, &[validator], during);
        }
    }
}

fn draw_links(draw: &mut Draw) -> Links {
    Links {
        latency: draw.millis(1, 60),
        jitter: draw.millis(1, 40),
        loss: draw.one_of(&[0, 20, 50, 100]),
        duplicates: draw.one_of(&[0, 50, 200]),
        delays: draw.one_of(&[0, 0, 10, 50]),
    }
}
