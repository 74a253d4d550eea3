//! Takes a schedule out of the calendar because of a fault of our own.

use crate::{
    block::Execution,
    error::BlockError,
    ledger::{ScheduleFault, SystemLedger},
    machine::EvmContext,
};
use almanac_primitives::{ScheduleId, Wei};
use almanac_schedule::life::{self, Event, What};
use revm::Inspector;
use std::fmt::Display;

/// Quarantines a schedule. Returns the event that tells why.
///
/// `give_back` returns what its run did not use to where it came from, and how much of it belongs in the escrow. If that
/// meets a fault too, only the charge returns, to the escrow.
pub(crate) fn quarantine<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    id: ScheduleId,
    charge: Wei,
    reason: &dyn Display,
    give_back: impl FnOnce(&mut SystemLedger<'_, 'a>) -> Result<Wei, ScheduleFault>,
) -> Result<Event, BlockError> {
    let returned = execution.act::<_, ScheduleFault>(|ledger| {
        let escrowed = give_back(ledger)?;
        Ok(life::quarantine(ledger, id, escrowed)?)
    });
    let mut reason = reason.to_string();
    if let Err(fault) = returned {
        reason = format!("{reason}; only its charge was returned: {}", fault.reason()?);
        execution.act::<_, BlockError>(|ledger| Ok(life::quarantine(ledger, id, charge)?))?;
    }
    Ok(Event { id, door: None, what: What::Quarantined { reason } })
}
