//! A developer's controls, as tools use them: real requests to a real process.

use crate::support::*;
use alloy_primitives::{U256, hex};
use serde_json::{Value, json};

const NOBODY: &str = "0x9999999999999999999999999999999999999999";
const DEVELOPER: &str = "0x000000000000000000000000000000000000a1d0";
/// Answers every call with the value of its slot 0.
const READER: &str = "0x5f545f5260205ff3";
/// Reverts as long as the block's time is below its slot 0: PUSH0 SLOAD TIMESTAMP LT PUSH1 8 JUMPI STOP
/// JUMPDEST PUSH0 PUSH0 REVERT.
const TIMELOCK: &str = "0x5f544210600857005b5f5ffd";
/// Stores the block's time in slot 0: TIMESTAMP PUSH0 SSTORE STOP.
const STORES_THE_TIME: &str = "0x425f5500";

/// Time of the last block, in seconds.
fn time(node: &Node) -> u64 {
    number(&node.result("eth_getBlockByNumber", json!(["latest", false]))["timestamp"])
}

#[track_caller]
fn refused(node: &Node, method: &str, params: Value, expected: &str) {
    let answer = node.call(method, params);
    let message = answer["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains(expected), "{method}: {answer}");
}

fn send(node: &Node, request: &Value) -> Value {
    node.receipt(&node.result("eth_sendTransaction", json!([request])))
}

#[test]
fn the_next_block_has_the_base_fee_that_was_set() {
    let node = Node::start(&[]);
    let fee_of =
        |block: &str| node.result("eth_getBlockByNumber", json!([block, false]))["baseFeePerGas"].clone();
    for family in ["anvil", "hardhat"] {
        node.result(&format!("{family}_setNextBlockBaseFeePerGas"), json!(["0x12a05f200"]));
        assert_eq!(fee_of("pending"), "0x12a05f200");
        node.result("evm_mine", json!([]));
        assert_eq!(fee_of("latest"), "0x12a05f200");
        assert_ne!(fee_of("pending"), "0x12a05f200", "for one block only");
    }
    // Edits in between are blocks of their own, and leave it to the next real one.
    node.result("anvil_setNextBlockBaseFeePerGas", json!(["0x12a05f200"]));
    node.result("anvil_setBalance", json!([NOBODY, "0x1"]));
    node.result("anvil_setNonce", json!([NOBODY, "0x1"]));
    node.result("evm_mine", json!([]));
    assert_eq!(fee_of("latest"), "0x12a05f200");
    node.result("anvil_setNextBlockBaseFeePerGas", json!(["0x12a05f200"]));
    node.result("anvil_setNextBlockBaseFeePerGas", json!(["0x12a05f201"]));
    assert_eq!(fee_of("pending"), "0x12a05f201", "the later wish counts");
    refused(&node, "anvil_setNextBlockBaseFeePerGas", json!(["0x0"]), "is not in 100000000..=");
}

#[test]
fn accounts_are_edited_under_every_name_and_history_stays_true() {
    let node = Node::start(&[]);
    let slot = json!("0x0");
    let word = format!("0x{:064x}", 0x1234);
    for (n, family) in ["anvil", "hardhat"].into_iter().enumerate() {
        let account = format!("0x{:040x}", 0xabcd + n);
        let call = |name: &str, params: Value| node.result(&format!("{family}_{name}"), params);
        let before = node.height();
        assert!(call("setBalance", json!([account, "0xde0b6b3a7640000"])).is_null());
        assert!(call("setNonce", json!([account, "0x7"])).is_null());
        assert!(call("setCode", json!([account, READER])).is_null());
        assert_eq!(call("setStorageAt", json!([account, slot, word])), true);
        assert_eq!(node.height(), before + 4, "every edit is a block");

        assert_eq!(node.balance(&account), U256::from(10).pow(U256::from(18)));
        assert_eq!(node.result("eth_getTransactionCount", json!([account, "latest"])), "0x7");
        assert_eq!(node.result("eth_getCode", json!([account, "latest"])), READER);
        assert_eq!(node.result("eth_getStorageAt", json!([account, slot, "latest"])), word);
        assert_eq!(node.result("eth_call", json!([{ "to": account }, "latest"])), word);
        let earlier = format!("{before:#x}");
        assert_eq!(node.result("eth_getBalance", json!([account, earlier])), "0x0");
        assert_eq!(node.result("eth_getCode", json!([account, earlier])), "0x");
        call("addBalance", json!([account, "0x1"]));
        assert_eq!(node.balance(&account), U256::from(10).pow(U256::from(18)) + U256::from(1));
    }
    refused(&node, "anvil_setBalance", json!([NOBODY, U256::MAX]), "developer's treasury has only");
    refused(&node, "anvil_setNonce", json!([format!("0x{:040x}", 0xabcd), "0x6"]), "a nonce only grows");
    refused(&node, "anvil_setNonce", json!([NOBODY, "0x10000000000000000"]), "above the largest");
    refused(&node, "anvil_setBalance", json!([DEVELOPER, "0x1"]), "cannot be edited");
    refused(&node, "anvil_setCode", json!(["0x000000000000000000000000000000000000a105", "0x"]), "cannot be");
    let too_large = hex::encode_prefixed(vec![0; 24_577]);
    refused(&node, "anvil_setCode", json!([NOBODY, too_large]), "above the limit of 24576 bytes");
    refused(&node, "anvil_setBalance", json!([NOBODY]), "");
}

#[test]
fn impersonated_accounts_send_without_a_key() {
    let node = Node::start(&[]);
    let request = json!({ "from": NOBODY, "to": BOB, "value": "0x5" });
    node.result("anvil_setBalance", json!([NOBODY, "0xde0b6b3a7640000"]));
    refused(&node, "eth_sendTransaction", json!([request]), "unknown account");

    node.result("hardhat_impersonateAccount", json!([NOBODY]));
    let receipt = send(&node, &request);
    assert_eq!((&receipt["status"], &receipt["from"]), (&json!("0x1"), &json!(NOBODY)));
    assert_eq!(receipt["type"], "0x2");
    // The transaction is found by the same hash, and shows its sender.
    let hash = &receipt["transactionHash"];
    let found = node.result("eth_getTransactionByHash", json!([hash]));
    assert_eq!((&found["hash"], &found["from"]), (hash, &json!(NOBODY)));
    let raw = node.result("eth_getRawTransactionByHash", json!([hash]));
    assert!(raw.as_str().unwrap().starts_with(&format!("0x7d{}", &NOBODY[2..])), "{raw}");
    refused(&node, "eth_sendRawTransaction", json!([raw]), "did not sign");

    let accounts = node.result("eth_accounts", json!([]));
    assert_eq!((accounts.as_array().unwrap().len(), &accounts[10]), (11, &json!(NOBODY)));
    node.result("anvil_impersonateAccount", json!([ALICE]));
    assert_eq!(node.result("eth_accounts", json!([])).as_array().unwrap().len(), 11, "nobody twice");

    node.result("anvil_stopImpersonatingAccount", json!([NOBODY]));
    refused(&node, "eth_sendTransaction", json!([request]), "unknown account");
    node.result("anvil_autoImpersonateAccount", json!([true]));
    assert_eq!(send(&node, &request)["status"], "0x1");
    // A contract sends, and an account whose key the node has still signs.
    node.result("anvil_setCode", json!([NOBODY, READER]));
    assert_eq!(send(&node, &request)["from"], NOBODY);
    let signed = send(&node, &json!({ "from": ALICE, "to": BOB, "value": "0x1" }));
    let raw = node.result("eth_getRawTransactionByHash", json!([signed["transactionHash"]]));
    assert!(raw.as_str().unwrap().starts_with("0x02"), "{raw}");
    let ledger =
        json!([{ "from": "0x000000000000000000000000000000000000a1ff", "to": BOB, "gas": "0x5208" }]);
    refused(&node, "eth_sendTransaction", ledger, "belongs to the chain itself");
    node.result("anvil_autoImpersonateAccount", json!([false]));
}

#[test]
fn blocks_by_hand_on_demand_and_by_interval() {
    let node = Node::start(&[]);
    assert_eq!(node.result("anvil_getAutomine", json!([])), true);
    node.result("evm_setAutomine", json!([false]));
    assert_eq!(node.result("hardhat_getAutomine", json!([])), false);
    let hash = node.send(&to_bob(0))["result"].clone();
    assert_eq!(node.result("evm_mine", json!([])), "0x0");
    assert_eq!(node.receipt(&hash)["blockNumber"], "0x1");
    let before = time(&node);
    node.result("anvil_mine", json!(["0x3", "0x3e8"]));
    assert_eq!(node.height(), 4);
    assert!((3_000..3_060).contains(&(time(&node) - before)), "time is moved before each");
    let before = time(&node);
    node.result("hardhat_mine", json!(["0x3", "0x3e8"]));
    assert!((2_000..2_060).contains(&(time(&node) - before)), "between them");
    node.result("hardhat_mine", json!([]));
    node.result("evm_mine", json!([{ "blocks": 5 }]));
    assert_eq!(node.height(), 13);
    refused(&node, "anvil_mine", json!(["0xffffffffff"]), "above the limit of 20000 per request");
    node.result("anvil_mine", json!(["0x0", "0x5"]));
    assert_eq!(node.height(), 13);

    let (first, second) = (node.send(&to_bob(1))["result"].clone(), node.send(&to_bob(2))["result"].clone());
    assert_eq!(node.result("anvil_dropTransaction", json!([first])), first);
    assert!(node.result("anvil_dropTransaction", json!([first])).is_null());
    node.result("anvil_dropAllTransactions", json!([]));
    node.result("evm_mine", json!([]));
    assert!(node.result("eth_getTransactionByHash", json!([second])).is_null());
    node.send(&to_bob(1));
    node.result("anvil_removePoolTransactions", json!([ALICE]));

    node.result("evm_setAutomine", json!([true]));
    let hash = node.send(&to_bob(1))["result"].clone();
    assert_eq!(node.receipt(&hash)["status"], "0x1");
    node.result("evm_setIntervalMining", json!([1]));
    assert_eq!(node.result("anvil_getIntervalMining", json!([])), 1);
    let before = node.height();
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    assert!((1..=3).contains(&(node.height() - before)));
    node.result("evm_setIntervalMining", json!([0]));
    assert!(node.result("anvil_getIntervalMining", json!([])).is_null());

    node.result("anvil_setCoinbase", json!([NOBODY]));
    node.result("evm_mine", json!([]));
    assert_eq!(node.result("eth_getBlockByNumber", json!(["latest", false]))["miner"], NOBODY);
}

#[test]
fn time_is_moved() {
    let node = Node::start(&[]);
    node.result("evm_mine", json!([]));
    let start = time(&node);
    let moved = node.result("evm_increaseTime", json!(["0xe10"]));
    assert_eq!(moved, 3_600);
    assert_eq!(node.result("evm_increaseTime", json!([400])), 4_000, "all that it was moved");
    node.result("evm_mine", json!([]));
    assert!((start + 4_000..start + 4_060).contains(&time(&node)));

    let next = time(&node) + 100_000;
    node.result("evm_setNextBlockTimestamp", json!([next]));
    node.result("anvil_setBalance", json!([NOBODY, "0x1"]));
    node.result("evm_mine", json!([]));
    assert_eq!(time(&node), next, "an edit did not use it up");
    let lower = "is lower than or equal to previous block's timestamp";
    refused(&node, "evm_setNextBlockTimestamp", json!([next]), lower);
    refused(&node, "evm_mine", json!([next - 5]), lower);
    refused(&node, "evm_setTime", json!([next - 5]), lower);
    refused(&node, "evm_increaseTime", json!(["0xffffffffffffffffffff"]), "too long");
    node.result("evm_mine", json!([{ "timestamp": next + 10 }]));
    assert_eq!(time(&node), next + 10);
    node.result("evm_setTime", json!([next + 500]));
    node.result("evm_mine", json!([]));
    assert!((next + 500..next + 560).contains(&time(&node)));
    let travel = node.result("almanac_increaseTime", json!([10]));
    assert_eq!((&travel["blocks"], &travel["runs"]), (&json!([]), &json!("0x0")));
}

/// Tools move the clock and send, without a block in between: an estimate must see the time that the
/// transaction will see.
#[test]
fn what_is_tried_out_sees_the_time_that_was_set() {
    let node = Node::start(&[]);
    node.result("evm_mine", json!([]));
    node.result("anvil_setCode", json!([NOBODY, TIMELOCK]));
    let opens = format!("{:#x}", time(&node) + 100_000);
    node.result("anvil_setStorageAt", json!([NOBODY, "0x0", opens]));
    let request = json!({ "from": ALICE, "to": NOBODY });
    refused(&node, "eth_estimateGas", json!([request]), "reverted");
    let snapshot = node.result("evm_snapshot", json!([]));
    node.result("evm_increaseTime", json!([100_001]));
    assert_eq!(send(&node, &request)["status"], "0x1");
    assert_eq!(node.result("evm_revert", json!([snapshot])), true);
    refused(&node, "eth_estimateGas", json!([request]), "reverted");
    node.result("evm_setNextBlockTimestamp", json!([opens]));
    assert_eq!(send(&node, &request)["status"], "0x1");
    assert_eq!(time(&node), number(&json!(opens)));
}

/// A call that stores the time costs less in a block whose time is stored already; the transaction comes a second later.
#[test]
fn an_estimate_is_enough_a_second_later_too() {
    let node = Node::start(&[]);
    node.result("evm_mine", json!([]));
    node.result("anvil_setCode", json!([NOBODY, STORES_THE_TIME]));
    let next = time(&node) + 100;
    node.result("anvil_setStorageAt", json!([NOBODY, "0x0", format!("{next:#x}")]));
    node.result("evm_setNextBlockTimestamp", json!([next]));
    let mut request = json!({ "from": ALICE, "to": NOBODY });
    request["gas"] = node.result("eth_estimateGas", json!([request]));
    let filled = node.result("eth_fillTransaction", json!([{ "from": ALICE, "to": NOBODY }]));
    assert_eq!(filled["tx"]["gas"], request["gas"]);
    node.result("evm_setNextBlockTimestamp", json!([next + 1]));
    assert_eq!(send(&node, &request)["status"], "0x1");
    assert_eq!(time(&node), next + 1);
}

#[test]
fn snapshots_bring_everything_back_once() {
    let node = Node::start(&[]);
    let snapshot = node.result("evm_snapshot", json!([]));
    assert_eq!(snapshot, "0x1");
    node.result("anvil_setBalance", json!([NOBODY, "0x5"]));
    node.result("evm_increaseTime", json!([100_000]));
    node.receipt(&node.send(&to_bob(0))["result"]);
    assert_eq!(node.result("evm_revert", json!([snapshot])), true);
    assert_eq!((node.height(), node.balance(NOBODY)), (0, U256::ZERO));
    for gone in [snapshot, json!("0x63"), json!("0xffffffffffffffffffffffff")] {
        assert_eq!(node.result("evm_revert", json!([gone])), false);
    }
    assert_eq!(node.result("evm_increaseTime", json!([1])), 1, "the clock was brought back too");
    node.receipt(&node.send(&to_bob(0))["result"]);
}

#[test]
fn a_chain_in_memory_starts_anew_and_one_in_a_directory_does_not() {
    let node = Node::start(&[]);
    let genesis = node.result("eth_getBlockByNumber", json!(["0x0", false]));
    node.result("anvil_setBalance", json!([NOBODY, "0xde0b6b3a7640000"]));
    node.result("anvil_impersonateAccount", json!([NOBODY]));
    let hash = node.send(&to_bob(0))["result"].clone();
    node.receipt(&hash);
    refused(&node, "hardhat_reset", json!([{ "forking": { "jsonRpcUrl": "http://x" } }]), "its own genesis");
    assert_eq!(node.height(), 2);
    node.result("hardhat_reset", json!([]));
    assert_eq!(node.result("eth_getBlockByNumber", json!(["latest", false])), genesis);
    assert_eq!((node.balance(NOBODY), node.height()), (U256::ZERO, 0));
    assert!(node.result("eth_getTransactionReceipt", json!([hash])).is_null());
    refused(&node, "eth_sendTransaction", json!([{ "from": NOBODY, "to": BOB }]), "unknown account");
    assert_eq!(node.receipt(&node.send(&to_bob(0))["result"])["blockNumber"], "0x1");

    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(&["--datadir", directory.path().to_str().unwrap()]);
    node.result("evm_mine", json!([]));
    refused(&node, "anvil_reset", json!([]), "choose another --datadir");
    assert_eq!(node.height(), 1);
}

/// The index cannot show what it no longer keeps, so the chain stays where it is, and goes on.
#[test]
fn going_back_further_than_history_is_refused() {
    let node = Node::start(&["--history", "3"]);
    let near = node.result("evm_snapshot", json!([]));
    node.result("anvil_mine", json!(["0x2"]));
    assert_eq!(node.result("evm_revert", json!([near])), true);
    let far = node.result("evm_snapshot", json!([]));
    node.result("anvil_mine", json!(["0x14"]));
    refused(&node, "evm_revert", json!([far]), "no longer kept");
    refused(&node, "anvil_reset", json!([]), "no longer kept");
    node.receipt(&node.send(&to_bob(0))["result"]);
    assert_eq!(node.height(), 21);
}

#[test]
fn tools_learn_whom_they_talk_to() {
    let (node, other) = (Node::start(&[]), Node::start(&[]));
    node.result("evm_mine", json!([]));
    let info = node.result("anvil_nodeInfo", json!([]));
    assert_eq!((&info["currentBlockNumber"], &info["hardFork"]), (&json!("0x1"), &json!("osaka")));
    assert_eq!(info["environment"]["chainId"], 31_337);
    assert_eq!(info["environment"]["gasLimit"], "0x1c9c380");
    let metadata = node.result("hardhat_metadata", json!([]));
    assert_eq!((&metadata["chainId"], &metadata["latestBlockNumber"]), (&json!(31_337), &json!(1)));
    assert_eq!(metadata["clientVersion"], node.result("web3_clientVersion", json!([])));
    assert_ne!(metadata["instanceId"], other.result("hardhat_metadata", json!([]))["instanceId"]);
}

#[test]
fn accounts_move_to_another_chain() {
    let node = Node::start(&[]);
    node.receipt(&node.send(&to_bob(0))["result"]);
    node.result("anvil_setBalance", json!([NOBODY, "0x1234"]));
    node.result("anvil_setCode", json!([NOBODY, READER]));
    for slot in 0..40 {
        node.result("anvil_setStorageAt", json!([NOBODY, format!("{slot:#x}"), format!("{:#x}", slot + 1)]));
    }
    let dump = node.result("anvil_dumpState", json!([]));
    let other = Node::start(&[]);
    assert_eq!(other.result("anvil_loadState", json!([dump])), true);
    assert_eq!(other.height(), 1, "all in one block");
    assert_eq!(other.result("anvil_dumpState", json!([])), dump, "the same accounts");
    assert_eq!(other.balance(NOBODY), U256::from(0x1234));
    assert_eq!(other.result("eth_call", json!([{ "to": NOBODY }, "latest"])), format!("0x{:064x}", 1));
    assert_eq!(other.result("anvil_loadState", json!([dump])), true);
    assert_eq!(other.height(), 1, "nothing to do");
    refused(&other, "anvil_loadState", json!(["0x1f8b08"]), "invalid dump of accounts");
}

/// Edits and impersonation are in the blocks: after the harshest of stops, and in a backup, the chain is the same.
#[test]
fn an_edited_chain_survives_kills_and_backups() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (original, restored, backup) = (path("a"), path("b"), path("backup"));
    let tip = |node: &Node| node.result("eth_getBlockByNumber", json!(["latest", false]));
    let mut node = Node::start(&["--datadir", &original]);
    node.result("anvil_setBalance", json!([NOBODY, "0xde0b6b3a7640000"]));
    node.result("anvil_setCode", json!([NOBODY, READER]));
    node.result("anvil_setStorageAt", json!([NOBODY, "0x0", "0x7"]));
    node.result("anvil_impersonateAccount", json!([NOBODY]));
    node.result("evm_increaseTime", json!([86_400]));
    send(&node, &json!({ "from": NOBODY, "to": BOB, "value": "0x5" }));
    let before = tip(&node);
    node.signal("-KILL");
    node.wait();

    let node = Node::start(&["--datadir", &original]);
    assert_eq!(tip(&node), before);
    node.result("anvil_setNonce", json!([NOBODY, "0x64"]));
    let exported = run(&["db", "export", "--datadir", &original, "--out", &backup]);
    assert!(exported.status.success(), "{exported:?}");
    let imported = run(&["db", "import", "--file", &backup, "--datadir", &restored]);
    assert!(imported.status.success(), "{imported:?}");
    let other = Node::start(&["--datadir", &restored]);
    assert_eq!(tip(&other), tip(&node));
    assert_eq!(other.result("anvil_dumpState", json!([])), node.result("anvil_dumpState", json!([])));
}

/// A data directory whose genesis is a network's: the controls are there, the chain refuses.
#[test]
fn a_chain_whose_genesis_is_no_developers_refuses_edits() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let mut node = Node::start(&["--datadir", path]);
    node.signal("-TERM");
    node.wait();
    let file = directory.path().join("genesis.json");
    let genesis = std::fs::read_to_string(&file).unwrap();
    drop(directory);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let file = directory.path().join("genesis.json");
    assert!(genesis.contains("\"developer\": true"));
    std::fs::write(&file, genesis.replace("\"developer\": true,", "")).unwrap();

    let node = Node::start(&["--datadir", path]);
    refused(&node, "anvil_setBalance", json!([NOBODY, "0x1"]), "only a developer chain");
    node.result("anvil_impersonateAccount", json!([NOBODY]));
    let request = json!([{ "from": NOBODY, "to": BOB, "gas": "0x5208" }]);
    refused(&node, "eth_sendTransaction", request, "only a developer chain");
    assert_eq!(node.height(), 0);
    node.receipt(&node.send(&to_bob(0))["result"]);
}
