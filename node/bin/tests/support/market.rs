//! Scheduled transactions of AIP-125, as people make them over RPC.

use super::{ALICE, Node, cron::TARGET, number};
use alloy_primitives::{Bytes, U256, hex};
use alloy_sol_types::{SolCall, SolEvent, sol};
use serde_json::{Value, json};

sol!("../../contracts/IScheduledTransactions.sol");
pub use IScheduledTransactions::{ScheduleMapKey, ScheduledTransaction, TransactionScheduledEvent};

pub const MARKET: &str = "0x000000000000000000000000000000000000a101";
pub const GWEI: u64 = 1_000_000_000;

/// One of Alice's that calls [`TARGET`], so many milliseconds after the last block.
pub fn txn(node: &Node, in_ms: u64, bid: u64) -> ScheduledTransaction {
    ScheduledTransaction {
        senderAddr: ALICE.parse().unwrap(),
        scheduledTimeMs: now_ms(node) + in_ms,
        maxGasAmount: 100_000,
        maxGasUnitPrice: bid,
        passSigner: true,
        to: TARGET.parse().unwrap(),
        value: U256::ZERO,
        data: Bytes::new(),
        expiryBlocks: 0,
    }
}

/// Time of the last block.
pub fn now_ms(node: &Node) -> u64 {
    number(&node.result("eth_getBlockByNumber", json!(["latest", false]))["timestampMs"])
}

pub fn deposit(txn: &ScheduledTransaction) -> U256 {
    U256::from(txn.maxGasAmount) * U256::from(txn.maxGasUnitPrice) + txn.value
}

/// The call that inserts it, as `eth_call` and `eth_sendTransaction` take it.
pub fn insertion(txn: &ScheduledTransaction, value: U256) -> Value {
    let call = IScheduledTransactions::insertCall { txn: txn.clone() }.abi_encode();
    request(value, &call)
}

/// Inserts it, and answers with its number and its key.
pub fn insert(node: &Node, txn: &ScheduledTransaction) -> (Value, ScheduleMapKey) {
    let receipt = sent(node, &insertion(txn, deposit(txn)));
    assert_eq!(receipt["status"], "0x1", "{receipt}");
    let log = &receipt["logs"][0];
    let id: U256 = log["topics"][1].as_str().unwrap().parse().unwrap();
    let data = hex::decode(log["data"].as_str().unwrap()).unwrap();
    let (key,) = TransactionScheduledEvent::abi_decode_data(&data).unwrap();
    (json!(format!("{id:#x}")), key)
}

pub fn cancel(node: &Node, key: &ScheduleMapKey) -> Value {
    let call = IScheduledTransactions::cancelCall { key: key.clone() }.abi_encode();
    sent(node, &request(U256::ZERO, &call))
}

pub fn cancel_all(node: &Node) -> Value {
    sent(node, &request(U256::ZERO, &IScheduledTransactions::cancelAllCall {}.abi_encode()))
}

fn request(value: U256, data: &[u8]) -> Value {
    json!({ "from": ALICE, "to": MARKET, "value": format!("{value:#x}"),
        "data": hex::encode_prefixed(data), "gas": "0x200000" })
}

fn sent(node: &Node, request: &Value) -> Value {
    node.receipt(&node.result("eth_sendTransaction", json!([request])))
}
