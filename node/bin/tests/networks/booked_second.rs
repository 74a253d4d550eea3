//! A fully booked second of the dearest work, on four validators: all of them book and run the same, and blocks go on.

use crate::{
    support::{
        Node,
        callbacks::{ICallbackScheduler, Priority, SCHEDULER, order},
        cron::{TARGET, now},
        load::account,
        machine,
        network::{Network, VALIDATORS, agree_at, wait_for},
        number,
    },
    views::{Gaps, dearest_input},
};
use alloy_primitives::{TxKind, U256, hex};
use alloy_sol_types::{SolCall, SolEvent};
use almanac_primitives::{UserTransaction, testing};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// All that a second has: 30,000 effort for High, of which it shares 10,000, and 5,000 for Medium. Large and small
/// callbacks, so that a budget that halves has something to leave for the next block.
const BOOKED: [(Priority, u64, usize); 4] = [
    (Priority::High, 9_000, 3),
    (Priority::High, 100, 30),
    (Priority::Medium, 4_500, 1),
    (Priority::Medium, 100, 5),
];

/// Seconds from the first booking to the booked second.
const AHEAD_SECONDS: u64 = 12;

/// Longest time without a new final block, where all validators could do the work within `WORK_MAX`. A view may take
/// 4.6 s until it is certified; then come votes that make it final, the index, and the next look of this test. With one
/// failed view it is 7 s and more.
const GAP_MAX: Duration = Duration::from_secs(6);
const WORK_MAX: Duration = Duration::from_millis(3_500);

/// The same on slower machines, and on those that have much else to do: views fail until the budgets have halved.
const SLOW_GAP_MAX: Duration = Duration::from_secs(90);

/// Longest time until everything has run.
const RUN_WITHIN: Duration = Duration::from_secs(240);

/// Gas of all callbacks of a second.
const SECOND_GAS: u64 = 73_500_000;

/// A handler that books itself: whatever it is sent goes on to the scheduler, with its value. When the scheduler calls,
/// it calls the dearest precompile until no effort is left.
fn handler() -> Vec<u8> {
    let dearest = dearest_input();
    let (address, input) = dearest.split_at(32);
    let length = u8::try_from(input.len()).unwrap();
    // JUMPI(0x1e, CALLER == scheduler), CALL(scheduler, value, calldata), and REVERT unless it succeeds.
    let forward =
        hex!("33 61a102 14 601e 57  36 5f 5f 37  5f 5f 36 5f 34 61a102 5a f1  601c 57 5f 5f fd 5b 00");
    // 0x1e: CODECOPY of the input behind the code. 0x25: STATICCALL(address, input), again and again.
    let copy = [0x5b, 0x60, length, 0x60, 0x34, 0x5f, 0x39];
    let call = [0x5b, 0x5f, 0x5f, 0x60, length, 0x5f, 0x61, address[30], address[31], 0x5a, 0xfa, 0x50];
    let again = hex!("6025 56");
    [&forward[..], &copy, &call, &again, input].concat()
}

/// The transactions that book the second.
fn orders(second: u64) -> Vec<UserTransaction> {
    let each = BOOKED.into_iter().flat_map(|(priority, effort, count)| vec![(priority, effort); count]);
    let signed = each.enumerate().map(|(nonce, (priority, effort))| {
        let (to, data) = (TxKind::Call(TARGET.parse().unwrap()), order(second, priority, effort));
        let mut tx = testing::eip1559(nonce as u64, to, 0, data, 500_000);
        tx.value = U256::from(10u64.pow(18));
        testing::sign(tx, account(1).1)
    });
    signed.collect()
}

/// Books all of them, and answers with their ids in order of booking and the last block that booked one.
fn book_all(net: &Network, second: u64) -> (Vec<U256>, u64) {
    let hashes: Vec<_> =
        orders(second).iter().map(|order| net.nodes[0].send(order)["result"].clone()).collect();
    let receipt = |hash: &Value| {
        wait_for("receipt", || {
            Some(net.nodes[0].result("eth_getTransactionReceipt", json!([hash])))
                .filter(|receipt| !receipt.is_null())
        })
    };
    let receipts: Vec<_> = hashes.iter().map(receipt).collect();
    for receipt in &receipts {
        assert_eq!(receipt["status"], "0x1", "{receipt}");
    }
    let id = |receipt: &Value| receipt["logs"][0]["topics"][1].as_str().unwrap().parse().unwrap();
    let last = receipts.iter().map(|receipt| number(&receipt["blockNumber"])).max().unwrap();
    (receipts.iter().map(id).collect(), last)
}

fn ask<C: SolCall>(node: &Node, call: &C) -> C::Return {
    let request = json!({ "to": SCHEDULER, "data": hex::encode_prefixed(call.abi_encode()) });
    let answer = node.result("eth_call", json!([request, "latest"]));
    C::abi_decode_returns(&hex::decode(answer.as_str().unwrap()).unwrap()).unwrap()
}

/// How long the validators of this machine need at least for the second: one proposes, then the others execute the same.
fn work_time(node: &Node) -> Duration {
    // Requests have little time, and run below everything else.
    const PARTS: u64 = 50;
    let gas = format!("{:#x}", SECOND_GAS / PARTS);
    let request = json!({ "from": SCHEDULER, "to": TARGET, "gas": gas });
    let part = (0..5).map(|_| {
        let begin = Instant::now();
        let answer = node.call("eth_call", json!([request, "latest"]));
        assert!(answer["error"]["message"].as_str().unwrap().contains("OutOfGas"), "{answer}");
        begin.elapsed()
    });
    let (one, cores) = (part.min().unwrap() * u32::try_from(PARTS).unwrap(), available_parallelism());
    let others = VALIDATORS - 1;
    one + one * u32::try_from(others).unwrap() / cores.min(u32::try_from(others).unwrap())
}

fn available_parallelism() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap())
}

/// What a node shows of a second and of callbacks, without the block at which it was asked.
fn shown(node: &Node, second: u64, ids: &[U256]) -> Value {
    let span = json!({ "from": second * 1_000, "to": second * 1_000 });
    let mut capacity = node.result("almanac_capacity", json!([span]));
    let mut agenda = node.result("almanac_agenda", json!([{ "limit": 100 }]));
    for answer in [&mut capacity, &mut agenda] {
        answer["blockNumber"].take();
    }
    let available = [Priority::High, Priority::Medium].map(|priority| {
        ask(node, &ICallbackScheduler::getSlotAvailableEffortCall { timestamp: second, priority })
    });
    let status = |id: &U256| ask(node, &ICallbackScheduler::getStatusCall { id: id.to() }) as u8;
    let statuses: Vec<_> = ids.iter().map(status).collect();
    json!({ "capacity": capacity, "agenda": agenda, "available": available, "statuses": statuses })
}

/// What all nodes show, which is the same, at a block or later.
fn shown_by_all(net: &Network, height: u64, second: u64, ids: &[U256]) -> Value {
    agree_at(&net.nodes, height);
    let first = shown(&net.nodes[0], second, ids);
    for node in &net.nodes[1..] {
        assert_eq!(shown(node, second, ids), first);
    }
    first
}

/// What blocks have of callbacks: how often each ran, and was told of in each event, and the runs in order.
#[derive(Default)]
struct Seen {
    runs: BTreeMap<U256, usize>,
    processed: BTreeMap<U256, usize>,
    failed: BTreeMap<U256, usize>,
    executed: BTreeMap<U256, usize>,
    order: Vec<U256>,
    blocks: Vec<(u64, usize)>,
}

impl Seen {
    fn look(&mut self, net: &Network, block: u64) {
        let at = json!([format!("{block:#x}")]);
        let receipts = net.nodes[0].result("eth_getBlockReceipts", at);
        let before = self.order.len();
        for receipt in receipts.as_array().unwrap() {
            if receipt["almanacType"] == "0x71" {
                let id = receipt["scheduleRef"]["idNumber"].as_str().unwrap().parse().unwrap();
                *self.runs.entry(id).or_default() += 1;
                self.order.push(id);
            }
            for log in receipt["logs"].as_array().unwrap() {
                self.note(log);
            }
        }
        if self.order.len() > before {
            self.blocks.push((block, self.order.len() - before));
        }
    }

    fn note(&mut self, log: &Value) {
        let topic = |at: usize| log["topics"][at].as_str().unwrap().parse::<U256>().unwrap();
        let counts = match topic(0).into() {
            ICallbackScheduler::CallbackProcessed::SIGNATURE_HASH => &mut self.processed,
            ICallbackScheduler::CallbackFailed::SIGNATURE_HASH => &mut self.failed,
            ICallbackScheduler::CallbackExecuted::SIGNATURE_HASH => &mut self.executed,
            _ => return,
        };
        *counts.entry(topic(1)).or_default() += 1;
    }
}

/// FLIP330-11: 73.5 M gas of the dearest precompile at 100 ms blocks, with the parameters of a new network.
#[test]
fn a_full_second_of_the_dearest_work_runs_once_and_blocks_go_on() {
    machine::alone();
    let net = Network::with(100, |genesis, _| {
        genesis["allocations"][TARGET] =
            json!({ "balance": "0x0", "nonce": 1, "code": hex::encode_prefixed(handler()) });
    });
    agree_at(&net.nodes, 3);
    let work_before = work_time(&net.nodes[0]);
    let second = now(&net.nodes[0]) + AHEAD_SECONDS;
    let (ids, booked_at) = book_all(&net, second);
    assert!(now(&net.nodes[0]) < second, "the machine is too slow to book in {AHEAD_SECONDS} s");

    let before = shown_by_all(&net, booked_at, second, &ids);
    assert_eq!(before["available"], json!([0, 0]), "{before}");
    assert_eq!(before["statuses"], json!(vec![ICallbackScheduler::Status::Scheduled as u8; ids.len()]));
    assert_eq!(before["agenda"]["entries"].as_array().unwrap().len(), ids.len());
    assert_eq!(number(&before["capacity"]["lanes"][0]["seconds"][0]["gas"]), SECOND_GAS);

    let (mut gaps, mut seen, mut looked) = (Gaps::start(&net), Seen::default(), booked_at);
    let begin = Instant::now();
    while seen.order.len() < ids.len() {
        assert!(begin.elapsed() < RUN_WITHIN, "ran only {:?}", seen.blocks);
        gaps.watch(&net, Duration::from_millis(500));
        let last = net.nodes[0].height();
        (looked + 1..=last).for_each(|block| seen.look(&net, block));
        looked = last;
    }
    // Some blocks more: what has run does not run again.
    gaps.watch(&net, Duration::from_secs(2));
    let last = net.nodes[0].height();
    (looked + 1..=last).for_each(|block| seen.look(&net, block));
    let gap = gaps.longest;
    // Before and after: other work on the machine comes and goes.
    let work = work_before.max(work_time(&net.nodes[0]));
    let gap_max = if work <= WORK_MAX { GAP_MAX } else { SLOW_GAP_MAX };
    println!(
        "(block, runs) {:?}; {gap:?} without a block, {gap_max:?} allowed for {work:?} of work",
        seen.blocks
    );

    let once: BTreeMap<U256, usize> = ids.iter().map(|id| (*id, 1)).collect();
    assert_eq!((&seen.runs, &seen.processed, &seen.failed), (&once, &once, &once));
    assert_eq!((seen.executed, &seen.order), (BTreeMap::new(), &ids), "High first, then as they were booked");
    (booked_at..=last).for_each(|block| agree_at(&net.nodes, block));
    let after = shown_by_all(&net, last, second, &ids);
    assert_eq!(after["statuses"], json!(vec![ICallbackScheduler::Status::Failed as u8; ids.len()]));
    assert_eq!(
        (&after["agenda"]["entries"], &after["capacity"]["booked"]["seconds"]),
        (&json!([]), &json!([]))
    );
    assert!(gap <= gap_max, "{gap:?} without a block");
}
