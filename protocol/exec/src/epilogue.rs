//! Closes a block: what changed, and what the header says of it.

use crate::{block::Execution, error::BlockError, machine::EvmContext, output::BlockOutput};
use alloy_primitives::Bloom;
use almanac_primitives::block::receipts_root;
use revm::Inspector;

/// Gathers the result of a block. Tips were credited and fees burned with each transaction.
pub(crate) fn run<'a, I: Inspector<EvmContext<'a>>>(
    execution: Execution<'a, '_, I>,
) -> Result<BlockOutput, BlockError> {
    let Execution { machine, environment, transactions, receipts, .. } = execution;
    let diff = machine.into_state().into_diff()?;
    let mut logs_bloom = Bloom::ZERO;
    for receipt in receipts.iter().filter(|receipt| !receipt.logs.is_empty()) {
        logs_bloom |= receipt.bloom();
    }
    Ok(BlockOutput {
        environment,
        receipts_root: receipts_root(&receipts),
        transactions,
        receipts,
        logs_bloom,
        gas_used: execution.shared_gas_used,
        reserved_gas_used: execution.reserved_gas_used,
        burned: execution.burned,
        diff,
    })
}
