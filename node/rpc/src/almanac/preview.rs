//! `almanac_preview`: simulates the next runs of a schedule by building the blocks that would contain them.
//!
//! Each block goes through the real state transition, on the state after the previous one, with only this
//! schedule due. The base fee stays at the next block's, since later ones are unknown.
//!
//! [`order`](super::order) previews what is not booked yet.

use super::{one_schedule::OneSchedule, params::StatusName, runs::failure};
use crate::{
    answer::{Answer, Room},
    bounds::{PREVIEW_RUNS_MAX, PREVIEW_TIME_MAX},
    error,
    eth::{fees::upcoming, overlay::Overlay},
    types::{Number, RpcScheduleId, RpcTime},
    view::View,
};
use alloy_primitives::{Address, U64, U256};
use almanac_exec::{BlockBody, BlockInput, BlockOutput, environment::read_parameters, execute};
use almanac_index::{HistoricalState, KnownSchedule, ScheduleStatus};
use almanac_primitives::{
    Gas, GasPrice, Header, Receipt, ScheduleId, TimestampMs, Wei,
    params::{GAS_TARGET_DIVISOR, Parameters},
};
use almanac_schedule::{
    Record,
    decide::{End, Moment, RunEnd},
    is_held,
    life::What,
    record::Status,
};
use jsonrpsee::core::RpcResult;
use serde::Serialize;
use serde_json::Value;
use std::time::Instant;

/// The simulated next runs of a schedule.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Preview {
    #[serde(flatten)]
    id: Option<RpcScheduleId>,
    /// The transaction that would book it, if it is not booked yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<PreviewedOrder>,
    /// The block whose state it starts from.
    block_number: U64,
    base_fee: U256,
    runs: Vec<Answer<PreviewedRun>>,
    /// Whether the escrow pays for all of these runs.
    escrow_suffices: bool,
    /// What would end the schedule within these runs, or what has ended it already.
    end: Option<PreviewedEnd>,
    /// Why there are fewer runs than requested, unless the schedule ends.
    waits: Option<String>,
}

/// A transaction that would book a schedule.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PreviewedOrder {
    pub(super) gas_used: U64,
    /// What the schedule would hold: a fee, or an escrow.
    pub(super) costs: Option<U256>,
    /// The time that it would get.
    pub(super) due: Option<RpcTime>,
    /// Why it would not be booked.
    pub(super) error: Option<String>,
}

/// Advice in errors about answers that are too large.
const FEWER: &str = "preview fewer runs";

/// A simulated run.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PreviewedRun {
    run: U64,
    time: RpcTime,
    success: bool,
    error: Option<String>,
    gas_used: U64,
    fee: U256,
    escrow_before: U256,
    /// Zero after the last run, because the rest is refunded.
    escrow_after: U256,
    logs: Vec<PreviewedLog>,
}

/// A log of a simulated run.
#[derive(Clone, Debug, Serialize)]
struct PreviewedLog {
    address: Address,
    topics: Vec<alloy_primitives::B256>,
    data: alloy_primitives::Bytes,
}

#[derive(Clone, Debug, Serialize)]
struct PreviewedEnd {
    status: StatusName,
    reason: Option<String>,
    time: Option<RpcTime>,
}

/// How many runs to preview.
pub(super) fn checked_count(given: Option<Value>) -> RpcResult<usize> {
    let Some(given) = given.filter(|given| !given.is_null()) else { return Ok(1) };
    let number = serde_json::from_value::<Number>(given.clone()).ok().map(Number::get);
    let number = number.filter(|number| (1..=PREVIEW_RUNS_MAX).contains(number));
    let number =
        number.ok_or_else(|| error::invalid(format!("{given} runs are not in 1..={PREVIEW_RUNS_MAX}")))?;
    usize::try_from(number).map_err(error::internal)
}

/// Simulates the next `count` runs of a schedule.
pub(super) fn preview(view: &View, id: ScheduleId, count: usize) -> RpcResult<Preview> {
    let known = view.known_schedule(id)?;
    let (tip, state) = view.state(None)?;
    let parameters = read_parameters(&state).map_err(error::internal)?;
    let next = upcoming(&tip, &state, &parameters, (view.next_time)())?;
    let attempt = Attempt {
        view,
        id,
        state: Overlay::new(state),
        parent: tip.block.header.clone(),
        earliest: next.timestamp,
        base_fee: next.base_fee,
        parameters,
    };
    let preview = Preview { end: ended(&known), ..Preview::new(Some(id), tip.number(), next.base_fee) };
    attempt.preview(preview, count)
}

impl Preview {
    /// Nothing has run yet.
    pub(super) fn new(id: Option<ScheduleId>, block: u64, base_fee: GasPrice) -> Self {
        Self {
            id: id.map(RpcScheduleId::new),
            order: None,
            block_number: U64::from(block),
            base_fee: U256::from(base_fee.0),
            runs: Vec::new(),
            escrow_suffices: true,
            end: None,
            waits: None,
        }
    }

    /// Of what this transaction would book.
    pub(super) fn of_order(mut self, order: PreviewedOrder) -> Self {
        self.order = Some(order);
        self
    }
}

impl Attempt<'_> {
    /// Runs the schedule `count` times, or until it ends or waits.
    pub(super) fn preview(mut self, mut preview: Preview, count: usize) -> RpcResult<Preview> {
        let attempt = &mut self;
        let (begin, mut room) = (Instant::now(), Room::new(FEWER));
        while preview.runs.len() < count && preview.end.is_none() {
            if begin.elapsed() > PREVIEW_TIME_MAX {
                let (done, max_ms) = (preview.runs.len(), PREVIEW_TIME_MAX.as_millis());
                return Err(error::limit(format!("{done} runs took longer than {max_ms} ms: {FEWER}")));
            }
            let Some(record) = attempt.record()?.filter(|record| record.head.status.awaits_run()) else {
                break;
            };
            let step = attempt.step(&record)?;
            preview.escrow_suffices &= !step.is_short;
            preview.end = step.end;
            match step.run {
                Some(run) => preview.runs.push(room.write(&run)?),
                None if preview.end.is_none() && !step.has_moved => {
                    preview.waits = Some(why_not(&record, &attempt.parameters, attempt.base_fee));
                    break;
                }
                None => {}
            }
        }
        Ok(preview)
    }
}

fn ended(known: &KnownSchedule) -> Option<PreviewedEnd> {
    let ending = known.schedule.end.as_ref().or(known.schedule.quarantine.as_ref())?;
    let reason = ending.explanation().filter(|reason| !reason.is_empty());
    Some(PreviewedEnd { status: ending.status().into(), reason, time: None })
}

fn why_not(record: &Record, parameters: &Parameters, base_fee: GasPrice) -> String {
    let lane = record.head.lane;
    if is_held(lane, parameters) {
        return format!(
            "the {lane:?} lane is paused or switched off: runs wait until governance lets it go on"
        );
    }
    match record.body.terms.market() {
        Some(terms) if u128::from(terms.bid) < base_fee.0 => {
            format!("its bid of {} wei per gas is below the base fee of {}", terms.bid, base_fee.0)
        }
        _ => format!("a run of {} does not fit what a block gives the {lane:?} lane", record.body.gas_limit),
    }
}

/// A chain of simulated blocks that contain only the runs of one schedule.
pub(super) struct Attempt<'v> {
    pub(super) view: &'v View,
    pub(super) id: ScheduleId,
    pub(super) state: Overlay<HistoricalState>,
    pub(super) parent: Header,
    pub(super) earliest: TimestampMs,
    pub(super) base_fee: GasPrice,
    pub(super) parameters: Parameters,
}

/// What happened to a schedule in one such block.
struct Step {
    run: Option<PreviewedRun>,
    end: Option<PreviewedEnd>,
    /// Whether it ended because it could not pay.
    is_short: bool,
    /// Whether it moved to a later time.
    has_moved: bool,
}

impl Attempt<'_> {
    pub(super) fn record(&self) -> RpcResult<Option<Record>> {
        Record::read(&self.state, self.id).map_err(error::internal)
    }

    /// Builds the block in which the schedule is due.
    fn step(&mut self, record: &Record) -> RpcResult<Step> {
        let after_parent = TimestampMs(self.parent.timestamp.0.saturating_add(1));
        let timestamp = record.head.due.unwrap_or(self.earliest).max(self.earliest).max(after_parent);
        let input = BlockInput {
            chain: self.view.chain,
            parent_hash: self.parent.hash(),
            timestamp,
            fee_recipient: self.parent.fee_recipient,
            consensus: self.parent.consensus,
            parent: self.parent.clone(),
        };
        let output = execute(&self.state, &OneSchedule(self.id), &input, &mut BlockBody::new(Vec::new()));
        let output = output.map_err(error::internal)?;
        self.state.apply(&output.diff);
        self.parent = parent_at(self.base_fee, &output.header(self.parent.commitment));
        let now = self.record()?;
        let receipt = output.receipts.iter().find(|receipt| receipt.schedule_ref.is_some());
        let moment = Moment { base_fee: self.base_fee, ..output.environment.moment() };
        let (end, is_short) = end_in(&output, self.id, now.as_ref(), timestamp);
        Ok(Step {
            run: receipt.map(|receipt| self.run(record, now.as_ref(), receipt, moment)),
            end,
            is_short,
            has_moved: now.is_some_and(|now| now.head.due != record.head.due),
        })
    }

    /// The final cost of a run: what it was charged, without what returns.
    fn fee(&self, before: &Record, receipt: &Receipt, moment: Moment) -> Wei {
        let charge = before.charge(self.base_fee);
        let ended = RunEnd {
            outcome: &receipt.outcome,
            gas_used: receipt.gas_used,
            price: receipt.effective_gas_price,
            // The receipt does not say what it set aside for runs that it triggers.
            place: Wei::ZERO,
        };
        let returned = before.body.terms.settle_run(before, charge, ended, moment).refund;
        charge.checked_sub(returned).unwrap_or_default()
    }

    fn run(
        &self,
        before: &Record,
        after: Option<&Record>,
        receipt: &Receipt,
        moment: Moment,
    ) -> PreviewedRun {
        PreviewedRun {
            run: U64::from(before.head.runs),
            time: RpcTime::new(moment.now),
            success: receipt.outcome.is_success(),
            error: failure(&receipt.outcome),
            gas_used: U64::from(receipt.gas_used.0),
            fee: self.fee(before, receipt, moment).0,
            escrow_before: before.escrow.0,
            escrow_after: after.map_or(U256::ZERO, |after| after.escrow.0),
            logs: receipt
                .logs
                .iter()
                .map(|log| PreviewedLog {
                    address: log.address,
                    topics: log.topics().to_vec(),
                    data: log.data.data.clone(),
                })
                .collect(),
        }
    }
}

/// A header whose child has this base fee: a block at its gas target keeps it.
pub(super) fn parent_at(base_fee: GasPrice, header: &Header) -> Header {
    let target = Gas(header.gas_limit.0 / GAS_TARGET_DIVISOR);
    Header { gas_used: target, base_fee, ..header.clone() }
}

/// How a schedule ended in a block, if it did, and whether it ran out of money. Its run may have ended others too.
fn end_in(
    output: &BlockOutput,
    id: ScheduleId,
    now: Option<&Record>,
    at: TimestampMs,
) -> (Option<PreviewedEnd>, bool) {
    let lives = |now: &Record| !now.head.status.is_ended() && now.head.status != Status::Quarantined;
    if now.is_some_and(lives) {
        return (None, false);
    }
    let of_it = output.events.iter().filter(|told| told.event.id == id);
    let mut ended = of_it.filter_map(|told| match &told.event.what {
        What::Ended { end, .. } => {
            let status = ScheduleStatus::of_end(*end);
            let reason = (status == ScheduleStatus::Exhausted).then(|| end.to_string());
            Some((status, reason, *end == End::OutOfMoney))
        }
        What::Quarantined { reason } => Some((ScheduleStatus::Quarantined, Some(reason.clone()), false)),
        What::Created { .. } | What::ToppedUp { .. } | What::Processed { .. } | What::Executed { .. } => None,
    });
    let Some((status, reason, is_short)) = ended.next_back() else { return (None, false) };
    (Some(PreviewedEnd { status: status.into(), reason, time: Some(RpcTime::new(at)) }), is_short)
}
