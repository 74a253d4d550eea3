//! What is measured of a chain, in this order: nothing to do, a steady load, as much as it takes, and due runs.

use crate::{
    chain::{BLOCK_TIME_MS, Chain, Usage},
    heads::{Heads, now_ms},
    transfers::{SENDERS, Senders, Sent, included, send},
};
use alloy_primitives::{TxHash, hex};
use almanac_primitives::{Header, UserTransaction};
use serde_json::json;
use std::{thread::sleep, time::Duration};

/// Blocks that the steady load is meant to fill.
const STEADY_BLOCKS: u64 = 80;

/// Transactions of each account in the flood. A pool takes a hundred of each at a time.
const FLOOD_EACH: u64 = 40;

/// Jobs of each account, due together.
const JOBS_EACH: u64 = 8;

/// Transfers that take as long as making a job, at most.
const JOB_TRANSFERS: f64 = 8.0;

/// How long an idle chain is looked at.
const IDLE: Duration = Duration::from_secs(5);

/// The same signed transactions for every chain.
pub(crate) struct Work {
    /// Transactions in each block of the steady load.
    pub(crate) steady_per_block: u64,
    funding: Vec<UserTransaction>,
    steady: Vec<UserTransaction>,
    flood: Vec<UserTransaction>,
}

/// Times in milliseconds, in order of size.
pub(crate) type Times = Vec<f64>;

/// All figures of one chain.
pub(crate) struct Measured {
    pub(crate) idle: Load,
    pub(crate) steady: Load,
    pub(crate) flood_per_second: f64,
    pub(crate) flood: Load,
    pub(crate) runs_per_second: f64,
    pub(crate) run_lateness: Times,
}

/// What a load showed.
pub(crate) struct Load {
    /// Transactions in a block, on average.
    pub(crate) per_block: f64,
    /// From one final block to the next.
    pub(crate) interval: Times,
    /// From the block's own time, when its proposer began to make it, until a quorum has it. Not known of a chain
    /// of one, which shows whole seconds only.
    pub(crate) finality: Times,
    /// From sending a transaction until a quorum has its block.
    pub(crate) receipt: Times,
    /// Processors that each node kept busy.
    pub(crate) cores_per_node: f64,
    /// Processor time of each node for a transaction, in milliseconds.
    pub(crate) cpu_ms_per_transaction: f64,
    /// Bytes that all nodes sent, per block.
    pub(crate) wire_bytes_per_block: f64,
}

impl Work {
    pub(crate) fn sign(steady_per_block: u64) -> Self {
        let mut senders = Senders::new();
        Self {
            steady_per_block,
            funding: senders.funding(),
            steady: senders.transfers(steady_each(steady_per_block)),
            flood: senders.transfers(FLOOD_EACH),
        }
    }
}

fn steady_each(per_block: u64) -> u64 {
    (per_block * STEADY_BLOCKS).div_ceil(SENDERS as u64)
}

pub(crate) fn measure(chain: &Chain, work: &Work) -> Measured {
    let heads = chain.listen();
    // The nonces that each phase ends with.
    let mut senders = Senders::new();
    send(chain, &work.funding, None);
    sleep(Duration::from_secs(2));

    let idle = watch("idle", chain, &heads, || {
        sleep(IDLE);
        Sent::new()
    });
    let rate = work.steady_per_block as f64 * 1e3 / BLOCK_TIME_MS as f64;
    senders.skip(steady_each(work.steady_per_block));
    let steady = watch("steady", chain, &heads, || {
        let sent = send(chain, &work.steady, Some(rate));
        included(chain, &senders);
        sent
    });
    senders.skip(FLOOD_EACH);
    let mut flood_per_second = 0.0;
    let flood = watch("flood", chain, &heads, || {
        let begin = now_ms();
        let sent = send(chain, &work.flood, None);
        let last = included(chain, &senders);
        flood_per_second = sent.len() as f64 * 1e3 / (last_final(chain, &heads, last) - begin);
        sent
    });
    let (runs_per_second, run_lateness) = runs(chain, &heads, &mut senders, flood_per_second);
    Measured { idle, steady, flood_per_second, flood, runs_per_second, run_lateness }
}

/// When the last block with transactions up to this one was final.
fn last_final(chain: &Chain, heads: &Heads, highest: u64) -> f64 {
    let is_full = |number: &u64| !hashes(chain, *number).is_empty();
    let block = (1..=highest).rev().find(is_full).expect("there are transactions");
    heads.final_at(block)
}

/// Looks at the chain while something happens to it.
fn watch(name: &str, chain: &Chain, heads: &Heads, act: impl FnOnce() -> Sent) -> Load {
    eprintln!("bench-network:   {name}");
    let first = chain.nodes()[0].height() + 1;
    let (begin, before) = (now_ms(), chain.usage());
    let sent = act();
    let used = chain.usage().since(before);
    let seconds = (now_ms() - begin) / 1e3;
    let last = chain.nodes()[0].height();
    describe(chain, heads, &sent, first..=last, used, seconds)
}

fn describe(
    chain: &Chain,
    heads: &Heads,
    sent: &Sent,
    blocks: std::ops::RangeInclusive<u64>,
    used: Usage,
    seconds: f64,
) -> Load {
    let (mut interval, mut finality, mut receipt) = (Times::new(), Times::new(), Times::new());
    let (mut full, mut transactions) = (0usize, 0usize);
    let mut previous = heads.final_at(*blocks.start());
    let count = blocks.clone().count() as f64;
    for number in blocks {
        let moment = heads.final_at(number);
        let included: Vec<_> = hashes(chain, number).iter().filter_map(|hash| sent.get(hash)).collect();
        // Where there is a load, blocks before and after it tell nothing about it.
        if !sent.is_empty() && included.is_empty() {
            previous = moment;
            continue;
        }
        full += 1;
        transactions += included.len();
        interval.push(moment - previous);
        receipt.extend(included.into_iter().map(|begin| moment - begin));
        finality.extend(time_of(chain, number).map(|time| moment - time));
        previous = moment;
    }
    for times in [&mut interval, &mut finality, &mut receipt] {
        times.sort_by(f64::total_cmp);
    }
    Load {
        per_block: transactions as f64 / full as f64,
        interval,
        finality,
        receipt,
        cores_per_node: used.cpu_s / seconds / chain.nodes().len() as f64,
        cpu_ms_per_transaction: used.cpu_s * 1e3 / chain.nodes().len() as f64 / transactions as f64,
        wire_bytes_per_block: used.wire_bytes / count,
    }
}

/// Runs per second that a quorum has, of jobs that are all due in the same second, and how late each was final.
fn runs(chain: &Chain, heads: &Heads, senders: &mut Senders, transfers_per_second: f64) -> (f64, Times) {
    eprintln!("bench-network:   runs");
    // All must be in blocks before they are due.
    let ahead_s = (SENDERS as u64 * JOBS_EACH) as f64 * JOB_TRANSFERS / transfers_per_second;
    let due_s = now_ms() as u64 / 1_000 + 10 + ahead_s as u64;
    let jobs = senders.jobs(JOBS_EACH, due_s);
    send(chain, &jobs, None);
    let first = included(chain, senders) + 1;
    let due_ms = due_s as f64 * 1e3;
    assert!(heads.final_at(first) < due_ms, "the jobs were due before all of them were made");
    let (mut number, mut lateness) = (first, Times::new());
    while lateness.len() < jobs.len() {
        let moment = heads.final_at(number);
        assert!(moment < due_ms + 180_000.0, "{} of {} jobs ran", lateness.len(), jobs.len());
        let runs = hashes(chain, number).len();
        lateness.extend(std::iter::repeat_n(moment - due_ms, runs));
        number += 1;
    }
    let last = *lateness.last().expect("there are jobs");
    (jobs.len() as f64 * 1e3 / last, lateness)
}

fn hashes(chain: &Chain, number: u64) -> Vec<TxHash> {
    let block = chain.block(number);
    block["transactions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hash| hash.as_str().unwrap().parse().unwrap())
        .collect()
}

/// A block's time in milliseconds, from its header.
fn time_of(chain: &Chain, number: u64) -> Option<f64> {
    if chain.nodes().len() == 1 {
        return None;
    }
    let shown = chain.nodes()[0].result("almanac_getFinality", json!([format!("{number:#x}")]));
    let header = hex::decode(shown["headers"][0].as_str()?).unwrap();
    Some(Header::decode(&header).unwrap().timestamp.0 as f64)
}
