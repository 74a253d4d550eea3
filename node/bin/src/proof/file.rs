//! The JSON form of a proof with the header that it is for.
//!
//! ```json
//! {
//!   "format": "almanac-proof-1",
//!   "header": {
//!     "number": "0x2a",
//!     "hash": "0x…",
//!     "stateRoot": "0x…",
//!     "encoded": "0x…"
//!   },
//!   "proof": {
//!     "key": { "kind": "slot", "address": "0x…", "slot": "0x5" },
//!     "value": "0x…",
//!     "encoded": "0x…"
//!   }
//! }
//! ```
//!
//! What counts is `encoded`: the canonical encoding of header and proof. The rest says the same for people
//! and programs that only want to look, and a file in which the two differ is refused. Keys are `account`
//! with `address`; `slot` with `address` and `slot`; `code` with `hash`; `body` with `schedule`; `calendarNode` with `node`;
//! and `genesis`. Where only a header is wanted, everything but `header` is ignored.

use alloy_primitives::{Address, B256, BlockHash, Bytes, U64, U256};
use almanac_primitives::{Header, StateKey, state::Meta};
use almanac_state::{StateProof, proof::PROOF_BYTES_MAX};
use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};
use std::{fs, path::Path};

const FORMAT: &str = "almanac-proof-1";

/// Largest file that is read: the largest proof in hexadecimal, its value once more, and room for the rest.
const FILE_BYTES_MAX: u64 = 4 * PROOF_BYTES_MAX as u64 + 16 * 1024;

/// A proof and its header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ProofFile {
    format: String,
    header: HeaderFields,
    proof: ProofFields,
}

/// The part of a file that a header is taken from.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct HeaderFile {
    header: HeaderFields,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct HeaderFields {
    number: U64,
    hash: BlockHash,
    state_root: B256,
    encoded: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ProofFields {
    key: KeyFields,
    value: Bytes,
    encoded: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", deny_unknown_fields)]
enum KeyFields {
    Account { address: Address },
    Slot { address: Address, slot: U256 },
    Code { hash: B256 },
    Body { schedule: String },
    CalendarNode { node: U64 },
    Genesis,
}

impl ProofFile {
    pub(super) fn new(header: &Header, proof: &StateProof) -> Self {
        Self { format: FORMAT.to_owned(), header: header.into(), proof: proof.into() }
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a proof file has only string keys")
    }

    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let file: Self = read_json(path, "proof")?;
        let given = &file.format;
        ensure!(*given == FORMAT, "{} has the format {given:?}, this build reads {FORMAT:?}", path.display());
        Ok(file)
    }

    /// The header that came with the proof.
    pub(super) fn header(&self) -> anyhow::Result<Header> {
        self.header.decode()
    }

    /// The proof, yet to be checked.
    pub(super) fn proof(&self) -> anyhow::Result<StateProof> {
        let proof = StateProof::decode(&self.proof.encoded)?;
        let ProofFields { key, value, .. } = ProofFields::from(&proof);
        ensure!(
            self.proof.key == key,
            "the proof file shows another key than its proof has, {:?}",
            proof.key
        );
        ensure!(self.proof.value == value, "the proof file shows another value than its proof has, {value}");
        Ok(proof)
    }
}

impl HeaderFile {
    pub(super) fn read(path: &Path) -> anyhow::Result<Header> {
        read_json::<Self>(path, "header")?.header.decode()
    }
}

impl HeaderFields {
    fn decode(&self) -> anyhow::Result<Header> {
        let header = Header::decode(&self.encoded).context("this is not a block header")?;
        let fields = Self::from(&header);
        ensure!(*self == fields, "the file shows other facts than its header has: {fields:?}");
        Ok(header)
    }
}

fn read_json<T: for<'de> Deserialize<'de>>(path: &Path, what: &str) -> anyhow::Result<T> {
    let shown = path.display();
    let size = fs::metadata(path).with_context(|| format!("cannot read {shown}"))?.len();
    ensure!(size <= FILE_BYTES_MAX, "{shown} has {size} bytes, a {what} file has at most {FILE_BYTES_MAX}");
    let json = fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    serde_json::from_str(&json).with_context(|| format!("{shown} is not a {what} file"))
}

impl From<&Header> for HeaderFields {
    fn from(header: &Header) -> Self {
        Self {
            number: U64::from(header.number),
            hash: header.hash(),
            state_root: header.commitment.state_root,
            encoded: header.encode().into(),
        }
    }
}

impl From<&StateProof> for ProofFields {
    fn from(proof: &StateProof) -> Self {
        Self { key: proof.key.into(), value: proof.value.clone(), encoded: proof.encode().into() }
    }
}

impl From<StateKey> for KeyFields {
    fn from(key: StateKey) -> Self {
        match key {
            StateKey::Account(address) => Self::Account { address },
            StateKey::Slot(address, slot) => Self::Slot { address, slot },
            StateKey::Code(hash) => Self::Code { hash },
            StateKey::Body(schedule) => Self::Body { schedule: schedule.to_string() },
            StateKey::Calendar(node) => Self::CalendarNode { node: U64::from(node) },
            StateKey::Meta(Meta::Genesis) => Self::Genesis,
        }
    }
}
