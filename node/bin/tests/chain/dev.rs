//! The binary as its user meets it: real processes, real sockets, real signals.

use crate::support::*;
use alloy_primitives::U256;
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn starts_serves_and_stops_on_both_signals() {
    for signal in ["-INT", "-TERM"] {
        let mut node = Node::start(&[]);
        assert_eq!(node.result("eth_chainId", json!([])), "0x7a69");
        assert_eq!(node.result("eth_blockNumber", json!([])), "0x0");
        assert_eq!(node.balance(ALICE), U256::from(10_000) * U256::from(10).pow(U256::from(18)));
        assert!(node.banner.contains("test test test") && node.banner.contains(ALICE_KEY));
        node.signal(signal);
        assert!(node.wait().success(), "{signal}");
    }
}

#[test]
fn a_transaction_becomes_a_block_and_a_receipt() {
    let node = Node::start(&[]);
    let before = node.balance(BOB);
    let hash = node.send(&to_bob(0))["result"].clone();
    let receipt = node.receipt(&hash);

    assert_eq!(receipt["status"], "0x1");
    assert_eq!(receipt["blockNumber"], "0x1");
    assert_eq!(receipt["gasUsed"], "0x5208");
    assert_eq!(receipt["from"], ALICE);
    assert_eq!(receipt["to"], BOB);
    assert_eq!(receipt["type"], "0x0");
    assert_eq!(node.balance(BOB), before + U256::from(1));
    assert_eq!(node.result("eth_getTransactionCount", json!([ALICE, "latest"])), "0x1");
    assert_eq!(node.result("eth_getBalance", json!([BOB, "0x0"])), json!(before), "history is kept");
    assert!(node.result("eth_getTransactionReceipt", json!([format!("0x{:064x}", 7)])).is_null());
}

#[test]
fn bad_requests_get_errors_with_the_codes_that_clients_know() {
    let node = Node::start(&[]);
    node.receipt(&node.send(&to_bob(0))["result"]);
    let cases = [
        (node.send(&to_bob(0)), -32_000, "nonce too low"),
        (node.call("eth_sendRawTransaction", json!(["0x03aa"])), -32_602, "blob transactions"),
        (node.call("eth_sendRawTransaction", json!(["0xzz"])), -32_602, ""),
        (node.call("eth_getBalance", json!([ALICE, "0xffff"])), -32_000, "header not found"),
        (node.call("eth_noSuchMethod", json!([])), -32_601, "Method not found"),
        (node.call("eth_getBalance", json!(["0x12"])), -32_602, ""),
    ];
    for (answer, code, message) in cases {
        assert_eq!(answer["error"]["code"], code, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(message), "{answer}");
    }
    // The params contract refuses an unknown name with a custom error: code 3 and the raw data.
    let get = format!("0x8eaa6ac0{:064x}", 0);
    let call = json!([{ "to": "0x000000000000000000000000000000000000a105", "data": get }, "latest"]);
    let answer = node.call("eth_call", call);
    assert_eq!(answer["error"]["code"], 3, "{answer}");
    assert!(answer["error"]["data"].as_str().unwrap().len() > 10);
    assert!(post(&node.address, "{ not json").contains("-32700"));
    let batch = vec![json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": [] }); 101];
    assert!(post(&node.address, &json!(batch).to_string()).contains("-32010"), "batches have a limit");
}

#[test]
fn interval_blocks_come_without_transactions() {
    let node = Node::start(&["--block-time", "50ms", "--chain-id", "777"]);
    assert_eq!(node.result("eth_chainId", json!([])), "0x309");
    assert_eq!(node.result("net_version", json!([])), "777");
    let begin = Instant::now();
    let height = loop {
        let height: U256 = node.result("eth_blockNumber", json!([])).as_str().unwrap().parse().unwrap();
        if height >= U256::from(5) {
            break height;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "five blocks in time");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(begin.elapsed() >= Duration::from_millis(150), "{height} blocks came too fast");
}

/// What the chain has answered for must be there after the harshest of stops.
#[test]
fn a_data_directory_survives_signals_and_kill() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("chain");
    let arguments = ["--datadir", path.to_str().unwrap()];
    let mut receipts = Vec::new();
    for (round, signal) in ["-TERM", "-KILL", "-INT", "-KILL"].into_iter().enumerate() {
        let mut node = Node::start(&arguments);
        assert_eq!(node.result("eth_blockNumber", json!([])), format!("{:#x}", receipts.len()));
        for (hash, expected) in &receipts {
            assert_eq!(&node.receipt(hash), expected, "the same receipt after restart {round}");
        }
        for _ in 0..3 {
            let hash = node.send(&to_bob(receipts.len() as u64))["result"].clone();
            let receipt = node.receipt(&hash);
            assert_eq!(receipt["status"], "0x1");
            receipts.push((hash, receipt));
        }
        node.signal(signal);
        assert_eq!(node.wait().success(), signal != "-KILL");
    }
    let node = Node::start(&arguments);
    assert_eq!(node.balance(BOB), U256::from(10_000) * U256::from(10).pow(U256::from(18)) + U256::from(12));
}

#[test]
fn mistakes_are_answered_with_the_next_step() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let mut node = Node::start(&["--datadir", path]);
    let port = node.address.rsplit(':').next().unwrap().to_owned();
    let cases: [(&[&str], &str); 6] = [
        (&["dev", "--port", &port], "choose another port with --port"),
        (&["dev", "--port", "0", "--datadir", path], "in use by another process"),
        (&["dev", "--port", "0", "--chain-id", "0"], "chain id 0 is not in 1..="),
        (&["dev", "--block-time", "0ms"], "not between 1ms and 24 hours"),
        (&["dev", "--block-time", "soon"], "write 200ms, 1s or 2m"),
        (&["dve"], "unrecognized subcommand"),
    ];
    for (arguments, expected) in cases {
        let output = run(arguments);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && message.contains(expected), "{arguments:?}: {message}");
    }
    node.signal("-TERM");
    node.wait();

    let other_chain = run(&["dev", "--port", "0", "--datadir", path, "--chain-id", "5"]);
    let message = String::from_utf8_lossy(&other_chain.stderr).into_owned();
    assert!(message.contains("leave out --chain-id, or choose another --datadir"), "{message}");
}

/// A directory whose files were damaged is refused, by name, with what to do.
#[test]
fn a_damaged_chain_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let mut node = Node::start(&["--datadir", path]);
    for nonce in 0..3 {
        node.receipt(&node.send(&to_bob(nonce))["result"]);
    }
    node.signal("-TERM");
    node.wait();
    std::fs::write(directory.path().join("genesis.json"), "{ }").unwrap();

    let output = run(&["dev", "--port", "0", "--datadir", path]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && message.contains("genesis.json is not a genesis file"), "{message}");
}

#[test]
fn help_shows_examples() {
    for arguments in [&["--help"][..], &["dev", "--help"]] {
        let output = run(arguments);
        assert!(output.status.success());
        assert!(String::from_utf8_lossy(&output.stdout).contains("Examples:"), "{arguments:?}");
    }
}

#[test]
fn a_backup_of_a_running_chain_makes_the_same_chain() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (original, restored, backup, second) = (path("a"), path("b"), path("backup"), path("second"));
    let mut node = Node::start(&["--datadir", &original]);
    let mut receipts = Vec::new();
    for nonce in 0..4 {
        let hash = node.send(&to_bob(nonce))["result"].clone();
        receipts.push((hash.clone(), node.receipt(&hash)));
    }
    let exported = run(&["db", "export", "--datadir", &original, "--out", &backup]);
    assert!(exported.status.success(), "{exported:?}");
    assert!(String::from_utf8_lossy(&exported.stdout).contains("up to block 4"));
    node.receipt(&node.send(&to_bob(4))["result"]);
    node.signal("-TERM");
    node.wait();
    let stopped = run(&["db", "export", "--datadir", &original, "--out", &second]);
    assert!(String::from_utf8_lossy(&stopped.stdout).contains("up to block 5"), "{stopped:?}");
    let twice = run(&["db", "export", "--datadir", &original, "--out", &second]);
    assert!(String::from_utf8_lossy(&twice.stderr).contains("exists already"), "{twice:?}");

    let imported = run(&["db", "import", "--file", &backup, "--datadir", &restored]);
    assert!(imported.status.success(), "{imported:?}");
    let node = Node::start(&["--datadir", &restored]);
    assert_eq!(node.result("eth_blockNumber", json!([])), "0x4");
    for (hash, receipt) in receipts {
        assert_eq!(node.receipt(&hash), receipt);
    }
    let full = run(&["db", "import", "--file", &backup, "--datadir", &original]);
    assert!(String::from_utf8_lossy(&full.stderr).contains("is not empty"), "{full:?}");
}
