//! The commands for people, against a real developer chain: what they print is compared with what was read and found
//! good (`golden/`). `ALMANAC_BLESS=1` writes it anew.

mod doctor;
mod errors;
mod help;
mod keys;
mod live;
mod signatures;
mod story;

use crate::support::*;
use serde_json::Value;
use std::{fs, path::Path, process::Output};

/// A chain whose prices and dates are the same in every run: it begins on Monday, 2026-11-30 at 00:53:20 UTC.
fn chain() -> Node {
    Node::start(&["--timestamp", "1796000000", "--base-fee", "1000000000"])
}

/// Runs a command, the words of which are separated by spaces, and those with spaces in double quotes.
fn command(node: &Node, line: &str) -> Output {
    let url = format!("http://{}", node.address);
    let mut arguments = words(line);
    arguments.extend(["--rpc", &url]);
    run(&arguments)
}

fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for (index, part) in line.split('"').enumerate() {
        if index % 2 == 1 {
            words.push(part);
        } else {
            words.extend(part.split_whitespace());
        }
    }
    words
}

/// What a command prints that succeeds.
fn printed(node: &Node, line: &str) -> String {
    let output = command(node, line);
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn json_of(node: &Node, line: &str) -> Value {
    let text = printed(node, &format!("{line} --json"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{line}: {error}: {text}"))
}

/// What a command that fails says.
fn refusal(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Compares a text with the golden file of this name, without what differs from run to run.
fn compare(name: &str, node: &Node, text: &str) {
    let text = text.replace(&node.address, "HOST");
    let text: String = text.lines().map(|line| without_hashes(line) + "\n").collect();
    compare_exactly(&format!("{name}.txt"), &text);
}

fn compare_exactly(name: &str, text: &str) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chain/cli/golden").join(name);
    if std::env::var_os("ALMANAC_BLESS").is_some() {
        fs::write(&golden, text).unwrap();
    }
    let expected = fs::read_to_string(&golden).unwrap_or_default();
    assert_eq!(text, expected, "{name}: if it is better now, write it anew with ALMANAC_BLESS=1");
}

/// Hashes of transactions depend on random nonces.
fn without_hashes(line: &str) -> String {
    let is_hash = |word: &str| word.len() == 66 && word.starts_with("0x");
    let words = line.split(' ').map(|word| if is_hash(word) { "0xHASH" } else { word });
    words.collect::<Vec<_>>().join(" ")
}
