//! A store of the state: seals the state after a block, on any parent, and commits one block at a time.

use crate::{
    proof::{ProveError, StateProof},
    view::StateView,
};
use alloy_primitives::{B256, Bytes, hex};
use almanac_primitives::{Header, StateCommitment, StateDiff, StateKey};
use std::future::Future;

/// Holds the committed state and every sealed batch that may still follow it.
///
/// ```text
/// committed ── 7 (tip) ─┬─ 8a ─── 9a        commit(8a): 8a becomes the tip, 9a stays good,
///                        └─ 8b ─── 9b                    7, 8b and 9b become stale
/// ```
pub trait StateStore: Send + Sync {
    /// The state after some block.
    type Batch: SealedBatch;

    /// The state after the last committed block.
    fn tip(&self) -> Self::Batch;

    /// The state that `diff` makes of `parent`, which may be the tip or any batch above it.
    ///
    /// Sealing the same diff twice gives two distinct batches with the same content: committing one makes the
    /// other stale.
    fn seal(
        &self,
        parent: &Self::Batch,
        diff: &StateDiff,
    ) -> impl Future<Output = Result<Self::Batch, SealError>> + Send;

    /// Makes `batch` the new head. It must have been sealed directly on the head. Every batch that does not
    /// descend from `batch` becomes stale.
    fn commit(&self, batch: &Self::Batch) -> impl Future<Output = Result<(), CommitError>> + Send;

    /// Goes back to genesis and returns that state; all batches become stale. `None` if the store does not
    /// support it.
    fn reset(&self) -> Option<Self::Batch> {
        None
    }

    /// Proves a value in the state after the block with this header, which must be the last committed one.
    /// Fails for a store without proofs.
    fn prove(
        &self,
        _header: &Header,
        _key: StateKey,
    ) -> impl Future<Output = Result<StateProof, ProveError>> + Send {
        std::future::ready(Err(ProveError::Unsupported))
    }
}

/// The state after some block: it can be read, and others can be sealed on it. Clones share it.
///
/// It stays readable until a batch is committed from which it does not descend; from then on every read fails.
pub trait SealedBatch: StateView + Clone {
    /// The commitment to this state for the header.
    fn commitment(&self) -> StateCommitment;
}

/// The chain continued without this batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the batch at height {height} is stale: the committed tip, at height {tip_height}, does not lead to it; \
     start again from the tip"
)]
pub struct StaleBatch {
    /// Number of batches below it, including genesis.
    pub height: u64,
    /// The same of the committed tip.
    pub tip_height: u64,
}

/// Why a diff cannot be sealed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The parent is no longer part of the chain.
    #[error("cannot build on the parent: {0}")]
    StaleParent(#[from] StaleBatch),
    /// The diff was made on another state than the parent.
    #[error("the diff expects {key:?} to be {}, but the parent has {}", shown(.given), shown(.found))]
    OldValueDiffers {
        /// The first key where they differ.
        key: StateKey,
        /// The old value in the diff.
        given: Option<Bytes>,
        /// The value in the parent.
        found: Option<Bytes>,
    },
    /// A value above the limit.
    #[error("the new value of {key:?} has {given} bytes, at most {max} are allowed")]
    ValueTooLarge {
        /// Its key.
        key: StateKey,
        /// Its size.
        given: usize,
        /// The largest allowed.
        max: usize,
    },
    /// The disk failed.
    #[error("the store failed: {reason}")]
    Store {
        /// The store's error.
        reason: String,
    },
    /// An earlier failure has closed the store.
    #[error("the store is closed after an earlier failure: start again")]
    Closed,
}

/// Why a batch cannot be committed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// It is not a direct child of the head.
    #[error(
        "the batch at height {height} with root {root} was not sealed on the committed tip, which is at \
         height {tip_height} with root {tip_root}; only a batch sealed directly on the tip can be committed"
    )]
    NotOnTip {
        /// Batches below it, genesis included.
        height: u64,
        /// Its state root.
        root: B256,
        /// Height of the committed tip.
        tip_height: u64,
        /// Its state root.
        tip_root: B256,
    },
    /// The disk failed. It is unknown whether the block is durable: reopen to find out.
    #[error("the store failed: {reason}")]
    Store {
        /// The store's error.
        reason: String,
    },
    /// An earlier failure has closed the store.
    #[error("the store is closed after an earlier failure: start again")]
    Closed,
}

/// Shortens a value for display: code can be long.
fn shown(value: &Option<Bytes>) -> String {
    const SHOWN_BYTES_MAX: usize = 40;
    match value {
        None => "absent".to_owned(),
        Some(bytes) if bytes.len() <= SHOWN_BYTES_MAX => bytes.to_string(),
        Some(bytes) => format!("0x{}… ({} bytes)", hex::encode(&bytes[..SHOWN_BYTES_MAX]), bytes.len()),
    }
}
