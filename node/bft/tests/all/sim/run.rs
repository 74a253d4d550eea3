//! Runs a network with faults and checks what must hold after any of them.

use crate::sim::{
    disk,
    faults::{Faults, Links},
    jobs, market,
    marks::{Mark, Marks},
    network::Network,
    orderless, orders,
    properties::{Agreement, Finished},
};
use alloy_primitives::{B256, Keccak256};
use almanac_primitives::TimestampMs;
use almanac_state::ArchivedBlock;
use commonware_cryptography::Signer as _;
use commonware_glue::simulate::{action::Crash, plan::PlanBuilder};
use commonware_p2p::simulated::Link;
use commonware_utils::probability;
use std::{
    ops::RangeInclusive,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Arc,
    time::Duration,
};

/// Longest time from the end of the last fault until every validator makes new blocks final and no due run waits,
/// where what stays wrong is within what a network of that size is made for: at most a third of the validators lie
/// or have a clock that is further off than the tolerance. Links lose up to a tenth of all messages: with as many twins as
/// a network bears, that made eight views in a row fail, 13 seconds, the most in 1,000 seeds.
const RECOVERY: Duration = Duration::from_secs(20);

/// The same where more stays wrong: views run out while blocks are waited for.
const SLOW_RECOVERY: Duration = Duration::from_secs(60);

/// Simulated time after which a run has failed. Long, since where more is wrong than a network is made for, blocks
/// become final a few at a time, many seconds apart.
const TIMEOUT: Duration = Duration::from_secs(300);

/// The same for a long run.
const LONG_TIMEOUT: Duration = Duration::from_secs(1_800);

/// Heights at one of which a validator is killed in a long run: files of 1,024 blocks have ended by then, and views
/// behind the last 256 are forgotten.
const LATE_CRASH: RangeInclusive<u64> = 1_030..=1_080;

/// Height of a long run.
pub const LONG_HEIGHT: u64 = 1_120;

/// What a run left behind.
pub struct Outcome {
    pub digest: B256,
    pub chain: Vec<ArchivedBlock>,
    pub crashes: u64,
    /// Runs of jobs that were due when faults had begun.
    pub runs: usize,
    pub marks: Marks,
}

/// Runs until all validators have `height` blocks, all transfers and all jobs, and are past the last fault.
pub fn run(network: &Network, seed: u64, links: Links, faults: Faults, height: u64) -> Outcome {
    let mut network = network.clone();
    disk::expect_no_panics();
    network.weather = Arc::new(faults.weather(seed, links));
    let faults = Arc::new(faults);
    network.faults = faults.clone();
    let (mut crashes, is_cluster) = faults.crashes(network.size);
    let is_long = height > *LATE_CRASH.end();
    let (begin, healed) = (milliseconds(faults.begin()), faults.end());
    let agreement = Agreement::new(&network);
    let chain = agreement.chain.clone();
    let mut ended_by = if network.has_market { market::ENDED_BY } else { orders::ENDED_BY };
    if !network.orderless.is_empty() {
        ended_by = ended_by.max(orderless::ENDED_BY);
    }
    let until = milliseconds(healed + Duration::from_secs(2)).max(ended_by);
    let finished = Finished { network: network.clone(), height, until };
    let link = Link { latency: links.latency, jitter: links.jitter, success_rate: probability!(1.0) };
    let mut plan = PlanBuilder::new(network.clone())
        .seed(seed)
        .link(link)
        .exit_condition(finished)
        .property(agreement)
        .timeout(if is_long { LONG_TIMEOUT } else { TIMEOUT });
    let schedule = faults.schedule();
    if !schedule.events.is_empty() {
        plan = plan.crash(Crash::Schedule(schedule));
    }
    if let Some(participant) = network.participants().last().filter(|_| is_long) {
        let participant = network.keys[participant].public_key();
        let downtime = Duration::from_secs(2);
        plan = plan.crash(Crash::ProcessedHeight { participant, heights: LATE_CRASH, downtime });
        network.marks.add(Mark::LateCrash);
        crashes += 1;
    }
    let result = catch_unwind(AssertUnwindSafe(|| plan.run())).unwrap_or_else(|panic| {
        // Where a validator read wrongly, the panics that follow are not printed; this one is.
        let text = panic.downcast_ref::<String>().map_or("", String::as_str);
        println!("seed {seed}: {text}\n{}", standings(&network));
        resume_unwind(panic)
    });
    let result = result.unwrap_or_else(|error| panic!("{error}")).remove(0);
    assert_eq!(result.crashes, crashes, "seed {seed}");
    (0..crashes).for_each(|_| network.marks.add(Mark::Crash));
    if is_cluster {
        network.marks.add(Mark::ClusterCrash);
    }
    check_order(&network, seed);
    if !healed.is_zero() {
        check_recovery(&network, seed, milliseconds(healed));
    }
    let chain = std::mem::take(&mut *chain.lock().unwrap());
    jobs::check_delay(&chain, milliseconds(healed), recovery(&network))
        .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let runs = jobs::due_since(&chain, begin).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert!(runs > 0, "seed {seed}: nothing was due after {begin}, when the faults began");
    let digest = digest(&network);
    Outcome { digest, chain, crashes: result.crashes, runs, marks: network.marks }
}

/// How far each validator came: its last blocks, and when it made them final.
fn standings(network: &Network) -> String {
    let log = network.log.lock().unwrap();
    let of = |validator| {
        let seen = log.iter().rev().filter(|seen| seen.validator == validator);
        let last: Vec<_> = seen.take(8).map(|seen| (seen.number, seen.at)).collect();
        let (lie, clock) = (network.lies[validator], network.clocks[validator]);
        format!("{lie:?} {clock:?} {} views {last:?}\n", network.votes.views(validator))
    };
    (0..network.keys.len()).map(of).collect()
}

/// The time that a network may take to recover.
fn recovery(network: &Network) -> Duration {
    if network.is_bearable() && network.run_time.is_zero() { RECOVERY } else { SLOW_RECOVERY }
}

/// Of everything that happened until all was done: what the runtime saw, messages and files among it, and who made which
/// block final when.
fn digest(network: &Network) -> B256 {
    let (seen, logged) = network.end.lock().unwrap().take().expect("it ended because all was done");
    let mut hasher = Keccak256::new();
    hasher.update(seen);
    for seen in &network.log.lock().unwrap()[..logged] {
        hasher.update(format!("{seen:?}"));
    }
    hasher.finalize()
}

/// `told_once_in_order`: listeners hear of each block once, in order, restarts included.
fn check_order(network: &Network, seed: u64) {
    let mut heights = vec![0; network.keys.len()];
    let restored = network.restored.lock().unwrap();
    for (position, seen) in network.log.lock().unwrap().iter().enumerate() {
        for (validator, _) in restored.iter().filter(|(_, at)| *at == position) {
            // What it lost, it hears of again.
            heights[*validator] = 0;
        }
        let height = &mut heights[seen.validator];
        assert!(seen.number > *height, "seed {seed}: {seen:?} after block {height}");
        *height = seen.number;
    }
}

/// `finality_again_after_healing`: within 20 simulated seconds of the last fault (60 where liars and wrong clocks are
/// more than a third), each validator makes a block final that was proposed after it.
fn check_recovery(network: &Network, seed: u64, healed: TimestampMs) {
    let log = network.log.lock().unwrap();
    let deadline = TimestampMs(healed.0 + milliseconds(recovery(network)).0);
    for validator in network.participants() {
        let is_recovered = log
            .iter()
            .any(|seen| seen.validator == validator && seen.block_time > healed && seen.at <= deadline);
        assert!(is_recovered, "seed {seed}: validator {validator} has no new block by {deadline}");
    }
}

pub fn milliseconds(duration: Duration) -> TimestampMs {
    TimestampMs(u64::try_from(duration.as_millis()).unwrap())
}
