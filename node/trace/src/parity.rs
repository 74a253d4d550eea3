//! The traces of OpenEthereum's `trace_` methods.
//!
//! Unlike OpenEthereum's, they include calls to native code: our system contracts are native, and many
//! transactions call one.

use crate::{
    before::Before,
    error::TraceError,
    geth::end_empty,
    limits::Limits,
    tracer::{Keeps, Seen, Tracer},
};
use alloy_primitives::map::HashSet;
use alloy_rpc_types_trace::parity::{LocalizedTransactionTrace, TraceResults, TraceType};
use revm_inspectors::tracing::{TraceLimitBehavior, TraceLimits, TracingInspector, TracingInspectorConfig};

/// The calls of a transaction as a flat list, each with its position in the chain.
#[derive(Clone, Copy, Debug)]
pub struct CallTraces;

impl Tracer for CallTraces {
    type Inspector = TracingInspector;
    type Trace = Vec<LocalizedTransactionTrace>;

    fn inspector(&self) -> TracingInspector {
        let config = TracingInspectorConfig::default_parity();
        TracingInspector::new(config.set_exclude_precompile_calls(false))
    }

    fn trace(&self, mut inspector: TracingInspector, seen: &Seen) -> Result<Self::Trace, TraceError> {
        end_empty(&mut inspector, seen);
        Ok(inspector.into_parity_builder().into_localized_transaction_traces(seen.info))
    }
}

/// Most bytes that the steps of one transaction may write to memory, if that is shown. A copy costs little gas.
const WRITTEN_BYTES_MAX: u64 = Limits::BLOCK.bytes_max;

/// The output of a transaction, with the requested kinds of traces.
#[derive(Clone, Debug)]
pub struct Replays {
    /// The requested kinds.
    pub types: HashSet<TraceType>,
}

impl Tracer for Replays {
    type Inspector = TracingInspector;
    type Trace = TraceResults;

    fn inspector(&self) -> TracingInspector {
        let config = TracingInspectorConfig::from_parity_config(&self.types);
        let limits = TraceLimits::default().set_max_recorded_bytes(usize::try_from(WRITTEN_BYTES_MAX).ok());
        TracingInspector::new(config.set_exclude_precompile_calls(false))
            .with_limits(limits.set_behavior(TraceLimitBehavior::Halt))
    }

    fn counted(&self, inspector: &TracingInspector) -> Option<usize> {
        (!inspector.limit_exceeded()).then(|| inspector.recorded_bytes())
    }

    fn keeps(&self) -> Keeps {
        let steps_max = if self.types.contains(&TraceType::VmTrace) { u64::MAX } else { 0 };
        Keeps { steps_max, ..Keeps::default() }
    }

    fn trace(&self, mut inspector: TracingInspector, seen: &Seen) -> Result<TraceResults, TraceError> {
        end_empty(&mut inspector, seen);
        let (footprint, builder) = (&seen.footprint, inspector.into_parity_builder());
        let before = Before(footprint);
        let (result, after) = (&footprint.result, &footprint.after);
        Ok(builder.into_trace_results_with_state_parts(result, after, &self.types, before)?)
    }
}
