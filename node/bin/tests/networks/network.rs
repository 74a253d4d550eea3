//! Four validators as real processes on loopback.

use crate::{
    signed::{made_and_signed, shown_by_all},
    support::{
        network::{agree_at, new_network, start, transfer_seen_by_all},
        *,
    },
};
use alloy_primitives::hex;
use almanac_bft::{Finality, Namespace, ValidatorSet};
use almanac_primitives::{Genesis, Header};
use commonware_utils::test_rng;
use serde_json::{Value, json};
use std::{path::Path, time::Duration};

/// Checks with the genesis alone that a block is final, and that it is the one that RPC shows.
fn check_finality(node: &Node, genesis: &Path, height: u64) {
    let number = format!("{height:#x}");
    let finality = node.result("almanac_getFinality", json!([number]));
    let bytes = |value: &Value| hex::decode(value.as_str().unwrap()).unwrap();
    let headers = finality["headers"].as_array().unwrap().iter();
    let shown = Finality {
        headers: headers.map(|header| Header::decode(&bytes(header)).unwrap()).collect(),
        certificate: bytes(&finality["certificate"]).into(),
    };
    let genesis = Genesis::from_json(&std::fs::read_to_string(genesis).unwrap()).unwrap();
    let origin = node.result("eth_getBlockByNumber", json!(["0x0", false]));
    let namespace = Namespace(origin["hash"].as_str().unwrap().parse().unwrap());
    let validators = ValidatorSet::new(&genesis).unwrap();
    let (header, _) = shown.verify(&validators, &namespace, &mut test_rng()).unwrap();
    let block = node.result("eth_getBlockByNumber", json!([number, false]));
    assert_eq!(header.hash().to_string(), block["hash"].as_str().unwrap());
    assert_eq!(finality["hash"], block["hash"]);
    assert_eq!(node.result("almanac_getFinality", json!(["0xffffffff"])), Value::Null, "not there yet");
}

/// What was executed once when all had signed (HEDERA-07) shows the same everywhere, after a restart too.
#[test]
fn four_processes_agree_and_survive_kill_9() {
    machine::alone();
    let directory = tempfile::tempdir().unwrap();
    let configs = new_network(&directory.path().join("net"), 200);
    let mut nodes: Vec<Node> = configs.iter().map(|config| start(config)).collect();
    agree_at(&nodes, 3);

    for (nonce, sender) in (0..4).enumerate() {
        transfer_seen_by_all(&nodes, sender, nonce as u64);
    }
    let executed = made_and_signed(&nodes);
    shown_by_all(&nodes, &executed);
    let refused = nodes[0].call("anvil_mine", json!([]));
    assert_eq!(refused["error"]["code"], -32601, "no developer's controls: {refused}");
    assert_eq!(nodes[0].result("eth_accounts", json!([])), json!([]), "no keys of anybody");

    for node in &nodes {
        check_finality(node, &directory.path().join("net/genesis.json"), 3);
    }

    // The same key cannot run twice, from its directory or from another.
    let elsewhere = Path::new(&configs[0]).with_file_name("elsewhere.json");
    let other = std::fs::read_to_string(&configs[0]).unwrap().replace("\"data\"", "\"elsewhere\"");
    std::fs::write(&elsewhere, other).unwrap();
    for config in [&configs[0], elsewhere.to_str().unwrap()] {
        let twice = run(&["node", "--config", config]);
        assert!(!twice.status.success());
        assert!(String::from_utf8_lossy(&twice.stderr).contains("in use"), "{twice:?}");
    }

    // Three of four go on, and the fourth comes back.
    let mut killed = nodes.pop().unwrap();
    killed.signal("-KILL");
    killed.wait();
    let height = nodes[0].height();
    agree_at(&nodes, height + 5);
    transfer_seen_by_all(&nodes, 1, 4);
    nodes.push(start(&configs[3]));
    let height = nodes[0].height();
    agree_at(&nodes, height);
    transfer_seen_by_all(&nodes, 3, 5);

    // Two of four are too few, and none of them makes a block alone.
    for mut killed in nodes.drain(2..) {
        killed.signal("-KILL");
        killed.wait();
    }
    std::thread::sleep(Duration::from_secs(1));
    let height = nodes[0].height();
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(nodes[0].height(), height);
    nodes.extend(configs[2..].iter().map(|config| start(config)));
    agree_at(&nodes, height + 2);

    // All of them at once.
    for mut killed in nodes.drain(..) {
        killed.signal("-KILL");
        killed.wait();
    }
    let mut nodes: Vec<Node> = configs.iter().map(|config| start(config)).collect();
    transfer_seen_by_all(&nodes, 2, 6);
    let height = nodes[0].height();
    for number in 1..=height {
        agree_at(&nodes, number);
    }
    shown_by_all(&nodes, &executed);
    for node in &mut nodes {
        node.signal("-TERM");
        assert!(node.wait().success(), "a validator stops in good order");
    }
    let data = directory.path().join("net/v0/data");
    let alone = run(&["dev", "--port", "0", "--datadir", data.to_str().unwrap()]);
    assert!(!alone.status.success());
    assert!(String::from_utf8_lossy(&alone.stderr).contains("4 validators"), "{alone:?}");
}
