//! The `trace_` methods, as OpenEthereum had them and explorers still use them.

use crate::{error, eth::attempt::Overrides, retrace::Retrace, trace_filter};
use alloy_eips::BlockId;
use alloy_primitives::{TxHash, map::HashSet};
use alloy_rpc_types_eth::TransactionRequest;
use alloy_rpc_types_trace::{
    filter::TraceFilter,
    parity::{LocalizedTransactionTrace, TraceResults, TraceResultsWithTransactionHash, TraceType},
};
use almanac_trace::{CallTraces, Replays};
use jsonrpsee::{core::RpcResult, proc_macros::rpc};

/// What explorers ask.
#[rpc(server)]
pub trait ParityApi {
    /// The calls of a transaction, or null where there is none with this hash.
    #[method(name = "trace_transaction")]
    async fn trace_transaction(&self, hash: TxHash) -> RpcResult<Option<Vec<LocalizedTransactionTrace>>>;

    /// The calls of all transactions of a block, or null where there is no such block.
    #[method(name = "trace_block")]
    async fn trace_block(&self, id: BlockId) -> RpcResult<Option<Vec<LocalizedTransactionTrace>>>;

    /// One call of a transaction by its place in the tree.
    #[method(name = "trace_get")]
    async fn trace_get(
        &self,
        hash: TxHash,
        address: Vec<alloy_rpc_types_eth::Index>,
    ) -> RpcResult<Option<LocalizedTransactionTrace>>;

    /// Calls in a range of blocks, by who called and who was called.
    #[method(name = "trace_filter")]
    async fn trace_filter(&self, filter: TraceFilter) -> RpcResult<Vec<LocalizedTransactionTrace>>;

    /// What a transaction returned, with the kinds of traces that are asked for.
    #[method(name = "trace_replayTransaction")]
    async fn replay_transaction(&self, hash: TxHash, types: HashSet<TraceType>) -> RpcResult<TraceResults>;

    /// The same for all transactions of a block, or null where there is no such block.
    #[method(name = "trace_replayBlockTransactions")]
    async fn replay_block_transactions(
        &self,
        id: BlockId,
        types: HashSet<TraceType>,
    ) -> RpcResult<Option<Vec<TraceResultsWithTransactionHash>>>;

    /// What a call would return, with the kinds of traces that are asked for.
    #[method(name = "trace_call")]
    async fn trace_call(
        &self,
        request: TransactionRequest,
        types: HashSet<TraceType>,
        block: Option<BlockId>,
    ) -> RpcResult<TraceResults>;
}

#[jsonrpsee::core::async_trait]
impl ParityApiServer for Retrace {
    async fn trace_transaction(&self, hash: TxHash) -> RpcResult<Option<Vec<LocalizedTransactionTrace>>> {
        self.transaction(hash, CallTraces).await
    }

    async fn trace_block(&self, id: BlockId) -> RpcResult<Option<Vec<LocalizedTransactionTrace>>> {
        let Some(block) = self.view.find(id)? else { return Ok(None) };
        Ok(Some(self.block(block, CallTraces).await?.into_iter().flatten().collect()))
    }

    async fn trace_get(
        &self,
        hash: TxHash,
        address: Vec<alloy_rpc_types_eth::Index>,
    ) -> RpcResult<Option<LocalizedTransactionTrace>> {
        let traces = self.transaction(hash, CallTraces).await?;
        let is_there = |trace: &LocalizedTransactionTrace| {
            trace.trace.trace_address.iter().eq(address.iter().map(|index| &index.0))
        };
        Ok(traces.into_iter().flatten().find(is_there))
    }

    async fn trace_filter(&self, filter: TraceFilter) -> RpcResult<Vec<LocalizedTransactionTrace>> {
        let view = self.view.clone();
        self.heavy.run(move || trace_filter::search(&view, &filter)).await
    }

    async fn replay_transaction(&self, hash: TxHash, types: HashSet<TraceType>) -> RpcResult<TraceResults> {
        let replay = self.transaction(hash, Replays { types }).await?;
        replay.ok_or_else(|| error::unknown_transaction(hash))
    }

    async fn replay_block_transactions(
        &self,
        id: BlockId,
        types: HashSet<TraceType>,
    ) -> RpcResult<Option<Vec<TraceResultsWithTransactionHash>>> {
        let Some(block) = self.view.find(id)? else { return Ok(None) };
        let replays = self.block(block.clone(), Replays { types }).await?;
        let shown = block.receipts[block.unseen()..].iter();
        let replays = shown.zip(replays).map(|(receipt, full_trace)| TraceResultsWithTransactionHash {
            full_trace,
            transaction_hash: receipt.transaction_hash,
        });
        Ok(Some(replays.collect()))
    }

    async fn trace_call(
        &self,
        request: TransactionRequest,
        types: HashSet<TraceType>,
        block: Option<BlockId>,
    ) -> RpcResult<TraceResults> {
        self.call(request, block, Overrides::default(), Replays { types }).await
    }
}
