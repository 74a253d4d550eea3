//! Closes a block: what changed, and what the header says of it.

use crate::{
    block::Execution, doors, error::BlockError, machine::EvmContext, output::BlockOutput,
    state::CalendarDamage,
};
use alloy_primitives::Bloom;
use almanac_primitives::{Lane, block::receipts_root};
use revm::Inspector;

/// Gathers the result of a block. Tips were credited and fees burned with each transaction.
pub(crate) fn run<'a, I: Inspector<EvmContext<'a>>>(
    execution: Execution<'a, '_, I>,
) -> Result<BlockOutput, BlockError> {
    let Execution { machine, environment, transactions, mut receipts, .. } = execution;
    let (diff, damage) = machine.into_state().into_diff()?;
    if let (Some(damage), Some(prologue)) = (damage, receipts.first_mut()) {
        prologue.logs.push(match damage {
            CalendarDamage::Mended(error) => doors::contradiction_log(&error),
            CalendarDamage::Unwritable(error) => doors::pause_log(Lane::Cron, &error),
        });
    }
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
        events: execution.events,
        diff,
    })
}
