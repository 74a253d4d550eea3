//! A validator that has lost its directory, and with it what it signed: it comes back, and signs nothing twice.

mod support;

use serde_json::{Value, json};
use std::{
    fs,
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};
use support::{network::*, *};

/// The one that loses its directory.
const LOST: usize = 3;

/// It copies the state and follows. It has no vote yet: where a third validator is missing, blocks stop. Once a block
/// that is later than its return is final, it votes and proposes: the third may be missing then. That stays so when
/// it is killed and started again.
#[test]
fn a_validator_that_lost_its_votes_is_silent_before_it_votes_again() {
    let directory = tempfile::tempdir().unwrap();
    let configs = new_network(&directory.path().join("net"), 200);
    let mut nodes: Vec<Node> = configs.iter().map(|config| start(config)).collect();
    agree_at(&nodes, 5);
    assert_eq!(role(&nodes[LOST]), "validator");

    nodes.truncate(LOST);
    fs::remove_dir_all(Path::new(&configs[LOST]).with_file_name("data")).unwrap();
    set(&configs[LOST], "sync", Some(json!("state")));
    nodes.push(start(&configs[LOST]));
    assert_eq!(role(&nodes[LOST]), "silent");
    nodes[0].signal("-STOP");
    // What had its votes already may still become final.
    sleep(Duration::from_millis(1_500));
    let height = nodes[1].height();
    sleep(Duration::from_secs(3));
    assert_eq!((role(&nodes[LOST]), nodes[1].height()), ("silent".to_owned(), height), "two votes of four");
    nodes[0].signal("-CONT");

    wait_for_voter(&nodes[LOST]);
    nodes[0].signal("-STOP");
    let height = nodes[1].height();
    agree_at(&nodes[1..], height + 8);
    let own = fee_recipient(&directory.path().join("net/genesis.json"), LOST);
    let is_own = |number: u64| {
        let block = nodes[1].result("eth_getBlockByNumber", json!([format!("{number:#x}"), false]));
        block["miner"] == own
    };
    assert!((height..=height + 8).any(is_own), "it proposes as well");

    nodes[LOST].signal("-KILL");
    nodes[LOST].wait();
    nodes[LOST] = start(&configs[LOST]);
    assert_eq!(role(&nodes[LOST]), "validator", "its votes are on disk again");
    let height = nodes[1].height();
    agree_at(&nodes[1..], height + 8);
    nodes[0].signal("-CONT");
    agree_at(&nodes, height + 8);
    for config in &configs {
        let log = fs::read_to_string(log_of(config)).unwrap();
        assert!(!log.contains("equivocat") && !log.contains("conflicting"), "{config}: {log}");
    }
}

/// What a node says it is.
fn role(node: &Node) -> String {
    health(&node.address).expect("the node answers")["role"].as_str().unwrap().to_owned()
}

/// Waits until a validator says that it votes. It is not there for a moment while it becomes one.
fn wait_for_voter(node: &Node) {
    let begin = Instant::now();
    while health(&node.address).is_none_or(|health| health["role"] != "validator") {
        assert!(begin.elapsed() < 2 * PATIENCE, "it is still silent");
        sleep(Duration::from_millis(100));
    }
}

/// Who gets the tips of a validator, as it is written in blocks.
fn fee_recipient(genesis: &Path, index: usize) -> Value {
    let genesis: Value = serde_json::from_str(&fs::read_to_string(genesis).unwrap()).unwrap();
    let recipient = genesis["validators"][index]["feeRecipient"].as_str().expect("a recipient of tips");
    json!(recipient.to_lowercase())
}
