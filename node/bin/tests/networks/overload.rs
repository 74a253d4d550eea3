//! More work than validators can do in the time of a block: blocks get smaller, and keep coming.

use crate::support::{
    cron::{ICronRegistry, jobs_told, now},
    load::account,
    machine,
    network::{Network, VALIDATORS, agree_at, wait_for},
    number,
};
use alloy_primitives::{Address, Bytes, TxKind, U256, hex};
use alloy_sol_types::{SolCall, SolEvent};
use almanac_primitives::{
    UserTransaction,
    addresses::{CRON_REGISTRY, LEDGER},
    testing,
};
use serde_json::json;
use std::time::{Duration, Instant};

const BLOCK_TIME_MS: u64 = 50;

/// A block takes 30 of these; they keep a processor busy for half a second, and each of the validators does it.
const GAS: u64 = 1_000_000;

const SENDERS: usize = 10;
const EACH: u64 = 9;

/// Most of them in one block: as many as take a block's time for sure, and not what it has gas for.
const BLOCK_MAX: u64 = 10;

/// Longest time without a block. A view that fails takes over a second.
const GAP_MAX: Duration = Duration::from_secs(5);

/// Recovers the signer of the same signature until there is no gas left: what takes longest for its gas of all that
/// a contract can ask for.
fn heavy(nonce: u64, sender: usize) -> UserTransaction {
    let code = hex!(
        "60015f52 601b602052"
        "7f79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798604052 6001606052"
        "5b 6020 6080 6080 5f 6001 61ffff fa 50 6032 56"
    );
    assert_eq!(code[0x32], 0x5b, "where the loop begins");
    testing::sign(testing::eip1559(nonce, TxKind::Create, 0, code.to_vec(), GAS), account(sender).1)
}

#[test]
fn blocks_shrink_to_what_validators_can_do_in_time() {
    machine::alone();
    let net = Network::direct(BLOCK_TIME_MS);
    agree_at(&net.nodes, 5);
    for nonce in 0..EACH {
        for sender in 0..SENDERS {
            let sent = net.nodes[sender % VALIDATORS].send(&heavy(nonce, sender));
            assert!(sent["result"].is_string(), "{sent}");
        }
    }

    let first = net.nodes[0].height();
    let gap = longest_gap_until(&net, || (0..SENDERS).all(|sender| count(&net, sender) == EACH));
    let last = net.nodes[0].height();
    println!(
        "{} heavy transactions in blocks {first} to {last}, {gap:?} apart at most",
        SENDERS as u64 * EACH
    );
    assert!(gap < GAP_MAX, "{gap:?} without a block");
    for block in first..=last {
        let found =
            net.nodes[0].result("eth_getBlockTransactionCountByNumber", json!([format!("{block:#x}")]));
        assert!(number(&found) <= BLOCK_MAX, "block {block} has {found} of them");
    }
    agree_at(&net.nodes, last);
}

/// Input of the calls below: as much memory as makes the most of a job's gas, two thirds of which are left for calls.
const MUCH_INPUT: u32 = 934_000;

/// Input of as many calls for whose bytes nobody notices what is done with them.
const LITTLE_INPUT: u32 = 32;
const JOB_GAS: u64 = 5_000_000;

/// As many as the largest lane holds.
const JOBS: usize = 12;

/// Much input may make the gap between blocks this many times as long as little input, and longer by a failed view. There
/// are a third fewer calls then; where doors copy first, the gap was six times as long (16.6 s and 2.7 s).
const MUCH_BY_LITTLE_MAX: u32 = 2;
const VIEW: Duration = Duration::from_secs(2);

/// Jobs that pay for memory once and then pass all of it on, with no gas, to doors that answer natively. Each door
/// used to copy what it was passed before it asked for gas: a run of a second or more, and due runs cannot be left out.
#[test]
fn jobs_that_pass_much_input_without_gas_do_not_stop_the_chain() {
    machine::alone();
    let net = Network::with(500, |genesis, _| {
        genesis["parameters"]["block_gas_max"] = json!(120_000_000);
        genesis["parameters"]["cron_block_gas_max"] = json!(60_000_000);
    });
    agree_at(&net.nodes, 2);
    let [little, much] = [LITTLE_INPUT, MUCH_INPUT].map(|bytes| gap_while_jobs_pass(&net, bytes));
    println!(
        "{JOBS} jobs ran twice; blocks were {little:?} apart at most with little input, {much:?} with much"
    );
    assert!(
        much < little * MUCH_BY_LITTLE_MAX + VIEW,
        "{much:?} without a block, and {little:?} with little input"
    );
    agree_at(&net.nodes, net.nodes[0].height() + 3);
}

/// The longest time without a block while the largest lane is full of jobs that pass so many bytes on.
fn gap_while_jobs_pass(net: &Network, bytes: u32) -> Duration {
    let get_job = ICronRegistry::getJobCall { id: U256::ONE }.abi_encode();
    // A call of a method has its length: a selector and whole words.
    let method_bytes = bytes / 32 * 32 + 4;
    let attackers = [
        attacker(STATICCALL, CRON_REGISTRY, &[], bytes),
        attacker(STATICCALL, CRON_REGISTRY, &get_job[..4], method_bytes),
        attacker(DELEGATECALL, LEDGER, &[], bytes),
    ];
    let secret = account(0).1;
    let mut nonce = count(net, 0);
    let mut send = |to: TxKind, value: U256, data: Bytes| {
        let mut tx = testing::eip1559(nonce, to, 0, data, 2_000_000);
        tx.value = value;
        nonce += 1;
        net.nodes[0].send(&testing::sign(tx, secret))["result"].clone()
    };
    let created: Vec<_> = attackers.into_iter().map(|code| send(TxKind::Create, U256::ZERO, code)).collect();
    let contract = |hash| {
        let receipt = net.nodes[0].receipt(hash);
        receipt["contractAddress"].as_str().expect("a contract").parse::<Address>().unwrap()
    };
    let targets: Vec<_> = created.iter().map(contract).collect();
    let told = jobs_told(&net.nodes[0], ICronRegistry::JobExecuted::SIGNATURE_HASH).len();
    let due = now(&net.nodes[0]) + 6;
    let scheduled: Vec<_> = (0..JOBS)
        .map(|job| {
            let order = ICronRegistry::scheduleCalldataCall {
                target: targets[job % targets.len()],
                data: Bytes::from_static(&[1, 2, 3, 4]),
                nextRunAt: U256::from(due),
                intervalSec: U256::ZERO,
                maxRuns: U256::ZERO,
                gasLimit: U256::from(JOB_GAS),
            };
            let value = U256::from(JOB_GAS) * U256::from(100_000_000_000u64);
            send(TxKind::Call(CRON_REGISTRY), value, order.abi_encode().into())
        })
        .collect();
    for hash in &scheduled {
        let receipt = net.nodes[0].receipt(hash);
        assert_eq!(receipt["status"], "0x1", "{receipt}");
    }

    longest_gap_until(net, || {
        jobs_told(&net.nodes[0], ICronRegistry::JobExecuted::SIGNATURE_HASH).len() == told + scheduled.len()
    })
}

const STATICCALL: u8 = 0xfa;
const DELEGATECALL: u8 = 0xf4;

/// Init code of a contract that calls with the first `bytes` of its memory and no gas, until its own is almost gone. The
/// memory begins with `head`, at most a selector.
fn attacker(scheme: u8, to: Address, head: &[u8], bytes: u32) -> Bytes {
    let mut selector = [0; 4];
    selector[..head.len()].copy_from_slice(head);
    // mstore(0, selector); mload(bytes - 32)
    let mut code = [&[0x63][..], &selector, &hex!("60e0 1b 5f 52 63"), &(bytes - 32).to_be_bytes()].concat();
    code.extend(hex!("51 50"));
    let start = u8::try_from(code.len()).unwrap();
    // do { call(0, to, 0, bytes, 0, 0) } while gas > 50,000
    code.extend([&hex!("5b 5f 5f 63")[..], &bytes.to_be_bytes(), &hex!("5f 73"), to.as_slice()].concat());
    code.extend([0x5f, scheme]);
    code.extend(hex!("50 61c350 5a 11 60"));
    code.extend([start, 0x57, 0x00]);
    // Returns all that follows as the contract's code.
    let length = u8::try_from(code.len()).unwrap();
    [&[0x60, length, 0x80, 0x60, 9, 0x5f, 0x39, 0x5f, 0xf3][..], &code].concat().into()
}

fn count(net: &Network, sender: usize) -> u64 {
    number(&net.nodes[0].result("eth_getTransactionCount", json!([account(sender).0, "latest"])))
}

/// The longest time in which no block came, until something holds.
fn longest_gap_until(net: &Network, holds: impl Fn() -> bool) -> Duration {
    let (mut height, mut since, mut longest) = (net.nodes[0].height(), Instant::now(), Duration::ZERO);
    while !holds() {
        let now = wait_for("block", || Some(net.nodes[0].height()).filter(|now| *now > height));
        (height, longest, since) = (now, longest.max(since.elapsed()), Instant::now());
    }
    longest
}
