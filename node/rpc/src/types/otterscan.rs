//! Blocks, pages and receipts in the shapes of the explorer Otterscan: Ethereum's, with things added and left out.

use super::{RpcBlock, RpcReceipt, RpcTransaction};
use crate::answer::Answer;
use alloy_eips::BlockNumberOrTag;
use alloy_primitives::{Address, TxHash, U64, U256};
use almanac_index::IndexedBlock;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::ops::Range;

/// Calldata that lists of transactions show: the selector, as `0x` and eight digits.
const INPUT_CHARS_MAX: usize = 10;

/// A number as a number or, as everywhere else, in hexadecimal.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
pub enum Number {
    /// As a number.
    Plain(u64),
    /// In hexadecimal.
    Hex(U64),
}

impl Number {
    /// The number.
    pub fn get(self) -> u64 {
        match self {
            Self::Plain(number) => number,
            Self::Hex(number) => number.to(),
        }
    }
}

/// The height of a block in any of its forms.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
pub enum Height {
    /// As a number.
    Plain(u64),
    /// In hexadecimal, or as a tag.
    Tag(BlockNumberOrTag),
}

impl From<Height> for BlockNumberOrTag {
    fn from(height: Height) -> Self {
        match height {
            Height::Plain(number) => number.into(),
            Height::Tag(tag) => tag,
        }
    }
}

/// A block without its transactions, and what it earned.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OtsBlockDetails {
    block: Value,
    issuance: Issuance,
    total_fees: U256,
}

/// Money that a block created: none.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Issuance {
    block_reward: U256,
    uncle_reward: U256,
    issuance: U256,
}

/// One page of the transactions of a block.
#[derive(Clone, Debug, Serialize)]
pub struct OtsBlockTransactions {
    fullblock: Value,
    receipts: Vec<Value>,
}

/// One page of the transactions of somebody, newest first.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OtsPage {
    /// The transactions.
    pub txs: Vec<Answer<RpcTransaction>>,
    /// What became of each.
    pub receipts: Vec<Answer<DatedReceipt>>,
    /// Whether nothing is newer.
    pub first_page: bool,
    /// Whether nothing is older.
    pub last_page: bool,
}

/// Who made a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OtsContractCreator {
    /// In which transaction.
    pub hash: TxHash,
    /// A person or another contract.
    pub creator: Address,
}

impl OtsBlockDetails {
    /// The details of a block.
    pub fn new(indexed: &IndexedBlock, chain_id: u64) -> Self {
        let mut block = without_bloom(indexed, chain_id);
        block.remove("transactions");
        let fee = |price: u128, gas: u64| U256::from(price) * U256::from(gas);
        let fees =
            indexed.receipts.iter().map(|receipt| fee(receipt.effective_gas_price.0, receipt.gas_used.0));
        Self { block: block.into(), issuance: Issuance::default(), total_fees: fees.sum() }
    }
}

impl OtsBlockTransactions {
    /// A page of a block. Pages count from the end: the first one holds what ran last.
    pub fn new(indexed: &IndexedBlock, chain_id: u64, page: u64, size: u64) -> Self {
        let shown = page_of(indexed.receipts.len() - indexed.unseen(), page, size);
        let shown = shown.start + indexed.unseen()..shown.end + indexed.unseen();
        let mut fullblock = without_bloom(indexed, chain_id);
        let transactions =
            shown.clone().filter_map(|index| RpcTransaction::of_block(indexed, index, chain_id));
        fullblock.insert("transactions".to_owned(), transactions.map(|tx| with_short_input(&tx)).collect());
        let receipts = shown.filter_map(|index| RpcReceipt::without_logs(indexed, index)).map(|receipt| {
            let mut receipt = object(&receipt);
            receipt.insert("logs".to_owned(), Value::Null);
            receipt.insert("logsBloom".to_owned(), Value::Null);
            receipt.into()
        });
        Self { fullblock: fullblock.into(), receipts: receipts.collect() }
    }
}

/// A receipt with the time of its block.
#[derive(Clone, Debug, Serialize)]
pub struct DatedReceipt {
    #[serde(flatten)]
    receipt: RpcReceipt,
    timestamp: U64,
}

impl DatedReceipt {
    /// The receipt with this index, unless there is none.
    pub fn new(indexed: &IndexedBlock, index: usize) -> Option<Self> {
        let timestamp = U64::from(indexed.block.header.timestamp.seconds());
        Some(Self { receipt: RpcReceipt::new(indexed, index)?, timestamp })
    }
}

fn page_of(count: usize, page: u64, size: u64) -> Range<usize> {
    let fits = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let end = count.saturating_sub(fits(page.saturating_mul(size)));
    end.saturating_sub(fits(size))..end
}

fn without_bloom(indexed: &IndexedBlock, chain_id: u64) -> Map<String, Value> {
    let mut block = object(&RpcBlock::new(indexed, chain_id, false));
    block.insert("logsBloom".to_owned(), Value::Null);
    let count = indexed.receipts.len() - indexed.unseen();
    block.insert("transactionCount".to_owned(), json!(count));
    block
}

fn with_short_input(transaction: &RpcTransaction) -> Value {
    let mut transaction = object(transaction);
    if let Some(Value::String(input)) = transaction.get_mut("input") {
        input.truncate(INPUT_CHARS_MAX);
    }
    transaction.into()
}

fn object(value: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => object,
        other => unreachable!("blocks, transactions and receipts are objects: {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::page_of;

    #[test]
    fn pages_count_from_the_end() {
        assert_eq!([0, 1, 2, 3].map(|page| page_of(5, page, 2)), [3..5, 1..3, 0..1, 0..0]);
        assert_eq!(page_of(5, 0, 5), 0..5);
        assert_eq!(page_of(5, 0, 6), 0..5);
        assert_eq!(page_of(5, 0, 0), 5..5);
        assert_eq!(page_of(0, 0, 10), 0..0);
        assert_eq!(page_of(5, u64::MAX, u64::MAX), 0..0);
        assert_eq!(page_of(5, 0, u64::MAX), 0..5);
    }
}
