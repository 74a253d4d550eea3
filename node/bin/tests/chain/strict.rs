//! Blocks with everything that the chain can put into one, read by clients that refuse what they do not know: alloy's
//! `Ethereum` network, and what go-ethereum's `ethclient` and `core/types` require of a node's JSON (decision 0036).

use crate::{
    native::{batch, now, signed},
    support::{
        ALICE, Node,
        cron::{COUNTER, Job, mine_at, set_code},
        number,
        socket::Socket,
        to_bob,
    },
};
use alloy_consensus::{
    EMPTY_OMMER_ROOT_HASH, Transaction as _, Typed2718 as _, constants::EMPTY_TRANSACTIONS,
};
use alloy_eips::{BlockId, BlockNumberOrTag};
use alloy_primitives::{Bloom, Bytes, U256, hex, keccak256};
use alloy_provider::{Provider, ProviderBuilder, network::ReceiptResponse as _};
use almanac_primitives::{
    block::encoded_root,
    testing::native::{native, orderless},
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A chain with a block of runs alone, and one with a prologue that shows, a run, an Ethereum transaction, and native
/// ones of both kinds.
fn full_chain() -> Node {
    let node = Node::start(&[]);
    set_code(&node, COUNTER);
    let job = Job::once(&node, 200);
    Job { at: job.at - 100, ..job.clone() }.make(&node);
    Job { value: U256::from(200_000_000_000_000u64), ..job.clone() }.every(60, 0).make(&node);
    job.make(&node);
    node.result("evm_setAutomine", json!([false]));
    mine_at(&node, job.at - 100);
    let nonce = number(&node.result("eth_getTransactionCount", json!([ALICE, "latest"])));
    node.result("anvil_setNextBlockBaseFeePerGas", json!(["0x12a05f200"]));
    node.result("evm_setNextBlockTimestamp", json!([job.at]));
    let alice = ALICE.parse().unwrap();
    let sent = [
        to_bob(nonce),
        signed(&node, native(alice, nonce + 1, batch())),
        signed(&node, orderless(alice, u64::MAX, now(&node) + 40, batch())),
    ];
    for transaction in &sent {
        assert_eq!(node.send(transaction)["result"], transaction.hash().to_string());
    }
    node.result("evm_mine", json!([]));
    let shown = node.result("eth_getBlockByNumber", json!(["latest", true]));
    let kinds = |field: &str| -> Vec<Value> {
        shown["transactions"].as_array().unwrap().iter().map(|shown| shown[field].clone()).collect()
    };
    assert_eq!(kinds("almanacType")[..2], [json!("0x70"), json!("0x71")], "prologue and run: {shown}");
    let mut users = kinds("almanacType")[2..].to_vec();
    users.sort_by_key(Value::to_string);
    assert_eq!(users, [json!("0x72"), json!("0x72"), Value::Null], "{shown}");
    assert_eq!(kinds("type").len(), 5);
    node
}

fn height(node: &Node) -> u64 {
    number(&node.result("eth_blockNumber", json!([])))
}

#[tokio::test]
async fn native_32_alloys_ethereum_network_reads_every_block() {
    let node = full_chain();
    let provider = ProviderBuilder::new().connect_http(format!("http://{}", node.address).parse().unwrap());
    let mut types = Vec::new();
    for number in 0..=height(&node) {
        let block = provider.get_block_by_number(number.into()).full().await.unwrap().unwrap();
        let json = node.result("eth_getBlockByNumber", json!([format!("{number:#x}"), true]));
        assert_eq!(json!(block.header.hash), json["hash"]);
        let receipts = provider.get_block_receipts(BlockId::number(number)).await.unwrap().unwrap();
        let transactions = block.transactions.as_transactions().unwrap();
        assert_eq!(receipts.len(), transactions.len());
        for (index, (transaction, receipt)) in transactions.iter().zip(&receipts).enumerate() {
            let shown = &json["transactions"][index];
            let hash = *transaction.inner.hash();
            assert_eq!(json!(hash), shown["hash"], "the node's hash, not one made of the fields");
            assert_eq!(provider.get_transaction_by_hash(hash).await.unwrap().unwrap(), *transaction);
            assert_eq!(provider.get_transaction_receipt(hash).await.unwrap().unwrap(), *receipt);
            assert_eq!(receipt.transaction_hash(), hash);
            assert_eq!(receipt.transaction_type() as u8, transaction.ty());
            assert_eq!(json!(transaction.inner.signer()), shown["from"]);
            assert_eq!(json!(transaction.inner.input()), shown["input"]);
            types.push((shown["almanacType"].as_str().unwrap_or_default().to_owned(), transaction.ty()));
        }
    }
    types.sort();
    types.dedup();
    let shown_as = [("", 0), ("", 2), ("0x70", 0), ("0x71", 0), ("0x72", 2)];
    assert_eq!(types, shown_as.map(|(kind, shown)| (kind.to_owned(), shown)));
    let pending = provider.get_block_by_number(BlockNumberOrTag::Pending).full().await.unwrap().unwrap();
    assert_eq!((pending.header.number, pending.header.hash.is_zero()), (height(&node) + 1, true));
}

#[test]
fn native_33_go_ethereums_client_reads_every_block() {
    let node = full_chain();
    let mut socket = Socket::open(&node.address);
    socket.call("eth_subscribe", json!(["newHeads"]));
    node.result("evm_mine", json!([]));
    go_header(&socket.news());
    let (mut are_runs_alone, mut pairs) = (0, BTreeSet::new());
    let blocks = (0..=height(&node)).map(|number| format!("{number:#x}")).chain(["pending".to_owned()]);
    for name in blocks {
        let block = node.result("eth_getBlockByNumber", json!([name, true]));
        go_block(&block);
        for transaction in block["transactions"].as_array().unwrap() {
            assert_eq!(transaction["blockHash"], block["hash"]);
            // Libraries take a transaction with the same pair for a replacement.
            let pair = (transaction["from"].to_string(), transaction["nonce"].to_string());
            assert!(pairs.insert(pair), "another transaction shows this pair too: {transaction}");
            go_receipt(&node.result("eth_getTransactionReceipt", json!([transaction["hash"]])));
        }
        let all = block["transactions"].as_array().unwrap();
        if !all.is_empty() && all.iter().all(|shown| shown["almanacType"] == "0x71") {
            are_runs_alone += 1;
            let encoded: Vec<Bytes> = all.iter().map(|run| encoding(&node, run)).collect();
            assert_eq!(block["transactionsRoot"], json!(encoded_root(&encoded)));
        }
    }
    assert_eq!(are_runs_alone, 1, "its header has the root of an empty list");
}

/// The encoding of a run, as its proof has it.
fn encoding(node: &Node, run: &Value) -> Bytes {
    let proof = node.result("almanac_getProof", json!([{ "run": run["hash"] }]));
    let encoded: Bytes = proof["receipt"]["transaction"].as_str().unwrap().parse().unwrap();
    assert_eq!(json!(keccak256(&encoded)), run["hash"]);
    encoded
}

/// What `ethclient` compares in a block, once header and transactions are read.
fn go_block(block: &Value) {
    go_header(block);
    assert_eq!(block["sha3Uncles"], json!(EMPTY_OMMER_ROOT_HASH));
    assert_eq!(block["uncles"], json!([]));
    let transactions = block["transactions"].as_array().unwrap();
    let says_empty = block["transactionsRoot"] == json!(EMPTY_TRANSACTIONS);
    assert_eq!(says_empty, transactions.is_empty(), "{block}");
    transactions.iter().for_each(go_transaction);
}

/// The fields without which a header is refused, with their widths.
fn go_header(header: &Value) {
    for field in ["parentHash", "sha3Uncles", "stateRoot", "transactionsRoot", "receiptsRoot"] {
        is_bytes(header, field, 32);
    }
    is_bytes(header, "logsBloom", Bloom::len_bytes());
    for field in ["difficulty", "number", "gasLimit", "gasUsed", "timestamp", "baseFeePerGas"] {
        is_quantity(header, field);
    }
    assert!(hex::decode(header["extraData"].as_str().unwrap()).is_ok());
}

/// A type that it knows and the fields of that type; a signature that is empty or passes its check of the range.
fn go_transaction(transaction: &Value) {
    for field in ["nonce", "gas", "value", "r", "s", "v"] {
        is_quantity(transaction, field);
    }
    assert!(hex::decode(transaction["input"].as_str().unwrap()).is_ok());
    match transaction["type"].as_str().unwrap() {
        "0x0" => is_quantity(transaction, "gasPrice"),
        "0x2" => {
            let fields = ["chainId", "maxPriorityFeePerGas", "maxFeePerGas"];
            fields.iter().for_each(|field| is_quantity(transaction, field));
            assert_eq!(transaction["yParity"], transaction["v"]);
        }
        other => panic!("{other} in {transaction}"),
    }
    // Both curve numbers are in range, or all of it is zero and nothing is checked.
    let signature = ["r", "s", "v"].map(|field| transaction[field].as_str().unwrap());
    match transaction["almanacType"].as_str() {
        Some("0x72") => assert_eq!(signature, ["0x0"; 3]),
        Some(_) => assert_eq!(signature, ["0x1", "0x1", "0x1b"]),
        None => assert!(signature[..2].iter().all(|part| *part != "0x0"), "{transaction}"),
    }
}

fn go_receipt(receipt: &Value) {
    for field in ["type", "status", "cumulativeGasUsed", "gasUsed", "effectiveGasPrice", "transactionIndex"] {
        is_quantity(receipt, field);
    }
    assert!(number(&receipt["type"]) <= 4, "{receipt}");
    is_bytes(receipt, "transactionHash", 32);
    is_bytes(receipt, "logsBloom", Bloom::len_bytes());
    for log in receipt["logs"].as_array().unwrap() {
        is_bytes(log, "address", 20);
        is_bytes(log, "transactionHash", 32);
        assert!(log["topics"].is_array() && hex::decode(log["data"].as_str().unwrap()).is_ok());
    }
}

#[track_caller]
fn is_bytes(object: &Value, field: &str, width: usize) {
    let bytes = object[field].as_str().and_then(|text| hex::decode(text).ok());
    assert_eq!(bytes.map(|bytes| bytes.len()), Some(width), "{field} of {object}");
}

/// Hexadecimal without leading zeros: go-ethereum refuses those.
#[track_caller]
fn is_quantity(object: &Value, field: &str) {
    let digits = object[field].as_str().and_then(|text| text.strip_prefix("0x")).unwrap_or_default();
    let is_canonical = digits == "0" || !digits.is_empty() && !digits.starts_with('0');
    assert!(is_canonical && U256::from_str_radix(digits, 16).is_ok(), "{field} of {object}");
}
