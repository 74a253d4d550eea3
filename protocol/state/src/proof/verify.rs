//! Verifies a proof against a header, and returns what it proves.

use super::StateProof;
use crate::qmdb::{Family, Value};
use alloy_primitives::{Address, B256, BlockHash, Bytes, U256, keccak256};
use almanac_primitives::{Account, Header, StateKey, codec::DecodeError, state::decode_slot};
use commonware_cryptography::{Sha256, sha256::Digest};
use commonware_storage::qmdb::any::{
    unordered::{Operation, Update},
    value::VariableEncoding,
};
use commonware_utils::sequence::FixedBytes;

/// An entry of the store's log.
type Write = Operation<Family, FixedBytes<32>, VariableEncoding<Value>>;

/// Checks that `proof` leads to the state root in `header`.
///
/// The result is only as trustworthy as the header: compare [`Header::hash`] with a block hash from a source
/// that you trust. The hash covers the state root and everything else in the header.
pub fn verify(header: &Header, proof: &StateProof) -> Result<ProvenValue, VerifyError> {
    let hash = header.hash();
    if (proof.block_number, proof.block_hash) != (header.number, hash) {
        return Err(VerifyError::OtherBlock {
            named_number: proof.block_number,
            named_hash: proof.block_hash,
            header_number: header.number,
            header_hash: hash,
        });
    }
    let state_root = header.commitment.state_root;
    let written = Write::Update(Update(FixedBytes::new(proof.key.hashed().0), Value(proof.value.clone())));
    if !proof.path.verify::<Sha256, _>(written, &Digest(state_root.0)) {
        return Err(VerifyError::WrongRoot { key: proof.key, block_number: header.number, state_root });
    }
    Ok(ProvenValue {
        block_number: header.number,
        block_hash: hash,
        key: proof.key,
        value: proof.value.clone(),
    })
}

/// Why a proof is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// The proof is for another block than the header's.
    #[error(
        "the proof is for block {named_number} with hash {named_hash}, the header is that of block \
         {header_number} with hash {header_hash}"
    )]
    OtherBlock {
        /// Height of the block that the proof names.
        named_number: u64,
        /// Its hash.
        named_hash: BlockHash,
        /// Height in the header.
        header_number: u64,
        /// Hash of the header.
        header_hash: BlockHash,
    },
    /// The path does not lead from the key and the value to the state root.
    #[error(
        "the proof does not lead from {key:?} and its value to {state_root}, the state root of block \
         {block_number}"
    )]
    WrongRoot {
        /// The claimed key.
        key: StateKey,
        /// The block.
        block_number: u64,
        /// The root in its header.
        state_root: B256,
    },
}

/// A value that is in the state after a block. Only [`verify`] creates one.
///
/// Readers must name the key they expect, so that a proof of one thing never passes for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvenValue {
    block_number: u64,
    block_hash: BlockHash,
    key: StateKey,
    value: Bytes,
}

/// Why a proven value is not the requested one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// Another value was proven.
    #[error("the proof is of {proven:?}, expected {asked:?}")]
    OtherKey {
        /// The requested key.
        asked: StateKey,
        /// The proven key.
        proven: StateKey,
    },
    /// The value is in the state but does not decode: it was written by rules that this build does not know.
    #[error("the value of {key:?} cannot be read: {error}")]
    Malformed {
        /// Whose value.
        key: StateKey,
        /// What is wrong with it.
        error: DecodeError,
    },
    /// The code is in the state under a hash other than its own.
    #[error("the code under {named} has the hash {found}")]
    OtherCode {
        /// The hash in the key.
        named: B256,
        /// The hash of the code.
        found: B256,
    },
}

impl ProvenValue {
    /// Height of the block.
    pub fn block_number(&self) -> u64 {
        self.block_number
    }

    /// Hash of that block.
    pub fn block_hash(&self) -> BlockHash {
        self.block_hash
    }

    /// Whose value it is.
    pub fn key(&self) -> StateKey {
        self.key
    }

    /// The value of `key` as it is stored.
    pub fn value_of(&self, key: StateKey) -> Result<&Bytes, ContentError> {
        if key != self.key {
            return Err(ContentError::OtherKey { asked: key, proven: self.key });
        }
        Ok(&self.value)
    }

    /// Nonce, balance and code hash of an account.
    pub fn account(&self, address: Address) -> Result<Account, ContentError> {
        let key = StateKey::Account(address);
        Account::decode(self.value_of(key)?).map_err(|error| ContentError::Malformed { key, error })
    }

    /// The value of a slot, which is never zero: zero slots are not stored.
    pub fn slot(&self, address: Address, slot: U256) -> Result<U256, ContentError> {
        let key = StateKey::Slot(address, slot);
        decode_slot(self.value_of(key)?).map_err(|error| ContentError::Malformed { key, error })
    }

    /// The code with this hash.
    pub fn code(&self, hash: B256) -> Result<&Bytes, ContentError> {
        let code = self.value_of(StateKey::Code(hash))?;
        match keccak256(code) {
            found if found == hash => Ok(code),
            found => Err(ContentError::OtherCode { named: hash, found }),
        }
    }
}
