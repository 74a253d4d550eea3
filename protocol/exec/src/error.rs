//! Errors of executing a block, except those of its transactions.

use crate::validate::TransactionError;
use almanac_primitives::{
    StateKey, StateReadError, TimestampMs, Wei, codec::DecodeError, ids::ScheduleIdError,
};
use revm::database_interface::DBErrorMarker;

/// The state failed: the store cannot read, or a value is corrupt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateFault {
    /// The store failed to read.
    #[error(transparent)]
    Read(#[from] StateReadError),
    /// The stored bytes do not decode.
    #[error("state value {key:?} is corrupt: {error}")]
    Corrupt {
        /// Which value.
        key: StateKey,
        /// What is wrong with it.
        error: DecodeError,
    },
    /// The ledger's balance does not cover what it owes.
    #[error("the ledger owes {amount} and does not have it")]
    LedgerShort {
        /// What it owes.
        amount: Wei,
    },
    /// An account refers to code that does not exist.
    #[error("state value {key:?} is missing although an account refers to it")]
    Missing {
        /// Which value.
        key: StateKey,
    },
}

impl DBErrorMarker for StateFault {}

/// Why a block cannot be executed. None of it takes effect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// The block's time is not after its parent's.
    #[error("block time {given} is not after the parent's {parent}")]
    TimeNotAfterParent {
        /// The block's time.
        given: TimestampMs,
        /// The parent's time.
        parent: TimestampMs,
    },
    /// The block's number does not follow its parent's.
    #[error("block number {given} does not follow the parent's {parent}")]
    NumberNotNext {
        /// The block's number.
        given: u64,
        /// The parent's number.
        parent: u64,
    },
    /// The parent has the last possible block number.
    #[error("there is no block after number {parent}")]
    NumberExhausted {
        /// The parent's number.
        parent: u64,
    },
    /// The block's protocol version differs from this build's.
    #[error(
        "block follows protocol version {given}, this build follows {known}: install the matching release"
    )]
    ProtocolVersion {
        /// The block's version.
        given: u32,
        /// This build's version.
        known: u32,
    },
    /// A transaction of the body breaks a rule.
    #[error("transaction {index} of the body is invalid: {error}")]
    InvalidTransaction {
        /// Its position in the body.
        index: usize,
        /// The rule.
        error: TransactionError,
    },
    /// The state failed.
    #[error(transparent)]
    State(#[from] StateFault),
    /// A broken invariant of our own: this node must not sign or write the block.
    #[error("broken invariant: {0}")]
    Fault(Box<Fault>),
}

impl From<Fault> for BlockError {
    fn from(fault: Fault) -> Self {
        // Boxed because it is rare and large: otherwise every transaction result would reserve space for it.
        Self::Fault(Box::new(fault))
    }
}

/// A broken invariant. It stops this node before it signs or writes anything.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Money appeared or vanished.
    #[error("transaction {index} turned {before} into {after} with {burned} burned: value is not conserved")]
    ValueNotConserved {
        /// Receipt index of the transaction.
        index: usize,
        /// Sum of the touched balances before.
        before: Wei,
        /// Sum of the same balances after.
        after: Wei,
        /// What it burned in fees.
        burned: Wei,
    },
    /// The EVM rejected a transaction that passed our own rules.
    #[error("the EVM refused a transaction that had been validated: {reason}")]
    RulesDisagree {
        /// The EVM's reason.
        reason: String,
    },
    /// The state rejected the changes of an executed block.
    #[error("the state refused the changes of a block: {reason}")]
    Unsealable {
        /// The state's reason.
        reason: String,
    },
    /// A block has more transactions than receipt indices.
    #[error(transparent)]
    Id(#[from] ScheduleIdError),
}
