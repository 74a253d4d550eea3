//! What a developer sets for later blocks, and what is refused with a reason.

use crate::support::*;
use serde_json::{Value, json};
use std::time::Duration;

const NOBODY: &str = "0x00000000000000000000000000000000deadbeef";

fn latest(node: &Node) -> Value {
    node.result("eth_getBlockByNumber", json!(["latest", false]))
}

#[track_caller]
fn refused(node: &Node, method: &str, params: Value, code: i64, words: &str) {
    let answer = node.call(method, params);
    assert_eq!(answer["error"]["code"], code, "{method}: {answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains(words), "{method}: {answer}");
}

#[test]
fn the_gas_limit_of_blocks_is_a_parameter_that_tools_can_set() {
    let node = Node::start(&[]);
    assert_eq!(number(&latest(&node)["gasLimit"]), 30_000_000);
    for (method, gas) in [
        ("evm_setBlockGasLimit", 120_000_000),
        ("anvil_setBlockGasLimit", 10_000_000),
        ("hardhat_setBlockGasLimit", 29_999_999),
    ] {
        assert_eq!(node.result(method, json!([format!("{gas:#x}")])), true);
        node.result("evm_mine", json!([]));
        assert_eq!(number(&latest(&node)["gasLimit"]), gas, "{method}");
    }
    let height = node.height();
    assert_eq!(node.result("evm_setBlockGasLimit", json!(["0x1c9c37f"])), true);
    assert_eq!(node.height(), height, "what is so already needs no block");
    for gas in ["0x98967f", "0x7270e01", "0xffffffffffffffffffffffffffffffff"] {
        refused(&node, "evm_setBlockGasLimit", json!([gas]), -32_602, "block_gas_max");
    }
    assert_eq!(node.height(), height, "nor has what is refused one");
    // A call may use as much as a block.
    let gas_left =
        json!([{ "to": NOBODY, "gas": "0x7270e00" }, "latest", { NOBODY: { "code": "0x5a5f5260205ff3" } }]);
    assert!(number(&node.result("eth_call", gas_left)) < 30_000_000);
}

/// A base fee that was set is for the block that tools mean, not for the one that the setting makes.
#[test]
fn setting_the_gas_limit_leaves_a_base_fee_that_was_set() {
    let node = Node::start(&[]);
    node.result("anvil_setNextBlockBaseFeePerGas", json!(["0x12a05f200"]));
    node.result("evm_setBlockGasLimit", json!(["0x2faf080"]));
    node.result("evm_mine", json!([]));
    let block = latest(&node);
    assert_eq!((number(&block["baseFeePerGas"]), number(&block["gasLimit"])), (5_000_000_000, 50_000_000));
}

#[test]
fn an_edited_chain_comes_back_with_its_gas_limit() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["--datadir", directory.path().to_str().unwrap()];
    let mut node = Node::start(&arguments);
    node.result("evm_setBlockGasLimit", json!(["0x2faf080"]));
    node.signal("-TERM");
    node.wait();
    let node = Node::start(&arguments);
    node.result("evm_mine", json!([]));
    assert_eq!(number(&latest(&node)["gasLimit"]), 50_000_000);
}

#[test]
fn blocks_keep_a_distance_if_told_to() {
    let node = Node::start(&[]);
    let time = || number(&latest(&node)["timestamp"]);
    let start = time();
    node.result("anvil_setBlockTimestampInterval", json!([100]));
    node.receipt(&node.send(&to_bob(0))["result"]);
    assert_eq!(time(), start + 100);
    node.result("evm_mine", json!([{ "blocks": 3 }]));
    assert_eq!(time(), start + 400);
    let pending = node.result("eth_getBlockByNumber", json!(["pending", false]));
    assert!([start + 400, start + 500].contains(&number(&pending["timestamp"])));
    let snapshot = node.result("evm_snapshot", json!([]));
    node.result("evm_setNextBlockTimestamp", json!([start + 1_000]));
    node.result("evm_mine", json!([{ "blocks": 2 }]));
    assert_eq!(time(), start + 1_100, "it goes on from a time that was set");
    assert_eq!(node.result("anvil_removeBlockTimestampInterval", json!([])), true);
    assert_eq!(node.result("anvil_removeBlockTimestampInterval", json!([])), false);
    node.result("evm_mine", json!([]));
    assert!((start + 1_100..start + 1_150).contains(&time()), "the clock counts again");
    node.result("evm_revert", json!([snapshot]));
    node.result("evm_mine", json!([]));
    assert_eq!(time(), start + 500, "a snapshot has the distance too");
    node.result("anvil_setBlockTimestampInterval", json!([0]));
    node.result("evm_mine", json!([]));
    assert_eq!(time(), start + 500, "less than a millisecond there cannot be, and no second need pass");
    refused(&node, "anvil_setBlockTimestampInterval", json!(["0xffffffffffffffff"]), -32_602, "too long");
    refused(&node, "anvil_setBlockTimestampInterval", json!([9_007_199_254_741_u64]), -32_602, "latest time");
}

#[test]
fn mining_can_answer_with_the_blocks() {
    let node = Node::start(&[]);
    node.result("evm_setAutomine", json!([false]));
    let hash = node.send(&to_bob(0))["result"].clone();
    let blocks = node.result("evm_mine_detailed", json!([{ "blocks": 2 }]));
    let blocks = blocks.as_array().unwrap();
    assert_eq!(blocks.iter().map(|block| number(&block["number"])).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(blocks[0]["transactions"][0]["hash"], hash);
    assert_eq!(node.result("evm_mine_detailed", json!([])).as_array().unwrap().len(), 1);
    assert_eq!(node.result("evm_mine_detailed", json!([{ "blocks": 0 }])), json!([]));
    assert_eq!(node.height(), 3);
}

#[test]
fn anyone_sends_without_a_signature() {
    let node = Node::start(&[]);
    node.result("anvil_setBalance", json!([NOBODY, "0xde0b6b3a7640000"]));
    let sent = json!([{ "from": NOBODY, "to": BOB, "value": "0x7" }]);
    refused(&node, "eth_sendTransaction", sent.clone(), -32_000, "");
    let receipt = node.receipt(&node.result("eth_sendUnsignedTransaction", sent));
    assert_eq!((&receipt["status"], &receipt["from"]), (&json!("0x1"), &json!(NOBODY)));
    let poor = json!([{ "from": "0x00000000000000000000000000000000deadbee0", "to": BOB, "value": "0x7" }]);
    refused(&node, "eth_sendUnsignedTransaction", poor, -32_000, "insufficient funds");
}

#[test]
fn what_has_no_place_here_is_refused_with_a_reason() {
    let node = Node::start(&[]);
    for (method, params, reason) in [
        ("anvil_setMinGasPrice", json!(["0x1"]), "base fee"),
        ("hardhat_setMinGasPrice", json!(["0x1"]), "base fee"),
        ("hardhat_setPrevRandao", json!([format!("0x{:064x}", 1)]), "follows from the parent"),
        ("anvil_setChainId", json!([1]), "--chain-id"),
        ("anvil_reorg", json!([1, []]), "evm_revert"),
        ("anvil_rollback", json!([1]), "evm_snapshot"),
        ("anvil_setRpcUrl", json!(["http://localhost"]), "genesis"),
    ] {
        refused(&node, method, params, -32_000, reason);
    }
    assert_eq!(node.height(), 0);
}

#[test]
fn lines_about_blocks_can_be_turned_off() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let (node, _) = Node::start_for_programs(&[], log.as_file());
    let text = || std::fs::read_to_string(log.path()).unwrap();
    node.result("evm_mine", json!([]));
    node.result("anvil_setLoggingEnabled", json!([false]));
    node.result("evm_mine", json!([]));
    node.result("hardhat_setLoggingEnabled", json!([true]));
    node.result("evm_mine", json!([]));
    std::thread::sleep(Duration::from_millis(100));
    let said = [1, 2, 3].map(|number| text().contains(&format!("block {number} ·")));
    assert_eq!(said, [true, false, true], "{}", text());
}
