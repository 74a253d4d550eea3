//! Paths of the repository, whole or from any of their parts on: `exec/src/block.rs`, `doors/`.

use crate::tidy::document::{Document, Span};
use std::collections::BTreeSet;

/// Endings that only files of this repository have in our documents.
const ENDINGS: [&str; 6] = [".rs", ".md", ".sol", ".toml", ".py", ".mjs"];

/// Files of other projects that the documents cite, and a library whose name looks like a file.
const FOREIGN: [&str; 10] = [
    "web3.py",
    "anvil/server/Cargo.toml",
    "anvil/server/src/ws.rs",
    "anvil/server/src/pubsub.rs",
    "anvil/server/src/config.rs",
    "anvil/core/src/eth/subscription.rs",
    "rpc-eth-types/src/id_provider.rs",
    "rpc-builder/src/cors.rs",
    "node/core/src/args/rpc_server.rs",
    "pubsub.rs",
];

/// Every file and directory, whole and from any of its parts on.
pub(crate) struct Tree {
    known: BTreeSet<String>,
    /// Directories of the root and of crates: a path that begins with one is ours.
    roots: BTreeSet<String>,
}

impl Tree {
    pub(crate) fn new(files: &[String]) -> Self {
        let (mut known, mut roots) = (BTreeSet::new(), BTreeSet::new());
        for file in files {
            let parts: Vec<&str> = file.split('/').collect();
            for end in 1..=parts.len() {
                known.extend((0..end).map(|start| parts[start..end].join("/")));
            }
            roots.extend(parts[..parts.len() - 1].first().map(|&first| first.to_owned()));
            if parts.len() == 3 && parts[2] == "Cargo.toml" {
                roots.insert(parts[1].to_owned());
            }
        }
        Self { known, roots }
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.known.contains(path.trim_end_matches('/'))
    }

    /// Whether a word of code is meant as a path of this repository.
    fn is_claim(&self, word: &str) -> bool {
        let is_plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "_-./{},".contains(c));
        let is_relative = !word.starts_with('/') && !word.starts_with('-') && !word.starts_with('.');
        // A part in capitals stands for a name that the reader chooses: `fuzz/corpus/TARGET/`.
        let is_capital = |part: &str| part.len() > 1 && part.chars().all(|c| c.is_ascii_uppercase());
        if !is_plain || !is_relative || word.split('/').any(is_capital) || FOREIGN.contains(&word) {
            return false;
        }
        let first = word.split('/').next().unwrap_or_default();
        let has_ending = ENDINGS.iter().any(|end| word.len() > end.len() && word.ends_with(end));
        let is_directory = word.ends_with('/');
        let is_ours = word.contains('/') && self.roots.contains(first) && !word.ends_with(".go");
        has_ending || is_directory || is_ours
    }
}

/// Complains of paths that do not exist. What building makes, `target/`, exists later.
pub(crate) fn check(span: &Span, tree: &Tree) -> Vec<String> {
    let words = span.text.split_whitespace().map(|word| word.trim_matches(|c| "()\"',;:".contains(c)));
    let claims = words.filter(|word| tree.is_claim(word) && !word.split('/').any(|part| part == "target"));
    let missing = claims.flat_map(expand).filter(|path| !tree.has(path) && !tree.has(&format!("{path}.rs")));
    missing.map(|path| format!("no such path: {path}")).collect()
}

/// `a/{b,c}.rs` as `a/b.rs` and `a/c.rs`.
fn expand(path: &str) -> Vec<String> {
    let Some((start, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let Some((names, end)) = rest.split_once('}') else { return vec![path.to_owned()] };
    names.split(',').map(|name| format!("{start}{name}{end}")).collect()
}

/// Complains of links within the repository whose file or heading does not exist.
pub(crate) fn check_links(documents: &[Document], tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for document in documents {
        let folder = document.path.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
        for (line, target) in document.links.iter().filter(|(_, target)| !target.contains("://")) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() { document.path.clone() } else { resolve(&folder, file) };
            let other = documents.iter().find(|other| other.path == path);
            let has_heading =
                heading.is_empty() || other.is_some_and(|other| anchors(&other.text).contains(heading));
            if !tree.has(&path) || !has_heading {
                complaints.push(format!("{}:{line}: the link {target} leads nowhere", document.path));
            }
        }
    }
    complaints
}

fn resolve(folder: &str, file: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in file.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The names that a document's headings have in links.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings =
        text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let anchor = |heading: &str| {
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.collect::<String>().to_lowercase().replace(' ', "-")
    };
    headings.map(anchor).collect()
}

/// Pages of `docs/` that its contents do not link to.
pub(super) fn missing_in_contents(contents: &str, files: &[String]) -> Vec<String> {
    let pages = files.iter().filter_map(|file| file.strip_prefix("docs/"));
    pages
        .filter(|page| page.ends_with(".md") && !page.contains('/') && *page != "README.md")
        .filter(|page| !contents.contains(&format!("({page})")))
        .map(|page| format!("docs/README.md does not link to {page}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        let files =
            ["protocol/exec/src/block.rs", "protocol/exec/Cargo.toml", "docs/a.md", "node/bin/src/main.rs"];
        Tree::new(&files.map(str::to_owned))
    }

    #[test]
    fn a_wrong_path_is_caught() {
        for wrong in [
            "protocol/exec/src/blocks.rs",
            "exec/src/blocks.rs",
            "blocks.rs",
            "docs/b.md",
            "doors/",
            "exec/tests",
            "protocol/exec/src/{block,blocks}.rs",
        ] {
            assert_eq!(check(&Span::inline(wrong), &tree()).len(), 1, "{wrong}");
        }
        assert_eq!(check(&Span::block("cat docs/b.md docs/a.md"), &tree()), ["no such path: docs/b.md"]);
    }

    #[test]
    fn right_paths_and_other_words_pass() {
        for right in ["block.rs", "exec/src/", "docs/a.md", "protocol/exec/src/{block,}", "node/bin"] {
            assert!(check(&Span::inline(right), &tree()).is_empty(), "{right}");
        }
        for other in
            ["/health", "http://a/b.rs", "DIR/lock", "eth_call", "fuzz/corpus/TARGET/", "node/defaults.go"]
        {
            assert!(check(&Span::inline(other), &tree()).is_empty(), "{other}");
        }
    }

    #[test]
    fn a_page_that_is_not_in_the_contents_is_caught() {
        let files = ["docs/README.md", "docs/a.md", "docs/b.md", "docs/decisions/0001.md"].map(String::from);
        assert_eq!(missing_in_contents("[a](a.md)", &files), ["docs/README.md does not link to b.md"]);
        assert!(missing_in_contents("[a](a.md) [b](b.md)", &files).is_empty());
    }

    #[test]
    fn a_link_to_nowhere_is_caught() {
        let documents = [
            Document::new("docs/a.md", "# One call\n[b](b.md), [x](a.md#two-calls)"),
            Document::new("docs/d/c.md", "[a](../a.md#one-call) [web](https://a.example/b)"),
        ];
        let complaints = check_links(&documents, &tree());
        assert_eq!(
            complaints,
            [
                "docs/a.md:2: the link b.md leads nowhere",
                "docs/a.md:2: the link a.md#two-calls leads nowhere"
            ]
        );
    }
}
