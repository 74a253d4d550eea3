//! Jobs of the cron registry, as people make them over RPC.

use super::{ALICE, BOB, Node, number};
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, hex};
use alloy_sol_types::{SolCall, sol};
use almanac_primitives::{UserTransaction, addresses::CRON_REGISTRY, testing};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    time::{SystemTime, UNIX_EPOCH},
};

sol!("../../contracts/ICronRegistry.sol");

pub const REGISTRY: &str = "0x0000000000000000000000000000000000000006";
pub const TARGET: &str = "0x00000000000000000000000000000000000c0de1";
/// Adds one to its slot 0: PUSH0 SLOAD PUSH1 1 ADD PUSH0 SSTORE STOP.
pub const COUNTER: &str = "0x5f546001015f5500";
/// Reverts with nothing.
pub const REVERTER: &str = "0x5f5ffd";
/// Reverts as soon as slot 0 has two: it counts first. PUSH0 SLOAD PUSH1 1 ADD DUP1 PUSH0 SSTORE PUSH1 2 LT PUSH1
/// 0x0f JUMPI STOP JUMPDEST PUSH0 PUSH0 REVERT
pub const TIRES: &str = "0x5f54600101805f5560021060 0f57005b5f5ffd";

/// A job to be made.
#[derive(Clone, Debug)]
pub struct Job {
    pub target: Address,
    pub data: Bytes,
    pub at: u64,
    pub interval: u64,
    pub runs: u64,
    pub gas: u64,
    pub value: U256,
    pub options: u64,
}

impl Job {
    /// One run in so many seconds, with money for ten at a gwei.
    pub fn once(node: &Node, wait: u64) -> Self {
        Self {
            target: TARGET.parse().unwrap(),
            data: hex!("01020304").into(),
            at: now(node) + wait,
            interval: 0,
            runs: 0,
            gas: 100_000,
            value: U256::from(1_000_000_000_000_000u64),
            options: 0,
        }
    }

    pub fn every(self, interval: u64, runs: u64) -> Self {
        Self { interval, runs, ..self }
    }

    /// The call of the registry that makes it for Alice.
    pub fn call(&self) -> Vec<u8> {
        let call = ICronRegistry::scheduleWithCall {
            target: self.target,
            data: self.data.clone(),
            nextRunAt: U256::from(self.at),
            intervalSec: U256::from(self.interval),
            maxRuns: U256::from(self.runs),
            gasLimit: U256::from(self.gas),
            refundTo: ALICE.parse().unwrap(),
            options: U256::from(self.options),
        };
        call.abi_encode()
    }

    /// Makes it for Alice, and answers with its number and the receipt.
    pub fn make(&self, node: &Node) -> (Value, Value) {
        let receipt = send(node, self.value, &self.call());
        Self::made(receipt)
    }

    /// Its number, by the receipt of what made it, and that receipt.
    pub fn made(receipt: Value) -> (Value, Value) {
        assert_eq!(receipt["status"], "0x1", "{receipt}");
        let id: U256 = receipt["logs"][0]["topics"][1].as_str().unwrap().parse().unwrap();
        (json!(format!("{id:#x}")), receipt)
    }
}

/// Time of the last block, in seconds.
pub fn now(node: &Node) -> u64 {
    number(&node.result("eth_getBlockByNumber", json!(["latest", false]))["timestamp"])
}

/// Calls the registry as Alice.
pub fn send(node: &Node, value: U256, data: &[u8]) -> Value {
    let request = json!({ "from": ALICE, "to": REGISTRY, "value": format!("{value:#x}"),
        "data": hex::encode_prefixed(data), "gas": "0x200000" });
    node.receipt(&node.result("eth_sendTransaction", json!([request])))
}

pub fn cancel(node: &Node, id: &Value) -> Value {
    let id: U256 = id.as_str().unwrap().parse().unwrap();
    send(node, U256::ZERO, &ICronRegistry::cancelCall { id }.abi_encode())
}

pub fn top_up(node: &Node, id: &Value, value: u64) -> Value {
    let id: U256 = id.as_str().unwrap().parse().unwrap();
    send(node, U256::from(value), &ICronRegistry::topUpCall { id }.abi_encode())
}

pub fn set_code(node: &Node, code: &str) {
    node.result("anvil_setCode", json!([TARGET, code.replace(' ', "")]));
}

/// Makes the block that comes at a time.
pub fn mine_at(node: &Node, second: u64) {
    node.result("evm_setNextBlockTimestamp", json!([second]));
    node.result("evm_mine", json!([]));
}

/// Asks for one call of Bob, so many seconds from now by this machine's clock.
pub fn job_in(nonce: u64, seconds: u64, secret: B256) -> UserTransaction {
    series_in(nonce, seconds, 0, 0, secret)
}

/// Asks for calls of Bob, the first so many seconds from now by this machine's clock.
pub fn series_in(nonce: u64, seconds: u64, interval: u64, runs: u64, secret: B256) -> UserTransaction {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let order = ICronRegistry::scheduleCalldataCall {
        target: BOB.parse().unwrap(),
        data: Bytes::from_static(&[1, 2, 3, 4]),
        nextRunAt: U256::from(now + seconds),
        intervalSec: U256::from(interval),
        maxRuns: U256::from(runs),
        gasLimit: U256::from(50_000),
    };
    let mut tx = testing::eip1559(nonce, TxKind::Call(CRON_REGISTRY), 0, order.abi_encode(), 500_000);
    tx.value = U256::from(10u64.pow(15)) * U256::from(runs.max(1));
    testing::sign(tx, secret)
}

/// What the registry told up to a block about these topics, in parts that a node answers at once.
pub fn registry_logs(node: &Node, last: u64, topics: &Value) -> Vec<Value> {
    const BLOCKS: usize = 500;
    let part = |first: u64| {
        let end = last.min(first + BLOCKS as u64 - 1);
        let filter = json!({ "fromBlock": format!("{first:#x}"), "toBlock": format!("{end:#x}"),
            "address": CRON_REGISTRY, "topics": topics });
        node.result("eth_getLogs", json!([filter])).as_array().expect("a list of logs").clone()
    };
    (0..=last).step_by(BLOCKS).flat_map(part).collect()
}

/// How often each job is told of in events of one kind.
pub fn jobs_told(node: &Node, event: B256) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for log in registry_logs(node, node.height(), &json!([event])) {
        *counts.entry(log["topics"][1].as_str().expect("an id").to_owned()).or_default() += 1;
    }
    counts
}
