//! Stores conflicting votes of other validators in files, and prints them.
//!
//! ```text
//! DIR/evidence/VIEW-KEY   two votes that the validator with this key signed in this view, as it sent them
//! ```

use super::config::NodeConfig;
use crate::{
    chain, datadir, private_file,
    regular_file::{self, EVIDENCE_BYTES_MAX},
};
use alloy_primitives::{B256, Bytes};
use almanac_bft::{Conflict, ConflictKind, EvidenceStore, Namespace, ValidatorSet};
use almanac_primitives::Genesis;
use anyhow::{Context as _, bail};
use clap::Args;
use commonware_utils::sys_rng;
use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

/// Most files for one validator: more say nothing new about it.
const FILES_MAX: usize = 16;

/// Shows evidence.
#[derive(Clone, Debug, Args)]
pub(crate) struct ShowEvidence {
    /// Config file of the node.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Where a node keeps evidence.
pub(super) struct EvidenceFiles {
    directory: PathBuf,
    names: BTreeMap<B256, String>,
}

impl EvidenceFiles {
    /// In the directory of a node.
    pub(super) fn new(datadir: &Path, genesis: &Genesis) -> Self {
        let names = genesis.validators.iter().map(|found| (found.public_key, found.name.clone()));
        Self { directory: datadir.join("evidence"), names: names.collect() }
    }

    fn name(&self, key: B256) -> &str {
        self.names.get(&key).map_or("unknown", String::as_str)
    }

    /// All files, by view.
    fn list(&self) -> anyhow::Result<Vec<(String, PathBuf)>> {
        if !self.directory.exists() {
            return Ok(Vec::new());
        }
        let cannot = || format!("cannot read {}", self.directory.display());
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.directory).with_context(cannot)? {
            let path = entry.with_context(cannot)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if !name.ends_with(".new") {
                files.push((name, path));
            }
        }
        files.sort();
        Ok(files)
    }

    /// `false` where there was such a file, or are enough of this validator.
    fn keep(&self, conflict: &Conflict, evidence: &[u8]) -> anyhow::Result<bool> {
        if evidence.len() as u64 > EVIDENCE_BYTES_MAX {
            bail!("evidence of {} bytes is larger than {EVIDENCE_BYTES_MAX}", evidence.len());
        }
        // Twenty digits, so that names are in the order of views.
        let (view, key) = (conflict.view, conflict.validator);
        let name = format!("{view:020}-{key}");
        let files = self.list()?;
        let of_validator = files.iter().filter(|(name, _)| name.ends_with(&key.to_string()));
        if of_validator.count() >= FILES_MAX || files.iter().any(|(found, _)| *found == name) {
            return Ok(false);
        }
        private_file::create_directories(&self.directory)?;
        private_file::replace(&self.directory.join(name), evidence)?;
        Ok(true)
    }
}

impl EvidenceStore for EvidenceFiles {
    fn conflict(&self, conflict: &Conflict, evidence: &Bytes) {
        let name = self.name(conflict.validator).to_owned();
        metrics::counter!("almanac_conflicting_votes_total", "validator" => name.clone()).increment(1);
        match self.keep(conflict, evidence) {
            Ok(true) => tracing::warn!("validator {name} signed conflicting votes: {}", describe(conflict)),
            Ok(false) => {}
            Err(error) => tracing::error!("evidence against validator {name} cannot be kept: {error:#}"),
        }
    }
}

/// What a conflict is, in words.
fn describe(Conflict { view, kind, .. }: &Conflict) -> String {
    match kind {
        ConflictKind::Notarize(first, second) => {
            format!("view {view}, for blocks {first} and {second}")
        }
        ConflictKind::Finalize(first, second) => {
            format!("view {view}, that blocks {first} and {second} are final")
        }
        ConflictKind::NullifyFinalize(block) => {
            format!("view {view}, that it has failed and that block {block} is final")
        }
    }
}

/// Prints what is kept, one line for each, after checking it.
pub(super) fn run(command: &ShowEvidence) -> anyhow::Result<()> {
    let config = NodeConfig::read(&command.config)?;
    let genesis = datadir::read_genesis(&config.genesis)?;
    let files = EvidenceFiles::new(&config.datadir, &genesis);
    let mut out = std::io::stdout();
    let found = files.list()?;
    if found.is_empty() {
        writeln!(out, "this node has received no conflicting votes")?;
        return Ok(());
    }
    let validators = ValidatorSet::new(&genesis)?;
    let origin = chain::origin_of(&genesis)?;
    let namespace = Namespace(origin.hash());
    for (name, path) in found {
        let evidence = regular_file::read(&path, EVIDENCE_BYTES_MAX)?;
        match Conflict::verify(&evidence, &validators, &namespace, &mut sys_rng()) {
            Ok(conflict) => {
                let (name, key) = (files.name(conflict.validator), conflict.validator);
                writeln!(out, "{name} {key} signed conflicting votes: {}", describe(&conflict))?;
            }
            Err(error) => writeln!(out, "{name} is no evidence: {error}")?,
        }
    }
    Ok(())
}
