//! Why a trace fails.

use almanac_exec::{BlockError, SimulateError, StateFault, TransactionError};
use almanac_index::StoreError;

/// Why a block, a transaction or a call cannot be traced.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The tracer does not exist.
    #[error("tracer {given:?} is unknown; known: {known} (JavaScript is not run here)")]
    UnknownTracer {
        /// The requested name, shortened.
        given: String,
        /// All known tracers.
        known: String,
    },
    /// Invalid settings for the tracer.
    #[error("tracerConfig does not fit {tracer}: {reason}")]
    BadConfig {
        /// The tracer.
        tracer: String,
        /// What is wrong.
        reason: String,
    },
    /// The state has been pruned.
    #[error(
        "the state before block {number} is no longer kept, so it cannot be traced; the oldest block that can is {oldest}"
    )]
    StateGone {
        /// The block.
        number: u64,
        /// The oldest that can be traced.
        oldest: u64,
    },
    /// The block was reverted after it was found.
    #[error("block {number} was taken back: ask anew")]
    TakenBack {
        /// The block.
        number: u64,
    },
    /// The block has no transaction with this index.
    #[error("block {number} has no transaction {index}; it has {count}")]
    NoSuchTransaction {
        /// The block.
        number: u64,
        /// The requested index.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// It took too long.
    #[error("the trace took longer than {max_ms} ms; ask for less at once")]
    TooLong {
        /// The limit.
        max_ms: u128,
    },
    /// It holds too much data.
    #[error("the trace holds more than {max_bytes} bytes; leave out memory and stack, or use callTracer")]
    TooLarge {
        /// The limit.
        max_bytes: u64,
    },
    /// Executing the block again gives another result: this node was wrong one of the two times.
    #[error("executing block {number} again gives another receipt {index} than the stored one")]
    Differs {
        /// The block.
        number: u64,
        /// The first receipt that differs.
        index: usize,
    },
    /// A stored transaction breaks a rule.
    #[error("transaction {index} of block {number} is not valid: {error}")]
    Invalid {
        /// The block.
        number: u64,
        /// Its position in the body.
        index: usize,
        /// The rule.
        error: Box<TransactionError>,
    },
    /// The call cannot be simulated.
    #[error(transparent)]
    Call(Box<SimulateError>),
    /// The block cannot be executed.
    #[error(transparent)]
    Block(Box<BlockError>),
    /// The state failed.
    #[error(transparent)]
    State(#[from] StateFault),
    /// The index failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

// Boxed because they are rare and large: otherwise every trace would reserve space for them.
impl From<SimulateError> for TraceError {
    fn from(error: SimulateError) -> Self {
        Self::Call(Box::new(error))
    }
}

impl From<BlockError> for TraceError {
    fn from(error: BlockError) -> Self {
        Self::Block(Box::new(error))
    }
}
