//! Runs whose faults are drawn from their seeds.

use crate::{
    clock::Skew,
    faults::{Faults, lossy},
    jobs,
    liar::Lie,
    network::Network,
    run::{Outcome, run},
    setting,
};
use commonware_p2p::simulated::Link;
use commonware_utils::{Probability, probability};
use std::time::{Duration, Instant};

/// Draws numbers from a seed (SplitMix64): the same on every machine, and of no other use.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap()
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }

    fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }
}

/// A network, its links and what goes wrong with them, all from one number.
struct Scenario {
    network: Network,
    link: Link,
    faults: Faults,
    crashed: u64,
}

impl Scenario {
    fn draw(seed: u64) -> Self {
        let mut draw = Draw(seed);
        let size = draw.one_of(&[4, 4, 4, 7]);
        let mut network = Network::new(size);
        network.transactions = 10;
        let link = draw_link(&mut draw);
        draw_liars(&mut draw, &mut network);
        draw_clocks(&mut draw, &mut network);
        let mut faults = draw_partition(&mut draw, &network, &link);
        let crashed = draw.below(3);
        let mut start = Duration::from_millis(500);
        for _ in 0..crashed {
            let validator = draw.index(network.keys.len());
            let at = start + draw.millis(0, 2_000);
            // One after the other: a validator cannot crash while it is down.
            start = at + draw.millis(200, 3_000);
            faults = faults.crash(&network, &[validator], at, start);
        }
        Self { network, link, faults, crashed }
    }
}

fn draw_link(draw: &mut Draw) -> Link {
    let rates: [Probability; 4] =
        [probability!(1.0), probability!(0.98), probability!(0.95), probability!(0.9)];
    let link = lossy(rates[draw.index(rates.len())]);
    Link { latency: draw.millis(1, 60), jitter: draw.millis(1, 40), ..link }
}

/// At most a third of the validators lie.
fn draw_liars(draw: &mut Draw, network: &mut Network) {
    const LIES: [Lie; 11] = [
        Lie::StateRoot,
        Lie::OpsRoot,
        Lie::ReceiptsRoot,
        Lie::Gas,
        Lie::BaseFee,
        Lie::FeeRecipient,
        Lie::EqualTime,
        Lie::EarlyTime,
        Lie::Body,
        Lie::Silence,
        Lie::Votes,
    ];
    let count = draw.below(network.keys.len().div_ceil(3) as u64);
    for index in 0..count {
        network.lies[usize::try_from(index).unwrap()] = draw.one_of(&LIES);
    }
}

/// Clocks up to two seconds off.
fn draw_clocks(draw: &mut Draw, network: &mut Network) {
    for index in 0..network.keys.len() {
        if draw.below(3) == 0 {
            let skew = Skew::Offset(i64::try_from(draw.below(4_000)).unwrap() - 2_000);
            (network.clocks[index], network.proposer_clocks[index]) = (skew, skew);
        }
    }
}

/// Cuts a random group off for a while, both ways or one way, or nobody.
fn draw_partition(draw: &mut Draw, network: &Network, link: &Link) -> Faults {
    let kind = draw.below(3);
    let (group, others): (Vec<_>, Vec<_>) = (0..network.keys.len()).partition(|_| draw.below(2) == 0);
    let (at, until) = (draw.millis(500, 3_000), draw.millis(3_500, 7_000));
    let faults = Faults::default();
    match kind {
        0 => faults,
        1 => faults.cut(network, at, &group, &others).heal(until, link.clone()),
        _ => faults.partition(network, at, &group, &others).heal(until, link.clone()),
    }
}

/// Runs a seed, and checks that the faults that were drawn have happened.
fn swarm(seed: u64) -> Outcome {
    let Scenario { network, link, faults, crashed } = Scenario::draw(seed);
    let outcome = run(&network, seed, link, faults, 20);
    assert_eq!(outcome.crashes, crashed, "seed {seed}");
    let is_liar = |lie: &&Lie| !matches!(lie, Lie::None | Lie::Votes);
    let liars = network.lies.iter().filter(is_liar).count();
    assert!(liars == 0 || *network.told.lock().unwrap() > 0, "seed {seed}: the liars had no turn");
    outcome
}

/// Runs every second seed, so that two tests share them.
fn swarm_every_second(first: u64) {
    /// What a continuous integration has time for.
    const SEEDS: u64 = 24;
    if let Some(seed) = setting("ALMANAC_SIM_SEED") {
        if first == 0 {
            report(seed);
        }
        return;
    }
    let seeds = (first..setting("ALMANAC_SIM_SEEDS").unwrap_or(SEEDS)).step_by(2);
    let (count, runs) = (seeds.clone().count(), seeds.map(report).sum::<usize>());
    assert!(runs > 5 * count, "{runs} runs of jobs in {count} simulations");
}

/// Runs a seed, says how it went, and answers with the number of runs of jobs.
fn report(seed: u64) -> usize {
    let begin = Instant::now();
    let outcome = swarm(seed);
    let (blocks, crashes, took) = (outcome.chain.len(), outcome.crashes, begin.elapsed().as_secs_f64());
    let runs = jobs::check(&outcome.chain).expect("checked at the end of the run");
    println!("seed {seed}: {blocks} blocks, {runs} runs of jobs, {crashes} crashes, {took:.1} s");
    println!("digest {:x}", outcome.digest);
    runs
}

#[test]
fn swarm_even() {
    swarm_every_second(0);
}

#[test]
fn swarm_odd() {
    swarm_every_second(1);
}

#[test]
fn the_same_seed_is_the_same_run() {
    let (first, again) = (swarm(7), swarm(7));
    assert_eq!(first.digest, again.digest);
    assert_eq!(first.chain, again.chain);
    assert_ne!(first.digest, swarm(8).digest);
}
