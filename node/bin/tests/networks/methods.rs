//! Which methods a node serves: `docs/methods.md` lists them all, and the list is held against the sources and
//! against running nodes.

use crate::support::{Node, network::Network, run};
use serde_json::json;
use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    time::{Duration, Instant},
};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Where a method is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Served {
    dev: bool,
    node: bool,
}

/// The table of the document: a method in code quotes, then a mark for `dev` and for `node`.
fn listed() -> BTreeMap<String, Served> {
    let text = fs::read_to_string(Path::new(ROOT).join("docs/methods.md")).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    let read = |row: &str| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let name = cells[0].trim_end_matches('`').to_owned();
        (name, Served { dev: cells[1] == "yes", node: cells[2] == "yes" })
    };
    let list: Vec<_> = rows.map(read).collect();
    assert!(list.is_sorted_by(|a, b| a.0 < b.0), "each once, in order");
    list.into_iter().collect()
}

/// Every name that a method is registered under anywhere in the sources.
fn written(directory: &Path, names: &mut Vec<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            written(&path, names);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for mark in ["#[method(", "#[subscription("] {
            for attribute in text.split(mark).skip(1) {
                let attribute = attribute.split_once("]\n").unwrap().0;
                // What a subscription sends is no method, and neither are its options.
                let quoted = attribute.split('"').skip(1).step_by(2);
                names.extend(quoted.filter(|name| !name.ends_with("_subscription")).map(str::to_owned));
            }
        }
    }
}

#[test]
fn the_list_has_every_method_there_is() {
    let mut names = Vec::new();
    written(&Path::new(ROOT).join("node/rpc/src"), &mut names);
    names.sort();
    let listed: Vec<String> = listed().into_keys().collect();
    assert_eq!(names, listed, "docs/methods.md and the sources differ");
    assert!(names.len() > 150, "{}", names.len());
}

/// Asks for each method of the list, and for nothing that would do harm: without parameters.
fn check(node: &Node, is_served: impl Fn(Served) -> bool) {
    for (name, served) in listed() {
        let answer = node.call(&name, json!([]));
        let is_known = answer["error"]["message"] != "Method not found";
        assert_eq!(is_known, is_served(served), "{name}: {answer}");
    }
    assert_eq!(node.call("eth_nothing", json!([]))["error"]["message"], "Method not found");
}

#[test]
fn a_developers_node_serves_what_the_list_says() {
    check(&Node::start(&[]), |served| served.dev);
}

#[test]
fn a_validator_serves_what_the_list_says() {
    let net = Network::direct(500);
    check(&net.nodes[0], |served| served.node);
    check_commands(&net.nodes[0]);
}

/// CLI-12: the doctor finds a validator well, and the dashboard knows its peers and whether its last block is final.
fn check_commands(node: &Node) {
    let url = format!("http://{}", node.address);
    let begin = Instant::now();
    for (words, expected) in [
        (
            &["doctor"][..],
            &["node of a network", "ok       role       validator", "ok       peers      3"][..],
        ),
        (&["top", "--once"], &["validator  3 peers  last block final"]),
    ] {
        loop {
            let output = run(&[words, &["--rpc", &url]].concat());
            let text = String::from_utf8_lossy(&output.stdout);
            if output.status.success() && expected.iter().all(|part| text.contains(part)) {
                break;
            }
            assert!(begin.elapsed() < Duration::from_secs(40), "{output:?}");
            std::thread::sleep(Duration::from_millis(500));
        }
    }
}
