//! Takes a schedule out of the calendar because of a fault of our own.

use crate::{
    block::Execution,
    error::{BlockError, StateFault},
    ledger::{ScheduleFault, SystemLedger},
    machine::EvmContext,
};
use alloy_primitives::Address;
use almanac_primitives::{ScheduleId, Wei};
use almanac_schedule::{
    Ledger as _,
    life::{self, Begun, Event, What},
};
use revm::Inspector;
use std::fmt::Display;

/// What was charged for a run, and who gets it where the run has removed its own schedule.
#[derive(Clone, Copy)]
pub(crate) struct Charge {
    pub(crate) amount: Wei,
    pub(crate) refund_to: Address,
}

impl Charge {
    /// Nothing was charged.
    pub(crate) const NONE: Self = Self { amount: Wei::ZERO, refund_to: Address::ZERO };

    pub(crate) fn of(begun: Option<&Begun>) -> Self {
        begun.map_or(Self::NONE, |begun| Self::with(begun.charge, begun))
    }

    pub(crate) fn with(amount: Wei, begun: &Begun) -> Self {
        Self { amount, refund_to: begun.record.body.refund_to }
    }
}

/// Quarantines a schedule. Returns the event that tells why.
///
/// `give_back` returns what its run did not use to where it came from, and how much of it belongs in the escrow. If that
/// meets a fault too, only the charge returns, to the escrow.
pub(crate) fn quarantine<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    id: ScheduleId,
    charge: Charge,
    reason: &dyn Display,
    give_back: impl FnOnce(&mut SystemLedger<'_, 'a>) -> Result<Wei, ScheduleFault>,
) -> Result<Event, BlockError> {
    let returned = execution.act::<_, ScheduleFault>(|ledger| {
        let escrowed = give_back(ledger)?;
        Ok(keep(ledger, id, Charge { amount: escrowed, ..charge })?)
    });
    let mut reason = reason.to_string();
    if let Err(fault) = returned {
        reason = format!("{reason}; only its charge was returned: {}", fault.reason()?);
        execution.act::<_, BlockError>(|ledger| Ok(keep(ledger, id, charge)?))?;
    }
    Ok(Event { id, door: None, what: What::Quarantined { reason } })
}

/// Puts a schedule aside and money into its escrow. Where a run has removed its own schedule, there is none.
fn keep(ledger: &mut SystemLedger<'_, '_>, id: ScheduleId, held: Charge) -> Result<(), StateFault> {
    if !life::quarantine(ledger, id, held.amount)? && held.amount > Wei::ZERO {
        ledger.credit(held.refund_to, held.amount)?;
    }
    Ok(())
}
