//! kill -9 at random moments under load: nothing that was acknowledged is lost, and every root stays right.
//!
//! `ALMANAC_KILLS` sets how often (20 without it), `ALMANAC_SIM_SEED` when.

use crate::support::{
    cron::{ICronRegistry, job_in, jobs_told},
    *,
};
use alloy_primitives::{U256, hex, keccak256};
use alloy_sol_types::SolEvent as _;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// Longest life of a node before it is killed.
const LIFE_MS_MAX: u64 = 300;

fn setting(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a number"))
}

/// The n-th number of a sequence that only the seed decides.
fn random(seed: u64, n: u64) -> u64 {
    U256::from_be_bytes(keccak256([seed.to_be_bytes(), n.to_be_bytes()].concat()).0).as_limbs()[0]
}

/// Sends transactions until the node is gone, and notes every receipt that it has shown.
fn load(node: &Node, mut nonce: u64, acknowledged: &mut BTreeMap<String, Value>) {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(20) {
        let transaction = if nonce.is_multiple_of(4) {
            job_in(nonce, 2, ALICE_KEY.parse().unwrap())
        } else {
            to_bob(nonce)
        };
        let encoded = hex::encode_prefixed(transaction.encoded());
        let Some(hash) = node.try_result("eth_sendRawTransaction", json!([encoded])) else { return };
        nonce += 1;
        let mut receipt = Value::Null;
        while receipt.is_null() {
            let Some(found) = node.try_result("eth_getTransactionReceipt", json!([hash])) else { return };
            receipt = found;
        }
        acknowledged.insert(hash.as_str().unwrap().to_owned(), receipt);
    }
    panic!("the node was to be killed");
}

#[test]
fn what_was_acknowledged_survives_kill_9_under_load() {
    let (kills, seed) = (setting("ALMANAC_KILLS", 20), setting("ALMANAC_SIM_SEED", 1));
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let chain = path("chain");
    let mut acknowledged = BTreeMap::new();
    for kill in 0..kills {
        let mut node = Node::start(&["--datadir", &chain]);
        for (hash, receipt) in &acknowledged {
            let found = node.result("eth_getTransactionReceipt", json!([hash]));
            assert_eq!(&found, receipt, "seed {seed}, after kill {kill}: an acknowledged receipt");
        }
        let count = node.result("eth_getTransactionCount", json!([ALICE, "latest"]));
        let nonce = number(&count);
        assert!(nonce >= acknowledged.len() as u64);
        // A watcher kills in the middle of whatever the node is doing at that moment.
        let life = Duration::from_millis(random(seed, kill) % LIFE_MS_MAX);
        let process = node.child.id();
        let killer = std::thread::spawn(move || {
            std::thread::sleep(life);
            std::process::Command::new("kill").args(["-KILL", &process.to_string()]).status().unwrap();
        });
        load(&node, nonce, &mut acknowledged);
        killer.join().unwrap();
        node.wait();
    }
    assert!(acknowledged.len() as u64 >= kills, "the load was real: {} receipts", acknowledged.len());
    println!("{kills} kills, {} acknowledged transactions", acknowledged.len());

    // One more start brings the index up to what the last kill left, and runs whatever is still due.
    let mut node = Node::start(&["--datadir", &chain]);
    std::thread::sleep(Duration::from_secs(3));
    let scheduled = jobs_told(&node, ICronRegistry::JobScheduled::SIGNATURE_HASH);
    let executed = jobs_told(&node, ICronRegistry::JobExecuted::SIGNATURE_HASH);
    assert!(scheduled.len() >= 5, "jobs were scheduled: {}", scheduled.len());
    assert_eq!(executed, scheduled, "each ran, and once");
    assert!(executed.values().all(|times| *times == 1));
    node.signal("-TERM");
    node.wait();
    let grown = run(&["index", "digest", "--datadir", &chain]);
    let rebuilt = run(&["index", "rebuild", "--datadir", &chain]);
    assert_eq!(digest_line(&grown), digest_line(&rebuilt), "the index grew to what the blocks make it");

    // A node that was never killed executes all blocks again and compares every root.
    let (backup, fresh) = (path("backup"), path("fresh"));
    assert!(run(&["db", "export", "--datadir", &chain, "--out", &backup]).status.success());
    let imported = run(&["db", "import", "--file", &backup, "--datadir", &fresh]);
    assert!(imported.status.success(), "{imported:?}");
    let node = Node::start(&["--datadir", &fresh]);
    for (hash, receipt) in &acknowledged {
        assert_eq!(&node.result("eth_getTransactionReceipt", json!([hash])), receipt);
    }
}
