//! Proof files, in the form of [`almanac_rpc::types::proof`].
//!
//! A file whose encodings contradict its other fields is refused. If only a header is needed, everything but `header`
//! is ignored.

use crate::regular_file::{self, PROOF_BYTES_MAX};
use almanac_bft::Finality;
use almanac_primitives::{Header, ReceiptProof};
use almanac_rpc::types::proof::{ClaimJson, EntryJson, HeaderJson, PROOF_FORMAT, ProofJson, ValueJson};
use almanac_state::StateProof;
use anyhow::{Context as _, ensure};
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

/// A proof, yet to be checked.
#[derive(Clone, Debug)]
pub(super) struct ProofFile(ProofJson);

/// The part of a file that a header is taken from.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct HeaderFile {
    header: HeaderJson,
}

/// What a file says of its form, whatever that is.
#[derive(Deserialize)]
struct Form {
    format: String,
}

impl ProofFile {
    pub(super) fn new(proof: ProofJson) -> Self {
        Self(proof)
    }

    /// What a node answered.
    pub(super) fn from_answer(answer: Value) -> anyhow::Result<Self> {
        check_format(&serde_json::from_value::<Form>(answer.clone())?.format)?;
        Ok(Self(serde_json::from_value(answer)?))
    }

    /// The same with what a node answered about finality.
    pub(super) fn with_finality(mut self, answer: Value) -> anyhow::Result<Self> {
        self.0.finality = Some(serde_json::from_value(answer)?);
        Ok(self)
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.0).expect("a proof file has only string keys")
    }

    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let json = read_text(path, "proof")?;
        let shown = path.display();
        // The form first: a file of another version may have other fields.
        let form: Form = parse(&json, path, "proof")?;
        check_format(&form.format).with_context(|| format!("{shown} has another version"))?;
        Ok(Self(parse(&json, path, "proof")?))
    }

    /// The header that came with the proof.
    pub(super) fn header(&self) -> anyhow::Result<Header> {
        decode_header(&self.0.header)
    }

    /// What is claimed.
    pub(super) fn claim(&self) -> &ClaimJson {
        &self.0.claim
    }

    /// The values.
    pub(super) fn values(&self) -> anyhow::Result<Vec<StateProof>> {
        self.0.values.iter().map(decode_value).collect()
    }

    /// What the file says is due, for people who only look.
    pub(super) fn entries(&self) -> Option<&[EntryJson]> {
        self.0.entries.as_deref()
    }

    /// The receipt, if there is one.
    pub(super) fn receipt(&self) -> anyhow::Result<Option<ReceiptProof>> {
        let Some(shown) = &self.0.receipt else { return Ok(None) };
        let index = shown.index.try_into().ok().context("the receipt's index is not below 2^32")?;
        Ok(Some(ReceiptProof {
            index,
            receipt: shown.encoded.clone(),
            transaction: shown.transaction.clone(),
            nodes: shown.nodes.clone(),
        }))
    }

    /// What shows that the block is final, if the file has it.
    pub(super) fn finality(&self) -> anyhow::Result<Option<Finality>> {
        let Some(shown) = &self.0.finality else { return Ok(None) };
        let headers: Vec<Header> = (shown.headers.iter())
            .map(|encoded| Header::decode(encoded))
            .collect::<Result<_, _>>()
            .context("the field finality has bytes that are not a block header")?;
        let first = headers.first().context("the field finality has no header")?;
        let (number, hash) = (first.number, first.hash());
        ensure!(
            (shown.number.to::<u64>(), shown.hash) == (number, hash),
            "the file claims that block {} ({}) is final, but its headers begin with block {number} ({hash})",
            shown.number,
            shown.hash
        );
        Ok(Some(Finality { headers, certificate: shown.certificate.clone() }))
    }
}

impl HeaderFile {
    pub(super) fn read(path: &Path) -> anyhow::Result<Header> {
        decode_header(&parse::<Self>(&read_text(path, "header")?, path, "header")?.header)
    }
}

fn check_format(given: &str) -> anyhow::Result<()> {
    ensure!(given == PROOF_FORMAT, "its format is {given:?}, this build reads {PROOF_FORMAT:?}");
    Ok(())
}

fn decode_header(shown: &HeaderJson) -> anyhow::Result<Header> {
    let header = Header::decode(&shown.encoded).context("this is not a block header")?;
    let fields = HeaderJson::from(&header);
    ensure!(*shown == fields, "the file contradicts its encoded header: {fields:?}");
    Ok(header)
}

fn decode_value(shown: &ValueJson) -> anyhow::Result<StateProof> {
    let proof = StateProof::decode(&shown.encoded)?;
    let ValueJson { key, value, .. } = ValueJson::from(&proof);
    ensure!(shown.key == key, "the proof file contradicts the key of its proof, {:?}", proof.key);
    ensure!(shown.value == value, "the proof file contradicts the value of its proof, {value}");
    Ok(proof)
}

fn read_text(path: &Path, what: &str) -> anyhow::Result<String> {
    let read = regular_file::read_text(path, PROOF_BYTES_MAX);
    read.with_context(|| format!("{} cannot be read as a {what} file", path.display()))
}

fn parse<T: for<'de> Deserialize<'de>>(json: &str, path: &Path, what: &str) -> anyhow::Result<T> {
    serde_json::from_str(json).with_context(|| format!("{} is not a {what} file", path.display()))
}
