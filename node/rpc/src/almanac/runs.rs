//! `almanac_getRuns`: the past runs of a schedule.

use super::params::{self, DirectionName};
use crate::{
    answer::{Answer, Room},
    error,
    reading::Reading,
    revert,
    types::{Number, RpcReceipt, RpcScheduleId, RpcTime},
    view::View,
};
use alloy_primitives::{U64, U256};
use almanac_index::{Direction, Location, PastRun};
use almanac_primitives::{Outcome, ScheduleId};
use jsonrpsee::core::RpcResult;
use serde::{Deserialize, Serialize};

/// Advice in errors about answers that are too large.
const SMALLER: &str = "ask for a smaller limit";

/// Which runs a client requests.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Wanted {
    /// What the page before answered, to continue.
    cursor: Option<String>,
    /// Length of the page, 1 to 100; by default 20.
    limit: Option<Number>,
    /// By default the oldest first.
    order: Option<DirectionName>,
}

/// A page of the runs of a schedule.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RunsPage {
    #[serde(flatten)]
    id: RpcScheduleId,
    runs: Vec<Answer<RpcRun>>,
    cursor: Option<String>,
}

/// A run and its outcome.
#[derive(Clone, Debug, Serialize)]
struct RpcRun {
    run: U64,
    time: RpcTime,
    success: bool,
    /// Why it failed, as text.
    error: Option<String>,
    /// What it cost its schedule.
    fee: U256,
    receipt: RpcReceipt,
}

/// A page of the runs of a schedule.
pub(super) fn page(view: &View, id: ScheduleId, wanted: &Wanted) -> RpcResult<RunsPage> {
    view.known_schedule(id)?;
    let limit = params::limit(wanted.limit)?;
    let cursor = wanted.cursor.as_deref().map(read_cursor).transpose()?;
    let (first, last) = (Location::first_of(0), Location::last_of(u64::MAX));
    let order = Direction::from(wanted.order.unwrap_or_default());
    let range = match order {
        Direction::Ascending => cursor.map_or(first, after)..=last,
        Direction::Descending => first..=cursor.map_or(last, before),
    };
    // Find one more than is returned, to know whether there is a next page.
    let mut found = view.index.runs_of(id, &range, order, limit + 1).map_err(error::internal)?;
    let has_more = found.len() > limit;
    found.truncate(limit);
    let cursor = found
        .last()
        .filter(|_| has_more)
        .map(|run| format!("{}-{}", run.location.number, run.location.index));
    let (mut room, mut reading) = (Room::new(SMALLER), Reading::new(SMALLER));
    let shown = found.into_iter().map(|past| room.write(&run(view, past, &mut reading)?));
    let runs = shown.collect::<RpcResult<_>>()?;
    Ok(RunsPage { id: RpcScheduleId::new(id), runs, cursor })
}

fn read_cursor(text: &str) -> RpcResult<Location> {
    let parts =
        text.split_once('-').and_then(|(number, index)| Some((number.parse().ok()?, index.parse().ok()?)));
    let (number, index) = parts.ok_or_else(|| {
        error::invalid(format!("{text:?} is no cursor: give the one that the page before ended with"))
    })?;
    Ok(Location { number, index })
}

fn after(Location { number, index }: Location) -> Location {
    Location { number, index: index.saturating_add(1) }
}

/// Saturates at index 0, where the prologue is and no run can be.
fn before(Location { number, index }: Location) -> Location {
    Location { number, index: index.saturating_sub(1) }
}

fn run(view: &View, past: PastRun, reading: &mut Reading) -> RpcResult<RpcRun> {
    let location = past.location;
    let block = view.block(Some(location.number.into()))?;
    reading.count(&block)?;
    let missing = || error::internal(format!("there is no run at {location:?}"));
    let receipt = block.receipts.get(location.index).ok_or_else(missing)?;
    Ok(RpcRun {
        run: U64::from(receipt.schedule_ref.ok_or_else(missing)?.number),
        time: RpcTime::new(block.block.header.timestamp),
        success: receipt.outcome.is_success(),
        error: failure(&receipt.outcome),
        fee: past.fee.0,
        receipt: RpcReceipt::new(&block, location.index).ok_or_else(missing)?,
    })
}

/// Why a run failed, as text.
pub(super) fn failure(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Success => None,
        Outcome::Reverted(data) => Some(format!("execution reverted: {}", revert::explain(data))),
        Outcome::Halted(halt) => Some(format!("execution stopped: {halt:?}")),
    }
}
