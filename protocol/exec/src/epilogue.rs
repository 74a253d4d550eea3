//! Closes a block: collects the state changes and the header's fields.

use crate::{
    block::Execution, doors, error::BlockError, machine::EvmContext, market, output::BlockOutput,
    state::CalendarDamage,
};
use alloy_primitives::Bloom;
use almanac_primitives::block::receipts_root;
use almanac_schedule::calendar::Queue;
use revm::Inspector;

/// Settles the market runs and gathers the result of a block. All other tips and fees were credited and burned with
/// each transaction.
pub(crate) fn run<'a, I: Inspector<EvmContext<'a>>>(
    mut execution: Execution<'a, '_, I>,
) -> Result<BlockOutput, BlockError> {
    market::settle(&mut execution)?;
    let Execution { machine, environment, transactions, mut receipts, .. } = execution;
    let (diff, damage) = machine.into_state().into_diff()?;
    if let (Some(damage), Some(prologue)) = (damage, receipts.first_mut()) {
        match damage {
            CalendarDamage::Mended(error) => prologue.logs.push(doors::contradiction_log(&error)),
            CalendarDamage::Unwritable(error) => {
                let held = Queue::TIMED.into_iter().filter(|queue| queue.door().is_some());
                let lanes = held.filter_map(Queue::lane);
                prologue.logs.extend(lanes.map(|lane| doors::pause_log(lane, &error)));
            }
        }
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
