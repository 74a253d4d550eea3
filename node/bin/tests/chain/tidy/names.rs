//! Names in the sources: governance parameters, crates, and identifiers of any kind.

use crate::tidy::document::{self, Span};
use std::collections::BTreeSet;

/// Identifiers of other projects and of the kernel that the documents name.
const FOREIGN: [&str; 2] = ["system_call_one_with_caller", "RENAME_NOREPLACE"];

/// The format of proof files, which is spelled like a crate.
const PROOF_FORMAT: &str = "almanac-proof-2";

/// The names of governance parameters, as the source of parameters states them.
pub(crate) fn parameters(source: &str) -> BTreeSet<String> {
    let names = source.lines().filter_map(|line| line.trim().strip_prefix("name: \""));
    names.filter_map(|rest| rest.split_once('"')).map(|(name, _)| name.to_owned()).collect()
}

/// Complains of names that look like a governance parameter and are none: they share its first word.
pub(crate) fn check_parameters(span: &Span, known: &BTreeSet<String>) -> Vec<String> {
    let families: BTreeSet<&str> = known.iter().filter_map(|name| name.split('_').next()).collect();
    let is_parameter = |word: &&str| {
        let family = word.split_once('_').map(|(family, _)| family);
        let is_lower = !word.contains(|c: char| c.is_ascii_uppercase());
        is_lower && family.is_some_and(|family| families.contains(family)) && !is_file(&span.text, word)
    };
    let wrong = document::words(&span.text).filter(is_parameter).filter(|word| !known.contains(*word));
    wrong.map(|word| format!("no such parameter: {word}")).collect()
}

/// Complains of crates that the workspace does not have, by either spelling: `almanac-exec`, `almanac_exec::execute`.
pub(crate) fn check_crates(span: &Span, known: &[String]) -> Vec<String> {
    let text = span.text.replace("::", ":: ");
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"_-:".contains(c));
    let named = words.filter_map(|word| match word.strip_suffix("::") {
        Some(path) => path.starts_with("almanac_").then(|| path.replace('_', "-")),
        None => word.starts_with("almanac-").then(|| word.trim_end_matches('-').to_owned()),
    });
    let named = named.filter(|name| name != PROOF_FORMAT);
    named.filter(|name| !known.contains(name)).map(|name| format!("no such crate: {name}")).collect()
}

/// Every word of the sources.
pub(crate) fn words(sources: &[String]) -> BTreeSet<String> {
    sources.iter().flat_map(|source| document::words(source)).map(str::to_owned).collect()
}

/// Complains of identifiers with an underscore that no source has: functions, tests, constants, metrics, variables
/// of the environment. Methods and parameters have stricter checks.
pub(crate) fn check_identifiers(span: &Span, known: &BTreeSet<String>) -> Vec<String> {
    let is_identifier = |word: &&str| {
        let parts: Vec<&str> = word.split('_').collect();
        parts.len() > 1 && parts.iter().all(|part| !part.is_empty()) && !is_file(&span.text, word)
    };
    let wrong = document::words(&span.text).filter(is_identifier).filter(|word| !known.contains(*word));
    let wrong = wrong.filter(|word| !FOREIGN.contains(word));
    wrong.map(|word| format!("no source has the name {word}")).collect()
}

fn is_file(text: &str, word: &str) -> bool {
    [".rs", ".py", ".json", ".sol"].iter().any(|end| text.contains(&format!("{word}{end}")))
        || text.contains('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_parameter_is_caught() {
        let known = parameters("    slot: 1,\n    name: \"cron_paused\",\n    name: \"block_gas_max\",\n");
        assert_eq!(known.len(), 2);
        assert_eq!(
            check_parameters(&Span::inline("cron_stopped"), &known),
            ["no such parameter: cron_stopped"]
        );
        assert_eq!(
            check_parameters(&Span::inline("set block_gas 3"), &known),
            ["no such parameter: block_gas"]
        );
        for right in ["cron_paused", "block_gas_max", "cron", "cron_call.rs", "eth_call", "CRON_RUN_GAS_MIN"]
        {
            assert!(check_parameters(&Span::inline(right), &known).is_empty(), "{right}");
        }
    }

    #[test]
    fn a_wrong_crate_is_caught() {
        let known = ["almanac".to_owned(), "almanac-exec".to_owned()];
        assert_eq!(
            check_crates(&Span::block("cargo test -p almanac-exce"), &known),
            ["no such crate: almanac-exce"]
        );
        assert_eq!(check_crates(&Span::inline("almanac_vm::run"), &known), ["no such crate: almanac-vm"]);
        for right in
            ["cargo test -p almanac-exec --lib", "almanac_exec::execute", "almanac", "almanac_agenda"]
        {
            assert!(check_crates(&Span::inline(right), &known).is_empty(), "{right}");
        }
    }

    #[test]
    fn a_wrong_identifier_is_caught() {
        let known = words(&["fn with_reader() { LANE_LOOK_GAS }".to_owned()]);
        assert_eq!(check_identifiers(&Span::inline("with_readers"), &known).len(), 1);
        assert_eq!(check_identifiers(&Span::inline("LANE_LOOKS_GAS"), &known).len(), 1);
        assert!(check_identifiers(&Span::inline("with_reader(LANE_LOOK_GAS)"), &known).is_empty());
    }
}
