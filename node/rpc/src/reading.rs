//! Limits how much of the chain one call may read.

use crate::{bounds::READ_BYTES_MAX, error};
use almanac_index::IndexedBlock;
use jsonrpsee::core::RpcResult;

/// The bytes of blocks that a call may still read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    left: usize,
    /// How to ask for less.
    instead: &'static str,
}

impl Reading {
    /// As much as a call may read; `instead` says how to ask for less.
    pub(crate) fn new(instead: &'static str) -> Self {
        Self { left: READ_BYTES_MAX, instead }
    }

    /// Counts a block that was read. The last one may be above the limit: blocks have a limit of their own.
    pub(crate) fn count(&mut self, block: &IndexedBlock) -> RpcResult<()> {
        self.left = self.left.checked_sub(block.weight()).ok_or_else(|| {
            let instead = self.instead;
            error::limit(format!(
                "the blocks to be read are above the limit of {READ_BYTES_MAX} bytes: {instead}"
            ))
        })?;
        Ok(())
    }
}
