//! `almanac_agendaBuckets`: how much is due in intervals of equal length, which is what a timeline draws.
//!
//! Up to a number of schedules, each is read and every run of a series is counted. If more are due by the end of the
//! span, the calendar is outlined instead: only the next run of each schedule counts, and numbers are estimates.

use super::{
    agenda::{lane_of, read_record},
    params::{self, LaneName},
};
use crate::{
    bounds::{BUCKETS_MAX, BUCKETS_NODES_MAX, BUCKETS_SCHEDULES_MAX},
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
    calendar::{Cursor, Entry, Outline, Queue},
    is_held,
};
use jsonrpsee::core::RpcResult;
use serde::{Deserialize, Serialize};

/// Length of the span by default.
const SPAN_DEFAULT_MS: u64 = 3_600 * SECOND_MS;
/// Intervals by default.
const BUCKETS_DEFAULT: u64 = 60;

/// Which span a client requests.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Wanted {
    /// Milliseconds since 1970, included; by default now.
    from: Option<Number>,
    /// Milliseconds since 1970, not included; by default an hour later.
    to: Option<Number>,
    /// Number of intervals, 1 to 240; by default 60.
    buckets: Option<Number>,
}

/// What is due in a span.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgendaBuckets {
    block_number: U64,
    from: RpcTime,
    to: RpcTime,
    bucket_ms: U64,
    /// Whether runs were counted; otherwise the next run of each schedule, estimated.
    is_exact: bool,
    /// When the next run of all is due.
    next_due: Option<RpcTime>,
    lanes: Vec<LaneBuckets>,
}

/// What is due in one lane.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LaneBuckets {
    lane: LaneName,
    /// Doors never share a lane.
    door: Option<&'static str>,
    is_held: bool,
    /// Most gas that the runs of one block may request together.
    block_gas_max: U64,
    /// Schedules that wait, whenever they are due.
    pending: U64,
    /// Schedules that were due before the span begins and have not run.
    overdue: U64,
    /// Intervals in which something is due, in order.
    buckets: Vec<Bucket>,
}

/// What is due in one interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Bucket {
    index: U64,
    runs: U64,
    /// The sum of their gas limits; `null` if the number of runs is an estimate.
    gas: Option<U64>,
}

/// A span divided into intervals.
#[derive(Clone, Copy, Debug)]
struct Grid {
    from: u64,
    until: u64,
    bucket_ms: u64,
    count: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Demand {
    runs: u64,
    gas: u64,
}

/// Demands of one lane.
#[derive(Clone, Debug)]
struct Counted {
    overdue: u64,
    demands: Vec<Demand>,
}

/// Counts what is due in each interval.
pub(super) fn count(view: &View, wanted: &Wanted) -> RpcResult<AgendaBuckets> {
    let (block, state) = view.state(None)?;
    let grid = Grid::new(wanted, (view.next_time)())?;
    let parameters = read_parameters(&state).map_err(error::internal)?;
    let calendar = Calendar::new(&state);
    let exact = exact(&state, &grid)?;
    let is_exact = exact.is_some();
    let counted = match exact {
        Some(counted) => counted,
        None => outlined(&calendar, &grid)?,
    };
    let lanes = Lane::SERVED.iter().zip(&counted);
    let lanes = lanes.map(|(lane, counted)| lane_buckets(&calendar, *lane, &parameters, counted, is_exact));
    let next_due = calendar.next_due(&Queue::TIMED).map_err(error::internal)?;
    Ok(AgendaBuckets {
        block_number: U64::from(block.number()),
        from: RpcTime::new(TimestampMs(grid.from)),
        to: RpcTime::new(TimestampMs(grid.until)),
        bucket_ms: U64::from(grid.bucket_ms),
        is_exact,
        next_due: next_due.map(RpcTime::new),
        lanes: lanes.collect::<RpcResult<_>>()?,
    })
}

impl Grid {
    fn new(wanted: &Wanted, now: TimestampMs) -> RpcResult<Self> {
        let from = wanted.from.map_or(now, params::time).0;
        let until = wanted.to.map_or(from.saturating_add(SPAN_DEFAULT_MS), |to| params::time(to).0);
        if from >= until {
            return Err(error::invalid(format!("the span ends at {until}, not after it begins at {from}")));
        }
        let buckets = wanted.buckets.map_or(BUCKETS_DEFAULT, Number::get);
        if !(1..=BUCKETS_MAX).contains(&buckets) {
            return Err(error::invalid(format!("buckets {buckets} is not in 1..={BUCKETS_MAX}")));
        }
        let bucket_ms = (until - from).div_ceil(buckets);
        let count = usize::try_from((until - from).div_ceil(bucket_ms)).map_err(error::internal)?;
        Ok(Self { from, until, bucket_ms, count })
    }

    /// Where an interval begins; the span's end is where the one after the last does.
    fn begin(&self, index: usize) -> u64 {
        self.from.saturating_add(self.bucket_ms.saturating_mul(index as u64)).min(self.until)
    }

    fn index(&self, time: u64) -> usize {
        usize::try_from(time.saturating_sub(self.from) / self.bucket_ms)
            .unwrap_or(usize::MAX)
            .min(self.count - 1)
    }

    fn nothing(&self) -> Counted {
        Counted { overdue: 0, demands: vec![Demand::default(); self.count] }
    }
}

/// Counts every run, or returns `None` if too many schedules are due by the end of the span.
fn exact(state: &HistoricalState, grid: &Grid) -> RpcResult<Option<Vec<Counted>>> {
    let limit = BUCKETS_SCHEDULES_MAX + 1;
    // From the beginning of time: series that are overdue have runs in the span.
    let due = Calendar::new(state).agenda(&Queue::TIMED, Cursor::At(TimestampMs(0)), limit);
    // Those that wait for a price are due too.
    let waiting = Calendar::new(state).due_from(Queue::Waiting, u64::MAX, None, limit);
    let due = due.map_err(error::internal)?.into_iter().chain(waiting.map_err(error::internal)?);
    let due: Vec<Entry> = due.filter(|entry| entry.due().0 < grid.until).collect();
    if due.len() >= limit {
        return Ok(None);
    }
    let mut counted = vec![grid.nothing(); Lane::SERVED.len()];
    for entry in &due {
        let lane = Lane::SERVED.iter().position(|known| *known == lane_of(entry));
        let Some(counted) = lane.and_then(|place| counted.get_mut(place)) else { continue };
        counted.overdue += u64::from(entry.due().0 < grid.from);
        if let Some(record) = read_record(state, entry)? {
            count_runs(entry, &record, grid, &mut counted.demands);
        }
    }
    Ok(Some(counted))
}

/// Counts the runs of one schedule in each interval.
fn count_runs(entry: &Entry, record: &Record, grid: &Grid, demands: &mut [Demand]) {
    let left = record.runs_left().unwrap_or(u64::MAX);
    let interval = record.body.terms.interval().map_or(u64::MAX, |interval| interval.0.max(1));
    // How many runs of the series are due before a time.
    let before = |time: u64| match time.checked_sub(entry.due().0) {
        None | Some(0) => 0,
        Some(later) => later.div_ceil(interval).min(left),
    };
    for (index, demand) in demands.iter_mut().enumerate() {
        let runs = before(grid.begin(index + 1)) - before(grid.begin(index));
        demand.runs = demand.runs.saturating_add(runs);
        demand.gas = demand.gas.saturating_add(runs.saturating_mul(record.body.gas_limit.0));
    }
}

/// Estimates the number of schedules that are due in each interval.
fn outlined(calendar: &Calendar<'_>, grid: &Grid) -> RpcResult<Vec<Counted>> {
    let mut all = Vec::new();
    for lane in Lane::SERVED {
        let mut counted = grid.nothing();
        let outline = |from: u64, until: u64| {
            let (from, until) = (TimestampMs(from), TimestampMs(until));
            calendar.outline(Queue::of_lane(lane), from, until, BUCKETS_NODES_MAX).map_err(error::internal)
        };
        if let Some(before) = grid.from.checked_sub(1) {
            counted.overdue = outline(0, before)?.parts.iter().map(|part| part.entries).sum();
        }
        counted.overdue = counted.overdue.saturating_add(waiting_count(calendar, lane)?);
        spread(&outline(grid.from, grid.until - 1)?, grid, &mut counted.demands);
        all.push(counted);
    }
    Ok(all)
}

/// How many are due and wait for a price.
fn waiting_count(calendar: &Calendar<'_>, lane: Lane) -> RpcResult<u64> {
    if lane != Lane::Market {
        return Ok(0);
    }
    calendar.count(Queue::Waiting).map_err(error::internal)
}

/// Divides the parts of an outline among the intervals that they cover.
fn spread(outline: &Outline, grid: &Grid, demands: &mut [Demand]) {
    for (nth, part) in outline.parts.iter().enumerate() {
        let end = match outline.parts.get(nth + 1) {
            _ if outline.is_exact => part.at.saturating_add(1),
            Some(next) => next.at.max(part.at.saturating_add(1)),
            None => grid.until,
        };
        let (first, last) = (grid.index(part.at), grid.index(end.saturating_sub(1)));
        let buckets = (last - first + 1) as u64;
        for (index, demand) in demands.iter_mut().enumerate().take(last + 1).skip(first) {
            let extra = u64::from(((index - first) as u64) < part.entries % buckets);
            demand.runs = demand.runs.saturating_add(part.entries / buckets + extra);
        }
    }
}

fn lane_buckets(
    calendar: &Calendar<'_>,
    lane: Lane,
    parameters: &Parameters,
    counted: &Counted,
    is_exact: bool,
) -> RpcResult<LaneBuckets> {
    let queue = Queue::of_lane(lane);
    let found = counted.demands.iter().enumerate().filter(|(_, demand)| demand.runs > 0);
    let bucket = |(index, demand): (usize, &Demand)| Bucket {
        index: U64::from(index),
        runs: U64::from(demand.runs),
        gas: is_exact.then_some(U64::from(demand.gas)),
    };
    Ok(LaneBuckets {
        lane: lane.into(),
        door: queue.door().map(|door| door.name()),
        is_held: is_held(lane, parameters),
        block_gas_max: U64::from(budget(lane, parameters, Gas::ZERO, 0).0),
        pending: U64::from(
            calendar.count(queue).map_err(error::internal)?.saturating_add(waiting_count(calendar, lane)?),
        ),
        overdue: U64::from(counted.overdue),
        buckets: found.map(bucket).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use almanac_schedule::calendar::Part;

    fn grid(from: u64, to: u64, buckets: u64) -> Grid {
        let [from, to, buckets] = [from, to, buckets].map(|number| Some(Number::Plain(number)));
        Grid::new(&Wanted { from, to, buckets }, TimestampMs(0)).unwrap()
    }

    #[test]
    fn both_sides_of_each_limit() {
        let asked = |from, to, buckets| {
            let [from, to, buckets] = [from, to, buckets].map(|number| Some(Number::Plain(number)));
            Grid::new(&Wanted { from, to, buckets }, TimestampMs(0)).map(|grid| (grid.bucket_ms, grid.count))
        };
        assert_eq!(asked(0, 1_000, BUCKETS_MAX).unwrap(), (5, 200), "intervals are whole milliseconds");
        assert!(asked(0, 1_000, BUCKETS_MAX + 1).is_err() && asked(0, 1_000, 0).is_err());
        assert_eq!(asked(7, 8, 60).unwrap(), (1, 1));
        assert!(asked(8, 8, 60).is_err());
        assert_eq!(asked(0, u64::MAX, 1).unwrap(), (u64::MAX, 1));
        let default = Grid::new(&Wanted::default(), TimestampMs(5)).unwrap();
        assert_eq!((default.from, default.until, default.count), (5, 3_600_005, 60));
    }

    #[test]
    fn intervals_meet_and_end_with_the_span() {
        let grid = grid(100, 1_101, 10);
        assert_eq!((grid.bucket_ms, grid.count), (101, 10));
        assert_eq!((grid.begin(0), grid.begin(1), grid.begin(10)), (100, 201, 1_101));
        for time in 100..1_101 {
            let index = grid.index(time);
            assert!(grid.begin(index) <= time && time < grid.begin(index + 1), "{time}");
        }
    }

    #[test]
    fn an_outline_loses_no_entry() {
        let grid = grid(0, 1_000, 10);
        let parts =
            vec![Part { at: 0, entries: 7 }, Part { at: 150, entries: 100 }, Part { at: 950, entries: 5 }];
        let mut demands = grid.nothing().demands;
        spread(&Outline { parts: parts.clone(), is_exact: false }, &grid, &mut demands);
        assert_eq!(demands.iter().map(|demand| demand.runs).sum::<u64>(), 112);
        assert_eq!(demands[5].runs, 11, "100 entries are spread over nine intervals");
        let mut demands = grid.nothing().demands;
        spread(&Outline { parts, is_exact: true }, &grid, &mut demands);
        assert_eq!([0, 1, 5, 9].map(|index: usize| demands[index].runs), [7, 100, 0, 5]);
    }
}
