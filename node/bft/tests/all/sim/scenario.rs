//! Networks, links and faults that are drawn from seeds.

use crate::sim::{
    clock::Skew,
    disk::{Failure, Unsynced},
    draw::Draw,
    faults::{Faults, Links, Notice, good},
    liar::Lie,
    network::Network,
    run::LONG_HEIGHT,
};
use std::time::Duration;

/// A network and what goes wrong in it, all from one number.
pub struct Scenario {
    pub network: Network,
    pub links: Links,
    pub faults: Faults,
    /// Height that the run reaches.
    pub height: u64,
}

/// Height that every run reaches.
const HEIGHT: u64 = 20;

/// One seed of so many runs past the borders of files.
const LONG_EVERY: u64 = 60;

/// When the first blocks come where not all validators answer whether the others have voted before.
const FIRST_VOTES: Duration = Duration::from_secs(6);

/// One seed of so many of `crash_storage` has slow states. None of them is a long one.
const SLOW_SEALS_EVERY: u64 = 5;

const _: () =
    assert!((LONG_EVERY / 4).is_multiple_of(SLOW_SEALS_EVERY) && LONG_EVERY.is_multiple_of(SLOW_SEALS_EVERY));

impl Scenario {
    fn new(draw: &mut Draw) -> Self {
        let mut network = Network::new(draw.one_of(&[4, 4, 4, 7]));
        network.transfers = 10;
        network.has_signed = true;
        network.unsynced = draw.one_of(&[Unsynced::Lost, Unsynced::Kept, Unsynced::Prefix, Unsynced::Subset]);
        Self { network, links: good(), faults: Faults::default(), height: HEIGHT }
    }

    /// Makes a long run of some seeds. Clocks are right there: where more than a third are not, a thousand blocks
    /// take hours.
    fn lengthen(mut self, seed: u64) -> Self {
        if seed % LONG_EVERY == LONG_EVERY / 4 {
            self.height = LONG_HEIGHT;
            self.network.clocks.fill(Skew::Offset(0));
            self.network.proposer_clocks.fill(Skew::Offset(0));
        }
        self
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
        scenario.draw_trouble(&mut draw);
        scenario.draw_follower(&mut draw);
        scenario.lengthen(seed)
    }

    /// Crashes and disks that fail, one after the other, with the links in order.
    pub fn crash_storage(seed: u64) -> Self {
        let mut draw = Draw(seed);
        let mut scenario = Self::new(&mut draw);
        if seed % SLOW_SEALS_EVERY == SLOW_SEALS_EVERY / 2 {
            return scenario.slow_seals(&mut draw);
        }
        let mut at = Duration::from_millis(500);
        // Alone: one that has to be silent for ten seconds is all that four validators bear. Beside another that was
        // away, too few would vote for ever.
        let is_restored = draw.chance(200);
        let troubles = if is_restored { 0 } else { 2 + draw.below(3) };
        for _ in 0..troubles {
            let validator = draw.index(scenario.network.size);
            let start = at + draw.millis(0, 1_500);
            at = start + draw.millis(600, 2_000);
            let during = start..at;
            let Self { network, faults, .. } = &mut scenario;
            let so_far = std::mem::take(faults);
            *faults = match draw.below(7) {
                0 => so_far.crash(network, &[validator], during),
                1 => so_far.slow_disk(validator, during, draw.one_of(&[20, 100, 400])),
                2 => so_far.disk(network, validator, Failure::Misread, draw.below(8), during),
                3 => so_far.disk(network, validator, Failure::Misreads, draw.below(8), during),
                kind => {
                    let failure = [Failure::Once, Failure::Dead, Failure::Halt][kind as usize - 4];
                    so_far.disk(network, validator, failure, draw.below(20), during)
                }
            };
        }
        if is_restored {
            let validator = draw.index(scenario.network.size);
            let copied_at = draw.millis(400, 1_500);
            let start = at + draw.millis(1_500, 2_500);
            at = start + draw.millis(300, 1_500);
            let notice = draw.one_of(&[Notice::Note, Notice::Peers]);
            scenario.faults =
                scenario.faults.restore(&scenario.network, validator, copied_at, start..at, notice);
        }
        if draw.chance(300) {
            let everyone: Vec<_> = (0..scenario.network.size).collect();
            let start = at + draw.millis(100, 1_000);
            let during = start..start + draw.millis(200, 1_000);
            scenario.faults = scenario.faults.crash(&scenario.network, &everyone, during);
        }
        scenario.network.sync_ms_max = draw.one_of(&[0, 5, 20, 60]);
        scenario.lengthen(seed)
    }

    /// States that are slow and fail for a moment, with nothing else wrong: blocks are executed twice at once, and
    /// votes have to wait. In half of the networks as many as they bear are absent, and every vote is needed.
    fn slow_seals(mut self, draw: &mut Draw) -> Self {
        let mut begin = Duration::ZERO;
        if draw.chance(500) {
            let absent = self.faulty_max();
            self.draw_liars(draw, absent, &[Lie::Absent]);
            begin = FIRST_VOTES;
        }
        for validator in 0..self.network.size {
            let during = begin + draw.millis(500, 1_500)..begin + draw.millis(4_000, 7_000);
            if self.network.lies[validator] == Lie::None && draw.chance(600) {
                let most_ms = draw.one_of(&[50, 150, 400]);
                self.faults = self.faults.slow_seals(validator, during, most_ms);
            }
        }
        self
    }

    /// As many that mean ill as a network bears, on links that lose messages.
    pub fn byzantine(seed: u64) -> Self {
        let mut draw = Draw(seed);
        let mut scenario = Self::new(&mut draw);
        scenario.links = Links { loss: draw.below(50), ..draw_links(&mut draw) };
        let most = scenario.faulty_max();
        let lies = [&[Lie::Equivocate; 7], &Lie::OF_PROPOSERS[..], &[Lie::Votes]].concat();
        scenario.draw_liars(&mut draw, most, &lies);
        if draw.chance(300) {
            scenario.overload(&mut draw);
        }
        scenario.draw_follower(&mut draw);
        scenario.lengthen(seed)
    }

    /// As many pairs of twins as a network bears.
    pub fn twins(seed: u64) -> Self {
        let mut draw = Draw(seed);
        let mut scenario = Self::new(&mut draw);
        scenario.links = draw_links(&mut draw);
        let most = scenario.faulty_max();
        scenario.draw_liars(&mut draw, most, &[Lie::Twins, Lie::Twins, Lie::Equivocate]);
        scenario.draw_partition(&mut draw);
        scenario.lengthen(seed)
    }

    /// One of the things that go wrong with a machine, in one or two validators.
    fn draw_trouble(&mut self, draw: &mut Draw) {
        if draw.chance(150) {
            self.overload(draw);
        }
        for _ in 0..1 + draw.below(2) {
            let validator = draw.index(self.network.size);
            let during = draw.millis(500, 3_500)..draw.millis(4_000, 7_000);
            let so_far = std::mem::take(&mut self.faults);
            self.faults = match draw.below(5) {
                0 => so_far.slow_disk(validator, during, draw.one_of(&[20, 100, 400])),
                1 => so_far.pause(validator, during),
                2 => so_far.jump(validator, during, draw.one_of(&[-1_800, -600, 600, 1_800, 3_600_000])),
                3 => so_far.drift(validator, draw.one_of(&[-20_000, 20_000]), during.end),
                _ => so_far,
            };
        }
    }

    /// More transactions than fit, each of which takes long.
    fn overload(&mut self, draw: &mut Draw) {
        self.network.transfers = 40;
        self.network.transfers_ahead = 40;
        self.network.transaction_time = Duration::from_millis(draw.one_of(&[3, 8, 20]));
    }

    /// A node without a vote, in half of the networks.
    fn draw_follower(&mut self, draw: &mut Draw) {
        if draw.chance(500) {
            self.network = self.network.clone().with_follower();
        }
    }

    /// How many validators may do anything.
    fn faulty_max(&self) -> usize {
        (self.network.size - 1) / 3
    }

    fn draw_liars(&mut self, draw: &mut Draw, count: usize, lies: &[Lie]) {
        let (first, size) = (draw.index(self.network.size), self.network.size);
        for offset in 0..count {
            self.network.lies[(first + offset) % size] = draw.one_of(lies);
        }
    }

    /// Clocks up to 2 seconds off: a validator whose clock is behind by the tolerance and the certification timeout,
    /// 2.2 seconds here, gives every view up before it may vote to make it final, and is as good as down.
    fn draw_clocks(&mut self, draw: &mut Draw) {
        for index in 0..self.network.size {
            if draw.below(3) == 0 {
                let skew = Skew::Offset(i64::try_from(draw.below(4_001)).unwrap() - 2_000);
                (self.network.clocks[index], self.network.proposer_clocks[index]) = (skew, skew);
            }
        }
    }

    /// Cuts a random group off for a while, both ways or one way, or nobody.
    fn draw_partition(&mut self, draw: &mut Draw) {
        let kind = draw.below(3);
        let (group, others): (Vec<_>, Vec<_>) = (0..self.network.size).partition(|_| draw.below(2) == 0);
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
            let validator = draw.index(self.network.size);
            let start = at + draw.millis(0, 2_000);
            at = start + draw.millis(200, 3_000);
            let so_far = std::mem::take(&mut self.faults);
            self.faults = so_far.crash(&self.network, &[validator], start..at);
        }
    }

    /// Kills all validators at once; they come back one by one.
    fn crash_all(&mut self, draw: &mut Draw) {
        let start = draw.millis(1_000, 4_000);
        for validator in 0..self.network.size {
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
