//! What a tracer is: an inspector for the EVM, and the result that it builds.

use crate::error::TraceError;
use alloy_rpc_types_eth::TransactionInfo;
use almanac_exec::{EvmContext, Footprint};
use revm::Inspector;

/// Looks on while a transaction runs, and says what it saw.
pub trait Tracer {
    /// What the EVM reports to.
    type Inspector: for<'a> Inspector<EvmContext<'a>>;
    /// What it says in the end.
    type Trace;

    /// A fresh inspector, for one transaction.
    fn inspector(&self) -> Self::Inspector;

    /// What it keeps of every single step.
    fn keeps(&self) -> Keeps {
        Keeps::default()
    }

    /// Bytes that the inspector holds beyond what [`Self::keeps`] says, as it counted them itself; `None` where
    /// it stopped the EVM because they were too many.
    fn counted(&self, _: &Self::Inspector) -> Option<usize> {
        Some(0)
    }

    /// What was seen of one transaction.
    fn trace(&self, inspector: Self::Inspector, seen: &Seen) -> Result<Self::Trace, TraceError>;
}

/// What a tracer keeps of every single step, and so what its trace costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keeps {
    /// How many steps, at most.
    pub steps_max: u64,
    /// The whole stack.
    pub stack: bool,
    /// The whole memory.
    pub memory: bool,
    /// All slots of the contract that were seen so far, with every step that reads or writes one.
    pub storage: bool,
}

/// A transaction that has run.
#[derive(Debug)]
pub struct Seen {
    /// Where it is in the chain; a call that was tried out is nowhere.
    pub info: TransactionInfo,
    /// What it touched.
    pub footprint: Footprint,
}
