//! Targets of the Makefile.

use crate::tidy::document::Span;
use std::collections::BTreeSet;

pub(crate) fn targets(makefile: &str) -> BTreeSet<String> {
    let rules = makefile.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()));
    rules.filter_map(|line| line.split_once(':')).map(|(name, _)| name.to_owned()).collect()
}

/// Complains of `make` commands whose targets do not exist.
pub(crate) fn check(span: &Span, known: &BTreeSet<String>) -> Vec<String> {
    // Behind a command there may be a comment, or a description in a second column.
    let command =
        span.text.trim().split('#').next().and_then(|text| text.split("  ").next()).unwrap_or_default();
    let Some(arguments) = command.trim().strip_prefix("make ") else { return Vec::new() };
    let named = arguments.split_whitespace().filter(|word| !word.contains('='));
    named.filter(|word| !known.contains(*word)).map(|word| format!("no such target: make {word}")).collect()
}

#[test]
fn a_wrong_target_is_caught() {
    let known = targets(".PHONY: help\nsim-long: ## Many\n\tcargo test\ntest: lint\n");
    assert_eq!(known.iter().collect::<Vec<_>>(), ["sim-long", "test"]);
    assert_eq!(check(&Span::inline("make sim-longer SEEDS=3"), &known), ["no such target: make sim-longer"]);
    assert_eq!(check(&Span::block("make tests     # all of them"), &known), ["no such target: make tests"]);
    assert_eq!(check(&Span::block("  make tests     all of them"), &known), ["no such target: make tests"]);
    assert!(check(&Span::block("make test     # all of them"), &known).is_empty());
    assert!(check(&Span::block("make test     all of them"), &known).is_empty());
    assert!(check(&Span::inline("make"), &known).is_empty());
}
