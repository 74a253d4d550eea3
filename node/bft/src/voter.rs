//! The application of consensus: builds a block when this node leads, and gives a verdict on other nodes'
//! blocks.
//!
//! A verdict is forever. If this node cannot decide, because of its clock, its disk, or a parent that is being
//! committed, it gives no verdict and retries until it can, or until consensus drops the question: consensus asks only
//! once, and if other validators are down, the network stops without this vote.

use crate::{
    backoff::Backoff,
    block::{BlockContext, ConsensusBlock, key_bytes},
    replica::{Replica, ReplicaError},
    time::{TimeConfig, TimeVerdict, block_time},
    validators::ValidatorSet,
};
use alloy_primitives::Address;
use almanac_consensus::{ApplicationError, Clock, Deadline, Proposal, SharedPool, Tip};
use almanac_exec::BlockError;
use almanac_primitives::{ConsensusContext, DurationMs, TimestampMs};
use almanac_state::StateStore;
use commonware_consensus::{
    Application as Consensus, CertifiableBlock as _, marshal::ancestry::Ancestry,
    simplex::scheme::ed25519::Scheme,
};
use commonware_cryptography::{Digested, ed25519::PublicKey};
use commonware_runtime::{Clock as Runtime, Spawner};
use futures::StreamExt as _;
use std::{
    future::{Future, pending},
    sync::Arc,
};

/// Retries of a proposal: about a third of a second, well within a view. After that the view is given up at
/// once, instead of when it times out.
const PROPOSE_AGAIN_MAX: usize = 5;

/// The votes and proposals of one validator.
pub struct Voter<S: StateStore, C> {
    /// The chain as this node knows it.
    pub replica: Arc<Replica<S>>,
    /// Where proposals get transactions from.
    pub pool: Arc<SharedPool>,
    /// This node's clock.
    pub clock: C,
    /// How it handles time.
    pub time: TimeConfig,
    /// Who may propose.
    pub validators: Arc<ValidatorSet>,
}

impl<S: StateStore, C: Clone> Clone for Voter<S, C> {
    fn clone(&self) -> Self {
        Self {
            replica: self.replica.clone(),
            pool: self.pool.clone(),
            clock: self.clock.clone(),
            time: self.time,
            validators: self.validators.clone(),
        }
    }
}

impl<E, S, C> Consensus<E> for Voter<S, C>
where
    E: Spawner + Runtime,
    S: StateStore<Batch: Send + Sync + 'static> + 'static,
    C: Clock,
{
    type SigningScheme = Scheme;
    type Context = BlockContext;
    type Block = ConsensusBlock;
    type Input = ();

    async fn propose(
        &mut self,
        (runtime, context): (E, BlockContext),
        ancestry: impl Ancestry<ConsensusBlock>,
        (): (),
    ) -> Option<Digested<ConsensusBlock>> {
        let view = context.round.view().get();
        let mut pauses = Backoff::default().take(PROPOSE_AGAIN_MAX);
        loop {
            let error = match self.make(&runtime, context.clone(), ancestry.clone()).await {
                Ok(block) => return Some(block.digested()),
                Err(error) => error,
            };
            tracing::warn!("no proposal in view {view}: {error}");
            runtime.sleep(pauses.next().filter(|_| error.is_transient())?).await;
        }
    }

    async fn verify(
        &mut self,
        (runtime, context): (E, BlockContext),
        mut ancestry: impl Ancestry<ConsensusBlock>,
    ) -> bool {
        let Some(block) = ancestry.next().await else { return pending().await };
        let (view, number) = (context.round.view().get(), block.inner().block().header.number);
        for (attempt, pause) in (1u64..).zip(Backoff::default()) {
            let height = self.replica.tip().header.number;
            let error = match self.judge(&runtime, block.inner(), ancestry.clone()).await {
                Ok(()) => return true,
                Err(error) if error.is_verdict() => {
                    tracing::warn!("block {number} of view {view} is refused: {error}");
                    return false;
                }
                Err(error) => error,
            };
            if attempt.is_power_of_two() {
                tracing::warn!("no verdict on block {number} of view {view}, attempt {attempt}: {error}");
            }
            if !error.is_transient() && !self.has_moved_on(&error, height).await {
                break;
            }
            runtime.sleep(pause).await;
        }
        pending().await
    }
}

impl<S, C> Voter<S, C>
where
    S: StateStore<Batch: Send + Sync + 'static> + 'static,
    C: Clock,
{
    async fn make<E: Spawner>(
        &self,
        runtime: &E,
        context: BlockContext,
        ancestry: impl Ancestry<ConsensusBlock>,
    ) -> Result<ConsensusBlock, ReplicaError> {
        let parent_time = first(ancestry.clone()).await?.block().header.timestamp;
        let start = self.time.propose_at(parent_time, self.clock.now());
        let replica = self.replica.clone();
        let parent = on_own_thread(runtime, async move { replica.reach(ancestry).await }).await?;
        self.clock.sleep_until(start).await;
        let proposal = self.proposal(&context, &parent)?;
        let replica = self.replica.clone();
        let made = on_own_thread(runtime, async move { replica.propose(&parent, proposal).await }).await?;
        self.pool.note_faults(&made);
        Ok(ConsensusBlock::new(made.block).expect("the leader's key is a key"))
    }

    fn proposal(&self, context: &BlockContext, parent: &Tip<S::Batch>) -> Result<Proposal, ReplicaError> {
        let now = self.clock.now();
        let consensus = ConsensusContext {
            epoch: context.round.epoch().get(),
            view: context.round.view().get(),
            leader: key_bytes(&context.leader),
            parent_view: context.parent.0.get(),
        };
        let choose_for = self.time.choose_for(consensus.failed_views());
        let stop_at = TimestampMs(now.0.saturating_add(choose_for.0));
        Ok(Proposal {
            timestamp: block_time(parent.header.timestamp, now).ok_or(ReplicaError::TimeExhausted)?,
            fee_recipient: self.fee_recipient(&context.leader)?,
            consensus,
            candidates: self.replica.candidates(&self.pool, parent),
            more: self.replica.further_candidates(&self.pool, parent),
            // The others wait longer for a block with much due work, so half of the time is left after it.
            deadline: Deadline::at(self.clock.clone(), stop_at).leaving(DurationMs(choose_for.0 / 2)),
        })
    }

    async fn judge<E: Spawner>(
        &self,
        runtime: &E,
        block: &ConsensusBlock,
        ancestry: impl Ancestry<ConsensusBlock>,
    ) -> Result<(), ReplicaError> {
        let header = &block.block().header;
        // Made final by the others while this node could not tell: a quorum has judged it.
        if self.replica.tip().hash == block.block().hash() {
            return Ok(());
        }
        let expected = self.fee_recipient(&block.context().leader)?;
        if header.fee_recipient != expected {
            return Err(ReplicaError::FeeRecipient { given: header.fee_recipient, expected });
        }
        let parent_time = first(ancestry.clone()).await?.block().header.timestamp;
        self.check_time(header.timestamp, parent_time).await?;
        let (replica, block) = (self.replica.clone(), block.block().clone());
        on_own_thread(runtime, async move {
            let parent = replica.reach(ancestry).await?;
            replica.verify(&parent, &block).await.map(drop)
        })
        .await
    }

    /// Returns when the block's time has come.
    async fn check_time(&self, given: TimestampMs, parent: TimestampMs) -> Result<(), ReplicaError> {
        match self.time.judge(given, parent, self.clock.now()) {
            TimeVerdict::Accept => {}
            TimeVerdict::WaitUntil(moment) => self.clock.sleep_until(moment).await,
            TimeVerdict::NotAfterParent => {
                return Err(ApplicationError::from(BlockError::TimeNotAfterParent { given, parent }).into());
            }
        }
        Ok(())
    }

    /// Whether a block was executed on a parent that became history meanwhile.
    async fn has_moved_on(&self, error: &ReplicaError, height: u64) -> bool {
        matches!(error, ReplicaError::Abandoned { .. }) && self.replica.has_moved_beyond(height).await
    }

    fn fee_recipient(&self, leader: &PublicKey) -> Result<Address, ReplicaError> {
        let found = self.validators.fee_recipient(leader);
        found.ok_or_else(|| ReplicaError::NotAValidator { leader: key_bytes(leader) })
    }
}

async fn first(mut ancestry: impl Ancestry<ConsensusBlock>) -> Result<Arc<ConsensusBlock>, ReplicaError> {
    let newest = ancestry.next().await.ok_or(ReplicaError::NoAncestors)?;
    Ok(newest.inner_shared())
}

/// Executes on a thread for blocking work, and stays on it: the fiber under the EVM must not change threads while
/// foreign code is on its stack.
async fn on_own_thread<E: Spawner, T: Send + 'static>(
    runtime: &E,
    work: impl Future<Output = Result<T, ReplicaError>> + Send + 'static,
) -> Result<T, ReplicaError> {
    let done = runtime.child("execution").shared(true).spawn(|_| work).await;
    done.map_err(|error| ReplicaError::Stopped { reason: error.to_string() })?
}

#[cfg(test)]
mod attempts;
