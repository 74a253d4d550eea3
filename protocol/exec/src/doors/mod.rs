//! The system contracts: native code behind an ABI, which behaves like Solidity code.
//!
//! A door consists of its interface in `contracts/`, which `sol!` reads; its translation in a file here, with a
//! line in [`TABLE`]; and its rules in `almanac-schedule`. The framework ([`call::DoorCall`]) provides
//! journaled storage, logs, value and gas, so that a revert anywhere undoes everything a door did. It also
//! enforces the rules that all doors share.
//!
//! Charge before work (decision 0017): a caller may combine a long input with almost no gas. No door does work
//! proportional to anything before it is paid for.

mod accounts;
mod call;
mod callbacks;
mod cron;
mod developer;
mod escrow;
mod ledger;
mod market;
mod parameters;
#[cfg(test)]
mod probe;
mod schedules;
mod signed;
mod storage;

pub use ledger::fault_in;

pub(crate) use call::{DoorBlock, DoorError, DoorOutcome};
pub(crate) use developer::IDeveloper;
pub(crate) use signed::transaction_body;

use crate::{error::StateFault, machine::EvmContext, place::Position};
use alloy_primitives::{Address, Bytes, Log};
use almanac_primitives::{
    GasPrice, Lane, Outcome, Wei,
    addresses::{
        ACCOUNTS, CALLBACKS, CRON_REGISTRY, DEVELOPER_DOOR, HIP1215_SERVICE, LEDGER, PARAMETERS,
        SCHEDULE_SERVICE, SCHEDULED_TRANSACTIONS, may_be_system,
    },
};
use almanac_schedule::{
    life::{Event, What},
    record::{Door, Record},
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
    /// The door whose schedules it creates, if it creates any.
    schedules: Option<Schedules>,
}

/// Which calls to its address a system contract handles.
#[derive(Clone, Copy)]
enum Answers {
    /// All of them.
    All,
    /// Those with a matching input: a precompile shares the address.
    Some(fn(&[u8]) -> bool),
    /// All of them on a developer chain; elsewhere it does not exist.
    OnDeveloperChains,
}

/// A door that creates schedules.
struct Schedules {
    /// Its number, name and switches.
    door: Door,
    /// Translates an event of one of its schedules into its log.
    event_log: fn(&Event, &About<'_>) -> Option<Log>,
}

/// What a log says beyond its event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'r> {
    /// The outcome of the run.
    pub(crate) outcome: &'r Outcome,
    /// The schedule, for doors whose logs name it by more than its id.
    pub(crate) record: Option<&'r Record>,
    /// What a run paid per gas.
    pub(crate) price: GasPrice,
    /// What of its deposit returned.
    pub(crate) refunded: Wei,
}

impl<'r> About<'r> {
    /// Nothing but an outcome.
    pub(crate) fn of(outcome: &'r Outcome) -> Self {
        Self { outcome, record: None, price: GasPrice(0), refunded: Wei::ZERO }
    }
}

/// All system contracts.
const TABLE: &[SystemContract] = &[
    SystemContract {
        address: CRON_REGISTRY,
        answers: Answers::Some(cron::is_registry_call),
        call: cron::call,
        schedules: Some(Schedules { door: Door::Cron, event_log: cron::event_log }),
    },
    SystemContract {
        address: CALLBACKS,
        answers: Answers::All,
        call: callbacks::call,
        schedules: Some(Schedules { door: Door::Callback, event_log: callbacks::event_log }),
    },
    SystemContract {
        address: SCHEDULED_TRANSACTIONS,
        answers: Answers::All,
        call: market::call,
        schedules: Some(Schedules { door: Door::Market, event_log: market::event_log }),
    },
    SystemContract {
        address: SCHEDULE_SERVICE,
        answers: Answers::All,
        call: signed::call,
        schedules: Some(Schedules { door: Door::Signed, event_log: signed::event_log }),
    },
    SystemContract {
        address: HIP1215_SERVICE,
        answers: Answers::All,
        call: signed::call_hip1215,
        schedules: None,
    },
    SystemContract { address: ACCOUNTS, answers: Answers::All, call: accounts::call, schedules: None },
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
    if !may_be_system(address) {
        return None;
    }
    TABLE.iter().find(|contract| contract.address == address)
}

/// The table entry of a door.
fn schedules_of(door: Door) -> Option<&'static Schedules> {
    TABLE.iter().filter_map(|contract| contract.schedules.as_ref()).find(|schedules| schedules.door == door)
}

/// Addresses that handle every call natively on every chain, in addition to Ethereum's precompiles.
pub(crate) fn addresses() -> impl Iterator<Item = Address> {
    let always = TABLE.iter().filter(|contract| matches!(contract.answers, Answers::All));
    always.map(|contract| contract.address)
}

/// Runs the system contract at the called address, or returns `None` if there is none.
pub(crate) fn call(
    context: &mut EvmContext<'_>,
    inputs: &CallInputs,
    block: &DoorBlock,
    position: Position,
) -> Result<Option<DoorOutcome>, StateFault> {
    let Some(contract) = contract_at(inputs.bytecode_address) else {
        // HIP-1215's facades answer at the addresses of schedules.
        let is_facade = signed::may_be_schedule(inputs.bytecode_address)
            && signed::is_facade_call(&inputs.input.as_bytes(context));
        return Ok(is_facade.then(|| DoorCall::run(context, inputs, block, position, signed::call_facade)));
    };
    let is_called = match contract.answers {
        Answers::All => true,
        // Borrow the input: nobody has paid for a copy yet.
        Answers::Some(is_called) => is_called(&inputs.input.as_bytes(context)),
        Answers::OnDeveloperChains => context.journaled_state.database.is_developer()?,
    };
    Ok(is_called.then(|| DoorCall::run(context, inputs, block, position, contract.call)))
}

/// The logs of an event: its door's, if its interface has one, and the ledger's, of a fault that quarantined the
/// schedule and of a refund that the door's log does not name.
pub(crate) fn event_logs(event: &Event, about: &About<'_>) -> impl Iterator<Item = Log> + use<> {
    let of_ledger = match &event.what {
        What::Quarantined { reason } => Some(ledger::quarantine_log(event.id, reason)),
        _ => ledger::refund_log(event),
    };
    let is_quarantine = matches!(event.what, What::Quarantined { .. });
    let door = event.door.filter(|_| !is_quarantine).and_then(schedules_of);
    let of_door = door.and_then(|schedules| (schedules.event_log)(event, about));
    of_door.into_iter().chain(of_ledger)
}

/// The log of a shutdown of the market door that begins or is complete.
pub(crate) fn shutdown_log(complete: bool) -> Log {
    market::shutdown_log(complete)
}

/// The log of changes that contradicted the calendar.
pub(crate) fn contradiction_log(reason: &dyn Display) -> Log {
    ledger::contradiction_log(reason)
}

/// The log of a lane that cannot be read and was paused.
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
