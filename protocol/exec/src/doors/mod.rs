//! The system contracts: native code behind an ABI, with Solidity's manners.
//!
//! A door is three things: its interface in `contracts/`, which `sol!` reads; its translation in a file here, with a line
//! in [`table`]; and its rules in `almanac-schedule`. The framework ([`call::DoorCall`]) gives it journaled storage, logs, value and gas, so that
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
mod table;

pub use ledger::fault_in;

pub(crate) use call::{DoorBlock, DoorError, DoorOutcome};
pub(crate) use developer::IDeveloper;

use crate::{error::StateFault, machine::EvmContext, place::Place};
use alloy_primitives::{Address, Log};
use almanac_primitives::Lane;
use almanac_schedule::life::{Event, What};
use call::DoorCall;
use revm::interpreter::CallInputs;
use std::fmt::Display;
use table::{Answers, TABLE};

/// Addresses that answer every call natively on every chain, beside Ethereum's precompiles.
pub(crate) fn addresses() -> impl Iterator<Item = Address> {
    let always = TABLE.iter().filter(|contract| matches!(contract.answers, Answers::All));
    always.map(|contract| contract.address)
}

/// Runs the system contract at the called address, or answers `None` where there is none.
pub(crate) fn call(
    context: &mut EvmContext<'_>,
    inputs: &CallInputs,
    block: &DoorBlock,
    place: Place,
) -> Result<Option<DoorOutcome>, StateFault> {
    let Some(contract) = table::at(inputs.bytecode_address) else { return Ok(None) };
    let is_called = match contract.answers {
        Answers::All => true,
        // Borrowed: a copy would cost more than what it decides, and nobody has paid for one.
        Answers::Some(is_called) => is_called(&inputs.input.as_bytes(context)),
        Answers::OnDeveloperChains => context.journaled_state.database.is_developer()?,
    };
    Ok(is_called.then(|| DoorCall::run(context, inputs, block, place, contract.call)))
}

/// What is said of something that happened to a schedule: by its door, or by the chain itself where a fault of its own
/// put the schedule aside. `None` where the door's design has no words for it.
pub(crate) fn event_log(event: &Event) -> Option<Log> {
    if let What::Quarantined { reason } = &event.what {
        return Some(ledger::quarantine_log(event.id, reason));
    }
    (table::of(event.door?)?.event_log)(event)
}

/// What the chain says of changes that its calendar contradicts.
pub(crate) fn contradiction_log(reason: &dyn Display) -> Log {
    ledger::contradiction_log(reason)
}

/// What the chain says of a lane that it cannot read.
pub(crate) fn pause_log(lane: Lane, reason: &dyn Display) -> Log {
    ledger::pause_log(lane, reason)
}
