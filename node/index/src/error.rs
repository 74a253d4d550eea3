//! The errors of the index, one enum per operation.

use alloy_primitives::BlockHash;
use almanac_primitives::{StateReadError, codec::DecodeError};

/// The disk failed, or its content is incomplete.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason}; if it stays so, delete that directory and run `almanac index rebuild`")]
pub struct StoreError {
    /// Directory of the index.
    pub path: String,
    /// What went wrong.
    pub reason: String,
}

/// Why an index cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// It belongs to another chain.
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
    /// Its format is too old for this build.
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
    /// Its format is too new for this build.
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
    /// Its content is damaged.
    #[error("{path} is damaged ({reason}): delete that directory and run `almanac index rebuild`")]
    Damaged {
        /// Its directory.
        path: String,
        /// How the damage shows.
        reason: String,
    },
    /// Another process has it open.
    #[error("{path} is in use by another process: stop that one first")]
    InUse {
        /// Its directory.
        path: String,
    },
    /// The disk failed.
    #[error("{path} cannot be opened: {reason}")]
    Io {
        /// Its directory.
        path: String,
        /// The system's error.
        reason: String,
    },
}

/// Why a block is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Blocks in between are missing.
    #[error("the index is at block {tip} and takes block {} next, not {given}", .tip + 1)]
    Gap {
        /// Height of the index.
        tip: u64,
        /// Height of the block.
        given: u64,
    },
    /// Another block has this height.
    #[error("the index has {known} at block {number}, not {given}: run `almanac index rebuild`")]
    OtherBlock {
        /// The height.
        number: u64,
        /// The known block.
        known: BlockHash,
        /// The block given.
        given: BlockHash,
    },
    /// It does not follow the tip.
    #[error("block {number} follows {parent}, but the index has {known} there: run `almanac index rebuild`")]
    OtherParent {
        /// Height of the block.
        number: u64,
        /// The parent it names.
        parent: BlockHash,
        /// The known block.
        known: BlockHash,
    },
    /// The numbers of receipts and parties differ.
    #[error("block {number} has {receipts} receipts, but the parties of {parties} transactions")]
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

/// Why blocks cannot be reverted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RevertError {
    /// The height is above the tip.
    #[error("the index is at block {tip}, it cannot go back to {given}")]
    AboveTip {
        /// The requested height.
        given: u64,
        /// Height of the index.
        tip: u64,
    },
    /// The state of that height has been pruned.
    #[error(
        "the state of block {given} is no longer kept, the oldest is {oldest}: run `almanac index rebuild`"
    )]
    Pruned {
        /// The requested height.
        given: u64,
        /// The lowest possible height.
        oldest: u64,
    },
    /// The disk failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a search for logs failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogsError {
    /// More logs match than allowed.
    #[error("more than {max} logs match{}", narrower(.complete_to))]
    TooMany {
        /// The most allowed.
        max: usize,
        /// Up to this block the result stays within the limit.
        complete_to: Option<u64>,
    },
    /// The search read too many rows.
    #[error("the filter is too wide: the search read {looked_at} rows{}", narrower(.complete_to))]
    TooWide {
        /// Rows read.
        looked_at: usize,
        /// The last block that was searched completely.
        complete_to: Option<u64>,
    },
    /// The search read too many bytes.
    #[error("the filter is too wide: the search read {bytes} bytes{}", narrower(.complete_to))]
    TooHeavy {
        /// Bytes of the rows read.
        bytes: usize,
        /// The last block that was searched completely.
        complete_to: Option<u64>,
    },
    /// The result is larger than the caller accepts.
    #[error("the matching logs exceed the size limit of an answer{}", narrower(.complete_to))]
    TooLarge {
        /// Up to this block the result fits.
        complete_to: Option<u64>,
    },
    /// This node does not have the first blocks of the range.
    #[error(
        "the range begins at block {from}, but this node has blocks only from {first} on: start the range there"
    )]
    NotKept {
        /// First requested height.
        from: u64,
        /// First available height.
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

/// An error of an operation on rows; [`crate::store::Store`] adds the path.
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
