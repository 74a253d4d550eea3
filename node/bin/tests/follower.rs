//! Nodes without a vote, as real processes on loopback.

mod support;

use serde_json::json;
use support::{network::*, *};

/// A follower that starts late fetches every block, serves the same RPC, passes transactions on, and comes back
/// after it was killed. The validators do not need it.
#[test]
fn a_follower_fetches_all_blocks_and_serves_them() {
    let directory = tempfile::tempdir().unwrap();
    let configs = with_followers(&directory.path().join("net"), 200, 1);
    let mut nodes: Vec<Node> = configs[..4].iter().map(|config| start(config)).collect();
    agree_at(&nodes, 3);
    transfer_seen_by_all(&nodes, 0, 0);

    nodes.push(start(&configs[4]));
    for height in 1..=nodes[0].height() {
        agree_at(&nodes, height);
    }
    assert_eq!(nodes[4].balance(BOB), nodes[0].balance(BOB));
    transfer_seen_by_all(&nodes, 4, 1);
    transfer_seen_by_all(&nodes, 2, 2);
    let finality = nodes[4].result("almanac_getFinality", json!(["0x2"]));
    assert!(finality["certificate"].is_string(), "it has the certificates too: {finality}");

    let mut killed = nodes.pop().unwrap();
    killed.signal("-KILL");
    killed.wait();
    let height = nodes[0].height();
    agree_at(&nodes, height + 5);
    nodes.push(start(&configs[4]));
    let height = nodes[0].height();
    agree_at(&nodes, height + 2);
    transfer_seen_by_all(&nodes, 4, 3);
    nodes[4].signal("-TERM");
    assert!(nodes[4].wait().success(), "a follower stops in good order");
}

/// Validators do not talk to a node that they were not told of.
#[test]
fn a_stranger_hears_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let configs = with_followers(&directory.path().join("net"), 200, 1);
    for config in &configs[..4] {
        let text = std::fs::read_to_string(config).unwrap();
        let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["followers"].as_array().unwrap().len(), 1);
        json.as_object_mut().unwrap().remove("followers");
        std::fs::write(config, json.to_string()).unwrap();
    }
    let nodes: Vec<Node> = configs.iter().map(|config| start(config)).collect();
    agree_at(&nodes[..4], 10);
    assert_eq!(nodes[4].height(), 0);
}
