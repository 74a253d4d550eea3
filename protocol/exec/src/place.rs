//! The position of a transaction in the chain. The ids of schedules that it creates derive from it.

/// The receipt index of a block's first user transaction if nothing is due: the prologue has index 0.
const FIRST_INDEX: u32 = 1;

/// A block and a receipt index in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The block's number.
    pub block: u64,
    /// The receipt index, which counts the prologue and runs as well.
    pub index: u32,
}

impl Place {
    /// The place of a block's first user transaction, if no run precedes it.
    pub fn first_of(block: u64) -> Self {
        Self { block, index: FIRST_INDEX }
    }

    /// The place of the n-th user transaction from 0, if no run precedes it.
    pub fn nth_of(block: u64, nth: u32) -> Self {
        Self { block, index: FIRST_INDEX.saturating_add(nth) }
    }
}

/// Where a call of a system contract stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    /// The transaction's place.
    pub(crate) place: Place,
    /// Whether the call is the user's own, made by the transaction itself and not by code.
    pub(crate) is_direct: bool,
}
