//! Blocks and headers as Ethereum clients read them.

use super::{RpcTransaction, encoded_transaction};
use alloy_consensus::{
    EMPTY_OMMER_ROOT_HASH,
    constants::{EMPTY_TRANSACTIONS, EMPTY_WITHDRAWALS},
};
use alloy_primitives::{Address, B64, B256, BlockHash, Bloom, Bytes, TxHash, U64, U256};
use almanac_index::IndexedBlock;
use almanac_primitives::block::encoded_root;
use serde::Serialize;

/// A header, as `eth_subscribe("newHeads")` sends it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RpcHeader {
    number: U64,
    /// None of a block that is not made yet; so is the nonce.
    hash: Option<BlockHash>,
    parent_hash: BlockHash,
    nonce: Option<B64>,
    sha3_uncles: B256,
    logs_bloom: Bloom,
    transactions_root: B256,
    state_root: B256,
    receipts_root: B256,
    miner: Address,
    difficulty: U64,
    extra_data: Bytes,
    gas_limit: U64,
    gas_used: U64,
    /// Whole seconds, as Ethereum's clients expect.
    timestamp: U64,
    /// The same moment in milliseconds: blocks can share a second, never a millisecond.
    timestamp_ms: U64,
    mix_hash: B256,
    base_fee_per_gas: U256,
    withdrawals_root: B256,
}

/// A block with the hashes of what ran in it, or all of it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RpcBlock {
    #[serde(flatten)]
    header: RpcHeader,
    size: U64,
    uncles: [(); 0],
    withdrawals: [(); 0],
    transactions: Transactions,
}

#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum Transactions {
    Hashes(Vec<TxHash>),
    Full(Vec<RpcTransaction>),
}

impl RpcHeader {
    /// The header of a block.
    pub fn new(indexed: &IndexedBlock) -> Self {
        let header = &indexed.block.header;
        Self {
            number: U64::from(header.number),
            hash: Some(indexed.hash),
            parent_hash: header.parent_hash,
            nonce: Some(B64::ZERO),
            sha3_uncles: EMPTY_OMMER_ROOT_HASH,
            logs_bloom: header.logs_bloom,
            transactions_root: shown_root(indexed),
            state_root: header.commitment.state_root,
            receipts_root: header.receipts_root,
            miner: header.fee_recipient,
            difficulty: U64::ZERO,
            extra_data: Bytes::new(),
            gas_limit: U64::from(header.gas_limit.0),
            gas_used: U64::from(header.gas_used.0),
            timestamp: U64::from(header.timestamp.seconds()),
            timestamp_ms: U64::from(header.timestamp.0),
            mix_hash: header.prev_randao(),
            base_fee_per_gas: U256::from(header.base_fee.0),
            withdrawals_root: EMPTY_WITHDRAWALS,
        }
    }
}

/// The header's root over signed transactions. Where there are only others, the header has the root of an empty list,
/// and go-ethereum's client refuses that beside a list that is not empty: then the root over what the block shows.
fn shown_root(indexed: &IndexedBlock) -> B256 {
    let root = indexed.block.header.transactions_root;
    if root != EMPTY_TRANSACTIONS {
        return root;
    }
    let shown = indexed.unseen()..indexed.receipts.len();
    let encoded: Vec<Bytes> = shown.filter_map(|index| encoded_transaction(indexed, index)).collect();
    encoded_root(&encoded)
}

impl RpcBlock {
    /// The block that would come next: nobody knows its hash or its nonce.
    pub fn pending(indexed: &IndexedBlock, chain_id: u64, is_full: bool) -> Self {
        let block = Self::new(indexed, chain_id, is_full);
        Self { header: RpcHeader { hash: None, nonce: None, ..block.header }, ..block }
    }

    /// A block with full transactions, or their hashes.
    pub fn new(indexed: &IndexedBlock, chain_id: u64, is_full: bool) -> Self {
        let seen = indexed.unseen()..indexed.receipts.len();
        let transactions = if is_full {
            Transactions::Full(
                seen.filter_map(|index| RpcTransaction::of_block(indexed, index, chain_id)).collect(),
            )
        } else {
            Transactions::Hashes(
                indexed.receipts[seen].iter().map(|receipt| receipt.transaction_hash).collect(),
            )
        };
        Self {
            header: RpcHeader::new(indexed),
            size: U64::from(indexed.block.encode().len()),
            uncles: [],
            withdrawals: [],
            transactions,
        }
    }
}
