//! Why a trace fails.

use almanac_exec::{BlockError, SimulateError, StateFault, TransactionError};
use almanac_index::StoreError;

/// Why a block, a transaction or a call cannot be traced.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A tracer that is none of ours.
    #[error("tracer {given:?} is unknown; known: {known} (JavaScript is not run here)")]
    UnknownTracer {
        /// What was asked for, cut to a readable length.
        given: String,
        /// All there are.
        known: String,
    },
    /// Settings that the tracer does not have.
    #[error("tracerConfig does not fit {tracer}: {reason}")]
    BadConfig {
        /// The tracer.
        tracer: String,
        /// What is wrong.
        reason: String,
    },
    /// History does not reach back that far.
    #[error(
        "the state before block {number} is no longer kept, so it cannot be traced; the oldest block that can is {oldest}"
    )]
    StateGone {
        /// The block.
        number: u64,
        /// The oldest that can be traced.
        oldest: u64,
    },
    /// The chain went back below it after it was found.
    #[error("block {number} was taken back: ask anew")]
    TakenBack {
        /// The block.
        number: u64,
    },
    /// Nothing of that number ran in the block.
    #[error("block {number} has no transaction {index}; it has {count}")]
    NoSuchTransaction {
        /// The block.
        number: u64,
        /// What was asked for.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// It took too long.
    #[error("the trace took longer than {max_ms} ms; ask for less at once")]
    TooLong {
        /// The longest that is allowed.
        max_ms: u128,
    },
    /// It saw too much.
    #[error("the trace holds more than {max_bytes} bytes; leave out memory and stack, or use callTracer")]
    TooLarge {
        /// The most that is allowed.
        max_bytes: u64,
    },
    /// The block came out differently from the first time: this node is wrong about one of the two.
    #[error("executing block {number} again gives another receipt {index} than the stored one")]
    Differs {
        /// The block.
        number: u64,
        /// The first receipt that differs.
        index: usize,
    },
    /// A stored transaction that breaks a rule.
    #[error("transaction {index} of block {number} is not valid: {error}")]
    Invalid {
        /// The block.
        number: u64,
        /// Its position in the body.
        index: usize,
        /// The rule.
        error: Box<TransactionError>,
    },
    /// A call that cannot even be tried.
    #[error(transparent)]
    Call(Box<SimulateError>),
    /// The block cannot be run.
    #[error(transparent)]
    Block(Box<BlockError>),
    /// The state below failed.
    #[error(transparent)]
    State(#[from] StateFault),
    /// The index failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

// These are rare and large: every trace would otherwise carry room for them.
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
