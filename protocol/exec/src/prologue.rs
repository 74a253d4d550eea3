//! The system transaction that opens a block: stores the parent's hash and selects what is due.

use crate::{
    block::{DueRuns, Execution},
    doors::{self, About},
    environment::{Environment, NEXT_BASE_FEE_SLOT, wanted_base_fee},
    error::{BlockError, StateFault},
    footprint::Footprint,
    machine::{EvmContext, Machine},
    output::Executed,
    select::{Selection, Walk, select},
    sweep,
};
use alloy_primitives::U256;
use almanac_primitives::{
    Gas, GasPrice, Outcome, PrologueTransaction, Receipt,
    addresses::{BLOCK_HASH_HISTORY, DEVELOPER_DOOR, LEDGER},
    params::BLOCK_HASH_HISTORY_LEN,
    run::PROLOGUE_TYPE,
};
use almanac_schedule::{
    Agenda,
    standstill::{self, STANDSTILL_SLOT},
};
use revm::Inspector;

/// Runs the prologue. Returns the runs of each lane that fit this block, and the walk that selected those of
/// the cron lane.
pub(crate) fn run<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    agenda: &dyn Agenda,
) -> Result<(DueRuns, Option<Walk>), BlockError> {
    let is_watched = execution.is_watched();
    let footprint = write(&mut execution.machine, &execution.environment, is_watched)?;
    let Selection { runs, events, mut logs, cron } = select(execution, agenda)?;
    sweep::run(execution, agenda)?;
    logs.extend(events.iter().flat_map(|event| doors::event_logs(event, &About::of(&Outcome::Success))));
    execution.tell(events);
    let environment = &execution.environment;
    let prologue = PrologueTransaction {
        number: environment.number,
        timestamp: environment.timestamp,
        parent_hash: environment.parent_hash,
    };
    let receipt = Receipt {
        transaction_type: PROLOGUE_TYPE,
        transaction_hash: prologue.hash(),
        outcome: Outcome::Success,
        gas_used: Gas::ZERO,
        cumulative_gas_used: execution.cumulative_gas,
        effective_gas_price: GasPrice(0),
        contract_address: None,
        failed_call: None,
        schedule_ref: None,
        logs,
    };
    execution.record(Executed::Prologue(prologue), receipt, footprint);
    Ok((runs, cron))
}

/// Makes the writes that every block begins with.
pub(crate) fn write<'a, I: Inspector<EvmContext<'a>>>(
    machine: &mut Machine<'a, I>,
    environment: &Environment,
    is_watched: bool,
) -> Result<Option<Box<Footprint>>, StateFault> {
    // Block 0 has no parent. Only a simulation can be in it.
    let Some(parent) = environment.number.checked_sub(1) else { return Ok(None) };
    // EIP-2935: contracts and BLOCKHASH read recent hashes from this account's storage.
    let slot = U256::from(parent % BLOCK_HASH_HISTORY_LEN);
    let mut slots = vec![(BLOCK_HASH_HISTORY, slot, environment.parent_hash.into())];
    // A base fee set by a developer is valid for one block, which is this one.
    if wanted_base_fee(machine.state().parent())?.is_some() {
        slots.push((DEVELOPER_DOOR, NEXT_BASE_FEE_SLOT, U256::ZERO));
    }
    if environment.is_held_until_new {
        slots.push((LEDGER, STANDSTILL_SLOT, standstill::to_word(environment.held_until)));
    }
    machine.write_slots(&slots, is_watched)
}
