//! Ethereum's methods over a real socket, with what they must answer.

use crate::support::{socket::Socket, *};
use alloy_primitives::{Address, Signature, U256, hex, keccak256};
use almanac_primitives::testing::contracts::{self, LOGGER, REVERTER, TELLER, deploy};
use serde_json::{Value, json};

fn code(contract: Address) -> Vec<u8> {
    contracts::all().into_iter().find(|(address, _)| *address == contract).unwrap().1.to_vec()
}

fn wait(node: &Node, request: &Value) -> Value {
    node.receipt(&node.result("eth_sendTransaction", json!([request])))
}

fn create(node: &Node, contract: Address) -> Value {
    let receipt = wait(node, &json!({ "from": ALICE, "data": deploy(&code(contract)) }));
    assert_eq!(receipt["status"], "0x1", "{receipt}");
    receipt["contractAddress"].clone()
}

#[track_caller]
fn refused(node: &Node, method: &str, params: Value, code: i64, words: &str) {
    let answer = node.call(method, params);
    assert_eq!(answer["error"]["code"], code, "{method}: {answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains(words), "{method}: {message}");
}

#[test]
fn a_transaction_is_found_by_every_name_it_has() {
    let node = Node::start(&[]);
    let receipt = node.receipt(&node.send(&to_bob(0))["result"]);
    let hash = &receipt["transactionHash"];
    let by_hash = node.result("eth_getTransactionByHash", json!([hash]));
    assert_eq!((&by_hash["hash"], &by_hash["blockNumber"]), (hash, &json!("0x1")));
    assert_eq!(by_hash["transactionIndex"], "0x0", "the prologue is not shown");
    assert_eq!(by_hash["from"].as_str().unwrap().to_lowercase(), ALICE);
    let block = receipt["blockHash"].clone();
    for (method, params) in [
        ("eth_getTransactionByBlockHashAndIndex", json!([block, "0x0"])),
        ("eth_getTransactionByBlockNumberAndIndex", json!(["0x1", "0x0"])),
        ("eth_getTransactionBySenderAndNonce", json!([ALICE, "0x0"])),
    ] {
        assert_eq!(node.result(method, params), by_hash, "{method}");
    }
    let encoded = hex::encode_prefixed(to_bob(0).encoded());
    for (method, params) in [
        ("eth_getRawTransactionByHash", json!([hash])),
        ("eth_getRawTransactionByBlockHashAndIndex", json!([block, "0x0"])),
        ("eth_getRawTransactionByBlockNumberAndIndex", json!(["0x1", "0x0"])),
    ] {
        assert_eq!(node.result(method, params), encoded, "{method}");
    }
    for (method, params) in [
        ("eth_getTransactionByHash", json!([format!("0x{:064x}", 1)])),
        ("eth_getTransactionByBlockNumberAndIndex", json!(["0x1", "0x1"])),
        ("eth_getTransactionByBlockNumberAndIndex", json!(["0x9", "0x0"])),
        ("eth_getRawTransactionByBlockNumberAndIndex", json!(["0x1", "0x1"])),
        ("eth_getRawTransactionByBlockNumberAndIndex", json!(["0x1", "0xffffffffffffffff"])),
        ("eth_getRawTransactionByBlockHashAndIndex", json!([format!("0x{:064x}", 1), "0x0"])),
        ("eth_getTransactionBySenderAndNonce", json!([ALICE, "0x1"])),
        ("eth_getBlockByNumber", json!(["0x2", false])),
        ("eth_getBlockReceipts", json!(["0x2"])),
    ] {
        assert!(node.result(method, params.clone()).is_null(), "{method} {params}");
    }
}

#[test]
fn a_block_shows_what_people_sent() {
    let node = Node::start(&[]);
    let hash = node.receipt(&node.send(&to_bob(0))["result"])["transactionHash"].clone();
    let block = node.result("eth_getBlockByNumber", json!(["latest", false]));
    assert_eq!(block["transactions"], json!([hash]));
    assert_eq!(node.result("eth_getBlockByHash", json!([block["hash"], false])), block);
    let full = node.result("eth_getBlockByNumber", json!(["0x1", true]));
    assert_eq!(full["transactions"][0], node.result("eth_getTransactionByHash", json!([hash])));
    assert_eq!(node.result("eth_getBlockTransactionCountByNumber", json!(["0x1"])), "0x1");
    assert_eq!(node.result("eth_getBlockTransactionCountByHash", json!([block["hash"]])), "0x1");
    let receipts = node.result("eth_getBlockReceipts", json!(["0x1"]));
    assert_eq!(receipts, json!([node.receipt(&hash)]));
    for tag in ["safe", "finalized"] {
        assert_eq!(node.result("eth_getBlockByNumber", json!([tag, false])), block, "{tag}");
    }
    let earliest = node.result("eth_getBlockByNumber", json!(["earliest", false]));
    assert_eq!((&earliest["number"], &earliest["transactions"]), (&json!("0x0"), &json!([])));
    let pending = node.result("eth_getBlockByNumber", json!(["pending", false]));
    assert_eq!((&pending["number"], &pending["parentHash"]), (&json!("0x2"), &block["hash"]));
    assert_eq!((&pending["hash"], &pending["nonce"]), (&Value::Null, &Value::Null));
    for field in ["transactions", "transactionsRoot", "receiptsRoot", "logsBloom", "gasUsed"] {
        assert_eq!(pending[field], earliest[field], "{field}: nothing is in it yet");
    }
    assert_eq!(node.result("eth_getUncleCountByBlockNumber", json!(["0x1"])), "0x0");
}

/// `timestamp` has whole seconds, which two blocks can share; `timestampMs` tells them apart.
#[test]
fn blocks_and_headers_show_their_milliseconds() {
    let node = Node::start(&[]);
    let mut socket = Socket::open(&node.address);
    socket.call("eth_subscribe", json!(["newHeads"]));
    let next = number(&node.result("eth_getBlockByNumber", json!(["latest", false]))["timestamp"]) + 100;
    node.result("evm_setNextBlockTimestamp", json!([next]));
    let mined = node.result("evm_mine_detailed", json!([{ "blocks": 2 }]));
    assert_eq!(mined[0]["timestampMs"], format!("{:#x}", next * 1_000));
    let second = &mined[1];
    assert_ne!(second["timestampMs"], mined[0]["timestampMs"]);
    for heard in [&mined[0], second] {
        assert_eq!(socket.news()["timestampMs"], heard["timestampMs"]);
    }
    let simulated = json!([{ "blockStateCalls": [{ "calls": [{ "from": ALICE, "to": BOB }] }] }, "latest"]);
    let ask = |method: &str, params: Value| node.result(method, params);
    for (block, is_second) in [
        (ask("eth_getBlockByNumber", json!(["0x2", false])), true),
        (ask("eth_getBlockByHash", json!([second["hash"], true])), true),
        (ask("erigon_getHeaderByNumber", json!([2])), true),
        (ask("ots_getBlockDetails", json!([2]))["block"].clone(), true),
        (ask("ots_getBlockTransactions", json!([2, 0, 10]))["fullblock"].clone(), true),
        (ask("eth_getBlockByNumber", json!(["earliest", false])), false),
        (ask("eth_getBlockByNumber", json!(["pending", false])), false),
        (ask("eth_simulateV1", simulated)[0].clone(), false),
    ] {
        assert_eq!(number(&block["timestampMs"]) / 1_000, number(&block["timestamp"]), "{block}");
        assert_eq!(block["timestampMs"] == second["timestampMs"], is_second, "{block}");
    }
}

#[test]
fn what_waits_is_in_the_pool_and_nowhere_else() {
    let node = Node::start(&["--block-time", "24m"]);
    let hash = node.send(&to_bob(0))["result"].clone();
    let parked = node.send(&to_bob(5))["result"].clone();
    let waiting = node.result("eth_getTransactionByHash", json!([hash]));
    assert!(waiting["blockNumber"].is_null() && waiting["blockHash"].is_null(), "{waiting}");
    assert_eq!(node.result("txpool_status", json!([])), json!({ "pending": "0x1", "queued": "0x1" }));
    let content = node.result("txpool_content", json!([]));
    let of_alice = |part: &str| {
        let senders = content[part].as_object().unwrap();
        senders.iter().find(|(sender, _)| sender.to_lowercase() == ALICE).unwrap().1.clone()
    };
    assert_eq!(of_alice("pending")["0"]["hash"], hash);
    assert_eq!(of_alice("queued")["5"]["hash"], parked);
    let from = node.result("txpool_contentFrom", json!([ALICE]));
    assert_eq!((&from["pending"]["0"]["hash"], &from["queued"]["5"]["hash"]), (&hash, &parked));
    assert!(node.result("txpool_inspect", json!([])).to_string().contains("21000 gas"));
    assert_eq!(node.result("eth_getTransactionCount", json!([ALICE, "pending"])), "0x1");
    assert_eq!(node.result("eth_getTransactionCount", json!([ALICE, "latest"])), "0x0");
    // EIP-7966: it is there, but in no block in time.
    let encoded = hex::encode_prefixed(to_bob(1).encoded());
    let answer = node.call("eth_sendRawTransactionSync", json!([encoded, "0x32"]));
    assert_eq!(answer["error"]["code"], 4, "{answer}");
    assert_eq!(answer["error"]["data"], hex::encode_prefixed(to_bob(1).hash()));
}

#[test]
fn every_kind_of_transaction_is_completed_and_signed() {
    let node = Node::start(&[]);
    let price = "0x77359400";
    for (fields, kind) in [
        (json!({ "gasPrice": price }), "0x0"),
        (json!({ "type": "0x0" }), "0x0"),
        (json!({ "gasPrice": price, "accessList": [{ "address": BOB, "storageKeys": [] }] }), "0x1"),
        (json!({}), "0x2"),
        (json!({ "maxFeePerGas": price, "maxPriorityFeePerGas": "0x1" }), "0x2"),
    ] {
        let mut request = json!({ "from": ALICE, "to": BOB, "value": "0x1" });
        request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let receipt = wait(&node, &request);
        assert_eq!((&receipt["type"], &receipt["status"]), (&json!(kind), &json!("0x1")), "{request}");
    }
    let filled = node.result("eth_fillTransaction", json!([{ "from": ALICE, "to": BOB }]));
    assert_eq!((&filled["tx"]["nonce"], &filled["tx"]["gas"]), (&json!("0x5"), &json!("0x5208")));
    let signed = node.result("eth_signTransaction", json!([{ "from": ALICE, "to": BOB, "value": "0x7" }]));
    let encoded = signed["raw"].as_str().unwrap();
    assert_eq!((&signed["tx"]["value"], &signed["tx"]["blockHash"]), (&json!("0x7"), &Value::Null));
    assert_eq!(signed["tx"]["hash"], json!(keccak256(hex::decode(encoded).unwrap())));
    let receipt = node.result("eth_sendRawTransactionSync", json!([encoded]));
    assert_eq!(receipt["transactionHash"], signed["tx"]["hash"]);
    assert_eq!((&receipt["status"], &receipt["blockNumber"]), (&json!("0x1"), &json!("0x6")));
    let stranger = "0x00000000000000000000000000000000000000aa";
    let request = json!([{ "from": stranger, "to": BOB, "gas": "0x5208" }]);
    refused(&node, "eth_sendTransaction", request, -32_000, "unknown account");
    let wrong_chain = json!([{ "from": ALICE, "to": BOB, "chainId": "0x1" }]);
    refused(&node, "eth_sendTransaction", wrong_chain, -32_602, "invalid chain id 1");
}

#[test]
fn messages_are_signed_as_wallets_do() {
    let node = Node::start(&[]);
    let accounts = node.result("eth_accounts", json!([]));
    assert_eq!(accounts.as_array().unwrap().len(), 10);
    let message = "0x68656c6c6f";
    let signed = node.result("eth_sign", json!([ALICE, message]));
    assert_eq!(node.result("personal_sign", json!([message, ALICE])), signed);
    let signature = Signature::from_raw(&hex::decode(signed.as_str().unwrap()).unwrap()).unwrap();
    assert_eq!(signature.recover_address_from_msg("hello").unwrap(), ALICE.parse::<Address>().unwrap());

    let data = json!({
        "types": {
            "EIP712Domain": [{ "name": "name", "type": "string" }],
            "Mail": [{ "name": "contents", "type": "string" }],
        },
        "primaryType": "Mail", "domain": { "name": "Test" }, "message": { "contents": "hi" },
    });
    let signed = node.result("eth_signTypedData_v4", json!([ALICE, data]));
    assert_eq!(node.result("eth_signTypedData_v4", json!([ALICE, data.to_string()])), signed, "as text too");
    // The hash by hand: 0x1901, domain separator, hash of the struct.
    let text = |value: &str| keccak256(value).to_vec();
    let domain = keccak256([text("EIP712Domain(string name)"), text("Test")].concat());
    let mail = keccak256([text("Mail(string contents)"), text("hi")].concat());
    let hash = keccak256([&[0x19, 1][..], domain.as_slice(), mail.as_slice()].concat());
    let signature = Signature::from_raw(&hex::decode(signed.as_str().unwrap()).unwrap()).unwrap();
    assert_eq!(signature.recover_address_from_prehash(&hash).unwrap(), ALICE.parse::<Address>().unwrap());
}

#[test]
fn calls_can_be_tried_in_another_world() {
    let node = Node::start(&[]);
    let nobody = "0x00000000000000000000000000000000000000bb";
    let teller = hex::encode_prefixed(code(TELLER));
    let call = |block: Value| {
        let code = json!({ nobody: { "code": teller } });
        let answer = node.result("eth_call", json!([{ "to": nobody }, "latest", code, block]));
        let words = hex::decode(answer.as_str().unwrap()).unwrap();
        let word = |n: usize| U256::from_be_slice(&words[n * 32..][..32]);
        (word(0), word(1), word(4), word(6))
    };
    let (.., base_fee, coinbase) = call(json!({}));
    assert_eq!((base_fee, coinbase), (U256::from(1_000_000_000), U256::ZERO));
    let changed =
        json!({ "number": "0x64", "time": "0x77359400", "baseFeePerGas": "0x5", "feeRecipient": BOB });
    let (number, time, base_fee, coinbase) = call(changed);
    assert_eq!((number, time, base_fee), (U256::from(100), U256::from(0x7735_9400), U256::from(5)));
    assert_eq!(coinbase, U256::from_be_slice(&hex::decode(BOB).unwrap()));

    let poor = json!({ "from": nobody, "to": BOB, "value": "0x64" });
    refused(&node, "eth_call", json!([poor, "latest"]), -32_000, "insufficient funds");
    let rich = json!({ nobody: { "balance": "0x64" } });
    assert_eq!(node.result("eth_call", json!([poor, "latest", rich])), "0x");
    // Slot 1 is read by a program that returns it: replaced alone, and with all others gone.
    let reader = json!({ "code": "0x60015460005260206000f3", "stateDiff": { format!("0x{:064x}", 1): format!("0x{:064x}", 7) } });
    let answer = node.result("eth_call", json!([{ "to": nobody }, "latest", { nobody: reader }]));
    assert_eq!(answer, format!("0x{:064x}", 7));
    let both = json!({ nobody: { "state": {}, "stateDiff": {} } });
    refused(
        &node,
        "eth_call",
        json!([{ "to": nobody }, "latest", both]),
        -32_602,
        "both state and stateDiff",
    );
    let prices = json!([{ "to": BOB, "gasPrice": "0x1", "maxFeePerGas": "0x1" }, "latest"]);
    refused(&node, "eth_call", prices, -32_602, "give one of them");
}

#[test]
fn blocks_are_simulated_on_top_of_each_other() {
    let node = Node::start(&[]);
    node.receipt(&node.send(&to_bob(0))["result"]);
    let reverter = hex::encode_prefixed(code(REVERTER));
    let nobody = "0x00000000000000000000000000000000000000bb";
    let request = json!({
        "traceTransfers": true,
        "blockStateCalls": [
            {
                "stateOverrides": { nobody: { "code": reverter } },
                "calls": [{ "from": ALICE, "to": "0x00000000000000000000000000000000000000cc", "value": "0x5" }],
            },
            {
                "blockOverrides": { "time": "0x77359400" },
                "calls": [
                    { "from": "0x00000000000000000000000000000000000000cc", "to": BOB, "value": "0x5" },
                    { "from": ALICE, "to": nobody },
                ],
            },
        ],
    });
    let blocks = node.result("eth_simulateV1", json!([request, "latest"]));
    assert_eq!((number(&blocks[0]["number"]), number(&blocks[1]["number"])), (2, 3));
    assert_eq!(blocks[1]["parentHash"], blocks[0]["hash"]);
    assert_eq!(blocks[1]["timestamp"], "0x77359400");
    let first = &blocks[0]["calls"][0];
    assert_eq!(first["status"], "0x1");
    assert_eq!(first["logs"][0]["data"], format!("0x{:064x}", 5), "the transfer: {first}");
    assert_eq!(blocks[1]["calls"][0]["status"], "0x1", "the money is there: {blocks}");
    let failed = &blocks[1]["calls"][1];
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("0x0"), &json!(3)));
    assert_eq!(failed["returnData"], format!("0x{:064x}", 42));
    assert_eq!(node.result("eth_blockNumber", json!([])), "0x1", "nothing happened");

    let call = json!({ "from": nobody, "to": BOB });
    let strict = |fee: &str| {
        let call = json!({ "from": ALICE, "to": BOB, "maxFeePerGas": fee, "nonce": "0x1" });
        json!([{ "validation": true, "blockStateCalls": [{ "calls": [call] }] }, "latest"])
    };
    assert_eq!(node.result("eth_simulateV1", strict("0x77359400"))[0]["calls"][0]["status"], "0x1");
    refused(&node, "eth_simulateV1", strict("0x1"), -38_012, "base fee");
    let nonce = |nonce: &str| {
        let call = json!({ "from": ALICE, "to": BOB, "maxFeePerGas": "0x77359400", "nonce": nonce });
        json!([{ "validation": true, "blockStateCalls": [{ "calls": [call] }] }, "latest"])
    };
    refused(&node, "eth_simulateV1", nonce("0x0"), -38_010, "nonce");
    refused(&node, "eth_simulateV1", nonce("0x2"), -38_011, "nonce");
    let placed =
        |overrides: Value| json!([{ "blockStateCalls": [{ "blockOverrides": overrides }] }, "latest"]);
    refused(
        &node,
        "eth_simulateV1",
        placed(json!({ "number": "0x1" })),
        -38_020,
        "does not come after block 1",
    );
    refused(&node, "eth_simulateV1", placed(json!({ "time": "0x1" })), -38_021, "does not come after");
    let full =
        json!([{ "returnFullTransactions": true, "blockStateCalls": [{ "calls": [call] }] }, "latest"]);
    let shown = node.result("eth_simulateV1", full)[0]["transactions"][0].clone();
    assert_eq!((&shown["nonce"], &shown["gas"]), (&json!("0x0"), &json!("0x1c9c380")), "{shown}");
    let many = |count: usize| json!([{ "blockStateCalls": vec![json!({ "calls": [] }); count] }, "latest"]);
    assert_eq!(node.result("eth_simulateV1", many(256)).as_array().unwrap().len(), 256);
    refused(&node, "eth_simulateV1", many(257), -32_005, "limit of 256");
    let calls =
        |count: usize| json!([{ "blockStateCalls": [{ "calls": vec![call.clone(); count] }] }, "latest"]);
    refused(&node, "eth_simulateV1", calls(1_001), -32_005, "limit of 1000");
}

#[test]
fn logs_are_found_and_filters_tell_news_once() {
    let node = Node::start(&[]);
    let logger = create(&node, LOGGER);
    let blocks = node.result("eth_newBlockFilter", json!([]));
    let logs = node.result("eth_newFilter", json!([{ "address": logger }]));
    let pending = node.result("eth_newPendingTransactionFilter", json!([]));
    let receipts: Vec<Value> = (0..3)
        .map(|n| wait(&node, &json!({ "from": ALICE, "to": logger, "data": format!("0x0{n}") })))
        .collect();
    let found =
        node.result("eth_getLogs", json!([{ "address": logger, "fromBlock": "0x0", "toBlock": "latest" }]));
    let expected: Vec<Value> = receipts.iter().map(|receipt| receipt["logs"][0].clone()).collect();
    assert_eq!(found, json!(expected));
    let topic = found[0]["topics"][0].clone();
    let by_topic = json!([{ "topics": [[topic, logger.as_str().map(|_| format!("0x{:064x}", 1))]], "fromBlock": "0x0" }]);
    assert_eq!(node.result("eth_getLogs", by_topic), found);
    let at = json!([{ "blockHash": receipts[1]["blockHash"] }]);
    assert_eq!(node.result("eth_getLogs", at), json!([expected[1]]));
    assert_eq!(
        node.result("eth_getLogs", json!([{ "topics": [null, topic], "fromBlock": "0x0" }])),
        json!([])
    );

    let hashes =
        |receipts: &[Value], key: &str| json!(receipts.iter().map(|r| r[key].clone()).collect::<Vec<_>>());
    assert_eq!(node.result("eth_getFilterChanges", json!([blocks])), hashes(&receipts, "blockHash"));
    assert_eq!(node.result("eth_getFilterChanges", json!([pending])), hashes(&receipts, "transactionHash"));
    assert_eq!(node.result("eth_getFilterChanges", json!([logs])), json!(expected));
    for filter in [&blocks, &logs, &pending] {
        assert_eq!(node.result("eth_getFilterChanges", json!([filter])), json!([]), "only once");
    }
    assert_eq!(node.result("eth_uninstallFilter", json!([logs])), true);
    assert_eq!(node.result("eth_uninstallFilter", json!([logs])), false);
    refused(&node, "eth_getFilterChanges", json!([logs]), -32_000, "filter not found");
    // A filter without bounds is about the last block, whichever that is when it is asked.
    let unbounded = node.result("eth_newFilter", json!([{ "address": logger }]));
    assert_eq!(node.result("eth_getFilterLogs", json!([unbounded])), json!([expected[2]]));
    let last = wait(&node, &json!({ "from": ALICE, "to": logger, "data": "0x09" }));
    assert_eq!(node.result("eth_getFilterLogs", json!([unbounded])), last["logs"]);
    assert_eq!(node.result("eth_getFilterChanges", json!([unbounded])), last["logs"]);
    refused(&node, "eth_getFilterLogs", json!([blocks]), -32_602, "not one over logs");
}

/// A chain that went back and grew again has new blocks at old heights: a filter tells of those too.
#[test]
fn filters_notice_that_the_chain_went_back() {
    let node = Node::start(&[]);
    let (blocks, snapshot) =
        (node.result("eth_newBlockFilter", json!([])), node.result("evm_snapshot", json!([])));
    let news = || node.result("eth_getFilterChanges", json!([blocks]));
    let first = node.receipt(&node.send(&to_bob(0))["result"])["blockHash"].clone();
    assert_eq!(news(), json!([first]));
    assert_eq!(node.result("evm_revert", json!([snapshot])), true);
    let second = wait(&node, &json!({ "from": ALICE, "to": BOB, "value": "0x9" }))["blockHash"].clone();
    assert_ne!(first, second);
    assert_eq!(news(), json!([second]), "at the same height as the one before");
    assert_eq!(news(), json!([]));
}

#[test]
fn log_searches_have_limits_on_both_sides() {
    let node = Node::start(&[]);
    let range = |to: u64| json!([{ "fromBlock": "0x1", "toBlock": format!("{to:#x}") }]);
    assert_eq!(node.result("eth_getLogs", range(1 << 40)), json!([]), "there is nothing beyond the tip");
    node.result("anvil_mine", json!(["0x2711"]));
    assert_eq!(node.result("eth_getLogs", range(10_000)), json!([]));
    refused(&node, "eth_getLogs", range(10_001), -32_005, "10001 blocks is above the limit of 10000");
    let many = |count: usize| {
        let addresses: Vec<String> = (0..count).map(|n| format!("0x{n:040x}")).collect();
        json!([{ "address": addresses }])
    };
    assert_eq!(node.result("eth_getLogs", many(100)), json!([]));
    refused(&node, "eth_getLogs", many(101), -32_005, "limit of 100");
    refused(
        &node,
        "eth_getLogs",
        json!([{ "fromBlock": "0x5", "toBlock": "0x4" }]),
        -32_602,
        "before it begins",
    );
}

#[test]
fn fees_are_told_as_they_were() {
    let node = Node::start(&[]);
    for nonce in 0..3 {
        node.receipt(&node.send(&to_bob(nonce))["result"]);
    }
    let history = node.result("eth_feeHistory", json!(["0x2", "latest", [0.0, 50.0, 100.0]]));
    assert_eq!(history["oldestBlock"], "0x2");
    let fees: Vec<u64> = history["baseFeePerGas"].as_array().unwrap().iter().map(number).collect();
    let fee_of =
        |block: &str| number(&node.result("eth_getBlockByNumber", json!([block, false]))["baseFeePerGas"]);
    assert_eq!(fees, [fee_of("0x2"), fee_of("0x3"), fee_of("pending")]);
    let receipt = node.result("eth_getBlockReceipts", json!(["0x3"]))[0].clone();
    let tip = number(&receipt["effectiveGasPrice"]) - fee_of("0x3");
    assert_eq!(history["reward"][1], json!(vec![format!("{tip:#x}"); 3]));
    let used = number(&receipt["gasUsed"]) as f64 / 30_000_000.0;
    assert!((history["gasUsedRatio"][1].as_f64().unwrap() - used).abs() < 1e-9);
    let none = node.result("eth_feeHistory", json!(["0x0", "latest", []]));
    assert_eq!(
        (&none["baseFeePerGas"], &none["gasUsedRatio"]),
        (&json!([format!("{:#x}", fee_of("pending"))]), &json!([]))
    );
    assert!(none["reward"].is_null(), "nobody asked for tips: {none}");
    let all = node.result("eth_feeHistory", json!(["0x400", "0x1", null]));
    assert_eq!((&all["oldestBlock"], all["gasUsedRatio"].as_array().unwrap().len()), (&json!("0x0"), 2));
    refused(&node, "eth_feeHistory", json!(["0x1", "latest", [50.0, 10.0]]), -32_602, "must rise");
    refused(&node, "eth_feeHistory", json!(["0x1", "latest", [101.0]]), -32_602, "must rise");
    let many: Vec<f64> = (0..101).map(|n| f64::from(n) / 2.0).collect();
    refused(&node, "eth_feeHistory", json!(["0x1", "latest", many]), -32_005, "limit of 100");
    assert!(number(&node.result("eth_gasPrice", json!([]))) > fee_of("pending"));
}

#[test]
fn an_access_list_names_what_a_call_touches() {
    let node = Node::start(&[]);
    let parameters = "0x000000000000000000000000000000000000a105";
    let witness = create(&node, contracts::WITNESS);
    let list = node.result("eth_createAccessList", json!([{ "from": ALICE, "to": witness }]));
    let slots = list["accessList"][0]["storageKeys"].as_array().unwrap();
    assert_eq!(slots.len(), 4, "{list}");
    let reverting = json!([{ "from": ALICE, "to": parameters, "data": "0xffffffff" }]);
    assert!(node.result("eth_createAccessList", reverting)["error"].as_str().unwrap().contains("reverted"));
}

#[test]
fn code_and_storage_are_told_at_any_block() {
    let node = Node::start(&[]);
    let counter = create(&node, contracts::COUNTER);
    wait(&node, &json!({ "from": ALICE, "to": counter }));
    let code = hex::encode_prefixed(code(contracts::COUNTER));
    assert_eq!(node.result("eth_getCode", json!([counter, "latest"])), code);
    assert_eq!(node.result("eth_getCode", json!([counter, "0x0"])), "0x");
    let slot = format!("0x{:0>64}", ALICE.trim_start_matches("0x"));
    let at = |block: Value| node.result("eth_getStorageAt", json!([counter, slot, block]));
    assert_eq!(
        (at(json!("0x1")), at(json!({ "blockNumber": "0x2" }))),
        (json!(format!("0x{:064x}", 0)), json!(format!("0x{:064x}", 1)))
    );
    let info = node.result("eth_getAccountInfo", json!([counter, "latest"]));
    assert_eq!((&info["nonce"], &info["code"]), (&json!("0x1"), &json!(code)));
}
