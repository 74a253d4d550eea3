//! `almanac network up`: one node is killed, the others go on, and its name starts it again.

use crate::support::{machine, try_post};
use serde_json::{Value, json};
use std::{
    io::Write as _,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// Ends with the test, and with it the nodes.
struct Up(Child);

impl Drop for Up {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status();
        let begin = Instant::now();
        while self.0.try_wait().unwrap().is_none() && begin.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn height(port: u16) -> Option<u64> {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": [] }).to_string();
    let answer: Value = serde_json::from_str(&try_post(&format!("127.0.0.1:{port}"), &body).ok()?).ok()?;
    Some(crate::support::number(&answer["result"]))
}

#[track_caller]
fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The process of the node with this configuration.
fn process_of(config: &str) -> u32 {
    let processes = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_node = |pid: &u32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.split(|byte| *byte == 0).any(|argument| argument == config.as_bytes())
    };
    processes.into_iter().find(is_node).expect("the node runs")
}

#[test]
fn a_killed_validator_is_down_and_comes_back_when_it_is_told_to() {
    machine::share();
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().join("net");
    let log = tempfile::NamedTempFile::new().unwrap();
    let port = 23_000 + u16::try_from(std::process::id() % 1_000).unwrap() * 8;
    let almanac = || Command::new(env!("CARGO_BIN_EXE_almanac"));
    let ports = ["--p2p-port".to_owned(), (port + 4).to_string(), "--rpc-port".to_owned(), port.to_string()];
    let made = almanac().args(["network", "new", "--dir"]).arg(&dir).args(&ports).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let up = almanac()
        .args(["network", "up", "--dir"])
        .arg(&dir)
        .stdin(Stdio::piped())
        .stdout(log.reopen().unwrap())
        .spawn()
        .unwrap();
    let mut up = Up(up);
    let said = || std::fs::read_to_string(log.path()).unwrap();
    wait_for("blocks", || height(port).is_some_and(|height| height > 3));

    let second = almanac().args(["network", "up", "--dir"]).arg(&dir).output().unwrap();
    let reason = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success() && reason.contains("is this network up already?"), "{reason}");
    assert!(second.stdout.is_empty(), "it does not greet first");

    let config = dir.join("v1/config.json");
    let victim = process_of(config.to_str().unwrap());
    assert!(Command::new("kill").args(["-KILL", &victim.to_string()]).status().unwrap().success());
    wait_for("v1 is shown as down", || said().contains("v1 down"));
    let before = height(port).unwrap();
    wait_for("the others go on", || height(port).is_some_and(|height| height > before + 5));
    assert!(height(port + 1).is_none());
    writeln!(up.0.stdin.as_mut().unwrap(), "v1").unwrap();
    wait_for("v1 is back", || height(port + 1).is_some_and(|height| height > before));
    assert!(said().contains("v1 starts again"));
}
