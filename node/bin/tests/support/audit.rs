//! What must hold after any fault: one chain on all nodes, every nonce once, every due run once.

use super::{
    Node,
    cron::{ICronRegistry, jobs_told, registry_logs},
    load::{Client, SERIES_INTERVAL_S, SERIES_RUNS},
    network::wait_for,
    number,
};
use alloy_primitives::Address;
use alloy_sol_types::SolEvent as _;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Checks all nodes after the load has stopped.
pub fn audit(nodes: &[Node], clients: &[Client]) {
    let height = same_chain(nodes);
    nonces_once(&nodes[0], height, clients);
    let born = series(&nodes[0], clients);
    for node in nodes {
        jobs_once(node, &born);
        series_on_time(node, &born);
    }
}

/// Every block up to the highest tip is the same everywhere; a hash covers the state's root. Answers with that tip.
fn same_chain(nodes: &[Node]) -> u64 {
    let height = nodes.iter().map(Node::height).max().unwrap();
    for node in nodes {
        wait_for("the last block", || (node.height() >= height).then_some(()));
    }
    for number in 1..=height {
        let hash = |node: &Node| block(node, number, false)["hash"].clone();
        let first = hash(&nodes[0]);
        assert!(first.is_string(), "block {number}");
        for node in &nodes[1..] {
            assert_eq!(hash(node), first, "block {number} of {}", node.address);
        }
    }
    height
}

/// Each account's transactions are in the chain in order of nonces, none missing and none twice.
fn nonces_once(node: &Node, height: u64, clients: &[Client]) {
    let mut next: BTreeMap<Address, u64> = BTreeMap::new();
    for at in 1..=height {
        let found = block(node, at, true);
        for transaction in found["transactions"].as_array().unwrap() {
            // The runs of schedules have no signature, and no nonce of anybody.
            if !transaction["scheduleRef"].is_null() {
                continue;
            }
            let sender = transaction["from"].as_str().unwrap().parse().unwrap();
            let expected = next.entry(sender).or_default();
            assert_eq!(number(&transaction["nonce"]), *expected, "block {at}: a nonce of {sender}");
            *expected += 1;
        }
    }
    for client in clients {
        assert_eq!(next.get(&client.account).copied(), Some(client.transactions.len() as u64));
    }
}

/// Each job with one run was run, and once.
fn jobs_once(node: &Node, series: &Value) {
    wait_for("run of every job", || {
        let scheduled = jobs_told(node, ICronRegistry::JobScheduled::SIGNATURE_HASH);
        let mut executed = jobs_told(node, ICronRegistry::JobExecuted::SIGNATURE_HASH);
        executed.remove(series["topics"][1].as_str().unwrap());
        assert!(executed.values().all(|times| *times == 1), "a job ran twice");
        // All but the series, which is not over.
        assert!(scheduled.len() > 10, "the load was real: {} jobs", scheduled.len());
        (executed.len() == scheduled.len() - 1).then_some(())
    });
}

/// The series has run once for each of its times that has come, and no more.
fn series_on_time(node: &Node, born: &Value) {
    let data = born["data"].as_str().unwrap();
    let first = u64::from_str_radix(&data[data.len() - 16..], 16).unwrap();
    wait_for("run of the series for each of its times", || {
        let tip = block(node, node.height(), false);
        let topics = json!([ICronRegistry::JobExecuted::SIGNATURE_HASH, born["topics"][1]]);
        let runs = registry_logs(node, number(&tip["number"]), &topics).len() as u64;
        let times = (number(&tip["timestamp"]).checked_sub(first)?) / SERIES_INTERVAL_S + 1;
        let due = times.min(SERIES_RUNS);
        assert!(runs <= due, "{runs} runs of the series, {due} were due");
        (runs == due).then_some(())
    });
}

/// The event that tells of the birth of the series, which is what Alice signed first.
fn series(node: &Node, clients: &[Client]) -> Value {
    let hash = clients[0].transactions[0].hash();
    let receipt = node.result("eth_getTransactionReceipt", json!([hash]));
    assert_eq!(receipt["status"], "0x1", "the series was made: {receipt}");
    receipt["logs"][0].clone()
}

fn block(node: &Node, number: u64, with_transactions: bool) -> Value {
    node.result("eth_getBlockByNumber", json!([format!("{number:#x}"), with_transactions]))
}
