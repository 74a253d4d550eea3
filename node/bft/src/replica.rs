//! A validator's view of the chain: the last final block, and every executed block above it.

use crate::{
    block::ConsensusBlock,
    forks::{Forks, Place},
};
use alloy_primitives::{Address, B256, BlockHash};
use almanac_consensus::{Application, ApplicationError, MadeBlock, More, Proposal, Proven, SharedPool, Tip};
use almanac_exec::{BlockError, StateFault};
use almanac_primitives::{Block, RecoveredTransaction, StateKey};
use almanac_state::{ProveError, SealError, StateStore};
use commonware_consensus::marshal::ancestry::Ancestry;
use futures::StreamExt as _;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::watch;

/// Most blocks above the last final one that are executed for a proposal or a vote. A node that is further
/// behind has to catch up first, as blocks become final.
const RECOVERED_BLOCKS_MAX: u64 = 64;

/// Attempts at a set of proofs, if blocks become final in between.
const PROVE_TRIES_MAX: u32 = 5;

/// The application with all its forks. Voting and finalising share it.
pub struct Replica<S: StateStore> {
    application: Application<S>,
    forks: Mutex<Forks<S::Batch>>,
    /// Held from the moment the store's tip begins to move until the forks have followed it.
    finalizing: tokio::sync::Mutex<()>,
    final_height: watch::Sender<u64>,
}

/// Why a block is not made, accepted, or final.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaError {
    /// The block is invalid, on every node and for ever.
    #[error("the block is invalid: {0}")]
    Invalid(Box<ApplicationError>),
    /// The block's fee recipient differs from the genesis.
    #[error("the block's fee recipient is {given}, its proposer's is {expected}")]
    FeeRecipient {
        /// The block's fee recipient.
        given: Address,
        /// The proposer's fee recipient.
        expected: Address,
    },
    /// The block's proposer is not a validator.
    #[error("the block's proposer has the key {leader}, which is not a validator's")]
    NotAValidator {
        /// The key.
        leader: B256,
    },
    /// The chain continued without the block or its parent.
    #[error("the chain continued without block {number} ({hash})")]
    Abandoned {
        /// Its height.
        number: u64,
        /// Its hash.
        hash: BlockHash,
    },
    /// The parent is not available.
    #[error("the ancestors of a block are not available")]
    NoAncestors,
    /// This node has a local problem and cannot judge the block.
    #[error(transparent)]
    Local(Box<ApplicationError>),
    /// The parent has the largest possible time.
    #[error("the parent's time is the largest possible one")]
    TimeExhausted,
    /// The node is shutting down.
    #[error("execution was stopped: {reason}")]
    Stopped {
        /// The runtime's error.
        reason: String,
    },
}

impl ReplicaError {
    /// Whether every honest node says the same of the block, for ever.
    pub fn is_verdict(&self) -> bool {
        matches!(self, Self::Invalid(_) | Self::FeeRecipient { .. } | Self::NotAValidator { .. })
    }

    /// Whether a retry may succeed: the disk failed, or the chain moved on in the meantime.
    ///
    /// A broken invariant stays broken. The result of a write that failed midway is known only after a restart.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::NoAncestors => true,
            Self::Local(error) => match &**error {
                ApplicationError::Block(BlockError::State(fault)) => match fault {
                    // A closed store stays closed until the node starts again.
                    StateFault::Read(error) => !error.is_closed,
                    StateFault::Corrupt { .. } | StateFault::Missing { .. } => true,
                    StateFault::LedgerShort { .. } => false,
                },
                ApplicationError::Seal(SealError::StaleParent(_) | SealError::Store { .. }) => true,
                _ => false,
            },
            Self::Invalid(_)
            | Self::FeeRecipient { .. }
            | Self::NotAValidator { .. }
            | Self::Abandoned { .. }
            | Self::TimeExhausted
            | Self::Stopped { .. } => false,
        }
    }
}

impl From<ApplicationError> for ReplicaError {
    fn from(error: ApplicationError) -> Self {
        if is_of_block(&error) { Self::Invalid(error.into()) } else { Self::Local(error.into()) }
    }
}

/// Whether an error is about the block, not about this node.
fn is_of_block(error: &ApplicationError) -> bool {
    match error {
        ApplicationError::Block(error) => match error {
            BlockError::TimeNotAfterParent { .. }
            | BlockError::NumberNotNext { .. }
            | BlockError::NumberExhausted { .. }
            | BlockError::ProtocolVersion { .. }
            | BlockError::InvalidTransaction { .. } => true,
            BlockError::State(_) | BlockError::Fault(_) => false,
        },
        ApplicationError::Header(_) | ApplicationError::WrongParent { .. } => true,
        ApplicationError::Seal(_)
        | ApplicationError::Commit(_)
        | ApplicationError::Archive(_)
        | ApplicationError::OtherState { .. }
        | ApplicationError::Genesis(_) => false,
    }
}

impl<S: StateStore<Batch: Send + 'static>> Replica<S> {
    /// A replica whose last final block is `tip`.
    pub fn new(application: Application<S>, tip: Tip<S::Batch>) -> Arc<Self> {
        let final_height = watch::Sender::new(tip.header.number);
        let forks = Mutex::new(Forks::new(tip));
        Arc::new(Self { application, forks, finalizing: tokio::sync::Mutex::default(), final_height })
    }

    /// The application below.
    pub fn application(&self) -> &Application<S> {
        &self.application
    }

    /// The last final block.
    pub fn tip(&self) -> Tip<S::Batch> {
        self.forks().tip().clone()
    }

    /// Transactions of `pool` that may go into a block on `parent`. Leaves out those already in the blocks up
    /// to it, which the pool may still hold.
    pub(crate) fn candidates(&self, pool: &SharedPool, parent: &Tip<S::Batch>) -> Vec<RecoveredTransaction> {
        let included = self.forks().included(parent.header.number, parent.hash);
        pool.candidates_except(&included)
    }

    /// Finds further ones for the same block.
    pub(crate) fn further_candidates(&self, pool: &Arc<SharedPool>, parent: &Tip<S::Batch>) -> More {
        let included = self.forks().included(parent.header.number, parent.hash);
        let pool = pool.clone();
        More::by(move |offered| pool.candidates_except(&included.union(offered).copied().collect()))
    }

    /// Builds a block on `parent` and keeps it.
    pub async fn propose(
        &self,
        parent: &Tip<S::Batch>,
        proposal: Proposal,
    ) -> Result<MadeBlock<S::Batch>, ReplicaError> {
        let made = self.application.propose(parent, proposal).await?;
        self.keep(made)
    }

    /// Executes a block on `parent`, checks its whole header, and keeps it.
    pub async fn verify(
        &self,
        parent: &Tip<S::Batch>,
        block: &Block,
    ) -> Result<MadeBlock<S::Batch>, ReplicaError> {
        let known = self.forks().get(block.header.number, block.hash()).cloned();
        match known {
            Some(made) => Ok(made),
            None => self.keep(self.application.verify(parent, block.clone()).await?),
        }
    }

    /// The state after the newest block of `ancestry`. Executes blocks on the way that were not executed yet,
    /// as after a restart.
    pub(crate) async fn reach(
        &self,
        ancestry: impl Ancestry<ConsensusBlock>,
    ) -> Result<Tip<S::Batch>, ReplicaError> {
        loop {
            let before = self.tip().header.number;
            match self.reach_once(ancestry.clone()).await {
                // Some of them became final meanwhile: the state that the others were executed on is of the past, or
                // the way down missed the last final block. This ends when no more become final, at the latest with
                // the newest of them.
                Err(ReplicaError::Local(_) | ReplicaError::Abandoned { .. })
                    if self.has_moved_beyond(before).await => {}
                reached => return reached,
            }
        }
    }

    /// Whether a block above `height` is final. Waits for a commit in progress, during which the store is ahead
    /// of the forks.
    pub(crate) async fn has_moved_beyond(&self, height: u64) -> bool {
        drop(self.finalizing.lock().await);
        self.tip().header.number > height
    }

    async fn reach_once(
        &self,
        mut ancestry: impl Ancestry<ConsensusBlock>,
    ) -> Result<Tip<S::Batch>, ReplicaError> {
        let mut unknown = Vec::new();
        let mut tip = loop {
            let block = ancestry.next().await.ok_or(ReplicaError::NoAncestors)?.inner().block().clone();
            let (number, hash) = (block.header.number, block.hash());
            self.wait_for(number.saturating_sub(RECOVERED_BLOCKS_MAX)).await;
            let place = self.forks().find(number, hash);
            match place {
                Place::Known(tip) => break *tip,
                Place::Abandoned => return Err(ReplicaError::Abandoned { number, hash }),
                Place::Unknown => unknown.push(block),
            }
        };
        for block in unknown.iter().rev() {
            tip = self.verify(&tip, block).await?.tip;
        }
        Ok(tip)
    }

    /// Makes a block final. Returns when it is durable, or `None` if it was final already.
    ///
    /// Ignores the clock: a quorum has accepted the block.
    pub async fn finalize(
        &self,
        block: &Block,
        certificate: Option<&[u8]>,
    ) -> Result<Option<MadeBlock<S::Batch>>, ReplicaError> {
        let tip = self.tip();
        let (number, hash) = (block.header.number, block.hash());
        if number < tip.header.number || hash == tip.hash {
            return Ok(None);
        }
        if number == tip.header.number {
            return Err(ReplicaError::Abandoned { number, hash });
        }
        let made = self.verify(&tip, block).await?;
        let finalizing = self.finalizing.lock().await;
        self.application.commit_certified(&made, certificate).await?;
        self.forks().advance_to(&made);
        drop(finalizing);
        self.final_height.send_replace(number);
        Ok(Some(made))
    }

    /// Proves values in the state after the last final block, all of the same block.
    pub async fn prove(&self, keys: &[StateKey]) -> Result<Proven, ProveError> {
        let mut tries = 1;
        loop {
            let tip = self.tip();
            match self.application.prove(&tip, keys).await {
                // The store is ahead by a block that was just committed.
                Err(ProveError::Stale { .. }) if tries < PROVE_TRIES_MAX => {
                    self.wait_for(tip.header.number.saturating_add(1)).await;
                }
                proven => return proven,
            }
            tries += 1;
        }
    }

    /// Waits until the block at `height` is final.
    pub async fn wait_for(&self, height: u64) {
        let mut heights = self.final_height.subscribe();
        // Cannot fail: the sender lives in this ledger.
        let _ = heights.wait_for(|reached| *reached >= height).await;
    }

    fn keep(&self, made: MadeBlock<S::Batch>) -> Result<MadeBlock<S::Batch>, ReplicaError> {
        let (number, hash) = (made.tip.header.number, made.tip.hash);
        self.forks().keep(made).ok_or(ReplicaError::Abandoned { number, hash })
    }

    fn forks(&self) -> MutexGuard<'_, Forks<S::Batch>> {
        self.forks.lock().expect("nothing panics while it holds the forks")
    }
}

#[cfg(test)]
mod moving;
#[cfg(test)]
mod verdicts;
