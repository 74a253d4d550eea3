//! Runs a network with faults and checks what must hold after any of them.

use crate::{
    faults::Faults,
    jobs,
    network::Network,
    properties::{Agreement, Finished},
};
use alloy_primitives::{B256, Keccak256};
use almanac_primitives::TimestampMs;
use almanac_state::ArchivedBlock;
use commonware_glue::simulate::{action::Crash, plan::PlanBuilder};
use commonware_p2p::simulated::Link;
use std::time::Duration;

/// Longest time from the end of the last fault until every validator makes new blocks final, where what stays wrong,
/// lies and clocks, is within what a network of that size is made for.
const RECOVERY: Duration = Duration::from_secs(10);

/// The same where more stays wrong: views run out while blocks are waited for.
const SLOW_RECOVERY: Duration = Duration::from_secs(60);

/// Simulated time after which a run has failed.
const TIMEOUT: Duration = Duration::from_secs(120);

/// What a run left behind.
pub struct Outcome {
    pub digest: B256,
    pub chain: Vec<ArchivedBlock>,
    pub crashes: u64,
}

/// Runs until all validators have `height` blocks and all transfers, and are past the last fault.
pub fn run(network: &Network, seed: u64, link: Link, faults: Faults, height: u64) -> Outcome {
    let (schedule, healed) = faults.schedule();
    let agreement = Agreement::new(network);
    let chain = agreement.chain.clone();
    let until = milliseconds(healed + Duration::from_secs(2)).max(jobs::ENDED_BY);
    let finished = Finished { network: network.clone(), height, until };
    let mut plan = PlanBuilder::new(network.clone())
        .seed(seed)
        .link(link)
        .exit_condition(finished)
        .property(agreement)
        .timeout(TIMEOUT);
    if !schedule.events.is_empty() {
        plan = plan.crash(Crash::Schedule(schedule));
    }
    let result = plan.run().unwrap_or_else(|error| panic!("{error}")).remove(0);
    check_order(network, seed);
    if !healed.is_zero() {
        check_recovery(network, seed, milliseconds(healed));
    }
    let chain = std::mem::take(&mut *chain.lock().unwrap());
    Outcome { digest: digest(network, &result.state, &chain), chain, crashes: result.crashes }
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

/// `finality_again_after_healing`: each validator makes a block final that was proposed after the last fault.
fn check_recovery(network: &Network, seed: u64, healed: TimestampMs) {
    let log = network.log.lock().unwrap();
    let is_bearable = network.lasting_faults() <= (network.keys.len() - 1) / 3;
    let recovery = if is_bearable { RECOVERY } else { SLOW_RECOVERY };
    let deadline = TimestampMs(healed.0 + milliseconds(recovery).0);
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
