//! Takes final blocks from marshal in order: commits each, notifies listeners, then acknowledges it.
//!
//! Marshal never redelivers an acknowledged block, so a block is acknowledged only when it is durable.

use crate::{
    backoff::Backoff,
    block::ConsensusBlock,
    engine::Marshal,
    recent,
    replica::{Replica, ReplicaError},
};
use almanac_consensus::{MadeBlock, SharedPool, Sink, SinkError};
use almanac_state::StateStore;
use commonware_actor::Feedback;
use commonware_codec::Encode as _;
use commonware_consensus::{Heightable as _, Reporter, marshal::Update, types::Height};
use commonware_cryptography::Digested;
use commonware_runtime::Clock;
use commonware_utils::{Acknowledgement as _, acknowledgement::Exact};
use std::{num::NonZeroU64, sync::Arc};
use tokio::sync::mpsc;

/// Retries for a final block: about two seconds, in which a failing disk may recover.
const FINALIZE_AGAIN_MAX: usize = 8;

/// The part of a validator that makes blocks final.
pub struct Finalizer<S: StateStore> {
    /// The chain as this node knows it.
    pub replica: Arc<Replica<S>>,
    /// Hears what was included.
    pub pool: Arc<SharedPool>,
    /// Receive every block, in this order.
    pub sinks: Vec<Arc<dyn Sink>>,
    /// Committed blocks that marshal keeps.
    pub recent_blocks: NonZeroU64,
}

/// Why a node cannot process a block that is final.
#[derive(Debug, thiserror::Error)]
pub enum FinalizeError {
    /// It cannot be executed or committed here.
    #[error("final block {number} cannot be committed: {error}")]
    Replica {
        /// Its height.
        number: u64,
        /// Why not.
        error: ReplicaError,
    },
    /// A sink failed.
    #[error(transparent)]
    Sink(#[from] SinkError),
}

pub(crate) type Delivery = (Digested<ConsensusBlock>, Exact);

/// The queue of final blocks from marshal. Marshal waits for acknowledgements, which bounds the queue.
#[derive(Clone, Debug)]
pub struct Deliveries(mpsc::UnboundedSender<Delivery>);

impl Deliveries {
    /// Both ends of a queue.
    pub fn channel() -> (Self, mpsc::UnboundedReceiver<Delivery>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }
}

impl Reporter for Deliveries {
    type Activity = Update<ConsensusBlock>;

    fn report(&mut self, update: Self::Activity) -> Feedback {
        let Update::Block(block, acknowledgement) = update else { return Feedback::Ok };
        match self.0.send((block, acknowledgement)) {
            Ok(()) => Feedback::Ok,
            Err(_) => Feedback::Closed,
        }
    }
}

impl<S: StateStore<Batch: Send + 'static>> Finalizer<S> {
    /// Commits final blocks as they arrive. Ends when marshal does, or when a block cannot be committed; that
    /// block stays unacknowledged and is delivered again after a restart.
    pub async fn run(
        self,
        clock: impl Clock,
        marshal: Marshal,
        mut deliveries: mpsc::UnboundedReceiver<Delivery>,
    ) -> Result<(), FinalizeError> {
        while let Some((block, acknowledgement)) = deliveries.recv().await {
            self.finalize(&clock, &marshal, block.inner()).await?;
            acknowledgement.acknowledge();
            if let Some(kept_from) = recent::prune_to(block.height().get(), self.recent_blocks) {
                marshal.prune(Height::new(kept_from));
            }
        }
        Ok(())
    }

    async fn finalize(
        &self,
        clock: &impl Clock,
        marshal: &Marshal,
        block: &ConsensusBlock,
    ) -> Result<(), FinalizeError> {
        let number = block.block().header.number;
        let failed = |error| FinalizeError::Replica { number, error };
        // There is none where only a later block was certified: that one's certificate covers this one.
        let certificate = marshal.get_finalization(block.height()).await.map(|signed| signed.encode());
        let finalize = || self.replica.finalize(block.block(), certificate.as_deref());
        let finalized = try_again(clock, number, finalize).await.map_err(failed)?;
        if let Some(made) = finalized {
            for sink in &self.sinks {
                sink.finalized(&made.block, &made.output)?;
            }
            try_again(clock, number, || self.update_pool(&made)).await.map_err(failed)?;
        }
        Ok(())
    }

    async fn update_pool(&self, made: &MadeBlock<S::Batch>) -> Result<(), ReplicaError> {
        let environment = self.replica.application().next_environment(&made.tip).await?;
        self.pool.on_final_block(made, environment.base_fee);
        Ok(())
    }
}

/// Makes a few attempts, where another may end differently.
async fn try_again<T, F: Future<Output = Result<T, ReplicaError>>>(
    clock: &impl Clock,
    number: u64,
    attempt: impl Fn() -> F,
) -> Result<T, ReplicaError> {
    for pause in Backoff::default().take(FINALIZE_AGAIN_MAX) {
        match attempt().await {
            Err(error) if error.is_transient() => {
                tracing::warn!("committing final block {number} failed, next attempt in {pause:?}: {error}");
                clock.sleep(pause).await;
            }
            done => return done,
        }
    }
    attempt().await
}
