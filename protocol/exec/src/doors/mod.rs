//! The system contracts: native code behind an ABI, with Solidity's manners.
//!
//! A door is three things: its interface in `contracts/`, which `sol!` reads; its logic in a file here; and a
//! line in [`call`]. The framework ([`call::DoorCall`]) gives it journaled storage, logs, value and gas, so that
//! a revert anywhere undoes everything a door did, and keeps the rules that all doors share.
//!
//! Charge, then touch (decision 0017): a caller chooses the length of the input and the gas, and nothing keeps it
//! from choosing much of one and none of the other. No door works in proportion to anything before that is paid.

mod call;
mod cron;
mod developer;
mod escrow;
mod ledger;
mod parameters;
#[cfg(test)]
mod probe;
mod storage;

pub use ledger::fault_in;

pub(crate) use call::{DoorBlock, DoorError, DoorOutcome};
pub(crate) use developer::IDeveloper;

use crate::{error::StateFault, machine::EvmContext, place::Place};
use alloy_primitives::{Address, Log};
use almanac_primitives::{
    Lane,
    addresses::{CRON_REGISTRY, DEVELOPER_DOOR, LEDGER, PARAMETERS},
};
use almanac_schedule::{
    life::{Event, What},
    record::Door,
};
use call::DoorCall;
use revm::interpreter::CallInputs;
use std::fmt::Display;

/// Addresses that answer natively on every chain, beside Ethereum's precompiles.
#[cfg(not(test))]
pub(crate) const ADDRESSES: [Address; 2] = [PARAMETERS, LEDGER];
#[cfg(test)]
pub(crate) const ADDRESSES: [Address; 3] = [PARAMETERS, LEDGER, probe::ADDRESS];

/// Runs the door at the called address, or answers `None` where there is none.
pub(crate) fn call(
    context: &mut EvmContext<'_>,
    inputs: &CallInputs,
    block: &DoorBlock,
    place: Place,
) -> Result<Option<DoorOutcome>, StateFault> {
    let door = match inputs.bytecode_address {
        PARAMETERS => parameters::call,
        LEDGER => ledger::call,
        // Borrowed: a copy would cost more than what it decides, and nobody has paid for one.
        CRON_REGISTRY if cron::is_registry_call(&inputs.input.as_bytes(context)) => cron::call,
        DEVELOPER_DOOR if context.journaled_state.database.is_developer()? => developer::call,
        #[cfg(test)]
        probe::ADDRESS => probe::call,
        _ => return Ok(None),
    };
    Ok(Some(DoorCall::run(context, inputs, block, place, door)))
}

/// What is said of something that happened to a schedule: by its door, or by the chain itself where a fault of its own
/// put the schedule aside. `None` where the door's design has no words for it.
pub(crate) fn event_log(event: &Event) -> Option<Log> {
    match (&event.what, event.door) {
        (What::Quarantined { reason }, _) => Some(ledger::quarantine_log(event.id, reason)),
        (_, Some(Door::Cron)) => cron::event_log(event),
        (_, None) => None,
    }
}

/// What the chain says of changes that its calendar contradicts.
pub(crate) fn contradiction_log(reason: &dyn Display) -> Log {
    ledger::contradiction_log(reason)
}

/// What the chain says of a lane that it cannot read.
pub(crate) fn pause_log(lane: Lane, reason: &dyn Display) -> Log {
    ledger::pause_log(lane, reason)
}
