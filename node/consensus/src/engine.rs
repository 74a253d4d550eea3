//! The interface between a node and the engine that orders its blocks.

use crate::application::ApplicationError;
use almanac_exec::BlockOutput;
use almanac_primitives::Block;
use std::{future::Future, sync::Arc};

/// Orders blocks: a single sequencer, or one validator among many.
pub trait Engine: Send + Sync {
    /// Hears that the pool may have something to include. Returns at once.
    fn pool_changed(&self);

    /// Finishes the block at hand and stops. Answers with what ended the engine, if something did.
    fn stop(self) -> impl Future<Output = Result<(), EngineError>> + Send;
}

/// Why an engine ended.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A block could not be made or committed.
    #[error(transparent)]
    Application(#[from] ApplicationError),
    /// A listener could not take a final block.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// The engine's task died.
    #[error("the engine's task ended unexpectedly: {reason}")]
    Died {
        /// How.
        reason: String,
    },
}

/// Hears of every final block, in order, once each. The engine goes on when it returns.
pub trait Sink: Send + Sync {
    /// Takes a block that is final.
    fn finalized(&self, block: &Arc<Block>, output: &Arc<BlockOutput>) -> Result<(), SinkError>;

    /// Whether it could forget the blocks above `height`. Asked before anything is changed.
    fn can_revert(&self, _height: u64) -> bool {
        true
    }

    /// Forgets the blocks above `height`: a developer went back to a snapshot. Only a solo sequencer does that.
    fn reverted(&self, height: u64) -> Result<(), SinkError>;
}

/// A listener failed to take a block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{sink} cannot take block {number}: {reason}")]
pub struct SinkError {
    /// Which listener.
    pub sink: &'static str,
    /// Which block.
    pub number: u64,
    /// Why.
    pub reason: String,
}
