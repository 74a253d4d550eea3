//! Removes the records of schedules that ended some time ago.
//!
//! Some doors keep ended schedules readable for a number of blocks. A block removes those that are due for
//! removal, oldest first, up to a bound; the rest wait for the next block. The work was paid for when the
//! schedule was created.

use crate::{
    block::Execution,
    error::{BlockError, StateFault},
    machine::EvmContext,
};
use almanac_primitives::params::{BLOCK_SWEEPS_MAX, SIGNED_SWEPT_SLOTS_MAX};
use almanac_schedule::{
    Agenda,
    calendar::{CalendarError, Queue},
    halved, life,
    record::Record,
};
use revm::Inspector;

/// Records that are fetched at a time.
const ANNOUNCED_RECORDS: usize = 64;

/// Removes the records that are due for removal at this block's number.
pub(crate) fn run<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    agenda: &dyn Agenda,
) -> Result<(), BlockError> {
    let (parent, number) = (execution.machine.state().parent(), execution.environment.number);
    // Mandatory work like runs: a proposer cannot leave it out, so it shrinks when views fail.
    let sweeps_max = halved(BLOCK_SWEEPS_MAX, execution.environment.consensus.failed_views(), 1);
    let count_max = usize::try_from(sweeps_max).unwrap_or(usize::MAX);
    let over = match agenda.due_from(parent, Queue::Kept, number, None, count_max) {
        Ok(over) => over,
        Err(CalendarError::Read(error)) => return Err(StateFault::Read(error).into()),
        // Selection pauses the lanes for this; removal can wait.
        Err(_) => return Ok(()),
    };
    let mut slots_left = halved(SIGNED_SWEPT_SLOTS_MAX, execution.environment.consensus.failed_views(), 1);
    for entries in over.chunks(ANNOUNCED_RECORDS) {
        let keys: Vec<_> = entries.iter().flat_map(|entry| Record::keys(entry.schedule)).collect();
        parent.announce(&keys);
        for entry in entries {
            match execution.act::<_, BlockError>(|ledger| Ok(life::sweep(ledger, *entry)?))? {
                Some(slots) => slots_left = slots_left.saturating_sub(slots),
                // A fault of our own: calendar and record disagree, and the record is authoritative.
                None => execution.machine.state().drop_stray(*entry),
            }
            // Some hold many signatures. The others wait for the next block.
            if slots_left == 0 {
                return Ok(());
            }
        }
    }
    Ok(())
}
