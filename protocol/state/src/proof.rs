//! Proofs that a value is in the state after a block, for anyone who has that block's header.
//!
//! ```text
//! block hash ── keccak-256 ── header ── state root ── SHA-256 path ── (key, value)
//! ```
//!
//! A verifier that trusts a block hash needs nothing else: no database, no network, no clock. A proof names its
//! block. It proves presence only; absence cannot be proven, since the store does not order its keys.
//!
//! # Encoding
//!
//! Integers are big-endian, and a `u32` length precedes each list, as everywhere.
//!
//! ```text
//! version      1 byte, 1
//! block        number (8), hash (32)
//! key          0 account: address (20)       3 body: hash (32)
//!              1 slot: address (20), n (32)  4 calendar node: number (8)
//!              2 code: hash (32)             5 fact about the chain: which (1)
//! value        length (4), bytes
//! path         length (4), QMDB's own bytes:
//!                location, varint            where in the log of operations the value was written
//!                chunk (32)                  which of the 256 operations around it still hold, bit by bit
//!                leaves, varint              operations in the log
//!                inactive peaks, varint
//!                digests: count, varint; 32 each
//!                partial chunk digest: 0, or 1 and 32 bytes
//!                operations root (32)
//! ```
//!
//! # Checking the path
//!
//! The log of operations is a Merkle mountain range under SHA-256. Leaf `n` has the position `2n − ones(n)`,
//! a node over `2^h` leaves from `n` on that of leaf `n` plus `2^(h+1) − 2`; positions are hashed as 8 bytes.
//!
//! ```text
//! leaf      H(position, 0xd2, keccak-256(key), varint length, value)
//! node      H(position, left, right)
//! grafted   H(chunk, node)           in place of a node over 256 leaves, unless the chunk is all zero
//! peaks     fold the inactive ones forwards, H(sum, peak); bag the rest backwards, H(peak, bag); H(sum, bag)
//! grafted root    H(0x00, 0x01, leaves (8), inactive peaks (8) if not 0, peaks)
//! state root      H(operations root, grafted root, [leaves mod 256 (8), partial chunk digest])
//! ```
//!
//! The digests of a path are, in this order: the inactive peaks left of the location folded into one, the
//! active ones left of it, the inactive ones right of it, the active ones right of it bagged into one, and
//! the siblings on the way from its peak down to it, those left of it from the top, then those right of it
//! from the bottom. The location's bit in the chunk must be set, and a chunk that is not full must have the
//! partial chunk digest, which is there exactly if leaves mod 256 is not 0.

pub mod key;
mod verify;

pub use verify::{ContentError, ProvenValue, VerifyError, verify};

use crate::qmdb::{CHUNK_BYTES, Family};
use alloy_primitives::{B256, BlockHash, Bytes};
use almanac_primitives::{
    StateKey,
    codec::{DecodeError, Reader, Writer},
    params::STATE_VALUE_BYTES_MAX,
};
use commonware_codec::{Decode as _, Encode as _};
use commonware_cryptography::sha256::Digest;
use commonware_storage::{
    mmr::MAX_PROOF_DIGESTS_PER_ELEMENT, qmdb::current::proof::constant::OperationProof,
};

const VERSION: u8 = 1;

/// Largest encoded path: the digests of the largest possible log, four varints, and the fixed fields.
const PATH_BYTES_MAX: usize = 32 * MAX_PROOF_DIGESTS_PER_ELEMENT + 4 * 10 + CHUNK_BYTES + (1 + 32) + 32;

/// Largest encoded proof.
pub const PROOF_BYTES_MAX: usize =
    1 + 8 + 32 + key::KEY_BYTES_MAX + 4 + STATE_VALUE_BYTES_MAX + 4 + PATH_BYTES_MAX;

/// The Merkle path from a value to the state root.
pub type StatePath = OperationProof<Family, Digest, CHUNK_BYTES>;

/// A claim about a value in the state after a block, with its proof. Check it with [`verify`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateProof {
    /// Height of the block.
    pub block_number: u64,
    /// Its hash.
    pub block_hash: BlockHash,
    /// The key.
    pub key: StateKey,
    /// The value as it is stored.
    pub value: Bytes,
    /// The Merkle path to the state root.
    pub path: StatePath,
}

/// Why bytes do not decode as a proof.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofDecodeError {
    /// A field does not decode.
    #[error("this is not a proof: {0}")]
    Field(#[from] DecodeError),
    /// The path does not decode.
    #[error("the path of the proof cannot be read: {reason}")]
    Path {
        /// What is wrong with it.
        reason: String,
    },
}

/// Why a value cannot be proven.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProveError {
    /// There is no such value. The store cannot prove absence.
    #[error(
        "{key:?} is not in the state after block {block_number}, and that cannot be proven: the store proves \
         what is there, never what is absent"
    )]
    AbsenceUnprovable {
        /// The requested key.
        key: StateKey,
        /// The last committed block.
        block_number: u64,
    },
    /// A value of a forked chain that its root does not cover.
    #[error(
        "{key:?} cannot be proven: this chain is a fork, and its root covers only what its own blocks changed"
    )]
    Forked {
        /// The requested key.
        key: StateKey,
    },
    /// The header is not that of the last committed block.
    #[error(
        "block {block_number} has the state {state_root}, the store is at block {store_height} with \
         {store_root}: only the last committed state can be proven; take that block's header and ask again"
    )]
    Stale {
        /// The requested block.
        block_number: u64,
        /// The state root in its header.
        state_root: B256,
        /// Height of the store.
        store_height: u64,
        /// Its state root.
        store_root: B256,
    },
    /// The disk failed.
    #[error("{key:?} cannot be proven, the store failed: {reason}")]
    Store {
        /// The requested key.
        key: StateKey,
        /// The store's error.
        reason: String,
    },
    /// An earlier failure has closed the store.
    #[error("the store is closed after an earlier failure: start again")]
    Closed,
    /// The store does not support proofs.
    #[error(
        "a chain that is kept in memory makes no proofs of its state: start it with --datadir DIR, or prove a run or \
         another transaction"
    )]
    Unsupported,
}

impl StateProof {
    /// Canonical encoding, at most [`PROOF_BYTES_MAX`] bytes for a value that can be stored.
    pub fn encode(&self) -> Vec<u8> {
        let path = self.path.encode();
        let mut out = Writer::versioned(VERSION, 128 + self.value.len() + path.len());
        out.u64(self.block_number);
        out.b256(self.block_hash);
        key::write(&self.key, &mut out);
        out.bytes(&self.value);
        out.bytes(&path);
        out.finish()
    }

    /// Decodes the canonical encoding, without verifying the claim.
    pub fn decode(encoded: &[u8]) -> Result<Self, ProofDecodeError> {
        let mut input = Reader::versioned(encoded, "proof", VERSION)?;
        let block_number = input.u64("block number")?;
        let block_hash = input.b256("block hash")?;
        let key = key::read(&mut input)?;
        let value = input.bytes("value", STATE_VALUE_BYTES_MAX)?;
        let path = input.bytes("path", PATH_BYTES_MAX)?;
        input.finish("proof")?;
        let path = StatePath::decode_cfg(path.0, &MAX_PROOF_DIGESTS_PER_ELEMENT)
            .map_err(|error| ProofDecodeError::Path { reason: error.to_string() })?;
        Ok(Self { block_number, block_hash, key, value, path })
    }
}
