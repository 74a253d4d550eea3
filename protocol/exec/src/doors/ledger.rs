//! The ledger account, which holds escrows and records. Nobody can call it.

use super::call::{DoorCall, DoorError, IDoor, revert};
use alloy_primitives::{Bytes, Log, U256};
use alloy_sol_types::{SolEvent, SolEventInterface as _};
use almanac_primitives::{Lane, ScheduleId, addresses::LEDGER};
use almanac_schedule::{
    decide::End,
    life::{Event, What},
    record::Door,
};
use std::fmt::Display;

alloy_sol_types::sol!("../../contracts/ILedger.sol");

/// Rejects every call, including plain transfers: money enters the ledger only through a door.
pub(super) fn call(_: &mut DoorCall<'_, '_>) -> Result<Bytes, DoorError> {
    Err(revert(IDoor::LedgerAnswersNoCall {}))
}

/// The log of a schedule that was quarantined.
pub(super) fn quarantine_log(id: ScheduleId, reason: &str) -> Log {
    let event = ILedger::ScheduleQuarantined { id: U256::from(id.0), reason: reason.to_owned() };
    Log { address: LEDGER, data: event.encode_log_data() }
}

/// The log of what the end of a job returned. ARC-21's own events are fixed, and only `JobCancelled` has the amount;
/// the other doors' events name theirs.
pub(super) fn refund_log(event: &Event) -> Option<Log> {
    let What::Ended { end, refunded, .. } = event.what else { return None };
    let is_told = event.door != Some(Door::Cron) || end == End::Cancelled;
    let told = ILedger::ScheduleRefunded { id: U256::from(event.id.0), amount: refunded.0 };
    (!is_told && !refunded.0.is_zero()).then(|| Log { address: LEDGER, data: told.encode_log_data() })
}

/// The log of changes that contradicted the calendar.
pub(super) fn contradiction_log(reason: &dyn Display) -> Log {
    let event = ILedger::CalendarContradicted { reason: reason.to_string() };
    Log { address: LEDGER, data: event.encode_log_data() }
}

/// The log of a lane that was paused.
pub(super) fn pause_log(lane: Lane, reason: &dyn Display) -> Log {
    let event = ILedger::LanePaused { lane: lane as u8, reason: reason.to_string() };
    Log { address: LEDGER, data: event.encode_log_data() }
}

/// Describes the chain's own fault that a log reports, if it reports one.
pub fn fault_in(log: &Log) -> Option<String> {
    use ILedger::ILedgerEvents as Told;
    if log.address != LEDGER {
        return None;
    }
    Some(match Told::decode_raw_log(log.topics(), &log.data.data).ok()? {
        Told::ScheduleQuarantined(told) => {
            format!("schedule {} was put aside: {}", ScheduleId(told.id.saturating_to()), told.reason)
        }
        Told::LanePaused(told) => format!("lane {} is paused: {}", told.lane, told.reason),
        Told::CalendarContradicted(told) => format!("the calendar was contradicted: {}", told.reason),
        Told::ScheduleRefunded(_) => return None,
    })
}
