//! `almanac_agenda`: what is due when, read from the calendar in the state.

use super::params::{self, LaneName};
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
    from: Option<Number>,
    to: Option<Number>,
    lanes: Option<Vec<LaneName>>,
    cursor: Option<Bytes>,
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
}

/// A page of the agenda.
pub(super) fn page(view: &View, wanted: &Wanted) -> RpcResult<AgendaPage> {
    let limit = params::limit(wanted.limit)?;
    let (block, state) = view.state(None)?;
    let lanes: Vec<Lane> = match &wanted.lanes {
        Some(names) => names.iter().map(|name| Lane::from(*name)).collect(),
        None => Lane::ALL.to_vec(),
    };
    let cursor = match (&wanted.cursor, wanted.from) {
        (Some(_), Some(_)) => {
            return Err(error::invalid("both cursor and from are given: a cursor says where to go on"));
        }
        (Some(cursor), None) => Cursor::After(read_cursor(cursor)?),
        (None, from) => Cursor::At(from.map_or(TimestampMs(0), params::time)),
    };
    let to = wanted.to.map_or(TimestampMs(u64::MAX), params::time);
    let queues: Vec<_> = lanes.iter().copied().map(Queue::of_lane).collect();
    let mut found = Calendar::new(&state).agenda(&queues, cursor, limit + 1).map_err(error::internal)?;
    found.retain(|entry| entry.due() <= to);
    let has_more = found.len() > limit;
    found.truncate(limit);
    let cursor = found.last().filter(|_| has_more).map(|entry| Bytes::from(entry.encode()));
    let entries = found.iter().map(|entry| RpcEntry::new(&state, entry)).collect::<RpcResult<_>>()?;
    let parameters = read_parameters(&state).map_err(error::internal)?;
    let held = Lane::ALL.into_iter().filter(|lane| is_held(*lane, &parameters));
    Ok(AgendaPage {
        block_number: U64::from(block.number()),
        entries,
        held_lanes: held.map(Into::into).collect(),
        cursor,
    })
}

fn read_cursor(bytes: &Bytes) -> RpcResult<Entry> {
    Entry::decode(bytes).map_err(|reason| {
        error::invalid(format!("this is no cursor: {reason}; give the one that the page before ended with"))
    })
}

impl RpcEntry {
    fn new(state: &HistoricalState, entry: &Entry) -> RpcResult<Self> {
        let record = read_record(state, entry)?;
        Ok(Self {
            id: RpcScheduleId::new(entry.schedule),
            lane: entry.queue.lane().expect("the agenda is of lanes").into(),
            due: RpcTime::new(entry.due()),
            priority: U64::from(entry.priority.0),
            priority_name: record.as_ref().and_then(priority_name),
            door: record.as_ref().map(|record| record.body.door().name()),
            owner: record.as_ref().map(|record| record.body.owner),
            target: record.as_ref().map(|record| record.body.call().to),
            gas_limit: record.as_ref().map(|record| U64::from(record.body.gas_limit.0)),
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
