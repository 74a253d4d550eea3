//! The tracers of geth's `debug_` methods.

use crate::{
    before::Before,
    error::TraceError,
    tracer::{Keeps, Seen, Tracer},
};
use alloy_primitives::U256;
use alloy_rpc_types_trace::geth::{
    GethDebugBuiltInTracerType as BuiltIn, GethDebugTracerType, GethDebugTracingOptions, GethTrace,
    mux::MuxFrame,
};
use revm::{context::BlockEnv, context_interface::result::ResultAndState, interpreter::InstructionResult};
use revm_inspectors::tracing::{DebugInspector, DebugInspectorError, TracingInspector, TransactionContext};

/// The tracers that can be requested by name.
const KNOWN: [BuiltIn; 6] = [
    BuiltIn::CallTracer,
    BuiltIn::PreStateTracer,
    BuiltIn::FlatCallTracer,
    BuiltIn::FourByteTracer,
    BuiltIn::MuxTracer,
    BuiltIn::NoopTracer,
];

/// Most characters of a name to repeat in an error, since a name can be a whole program.
const NAME_CHARS_MAX: usize = 40;

/// A tracer by name; without a name, the log of all steps.
#[derive(Debug)]
pub struct GethTracer {
    template: DebugInspector,
    keeps: Keeps,
}

impl GethTracer {
    /// The requested tracer, or an error if there is none.
    pub fn new(options: GethDebugTracingOptions) -> Result<Self, TraceError> {
        let tracer = options.tracer.as_ref().map_or("", GethDebugTracerType::as_str).to_owned();
        let is_known = match &options.tracer {
            None => true,
            Some(GethDebugTracerType::BuiltInTracer(tracer)) => KNOWN.contains(tracer),
            Some(GethDebugTracerType::JsTracer(name)) => name.is_empty(),
        };
        if !is_known {
            return Err(unknown(&tracer));
        }
        let template = DebugInspector::new(options).map_err(|error| match error {
            DebugInspectorError::JsTracerNotEnabled | DebugInspectorError::UnsupportedTracer => {
                unknown(&tracer)
            }
            error => TraceError::BadConfig { tracer, reason: error.to_string() },
        })?;
        let keeps = keeps(&template);
        Ok(Self { template, keeps })
    }
}

impl Tracer for GethTracer {
    type Inspector = DebugInspector;
    type Trace = GethTrace;

    fn inspector(&self) -> DebugInspector {
        self.template.try_clone().expect("only JavaScript cannot be copied, and there is none")
    }

    fn keeps(&self) -> Keeps {
        self.keeps
    }

    fn trace(&self, mut inspector: DebugInspector, seen: &Seen) -> Result<GethTrace, TraceError> {
        let Seen { info, footprint } = seen;
        if let DebugInspector::CallTracer(inspector, _)
        | DebugInspector::FlatCallTracer(inspector)
        | DebugInspector::Default(inspector, _) = &mut inspector
        {
            end_empty(inspector, seen);
        }
        let context = TransactionContext {
            block_hash: info.block_hash,
            tx_index: info.index.and_then(|index| usize::try_from(index).ok()),
            tx_hash: info.hash,
        };
        let block = BlockEnv {
            number: U256::from(info.block_number.unwrap_or_default()),
            basefee: info.base_fee.unwrap_or_default(),
            ..BlockEnv::default()
        };
        let result = ResultAndState::new(footprint.result.clone(), footprint.after.clone());
        let trace =
            inspector.get_result(Some(context), &footprint.tx, &block, &result, &mut Before(footprint));
        match trace {
            Ok(trace) => Ok(without_undone_logs(trace)),
            Err(DebugInspectorError::Database(fault)) => Err(fault.into()),
            Err(other) => unreachable!("a tracer that was made fails only where the state does: {other}"),
        }
    }
}

/// Removes the logs of a failed transaction. The inspector does so only for inner calls.
fn without_undone_logs(trace: GethTrace) -> GethTrace {
    match trace {
        GethTrace::CallTracer(mut frame) => {
            if frame.error.is_some() {
                frame.logs.clear();
            }
            GethTrace::CallTracer(frame)
        }
        GethTrace::MuxTracer(MuxFrame(frames)) => {
            let frames = frames.into_iter().map(|(tracer, trace)| (tracer, without_undone_logs(trace)));
            GethTrace::MuxTracer(MuxFrame(frames.collect()))
        }
        other => other,
    }
}

fn unknown(name: &str) -> TraceError {
    let known = KNOWN.map(|tracer| GethDebugTracerType::from(tracer).as_str().to_owned()).join(", ");
    TraceError::UnknownTracer { given: name.chars().take(NAME_CHARS_MAX).collect(), known }
}

fn keeps(inspector: &DebugInspector) -> Keeps {
    let DebugInspector::Default(_, options) = inspector else { return Keeps::default() };
    Keeps {
        steps_max: options.limit.filter(|limit| *limit > 0).unwrap_or(u64::MAX),
        stack: !options.disable_stack.unwrap_or_default(),
        memory: options.is_memory_enabled(),
        storage: options.is_storage_enabled(),
    }
}

/// Ends the call of a transaction that calls nothing, such as a prologue, which the inspector would leave open.
pub(crate) fn end_empty(inspector: &mut TracingInspector, seen: &Seen) {
    let root = inspector.traces_mut().nodes_mut().first_mut();
    if let Some(root) = root.filter(|root| root.trace.status.is_none() && seen.footprint.result.is_success())
    {
        root.trace.status = Some(InstructionResult::Stop);
        root.trace.success = true;
    }
}
