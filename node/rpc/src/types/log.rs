//! Logs as Ethereum clients read them.

use alloy_primitives::{Address, B256, BlockHash, Bytes, Log, TxHash, U64};
use almanac_index::LogEntry;
use serde::Serialize;

/// A log with its place.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RpcLog {
    address: Address,
    topics: Vec<B256>,
    data: Bytes,
    block_hash: BlockHash,
    block_number: U64,
    block_timestamp: U64,
    transaction_hash: TxHash,
    transaction_index: U64,
    log_index: U64,
    removed: bool,
}

impl RpcLog {
    /// A log that was found.
    pub fn new(entry: &LogEntry) -> Self {
        let Log { address, data } = &entry.log;
        Self {
            address: *address,
            topics: data.topics().to_vec(),
            data: data.data.clone(),
            block_hash: entry.block_hash,
            block_number: U64::from(entry.location.number),
            block_timestamp: U64::from(entry.timestamp.seconds()),
            transaction_hash: entry.transaction_hash,
            transaction_index: U64::from(entry.location.index.saturating_sub(entry.unseen)),
            log_index: U64::from(entry.log_index),
            removed: false,
        }
    }
}
