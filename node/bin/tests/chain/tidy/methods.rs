//! Methods of JSON-RPC. `methods.rs` of these tests compares the list with the sources and with running nodes.

use crate::tidy::document::{Span, words};
use std::collections::BTreeSet;

/// Methods of other nodes that the documents name as missing here.
const ABSENT: [&str; 1] = ["debug_getRawHeader"];

/// What notifications of a subscription are called; nobody can call it.
const NOTIFICATION: &str = "almanac_subscription";

pub(crate) fn listed(document: &str) -> BTreeSet<String> {
    let rows = document.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split_once('`')).map(|(name, _)| name.to_owned()).collect()
}

/// Complains of methods that no node serves. A method is a namespace and a name in camel case, as in `eth_getLogs`;
/// names with more underscores are metrics and crates.
pub(crate) fn check(span: &Span, known: &BTreeSet<String>) -> Vec<String> {
    let namespaces: BTreeSet<&str> = known.iter().filter_map(|name| name.split('_').next()).collect();
    let is_method = |word: &&str| {
        let Some((namespace, name)) = word.split_once('_') else { return false };
        let is_camel = name.starts_with(|c: char| c.is_ascii_lowercase()) && !name.contains('_');
        namespaces.contains(namespace)
            && is_camel
            && !is_file(&span.text, word)
            && !is_crate(&span.text, word)
    };
    let wrong = words(&span.text).filter(is_method).filter(|word| !known.contains(*word));
    let wrong = wrong.filter(|word| !ABSENT.contains(word) && *word != NOTIFICATION);
    wrong.map(|word| format!("no node serves {word}")).collect()
}

fn is_file(text: &str, word: &str) -> bool {
    text.contains(&format!("{word}.rs"))
}

fn is_crate(text: &str, word: &str) -> bool {
    text.contains(&format!("{word}::"))
}

#[test]
fn a_wrong_method_is_caught() {
    let known = listed("| method | dev |\n|---|---|\n| `eth_call` | yes |\n| `almanac_agenda` | yes |\n");
    assert_eq!(known.len(), 2);
    for wrong in ["eth_calls", "eth_getlog([])", "cast rpc almanac_agendas", "almanac_calendar"] {
        assert_eq!(check(&Span::inline(wrong), &known).len(), 1, "{wrong}");
    }
    for right in
        ["eth_call", "almanac_agenda {}", "debug_getRawHeader", "almanac_exec::execute", "eth_feed.rs"]
    {
        assert!(check(&Span::inline(right), &known).is_empty(), "{right}");
    }
}
