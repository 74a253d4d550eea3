//! Ends schedules whose signatures did not come in time (HEDERA-17).

use crate::{
    block::Execution,
    ledger::ScheduleFault,
    machine::EvmContext,
    select::{ANNOUNCED_SCHEDULES, Selection, WalkError, announce, put_aside, read},
};
use almanac_primitives::Lane;
use almanac_schedule::{Agenda, Record, calendar::Queue, decide::End, life, looks_max};
use revm::Inspector;

/// Ends the oldest that have expired, a bounded number in each block. Signing judges by the time, so one that is still
/// to be ended cannot be signed either.
pub(crate) fn expire<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    agenda: &dyn Agenda,
    selection: &mut Selection,
) -> Result<(), WalkError> {
    let (parent, now) = (execution.machine.state().parent(), execution.environment.timestamp);
    let failed_views = execution.environment.consensus.failed_views();
    // Mandatory work like runs: a proposer cannot leave it out, so it shrinks when views fail.
    let most = looks_max(Lane::Signed, &execution.environment.parameters, failed_views, 1);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let over = agenda.due_from(parent, Queue::Signing, now.0, None, most).map_err(WalkError::Calendar)?;
    for entries in over.chunks(ANNOUNCED_SCHEDULES) {
        announce(execution, entries, |entry| Record::keys(entry.schedule));
        for entry in entries {
            let moment = execution.moment();
            let ended = execution.act(|ledger| {
                let record = read(ledger, *entry)?;
                Ok(life::end_without_run(ledger, &record, End::Expired, moment)?)
            });
            selection.events.push(match ended {
                Ok(event) => event,
                Err(ScheduleFault::Block(error)) => return Err(error.into()),
                Err(ScheduleFault::Broken(broken)) => put_aside(execution, *entry, &broken)?,
            });
        }
    }
    Ok(())
}
