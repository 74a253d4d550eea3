//! The system contracts: native code behind an ABI, with Solidity's manners.
//!
//! A door is three things: its interface in `contracts/`, which `sol!` reads; its logic in a file here; and a
//! line in [`call`]. The framework ([`call::DoorCall`]) gives it journaled storage, logs, value and gas, so that
//! a revert anywhere undoes everything a door did, and keeps the rules that all doors share.

mod call;
mod developer;
mod ledger;
mod parameters;
#[cfg(test)]
mod probe;
mod storage;

pub(crate) use call::{DoorError, DoorOutcome};
pub(crate) use developer::IDeveloper;

use crate::{error::StateFault, machine::EvmContext, state::is_developer};
use alloy_primitives::Address;
use almanac_primitives::{
    addresses::{DEVELOPER_DOOR, LEDGER, PARAMETERS},
    params::Parameters,
};
use call::DoorCall;
use revm::interpreter::CallInputs;

/// Addresses that answer natively on every chain, beside Ethereum's precompiles.
#[cfg(not(test))]
pub(crate) const ADDRESSES: [Address; 2] = [PARAMETERS, LEDGER];
#[cfg(test)]
pub(crate) const ADDRESSES: [Address; 3] = [PARAMETERS, LEDGER, probe::ADDRESS];

/// Runs the door at the called address, or answers `None` where there is none.
pub(crate) fn call(
    context: &mut EvmContext<'_>,
    inputs: &CallInputs,
    parameters: &Parameters,
) -> Result<Option<DoorOutcome>, StateFault> {
    let door = match inputs.bytecode_address {
        PARAMETERS => parameters::call,
        LEDGER => ledger::call,
        DEVELOPER_DOOR if is_developer(context.journaled_state.database.parent())? => developer::call,
        #[cfg(test)]
        probe::ADDRESS => probe::call,
        _ => return Ok(None),
    };
    Ok(Some(DoorCall::run(context, inputs, parameters, door)))
}
