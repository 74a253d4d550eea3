//! What can go wrong with a block, apart from what can go wrong with a transaction.

use crate::validate::TransactionError;
use almanac_primitives::{
    StateKey, StateReadError, TimestampMs, Wei, codec::DecodeError, ids::ScheduleIdError,
};
use revm::database_interface::DBErrorMarker;

/// The state below execution failed: a disk that does not answer, or a value that is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateFault {
    /// The store could not answer.
    #[error(transparent)]
    Read(#[from] StateReadError),
    /// The store answered with bytes that mean nothing.
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
    /// An account names code that is not there.
    #[error("state value {key:?} is missing although an account refers to it")]
    Missing {
        /// Which value.
        key: StateKey,
    },
}

impl DBErrorMarker for StateFault {}

/// Why a block cannot be executed at all. Nothing of it takes effect.
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
    /// The parent is the last block that can have a number.
    #[error("there is no block after number {parent}")]
    NumberExhausted {
        /// The parent's number.
        parent: u64,
    },
    /// The rules of this block are newer or older than this build's.
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
    /// The state below failed.
    #[error(transparent)]
    State(#[from] StateFault),
    /// We are wrong: this node must not sign or write the block.
    #[error("broken invariant: {0}")]
    Fault(Box<Fault>),
}

impl From<Fault> for BlockError {
    fn from(fault: Fault) -> Self {
        // Rare and large: every result of every transaction would otherwise carry room for it.
        Self::Fault(Box::new(fault))
    }
}

/// An invariant that does not hold. It stops this node before it signs or writes anything.
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
    /// The EVM refused a transaction that our own rules had passed.
    #[error("the EVM refused a transaction that had been validated: {reason}")]
    RulesDisagree {
        /// What the EVM said.
        reason: String,
    },
    /// The state below refused the changes of a block that was executed.
    #[error("the state refused the changes of a block: {reason}")]
    Unsealable {
        /// What the state said.
        reason: String,
    },
    /// A block so full that a receipt has no index.
    #[error(transparent)]
    Id(#[from] ScheduleIdError),
}
