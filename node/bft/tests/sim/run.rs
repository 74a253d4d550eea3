//! Runs a network with faults and checks what must hold after any of them.

use crate::{
    faults::{Faults, Links},
    jobs,
    marks::{Mark, Marks},
    network::Network,
    orders,
    properties::{Agreement, Finished},
};
use alloy_primitives::{B256, Keccak256};
use almanac_primitives::TimestampMs;
use almanac_state::ArchivedBlock;
use commonware_glue::simulate::{action::Crash, plan::PlanBuilder};
use commonware_p2p::simulated::Link;
use commonware_utils::probability;
use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Arc,
    time::Duration,
};

/// Longest time from the end of the last fault until every validator makes new blocks final and no due run waits,
/// where what stays wrong is within what a network of that size is made for: at most a third of the validators lie
/// or have a clock that is further off than the tolerance.
const RECOVERY: Duration = Duration::from_secs(10);

/// The same where more stays wrong: views run out while blocks are waited for.
const SLOW_RECOVERY: Duration = Duration::from_secs(60);

/// Simulated time after which a run has failed. Long, since where more is wrong than a network is made for, blocks
/// become final a few at a time, many seconds apart.
const TIMEOUT: Duration = Duration::from_secs(300);

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
    network.weather = Arc::new(faults.weather(seed, links));
    network.disk_failures.clone_from(&faults.disks);
    let (crashes, is_cluster) = faults.crashes(network.keys.len());
    let (begin, healed) = (milliseconds(faults.begin()), faults.end());
    let agreement = Agreement::new(&network);
    let chain = agreement.chain.clone();
    let until = milliseconds(healed + Duration::from_secs(2)).max(orders::ENDED_BY);
    let finished = Finished { network: network.clone(), height, until };
    let link = Link { latency: links.latency, jitter: links.jitter, success_rate: probability!(1.0) };
    let mut plan = PlanBuilder::new(network.clone())
        .seed(seed)
        .link(link)
        .exit_condition(finished)
        .property(agreement)
        .timeout(TIMEOUT);
    let schedule = faults.schedule();
    if !schedule.events.is_empty() {
        plan = plan.crash(Crash::Schedule(schedule));
    }
    let result = catch_unwind(AssertUnwindSafe(|| plan.run())).unwrap_or_else(|panic| {
        println!("seed {seed}: {}", standings(&network));
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
    let digest = digest(&network, &result.state, &chain);
    Outcome { digest, chain, crashes: result.crashes, runs, marks: network.marks }
}

/// How far each validator came: its last blocks, and when it made them final.
fn standings(network: &Network) -> String {
    let log = network.log.lock().unwrap();
    let of = |validator| {
        let seen = log.iter().rev().filter(|seen| seen.validator == validator);
        let last: Vec<_> = seen.take(8).map(|seen| (seen.number, seen.at)).collect();
        format!("{:?} {:?} {last:?}\n", network.lies[validator], network.clocks[validator])
    };
    (0..network.keys.len()).map(of).collect()
}

/// The time that a network may take to recover.
fn recovery(network: &Network) -> Duration {
    if network.is_bearable() && network.run_time.is_zero() { RECOVERY } else { SLOW_RECOVERY }
}

/// Of everything that happened: what the runtime saw, the chain, and who made which block final when.
fn digest(network: &Network, auditor: &str, chain: &[ArchivedBlock]) -> B256 {
    let mut hasher = Keccak256::new();
    hasher.update(auditor);
    for archived in chain {
        hasher.update(archived.block.hash());
        hasher.update(archived.certificate.clone().unwrap_or_default());
    }
    for seen in network.log.lock().unwrap().iter() {
        hasher.update(format!("{seen:?}"));
    }
    hasher.finalize()
}

/// `told_once_in_order`: listeners hear of each block once, in order, restarts included.
fn check_order(network: &Network, seed: u64) {
    let mut heights = vec![0; network.keys.len()];
    for seen in network.log.lock().unwrap().iter() {
        let height = &mut heights[seen.validator];
        assert!(seen.number > *height, "seed {seed}: {seen:?} after block {height}");
        *height = seen.number;
    }
}

/// `finality_again_after_healing`: within 10 simulated seconds of the last fault (60 where liars and wrong clocks are
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
