//! Traces and the explorer's methods, over the wire: shapes, and that they agree with receipts.

use crate::support::*;
use alloy_primitives::{Address, Bytes, TxKind, U256};
use almanac_primitives::testing::{
    self,
    contracts::{self, deploy, to},
};
use serde_json::{Value, json};
use std::time::Instant;

/// A node on which Alice has deployed contracts, and what she did with them.
struct Deployed {
    node: Node,
    nonce: u64,
}

impl Deployed {
    fn new(arguments: &[&str]) -> Self {
        Self { node: Node::start(arguments), nonce: 0 }
    }

    fn send(&mut self, to: TxKind, value: u64, input: Bytes) -> Value {
        let tx = testing::eip1559(self.nonce, to, value, input, 1_000_000);
        self.nonce += 1;
        let hash = self.node.send(&testing::sign(tx, ALICE_KEY.parse().unwrap()))["result"].clone();
        assert!(!self.node.receipt(&hash).is_null());
        hash
    }

    /// Deploys a test contract under an address of Alice's.
    fn deploy(&mut self, contract: Address) -> (Address, Value) {
        let alice: Address = ALICE.parse().unwrap();
        let (_, code) = contracts::all().into_iter().find(|(address, _)| *address == contract).unwrap();
        let address = alice.create(self.nonce);
        (address, self.send(TxKind::Create, 0, deploy(&code)))
    }

    fn trace(&self, hash: &Value, options: &Value) -> Value {
        self.node.result("debug_traceTransaction", json!([hash, options]))
    }
}

fn text(address: Address) -> String {
    format!("{address:#x}")
}

#[test]
fn geths_tracers() {
    let mut chain = Deployed::new(&[]);
    let (counter, _) = chain.deploy(contracts::COUNTER);
    let (forwarder, _) = chain.deploy(contracts::FORWARDER);
    let hash = chain.send(TxKind::Call(forwarder), 3, to(counter, &[]));
    let receipt = chain.node.receipt(&hash);

    let calls = chain.trace(&hash, &json!({ "tracer": "callTracer" }));
    assert_eq!((&calls["type"], &calls["from"]), (&json!("CALL"), &json!(ALICE)));
    assert_eq!((&calls["to"], &calls["gasUsed"]), (&json!(text(forwarder)), &receipt["gasUsed"]));
    assert_eq!(calls["calls"][0]["to"], text(counter));
    let steps = chain.node.result("debug_traceTransaction", json!([hash]));
    assert_eq!(steps["failed"], false);
    let last = steps["structLogs"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["op"], &last["depth"]), (&json!("RETURN"), &json!(1)));
    assert!(last["memory"].is_null() && last["stack"].is_array(), "as geth: {last}");
    let diff =
        chain.trace(&hash, &json!({ "tracer": "prestateTracer", "tracerConfig": { "diffMode": true } }));
    assert_eq!(diff["post"][text(counter)]["balance"], "0x3");
    assert!(chain.trace(&hash, &json!({ "tracer": "4byteTracer" })).is_object());
    assert_eq!(chain.trace(&hash, &json!({ "tracer": "noopTracer" })), json!({}));
    let flat = chain.trace(&hash, &json!({ "tracer": "flatCallTracer" }));
    assert_eq!((&flat[1]["traceAddress"], &flat[0]["transactionPosition"]), (&json!([0]), &json!(0)));
    let both = json!({ "tracer": "muxTracer", "tracerConfig": { "callTracer": {}, "prestateTracer": {} } });
    assert_eq!(chain.trace(&hash, &both)["callTracer"], calls);

    let number = &receipt["blockNumber"];
    let options = json!({ "tracer": "callTracer" });
    let block = chain.node.result("debug_traceBlockByNumber", json!([number, options]));
    assert_eq!(block, json!([{ "txHash": hash, "result": calls }]));
    let by_hash = chain.node.result("debug_traceBlockByHash", json!([receipt["blockHash"], options]));
    assert_eq!(by_hash, block);
    assert_eq!(chain.node.result("debug_traceBlockByNumber", json!(["0x0"])), json!([]));

    let call = json!({ "from": ALICE, "to": forwarder, "data": to(counter, &[]) });
    let tried = chain.node.result("debug_traceCall", json!([call, "latest", options]));
    assert_eq!(tried["calls"][0]["to"], text(counter));
    let overridden = json!({
        "tracer": "callTracer",
        "stateOverrides": { text(counter): { "code": "0x60015f5260205ff3" } },
    });
    let tried = chain.node.result("debug_traceCall", json!([call, "latest", overridden]));
    assert_eq!(tried["output"], format!("0x{:064x}", 1), "with other code");
}

#[test]
fn mistakes_are_named() {
    let mut chain = Deployed::new(&[]);
    let hash = chain.send(TxKind::Call(BOB.parse().unwrap()), 1, Bytes::new());
    let unknown = format!("0x{:064x}", 7);
    let cases = [
        (json!([hash, { "tracer": "js" }]), -32_602, "known: callTracer, prestateTracer"),
        (
            json!([hash, { "tracer": "callTracer", "tracerConfig": { "withLog": 3 } }]),
            -32_602,
            "tracerConfig",
        ),
        (json!([unknown]), -32_000, "transaction not found"),
        (json!(["0x12"]), -32_602, ""),
    ];
    for (params, code, message) in cases {
        let answer = chain.node.call("debug_traceTransaction", params);
        assert_eq!(answer["error"]["code"], code, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(message), "{answer}");
    }
    let answer = chain.node.call("debug_traceBlockByNumber", json!(["0x99"]));
    assert_eq!(answer["error"]["code"], -32_000, "{answer}");
    let answer = chain.node.call("debug_traceCall", json!([{}, "latest", { "txIndex": "0x0" }]));
    assert!(answer["error"]["message"].as_str().unwrap().contains("txIndex"), "{answer}");
    for method in ["trace_transaction", "ots_traceTransaction", "ots_getTransactionError"] {
        assert!(chain.node.result(method, json!([unknown])).is_null(), "{method}");
    }
    let answer = chain.node.call("ots_searchTransactionsBefore", json!([ALICE, 0, 0]));
    assert!(answer["error"]["message"].as_str().unwrap().contains("1..=500"), "{answer}");
}

/// However much is asked for at once, blocks go on, and who is refused is told so by code.
#[test]
fn a_flood_of_traces_delays_no_block() {
    let node = Node::start(&["--block-time", "100ms"]);
    let burn =
        testing::contracts::all().into_iter().find(|(address, _)| *address == contracts::BURNER).unwrap().1;
    let request = json!({
        "jsonrpc": "2.0", "id": 1, "method": "debug_traceCall",
        "params": [
            { "to": BOB, "gas": "0xf4240" },
            "latest",
            { "tracer": "callTracer", "stateOverrides": { BOB: { "code": burn } } },
        ],
    });
    let (first, begin) = (node.height(), Instant::now());
    let answers: Vec<Value> = std::thread::scope(|scope| {
        let ask = || serde_json::from_str(&post(&node.address, &request.to_string())).unwrap();
        let asking: Vec<_> = (0..60).map(|_| scope.spawn(ask)).collect();
        asking.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let (made, seconds) = (node.height() - first, begin.elapsed().as_secs_f64());
    let refused = answers.iter().filter(|answer| answer["error"]["code"] == -32_005).count();
    let served = answers.iter().filter(|answer| answer["result"]["type"] == "CALL").count();
    assert!(refused > 0 && served >= 30 && refused + served == 60, "{refused} refused, {served} served");
    assert!(made as f64 >= seconds * 10.0 * 0.3, "{made} blocks in {seconds} s");
}

#[test]
fn explorers_traces() {
    let mut chain = Deployed::new(&[]);
    let (creator, _) = chain.deploy(contracts::CREATOR);
    let hash = chain.send(TxKind::Call(creator), 4, deploy(&[0]));
    let made = creator.create(1);
    let receipt = chain.node.receipt(&hash);

    let traces = chain.node.result("trace_transaction", json!([hash]));
    assert_eq!(traces.as_array().unwrap().len(), 2);
    assert_eq!((&traces[1]["type"], &traces[1]["result"]["address"]), (&json!("create"), &json!(text(made))));
    assert_eq!((&traces[0]["blockHash"], &traces[0]["transactionHash"]), (&receipt["blockHash"], &hash));
    assert_eq!(chain.node.result("trace_block", json!([receipt["blockNumber"]])), traces);
    assert_eq!(chain.node.result("trace_get", json!([hash, ["0x0"]])), traces[1]);
    assert_eq!(chain.node.result("trace_get", json!([hash, []])), traces[0]);
    assert!(chain.node.result("trace_get", json!([hash, ["0x1"]])).is_null());
    let types = json!(["trace", "stateDiff", "vmTrace"]);
    let replay = chain.node.result("trace_replayTransaction", json!([hash, types]));
    assert_eq!(replay["stateDiff"][text(made)]["balance"], json!({ "+": "0x4" }));
    assert_eq!(replay["trace"].as_array().unwrap().len(), 2);
    assert!(!replay["vmTrace"]["ops"].as_array().unwrap().is_empty());
    let block = chain.node.result("trace_replayBlockTransactions", json!([receipt["blockNumber"], types]));
    assert_eq!((&block[0]["transactionHash"], &block[0]["trace"]), (&hash, &replay["trace"]));
    let call = json!([{ "from": ALICE, "to": creator, "data": deploy(&[0]) }, ["trace"], "latest"]);
    assert_eq!(chain.node.result("trace_call", call)["trace"][1]["type"], "create");

    let filter = |filter: Value| chain.node.result("trace_filter", json!([filter])).as_array().unwrap().len();
    assert_eq!(filter(json!({})), 3);
    assert_eq!(filter(json!({ "fromBlock": "0x2", "toBlock": "0x2" })), 2);
    assert_eq!(filter(json!({ "fromAddress": [creator] })), 1);
    assert_eq!(filter(json!({ "toAddress": [made] })), 1);
    assert_eq!((filter(json!({ "after": 1 })), filter(json!({ "count": 2 }))), (2, 2));
}

#[test]
fn otterscan() {
    let mut chain = Deployed::new(&[]);
    let (creator, deployed) = chain.deploy(contracts::CREATOR);
    let made_in = chain.send(TxKind::Call(creator), 4, deploy(&[0]));
    let (reverter, _) = chain.deploy(contracts::REVERTER);
    let failed = chain.send(TxKind::Call(reverter), 0, Bytes::new());
    let node = &chain.node;
    let ask = |method: &str, params: Value| node.result(&format!("ots_{method}"), params);

    assert_eq!(ask("getApiLevel", json!([])), 8);
    assert_eq!(node.result("erigon_getHeaderByNumber", json!(["0x1"]))["number"], "0x1");
    assert_eq!(ask("hasCode", json!([creator, "latest"])), true);
    assert_eq!(ask("hasCode", json!([creator, "0x0"])), false);
    let operations = ask("getInternalOperations", json!([made_in]));
    let made = creator.create(1);
    assert_eq!(operations, json!([{ "type": 2, "from": creator, "to": made, "value": "0x4" }]));
    let entries = ask("traceTransaction", json!([made_in]));
    assert_eq!((&entries[1]["type"], &entries[1]["depth"]), (&json!("CREATE"), &json!(1)));
    assert_eq!(ask("getTransactionError", json!([failed])), format!("0x{:064x}", 42));
    assert_eq!(ask("getTransactionError", json!([made_in])), "0x");

    // By a person, by a contract, by genesis, and not a contract at all.
    let creators =
        [json!(creator), json!(made), json!("0x000000000000000000000000000000000000a105"), json!(BOB)];
    let creators = creators.map(|address| ask("getContractCreator", json!([address])));
    assert_eq!(creators[0], json!({ "hash": deployed, "creator": ALICE }));
    assert_eq!(creators[1], json!({ "hash": made_in, "creator": creator }));
    assert!(creators[2].is_null() && creators[3].is_null());

    assert_eq!(ask("getTransactionBySenderAndNonce", json!([ALICE, 1])), made_in);
    assert_eq!(ask("getTransactionBySenderAndNonce", json!([ALICE, "0x3"])), failed);
    assert!(ask("getTransactionBySenderAndNonce", json!([ALICE, 4])).is_null());

    for number in [json!(2), json!("0x2")] {
        let details = ask("getBlockDetails", json!([number]));
        let receipt = node.receipt(&made_in);
        assert_eq!(details["block"]["transactionCount"], 1);
        assert!(details["block"]["transactions"].is_null() && details["block"]["logsBloom"].is_null());
        let number = |value: &Value| -> U256 { value.as_str().unwrap().parse().unwrap() };
        let paid = number(&receipt["gasUsed"]) * number(&receipt["effectiveGasPrice"]);
        assert_eq!(number(&details["totalFees"]), paid);
        assert_eq!(ask("getBlockDetailsByHash", json!([receipt["blockHash"]])), details);
    }
    let page = ask("getBlockTransactions", json!([2, 0, 10]));
    assert_eq!(page["fullblock"]["transactions"][0]["hash"], made_in);
    assert_eq!(page["fullblock"]["transactions"][0]["input"].as_str().unwrap().len(), 10, "the selector");
    assert_eq!(page["receipts"][0]["logs"], Value::Null);
    assert_eq!(ask("getBlockTransactions", json!([2, 1, 10]))["receipts"], json!([]));
}

#[test]
fn otterscans_pages() {
    let mut chain = Deployed::new(&[]);
    let (counter, deployed) = chain.deploy(contracts::COUNTER);
    let mut sent = vec![deployed];
    sent.extend((0..5).map(|_| chain.send(TxKind::Call(counter), 0, Bytes::new())));
    let node = &chain.node;
    let page = |method: &str, address: &str, block: u64, size: u64| {
        let page = node.result(&format!("ots_searchTransactions{method}"), json!([address, block, size]));
        assert_eq!(page["txs"].as_array().unwrap().len(), page["receipts"].as_array().unwrap().len());
        let hashes: Vec<_> = page["txs"].as_array().unwrap().iter().map(|tx| tx["hash"].clone()).collect();
        let ends = [&page["firstPage"], &page["lastPage"]].map(|end| end.as_bool().unwrap());
        (hashes, ends, page["receipts"][0]["timestamp"].clone())
    };
    let newest_first: Vec<_> = sent.iter().rev().cloned().collect();
    for address in [ALICE, &text(counter)] {
        let (hashes, ends, timestamp) = page("Before", address, 0, 4);
        assert_eq!((&hashes[..], ends), (&newest_first[..4], [true, false]));
        assert!(timestamp.as_str().unwrap().starts_with("0x"));
        let (hashes, ends, _) = page("Before", address, 3, 4);
        assert_eq!((&hashes[..], ends), (&newest_first[4..], [false, true]));
        let (hashes, ends, _) = page("After", address, 0, 4);
        assert_eq!((&hashes[..], ends), (&newest_first[2..], [false, true]));
        let (hashes, ends, _) = page("After", address, 4, 4);
        assert_eq!((&hashes[..], ends), (&newest_first[..2], [true, false]));
        let (hashes, ends, _) = page("Before", address, 0, 6);
        assert_eq!((&hashes[..], ends), (&newest_first[..], [true, true]));
    }
    assert_eq!(page("Before", BOB, 0, 5), (vec![], [true, true], Value::Null));
}

/// Bob is paid by a contract that Alice calls: no transaction names him, and it is his all the same.
#[test]
fn a_payment_inside_a_call_is_found_for_whom_it_paid() {
    let mut chain = Deployed::new(&[]);
    let (forwarder, _) = chain.deploy(contracts::FORWARDER);
    let bob: Address = BOB.parse().unwrap();
    let plain = chain.send(TxKind::Call(bob), 5, Bytes::new());
    let inside = chain.send(TxKind::Call(forwarder), 7, to(bob, &[]));
    chain.send(TxKind::Call(forwarder), 0, to(forwarder, &[]));
    let search = |method: &str, block: u64, size: u64| {
        let page = chain.node.result(&format!("ots_searchTransactions{method}"), json!([BOB, block, size]));
        let hashes: Vec<_> = page["txs"].as_array().unwrap().iter().map(|tx| tx["hash"].clone()).collect();
        (hashes, page["lastPage"].as_bool().unwrap())
    };
    assert_eq!(search("Before", 0, 25), (vec![inside.clone(), plain.clone()], true));
    assert_eq!(search("After", 0, 25).0, [inside.clone(), plain.clone()]);
    assert_eq!(search("Before", 0, 1), (vec![inside], false), "a page at a time");
    assert_eq!(search("Before", 3, 1), (vec![plain], true));
}

/// Contracts that a contract made, each in a block of its own: whichever is asked for, the search ends there.
#[test]
fn who_made_a_contract_is_found_in_any_block() {
    let mut chain = Deployed::new(&[]);
    let (creator, _) = chain.deploy(contracts::CREATOR);
    let made: Vec<_> = (1..=6)
        .map(|nonce| (creator.create(nonce), chain.send(TxKind::Call(creator), 0, deploy(&[0]))))
        .collect();
    for (contract, hash) in made {
        let found = chain.node.result("ots_getContractCreator", json!([contract]));
        assert_eq!(found, json!({ "hash": hash, "creator": creator }));
    }
}

/// What only old state could tell is refused by name; what the index knows is still answered.
#[test]
fn without_history_old_blocks_are_not_traced() {
    let mut chain = Deployed::new(&["--history", "2"]);
    let (creator, deployed) = chain.deploy(contracts::CREATOR);
    let made_in = chain.send(TxKind::Call(creator), 0, deploy(&[0]));
    for _ in 0..4 {
        chain.send(TxKind::Call(BOB.parse().unwrap()), 1, Bytes::new());
    }
    let refused = |method: &str, params: Value, message: &str| {
        let answer = chain.node.call(method, params);
        assert_eq!(answer["error"]["code"], -32_000, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(message), "{answer}");
    };
    refused("debug_traceTransaction", json!([made_in]), "the oldest block that can is 5");
    refused("trace_block", json!(["0x4"]), "the oldest block that can is 5");
    refused("ots_getContractCreator", json!([creator.create(1)]), "in or before block 4");
    assert_eq!(chain.node.result("trace_block", json!(["0x5"])).as_array().unwrap().len(), 1);
    let found = chain.node.result("ots_getContractCreator", json!([creator]));
    assert_eq!(found, json!({ "hash": deployed, "creator": ALICE }));
    assert_eq!(chain.node.result("ots_getTransactionBySenderAndNonce", json!([ALICE, 1])), made_in);
}

/// Edits and impersonated transactions are transactions in blocks, and so traced like any other.
#[test]
fn what_a_developer_did_is_traced() {
    let node = Node::start(&[]);
    let contract = "0x00000000000000000000000000000000000000c1";
    node.result("anvil_setBalance", json!([contract, "0x8ac7230489e80000"]));
    node.result("anvil_setCode", json!([contract, "0x33545f55"]));
    node.result("anvil_setStorageAt", json!([contract, "0x7", format!("0x{:064x}", 9)]));
    node.result("anvil_impersonateAccount", json!([contract]));
    let payment = json!([{ "from": contract, "to": BOB, "value": "0x5" }]);
    let hash = node.result("eth_sendTransaction", payment);
    assert_eq!(node.receipt(&hash)["status"], "0x1");

    let calls = node.result("debug_traceTransaction", json!([hash, { "tracer": "callTracer" }]));
    assert_eq!(
        [&calls["from"], &calls["to"], &calls["value"]],
        [&json!(contract), &json!(BOB), &json!("0x5")]
    );
    let diff_mode = json!({ "tracer": "prestateTracer", "tracerConfig": { "diffMode": true } });
    let tip = node.height();
    let mut after = Value::Null;
    for number in 1..=tip {
        let traces = node.result("debug_traceBlockByNumber", json!([format!("{number:#x}"), diff_mode]));
        for trace in traces.as_array().unwrap() {
            let post = &trace["result"]["post"][contract];
            if !post["storage"].is_null() {
                after = post["storage"].clone();
            }
        }
        assert_eq!(
            node.result("trace_block", json!([format!("{number:#x}")])).as_array().unwrap().len(),
            traces.as_array().unwrap().len(),
            "nothing calls anything inside"
        );
    }
    assert_eq!(after, json!({ format!("0x{:064x}", 7): format!("0x{:064x}", 9) }));
    assert!(node.result("ots_getContractCreator", json!([contract])).is_null(), "nobody made it");
    assert_eq!(node.result("ots_getTransactionBySenderAndNonce", json!([contract, 1])), hash);
}
