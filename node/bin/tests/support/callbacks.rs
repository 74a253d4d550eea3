//! Callbacks of the scheduler, as people book them over RPC.

use super::{ALICE, Node, cron::TARGET};
use alloy_primitives::{Address, Bytes, U256, hex};
use alloy_sol_types::{SolCall, sol};
use serde_json::{Value, json};

sol!("../../contracts/ICallbackScheduler.sol");
pub use ICallbackScheduler::Priority;

pub const SCHEDULER: &str = "0x000000000000000000000000000000000000a102";

/// Lets Alice book the handler at [`TARGET`], which has no code yet.
pub fn let_alice_book(node: &Node) {
    node.result("anvil_setBalance", json!([TARGET, "0xde0b6b3a7640000"]));
    node.result("anvil_impersonateAccount", json!([TARGET]));
    let call = ICallbackScheduler::setSchedulerCall { scheduler: ALICE.parse().unwrap(), allowed: true };
    let receipt = send(node, TARGET, U256::ZERO, &call.abi_encode());
    assert_eq!(receipt["status"], "0x1", "{receipt}");
    node.result("anvil_stopImpersonatingAccount", json!([TARGET]));
}

/// The call that books the handler at [`TARGET`].
pub fn order(timestamp: u64, priority: Priority, effort: u64) -> Vec<u8> {
    let handler: Address = TARGET.parse().unwrap();
    let data = Bytes::new();
    ICallbackScheduler::scheduleCall { handler, data, timestamp, priority, executionEffort: effort }
        .abi_encode()
}

/// Books it as Alice, and answers with its number.
pub fn book(node: &Node, timestamp: u64, priority: Priority, effort: u64) -> Value {
    let receipt = send(node, ALICE, U256::from(10).pow(U256::from(18)), &order(timestamp, priority, effort));
    assert_eq!(receipt["status"], "0x1", "{receipt}");
    let id: U256 = receipt["logs"][0]["topics"][1].as_str().unwrap().parse().unwrap();
    json!(format!("{id:#x}"))
}

pub fn cancel(node: &Node, id: &Value) -> Value {
    let id: U256 = id.as_str().unwrap().parse().unwrap();
    send(node, ALICE, U256::ZERO, &ICallbackScheduler::cancelCall { id: id.to() }.abi_encode())
}

fn send(node: &Node, from: &str, value: U256, data: &[u8]) -> Value {
    let request = json!({ "from": from, "to": SCHEDULER, "value": format!("{value:#x}"),
        "data": hex::encode_prefixed(data), "gas": "0x200000" });
    node.receipt(&node.result("eth_sendTransaction", json!([request])))
}
