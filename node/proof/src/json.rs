//! The JSON form of a proof: what is claimed of a block, what shows it, and why the block is final.
//!
//! ```json
//! {
//!   "format": "almanac-proof-2",
//!   "claim": { "kind": "value" },
//!   "header": { "number": "0x2a", "hash": "0x…", "stateRoot": "0x…", "receiptsRoot": "0x…", "encoded": "0x…" },
//!   "values": [
//!     { "key": { "kind": "slot", "address": "0x…", "slot": "0x5" }, "value": "0x…", "encoded": "0x…" }
//!   ],
//!   "entries": null,
//!   "receipt": null,
//!   "finality": { "number": "0x2a", "hash": "0x…", "headers": ["0x…"], "certificate": "0x…" }
//! }
//! ```
//!
//! What counts is `encoded`: the canonical encodings of header and proofs. The other fields
//! repeat it for readers; [`crate::decode`] refuses a proof in which the two differ.
//!
//! | claim | shown by |
//! |---|---|
//! | `value` | one value |
//! | `schedule` with `schedule` | its head and its body, and its escrow unless that is empty |
//! | `span` with `lane`, `from`, `to` | the leaves of the calendar that answer for it, in order; `entries` says what they have |
//! | `run`, `transaction` with `hash` | `receipt`: its place, itself, what ran, and the nodes of the trie above it |
//!
//! Keys are `account` with `address`; `slot` with `address` and `slot`; `code` with `hash`; `body` with `schedule`;
//! `calendarNode` with `node`; and `genesis`.

use crate::{LaneName, RpcScheduleId, RpcTime};
use alloy_primitives::{Address, B256, BlockHash, Bytes, TxHash, U64, U256};
use almanac_primitives::{Header, ReceiptProof, StateKey, state::Meta};
use almanac_schedule::calendar::Entry;
use almanac_state::StateProof;
use serde::{Deserialize, Serialize};

/// The name of this form.
pub const PROOF_FORMAT: &str = "almanac-proof-2";

/// A proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProofJson {
    /// The name of the form.
    pub format: String,
    /// What is proven.
    pub claim: ClaimJson,
    /// The block that it is proven of.
    pub header: HeaderJson,
    /// Values of the state after the block.
    #[serde(default)]
    pub values: Vec<ValueJson>,
    /// What is due in a span.
    pub entries: Option<Vec<EntryJson>>,
    /// A receipt of the block.
    pub receipt: Option<ReceiptJson>,
    /// Why the block is final; a chain without validators has nothing here.
    pub finality: Option<BlockFinality>,
}

/// What a proof proves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the head of this file has the words")]
pub enum ClaimJson {
    Value {},
    Schedule { schedule: String },
    Span { lane: LaneName, from: U64, to: U64 },
    Run { hash: TxHash },
    Transaction { hash: TxHash },
}

/// A block header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HeaderJson {
    /// Height.
    pub number: U64,
    /// Hash.
    pub hash: BlockHash,
    /// What proofs of values lead up to.
    pub state_root: B256,
    /// What proofs of receipts lead up to.
    pub receipts_root: B256,
    /// The canonical encoding, which counts.
    pub encoded: Bytes,
}

/// A value of the state with its proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ValueJson {
    /// Whose value.
    pub key: KeyJson,
    /// The value.
    pub value: Bytes,
    /// The canonical encoding of the proof, which counts.
    pub encoded: Bytes,
}

/// A schedule that is due in a span.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryJson {
    /// Which.
    #[serde(flatten)]
    pub id: RpcScheduleId,
    /// When.
    pub due: RpcTime,
}

/// A receipt with its proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReceiptJson {
    /// Its place in the block, the prologue's receipt included.
    pub index: U64,
    /// Its canonical encoding.
    pub encoded: Bytes,
    /// The encoding of what ran.
    pub transaction: Bytes,
    /// The nodes of the trie, from the root down.
    pub nodes: Vec<Bytes>,
}

/// Shows that a block is final, to anyone who has the genesis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BlockFinality {
    /// The block.
    pub number: U64,
    /// Its hash.
    pub hash: BlockHash,
    /// Canonical encodings of its header and of those above it, each the parent of the next. The last is of the
    /// block that was certified: most often the block itself.
    pub headers: Vec<Bytes>,
    /// What a quorum of the validators signed about the last.
    pub certificate: Bytes,
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
    NonceSweep,
    Nonce { address: Address, nonce: U64 },
    NonceLog { second: U64, part: U64 },
    AccountKey { address: Address },
}

impl ProofJson {
    /// A proof of values of the state.
    pub fn of_values(claim: ClaimJson, header: &Header, proofs: &[StateProof]) -> Self {
        Self { values: proofs.iter().map(ValueJson::from).collect(), ..Self::empty(claim, header) }
    }

    /// A proof of a receipt.
    pub fn of_receipt(claim: ClaimJson, header: &Header, proof: ReceiptProof) -> Self {
        Self { receipt: Some(proof.into()), ..Self::empty(claim, header) }
    }

    fn empty(claim: ClaimJson, header: &Header) -> Self {
        Self {
            format: PROOF_FORMAT.to_owned(),
            claim,
            header: header.into(),
            values: Vec::new(),
            entries: None,
            receipt: None,
            finality: None,
        }
    }
}

impl From<&Header> for HeaderJson {
    fn from(header: &Header) -> Self {
        Self {
            number: U64::from(header.number),
            hash: header.hash(),
            state_root: header.commitment.state_root,
            receipts_root: header.receipts_root,
            encoded: header.encode().into(),
        }
    }
}

impl From<&StateProof> for ValueJson {
    fn from(proof: &StateProof) -> Self {
        Self { key: proof.key.into(), value: proof.value.clone(), encoded: proof.encode().into() }
    }
}

impl From<&Entry> for EntryJson {
    fn from(entry: &Entry) -> Self {
        Self { id: RpcScheduleId::new(entry.schedule), due: RpcTime::new(entry.due()) }
    }
}

impl From<ReceiptProof> for ReceiptJson {
    fn from(proof: ReceiptProof) -> Self {
        Self {
            index: U64::from(proof.index),
            encoded: proof.receipt,
            transaction: proof.transaction,
            nodes: proof.nodes,
        }
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
            StateKey::Meta(Meta::NonceSweep) => Self::NonceSweep,
            StateKey::Nonce(address, nonce) => Self::Nonce { address, nonce: U64::from(nonce) },
            StateKey::NonceLog(second, part) => {
                Self::NonceLog { second: U64::from(second), part: U64::from(part) }
            }
            StateKey::AccountKey(address) => Self::AccountKey { address },
        }
    }
}
