//! The queries of the explorer Otterscan about a transaction.

use crate::{
    error::TraceError,
    geth::end_empty,
    tracer::{Seen, Tracer},
};
use alloy_primitives::{Address, Bytes, U256};
use alloy_rpc_types_trace::otterscan::InternalOperation;
use revm::{context_interface::result::ExecutionResult, inspector::NoOpInspector};
use revm_inspectors::{
    otterscan::InternalOperationsInspector,
    tracing::{TracingInspector, TracingInspectorConfig, types::CallTraceNode},
};
use serde::Serialize;

/// Every call of a transaction, in order.
#[derive(Clone, Copy, Debug)]
pub struct OtterscanEntries;

/// One call, creation or self-destruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OtterscanEntry {
    /// The opcode that caused it.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its depth; the transaction itself is at 0.
    pub depth: usize,
    /// The caller.
    pub from: Address,
    /// The address that is called, created or paid.
    pub to: Address,
    /// Value; `None` if the opcode cannot carry any.
    pub value: Option<U256>,
    /// Calldata or init code.
    pub input: Bytes,
    /// The returned data.
    pub output: Bytes,
}

impl Tracer for OtterscanEntries {
    type Inspector = TracingInspector;
    type Trace = Vec<OtterscanEntry>;

    fn inspector(&self) -> TracingInspector {
        TracingInspector::new(TracingInspectorConfig::none().set_record_inputs(true))
    }

    fn trace(&self, mut inspector: TracingInspector, seen: &Seen) -> Result<Self::Trace, TraceError> {
        end_empty(&mut inspector, seen);
        // The arena holds calls in the order in which they began. A contract self-destructs at the end of its
        // call, so that entry goes after all calls made by it.
        let nodes = inspector.into_traces().into_nodes();
        let mut entries = Vec::with_capacity(nodes.len());
        let mut ending: Vec<OtterscanEntry> = Vec::new();
        for node in &nodes {
            while let Some(entry) = ending.pop_if(|entry| entry.depth > node.trace.depth) {
                entries.push(entry);
            }
            entries.push(call_entry(node));
            ending.extend(destruction_entry(node));
        }
        entries.extend(ending.into_iter().rev());
        Ok(entries)
    }
}

fn call_entry(node: &CallTraceNode) -> OtterscanEntry {
    let trace = &node.trace;
    let carries_value = !(trace.kind.is_static_call() || trace.kind.is_delegate());
    OtterscanEntry {
        kind: trace.kind.to_string(),
        depth: trace.depth,
        from: trace.caller,
        to: trace.address,
        value: carries_value.then_some(trace.value),
        input: trace.data.clone(),
        output: trace.output.clone(),
    }
}

fn destruction_entry(node: &CallTraceNode) -> Option<OtterscanEntry> {
    let frame = node.geth_selfdestruct_call_trace()?;
    Some(OtterscanEntry {
        kind: frame.typ,
        depth: node.trace.depth + 1,
        from: frame.from,
        to: frame.to.unwrap_or_default(),
        value: frame.value,
        input: Bytes::new(),
        output: Bytes::new(),
    })
}

/// Value transfers inside a transaction, and contracts created or destroyed.
#[derive(Clone, Copy, Debug)]
pub struct InternalOperations;

impl Tracer for InternalOperations {
    type Inspector = InternalOperationsInspector;
    type Trace = Vec<InternalOperation>;

    fn inspector(&self) -> InternalOperationsInspector {
        InternalOperationsInspector::default()
    }

    fn trace(&self, inspector: InternalOperationsInspector, _: &Seen) -> Result<Self::Trace, TraceError> {
        Ok(inspector.into_operations())
    }
}

/// The full revert data of a transaction; empty if it did not revert.
#[derive(Clone, Copy, Debug)]
pub struct RevertData;

impl Tracer for RevertData {
    type Inspector = NoOpInspector;
    type Trace = Bytes;

    fn inspector(&self) -> NoOpInspector {
        NoOpInspector
    }

    fn trace(&self, _: NoOpInspector, seen: &Seen) -> Result<Bytes, TraceError> {
        Ok(match &seen.footprint.result {
            ExecutionResult::Revert { output, .. } => output.clone(),
            ExecutionResult::Success { .. } | ExecutionResult::Halt { .. } => Bytes::new(),
        })
    }
}

/// The contracts that a transaction created and that still exist after it, each with its creator.
#[derive(Clone, Copy, Debug)]
pub struct Creations;

impl Tracer for Creations {
    type Inspector = TracingInspector;
    type Trace = Vec<(Address, Address)>;

    fn inspector(&self) -> TracingInspector {
        TracingInspector::new(TracingInspectorConfig::none())
    }

    fn trace(&self, inspector: TracingInspector, seen: &Seen) -> Result<Self::Trace, TraceError> {
        let nodes = inspector.into_traces().into_nodes();
        let created = nodes.iter().filter(|node| node.trace.kind.is_any_create() && node.trace.success);
        let stays = |address: &Address| {
            let account = seen.footprint.after.get(address);
            account.is_some_and(|account| account.is_created() && !account.is_selfdestructed())
        };
        let pairs = created.map(|node| (node.trace.address, node.trace.caller));
        Ok(pairs.filter(|(address, _)| stays(address)).collect())
    }
}
