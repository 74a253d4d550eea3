//! `almanac_getSchedule` and `almanac_listSchedules`: schedules as clients see them.

use super::{
    market::{MarketView, RpcMarket},
    params::{self, DirectionName, DoorName, Id, LaneName, StatusName},
};
use crate::{
    error,
    types::{Number, RpcScheduleId, RpcTime},
    view::View,
};
use alloy_primitives::{Address, BlockHash, Bytes, TxHash, U64, U256};
use almanac_exec::{Agreement, Party, agreement};
use almanac_index::{Ending, HistoricalState, KnownSchedule, Location, ScheduleFilter};
use almanac_primitives::{ScheduleId, TimestampMs};
use almanac_schedule::{
    Record,
    doors::Fact,
    record::{Body, Call, LastRun, Trigger},
};
use jsonrpsee::core::RpcResult;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A schedule, live or ended.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RpcSchedule {
    #[serde(flatten)]
    id: RpcScheduleId,
    status: StatusName,
    lane: LaneName,
    owner: Address,
    target: Address,
    /// `null` if it ended in the block that created it.
    terms: Option<Terms>,
    created: RpcPlace,
    first_run: Option<RpcTime>,
    next_run: Option<RpcTime>,
    runs: U64,
    runs_failed: U64,
    /// `null` if only the escrow limits them.
    runs_left: Option<U64>,
    last_run: Option<String>,
    /// What its runs cost so far.
    fees_total: U256,
    escrow: U256,
    /// Of a scheduled transaction that has not run.
    market: Option<RpcMarket>,
    /// Of a transaction that waits for signatures.
    signatures: Option<RpcAgreement>,
    end: Option<RpcEnding>,
}

/// Whose agreement a schedule needs, and what it has.
#[derive(Clone, Debug, Serialize)]
struct RpcAgreement {
    parties: Vec<RpcParty>,
    /// When it ends without them; where it waits for its time, when it runs.
    until: Option<RpcTime>,
    /// What is recorded and counts, in the form of `getScheduleInfo`.
    signers: Vec<Bytes>,
}

/// An account that must agree.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RpcParty {
    account: Address,
    /// The bytes of its key tree.
    key: Bytes,
    has_agreed: bool,
}

/// The immutable part of a schedule.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Terms {
    door: &'static str,
    /// What triggers it.
    trigger: &'static str,
    refund_to: Address,
    from: Address,
    value: U256,
    input: Bytes,
    /// All of its calls, where there are several. The fields above are those of the first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<RpcCall>,
    gas_limit: U64,
    /// The terms of its door.
    #[serde(flatten)]
    of_door: BTreeMap<&'static str, RpcFact>,
}

/// A call of a schedule.
#[derive(Clone, Debug, Serialize)]
struct RpcCall {
    from: Address,
    to: Address,
    value: U256,
    input: Bytes,
}

impl RpcCall {
    fn new(call: &Call) -> Self {
        Self { from: call.from, to: call.to, value: call.value.0, input: call.input.clone() }
    }
}

/// One of the terms of a door.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum RpcFact {
    Number(Option<U64>),
    Word(&'static str),
}

/// A transaction and its time. Only the number is known of a block that this node does not have.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RpcPlace {
    block_number: U64,
    block_hash: Option<BlockHash>,
    transaction_hash: Option<TxHash>,
    transaction_index: Option<U64>,
    time: Option<RpcTime>,
}

/// What ended or quarantined a schedule.
#[derive(Clone, Debug, Serialize)]
struct RpcEnding {
    status: StatusName,
    reason: Option<String>,
    /// What its owner got back; `null` if this node does not know, and for a quarantine.
    refunded: Option<U256>,
    #[serde(flatten)]
    place: RpcPlace,
}

impl RpcSchedule {
    /// Builds the answer for a schedule.
    fn new(
        view: &View,
        state: &HistoricalState,
        known: &KnownSchedule,
        market: &MarketView<'_>,
    ) -> RpcResult<Self> {
        let KnownSchedule { schedule, body, record, last_run: last } = known;
        let waiting = record.as_ref().filter(|record| record.head.status.awaits_run());
        let end = schedule.end.as_ref().or(schedule.quarantine.as_ref());
        Ok(Self {
            id: RpcScheduleId::new(schedule.id),
            status: schedule.status().into(),
            lane: schedule.lane.into(),
            owner: schedule.owner,
            target: schedule.target,
            terms: body.as_ref().map(Terms::new),
            created: RpcPlace::new(view, schedule.created())?,
            first_run: schedule.first_due.filter(|_| has_time(body.as_ref())).map(RpcTime::new),
            next_run: waiting.and_then(next_run).map(RpcTime::new),
            runs: U64::from(schedule.runs),
            runs_failed: U64::from(schedule.runs_failed),
            // The record of a callback stays readable for a while after its end.
            runs_left: match record.as_ref().filter(|_| schedule.end.is_none()) {
                Some(record) => record.runs_left().map(U64::from),
                None => Some(U64::ZERO),
            },
            last_run: last_run(*last),
            fees_total: schedule.fees.0,
            escrow: record.as_ref().map_or(U256::ZERO, |record| record.escrow.0),
            market: record.as_ref().map(|record| market.of(record)).transpose()?.flatten(),
            signatures: waiting.map(|record| RpcAgreement::of(state, record)).transpose()?.flatten(),
            end: end.map(|ending| RpcEnding::new(view, ending)).transpose()?,
        })
    }
}

impl RpcAgreement {
    fn of(state: &HistoricalState, record: &Record) -> RpcResult<Option<Self>> {
        let found = agreement(state, record).map_err(error::internal)?;
        Ok(found.map(|Agreement { parties, signers }| Self {
            parties: parties.into_iter().map(RpcParty::from).collect(),
            until: record.head.due.map(RpcTime::new),
            signers: signers.iter().map(|signer| signer.shown().into()).collect(),
        }))
    }
}

impl From<Party> for RpcParty {
    fn from(Party { account, key, has_agreed }: Party) -> Self {
        Self { account, key: key.encoded().clone(), has_agreed }
    }
}

impl Terms {
    fn new(body: &Body) -> Self {
        let call = body.call();
        Self {
            door: body.door().name(),
            trigger: match body.trigger {
                Trigger::Time => "time",
                Trigger::Signatures => "signatures",
                Trigger::SignaturesByTime => "signaturesByTime",
            },
            refund_to: body.refund_to,
            from: call.from,
            value: call.value.0,
            input: call.input.clone(),
            calls: if body.calls.len() > 1 {
                body.calls.iter().map(RpcCall::new).collect()
            } else {
                Vec::new()
            },
            gas_limit: U64::from(body.gas_limit.0),
            of_door: body.terms.facts().into_iter().map(|(name, fact)| (name, fact.into())).collect(),
        }
    }
}

impl From<Fact> for RpcFact {
    fn from(fact: Fact) -> Self {
        match fact {
            Fact::Number(number) => Self::Number(number.map(U64::from)),
            Fact::Word(word) => Self::Word(word),
        }
    }
}

impl RpcPlace {
    pub(super) fn new(view: &View, location: Location) -> RpcResult<Self> {
        let block_number = U64::from(location.number);
        if (1..=view.index.floor()).contains(&location.number) {
            let (block_hash, transaction_hash) = (None, None);
            return Ok(Self {
                block_number,
                block_hash,
                transaction_hash,
                transaction_index: None,
                time: None,
            });
        }
        let place = view.index.place(location).map_err(error::internal)?;
        Ok(Self {
            block_number,
            block_hash: Some(place.block_hash),
            transaction_hash: Some(place.transaction_hash),
            transaction_index: Some(U64::from(location.index.saturating_sub(place.unseen))),
            time: Some(RpcTime::new(place.timestamp)),
        })
    }
}

impl RpcEnding {
    fn new(view: &View, ending: &Ending) -> RpcResult<Self> {
        let reason = ending.explanation().filter(|reason| !reason.is_empty());
        Ok(Self {
            status: ending.status().into(),
            reason,
            refunded: ending.refunded.map(|refunded| refunded.0),
            place: RpcPlace::new(view, ending.location)?,
        })
    }
}

/// When a schedule runs next, if a time says so: what only waits for signatures has one at which it ends.
fn next_run(record: &Record) -> Option<TimestampMs> {
    record.head.due.filter(|_| has_time(Some(&record.body)))
}

fn has_time(body: Option<&Body>) -> bool {
    body.is_none_or(|body| body.trigger != Trigger::Signatures)
}

fn last_run(last: LastRun) -> Option<String> {
    match last {
        LastRun::None => None,
        LastRun::Succeeded => Some("succeeded".to_owned()),
        LastRun::Reverted => Some("reverted".to_owned()),
        LastRun::Halted(halt) => Some(format!("stopped: {halt:?}")),
    }
}

/// Which schedules a client requests.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Wanted {
    owner: Option<Address>,
    target: Option<Address>,
    status: Option<StatusName>,
    lane: Option<LaneName>,
    door: Option<DoorName>,
    /// Its next run is then or later, in milliseconds since 1970.
    due_from: Option<Number>,
    /// Its next run is then or earlier, in milliseconds since 1970.
    due_to: Option<Number>,
    /// By creation; by default the oldest first.
    order: Option<DirectionName>,
    /// What the page before answered, to continue.
    cursor: Option<Id>,
    /// Length of the page, 1 to 100; by default 20.
    limit: Option<Number>,
}

/// A page of schedules.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SchedulesPage {
    schedules: Vec<RpcSchedule>,
    cursor: Option<String>,
}

/// One schedule, if there is one.
pub(super) fn one(view: &View, id: ScheduleId) -> RpcResult<Option<RpcSchedule>> {
    let Some(known) = view.index.schedule(id).map_err(error::internal)? else { return Ok(None) };
    let (tip, state) = view.state(None)?;
    RpcSchedule::new(view, &state, &known, &MarketView::new(view, &tip, &state)).map(Some)
}

/// A page of schedules.
pub(super) fn list(view: &View, wanted: &Wanted) -> RpcResult<SchedulesPage> {
    let limit = params::limit(wanted.limit)?;
    let filter = ScheduleFilter {
        owner: wanted.owner,
        target: wanted.target,
        status: wanted.status.map(Into::into),
        lane: wanted.lane.map(Into::into),
        door: wanted.door.map(|DoorName(door)| door),
        due: times(wanted.due_from, wanted.due_to)?,
        order: wanted.order.unwrap_or_default().into(),
    };
    let after = wanted.cursor.map(|Id(id)| id);
    let page = view.index.schedules(&filter, after, limit).map_err(error::internal)?;
    let (tip, state) = view.state(None)?;
    let market = MarketView::new(view, &tip, &state);
    let schedules = page.schedules.iter().map(|known| RpcSchedule::new(view, &state, known, &market));
    Ok(SchedulesPage {
        schedules: schedules.collect::<RpcResult<_>>()?,
        cursor: page.next.map(|id| id.to_string()),
    })
}

fn times(
    from: Option<Number>,
    to: Option<Number>,
) -> RpcResult<Option<std::ops::RangeInclusive<TimestampMs>>> {
    if from.is_none() && to.is_none() {
        return Ok(None);
    }
    let (from, to) = (from.map_or(0, Number::get), to.map_or(u64::MAX, Number::get));
    if from > to {
        return Err(error::invalid(format!("dueTo {to} is before dueFrom {from}: both are milliseconds")));
    }
    Ok(Some(TimestampMs(from)..=TimestampMs(to)))
}
