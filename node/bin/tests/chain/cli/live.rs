//! `almanac schedule watch` while runs happen.

use super::{chain, json_of};
use crate::support::{
    cron::{COUNTER, TARGET, set_code},
    *,
};
use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

/// CLI-09: each run is told as it happens, and the end ends it.
#[test]
fn cli_09_watch_tells_runs_as_they_happen() {
    let node = chain();
    set_code(&node, COUNTER);
    let line =
        format!("schedule every \"hour, 3 times\" --to {TARGET} --data 0xd09de08a --dev-account 0 --yes");
    let made = json_of(&node, &line);
    let id = made["schedules"][0]["id"].as_str().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_almanac"))
        .args([
            "schedule",
            "watch",
            id,
            "--json",
            "--for",
            "2m",
            "--rpc",
            &format!("http://{}", node.address),
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    for run in 0..3 {
        node.result("evm_increaseTime", json!([3_600]));
        let told = next();
        assert_eq!((&told["event"], number(&told["run"]["run"])), (&json!("run"), run), "{told}");
    }
    let end = next();
    assert_eq!((&end["event"], &end["schedule"]["status"]), (&json!("end"), &json!("exhausted")));
    assert!(child.wait().unwrap().success());
}
