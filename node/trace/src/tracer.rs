//! A tracer: an inspector for the EVM, and the result that it builds.

use crate::error::TraceError;
use alloy_rpc_types_eth::TransactionInfo;
use almanac_exec::{EvmContext, Footprint};
use revm::Inspector;

/// Observes a transaction and builds its trace.
pub trait Tracer {
    /// The inspector attached to the EVM.
    type Inspector: for<'a> Inspector<EvmContext<'a>>;
    /// The result.
    type Trace;

    /// A new inspector, for one transaction.
    fn inspector(&self) -> Self::Inspector;

    /// What it keeps of every step.
    fn keeps(&self) -> Keeps {
        Keeps::default()
    }

    /// Bytes that the inspector holds in addition to [`Self::keeps`], by its own count; `None` if it stopped
    /// the EVM because they were too many.
    fn counted(&self, _: &Self::Inspector) -> Option<usize> {
        Some(0)
    }

    /// Builds the trace of one transaction.
    fn trace(&self, inspector: Self::Inspector, seen: &Seen) -> Result<Self::Trace, TraceError>;
}

/// What a tracer keeps of every step, which determines the cost of its trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keeps {
    /// Most steps.
    pub steps_max: u64,
    /// The whole stack.
    pub stack: bool,
    /// The whole memory.
    pub memory: bool,
    /// All slots of the contract seen so far, with every step that reads or writes one.
    pub storage: bool,
}

/// A transaction that has run.
#[derive(Debug)]
pub struct Seen {
    /// Its position in the chain; empty for a simulated call.
    pub info: TransactionInfo,
    /// The state it touched.
    pub footprint: Footprint,
}
