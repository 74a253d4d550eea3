//! Where in the chain something runs. The schedules that it creates are named after that.

/// The receipt index of a block's first user transaction where nothing is due: the prologue has the one before.
const FIRST_INDEX: u32 = 1;

/// A block and a receipt index in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The block's number.
    pub block: u64,
    /// The receipt index in it, which counts the prologue and runs as well.
    pub index: u32,
}

impl Place {
    /// The place of a block's first user transaction, if no run comes before it.
    pub fn first_of(block: u64) -> Self {
        Self { block, index: FIRST_INDEX }
    }

    /// The place of the n-th user transaction from 0, if no run comes before it.
    pub fn nth_of(block: u64, nth: u32) -> Self {
        Self { block, index: FIRST_INDEX.saturating_add(nth) }
    }
}
