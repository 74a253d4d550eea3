//! `almanac doctor` on a chain that is well, and on what is broken.

use super::{chain, command};
use crate::support::*;
use serde_json::{Value, json};
use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt as _};

fn checks(text: &[u8]) -> Vec<(String, String, String)> {
    let told: Value = serde_json::from_slice(text).unwrap();
    let field = |check: &Value, name: &str| check[name].as_str().unwrap_or_default().to_owned();
    let list = told["checks"].as_array().unwrap();
    list.iter().map(|check| (field(check, "name"), field(check, "result"), field(check, "advice"))).collect()
}

/// CLI-07: what is well is ok, and what is not comes with advice and exit code 1.
#[test]
fn cli_07_the_doctor_finds_what_is_broken() {
    let directory = tempfile::tempdir().unwrap();
    let datadir = directory.path().join("chain");
    let datadir = datadir.to_str().unwrap();
    let node = Node::start(&["--datadir", datadir]);
    let output = command(&node, &format!("doctor --dev-account 0 --datadir {datadir} --json"));
    assert!(output.status.success(), "{output:?}");
    let found = checks(&output.stdout);
    let names: Vec<&str> = found.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(
        names,
        ["node", "blocks", "clock", "schedules", "balance", "files", "directory", "chain", "disk"]
    );
    assert!(
        found.iter().all(|(name, result, _)| result == "ok" || name == "files" || name == "disk"),
        "{found:?}"
    );
    let text = String::from_utf8(command(&node, &format!("doctor --datadir {datadir}")).stdout).unwrap();
    assert!(text.contains("ok       chain      in use by a running node"), "{text}");
    // A port in use, an account without coins, an open directory, a moved clock.
    fs::set_permissions(datadir, fs::Permissions::from_mode(0o755)).unwrap();
    node.result("evm_increaseTime", json!([3_600]));
    let port = node.address.rsplit_once(':').unwrap().1;
    let key = directory.path().join("poor.key");
    fs::write(&key, "31".repeat(32)).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let line = format!("doctor --key-file {} --datadir {datadir} --port {port} --json", key.display());
    let output = command(&node, &line);
    assert!(!output.status.success());
    let result = |name: &str| {
        let found = checks(&output.stdout);
        found
            .into_iter()
            .find(|(found, ..)| found == name)
            .map(|(_, result, advice)| (result, !advice.is_empty()))
    };
    assert_eq!(result("port"), Some(("broken".to_owned(), true)));
    assert_eq!(result("balance"), Some(("broken".to_owned(), true)));
    assert_eq!(result("directory"), Some(("warning".to_owned(), true)));
    assert_eq!(result("clock"), Some(("warning".to_owned(), true)));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("2 of 10 checks found something broken"),
        "{output:?}"
    );
}

/// CLI-08: without a node the doctor says how to start one, and goes on with the rest.
#[test]
fn cli_08_the_doctor_without_a_node() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let output = run(&["doctor", "--rpc", &format!("http://{free}"), "--datadir", "/nonexistent/chain"]);
    assert!(!output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("broken   node       no node answers at")
            && text.contains("→ start one with `almanac dev`"),
        "{text}"
    );
    assert!(text.contains("warning  directory  /nonexistent/chain does not exist"), "{text}");
    let healthy = chain();
    assert!(command(&healthy, "doctor").status.success());
}
