//! The JSON shapes of Ethereum's API, where ours differ from alloy's or are simpler.

use alloy_primitives::{Address, B256, BlockHash, Bloom, Bytes, TxHash, U64, U256};
use almanac_index::{IndexedBlock, Location, Parties};
use almanac_primitives::Receipt;
use serde::{Deserialize, Serialize};

/// A call to try out, as `eth_call` and `eth_estimateGas` get it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallRequest {
    /// Who calls; the zero address where absent.
    pub from: Option<Address>,
    /// What is called; absent for a creation.
    pub to: Option<Address>,
    /// Gas limit; the block's where absent.
    pub gas: Option<U64>,
    /// Value.
    pub value: Option<U256>,
    /// Calldata under its present name.
    pub input: Option<Bytes>,
    /// Calldata under its older name.
    pub data: Option<Bytes>,
}

/// A receipt as Ethereum clients read it, with the schedule that a run belongs to.
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
    #[serde(rename = "type")]
    transaction_type: U64,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule_ref: Option<String>,
}

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

impl RpcReceipt {
    /// The receipt at a location of a block.
    pub fn new(location: Location, indexed: &IndexedBlock) -> Option<Self> {
        let receipt = indexed.receipts.get(location.index)?;
        let Parties { from, to, .. } = *indexed.parties.get(location.index)?;
        let logs_before: usize =
            indexed.receipts[..location.index].iter().map(|receipt| receipt.logs.len()).sum();
        Some(Self {
            transaction_hash: receipt.transaction_hash,
            transaction_index: U64::from(location.index),
            block_hash: indexed.hash,
            block_number: U64::from(location.number),
            from,
            to,
            cumulative_gas_used: U64::from(receipt.cumulative_gas_used.0),
            gas_used: U64::from(receipt.gas_used.0),
            effective_gas_price: U256::from(receipt.effective_gas_price.0),
            contract_address: receipt.contract_address,
            logs: logs(location, indexed, receipt, logs_before),
            logs_bloom: receipt.bloom(),
            status: U64::from(u64::from(receipt.outcome.is_success())),
            transaction_type: U64::from(receipt.transaction_type),
            schedule_ref: receipt.schedule_ref.map(|run| run.schedule.to_string()),
        })
    }
}

fn logs(location: Location, indexed: &IndexedBlock, receipt: &Receipt, logs_before: usize) -> Vec<RpcLog> {
    receipt
        .logs
        .iter()
        .enumerate()
        .map(|(n, log)| RpcLog {
            address: log.address,
            topics: log.topics().to_vec(),
            data: log.data.data.clone(),
            block_hash: indexed.hash,
            block_number: U64::from(location.number),
            block_timestamp: U64::from(indexed.block.header.timestamp.seconds()),
            transaction_hash: receipt.transaction_hash,
            transaction_index: U64::from(location.index),
            log_index: U64::from(logs_before + n),
            removed: false,
        })
        .collect()
}
