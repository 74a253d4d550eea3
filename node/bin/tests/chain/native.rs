//! Native transactions over a real socket: sent, found, shown, replayed.

use crate::support::*;
use alloy_primitives::{Address, B256, Bytes, hex};
use alloy_sol_types::{SolCall as _, sol};
use almanac_primitives::{
    Chain, NativeTransaction, UserTransaction,
    addresses::ACCOUNTS,
    keys::rotation_digest,
    params::{PARTY_GAS, SIGNATURE_GAS},
    testing::{CHAIN_ID, Person, native::*},
};
use serde_json::{Value, json};

sol!("../../contracts/IAccounts.sol");

/// The first developer account.
pub(crate) fn alice() -> Person {
    Person {
        secret: B256::from(hex!("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")),
        address: ALICE.parse().unwrap(),
    }
}

fn chain_of(node: &Node) -> Chain {
    let genesis = node.result("eth_getBlockByNumber", json!(["0x0", false]));
    Chain { id: CHAIN_ID, genesis: genesis["hash"].as_str().unwrap().parse().unwrap() }
}

pub(crate) fn now(node: &Node) -> u64 {
    let pending = node.result("eth_getBlockByNumber", json!(["pending", false]));
    number(&pending["timestamp"])
}

pub(crate) fn signed(node: &Node, transaction: NativeTransaction) -> UserTransaction {
    sign_native_on(&chain_of(node), transaction, &[alice().into()], &[])
}

/// Rotates Alice's key for the first time, to one that these keys satisfy.
pub(crate) fn rotation(node: &Node, key: &Bytes, keys: &[Key]) -> NativeTransaction {
    let digest = rotation_digest(&chain_of(node), alice().address, key, 1);
    let call = IAccounts::rotateKeyCall { key: key.clone(), proofs: sign_all(keys, digest) };
    native(alice().address, 0, vec![native_call(ACCOUNTS, 0, call.abi_encode())])
}

pub(crate) fn batch() -> Vec<almanac_primitives::NativeCall> {
    vec![
        native_call(Address::repeat_byte(7), 5, Bytes::new()),
        native_call(Address::repeat_byte(8), 6, vec![1, 2]),
    ]
}

#[test]
fn orderless_01_blocks_with_native_transactions_are_readable() {
    let node = Node::start(&[]);
    let snapshot = node.result("evm_snapshot", json!([]));
    let expiration = now(&node) + 40;
    // A nonce that JavaScript's numbers cannot hold.
    let transaction = signed(&node, orderless(alice().address, u64::MAX, expiration, batch()));
    let sent = node.send(&transaction);
    assert_eq!(sent["result"], transaction.hash().to_string(), "{sent}");
    let receipt = node.receipt(&sent["result"]);
    assert_eq!((&receipt["status"], &receipt["type"]), (&json!("0x1"), &json!("0x2")));
    assert_eq!(receipt["almanacType"], "0x72");
    assert!(receipt.get("failedCall").is_none());
    let shown = node.result("eth_getTransactionByHash", json!([sent["result"]]));
    assert_eq!(shown["type"], "0x2");
    let own = u64::from_be_bytes(transaction.hash()[24..].try_into().unwrap()) & ((1 << 52) - 1);
    assert_eq!(shown["nonce"], format!("{:#x}", (1u64 << 52) + own), "no other transaction shows it");
    assert_eq!(shown["almanacType"], "0x72");
    assert_eq!((&shown["value"], &shown["input"]), (&json!("0xb"), &json!("0x")));
    assert_eq!(shown["to"], shown["from"], "a batch is shown as a call of the sender itself");
    assert_eq!((&shown["r"], &shown["s"], &shown["v"]), (&json!("0x0"), &json!("0x0"), &json!("0x0")));
    let protector = json!({ "nonce": "0xffffffffffffffff", "expiration": format!("{expiration:#x}") });
    assert_eq!(shown["replayProtector"], protector);
    assert_eq!(shown["calls"][1]["input"], "0x0102");
    assert_eq!(shown["signatures"].as_array().unwrap().len(), 1);
    let block = node.result("eth_getBlockByNumber", json!([receipt["blockNumber"], true]));
    assert_eq!(block["transactions"][0], shown);
    let raw = node.result("eth_getRawTransactionByHash", json!([sent["result"]]));
    assert_eq!(raw, hex::encode_prefixed(transaction.encoded()));
    assert_eq!(number(&node.result("eth_getTransactionCount", json!([ALICE, "latest"]))), 0);
    // Sent again, it is known to have been used, until its block is taken back.
    let again = node.send(&transaction);
    assert!(again["error"]["message"].as_str().unwrap().contains("NonceAlreadyUsed"), "{again}");
    assert_eq!(node.result("evm_revert", json!([snapshot])), true);
    assert_eq!(node.send(&transaction)["result"], sent["result"]);
    let call = vec![native_call(Address::repeat_byte(7), 5, Bytes::new())];
    let single = signed(&node, orderless(alice().address, 1, expiration, call));
    let receipt = node.receipt(&node.send(&single)["result"]);
    assert_eq!(receipt["status"], "0x1");
    // One call is told once, or a block full of calldata would be above what an answer may have.
    let shown = node.result("eth_getTransactionByHash", json!([receipt["transactionHash"]]));
    assert_eq!((&shown["value"], shown.get("calls")), (&json!("0x5"), None));
}

/// Where an orderless nonce and a sequence number are the same, both are shown.
#[test]
fn orderless_16_the_pool_is_shown_with_orderless_transactions() {
    let node = Node::start(&["--block-time", "24m"]);
    let waiting = [
        signed(&node, orderless(alice().address, 0, now(&node) + 40, batch())),
        signed(&node, orderless(alice().address, u64::MAX, now(&node) + 40, batch())),
        to_bob(0),
        to_bob(2),
    ];
    for transaction in &waiting {
        assert_eq!(node.send(transaction)["result"], transaction.hash().to_string());
    }
    assert_eq!(node.result("txpool_status", json!([])), json!({ "pending": "0x3", "queued": "0x1" }));
    let content = node.result("txpool_contentFrom", json!([ALICE]));
    let names = |part: &str| content[part].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names("pending"), ["0", "orderless-0", "orderless-18446744073709551615"]);
    assert_eq!(names("queued"), ["2"]);
    let last = &content["pending"]["orderless-18446744073709551615"];
    assert_eq!(last["hash"], waiting[1].hash().to_string());
    assert_eq!((&last["almanacType"], &last["blockHash"]), (&json!("0x72"), &Value::Null));
    let inspected = node.result("txpool_inspect", json!([]));
    let of_alice = inspected["pending"].as_object().unwrap().values().next().unwrap();
    assert!(of_alice["orderless-0"].as_str().unwrap().contains(" wei + "), "{inspected}");
    assert_eq!(node.result("txpool_content", json!([]))["pending"].as_object().unwrap().len(), 1);
    // A nonce names no orderless transaction.
    let by_nonce = node.result("eth_getTransactionBySenderAndNonce", json!([ALICE, "0x0"]));
    assert_eq!(by_nonce["hash"], waiting[2].hash().to_string());
}

#[test]
fn native_sequence_numbers_failures_and_traces() {
    let node = Node::start(&[]);
    // The ledger refuses every call.
    let ledger = almanac_primitives::addresses::LEDGER;
    let mut calls = batch();
    calls.push(native_call(ledger, 0, Bytes::new()));
    let transaction = signed(&node, native(alice().address, 0, calls));
    let receipt = node.receipt(&node.send(&transaction)["result"]);
    assert_eq!((&receipt["status"], &receipt["failedCall"]), (&json!("0x0"), &json!("0x2")));
    let shown = node.result("eth_getTransactionByHash", json!([receipt["transactionHash"]]));
    assert_eq!(shown["replayProtector"], json!({ "sequenceNumber": "0x0" }));
    assert_eq!(node.result("eth_getTransactionBySenderAndNonce", json!([ALICE, "0x0"])), shown);
    let trace = node
        .result("debug_traceTransaction", json!([receipt["transactionHash"], { "tracer": "callTracer" }]));
    let calls = trace["calls"].as_array().unwrap();
    assert_eq!(calls.len(), 3, "{trace}");
    assert_eq!(calls[1]["input"], "0x0102");
    assert!(node.balance("0x0707070707070707070707070707070707070707").is_zero(), "all or nothing");
}

/// What a client asks before it sends: native transactions as the node shows them, signed or not.
fn asked(calls: &[almanac_primitives::NativeCall]) -> Value {
    let calls = calls.iter().map(|call| json!({ "to": call.to, "value": call.value, "data": call.input }));
    json!({ "from": ALICE, "calls": calls.collect::<Vec<_>>() })
}

fn with(request: &Value, fields: &Value) -> Value {
    let mut request = request.clone();
    request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    request
}

#[test]
fn orderless_01_a_native_batch_is_estimated_called_and_traced() {
    let node = Node::start(&[]);
    let expiration = now(&node) + 40;
    let estimate = |request: &Value| number(&node.result("eth_estimateGas", json!([request])));
    let request = asked(&batch());
    let sequence = estimate(&request);
    let protector = json!({ "nonce": "0x7", "expiration": format!("{expiration:#x}") });
    let orderless_gas = estimate(&with(&request, &json!({ "replayProtector": protector })));
    assert_eq!(orderless_gas, sequence + 2_000);
    let paid = estimate(&with(&request, &json!({ "replayProtector": protector, "feePayer": BOB })));
    assert_eq!(paid, orderless_gas + PARTY_GAS + SIGNATURE_GAS);
    // Exactly that gas is enough, and one less is not.
    for (nonce, gas_limit, status) in [(7, orderless_gas, "0x1"), (8, orderless_gas - 1, "0x0")] {
        let transaction = orderless(alice().address, nonce, expiration, batch());
        // The accounts of the first are there for the second.
        let transaction =
            NativeTransaction { gas_limit, calls: fresh(nonce, transaction.calls), ..transaction };
        let receipt = node.receipt(&node.send(&signed(&node, transaction))["result"]);
        assert_eq!(receipt["status"], status, "{gas_limit}: {receipt}");
    }
    // A transaction as it is shown can be tried again, although its nonce is used.
    let block = node.result("eth_getBlockByNumber", json!(["latest", true]));
    let shown = &block["transactions"][0];
    assert_eq!(shown["almanacType"], "0x72");
    assert_eq!(node.result("eth_call", json!([with(shown, &json!({ "gas": "0x100000" })), "latest"])), "0x");
    let trace = node.result("debug_traceCall", json!([request, "latest", { "tracer": "callTracer" }]));
    assert_eq!(trace["calls"].as_array().unwrap().len(), 2, "{trace}");
}

/// The same calls to accounts that only this nonce names.
fn fresh(nonce: u64, calls: Vec<almanac_primitives::NativeCall>) -> Vec<almanac_primitives::NativeCall> {
    let calls = (0u8..).zip(calls);
    let renamed = |index: u8| Some(Address::repeat_byte(u8::try_from(nonce).unwrap() * 16 + index));
    calls.map(|(index, call)| almanac_primitives::NativeCall { to: renamed(index), ..call }).collect()
}

#[test]
fn orderless_01_a_failing_call_of_a_batch_is_named() {
    let node = Node::start(&[]);
    // The ledger refuses every call.
    let mut failing = batch();
    failing.push(native_call(almanac_primitives::addresses::LEDGER, 0, Bytes::new()));
    for method in ["eth_call", "eth_estimateGas"] {
        let error = &node.call(method, json!([asked(&failing)]))["error"];
        assert_eq!(error["code"], 3, "{method}: {error}");
        assert!(error["message"].as_str().unwrap().starts_with("execution reverted: call 2: "), "{error}");
        assert!(error["data"].as_str().unwrap().len() >= 10, "{error}");
    }
    let blocks =
        json!({ "blockStateCalls": [{ "calls": [asked(&batch()), asked(&failing), asked(&batch())] }] });
    let simulated = node.result("eth_simulateV1", json!([blocks, "latest"]));
    let calls = simulated[0]["calls"].as_array().unwrap();
    let told: Vec<_> =
        calls.iter().map(|call| (call["status"].clone(), call["failedCall"].clone())).collect();
    let fine = || (json!("0x1"), Value::Null);
    assert_eq!(told, [fine(), (json!("0x0"), json!("0x2")), fine()]);
    let message = calls[1]["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("execution reverted: call 2: "), "{message}");
    // Validated, they are transactions that a block could hold: each with the next number, or a nonce of its own.
    let expiration = format!("{:#x}", now(&node) + 30);
    let pair = json!({ "replayProtector": { "nonce": "0x1", "expiration": expiration }, "maxFeePerGas": "0x4a817c800", "gas": "0x30d40" });
    let once = with(&asked(&batch()), &pair);
    let strictly = |calls: &[&Value]| {
        let payload = json!({ "validation": true, "returnFullTransactions": true, "blockStateCalls": [{ "calls": calls }] });
        node.call("eth_simulateV1", json!([payload, "latest"]))
    };
    let block = strictly(&[&once])["result"][0].clone();
    assert_eq!(block["transactions"][0]["replayProtector"], once["replayProtector"], "{block}");
    assert_eq!(
        (&block["calls"][0]["status"], &block["transactions"][0]["value"]),
        (&json!("0x1"), &json!("0xb"))
    );
    let twice = strictly(&[&once, &once])["error"]["message"].clone();
    assert!(twice.as_str().unwrap().contains("NonceAlreadyUsed"), "{twice}");
}

#[test]
fn what_a_native_request_may_not_say_is_named() {
    let node = Node::start(&[]);
    let request = asked(&batch());
    let message = |request: &Value| {
        let answer = node.call("eth_call", json!([request, "latest"]));
        answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    let many = |count: usize| asked(&vec![batch()[0].clone(); count]);
    assert_eq!(node.result("eth_call", json!([many(64), "latest"])), "0x");
    assert!(message(&many(65)).contains("65 calls; 1 to 64 are allowed"));
    assert!(message(&many(0)).contains("0 calls"));
    let protector = json!({ "nonce": "0x1", "expiration": "0x5" });
    for (fields, expected) in [
        (json!({ "to": BOB }), "to is not that of calls"),
        (json!({ "value": "0x1" }), "value is not that of calls"),
        (json!({ "data": "0x01" }), "input is not that of calls"),
        (json!({ "almanacType": "0x71" }), "almanacType 0x71 cannot be tried"),
        (json!({ "feePayer": ALICE }), "FeePayerIsSender"),
        (json!({ "accessList": [{ "address": BOB, "storageKeys": [] }] }), "has no accessList"),
        (
            json!({ "replayProtector": protector, "expiration": "0x6" }),
            "expiration 6 is not the replayProtector's, 5",
        ),
        (json!({ "signatures": ["0x00"] }), "signature 0 of the sender is malformed"),
    ] {
        let refused = message(&with(&request, &fields));
        assert!(refused.contains(expected), "{fields}: {refused}");
    }
    // What the node itself shows there is fine.
    let shown = with(&request, &json!({ "to": ALICE, "value": "0xb", "input": "0x", "type": "0x2" }));
    assert_eq!(node.result("eth_call", json!([shown, "latest"])), "0x");
    let listed = node.call("eth_createAccessList", json!([request]));
    assert!(listed["error"]["message"].as_str().unwrap().contains("no access list"), "{listed}");
}

#[test]
fn orderless_03_submission_judges_expiration_by_the_nodes_clock() {
    let node = Node::start(&[]);
    let refusal = |expiration: u64| -> Value {
        let transaction = signed(&node, orderless(alice().address, 1, expiration, batch()));
        node.send(&transaction)["error"]["message"].clone()
    };
    assert!(refusal(now(&node) + 120).as_str().unwrap().contains("ExpirationTooFar"));
    assert!(refusal(now(&node) - 5).as_str().unwrap().contains("TransactionExpired"));
    let other = Chain { genesis: B256::repeat_byte(1), ..chain_of(&node) };
    let foreign = orderless(alice().address, 1, now(&node) + 30, batch());
    let foreign = sign_native_on(&other, foreign, &[alice().into()], &[]);
    let message = node.send(&foreign)["error"]["message"].clone();
    assert!(message.as_str().unwrap().contains("KeyNotSatisfied"), "{message}");
}
