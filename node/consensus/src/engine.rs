//! The interface between a node and the engine that orders its blocks.

use crate::application::ApplicationError;
use almanac_exec::BlockOutput;
use almanac_primitives::Block;
use std::{future::Future, sync::Arc};

/// Orders blocks: a single sequencer, or one validator among many.
pub trait Engine: Send + Sync {
    /// Notifies the engine that the pool may have something to include. Returns at once.
    fn pool_changed(&self);

    /// Finishes the current block and stops. Returns the error that ended the engine, if any.
    fn stop(self) -> impl Future<Output = Result<(), EngineError>> + Send;
}

/// Why an engine ended.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A block could not be built or committed.
    #[error(transparent)]
    Application(#[from] ApplicationError),
    /// A sink rejected a final block.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// The engine's task died.
    #[error("the engine's task ended unexpectedly: {reason}")]
    Died {
        /// The reason.
        reason: String,
    },
}

/// Receives every final block, in order, once each. The engine continues when it returns.
pub trait Sink: Send + Sync {
    /// Processes a final block.
    fn finalized(&self, block: &Arc<Block>, output: &Arc<BlockOutput>) -> Result<(), SinkError>;

    /// Whether it could revert the blocks above `height`. Called before anything is changed.
    fn can_revert(&self, _height: u64) -> bool {
        true
    }

    /// Reverts the blocks above `height`, when a developer goes back to a snapshot. Only a solo sequencer calls
    /// this.
    fn reverted(&self, height: u64) -> Result<(), SinkError>;
}

/// A sink failed to process a block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{sink} cannot take block {number}: {reason}")]
pub struct SinkError {
    /// The sink.
    pub sink: &'static str,
    /// The block's height.
    pub number: u64,
    /// The reason.
    pub reason: String,
}
