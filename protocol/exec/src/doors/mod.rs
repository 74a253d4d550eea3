//! The system contracts: native code behind an ABI, with Solidity's manners.
//!
//! A door is three things: its interface in `contracts/`, which `sol!` reads; its translation in a file here, with a line
//! in [`TABLE`]; and its rules in `almanac-schedule`. The framework ([`call::DoorCall`]) gives it journaled storage, logs, value and gas, so that
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
use alloy_primitives::{Address, Bytes, Log};
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

/// A system contract.
struct SystemContract {
    address: Address,
    answers: Answers,
    /// Answers one call.
    call: for<'c, 'a> fn(&mut DoorCall<'c, 'a>) -> Result<Bytes, DoorError>,
    /// What it makes schedules with; `None` where it makes none.
    schedules: Option<Schedules>,
}

/// Which calls of its address a system contract answers.
#[derive(Clone, Copy)]
enum Answers {
    /// All of them.
    All,
    /// Those with such an input: somebody else has the address as well.
    Some(fn(&[u8]) -> bool),
    /// All of them, on a developer's chain; elsewhere it does not exist.
    OnDeveloperChains,
}

/// The door that leads to schedules.
struct Schedules {
    /// Its number, name and switches.
    door: Door,
    /// What it says of something that happened to one of its schedules.
    event_log: fn(&Event) -> Option<Log>,
}

/// All system contracts.
const TABLE: &[SystemContract] = &[
    SystemContract {
        address: CRON_REGISTRY,
        answers: Answers::Some(cron::is_registry_call),
        call: cron::call,
        schedules: Some(Schedules { door: Door::Cron, event_log: cron::event_log }),
    },
    SystemContract { address: PARAMETERS, answers: Answers::All, call: parameters::call, schedules: None },
    SystemContract { address: LEDGER, answers: Answers::All, call: ledger::call, schedules: None },
    SystemContract {
        address: DEVELOPER_DOOR,
        answers: Answers::OnDeveloperChains,
        call: developer::call,
        schedules: None,
    },
    #[cfg(test)]
    SystemContract { address: probe::ADDRESS, answers: Answers::All, call: probe::call, schedules: None },
];

/// The system contract at an address, if there is one.
fn contract_at(address: Address) -> Option<&'static SystemContract> {
    TABLE.iter().find(|contract| contract.address == address)
}

/// What leads to the schedules of a door.
fn schedules_of(door: Door) -> Option<&'static Schedules> {
    TABLE.iter().filter_map(|contract| contract.schedules.as_ref()).find(|schedules| schedules.door == door)
}

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
    let Some(contract) = contract_at(inputs.bytecode_address) else { return Ok(None) };
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
    (schedules_of(event.door?)?.event_log)(event)
}

/// What the chain says of changes that its calendar contradicts.
pub(crate) fn contradiction_log(reason: &dyn Display) -> Log {
    ledger::contradiction_log(reason)
}

/// What the chain says of a lane that it cannot read.
pub(crate) fn pause_log(lane: Lane, reason: &dyn Display) -> Log {
    ledger::pause_log(lane, reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_door_has_its_line_and_every_line_its_address() {
        for door in Door::ALL {
            let lines = TABLE.iter().filter_map(|contract| contract.schedules.as_ref());
            assert_eq!(lines.filter(|schedules| schedules.door == door).count(), 1, "{}", door.name());
        }
        let addresses: BTreeSet<_> = TABLE.iter().map(|contract| contract.address).collect();
        assert_eq!(addresses.len(), TABLE.len());
    }
}
