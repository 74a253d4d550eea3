//! Files with a proof and the header that it is for, in the form of [`almanac_rpc::types::proof`].
//!
//! A file in which the encodings and the rest differ is refused. Where only a header is wanted, everything but
//! `header` is ignored.

use almanac_primitives::Header;
use almanac_rpc::types::proof::{HeaderJson, PROOF_FORMAT, ProofFields, ProofJson};
use almanac_state::{StateProof, proof::PROOF_BYTES_MAX};
use anyhow::{Context as _, ensure};
use serde::Deserialize;
use std::{fs, path::Path};

/// Largest file that is read: the largest proof in hexadecimal, its value once more, and room for the rest.
const FILE_BYTES_MAX: u64 = 4 * PROOF_BYTES_MAX as u64 + 16 * 1024;

/// A proof and its header.
#[derive(Clone, Debug)]
pub(super) struct ProofFile(ProofJson);

/// The part of a file that a header is taken from.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct HeaderFile {
    header: HeaderJson,
}

impl ProofFile {
    pub(super) fn new(header: &Header, proof: &StateProof) -> Self {
        Self(ProofJson::new(header, proof))
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.0).expect("a proof file has only string keys")
    }

    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let file: ProofJson = read_json(path, "proof")?;
        let given = &file.format;
        let known = PROOF_FORMAT;
        ensure!(*given == known, "{} has the format {given:?}, this build reads {known:?}", path.display());
        Ok(Self(file))
    }

    /// The header that came with the proof.
    pub(super) fn header(&self) -> anyhow::Result<Header> {
        decode_header(&self.0.header)
    }

    /// The proof, yet to be checked.
    pub(super) fn proof(&self) -> anyhow::Result<StateProof> {
        let shown = &self.0.proof;
        let proof = StateProof::decode(&shown.encoded)?;
        let ProofFields { key, value, .. } = ProofFields::from(&proof);
        ensure!(shown.key == key, "the proof file shows another key than its proof has, {:?}", proof.key);
        ensure!(shown.value == value, "the proof file shows another value than its proof has, {value}");
        Ok(proof)
    }
}

impl HeaderFile {
    pub(super) fn read(path: &Path) -> anyhow::Result<Header> {
        decode_header(&read_json::<Self>(path, "header")?.header)
    }
}

fn decode_header(shown: &HeaderJson) -> anyhow::Result<Header> {
    let header = Header::decode(&shown.encoded).context("this is not a block header")?;
    let fields = HeaderJson::from(&header);
    ensure!(*shown == fields, "the file shows other facts than its header has: {fields:?}");
    Ok(header)
}

fn read_json<T: for<'de> Deserialize<'de>>(path: &Path, what: &str) -> anyhow::Result<T> {
    let shown = path.display();
    let size = fs::metadata(path).with_context(|| format!("cannot read {shown}"))?.len();
    ensure!(size <= FILE_BYTES_MAX, "{shown} has {size} bytes, a {what} file has at most {FILE_BYTES_MAX}");
    let json = fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    serde_json::from_str(&json).with_context(|| format!("{shown} is not a {what} file"))
}
