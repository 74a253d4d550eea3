//! How many transactions of the next block come before one that is sent now. Ids of schedules follow from it.

use crate::{error, view::View};
use almanac_index::HistoricalState;
use almanac_primitives::{GasPrice, TimestampMs, params::Parameters};
use almanac_schedule::calendar::{Entry, Queue};
use jsonrpsee::core::RpcResult;

/// Most entries of a queue that are counted: a block runs no more of the smallest ones.
const COUNTED_MAX: usize = 1_000;

/// The runs that are due at `now`, and the transactions that wait, on a chain whose next block is known: a developer's.
/// Right where all of them fit that block, and none of those that wait pays less.
pub(super) fn count(
    view: &View,
    state: &HistoricalState,
    parameters: &Parameters,
    now: TimestampMs,
    base_fee: GasPrice,
) -> RpcResult<u32> {
    let Some(waiting) = &view.waiting else { return Ok(0) };
    let due = |queue: Queue, until: u64| -> RpcResult<Vec<Entry>> {
        if queue.is_held(parameters) {
            return Ok(Vec::new());
        }
        view.agenda.due_from(state, queue, until, None, COUNTED_MAX).map_err(error::internal)
    };
    let mut runs = due(Queue::Reserved, now.0)?.len() + due(Queue::Cron, now.0)?.len();
    // A scheduled transaction comes first where it bids more than the transaction pays, which is about the base fee.
    let cheapest = u64::MAX - u64::try_from(base_fee.0).unwrap_or(u64::MAX);
    let bids = due(Queue::Market, now.0)?.into_iter().chain(due(Queue::Waiting, cheapest)?);
    runs += bids.filter(|entry| u128::from(entry.bid()) > base_fee.0).count();
    Ok(u32::try_from(runs + waiting()).unwrap_or(u32::MAX))
}
