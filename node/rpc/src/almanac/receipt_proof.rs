//! Proves receipts from the index.

use crate::types::encoded_transaction;
use alloy_primitives::TxHash;
use almanac_index::{Index, StoreError};
use almanac_primitives::ReceiptProof;
use almanac_proof::{ClaimJson, ProofJson};

/// Why a receipt cannot be proven.
#[derive(Debug, thiserror::Error)]
pub enum ReceiptProofError {
    /// Nothing with this hash ran.
    #[error("no block has {hash}")]
    NotFound {
        /// Which hash.
        hash: TxHash,
    },
    /// It ran, and is something else.
    #[error("{hash} is no run of a schedule: ask with {{ transaction }}")]
    NoRun {
        /// Its hash.
        hash: TxHash,
    },
    /// The index contradicts itself.
    #[error("{hash} is not where the index says")]
    Misplaced {
        /// Its hash.
        hash: TxHash,
    },
    /// The index cannot be read.
    #[error(transparent)]
    Index(#[from] StoreError),
}

/// Proves that something ran, and what became of it.
pub fn prove_ran(index: &Index, hash: TxHash, is_run: bool) -> Result<ProofJson, ReceiptProofError> {
    let (location, block) = index.transaction(hash)?.ok_or(ReceiptProofError::NotFound { hash })?;
    let misplaced = || ReceiptProofError::Misplaced { hash };
    let receipt = block.receipts.get(location.index).ok_or_else(misplaced)?;
    if is_run && receipt.schedule_ref.is_none() {
        return Err(ReceiptProofError::NoRun { hash });
    }
    let transaction = encoded_transaction(&block, location.index).ok_or_else(misplaced)?;
    let place = u32::try_from(location.index).map_err(|_| misplaced())?;
    let proof = ReceiptProof::new(&block.receipts, place, transaction).ok_or_else(misplaced)?;
    let claim = if is_run { ClaimJson::Run { hash } } else { ClaimJson::Transaction { hash } };
    Ok(ProofJson::of_receipt(claim, &block.block.header, proof))
}
