//! Proof files.

use crate::regular_file::{self, PROOF_BYTES_MAX};
use almanac_primitives::Header;
use almanac_proof::{HeaderJson, ParseError, ProofJson};
use anyhow::Context as _;
use serde::Deserialize;
use std::path::Path;

/// The part of a file that a header is taken from. All else in it is ignored.
#[derive(Clone, Debug, Deserialize)]
struct HeaderFile {
    header: HeaderJson,
}

/// A proof, yet to be checked.
pub(super) fn read(path: &Path) -> anyhow::Result<ProofJson> {
    ProofJson::parse(&read_text(path, "proof")?).map_err(|error| {
        let context = match error {
            ParseError::OtherFormat { .. } => format!("{} has another version", path.display()),
            ParseError::Json(_) => format!("{} is not a proof file", path.display()),
        };
        anyhow::Error::new(error).context(context)
    })
}

/// The header in a file.
pub(super) fn read_header(path: &Path) -> anyhow::Result<Header> {
    let text = read_text(path, "header")?;
    let file: HeaderFile =
        serde_json::from_str(&text).with_context(|| format!("{} is not a header file", path.display()))?;
    Ok(file.header.decode()?)
}

fn read_text(path: &Path, what: &str) -> anyhow::Result<String> {
    let read = regular_file::read_text(path, PROOF_BYTES_MAX);
    read.with_context(|| format!("{} cannot be read as a {what} file", path.display()))
}
