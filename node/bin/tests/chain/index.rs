//! The index on disk: it goes on where it was, can be deleted, made anew, and says so when it is damaged.

use crate::support::{
    cron::{COUNTER, Job, cancel, mine_at, set_code},
    *,
};
use serde_json::json;
use std::{fs, path::Path};

/// A chain with a few blocks, stopped. Answers with a receipt and an old balance of it.
fn make_chain(path: &str) -> (serde_json::Value, serde_json::Value) {
    let mut node = Node::start(&["--datadir", path]);
    let mut hash = serde_json::Value::Null;
    for nonce in 0..5 {
        hash = node.send(&to_bob(nonce))["result"].clone();
        node.receipt(&hash);
    }
    let answers = (node.receipt(&hash), node.result("eth_getBalance", json!([BOB, "0x2"])));
    node.signal("-TERM");
    node.wait();
    answers
}

fn check(path: &str, answers: &(serde_json::Value, serde_json::Value)) {
    let mut node = Node::start(&["--datadir", path]);
    assert_eq!(node.receipt(&answers.0["transactionHash"]), answers.0);
    assert_eq!(node.result("eth_getBalance", json!([BOB, "0x2"])), answers.1, "state of the past");
    node.signal("-TERM");
    node.wait();
}

fn digest(path: &str) -> String {
    digest_line(&run(&["index", "digest", "--datadir", path]))
}

#[test]
fn an_index_made_anew_has_the_same_entries() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let answers = make_chain(path);
    let grown = digest(path);
    let rebuilt = run(&["index", "rebuild", "--datadir", path]);
    assert!(String::from_utf8_lossy(&rebuilt.stdout).contains("up to block 5"), "{rebuilt:?}");
    assert_eq!(digest_line(&rebuilt), grown);
    assert_eq!(digest(path), grown);
    check(path, &answers);

    // A node whose index was deleted makes it from the blocks as it starts.
    fs::remove_dir_all(directory.path().join("index")).unwrap();
    let missing = run(&["index", "digest", "--datadir", path]);
    assert!(String::from_utf8_lossy(&missing.stderr).contains("run `almanac index rebuild`"), "{missing:?}");
    check(path, &answers);
    assert_eq!(digest(path), grown);
}

/// Schedules that wait, that ran, that ended in each way: blocks alone tell all of it again.
#[test]
fn schedules_are_found_again_in_the_blocks() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let mut node = Node::start(&["--datadir", path]);
    set_code(&node, COUNTER);
    let job = Job::once(&node, 1_000);
    job.make(&node);
    job.clone().every(60, 2).make(&node);
    job.clone().every(60, 0).make(&node);
    let (cancelled, _) = job.make(&node);
    cancel(&node, &cancelled);
    Job { value: alloy_primitives::U256::from(200_000_000_000_000u64), ..job.clone() }.make(&node);
    node.result("anvil_setNextBlockBaseFeePerGas", json!(["0x12a05f200"]));
    mine_at(&node, job.at);
    mine_at(&node, job.at + 60);
    let told = |node: &Node| {
        let schedules = node.result("almanac_listSchedules", json!([]))["schedules"].clone();
        let ids: Vec<_> = schedules.as_array().unwrap().iter().map(|one| one["id"].clone()).collect();
        let runs: Vec<_> = ids.iter().map(|id| node.result("almanac_getRuns", json!([id]))).collect();
        let agenda = node.result("almanac_agenda", json!([]));
        (schedules, runs, agenda)
    };
    let before = told(&node);
    let statuses: Vec<_> = before.0.as_array().unwrap().iter().map(|one| one["status"].clone()).collect();
    assert_eq!(statuses, ["succeeded", "exhausted", "pending", "cancelled", "exhausted"]);
    node.signal("-TERM");
    node.wait();
    let grown = digest(path);
    assert_eq!(digest_line(&run(&["index", "rebuild", "--datadir", path])), grown);
    let node = Node::start(&["--datadir", path]);
    assert_eq!(told(&node), before);
}

#[test]
fn an_index_can_forget() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    make_chain(path);
    let everything = digest(path);
    let rebuilt = run(&["index", "rebuild", "--datadir", path, "--history", "2"]);
    assert_ne!(digest_line(&rebuilt), everything, "less is kept");
    let node = Node::start(&["--datadir", path, "--history", "2"]);
    assert!(node.call("eth_getBalance", json!([BOB, "0x3"]))["error"].is_null());
    let refused = node.call("eth_getBalance", json!([BOB, "0x2"]));
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("no longer kept"), "{refused}");
}

#[test]
fn a_damaged_index_is_refused_and_can_be_made_anew() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let answers = make_chain(path);
    let grown = digest(path);
    let journal = largest_file(&directory.path().join("index"));
    let bytes = fs::read(&journal).unwrap();
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 3] ^= 0xff;
    fs::write(&journal, damaged).unwrap();
    let output = run(&["dev", "--port", "0", "--datadir", path]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{message}");
    assert!(message.contains("almanac index rebuild") && message.contains("index"), "{message}");

    assert_eq!(digest_line(&run(&["index", "rebuild", "--datadir", path])), grown);
    check(path, &answers);
}

fn largest_file(directory: &Path) -> std::path::PathBuf {
    let mut files = Vec::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            match entry.metadata().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => files.push((entry.metadata().unwrap().len(), entry.path())),
            }
        }
    }
    files.into_iter().max().unwrap().1
}

/// Blocks above a snapshot are shown, but held: whoever dies with them has never made them durable, and the index
/// must not remember what the chain does not.
#[test]
fn blocks_that_died_with_their_process_are_forgotten() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let mut node = Node::start(&["--datadir", path]);
    node.receipt(&node.send(&to_bob(0))["result"]);
    node.result("evm_snapshot", json!([]));
    for nonce in 1..4 {
        node.receipt(&node.send(&to_bob(nonce))["result"]);
    }
    assert_eq!(node.result("eth_blockNumber", json!([])), "0x4");
    node.signal("-KILL");
    node.wait();

    let mut node = Node::start(&["--datadir", path]);
    assert_eq!(node.result("eth_blockNumber", json!([])), "0x1");
    assert_eq!(node.result("eth_getTransactionCount", json!([ALICE, "latest"])), "0x1");
    let receipt = node.receipt(&node.send(&to_bob(1))["result"]);
    assert_eq!(receipt["blockNumber"], "0x2", "and it goes on from there");
    node.signal("-TERM");
    node.wait();
    let grown = digest(path);
    assert_eq!(digest_line(&run(&["index", "rebuild", "--datadir", path])), grown);
}
