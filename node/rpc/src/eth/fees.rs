//! Gas prices: the base fee, and what was paid in recent blocks.

use super::Eth;
use crate::{
    answer::Answer,
    bounds::{FEE_BLOCKS_MAX, FEE_PERCENTILES_MAX},
    error,
    reading::Reading,
};
use alloy_eips::BlockNumberOrTag;
use alloy_primitives::{Address, Bloom, U64, U256};
use almanac_exec::environment::{base_fee_after, read_parameters};
use almanac_index::{HistoricalState, IndexedBlock};
use almanac_primitives::{
    Gas, GasPrice, Header, TimestampMs,
    block::{receipts_root, transactions_root},
    params::Parameters,
};
use jsonrpsee::{core::RpcResult, proc_macros::rpc};
use serde::Serialize;
use std::sync::Arc;

/// A tip that gets a transaction into the next block that is not full.
pub(super) const TIP: GasPrice = GasPrice(1_000_000_000);

/// What blocks asked for gas and what was paid, oldest first. Base fees go one block further.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FeeHistory {
    oldest_block: U64,
    base_fee_per_gas: Vec<U256>,
    gas_used_ratio: Vec<f64>,
    base_fee_per_blob_gas: Vec<U256>,
    blob_gas_used_ratio: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reward: Option<Vec<Vec<U256>>>,
}

#[rpc(server)]
pub(crate) trait FeesApi {
    /// A price per gas that the next block takes.
    #[method(name = "eth_gasPrice")]
    fn gas_price(&self) -> RpcResult<U256>;

    /// A tip that gets a transaction into the next block.
    #[method(name = "eth_maxPriorityFeePerGas")]
    fn max_priority_fee(&self) -> RpcResult<U256>;

    /// There are no blobs; this is what BLOBBASEFEE answers.
    #[method(name = "eth_blobBaseFee")]
    fn blob_base_fee(&self) -> RpcResult<U256>;

    /// Base fees, how full blocks were, and percentiles of the tips paid.
    #[method(name = "eth_feeHistory")]
    async fn fee_history(
        &self,
        count: U64,
        newest: BlockNumberOrTag,
        percentiles: Option<Vec<f64>>,
    ) -> RpcResult<Answer<FeeHistory>>;

    /// Who got the tips of the last block.
    #[method(name = "eth_coinbase")]
    fn coinbase(&self) -> RpcResult<Address>;
}

impl Eth {
    /// Header of the block that would come next, as far as it is known.
    pub(super) fn upcoming(&self) -> RpcResult<Header> {
        let (tip, state) = self.view.state(None)?;
        let parameters = read_parameters(&state).map_err(error::internal)?;
        upcoming(&tip, &state, &parameters, (self.view.next_time)())
    }

    /// The block that would come next, still empty.
    pub(super) fn upcoming_block(&self) -> RpcResult<IndexedBlock> {
        let header = Header {
            transactions_root: transactions_root([]),
            receipts_root: receipts_root(&[]),
            logs_bloom: Bloom::ZERO,
            gas_used: Gas(0),
            ..self.upcoming()?
        };
        let block = almanac_primitives::Block { header, transactions: Vec::new() };
        Ok(IndexedBlock::alone(Arc::new(block)))
    }
}

/// Header of the block on `tip`, as far as it is known, if it came at `now`.
pub(crate) fn upcoming(
    tip: &IndexedBlock,
    state: &HistoricalState,
    parameters: &Parameters,
    now: TimestampMs,
) -> RpcResult<Header> {
    let header = &tip.block.header;
    let least = TimestampMs(header.timestamp.0.saturating_add(1));
    Ok(Header {
        number: header.number.saturating_add(1),
        parent_hash: tip.hash,
        timestamp: now.max(least),
        gas_limit: parameters.block_gas_max(),
        base_fee: base_fee_after(header, parameters, state).map_err(error::internal)?,
        ..header.clone()
    })
}

#[jsonrpsee::core::async_trait]
impl FeesApiServer for Eth {
    fn gas_price(&self) -> RpcResult<U256> {
        let base_fee = self.upcoming()?.base_fee.0;
        // Room for one full block in between, and a tip.
        Ok(U256::from(base_fee) + U256::from(base_fee / 8) + U256::from(TIP.0))
    }

    fn max_priority_fee(&self) -> RpcResult<U256> {
        Ok(U256::from(TIP.0))
    }

    fn blob_base_fee(&self) -> RpcResult<U256> {
        Ok(U256::ONE)
    }

    async fn fee_history(
        &self,
        count: U64,
        newest: BlockNumberOrTag,
        percentiles: Option<Vec<f64>>,
    ) -> RpcResult<Answer<FeeHistory>> {
        let percentiles = check_percentiles(percentiles)?;
        let eth = self.clone();
        let work = move || eth.history_of_fees(count.to(), newest, percentiles.as_deref());
        self.heavy.answer(FEWER_BLOCKS, work).await
    }

    fn coinbase(&self) -> RpcResult<Address> {
        Ok(self.view.index.tip().block.header.fee_recipient)
    }
}

/// How to ask for less of a fee history.
const FEWER_BLOCKS: &str = "ask for fewer blocks, or for no percentiles";

impl Eth {
    /// Only percentiles need more of a block than its header.
    fn history_of_fees(
        &self,
        count: u64,
        newest: BlockNumberOrTag,
        percentiles: Option<&[f64]>,
    ) -> RpcResult<FeeHistory> {
        let last = self.view.number(Some(newest.into()))?;
        let floor = self.view.index.floor();
        let first = if last > floor && floor > 0 { floor + 1 } else { 0 };
        let count = count.min(FEE_BLOCKS_MAX).min(last + 1 - first);
        let oldest_block = last + 1 - count;
        let mut history = FeeHistory { oldest_block: U64::from(oldest_block), ..FeeHistory::default() };
        let (mut rewards, mut reading) = (Vec::new(), Reading::new(FEWER_BLOCKS));
        for number in oldest_block..last + 1 {
            let header = self.header(number)?.ok_or_else(|| error::unknown_block(number))?;
            history.base_fee_per_gas.push(U256::from(header.base_fee.0));
            history.gas_used_ratio.push(header.gas_used.0 as f64 / header.gas_limit.0.max(1) as f64);
            if let Some(percentiles) = percentiles {
                let block = self.view.block(Some(number.into()))?;
                reading.count(&block)?;
                rewards.push(tips(&block, percentiles));
            }
        }
        history.base_fee_per_gas.push(U256::from(self.base_fee_after(last)?));
        history.base_fee_per_blob_gas = vec![U256::ONE; history.base_fee_per_gas.len()];
        history.blob_gas_used_ratio = vec![0.0; history.gas_used_ratio.len()];
        history.reward = percentiles.map(|_| rewards);
        Ok(history)
    }

    fn header(&self, number: u64) -> RpcResult<Option<Header>> {
        self.view.index.header(number).map_err(error::internal)
    }

    fn base_fee_after(&self, number: u64) -> RpcResult<u128> {
        match self.header(number + 1)? {
            Some(next) => Ok(next.base_fee.0),
            None => Ok(self.upcoming()?.base_fee.0),
        }
    }
}

fn check_percentiles(percentiles: Option<Vec<f64>>) -> RpcResult<Option<Vec<f64>>> {
    let Some(percentiles) = percentiles.filter(|percentiles| !percentiles.is_empty()) else {
        return Ok(None);
    };
    if percentiles.len() > FEE_PERCENTILES_MAX {
        let given = percentiles.len();
        return Err(error::limit(format!(
            "{given} percentiles are above the limit of {FEE_PERCENTILES_MAX}"
        )));
    }
    let is_rising = percentiles.windows(2).all(|pair| pair[0] <= pair[1]);
    if !is_rising || percentiles.iter().any(|percentile| !(0.0..=100.0).contains(percentile)) {
        return Err(error::invalid(format!("percentiles must rise from 0 to 100, got {percentiles:?}")));
    }
    Ok(Some(percentiles))
}

/// The tips below which the given percentages of a block's gas paid.
fn tips(block: &IndexedBlock, percentiles: &[f64]) -> Vec<U256> {
    let base_fee = block.block.header.base_fee.0;
    let seen = &block.receipts[block.unseen()..];
    let mut paid: Vec<(u128, u64)> = seen
        .iter()
        .map(|receipt| (receipt.effective_gas_price.0.saturating_sub(base_fee), receipt.gas_used.0))
        .collect();
    paid.sort_unstable();
    // What was paid up to each, so that each percentile is found by halving.
    let mut total = 0;
    for (_, gas) in &mut paid {
        total += *gas;
        *gas = total;
    }
    let at = |percentile: &f64| {
        let wanted = (total as f64 * percentile / 100.0) as u64;
        let found = paid.get(paid.partition_point(|(_, gas_before)| *gas_before < wanted));
        found.map_or(U256::ZERO, |(tip, _)| U256::from(*tip))
    };
    percentiles.iter().map(at).collect()
}
