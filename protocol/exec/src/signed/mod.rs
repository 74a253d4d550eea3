//! Runs of the schedule service: directly after the transaction that brings the last signature, in its gas.
//!
//! ```text
//!   transaction    doors/signed  records a signature; the last one sets the run's gas aside and marks the schedule
//!   directly after `run_all`     debits the payer, makes the calls, settles
//!   prologue       `expire`      ends what waited too long
//!                  `take_up`     marks what waited for its second, which then runs in the reserved lane
//! ```

mod agreement;
mod calls;
mod expire;
mod keys;
mod payment;
mod run;
mod timed;

pub use agreement::{Agreement, Party, agreement};
pub(crate) use calls::CallsHandler;
pub(crate) use expire::expire;
pub(crate) use keys::{Keys, count, creator_agrees, is_in_force, load_parties};
pub(crate) use run::run_transaction;
pub(crate) use timed::take_up;

use crate::{block::Execution, error::BlockError, machine::EvmContext};
use almanac_primitives::ScheduleId;
use almanac_schedule::{
    GasPool,
    life::{Event, What},
    record::Door,
};
use revm::Inspector;
use std::collections::VecDeque;

/// The schedules that a transaction has triggered, in order.
pub(crate) fn triggers(events: &[Event]) -> VecDeque<ScheduleId> {
    let is_trigger =
        |event: &&Event| event.door == Some(Door::Signed) && matches!(event.what, What::Processed { .. });
    events.iter().filter(is_trigger).map(|event| event.id).collect()
}

/// Runs what a transaction has triggered, and directly after each run what that one has triggered. They use gas of the
/// pool of the transaction, which has set it aside.
pub(crate) fn run_all<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    mut triggered: VecDeque<ScheduleId>,
    pool: GasPool,
) -> Result<(), BlockError> {
    // Ends: each sets aside less gas than the one that triggers it has.
    while let Some(id) = triggered.pop_front() {
        let inner = run::run_one(execution, id, pool)?;
        inner.into_iter().rev().for_each(|id| triggered.push_front(id));
    }
    Ok(())
}
