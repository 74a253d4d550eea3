//! Closes a block: collects the state changes and the header's fields.

use crate::{
    block::Execution, doors, environment::Environment, error::BlockError, machine::EvmContext, market,
    output::BlockOutput, state::CalendarDamage,
};
use alloy_primitives::Bloom;
use almanac_primitives::{
    block::receipts_root,
    params::{NONCE_SWEEPS_BASE, NONCE_SWEEPS_PER_INSERT},
};
use almanac_schedule::{calendar::Queue, halved};
use revm::Inspector;

/// How many entries of the nonce history a block collects, with this many orderless transactions in it. What it does
/// for its own is bounded by their gas; the rest is mandatory work, which shrinks when views fail.
fn sweeps_max(environment: &Environment, inserts: u64) -> u64 {
    let base = halved(NONCE_SWEEPS_BASE, environment.consensus.failed_views(), 1);
    inserts.saturating_mul(NONCE_SWEEPS_PER_INSERT).saturating_add(base)
}

/// Settles the market runs and gathers the result of a block. All other tips and fees were credited and burned with
/// each transaction.
pub(crate) fn run<'a, I: Inspector<EvmContext<'a>>>(
    mut execution: Execution<'a, '_, I>,
) -> Result<BlockOutput, BlockError> {
    market::settle(&mut execution)?;
    let Execution { machine, environment, transactions, mut receipts, .. } = execution;
    let mut state = machine.into_state();
    state.sweep_nonces(environment.timestamp, sweeps_max(&environment, state.nonces_used()))?;
    let (diff, damage) = state.into_diff(environment.timestamp)?;
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
