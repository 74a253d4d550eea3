//! What one call may cost a node: a stranger's dearest requests end no process, take bounded memory, hold up no block
//! and nobody else.

use crate::support::{
    load::account,
    network::{Network, agree_at},
    pace::Pace,
    polite::post_from,
    socket::Socket,
    *,
};
use alloy_primitives::{Address, hex};
use almanac_primitives::testing;
use serde_json::{Map, Value, json};
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Typed data that is small and dear: arrays in arrays, a chain of structs, and structs that hold the next twice.
fn dear_typed_data() -> [Value; 3] {
    let data = |types: Value| json!({ "types": types, "primaryType": "A0", "domain": {}, "message": {} });
    let chain = |length: usize, times: usize| {
        let types: Map<String, Value> = (0..length)
            .map(|nth| {
                let held = if nth + 1 == length { "uint256".to_owned() } else { format!("A{}", nth + 1) };
                let fields = (0..times).map(|n| json!({ "name": format!("f{n}"), "type": held }));
                (format!("A{nth}"), fields.collect())
            })
            .collect();
        data(Value::Object(types))
    };
    let arrays = "uint256".to_owned() + &"[]".repeat(20_000);
    [data(json!({ "A0": [{ "name": "x", "type": arrays }] })), chain(2_000, 1), chain(22, 2)]
}

const NOBODY: &str = "0x00000000000000000000000000000000deadbeef";

#[test]
fn typed_data_ends_no_node_and_takes_no_memory() {
    let node = Node::start(&[]);
    let before = node.memory_kilobytes();
    let mut socket = Socket::open(&node.address);
    for data in dear_typed_data() {
        for method in ["eth_signTypedData_v4", "eth_signTypedData", "eth_signTypedData_v3"] {
            let unknown = node.call(method, json!([NOBODY, data]));
            assert!(unknown["error"]["message"].as_str().unwrap().contains("unknown account"), "{unknown}");
        }
        let refusals = [
            node.call("eth_signTypedData_v4", json!([ALICE, data])),
            node.call("eth_signTypedData_v4", json!([ALICE, data.to_string()])),
            socket.call("eth_signTypedData_v4", json!([ALICE, data])),
        ];
        for refused in refusals {
            assert_eq!(refused["error"]["code"], -32_005, "{refused}");
            assert!(refused["error"]["message"].as_str().unwrap().contains("the limit of"), "{refused}");
        }
    }
    let taken = node.memory_peak_kilobytes() - before;
    println!("typed data took {taken} kB");
    assert!(taken < 100_000, "{taken} kB");
    assert_eq!(node.height(), 0);
}

/// Sent to two of four validators, this used to stop the chain.
#[test]
fn validators_do_not_sign_and_go_on() {
    let net = Network::direct(200);
    agree_at(&net.nodes, 2);
    for node in &net.nodes[..2] {
        for data in dear_typed_data() {
            let refused = node.call("eth_signTypedData_v4", json!([ALICE, data]));
            assert_eq!(refused["error"]["code"], -32_601, "{refused}");
        }
    }
    let height = net.nodes[0].height();
    agree_at(&net.nodes, height + 5);
    let peak = net.nodes[0].memory_peak_kilobytes();
    assert!(peak < 1_000_000, "{peak} kB");
}

/// Overriding many accounts took time that grew with the square of their number.
#[test]
fn overrides_have_a_number() {
    let node = Node::start(&[]);
    let overrides = |count: usize| {
        let accounts = (0..count).map(|n| (format!("{:#042x}", n + 1_000_000), json!({ "state": {} })));
        Value::Object(accounts.collect())
    };
    let call = |count: usize| {
        let params = json!([{ "to": BOB }, "latest", overrides(count)]);
        [
            node.call("eth_call", params.clone()),
            node.call("eth_estimateGas", params),
            node.call(
                "debug_traceCall",
                json!([{ "to": BOB }, "latest", { "stateOverrides": overrides(count) }]),
            ),
            // The blocks of a simulation count together.
            node.call(
                "eth_simulateV1",
                json!([{ "blockStateCalls": [
                    { "stateOverrides": overrides(count - 10) },
                    { "stateOverrides": overrides(10) },
                ] }]),
            ),
        ]
    };
    for answer in call(1_000) {
        assert!(answer["error"].is_null(), "{answer}");
    }
    for count in [1_001, 33_000] {
        let begin = Instant::now();
        for refused in call(count) {
            assert_eq!(refused["error"]["code"], -32_005, "{refused}");
            let message = refused["error"]["message"].as_str().unwrap();
            assert!(message.contains(&format!("{count} overridden accounts")), "{message}");
        }
        println!("{count} overridden accounts were refused in {:?}, four times", begin.elapsed());
    }
}

/// What a call at this address logs is as long as its input says.
const LOGGER: &str = "0x00000000000000000000000000000000000000ee";
const LOG_BYTES: usize = 1_000_000;
const LOGS: usize = 100;

/// A chain with large logs, two or three to a block, and a block every 100 ms.
fn with_large_logs() -> (Node, u64) {
    let node = Node::start(&["--block-time", "100ms"]);
    // log0(0, calldataload(0))
    node.result("anvil_setCode", json!([LOGGER, "0x5f355fa000"]));
    let call =
        json!([{ "from": ALICE, "to": LOGGER, "gas": "0xb71b00", "data": format!("{LOG_BYTES:#066x}") }]);
    let sent: Vec<Value> = (0..LOGS).map(|_| node.result("eth_sendTransaction", call.clone())).collect();
    let last = node.receipt(sent.last().unwrap());
    assert_eq!(last["status"], "0x1", "{last}");
    (node, number(&last["blockNumber"]))
}

#[test]
fn logs_are_bounded_in_bytes() {
    let (node, last) = with_large_logs();
    let before = node.memory_kilobytes();
    let filter = |to: u64| json!([{ "fromBlock": "0x0", "toBlock": format!("{to:#x}"), "address": LOGGER }]);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..2 {
                    node.call("eth_getLogs", filter(last));
                }
            });
        }
    });
    let taken = node.memory_peak_kilobytes().saturating_sub(before);
    println!("eight clients took {taken} kB, beside {before} kB");
    assert!(taken < 250_000, "{taken} kB");

    let refused = node.call("eth_getLogs", filter(last));
    assert_eq!(refused["error"]["code"], -32_005, "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    let advice = message.split("end the range at block ").nth(1).unwrap_or_else(|| panic!("{message}"));
    let found = node.result("eth_getLogs", filter(advice.parse().unwrap()));
    assert!(found.as_array().unwrap().len() > 1, "the advice works");
    let filter = node.result("eth_newFilter", json!([{ "fromBlock": "0x0", "address": LOGGER }]));
    let refused = node.call("eth_getFilterLogs", json!([filter]));
    assert_eq!(refused["error"]["code"], -32_005, "{refused}");
    let refused = node.call("trace_filter", json!([{ "fromAddress": vec![ALICE; 1_001] }]));
    assert!(refused["error"]["message"].as_str().unwrap().contains("1001 addresses"), "{refused}");
}

/// Both sides of what a node is told to answer with. A number above the usual had no effect.
#[test]
fn an_answer_is_as_large_as_the_node_is_told() {
    // A byte of a log is two characters.
    for (flag, bytes, fits) in [("1", 100_000, 5), ("20", 1_000_000, 10)] {
        let node = Node::start(&["--rpc-answer", flag]);
        node.result("anvil_setCode", json!([LOGGER, "0x5f355fa000"]));
        let call =
            json!([{ "from": ALICE, "to": LOGGER, "gas": "0xb71b00", "data": format!("{bytes:#066x}") }]);
        for _ in 0..=fits {
            node.receipt(&node.result("eth_sendTransaction", call.clone()));
        }
        let logs = |count: u64| {
            let from = format!("{:#x}", node.height() + 1 - count);
            node.call("eth_getLogs", json!([{ "fromBlock": from, "toBlock": "latest", "address": LOGGER }]))
        };
        let found = logs(fits);
        assert_eq!(found["result"].as_array().map_or(0, Vec::len) as u64, fits, "{:.200}", found.to_string());
        let refused = logs(fits + 1);
        assert_eq!(refused["error"]["code"], -32_005, "{:.200}", refused.to_string());
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("exceed the size limit of an answer: end the range at block"), "{message}");
    }
}

/// Authorisations in a transaction, nearly as many as fit: 50 ms to check. And such transactions at once.
const AUTHORIZATIONS: usize = 1_100;
const LISTS: u64 = 48;

/// Each used to have a thread of its own, up to all that the node has for calls.
#[test]
fn transactions_that_are_dear_to_check_wait_for_each_other() {
    let node = Node::start(&["--block-time", "10m"]);
    let (rich, other) = (account(0).1, account(1).1);
    let signed = testing::authorize(testing::person(5), 0, Address::repeat_byte(7));
    let lists: Vec<String> = (0..LISTS)
        .map(|nonce| {
            let list = vec![signed.clone(); AUTHORIZATIONS];
            let tx = testing::sign(testing::eip7702(nonce, Address::ZERO, list, 28_000_000), rich);
            raw(tx.encoded())
        })
        .collect();
    let (mut running, mut waited) = (Vec::new(), Duration::ZERO);
    thread::scope(|scope| {
        let clients: Vec<_> = lists.iter().map(|list| scope.spawn(|| post(&node.address, list))).collect();
        while clients.iter().any(|client| !client.is_finished()) {
            running.push(node.running_threads());
            if running.len() == 20 {
                let begin = Instant::now();
                let answer = post_from(2, &node.address, &raw(testing::sign(transfer(), other).encoded()));
                assert!(answer.as_ref().is_ok_and(|answer| answer["result"].is_string()), "{answer:?}");
                waited = begin.elapsed();
            }
            thread::sleep(Duration::from_millis(5));
        }
        for client in clients {
            let answer = client.join().unwrap();
            assert!(answer.contains("result"), "{answer}");
        }
    });
    running.sort();
    let (median, most) = (running[running.len() / 2], running[running.len() - 1]);
    println!(
        "{LISTS} lists of {AUTHORIZATIONS}: {median} threads ran, {most} at most; somebody else waited {waited:?}"
    );
    // Four check signatures; a few others read requests and write answers.
    assert!(median <= 12, "{median} threads ran, {most} at most");
    assert!(!waited.is_zero() && waited < POLITE_P99, "{waited:?}");
}

fn transfer() -> alloy_consensus::TxEip1559 {
    testing::eip1559(0, alloy_primitives::TxKind::Call(Address::ZERO), 1, Vec::new(), 21_000)
}

/// A request that sends this.
fn raw(encoded: &[u8]) -> String {
    let params = json!([hex::encode_prefixed(encoded)]);
    json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_sendRawTransaction", "params": params }).to_string()
}

/// Longest that somebody else waits for a short answer, 99 times of 100: 0.1 to 0.5 s on two busy cores.
const POLITE_P99: Duration = Duration::from_secs(2);
const FLOOD: Duration = Duration::from_secs(5);

/// Says that the flood is over when it is dropped.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn dear_methods_hold_up_neither_others_nor_blocks() {
    let (node, last) = with_large_logs();
    let (idle, ()) = Pace::during(&node.address, || thread::sleep(Duration::from_secs(3)));

    let percentiles: Vec<u64> = (1..=100).collect();
    let big = format!("{last:#x}");
    let dear = [
        ("eth_feeHistory", json!(["0x400", "latest", percentiles]), 20),
        ("eth_getBlockReceipts", json!([big]), 2),
        ("eth_getLogs", json!([{ "fromBlock": "0x0", "address": LOGGER }]), 2),
        ("eth_getBlockByNumber", json!([big, true]), 100),
        ("txpool_content", json!([]), 100),
        ("ots_getBlockTransactions", json!([big, 0, 25]), 50),
    ];
    let (done, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    let (flooded, mut waits) = thread::scope(|scope| {
        for n in 0..2 * dear.len() {
            let (method, params, times) = &dear[n % dear.len()];
            let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
            let (batch, node, done, answered) =
                (json!(vec![call; *times]).to_string(), &node, &done, &answered);
            scope.spawn(move || {
                while !done.load(Ordering::Acquire) {
                    if post_within(Duration::from_secs(60), &node.address, &batch).is_ok() {
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        // Also where this panics, or the others would go on for ever.
        let _done = Done(&done);
        thread::sleep(Duration::from_millis(500));
        let (mut polite, mut waits) = (Socket::open(&node.address), Vec::new());
        let begin = Instant::now();
        Pace::during(&node.address, || {
            while begin.elapsed() < FLOOD {
                let asked = Instant::now();
                assert!(polite.call("eth_blockNumber", json!([]))["result"].is_string());
                waits.push(asked.elapsed());
                thread::sleep(Duration::from_millis(5));
            }
            waits
        })
    });
    waits.sort();
    let (p50, p99) = (waits[waits.len() / 2], waits[waits.len() * 99 / 100]);
    let (peak, answered) = (node.memory_peak_kilobytes(), answered.into_inner());
    println!(
        "polite client: {} calls, p50 {p50:?}, p99 {p99:?}; idle: {idle}; flooded: {flooded}; {answered} batches \
         answered; peak {peak} kB",
        waits.len()
    );
    assert!(p99 < POLITE_P99, "p99 {p99:?}");
    flooded.check_against(&idle);
    assert!(peak < 1_200_000, "{peak} kB");
}
