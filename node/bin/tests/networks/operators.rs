//! Two operators who know each other's public cards alone start a network, and find each other by name.

use crate::support::{
    machine,
    network::{self, log_of, page, wait_for},
    run,
};
use serde_json::{Value, json};
use std::{fs, path::Path};

/// Runs a command that has to succeed.
fn done(words: &[&str]) -> String {
    let output = run(words);
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// OPERATOR-01: keys stay where they were made; the genesis is the same whatever the order of the cards; peers are found
/// by name; logs are JSON, and metrics have a port of their own.
#[test]
fn operator_01_independent_operators_start_a_network() {
    machine::share();
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let first = network::free_ports();
    let names = ["acme", "beta"];
    for (name, port) in names.iter().zip(first..) {
        let (key, card) = (place(&format!("{name}.key")), place(&format!("{name}.json")));
        let public = done(&["keys", "new", "--out", &key]);
        let address = format!("localhost:{port}");
        done(&[
            "keys",
            "card",
            "--file",
            &key,
            "--name",
            name,
            "--address",
            &address,
            "--fee-recipient",
            "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
            "--out",
            &card,
        ]);
        let text = fs::read_to_string(&card).unwrap();
        assert!(text.contains(public.trim()) && text.contains(&address), "{text}");
        assert!(!text.contains(fs::read_to_string(&key).unwrap().trim()), "no secret");
    }
    let gather = |dir: &str, cards: [&str; 2], more: &[&str]| {
        let cards = cards.map(|name| place(&format!("{name}.json")));
        let fixed = ["--chain-id", "7001", "--governance", "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"];
        let time = ["--timestamp", "1760000000", "--block-time-ms", "100"];
        let words =
            [&["network", "gather", &cards[0], &cards[1], "--dir", dir], &fixed[..], &time, more].concat();
        run(&words)
    };
    let allocate = ["--allocate", "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266=1000coins"];
    let net = place("net");
    let told = gather(&net, ["acme", "beta"], &allocate);
    assert!(told.status.success(), "{told:?}");
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("2 validators") && told.contains("SHA-256"), "{told}");
    assert!(gather(&place("other"), ["beta", "acme"], &allocate).status.success());
    let read = |path: &str| fs::read_to_string(path).unwrap();
    assert_eq!(read(&format!("{net}/genesis.json")), read(&place("other/genesis.json")), "in any order");
    for (cards, more, expected) in [
        (["acme", "acme"], &allocate[..], "two cards have the name"),
        (["acme", "beta"], &[], "without --allocate nobody has a coin"),
        (["acme", "beta"], &["--allocate", "bob=5"], "is no allocation"),
        (["acme", "net/genesis"], &allocate, "is no card of a validator"),
    ] {
        let refused = gather(&place("refused"), cards, more);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(!refused.status.success() && said.contains(expected), "{expected}: {said}");
        assert!(!Path::new(&place("refused")).exists(), "nothing was written");
    }
    // Each operator puts its key beside its config.
    let configs = names.map(|name| {
        let home = format!("{net}/{name}");
        for end in ["", ".unused"] {
            fs::copy(place(&format!("{name}.key{end}")), format!("{home}/validator.key{end}")).unwrap();
        }
        format!("{home}/config.json")
    });
    for (config, port) in configs.iter().zip(first + 2..) {
        network::edit(Path::new(config), |config| config["rpc"] = json!(format!("127.0.0.1:{port}")));
    }
    let metrics = format!("127.0.0.1:{}", first + 4);
    let more = ["--log-format", "json", "--metrics-addr", &metrics];
    let nodes = [network::start_with(&configs[0], &more), network::start_with(&configs[1], &[])];
    // Both have to vote for every block.
    network::agree_at(&nodes, 3);
    assert!(page(&metrics, "/metrics").unwrap().contains("almanac_block_height"));
    assert_eq!(network::health(&metrics).unwrap()["role"], "validator");
    assert_eq!(network::health(&nodes[0].address), None, "not with JSON-RPC");
    let log = wait_for("log", || Some(read(log_of(&configs[0]).to_str()?)).filter(|log| !log.is_empty()));
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(line["message"].is_string() && line["level"].is_string(), "{line}");
    }
}
