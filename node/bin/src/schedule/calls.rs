//! Calls of the doors, by their interfaces.

use alloy_primitives::{Address, B256, TxHash};
use alloy_sol_types::SolEvent as _;
use almanac_primitives::{
    ScheduleId,
    addresses::{CALLBACKS as CALLBACK_DOOR, CRON_REGISTRY, SCHEDULED_TRANSACTIONS},
};
use clap::ValueEnum;
use serde_json::Value;

alloy_sol_types::sol!("../../contracts/ICronRegistry.sol");
alloy_sol_types::sol!("../../contracts/ICallbackScheduler.sol");
alloy_sol_types::sol!("../../contracts/ICallbackHandler.sol");
alloy_sol_types::sol!("../../contracts/IScheduledTransactions.sol");
alloy_sol_types::sol!("../../contracts/IScheduleService.sol");
alloy_sol_types::sol!("../../contracts/IAccounts.sol");

/// Doors by the names that the `almanac_` methods use.
pub(crate) const CRON: &str = "cron";
pub(crate) const CALLBACKS: &str = "callback";
pub(crate) const MARKET: &str = "market";

/// Through which door a schedule is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DoorName {
    /// ARC-21: once or every interval, paid from an escrow.
    Cron,
    /// FLIP-330: booked room in a second, paid in advance.
    Callback,
    /// AIP-125: in your own name, with value, competing by price.
    Market,
}

impl DoorName {
    pub(super) fn address(self) -> Address {
        match self {
            Self::Cron => CRON_REGISTRY,
            Self::Callback => CALLBACK_DOOR,
            Self::Market => SCHEDULED_TRANSACTIONS,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cron => CRON,
            Self::Callback => CALLBACKS,
            Self::Market => MARKET,
        }
    }

    /// The event of a new schedule; its first topic after the signature is the id.
    fn created(self) -> B256 {
        match self {
            Self::Cron => ICronRegistry::JobScheduled::SIGNATURE_HASH,
            Self::Callback => ICallbackScheduler::CallbackScheduled::SIGNATURE_HASH,
            Self::Market => IScheduledTransactions::TransactionScheduledEvent::SIGNATURE_HASH,
        }
    }

    /// The ids of the schedules that a transaction made.
    pub(super) fn ids(self, receipt: &Value) -> Vec<ScheduleId> {
        made(receipt, self.address(), self.created())
    }
}

/// The ids in the events of a door: the first topic after the signature.
pub(super) fn made(receipt: &Value, door: Address, event: B256) -> Vec<ScheduleId> {
    let word = |value: &Value| value.as_str().and_then(|text| text.parse::<B256>().ok());
    let logs = receipt["logs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of_door = logs.iter().filter(|log| {
        log["address"].as_str().and_then(|text| text.parse::<Address>().ok()) == Some(door)
            && word(&log["topics"][0]) == Some(event)
    });
    of_door.filter_map(|log| log["topics"][1].as_str()?.parse().ok()).collect()
}

/// The hash of the transaction that a receipt is of.
pub(super) fn hash(receipt: &Value) -> Option<TxHash> {
    receipt["transactionHash"].as_str()?.parse().ok()
}
