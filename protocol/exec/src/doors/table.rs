//! The system contracts, a line each.

#[cfg(test)]
use super::probe;
use super::{
    call::{DoorCall, DoorError},
    cron, developer, ledger, parameters,
};
use alloy_primitives::{Address, Bytes, Log};
use almanac_primitives::addresses::{CRON_REGISTRY, DEVELOPER_DOOR, LEDGER, PARAMETERS};
use almanac_schedule::{life::Event, record::Door};

/// A system contract.
pub(super) struct SystemContract {
    pub(super) address: Address,
    pub(super) answers: Answers,
    /// Answers one call.
    pub(super) call: for<'c, 'a> fn(&mut DoorCall<'c, 'a>) -> Result<Bytes, DoorError>,
    /// What it makes schedules with; `None` where it makes none.
    pub(super) schedules: Option<Schedules>,
}

/// Which calls of its address a system contract answers.
#[derive(Clone, Copy)]
pub(super) enum Answers {
    /// All of them.
    All,
    /// Those with such an input: somebody else has the address as well.
    Some(fn(&[u8]) -> bool),
    /// All of them, on a developer's chain; elsewhere it does not exist.
    OnDeveloperChains,
}

/// The door that leads to schedules.
pub(super) struct Schedules {
    /// Its number, name and switches.
    pub(super) door: Door,
    /// What it says of something that happened to one of its schedules.
    pub(super) event_log: fn(&Event) -> Option<Log>,
}

/// All system contracts.
pub(super) const TABLE: &[SystemContract] = &[
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
pub(super) fn at(address: Address) -> Option<&'static SystemContract> {
    TABLE.iter().find(|contract| contract.address == address)
}

/// What leads to the schedules of a door.
pub(super) fn of(door: Door) -> Option<&'static Schedules> {
    TABLE.iter().filter_map(|contract| contract.schedules.as_ref()).find(|schedules| schedules.door == door)
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
