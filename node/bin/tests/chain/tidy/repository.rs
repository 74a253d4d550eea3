//! The files of the repository.

use crate::tidy::document::Document;
use std::{fs, path::Path};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// What git, building and installing leave in the tree.
const SKIPPED: [&str; 4] = [".git", "target", "node_modules", "__pycache__"];

pub(crate) struct Repository {
    /// Paths from the root with `/` between their parts, in order.
    pub(crate) files: Vec<String>,
}

impl Repository {
    pub(crate) fn open() -> Self {
        let mut files = Vec::new();
        walk(Path::new(ROOT), "", &mut files);
        files.sort();
        assert!(files.contains(&"node/bin/tests/chain/tidy/repository.rs".to_owned()), "{ROOT}");
        Self { files }
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(Path::new(ROOT).join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Every document but these: the changelog tells the past and may name what is gone, the style guide's examples
    /// are illustrative, and specs name what is not built.
    pub(crate) fn documents(&self) -> Vec<Document> {
        let is_spec = |path: &str| path.starts_with("specs/") && path != "specs/README.md";
        let is_other = |path: &str| ["CHANGELOG.md", "STYLE.md"].contains(&path) || is_spec(path);
        let documents = self.files.iter().filter(|path| path.ends_with(".md") && !is_other(path));
        let documents: Vec<_> = documents.map(|path| Document::new(path, &self.read(path))).collect();
        assert!(documents.len() > 45, "{} documents", documents.len());
        documents
    }

    /// Code, scripts and configuration, without this test, whose planted errors would vouch for themselves.
    pub(crate) fn sources(&self) -> Vec<String> {
        let is_source = |path: &&String| {
            let is_code = [".rs", ".sol", ".py", ".mjs", ".ts", ".js", ".toml", ".proto"]
                .iter()
                .any(|end| path.ends_with(end));
            let is_script = path.starts_with("scripts/") || *path == "Makefile";
            (is_code || is_script) && !path.starts_with("node/bin/tests/chain/tidy/")
        };
        self.files.iter().filter(is_source).map(|path| self.read(path)).collect()
    }

    /// The workspace's crates, by name and path.
    pub(crate) fn crates(&self) -> Vec<(String, String)> {
        let workspace = self.read("Cargo.toml");
        let members = workspace.split("members = [").nth(1).and_then(|rest| rest.split(']').next()).unwrap();
        let members: Vec<&str> = members.split('"').skip(1).step_by(2).collect();
        assert!(members.len() >= 12, "{members:?}");
        let name = |path: &str| {
            let manifest = self.read(&format!("{path}/Cargo.toml"));
            manifest
                .lines()
                .find_map(|line| line.strip_prefix("name = "))
                .unwrap()
                .trim_matches('"')
                .to_owned()
        };
        members.into_iter().map(|path| (name(path), path.to_owned())).collect()
    }
}

fn walk(directory: &Path, prefix: &str, files: &mut Vec<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let is_directory = entry.file_type().unwrap().is_dir();
        if is_directory && SKIPPED.contains(&name.as_str()) {
            continue;
        }
        if is_directory {
            walk(&entry.path(), &format!("{prefix}{name}/"), files);
        } else {
            files.push(format!("{prefix}{name}"));
        }
    }
}
