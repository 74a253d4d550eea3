//! What is packed around the binary names what there is: metrics of a running node, commands and files.

use crate::support::{
    cron::{COUNTER, Job, set_code},
    *,
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Metrics that a developer chain never has: it has no validators.
const OF_NETWORKS: [&str; 1] = ["almanac_conflicting_votes_total"];

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(path)).unwrap()
}

/// Words that are names of metrics; buckets, sums and counts belong to a histogram.
fn metrics(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let names = words.filter(|word| word.starts_with("almanac_"));
    let base = |name: &str| {
        let parts = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        parts.unwrap_or(name).to_owned()
    };
    names.map(base).collect()
}

/// PACK-01: dashboard and alerts ask for metrics that a node has.
#[test]
fn pack_01_dashboard_and_alerts_name_metrics_that_exist() {
    let node = Node::start(&[]);
    set_code(&node, COUNTER);
    Job::once(&node, 60).make(&node);
    node.result("evm_increaseTime", json!([120]));
    let answer = exchange(
        &node.address,
        format!("GET /metrics HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", node.address).as_bytes(),
    );
    let served = metrics(&answer);
    assert!(served.contains("almanac_run_lateness_seconds") && served.len() > 10, "{served:?}");
    let source = read("node/bin/src/figures.rs");
    let described = metrics(&source.split('"').skip(1).step_by(2).collect::<Vec<_>>().join(" "));
    for file in ["packaging/grafana-dashboard.json", "packaging/alerts.yml"] {
        let asked = metrics(&read(file));
        assert!(asked.len() > 5, "{file}: {asked:?}");
        for name in asked {
            let is_there =
                served.contains(&name) || OF_NETWORKS.contains(&name.as_str()) && described.contains(&name);
            assert!(is_there, "{file}: no node has {name}; there are {served:?}");
        }
    }
    let shown = metrics(&read("packaging/grafana-dashboard.json"));
    let missing: Vec<_> = described.difference(&shown).collect();
    assert!(missing.is_empty(), "the dashboard lacks {missing:?}");
    let dashboard: Value = serde_json::from_str(&read("packaging/grafana-dashboard.json")).unwrap();
    let ids: BTreeSet<_> =
        dashboard["panels"].as_array().unwrap().iter().map(|panel| panel["id"].to_string()).collect();
    assert_eq!(ids.len(), dashboard["panels"].as_array().unwrap().len(), "each panel has an id of its own");
}

/// PACK-02: an archive has what its README names, and its checksum is true.
#[test]
fn pack_02_an_archive_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    // A debug build takes half a minute to compress: this stands for it.
    let binary = directory.path().join("almanac");
    fs::write(&binary, format!("#!/bin/sh\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_almanac"))).unwrap();
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
    let pack = |out: &Path| {
        let script = Path::new(ROOT).join("scripts/dist");
        let mut command = Command::new(script);
        command.arg("--binary").arg(&binary).arg("--out").arg(out);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let archive = pack(directory.path());
    let listed = Command::new("tar").args(["-tzf", &archive]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    for file in [
        "/almanac",
        "/packaging/almanac.service",
        "/completions/almanac.bash",
        "/SECURITY.md",
        "/LICENSE-MIT",
    ] {
        assert!(listed.lines().any(|line| line.ends_with(file)), "{file}: {listed}");
    }
    let check =
        Command::new("sha256sum").args(["--check", "SHA256SUMS"]).current_dir(directory.path()).output();
    assert!(check.unwrap().status.success());
}
