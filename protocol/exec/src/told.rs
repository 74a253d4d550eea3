//! Schedule events that doors report inside a transaction. A revert discards them.
//!
//! The events are in a list, each with the index of the previous one; the journal holds the index of the last.
//! A revert restores that index, and so discards the events of the failed frame and no others.

use alloy_primitives::U256;
use almanac_primitives::addresses::LEDGER;
use almanac_schedule::life::Event;
use revm::{
    context::{ContextTr, JournalTr},
    state::EvmState,
};

use crate::{error::StateFault, machine::EvmContext};

/// Slot of the ledger that holds the number of the last event during a transaction. It never reaches the state.
const LAST_SLOT: U256 = U256::from_limbs([0, 0, 4, 0]);

/// The events of one transaction.
#[derive(Debug, Default)]
pub(crate) struct Told(Vec<(Event, usize)>);

/// Adds an event of a schedule.
pub(crate) fn tell(context: &mut EvmContext<'_>, event: Event) -> Result<(), StateFault> {
    let journal = context.journal_mut();
    journal.load_account(LEDGER)?;
    let before = usize::try_from(journal.sload(LEDGER, LAST_SLOT)?.data).expect("a number of the list");
    journal.database.told.0.push((event, before));
    let last = U256::from(journal.database.told.0.len());
    journal.sstore(LEDGER, LAST_SLOT, last)?;
    Ok(())
}

impl Told {
    /// Takes the events that were not reverted, in order, and removes the number slot from the changes.
    pub(crate) fn take(&mut self, changes: &mut EvmState) -> Vec<Event> {
        let slot = changes.get_mut(&LEDGER).and_then(|ledger| ledger.storage.remove(&LAST_SLOT));
        let mut told: Vec<_> = std::mem::take(&mut self.0).into_iter().map(Some).collect();
        let mut last = slot.map_or(0, |slot| usize::try_from(slot.present_value()).unwrap_or(0));
        let mut events = Vec::new();
        while let Some((event, before)) = last.checked_sub(1).and_then(|at| told.get_mut(at)?.take()) {
            events.push(event);
            last = before;
        }
        events.reverse();
        events
    }
}
