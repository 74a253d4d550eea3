//! Traces on request: finds what is asked for, waits for a turn, and runs it again.

use crate::{
    debug::DebugApiServer,
    error,
    eth::attempt::{Attempt, Overrides},
    heavy::Heavy,
    otterscan::OtterscanApiServer,
    parity::ParityApiServer,
    view::View,
};
use alloy_eips::BlockId;
use alloy_primitives::TxHash;
use alloy_rpc_types_eth::TransactionRequest;
use almanac_index::{IndexedBlock, Location};
use almanac_trace::{Limits, Replay, TraceError, Tracer, trace_call};
use jsonrpsee::{RpcModule, core::RpcResult};
use std::{sync::Arc, time::Duration};

/// Answers the `debug_`, `trace_` and `ots_` methods.
#[derive(Clone)]
pub struct Retrace {
    pub(crate) view: View,
    pub(crate) heavy: Heavy,
    call_time_max: Duration,
}

impl Retrace {
    /// Traces what `view` shows, when `heavy` lets it; a call that is only tried, for so long at most.
    pub fn new(view: View, heavy: Heavy, call_time_max: Duration) -> Self {
        Self { view, heavy, call_time_max }
    }

    /// All of its methods.
    pub fn into_module(self) -> RpcModule<()> {
        let parts: [jsonrpsee::Methods; 3] = [
            DebugApiServer::into_rpc(self.clone()).into(),
            ParityApiServer::into_rpc(self.clone()).into(),
            OtterscanApiServer::into_rpc(self).into(),
        ];
        let mut all = RpcModule::new(());
        for part in parts {
            all.merge(part).expect("no two parts have a method of the same name");
        }
        all
    }

    /// The trace of a transaction, or `None` where there is no such transaction.
    pub(crate) async fn transaction<T>(&self, hash: TxHash, tracer: T) -> RpcResult<Option<T::Trace>>
    where
        T: Tracer<Trace: Send + 'static> + Send + 'static,
    {
        let Some((location, block)) = self.view.index.transaction(hash).map_err(error::internal)? else {
            return Ok(None);
        };
        let view = self.view.clone();
        self.heavy.run(move || view.retrace_one(&block, &tracer, location).map(Some)).await
    }

    /// The traces of all that a block shows, in order.
    pub(crate) async fn block<T>(&self, block: Arc<IndexedBlock>, tracer: T) -> RpcResult<Vec<T::Trace>>
    where
        T: Tracer<Trace: Send + 'static> + Send + 'static,
    {
        let view = self.view.clone();
        self.heavy
            .run(move || view.retrace_all(&block, &tracer, Limits::BLOCK).map_err(|e| error::trace(&e)))
            .await
    }

    /// The trace of a call that changes nothing.
    pub(crate) async fn call<T>(
        &self,
        request: TransactionRequest,
        id: Option<BlockId>,
        overrides: Overrides,
        tracer: T,
    ) -> RpcResult<T::Trace>
    where
        T: Tracer<Trace: Send + 'static> + Send + 'static,
    {
        let (view, time_max) = (self.view.clone(), self.call_time_max);
        let work = move || {
            let attempt = Attempt::new(&view, id, overrides, time_max)?;
            let call = attempt.call(request)?;
            let limits = Limits { time_max, ..Limits::CALL };
            let traced = trace_call(&attempt.state, &attempt.environment, call, &tracer, limits);
            traced.map_err(|error| error::trace(&error))
        };
        self.heavy.run(work).await
    }
}

impl View {
    fn retrace_one<T: Tracer>(
        &self,
        block: &IndexedBlock,
        tracer: &T,
        location: Location,
    ) -> RpcResult<T::Trace> {
        let replay = Replay::new(&self.index, &*self.agenda, self.chain_id, block);
        let replay = replay
            .map_err(|error| error::trace(&error))?
            .ok_or_else(|| error::internal(format!("a transaction at {location:?}, where nothing ran")))?;
        replay.one(tracer, location.index, Limits::BLOCK).map_err(|error| error::trace(&error))
    }

    /// The traces of all that a block shows. Nothing ran in genesis.
    pub(crate) fn retrace_all<T: Tracer>(
        &self,
        block: &IndexedBlock,
        tracer: &T,
        limits: Limits,
    ) -> Result<Vec<T::Trace>, TraceError> {
        let replay = Replay::new(&self.index, &*self.agenda, self.chain_id, block)?;
        let Some(replay) = replay else { return Ok(Vec::new()) };
        let mut traces = replay.all(tracer, limits)?;
        Ok(traces.split_off(block.unseen()))
    }
}
