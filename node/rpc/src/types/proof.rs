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
//! and programs that only want to look. Keys are `account` with `address`; `slot` with `address` and `slot`; `code`
//! with `hash`; `body` with `schedule`; `calendarNode` with `node`; and `genesis`.

use alloy_primitives::{Address, B256, BlockHash, Bytes, U64, U256};
use almanac_primitives::{Header, StateKey, state::Meta};
use almanac_state::StateProof;
use serde::{Deserialize, Serialize};

/// The name of this form.
pub const PROOF_FORMAT: &str = "almanac-proof-1";

/// A proof and its header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProofJson {
    /// The name of the form.
    pub format: String,
    /// The block after which the value is there.
    pub header: HeaderJson,
    /// The proof.
    pub proof: ProofFields,
}

/// A block header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HeaderJson {
    /// Height.
    pub number: U64,
    /// Hash.
    pub hash: BlockHash,
    /// What the proof leads up to.
    pub state_root: B256,
    /// The canonical encoding, which counts.
    pub encoded: Bytes,
}

/// A proof without its header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProofFields {
    /// Whose value.
    pub key: KeyJson,
    /// The value.
    pub value: Bytes,
    /// The canonical encoding, which counts.
    pub encoded: Bytes,
}

/// The name of a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the head of this file has the words")]
pub enum KeyJson {
    Account { address: Address },
    Slot { address: Address, slot: U256 },
    Code { hash: B256 },
    Body { schedule: String },
    CalendarNode { node: U64 },
    Genesis,
}

impl ProofJson {
    /// A proof and its header.
    pub fn new(header: &Header, proof: &StateProof) -> Self {
        Self { format: PROOF_FORMAT.to_owned(), header: header.into(), proof: proof.into() }
    }
}

impl From<&Header> for HeaderJson {
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

impl From<StateKey> for KeyJson {
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
