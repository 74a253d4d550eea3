//! `almanac_runway`: how long the escrow of a schedule lasts.

use crate::{
    error,
    eth::fees::upcoming,
    types::{RpcScheduleId, RpcTime},
    view::View,
};
use alloy_primitives::{U64, U256};
use almanac_exec::environment::read_parameters;
use almanac_primitives::{ScheduleId, TimestampMs};
use almanac_schedule::Record;
use jsonrpsee::core::RpcResult;
use serde::Serialize;

/// How long a schedule continues at the base fee of the next block.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Runway {
    #[serde(flatten)]
    id: RpcScheduleId,
    block_number: U64,
    base_fee: U256,
    escrow: U256,
    /// What a run takes from the escrow when it begins.
    charge_per_run: U256,
    /// Runs that the escrow pays for, limited by the number of runs.
    runs: U64,
    /// What limits them: the escrow or the number of runs.
    limited_by: &'static str,
    /// Whether unused gas returns to the escrow, so that there may be more runs.
    is_least: bool,
    /// When the last of these runs is due; `null` if there is none.
    last_run: Option<RpcTime>,
    /// When the first run is due that the escrow does not pay for; `null` if there is none.
    runs_dry: Option<RpcTime>,
}

/// The runway of a schedule; zero runs if it has ended.
pub(super) fn runway(view: &View, id: ScheduleId) -> RpcResult<Runway> {
    let known = view.known_schedule(id)?;
    let (tip, state) = view.state(None)?;
    let parameters = read_parameters(&state).map_err(error::internal)?;
    let base_fee = upcoming(&tip, &state, &parameters, (view.next_time)())?.base_fee;
    let Some(record) = known.record.filter(|record| record.head.status.awaits_run()) else {
        let status = known.schedule.status();
        return Err(error::refused(format!("schedule {id} does not run any more: it is {status:?}")));
    };
    let runs = record.runway(base_fee);
    let is_money = record.runs_left().is_none_or(|left| left > runs);
    Ok(Runway {
        id: RpcScheduleId::new(id),
        block_number: U64::from(tip.number()),
        base_fee: U256::from(base_fee.0),
        escrow: record.escrow.0,
        charge_per_run: record.charge(base_fee).0,
        runs: U64::from(runs),
        limited_by: if is_money { "escrow" } else { "runs" },
        is_least: record.body.terms.returns_unused() && is_money,
        last_run: runs.checked_sub(1).and_then(|last| due_of(&record, last)).map(RpcTime::new),
        runs_dry: is_money.then(|| due_of(&record, runs)).flatten().map(RpcTime::new),
    })
}

/// When the run after `nth` others is due.
fn due_of(record: &Record, nth: u64) -> Option<TimestampMs> {
    let interval = record.body.terms.interval().map_or(0, |interval| interval.0);
    let later = interval.checked_mul(nth)?;
    record.head.due?.0.checked_add(later).map(TimestampMs)
}
