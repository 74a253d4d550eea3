//! Traces on request: finds the transaction or block, waits for a turn, and traces it.

use crate::{
    answer::Answer,
    debug::DebugApiServer,
    error,
    eth::{
        attempt::{Attempt, Overrides},
        request::CallRequest,
    },
    heavy::{Heavy, HeavyLimits},
    otterscan::OtterscanApiServer,
    parity::ParityApiServer,
    record::RecordApiServer,
    view::View,
};
use alloy_eips::BlockId;
use alloy_primitives::TxHash;
use almanac_index::{IndexedBlock, Location};
use almanac_trace::{Limits, Replay, TraceError, Tracer, trace_call};
use jsonrpsee::{RpcModule, core::RpcResult};
use serde::Serialize;
use std::{sync::Arc, time::Duration};

/// How to ask for less.
const LESS: &str = "ask for single transactions, smaller pages, or a tracer that tells less";

/// Answers the `debug_`, `trace_` and `ots_` methods, and `almanac_getRecord`.
#[derive(Clone)]
pub(crate) struct Retrace {
    pub(crate) view: View,
    pub(crate) heavy: Heavy,
    reads: Heavy,
    call_time_max: Duration,
}

impl Retrace {
    /// Traces what `view` shows, when `heavy` lets it; a call that is only tried, for so long at most.
    pub(crate) fn new(view: View, heavy: Heavy, call_time_max: Duration) -> Self {
        Self { view, heavy, reads: Heavy::new(HeavyLimits::READS), call_time_max }
    }

    /// All of its methods.
    pub(crate) fn into_module(self) -> RpcModule<()> {
        let parts: [jsonrpsee::Methods; 4] = [
            DebugApiServer::into_rpc(self.clone()).into(),
            ParityApiServer::into_rpc(self.clone()).into(),
            RecordApiServer::into_rpc(self.clone()).into(),
            OtterscanApiServer::into_rpc(self).into(),
        ];
        let mut all = RpcModule::new(());
        for part in parts {
            all.merge(part).expect("no two parts have a method of the same name");
        }
        all
    }

    /// What `show` makes of the trace of a transaction, or of `None` where there is no such transaction.
    pub(crate) async fn transaction<T, R>(
        &self,
        hash: TxHash,
        tracer: T,
        show: impl FnOnce(Option<T::Trace>) -> RpcResult<R> + Send + 'static,
    ) -> RpcResult<Answer<R>>
    where
        T: Tracer + Send + 'static,
        R: Serialize + 'static,
    {
        let view = self.view.clone();
        let work = move || {
            let found = view.index.transaction(hash).map_err(error::internal)?;
            let trace = found.map(|(location, block)| view.retrace_one(&block, &tracer, location));
            show(trace.transpose().map_err(|error| error::trace(&error))?)
        };
        self.heavy.answer(LESS, work).await
    }

    /// What `show` makes of the traces of all that a block shows, in order, or of `None` where there is no such
    /// block.
    pub(crate) async fn block<T, R>(
        &self,
        id: BlockId,
        tracer: T,
        show: impl FnOnce(Option<(Arc<IndexedBlock>, Vec<T::Trace>)>) -> RpcResult<R> + Send + 'static,
    ) -> RpcResult<Answer<R>>
    where
        T: Tracer + Send + 'static,
        R: Serialize + 'static,
    {
        let view = self.view.clone();
        let work = move || {
            let Some(block) = view.find(id)? else { return show(None) };
            let traces = view.retrace_all(&block, &tracer, Limits::BLOCK);
            show(Some((block, traces.map_err(|error| error::trace(&error))?)))
        };
        self.heavy.answer(LESS, work).await
    }

    /// The trace of a call that changes nothing.
    pub(crate) async fn call<T>(
        &self,
        request: CallRequest,
        id: Option<BlockId>,
        overrides: Overrides,
        tracer: T,
    ) -> RpcResult<Answer<T::Trace>>
    where
        T: Tracer<Trace: Serialize + 'static> + Send + 'static,
    {
        let (view, time_max) = (self.view.clone(), self.call_time_max);
        let work = move || {
            let attempt = Attempt::new(&view, id, overrides, time_max)?;
            let call = attempt.call(request)?;
            let limits = Limits { time_max, ..Limits::CALL };
            let traced = trace_call(&attempt.state, &attempt.environment, call, &tracer, limits);
            traced.map_err(|error| error::trace(&error))
        };
        self.heavy.answer(LESS, work).await
    }

    /// Reads, without running anything again.
    pub(crate) async fn read<T: Serialize + 'static>(
        &self,
        work: impl FnOnce(&View) -> RpcResult<T> + Send + 'static,
    ) -> RpcResult<Answer<T>> {
        let view = self.view.clone();
        self.reads.answer(LESS, move || work(&view)).await
    }
}

impl View {
    /// The trace of what ran at a location.
    pub(crate) fn retrace_one<T: Tracer>(
        &self,
        block: &IndexedBlock,
        tracer: &T,
        location: Location,
    ) -> Result<T::Trace, TraceError> {
        let Location { number, index } = location;
        let replay = Replay::new(&self.index, &*self.agenda, self.chain, block)?;
        let replay = replay.ok_or(TraceError::NoSuchTransaction { number, index, count: 0 })?;
        replay.one(tracer, index, Limits::BLOCK)
    }

    /// The traces of all that a block shows. Nothing ran in genesis.
    pub(crate) fn retrace_all<T: Tracer>(
        &self,
        block: &IndexedBlock,
        tracer: &T,
        limits: Limits,
    ) -> Result<Vec<T::Trace>, TraceError> {
        let replay = Replay::new(&self.index, &*self.agenda, self.chain, block)?;
        let Some(replay) = replay else { return Ok(Vec::new()) };
        let mut traces = replay.all(tracer, limits)?;
        Ok(traces.split_off(block.unseen()))
    }
}
