//! Takes final blocks from marshal in order: commits each, tells everyone, then acknowledges it.
//!
//! What was acknowledged is never delivered again, so nothing is acknowledged before it is durable.

use crate::{
    block::ConsensusBlock,
    engine::Marshal,
    ledger::{Ledger, LedgerError},
    recent,
};
use almanac_consensus::{MadeBlock, SharedPool, Sink, SinkError};
use almanac_state::StateStore;
use commonware_actor::Feedback;
use commonware_codec::Encode as _;
use commonware_consensus::{Heightable as _, Reporter, marshal::Update, types::Height};
use commonware_cryptography::Digested;
use commonware_utils::{Acknowledgement as _, acknowledgement::Exact};
use std::{num::NonZeroU64, sync::Arc};
use tokio::sync::mpsc;

/// The part of a validator that makes blocks final.
pub struct Finalizer<S: StateStore> {
    /// The chain as this node knows it.
    pub ledger: Arc<Ledger<S>>,
    /// Hears what was included.
    pub pool: Arc<SharedPool>,
    /// Hear of every block, in this order.
    pub sinks: Vec<Arc<dyn Sink>>,
    /// Blocks that marshal keeps although they are committed here.
    pub recent_blocks: NonZeroU64,
}

/// Why a node cannot go on with a block that the others have made final.
#[derive(Debug, thiserror::Error)]
pub enum FinalizeError {
    /// It cannot be executed or committed here.
    #[error("final block {number} cannot be committed: {error}")]
    Ledger {
        /// Its height.
        number: u64,
        /// Why not.
        error: LedgerError,
    },
    /// A listener could not take it.
    #[error(transparent)]
    Sink(#[from] SinkError),
}

type Delivery = (Digested<ConsensusBlock>, Exact);

/// Where marshal delivers final blocks. It waits for acknowledgements, so the queue is as short as it allows.
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
    /// Makes blocks final as they come. Ends when marshal does, or when a block cannot be committed; that block
    /// stays unacknowledged and comes again after a restart.
    pub async fn run(
        self,
        marshal: Marshal,
        mut deliveries: mpsc::UnboundedReceiver<Delivery>,
    ) -> Result<(), FinalizeError> {
        while let Some((block, acknowledgement)) = deliveries.recv().await {
            self.finalize(&marshal, block.inner()).await?;
            acknowledgement.acknowledge();
            if let Some(kept_from) = recent::prune_to(block.height().get(), self.recent_blocks) {
                marshal.prune(Height::new(kept_from));
            }
        }
        Ok(())
    }

    async fn finalize(&self, marshal: &Marshal, block: &ConsensusBlock) -> Result<(), FinalizeError> {
        let number = block.block().header.number;
        let failed = |error| FinalizeError::Ledger { number, error };
        // There is none where only a later block was certified: that one's certificate covers this one.
        let certificate = marshal.get_finalization(block.height()).await.map(|signed| signed.encode());
        let finalized = self.ledger.finalize(block.block(), certificate.as_deref()).await.map_err(failed)?;
        if let Some(made) = finalized {
            for sink in &self.sinks {
                sink.finalized(&made.block, &made.output)?;
            }
            self.update_pool(&made).await.map_err(failed)?;
        }
        Ok(())
    }

    async fn update_pool(&self, made: &MadeBlock<S::Batch>) -> Result<(), LedgerError> {
        let environment = self.ledger.application().next_environment(&made.tip).await?;
        self.pool.settle(made, environment.base_fee);
        Ok(())
    }
}
