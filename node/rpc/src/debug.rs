//! The `debug_` methods: geth's tracers.

use crate::{
    answer::Answer,
    error,
    eth::{attempt::Overrides, request::CallRequest},
    retrace::Retrace,
    revert,
};
use alloy_eips::{BlockId, BlockNumberOrTag};
use alloy_primitives::{BlockHash, TxHash};
use alloy_rpc_types_trace::{
    common::TraceResult,
    geth::{GethDebugTracingCallOptions, GethDebugTracingOptions, GethTrace, mux::MuxFrame},
};
use almanac_trace::{GethTracer, Seen, TraceError, Tracer, tracer::Keeps};
use jsonrpsee::{core::RpcResult, proc_macros::rpc};

/// One trace among those of a block.
type BlockTrace = TraceResult<GethTrace, String>;

/// What geth's debugging clients ask.
#[rpc(server)]
pub trait DebugApi {
    /// What a transaction did, as a tracer tells it.
    #[method(name = "debug_traceTransaction")]
    async fn trace_transaction(
        &self,
        hash: TxHash,
        options: Option<GethDebugTracingOptions>,
    ) -> RpcResult<Answer<GethTrace>>;

    /// The same for all that ran in a block.
    #[method(name = "debug_traceBlockByNumber")]
    async fn trace_block_by_number(
        &self,
        number: BlockNumberOrTag,
        options: Option<GethDebugTracingOptions>,
    ) -> RpcResult<Answer<Vec<BlockTrace>>>;

    /// The same for a block by its hash.
    #[method(name = "debug_traceBlockByHash")]
    async fn trace_block_by_hash(
        &self,
        hash: BlockHash,
        options: Option<GethDebugTracingOptions>,
    ) -> RpcResult<Answer<Vec<BlockTrace>>>;

    /// What a call would do, as a tracer tells it.
    #[method(name = "debug_traceCall")]
    async fn trace_call(
        &self,
        request: CallRequest,
        block: Option<BlockId>,
        options: Option<GethDebugTracingCallOptions>,
    ) -> RpcResult<Answer<GethTrace>>;
}

#[jsonrpsee::core::async_trait]
impl DebugApiServer for Retrace {
    async fn trace_transaction(
        &self,
        hash: TxHash,
        options: Option<GethDebugTracingOptions>,
    ) -> RpcResult<Answer<GethTrace>> {
        let found = move |trace: Option<GethTrace>| trace.ok_or_else(|| error::unknown_transaction(hash));
        self.transaction(hash, tracer(options)?, found).await
    }

    async fn trace_block_by_number(
        &self,
        number: BlockNumberOrTag,
        options: Option<GethDebugTracingOptions>,
    ) -> RpcResult<Answer<Vec<BlockTrace>>> {
        self.debug_block(number.into(), options).await
    }

    async fn trace_block_by_hash(
        &self,
        hash: BlockHash,
        options: Option<GethDebugTracingOptions>,
    ) -> RpcResult<Answer<Vec<BlockTrace>>> {
        self.debug_block(hash.into(), options).await
    }

    async fn trace_call(
        &self,
        request: CallRequest,
        block: Option<BlockId>,
        options: Option<GethDebugTracingCallOptions>,
    ) -> RpcResult<Answer<GethTrace>> {
        let options = options.unwrap_or_default();
        if let Some(index) = options.tx_index {
            return Err(error::invalid(format!(
                "txIndex {index} is not supported: calls are tried on the state after a whole block"
            )));
        }
        let overrides =
            Overrides { state: options.state_overrides, block: options.block_overrides.map(Box::new) };
        self.call(request, block, overrides, tracer(Some(options.tracing_options))?).await
    }
}

impl Retrace {
    async fn debug_block(
        &self,
        id: BlockId,
        options: Option<GethDebugTracingOptions>,
    ) -> RpcResult<Answer<Vec<BlockTrace>>> {
        self.block(id, tracer(options)?, move |found| {
            let (block, traces) = found.ok_or_else(|| error::unknown_block(id))?;
            let shown = block.receipts[block.unseen()..].iter();
            let traces = shown.zip(traces).map(|(receipt, result)| BlockTrace::Success {
                result,
                tx_hash: Some(receipt.transaction_hash),
            });
            Ok(traces.collect())
        })
        .await
    }
}

fn tracer(options: Option<GethDebugTracingOptions>) -> RpcResult<InWords> {
    GethTracer::new(options.unwrap_or_default()).map(InWords).map_err(|error| error::trace(&error))
}

/// A tracer of geth's that also gives the reason of calls which the chain's own contracts reverted.
struct InWords(GethTracer);

impl Tracer for InWords {
    type Inspector = <GethTracer as Tracer>::Inspector;
    type Trace = GethTrace;

    fn inspector(&self) -> Self::Inspector {
        self.0.inspector()
    }

    fn keeps(&self) -> Keeps {
        self.0.keeps()
    }

    fn trace(&self, inspector: Self::Inspector, seen: &Seen) -> Result<GethTrace, TraceError> {
        let mut trace = self.0.trace(inspector, seen)?;
        add_reasons(&mut trace);
        Ok(trace)
    }
}

fn add_reasons(trace: &mut GethTrace) {
    match trace {
        GethTrace::CallTracer(root) => {
            let mut frames = vec![root];
            while let Some(frame) = frames.pop() {
                if frame.revert_reason.is_none() && frame.error.is_some() {
                    frame.revert_reason = frame.output.as_ref().and_then(|output| revert::reason(output));
                }
                frames.extend(frame.calls.iter_mut());
            }
        }
        GethTrace::MuxTracer(MuxFrame(frames)) => frames.values_mut().for_each(add_reasons),
        _ => {}
    }
}
