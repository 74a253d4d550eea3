//! Work that outlasts a view: a pool full of the dearest transactions, and a lane full of the dearest runs.

use crate::support::{
    cron::{ICronRegistry, TARGET},
    load::account,
    machine,
    network::{Network, VALIDATORS, agree_at},
    number,
};
use alloy_consensus::TxEip2930;
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_primitives::{Bytes, TxKind, U256, hex};
use alloy_sol_types::SolCall as _;
use almanac_primitives::{Header, UserTransaction, addresses::CRON_REGISTRY, testing};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Access lists of so many keys, and so many of each sender: several seconds of work for a store.
const LIST_KEYS: u64 = 3_850;
const LISTS_EACH: u64 = 60;
const SENDERS: usize = 10;

/// Longest time without a block. A view that fails takes a second or two, and the machine may be busy.
const GAP_MAX: Duration = Duration::from_secs(15);

/// Most memory of a validator: the pool holds 75 MB of them, decoded a small multiple.
const MEMORY_KILOBYTES_MAX: u64 = 900_000;

fn list(nonce: u64, sender: usize) -> UserTransaction {
    let slots = (0..LIST_KEYS).map(|slot| U256::from(slot << 8 | sender as u64).into()).collect();
    let items = vec![AccessListItem { address: TARGET.parse().unwrap(), storage_keys: slots }];
    let tx: TxEip2930 = testing::eip2930(nonce, TARGET.parse().unwrap(), AccessList(items), 7_500_000);
    testing::sign(tx, account(sender).1)
}

/// The dearest pool on one of four: its own turns come and go, and blocks become final all the while.
#[test]
fn finality_goes_on_with_the_dearest_pool() {
    machine::alone();
    let net = Network::direct(100);
    agree_at(&net.nodes, 5);
    let first = net.nodes[1].height();
    let mut gaps = Gaps::start(&net);
    for nonce in 0..LISTS_EACH {
        for sender in 0..SENDERS {
            let sent = net.nodes[0].send(&list(nonce, sender));
            assert!(sent["result"].is_string(), "{sent}");
            gaps.look(&net);
        }
    }
    gaps.watch(&net, Duration::from_secs(20));
    let last = net.nodes[1].height();
    let memory = (0..VALIDATORS).map(|node| net.nodes[node].memory_peak_kilobytes()).max().unwrap();
    println!("blocks {first} to {last}, {:?} apart at most; {memory} kB at most", gaps.longest);
    assert!(gaps.longest < GAP_MAX, "{:?} without a block", gaps.longest);
    assert!(memory < MEMORY_KILOBYTES_MAX, "{memory} kB");
    agree_at(&net.nodes, last);
}

/// Jobs of 5 M gas each: the lane holds twelve of them in a block, and more are due than it holds.
const JOBS: u64 = 24;
const JOB_GAS: u64 = 5_000_000;
const LANE_RUNS: usize = 12;

/// The dearest work there is, until no gas is left: calls the precompile in the first word of the calldata with the
/// rest of it.
const DEAREST: [u8; 21] = hex!("365f5f375b5f5f6020360360205f515afa50600456");

/// Point evaluation, which takes longest for its gas: the address of the precompile, then its input.
pub(crate) fn dearest_input() -> Bytes {
    let file: Value =
        serde_json::from_str(include_str!("../../../../specs/vectors/precompiles.json")).unwrap();
    let is_it = |vector: &&Value| vector["address"] == "0xa" && vector["name"] == "cubic at the last scalar";
    let vector = file["vectors"].as_array().unwrap().iter().find(is_it).unwrap();
    let input = hex::decode(vector["input"].as_str().unwrap()).unwrap();
    [&U256::from(0x0a).to_be_bytes::<32>()[..], &input].concat().into()
}

fn job(nonce: u64, first: u64) -> UserTransaction {
    let order = ICronRegistry::scheduleCalldataCall {
        target: TARGET.parse().unwrap(),
        data: dearest_input(),
        nextRunAt: U256::from(first),
        intervalSec: U256::from(1),
        maxRuns: U256::from(1_000),
        gasLimit: U256::from(JOB_GAS),
    };
    let mut tx = testing::eip1559(nonce, TxKind::Call(CRON_REGISTRY), 0, order.abi_encode(), 500_000);
    tx.value = U256::from(10u64.pow(18)) * U256::from(5);
    testing::sign(tx, account(1).1)
}

/// Failed views before a block, and its runs.
type Ran = (u64, usize);

/// How a lane full of the dearest work is tried.
struct Trial {
    timeout_ns_per_gas: Option<u64>,
    /// Longest time without a block.
    gap_max: Duration,
    /// Threads for each processor that compute beside the validators.
    busy_threads: usize,
    /// A block that must come.
    is_shown: fn(&Ran) -> bool,
}

/// Whether a block holds as much as it may.
fn is_full((failed, runs): &Ran) -> bool {
    *runs == runs_max(*failed)
}

/// Whether it holds as much as it may, and failed views made that less.
fn is_halved(block: &Ran) -> bool {
    is_full(block) && block.1 < LANE_RUNS
}

/// Four validators at 100 ms whose cron lane is as large as it may be and full of the dearest precompile.
fn due_work_fits_the_view(trial: &Trial) {
    let Trial { timeout_ns_per_gas, gap_max, busy_threads, is_shown } = *trial;
    let net = Network::with(100, |genesis, config| {
        genesis["parameters"]["block_gas_max"] = json!(120_000_000);
        genesis["parameters"]["cron_block_gas_max"] = json!(60_000_000);
        genesis["allocations"][TARGET] =
            json!({ "balance": "0x0", "nonce": 1, "code": hex::encode_prefixed(DEAREST) });
        if let Some(given) = timeout_ns_per_gas {
            config["timeoutNsPerGas"] = json!(given);
        }
    });
    agree_at(&net.nodes, 3);
    let now = number(&net.nodes[0].result("eth_getBlockByNumber", json!(["latest", false]))["timestamp"]);
    for nonce in 0..JOBS {
        let sent = net.nodes[0].send(&job(nonce, now + 8));
        assert!(sent["result"].is_string(), "{sent}");
    }
    crate::support::network::wait_for("jobs", || {
        let made = net.nodes[0].result("eth_getTransactionCount", json!([account(1).0, "latest"]));
        (number(&made) == JOBS).then_some(())
    });
    let busy = machine::busy(busy_threads);
    let mut gaps = Gaps::start(&net);
    let (begin, mut looked) = (Instant::now(), 1);
    let mut runs: Vec<Ran> = Vec::new();
    // A full block at first takes longer than any view on a busy machine; then none would ever come.
    while runs.len() < BLOCKS_WITH_RUNS || !runs.iter().any(is_shown) {
        assert!(begin.elapsed() < RUNS_WITHIN, "the lane stands still after {runs:?}");
        gaps.watch(&net, Duration::from_secs(1));
        let gap = gaps.longest;
        assert!(gap < gap_max, "{gap:?} without a block: the work does not fit a view");
        let last = net.nodes[0].height();
        let blocks = (looked..=last).map(|block| (block, runs_of(&net, block))).filter(|(_, runs)| *runs > 0);
        runs.extend(blocks.map(|(block, runs)| (failed_views(&net, block), runs)));
        looked = last + 1;
    }
    drop(busy);
    let took = begin.elapsed();
    println!(
        "timeout {timeout_ns_per_gas:?} ns/gas: (failed views, runs) {runs:?} in {took:?}, {:?} apart at most",
        gaps.longest
    );
    let above: Vec<_> = runs.iter().filter(|(failed, runs)| *runs > runs_max(*failed)).collect();
    assert!(above.is_empty(), "more runs than a halved budget holds: {above:?}");
    match runs.iter().find(|block| is_halved(block)) {
        Some((failed, runs)) => {
            println!("after {failed} failed views a block had {runs} of {LANE_RUNS} runs");
        }
        None => println!("a full lane fits a view of this machine: nothing was halved"),
    }
    agree_at(&net.nodes, looked - 1);
}

/// Blocks with runs that must come, and by when.
const BLOCKS_WITH_RUNS: usize = 4;
const RUNS_WITHIN: Duration = Duration::from_secs(240);

/// Longest time without a block while the lane is full and timeouts have a floor: some failed views, each as long as
/// its timeout. It was 33 s with seven times as much to do as the machine has processors; with neither a floor nor
/// budgets that halve, no block comes at all.
const FULL_LANE_GAP_MAX: Duration = Duration::from_secs(90);

fn runs_of(net: &Network, block: u64) -> usize {
    let receipts = net.nodes[0].result("eth_getBlockReceipts", json!([format!("{block:#x}")]));
    let is_run = |receipt: &&Value| receipt["almanacType"] == "0x71";
    receipts.as_array().unwrap().iter().filter(is_run).count()
}

/// Consecutive views without a block before this one.
fn failed_views(net: &Network, block: u64) -> u64 {
    let finality = net.nodes[0].result("almanac_getFinality", json!([format!("{block:#x}")]));
    let header: Bytes = finality["headers"][0].as_str().unwrap().parse().unwrap();
    Header::decode(&header).unwrap().consensus.failed_views()
}

/// Runs that a block holds after so many failed views (ARC21-17). More are due: each job every second.
fn runs_max(failed_views: u64) -> usize {
    (LANE_RUNS >> failed_views.saturating_sub(1).min(8)).max(1)
}

/// With timeouts that have room for a full block.
#[test]
fn due_work_fits_views_with_a_floor() {
    machine::alone();
    let gap_max = FULL_LANE_GAP_MAX;
    due_work_fits_the_view(&Trial { timeout_ns_per_gas: None, gap_max, busy_threads: 0, is_shown: is_full });
}

/// With timeouts for the block time alone: the budgets halve until the work fits. Four validators with two processors take
/// about as long for a full block as a view lasts, so other work makes the machine slow: nothing would be halved on a fast
/// one. A single gap has no bound of its own: the largest run alone may outlast such a view several times in a row.
#[test]
fn due_work_fits_views_without_a_floor() {
    machine::alone();
    let (timeout_ns_per_gas, gap_max) = (Some(0), RUNS_WITHIN);
    due_work_fits_the_view(&Trial { timeout_ns_per_gas, gap_max, busy_threads: 2, is_shown: is_halved });
}

/// Times without a new block.
pub(crate) struct Gaps {
    height: u64,
    since: Instant,
    pub(crate) longest: Duration,
}

impl Gaps {
    pub(crate) fn start(net: &Network) -> Self {
        Self { height: net.nodes[1].height(), since: Instant::now(), longest: Duration::ZERO }
    }

    pub(crate) fn look(&mut self, net: &Network) {
        let height = net.nodes[1].height();
        self.longest = self.longest.max(self.since.elapsed());
        if height > self.height {
            (self.height, self.since) = (height, Instant::now());
        }
    }

    pub(crate) fn watch(&mut self, net: &Network, time: Duration) {
        let begin = Instant::now();
        while begin.elapsed() < time {
            self.look(net);
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}
