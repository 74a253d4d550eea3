//! Records of decisions: each states what of it is not built, in a form that can be compared with the sources.
//!
//! The first line below the title is the status: "November 2026. Accepted. Built in `node/bft`." What is missing
//! follows it in the same line: "Not built: the TypeScript client (`clients/`)." Each thing has a mark in backquotes
//! that will exist once it is built: a path, an identifier, or the spec of a door.

use crate::tidy::{document::Document, paths::Tree};
use std::collections::BTreeSet;

/// Phrases that put something off. They belong into the status, behind "Not built:", with a mark.
const PUT_OFF: [&str; 6] =
    ["not built", "not yet built", "to come", "still to be", "not used yet", "work yet"];

/// Sentences with such a phrase that put nothing off.
const INNOCENT: [&str; 1] = ["`fuzz/` is not built by `make test`"];

pub(crate) struct Record {
    path: String,
    number: String,
    status: String,
    rest: String,
}

pub(crate) fn is_record(path: &str) -> bool {
    path.strip_prefix("docs/decisions/").is_some_and(|name| name.starts_with(|c: char| c.is_ascii_digit()))
}

/// The numbers of all records.
pub(crate) fn numbers(files: &[String]) -> BTreeSet<String> {
    let records = files.iter().filter(|path| is_record(path)).filter_map(|path| path.rsplit('/').next());
    let numbers: BTreeSet<String> = records.map(|name| name.chars().take(4).collect()).collect();
    assert!(numbers.len() >= 27, "{numbers:?}");
    numbers
}

/// Complains of decisions that do not exist: "decision 0099", "(decisions 0016, 0099)".
pub(crate) fn check_numbers(document: &Document, known: &BTreeSet<String>) -> Vec<String> {
    let mut complaints = Vec::new();
    for (line, text) in (1..).zip(document.text.lines()) {
        for rest in text.split("ecision").skip(1) {
            let rest = rest.strip_prefix('s').unwrap_or(rest);
            let words = rest.split([' ', ',', '.', ')', '(', ':', ';', '`']).filter(|word| !word.is_empty());
            let is_number = |word: &&str| word.len() == 4 && word.chars().all(|c| c.is_ascii_digit());
            let numbers = words.take_while(|word| is_number(word) || *word == "and").filter(is_number);
            let unknown = numbers.filter(|number| !known.contains(*number));
            complaints
                .extend(unknown.map(|number| format!("{}:{line}: no decision {number}", document.path)));
        }
    }
    complaints
}

impl Record {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let mut lines = text.lines().filter(|line| !line.is_empty());
        let title = lines.next().unwrap_or_default();
        let number = title.trim_start_matches("# ").chars().take(4).collect();
        let status = lines.next().unwrap_or_default().to_owned();
        Self { path: path.to_owned(), number, status, rest: lines.collect::<Vec<_>>().join("\n") }
    }

    fn unbuilt(&self) -> Option<&str> {
        self.status.split_once("Not built: ").map(|(_, unbuilt)| unbuilt)
    }

    /// Complains of a record without a status, of things put off elsewhere, and of marks that exist.
    pub(crate) fn check(&self, words: &BTreeSet<String>, tree: &Tree, built_specs: &[String]) -> Vec<String> {
        let mut complaints = Vec::new();
        if !self.status.contains(" Accepted. Built") && !self.status.contains(" Superseded by ") {
            complaints
                .push("the line below the title states no status: \"DATE. Accepted. Built …\"".to_owned());
        }
        let rest =
            INNOCENT.iter().fold(self.rest.to_lowercase(), |rest, innocent| rest.replace(innocent, ""));
        let put_off = PUT_OFF.iter().filter(|phrase| rest.contains(*phrase));
        complaints.extend(put_off.map(|phrase| format!("{phrase:?} belongs into the status, with a mark")));
        if let Some(unbuilt) = self.unbuilt() {
            let marks: Vec<&str> = unbuilt.split('`').skip(1).step_by(2).collect();
            if marks.is_empty() {
                complaints.push("\"Not built\" names no mark in backquotes".to_owned());
            }
            let is_there =
                |mark: &&str| match mark.strip_prefix("specs/").and_then(|name| name.strip_suffix(".md")) {
                    Some(spec) => built_specs.iter().any(|built| built == spec),
                    None => words.contains(*mark) || tree.has(mark),
                };
            complaints.extend(marks.iter().copied().filter(is_there).map(|mark| format!("{mark} is built")));
        }
        complaints.into_iter().map(|complaint| format!("{}: {complaint}", self.path)).collect()
    }

    /// Complains where the overview and the record disagree about whether all of it is built.
    pub(crate) fn check_overview(&self, overview: &str) -> Vec<String> {
        let row = overview.lines().find(|line| line.starts_with(&format!("| [{}](", self.number)));
        let Some(row) = row else {
            return vec![format!("docs/decisions/README.md: no row for {}", self.number)];
        };
        let cell = row.trim_end_matches('|').rsplit('|').next().unwrap_or_default().trim();
        if cell.starts_with("yes") == self.unbuilt().is_none() {
            return Vec::new();
        }
        vec![format!("docs/decisions/README.md: {}: {cell:?} contradicts the record's status", self.number)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Vec<String> {
        let words = ["start_sync".to_owned()].into();
        let tree = Tree::new(&["node/bft/src/sync/mod.rs".to_owned(), "specs/hedera.md".to_owned()]);
        Record::new("r.md", text).check(&words, &tree, &["arc21".to_owned()])
    }

    #[test]
    fn a_record_that_denies_what_is_built_is_caught() {
        let record = |mark: &str| {
            format!("# 0003 Store\n\nNovember 2026. Accepted. Built. Not built: sync ({mark}).\n")
        };
        for built in ["node/bft/src/sync", "start_sync", "specs/arc21.md", "sync/"] {
            assert_eq!(check(&record(&format!("`{built}`"))), [format!("r.md: {built} is built")]);
        }
        assert_eq!(check(&record("see 0015")), ["r.md: \"Not built\" names no mark in backquotes"]);
        for unbuilt in ["`clients/`", "`stop_sync`", "`specs/hedera.md`"] {
            assert!(check(&record(unbuilt)).is_empty(), "{unbuilt}");
        }
    }

    #[test]
    fn a_record_that_puts_things_off_elsewhere_is_caught() {
        let put_off =
            "# 0003 Store\n\nNovember 2026. Accepted. Built.\n\nMeasurements are still to be made.\n";
        assert_eq!(check(put_off), ["r.md: \"still to be\" belongs into the status, with a mark"]);
        assert_eq!(check("# 0003 Store\n\n## Context\n").len(), 1);
    }

    #[test]
    fn a_wrong_overview_is_caught() {
        let record =
            Record::new("r.md", "# 0003 Store\n\nNovember 2026. Accepted. Built. Not built: sync (`x`).\n");
        assert!(record.check_overview("| [0003](a.md) | a | b | in part |").is_empty());
        assert_eq!(record.check_overview("| [0003](a.md) | a | b | yes |").len(), 1);
        assert_eq!(record.check_overview("| [0004](a.md) | a | b | yes |").len(), 1);
    }

    #[test]
    fn a_wrong_number_is_caught() {
        let known = ["0001".to_owned(), "0020".to_owned()].into();
        let document = |text: &str| Document::new("a.md", text);
        assert_eq!(
            check_numbers(&document("a\n(decisions 0001, 0021)"), &known),
            ["a.md:2: no decision 0021"]
        );
        assert_eq!(check_numbers(&document("decision 0099: x"), &known).len(), 1);
        assert!(check_numbers(&document("Decisions 0001 and 0020, of November 2026"), &known).is_empty());
    }
}
