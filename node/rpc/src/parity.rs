//! The `trace_` methods of OpenEthereum, which explorers still use.

use crate::{
    answer::Answer,
    error,
    eth::{attempt::Overrides, request::CallRequest},
    retrace::Retrace,
    trace_filter,
};
use alloy_eips::BlockId;
use alloy_primitives::{TxHash, map::HashSet};
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
    async fn trace_transaction(
        &self,
        hash: TxHash,
    ) -> RpcResult<Answer<Option<Vec<LocalizedTransactionTrace>>>>;

    /// The calls of all transactions of a block, or null where there is no such block.
    #[method(name = "trace_block")]
    async fn trace_block(&self, id: BlockId) -> RpcResult<Answer<Option<Vec<LocalizedTransactionTrace>>>>;

    /// One call of a transaction by its place in the tree.
    #[method(name = "trace_get")]
    async fn trace_get(
        &self,
        hash: TxHash,
        address: Vec<alloy_rpc_types_eth::Index>,
    ) -> RpcResult<Answer<Option<LocalizedTransactionTrace>>>;

    /// Calls in a range of blocks, by who called and who was called.
    #[method(name = "trace_filter")]
    async fn trace_filter(
        &self,
        filter: TraceFilter,
    ) -> RpcResult<Answer<Vec<Answer<LocalizedTransactionTrace>>>>;

    /// What a transaction returned, with the kinds of traces that are asked for.
    #[method(name = "trace_replayTransaction")]
    async fn replay_transaction(
        &self,
        hash: TxHash,
        types: HashSet<TraceType>,
    ) -> RpcResult<Answer<TraceResults>>;

    /// The same for all transactions of a block, or null where there is no such block.
    #[method(name = "trace_replayBlockTransactions")]
    async fn replay_block_transactions(
        &self,
        id: BlockId,
        types: HashSet<TraceType>,
    ) -> RpcResult<Answer<Option<Vec<TraceResultsWithTransactionHash>>>>;

    /// What a call would return, with the kinds of traces that are asked for.
    #[method(name = "trace_call")]
    async fn trace_call(
        &self,
        request: CallRequest,
        types: HashSet<TraceType>,
        block: Option<BlockId>,
    ) -> RpcResult<Answer<TraceResults>>;
}

#[jsonrpsee::core::async_trait]
impl ParityApiServer for Retrace {
    async fn trace_transaction(
        &self,
        hash: TxHash,
    ) -> RpcResult<Answer<Option<Vec<LocalizedTransactionTrace>>>> {
        self.transaction(hash, CallTraces, Ok).await
    }

    async fn trace_block(&self, id: BlockId) -> RpcResult<Answer<Option<Vec<LocalizedTransactionTrace>>>> {
        let show = |found: Option<(_, Vec<Vec<_>>)>| {
            Ok(found.map(|(_, traces)| traces.into_iter().flatten().collect()))
        };
        self.block(id, CallTraces, show).await
    }

    async fn trace_get(
        &self,
        hash: TxHash,
        address: Vec<alloy_rpc_types_eth::Index>,
    ) -> RpcResult<Answer<Option<LocalizedTransactionTrace>>> {
        let is_there = move |trace: &LocalizedTransactionTrace| {
            trace.trace.trace_address.iter().eq(address.iter().map(|index| &index.0))
        };
        let find = move |traces: Option<Vec<_>>| Ok(traces.into_iter().flatten().find(is_there));
        self.transaction(hash, CallTraces, find).await
    }

    async fn trace_filter(
        &self,
        filter: TraceFilter,
    ) -> RpcResult<Answer<Vec<Answer<LocalizedTransactionTrace>>>> {
        let view = self.view.clone();
        self.heavy.answer(trace_filter::LESS, move || trace_filter::search(&view, &filter)).await
    }

    async fn replay_transaction(
        &self,
        hash: TxHash,
        types: HashSet<TraceType>,
    ) -> RpcResult<Answer<TraceResults>> {
        let found =
            move |replay: Option<TraceResults>| replay.ok_or_else(|| error::unknown_transaction(hash));
        self.transaction(hash, Replays { types }, found).await
    }

    async fn replay_block_transactions(
        &self,
        id: BlockId,
        types: HashSet<TraceType>,
    ) -> RpcResult<Answer<Option<Vec<TraceResultsWithTransactionHash>>>> {
        self.block(id, Replays { types }, |found| {
            let Some((block, replays)) = found else { return Ok(None) };
            let shown = block.receipts[block.unseen()..].iter();
            let replays = shown.zip(replays).map(|(receipt, full_trace)| TraceResultsWithTransactionHash {
                full_trace,
                transaction_hash: receipt.transaction_hash,
            });
            Ok(Some(replays.collect()))
        })
        .await
    }

    async fn trace_call(
        &self,
        request: CallRequest,
        types: HashSet<TraceType>,
        block: Option<BlockId>,
    ) -> RpcResult<Answer<TraceResults>> {
        self.call(request, block, Overrides::default(), Replays { types }).await
    }
}
