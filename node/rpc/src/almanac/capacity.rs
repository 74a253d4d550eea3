//! `almanac_capacity`: how much gas runs request, second by second, compared with their lane's budget per
//! block.
//!
//! The calendar has the next run of each schedule. Later runs of a series follow from its interval, up to its
//! number of runs. The forecast ignores whether the escrow will pay for them. What High and Medium callbacks have
//! booked is in the ledger.

use super::{
    agenda::read_record,
    booked::{BookedSeconds, booked_seconds},
    params::{self, LaneName},
};
use crate::{
    bounds::{CAPACITY_RUNS_MAX, CAPACITY_SCHEDULES_MAX, CAPACITY_SECONDS_MAX},
    error,
    types::{Number, RpcTime},
    view::View,
};
use alloy_primitives::U64;
use almanac_exec::environment::read_parameters;
use almanac_index::HistoricalState;
use almanac_primitives::{
    Gas, Lane, TimestampMs,
    params::{Parameters, SECOND_MS},
};
use almanac_schedule::{
    Calendar, Record, budget,
    calendar::{Cursor, Entry, Queue},
    is_held,
};
use jsonrpsee::core::RpcResult;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, ops::RangeInclusive};

/// Seconds of an answer by default.
const SECONDS_DEFAULT: u64 = 60;
/// Calendar entries to read at a time.
const PAGE: usize = 1_000;

/// Which seconds a client requests.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Wanted {
    /// In the first second that counts, in milliseconds since 1970; by default now.
    from: Option<Number>,
    /// In the last second that counts; by default a minute from the first, at most an hour.
    to: Option<Number>,
}

/// The gas that runs request in a span.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Capacity {
    block_number: U64,
    from: RpcTime,
    to: RpcTime,
    /// Whether all runs are counted. If not, the lanes have those of the schedules that are due first.
    is_exact: bool,
    lanes: Vec<LaneCapacity>,
    booked: BookedSeconds,
}

/// The gas that runs of one lane request.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LaneCapacity {
    lane: LaneName,
    is_held: bool,
    /// Most gas that the runs of one block may request together.
    block_gas_max: U64,
    /// Seconds in which something is due, in order.
    seconds: Vec<Second>,
}

/// What is due in one second.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Second {
    time: RpcTime,
    runs: U64,
    gas: U64,
    /// How many blocks this fills.
    blocks_needed: U64,
}

#[derive(Clone, Copy, Default)]
struct Demand {
    runs: u64,
    gas: u64,
}

type Demands = BTreeMap<(Lane, u64), Demand>;

/// What is counted so far.
#[derive(Default)]
struct Tally {
    demands: Demands,
    schedules: usize,
    runs: u64,
}

impl Tally {
    /// Whether an answer has counted as much as it may.
    fn is_full(&self) -> bool {
        self.schedules >= CAPACITY_SCHEDULES_MAX || self.runs >= CAPACITY_RUNS_MAX
    }

    fn add(&mut self, entry: &Entry, record: Option<&Record>, seconds: &RangeInclusive<u64>) {
        self.schedules += 1;
        if let Some(record) = record {
            self.runs += count(entry, record, seconds, &mut self.demands);
        }
    }
}

/// Adds up what is due in a span.
pub(super) fn measure(view: &View, wanted: &Wanted) -> RpcResult<Capacity> {
    let (block, state) = view.state(None)?;
    let seconds = span(wanted, (view.next_time)())?;
    let parameters = read_parameters(&state).map_err(error::internal)?;
    let now = block.block.header.timestamp;
    let (demands, is_exact) = collect(&state, &seconds)?;
    let lanes = Lane::SERVED.map(|lane| LaneCapacity::new(lane, &parameters, &demands));
    let moment = |second: u64| RpcTime::new(TimestampMs(second.saturating_mul(SECOND_MS)));
    Ok(Capacity {
        block_number: U64::from(block.number()),
        from: moment(*seconds.start()),
        to: moment(*seconds.end()),
        is_exact,
        lanes: lanes.into(),
        booked: booked_seconds(&state, &parameters, &seconds, now)?,
    })
}

/// The requested seconds.
fn span(wanted: &Wanted, now: TimestampMs) -> RpcResult<RangeInclusive<u64>> {
    let from = wanted.from.map_or(now, params::time).seconds();
    let to = wanted.to.map_or(from.saturating_add(SECONDS_DEFAULT - 1), |to| params::time(to).seconds());
    if from > to {
        return Err(error::invalid(format!("the span ends in second {to}, before it begins in {from}")));
    }
    if to - from >= CAPACITY_SECONDS_MAX {
        let given = (to - from).saturating_add(1);
        return Err(error::limit(format!(
            "a span of {given} seconds is above the limit of {CAPACITY_SECONDS_MAX}"
        )));
    }
    Ok(from..=to)
}

/// Reads what is due up to the end of the span: series that began before it have runs within. Says whether that was
/// everything.
fn collect(state: &HistoricalState, seconds: &RangeInclusive<u64>) -> RpcResult<(Demands, bool)> {
    let (mut tally, mut cursor) = (Tally::default(), Cursor::At(TimestampMs(0)));
    loop {
        let page = Calendar::new(state).agenda(&Queue::TIMED, cursor, PAGE).map_err(error::internal)?;
        for entry in &page {
            if entry.due().seconds() > *seconds.end() {
                return Ok((tally.demands, true));
            }
            if tally.is_full() {
                return Ok((tally.demands, false));
            }
            tally.add(entry, read_record(state, entry)?.as_ref(), seconds);
        }
        match page.last() {
            Some(last) if page.len() == PAGE => cursor = Cursor::After(*last),
            _ => return Ok((tally.demands, true)),
        }
    }
}

/// Counts the runs of one schedule in the span. Returns their number.
fn count(entry: &Entry, record: &Record, seconds: &RangeInclusive<u64>, demands: &mut Demands) -> u64 {
    let left = record.runs_left().unwrap_or(u64::MAX);
    let interval = record.body.terms.interval().map_or(u64::MAX, |interval| interval.0);
    let first_ms = seconds.start().saturating_mul(SECOND_MS);
    // The first run of the series that is in the span.
    let skipped = first_ms.saturating_sub(entry.at).div_ceil(interval);
    let (mut nth, mut counted) = (skipped, 0);
    while nth < left {
        let due = nth.checked_mul(interval).and_then(|later| entry.at.checked_add(later));
        let Some(due) = due.map(TimestampMs).filter(|due| due.seconds() <= *seconds.end()) else { break };
        let demand = demands.entry((record.head.lane, due.seconds())).or_default();
        demand.runs += 1;
        demand.gas = demand.gas.saturating_add(record.body.gas_limit.0);
        (nth, counted) = (nth + 1, counted + 1);
    }
    counted
}

impl LaneCapacity {
    fn new(lane: Lane, parameters: &Parameters, demands: &Demands) -> Self {
        let block_gas_max = budget(lane, parameters, Gas::ZERO, 0).0;
        let of_lane = demands.range((lane, 0)..=(lane, u64::MAX));
        let seconds = of_lane.map(|((_, second), demand)| Second {
            time: RpcTime::new(TimestampMs(second.saturating_mul(SECOND_MS))),
            runs: U64::from(demand.runs),
            gas: U64::from(demand.gas),
            blocks_needed: U64::from(demand.gas.div_ceil(block_gas_max.max(1))),
        });
        Self {
            lane: lane.into(),
            is_held: is_held(lane, parameters),
            block_gas_max: U64::from(block_gas_max),
            seconds: seconds.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::{Address, Bytes};
    use almanac_primitives::{ScheduleId, Wei};
    use almanac_schedule::{
        cron::{CatchUp, Charge, CronTerms},
        record::{Body, Call, Head, LastRun, Status, Terms, Trigger},
    };
    use std::num::NonZeroU64;

    fn record(due: u64, interval: u64, runs_max: u64, runs: u32) -> Record {
        let head = Head {
            status: Status::Pending,
            lane: Lane::Cron,
            last: LastRun::None,
            due: Some(TimestampMs(due)),
            priority: 0,
            runs,
            until: 0,
        };
        let body = Body {
            owner: Address::ZERO,
            refund_to: Address::ZERO,
            gas_limit: Gas(7),
            trigger: Trigger::Time,
            terms: Terms::Cron(CronTerms {
                interval_ms: NonZeroU64::new(interval),
                runs_max: NonZeroU64::new(runs_max),
                catch_up: CatchUp::All,
                charge: Charge::GasLimit,
            }),
            calls: vec![Call {
                from: Address::ZERO,
                to: Address::ZERO,
                value: Wei::ZERO,
                input: Bytes::new(),
            }],
        };
        Record { id: ScheduleId(1), head, escrow: Wei::ZERO, body }
    }

    /// A simple reference: enumerates the runs one by one.
    fn dull(record: &Record, seconds: &RangeInclusive<u64>) -> Vec<u64> {
        let (mut found, mut due) = (Vec::new(), record.head.due.unwrap().0);
        for _ in 0..record.runs_left().unwrap_or(40_000).min(40_000) {
            if seconds.contains(&(due / 1_000)) {
                found.push(due / 1_000);
            }
            due = due.saturating_add(record.body.terms.interval().map_or(0, |interval| interval.0));
        }
        found
    }

    #[test]
    fn counts_as_by_going_from_run_to_run() {
        for due in [1, 999, 5_000, 20_001] {
            for interval in [0, 1, 999, 1_000, 3_500, 60_000] {
                for (runs_max, runs) in [(0, 0), (1, 0), (4, 1), (4, 3)] {
                    for seconds in [0..=0, 0..=9, 5..=5, 4..=30] {
                        let record = record(due, interval, runs_max, runs);
                        let (entry, mut demands) = (record.entry().unwrap(), Demands::new());
                        let counted = count(&entry, &record, &seconds, &mut demands);
                        let expected = dull(&record, &seconds);
                        assert_eq!(counted, expected.len() as u64, "{due} {interval} {runs_max} {seconds:?}");
                        for ((_, second), demand) in &demands {
                            let here = expected.iter().filter(|found| *found == second).count() as u64;
                            assert_eq!((demand.runs, demand.gas), (here, 7 * here));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn an_answer_counts_only_so_much() {
        let (single, every_second) = (record(1_000, 0, 1, 0), record(1_000, 1_000, 0, 0));
        let mut tally = Tally::default();
        for _ in 0..CAPACITY_SCHEDULES_MAX {
            assert!(!tally.is_full());
            tally.add(&single.entry().unwrap(), Some(&single), &(1..=1));
        }
        assert!(tally.is_full(), "by schedules");
        let (mut tally, hour) = (Tally::default(), 1..=CAPACITY_SECONDS_MAX);
        for _ in 0..CAPACITY_RUNS_MAX.div_ceil(CAPACITY_SECONDS_MAX) {
            assert!(!tally.is_full());
            tally.add(&every_second.entry().unwrap(), Some(&every_second), &hour);
        }
        assert!(tally.is_full(), "by runs");
    }

    #[test]
    fn the_end_of_time_is_no_trap() {
        let (record, mut demands) = (record(u64::MAX - 5, 3, 0, 0), Demands::new());
        let last = u64::MAX / 1_000;
        assert_eq!(count(&record.entry().unwrap(), &record, &(last..=last), &mut demands), 2);
    }
}
