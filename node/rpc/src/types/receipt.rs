//! Receipts as Ethereum clients read them, with the schedule that a run belongs to.

use super::{RpcLog, RpcScheduleRef, shown_type::ShownType};
use alloy_primitives::{Address, BlockHash, Bloom, TxHash, U64, U256};
use almanac_index::IndexedBlock;
use serde::Serialize;

/// What became of a transaction.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RpcReceipt {
    transaction_hash: TxHash,
    transaction_index: U64,
    block_hash: BlockHash,
    block_number: U64,
    from: Address,
    to: Option<Address>,
    cumulative_gas_used: U64,
    gas_used: U64,
    effective_gas_price: U256,
    contract_address: Option<Address>,
    logs: Vec<RpcLog>,
    logs_bloom: Bloom,
    status: U64,
    #[serde(flatten)]
    shown_type: ShownType,
    /// Which call of a native transaction failed and undid the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_call: Option<U64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule_ref: Option<RpcScheduleRef>,
}

impl RpcReceipt {
    /// The receipt with this index, unless there is none.
    pub fn new(indexed: &IndexedBlock, index: usize) -> Option<Self> {
        let logs = indexed.logs_of(index).map(|entry| RpcLog::new(&entry)).collect();
        Some(Self { logs, ..Self::without_logs(indexed, index)? })
    }

    /// The same, as if nothing had been logged: there may be tens of thousands of logs.
    pub(crate) fn without_logs(indexed: &IndexedBlock, index: usize) -> Option<Self> {
        let (receipt, parties) = indexed.receipts.get(index).zip(indexed.parties.get(index))?;
        Some(Self {
            transaction_hash: receipt.transaction_hash,
            transaction_index: U64::from(index.saturating_sub(indexed.unseen())),
            block_hash: indexed.hash,
            block_number: U64::from(indexed.number()),
            from: parties.from,
            to: parties.to,
            cumulative_gas_used: U64::from(receipt.cumulative_gas_used.0),
            gas_used: U64::from(receipt.gas_used.0),
            effective_gas_price: U256::from(receipt.effective_gas_price.0),
            contract_address: receipt.contract_address,
            logs: Vec::new(),
            logs_bloom: receipt.bloom(),
            status: U64::from(u64::from(receipt.outcome.is_success())),
            shown_type: ShownType::new(receipt.transaction_type),
            failed_call: receipt.failed_call.map(U64::from),
            schedule_ref: receipt.schedule_ref.map(RpcScheduleRef::new),
        })
    }

    /// Receipts of all that a block shows.
    pub fn all(indexed: &IndexedBlock) -> Vec<Self> {
        (indexed.unseen()..indexed.receipts.len()).filter_map(|index| Self::new(indexed, index)).collect()
    }
}
