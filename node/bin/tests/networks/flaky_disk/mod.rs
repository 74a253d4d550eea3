//! A validator whose vote is needed, and whose disk cannot be read for a moment. That costs the moment, and no more.
#![allow(unreachable_pub, reason = "parts of one test")]

mod disk;

use crate::support::{ALICE_KEY, Node, network::*};
use alloy_primitives::Address;
use almanac_primitives::{UserTransaction, testing};
use disk::Disk;
use serde_json::{Value, json};
use std::{
    fs,
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

/// The one that fails, and the one that is down all the while.
const FLAKY: usize = 1;
const DOWN: usize = 3;

/// How long the disk fails once a verdict has met it: many attempts. A validator that cannot read what it needs to commit
/// a final block ends after two seconds, and that is another test's.
const FAILURE: Duration = Duration::from_millis(1_500);

/// Blocks that had their votes before the failure, and become final in it.
const ON_THEIR_WAY: u64 = 2;

/// Contracts of the largest size in the genesis: three times as many bytes as the smallest cache of the state holds.
const CONTRACTS: u64 = 128;
const CODE_HEX_DIGITS: usize = 2 * 24_576;
const CACHE_MB: u64 = 5;

/// Calls of them at most. A pool holds a hundred transactions of one sender, and the chain may stand still.
const CALLS_MAX: u64 = 90;

/// Consensus asks once for a verdict on a block. The others give theirs and can no longer let the view fail, so the chain
/// waits for this one, and stops for ever unless the validator tries again.
#[test]
fn a_validator_whose_disk_fails_for_a_moment_goes_on_voting() {
    let directory = tempfile::tempdir().unwrap();
    let configs = new_network(&directory.path().join("net"), 200);
    edit(&directory.path().join("net/genesis.json"), fill_state);
    set(&configs[FLAKY], "cacheMb", Some(json!(CACHE_MB)));
    let disk = Disk::new(directory.path());
    let start = |(index, config): (usize, &String)| match index {
        FLAKY => disk.start(config),
        _ => start(config),
    };
    let mut nodes: Vec<Node> = configs.iter().enumerate().map(start).collect();
    agree_at(&nodes, 3);
    drop(nodes.remove(DOWN));
    let height = nodes[0].height();
    agree_at(&nodes, height + 3);
    assert_eq!(disk.failures(), 0);

    disk.fail();
    let verdict = meet_disk(&nodes[0], &log_of(&configs[FLAKY]));
    let height = nodes[0].height();
    sleep(FAILURE);
    let last = nodes[0].height();
    disk.recover();
    let begin = Instant::now();
    println!("{} reads failed, and after block {last}: {verdict}", disk.failures());
    assert!(disk.failures() > 0, "another disk failed");
    assert!(verdict.contains("check the disk"), "an operator reads what to do: {verdict}");
    assert!(last <= height + ON_THEIR_WAY, "from block {height} to {last} without a vote that is needed");

    agree_at(&nodes, last + 5);
    println!("five blocks {:?} after the disk worked again", begin.elapsed());
}

/// Calls contracts until a validator logs that its disk keeps it from a verdict on a block, and answers with the line.
fn meet_disk(other: &Node, log: &Path) -> String {
    let mut nonces = 0..CALLS_MAX;
    wait_for("verdict that meets the disk", || {
        if let Some(nonce) = nonces.next() {
            let sent = other.send(&call_contract(nonce));
            assert!(sent["result"].is_string(), "{sent}");
        }
        let log = fs::read_to_string(log).unwrap();
        let is_met = |line: &&str| line.contains(" of view ") && line.contains("Input/output error");
        log.lines().find(is_met).map(str::to_owned)
    })
}

/// A state that does not fit the cache.
fn fill_state(genesis: &mut Value) {
    for index in 0..CONTRACTS {
        let code = format!("0x{index:0CODE_HEX_DIGITS$x}");
        genesis["allocations"][contract(index).to_string()] =
            json!({ "balance": "0x0", "nonce": 1, "code": code });
    }
}

fn contract(index: u64) -> Address {
    Address::with_last_byte(0xc0).create(index)
}

/// A call of the next contract, whose code is read from the disk for it.
fn call_contract(nonce: u64) -> UserTransaction {
    testing::sign(testing::legacy(nonce, contract(nonce % CONTRACTS), 0), ALICE_KEY.parse().unwrap())
}
