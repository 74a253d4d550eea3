//! What can go wrong, one enum per operation.

use alloy_primitives::BlockHash;
use almanac_primitives::{StateReadError, codec::DecodeError};

/// The disk under the index failed, or does not hold what it must.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason}; if it stays so, delete that directory and run `almanac index rebuild`")]
pub struct StoreError {
    /// Directory of the index.
    pub path: String,
    /// What happened there.
    pub reason: String,
}

/// Why an index cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// It was made from the blocks of another chain.
    #[error(
        "{path} is the index of the chain with genesis {found}, not {expected}: \
         delete that directory and run `almanac index rebuild`"
    )]
    OtherChain {
        /// Its directory.
        path: String,
        /// The genesis it was made from.
        found: BlockHash,
        /// The genesis of this chain.
        expected: BlockHash,
    },
    /// Its format is one that this build no longer reads.
    #[error(
        "{path} has index format {found}, this build uses {known}: delete that directory and run `almanac index rebuild`"
    )]
    FormatTooOld {
        /// Its directory.
        path: String,
        /// The format found.
        found: u32,
        /// The format of this build.
        known: u32,
    },
    /// Its format is one that this build does not know yet.
    #[error(
        "{path} has index format {found}, this build knows up to {known}: use the newer build that wrote it, \
         or delete that directory and run `almanac index rebuild`"
    )]
    FormatTooNew {
        /// Its directory.
        path: String,
        /// The format found.
        found: u32,
        /// The format of this build.
        known: u32,
    },
    /// It is not what was once written.
    #[error("{path} is damaged ({reason}): delete that directory and run `almanac index rebuild`")]
    Damaged {
        /// Its directory.
        path: String,
        /// How that shows.
        reason: String,
    },
    /// Somebody has it open.
    #[error("{path} is in use by another process: stop that one first")]
    InUse {
        /// Its directory.
        path: String,
    },
    /// The disk refused.
    #[error("{path} cannot be opened: {reason}")]
    Io {
        /// Its directory.
        path: String,
        /// What the system said.
        reason: String,
    },
}

/// Why a block is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Blocks between are missing.
    #[error("the index is at block {tip} and takes block {} next, not {given}", .tip + 1)]
    Gap {
        /// Height of the index.
        tip: u64,
        /// Height of the block.
        given: u64,
    },
    /// The height is taken by another block.
    #[error("the index has {known} at block {number}, not {given}: run `almanac index rebuild`")]
    OtherBlock {
        /// The height.
        number: u64,
        /// The block that is there.
        known: BlockHash,
        /// The block given.
        given: BlockHash,
    },
    /// It does not follow the block before.
    #[error("block {number} follows {parent}, but the index has {known} there: run `almanac index rebuild`")]
    OtherParent {
        /// Height of the block.
        number: u64,
        /// The parent it names.
        parent: BlockHash,
        /// The block that is there.
        known: BlockHash,
    },
    /// Receipts and parties do not go together.
    #[error("block {number} comes with {receipts} receipts and the parties of {parties} transactions")]
    Uneven {
        /// Height of the block.
        number: u64,
        /// How many receipts.
        receipts: usize,
        /// How many parties.
        parties: usize,
    },
    /// The disk failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why blocks cannot be taken back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RevertError {
    /// There is nothing above to take back.
    #[error("the index is at block {tip}, it cannot go back to {given}")]
    AboveTip {
        /// The height asked for.
        given: u64,
        /// Height of the index.
        tip: u64,
    },
    /// The state of that height is gone.
    #[error(
        "the state of block {given} is no longer kept, the oldest is {oldest}: run `almanac index rebuild`"
    )]
    Pruned {
        /// The height asked for.
        given: u64,
        /// The lowest that works.
        oldest: u64,
    },
    /// The disk failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a search for logs has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogsError {
    /// More logs match than were asked for.
    #[error("more than {max} logs match{}", narrower(.complete_to))]
    TooMany {
        /// The most that were asked for.
        max: usize,
        /// Up to here there are few enough.
        complete_to: Option<u64>,
    },
    /// Too much had to be looked at.
    #[error("the filter is too wide: {looked_at} places were looked at{}", narrower(.complete_to))]
    TooWide {
        /// Rows read.
        looked_at: usize,
        /// Up to here the search got.
        complete_to: Option<u64>,
    },
    /// Too many bytes had to be looked at.
    #[error("the filter is too wide: {bytes} bytes were looked at{}", narrower(.complete_to))]
    TooHeavy {
        /// Bytes of the rows read.
        bytes: usize,
        /// Up to here the search got.
        complete_to: Option<u64>,
    },
    /// What matches is larger than whoever asked can take.
    #[error("the logs that match are larger than an answer may be{}", narrower(.complete_to))]
    TooLarge {
        /// Up to here it fits.
        complete_to: Option<u64>,
    },
    /// Blocks that this node never had.
    #[error(
        "logs from block {from} on are asked for, this node has blocks from {first} on: start the range there"
    )]
    NotKept {
        /// First height that was asked for.
        from: u64,
        /// First height that is kept.
        first: u64,
    },
    /// The disk failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn narrower(complete_to: &Option<u64>) -> String {
    match complete_to {
        Some(height) => format!(": end the range at block {height}"),
        None => ": ask for fewer blocks, addresses or topics".to_owned(),
    }
}

/// What an operation on the rows came upon; [`crate::store::Store`] adds where that was.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("{0}")]
    Engine(#[from] fjall::Error),
    #[error("row in {table}: {error}")]
    Row { table: &'static str, error: DecodeError },
    #[error("{0} is missing")]
    Missing(String),
    #[error(transparent)]
    State(#[from] StateReadError),
}
