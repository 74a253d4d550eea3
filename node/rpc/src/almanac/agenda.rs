//! `almanac_agenda`: what is due when, read from the calendar in the state.

use super::{
    market::{MarketView, RpcMarket},
    params::{self, LaneName},
};
use crate::{
    error,
    types::{Number, RpcScheduleId, RpcTime},
    view::View,
};
use alloy_primitives::{Address, Bytes, U64};
use almanac_exec::environment::read_parameters;
use almanac_index::HistoricalState;
use almanac_primitives::{Lane, TimestampMs};
use almanac_schedule::{
    Calendar, Record,
    calendar::{Cursor, Entry, Queue},
    is_held,
};
use jsonrpsee::core::RpcResult;
use serde::{Deserialize, Serialize};

/// Which part of the agenda a client requests.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Wanted {
    /// Milliseconds since 1970, included.
    from: Option<Number>,
    /// Milliseconds since 1970, included.
    to: Option<Number>,
    /// By default all but `signed`.
    lanes: Option<Vec<LaneName>>,
    /// What the page before answered, to continue.
    cursor: Option<Bytes>,
    /// Length of the page, 1 to 100; by default 20.
    limit: Option<Number>,
}

/// A page of the agenda.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgendaPage {
    block_number: U64,
    entries: Vec<RpcEntry>,
    /// Lanes that are paused or disabled: their entries wait.
    held_lanes: Vec<LaneName>,
    cursor: Option<Bytes>,
}

/// A schedule that waits for its due time.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RpcEntry {
    #[serde(flatten)]
    id: RpcScheduleId,
    lane: LaneName,
    due: RpcTime,
    priority: U64,
    /// The priority by name, for doors that have such names.
    priority_name: Option<&'static str>,
    /// These are `null` if the record cannot be read; the schedule will be quarantined when it is due.
    door: Option<&'static str>,
    owner: Option<Address>,
    target: Option<Address>,
    gas_limit: Option<U64>,
    /// Of scheduled transactions only.
    market: Option<RpcMarket>,
}

/// A page of the agenda.
pub(super) fn page(view: &View, wanted: &Wanted) -> RpcResult<AgendaPage> {
    let limit = params::limit(wanted.limit)?;
    let (block, state) = view.state(None)?;
    let lanes: Vec<Lane> = match &wanted.lanes {
        Some(names) => names.iter().map(|name| Lane::from(*name)).collect(),
        None => Lane::SERVED.to_vec(),
    };
    let mut found = find(&Calendar::new(&state), wanted, &lanes, limit + 1)?;
    let has_more = found.len() > limit;
    found.truncate(limit);
    let cursor = found.last().filter(|_| has_more).map(|entry| Bytes::from(entry.encode()));
    let market = MarketView::new(view, &block, &state);
    let entries = found.iter().map(|entry| RpcEntry::new(&state, entry, &market));
    let entries = entries.collect::<RpcResult<_>>()?;
    let parameters = read_parameters(&state).map_err(error::internal)?;
    let held = Lane::ALL.into_iter().filter(|lane| is_held(*lane, &parameters));
    Ok(AgendaPage {
        block_number: U64::from(block.number()),
        entries,
        held_lanes: held.map(Into::into).collect(),
        cursor,
    })
}

/// The next entries: first those that are due and wait for a price, the highest first, then the others by time. What
/// waits has no time at which it runs: it comes before all others, and a span that begins somewhere leaves it out.
fn find(calendar: &Calendar<'_>, wanted: &Wanted, lanes: &[Lane], count_max: usize) -> RpcResult<Vec<Entry>> {
    let given = wanted.cursor.as_ref().map(read_cursor).transpose()?;
    let (after_waiting, cursor) = match (given, wanted.from) {
        (Some(_), Some(_)) => {
            return Err(error::invalid("both cursor and from are given: a cursor says where to go on"));
        }
        (Some(after), None) if after.queue == Queue::Waiting => (Some(after), Cursor::At(TimestampMs(0))),
        (Some(after), None) => (None, Cursor::After(after)),
        (None, from) => (None, Cursor::At(from.map_or(TimestampMs(0), params::time))),
    };
    let is_start = given.is_none() && wanted.from.is_none();
    let mut found = Vec::new();
    if lanes.contains(&Lane::Market) && (is_start || after_waiting.is_some()) {
        // The entry that a page starts from belongs to the page before, unless it is gone.
        let more = count_max + usize::from(after_waiting.is_some());
        found = calendar.due_from(Queue::Waiting, u64::MAX, after_waiting, more).map_err(error::internal)?;
        found.retain(|entry| Some(*entry) != after_waiting);
    }
    let queues: Vec<_> = lanes.iter().copied().map(Queue::of_lane).collect();
    let left = count_max.saturating_sub(found.len());
    let to = wanted.to.map_or(TimestampMs(u64::MAX), params::time);
    let timed = calendar.agenda(&queues, cursor, left).map_err(error::internal)?;
    found.extend(timed.into_iter().filter(|entry| entry.due() <= to));
    found.truncate(count_max);
    Ok(found)
}

/// The lane of an entry's run.
pub(super) fn lane_of(entry: &Entry) -> Lane {
    // Only market runs wait for a price.
    entry.queue.lane().unwrap_or(Lane::Market)
}

fn read_cursor(bytes: &Bytes) -> RpcResult<Entry> {
    Entry::decode(bytes).map_err(|reason| {
        error::invalid(format!("this is no cursor: {reason}; give the one that the page before ended with"))
    })
}

impl RpcEntry {
    fn new(state: &HistoricalState, entry: &Entry, market: &MarketView<'_>) -> RpcResult<Self> {
        let record = read_record(state, entry)?;
        let market = record.as_ref().map(|record| market.of(record)).transpose()?.flatten();
        Ok(Self {
            id: RpcScheduleId::new(entry.schedule),
            lane: lane_of(entry).into(),
            due: RpcTime::new(entry.due()),
            priority: U64::from(if entry.queue == Queue::Waiting { entry.bid() } else { entry.priority.0 }),
            priority_name: record.as_ref().and_then(priority_name),
            door: record.as_ref().map(|record| record.body.door().name()),
            owner: record.as_ref().map(|record| record.body.owner),
            target: record.as_ref().map(|record| record.body.call().to),
            gas_limit: record.as_ref().map(|record| U64::from(record.body.gas_limit.0)),
            market,
        })
    }
}

fn priority_name(record: &Record) -> Option<&'static str> {
    record.body.terms.callback().map(|terms| terms.priority.name())
}

/// The record of an entry, unless it is broken.
pub(super) fn read_record(state: &HistoricalState, entry: &Entry) -> RpcResult<Option<Record>> {
    use almanac_schedule::record::RecordError;
    match Record::read(state, entry.schedule) {
        Ok(record) => Ok(record),
        Err(RecordError::Broken(_)) => Ok(None),
        Err(RecordError::Read(error)) => Err(error::internal(error)),
    }
}
