//! What the last blocks and those that wait tell of the market lane's next blocks.
//!
//! A model, not a promise: blocks keep their pace, user transactions keep their prices, and whatever bids more goes
//! first. Gas counts by limits.

use super::gas_of;
use crate::{
    bounds::{ESTIMATE_BLOCKS_MAX, ESTIMATE_SCHEDULES_MAX},
    error,
    eth::fees::upcoming,
    reading::Reading,
    view::View,
};
use almanac_exec::environment::read_parameters;
use almanac_index::{HistoricalState, IndexedBlock};
use almanac_primitives::{
    GasPrice, Header, Lane, ScheduleId, TimestampMs,
    params::{MARKET_READY_MAX, Parameters},
};
use almanac_schedule::{
    Calendar, Record,
    calendar::{Entry, Priority, Queue},
    is_held,
    market::MarketLane,
};
use jsonrpsee::core::RpcResult;

/// Advice in errors about blocks that are too large to read.
const LATER: &str = "ask again later";

/// The market lane after the last block.
#[derive(Clone, Debug)]
pub(in crate::almanac) struct Outlook {
    /// Header of the next block, as far as it is known.
    pub(super) next: Header,
    pub(super) parameters: Parameters,
    /// The lane's clock, in which waiting is counted.
    pub(super) clock: u64,
    pub(super) recent: Recent,
    waiting: Crowd,
}

/// What the last blocks held.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent {
    /// Number of blocks.
    pub(super) blocks: u64,
    /// Time from one to the next; `None` of a chain with one block.
    pub(super) pace_ms: Option<u64>,
    /// By how much the highest price of a user transaction exceeded the base fee, block by block, the lowest first.
    pub(super) above_base_fee: Vec<u128>,
    /// Prices that users paid above the base fee, the highest first, each with the gas of all that paid as much.
    paid: Vec<(u128, u64)>,
    /// Gas of cron runs, which go first whatever they pay.
    cron_gas: u64,
}

/// Runs in the order in which they get room.
#[derive(Clone, Debug, Default)]
pub(super) struct Crowd {
    /// Each with the gas of all up to and including it.
    runs: Vec<(Entry, u64)>,
    /// Whether there are more than were read, behind all of these.
    is_cut: bool,
}

impl Outlook {
    /// Reads a bounded number of blocks and records.
    pub(in crate::almanac) fn read(
        view: &View,
        tip: &IndexedBlock,
        state: &HistoricalState,
    ) -> RpcResult<Self> {
        let parameters = read_parameters(state).map_err(error::internal)?;
        let next = upcoming(tip, state, &parameters, (view.next_time)())?;
        let lane = MarketLane::read(state).map_err(error::internal)?;
        let waiting =
            Calendar::new(state).due_from(Queue::Waiting, u64::MAX, None, ESTIMATE_SCHEDULES_MAX + 1);
        Ok(Self {
            recent: Recent::read(view, tip)?,
            waiting: Crowd::read(state, waiting.map_err(error::internal)?)?,
            // A damaged lane pauses, and its runs wait for governance.
            clock: lane.map_or(0, |lane| lane.clock),
            next,
            parameters,
        })
    }

    /// The block that runs a record, at present prices.
    pub(super) fn block_of(&self, record: &Record) -> Option<u64> {
        let (bid, due) = (record.head.priority, record.head.due?);
        let entry = record.head.entries(record.id).find(|entry| entry.queue != Queue::Expiring)?;
        let first = self.first_block(due)?;
        let later = self.blocks_behind(&entry, bid, record.body.gas_limit.0, first, &Crowd::default())?;
        first.checked_add(later)
    }

    /// The first block at or after a time.
    pub(super) fn first_block(&self, due: TimestampMs) -> Option<u64> {
        let ms = due.0.saturating_sub(self.next.timestamp.0);
        let blocks = if ms == 0 { 0 } else { ms.div_ceil(self.recent.pace_ms?) };
        self.next.number.checked_add(blocks)
    }

    /// How many blocks after `first` a run gets room, behind those that wait now and `rivals` that become due with it.
    /// `None` if it does not run while the lane and prices stay as they are.
    pub(super) fn blocks_behind(
        &self,
        entry: &Entry,
        bid: u64,
        gas: u64,
        first: u64,
        rivals: &Crowd,
    ) -> Option<u64> {
        if is_held(Lane::Market, &self.parameters) || u128::from(bid) < self.next.base_fee.0 {
            return None;
        }
        let room = self.room(bid).filter(|room| *room >= gas)?;
        let ready = self.parameters.get(MARKET_READY_MAX).max(1);
        let (waiting_gas, waiting_runs) = self.waiting.before(entry)?;
        let (rival_gas, rival_runs) = rivals.before(entry)?;
        // Those that wait now go on running until then.
        let before = first.saturating_sub(self.next.number);
        let gas_left = waiting_gas.saturating_sub(before.saturating_mul(room)).saturating_add(rival_gas);
        let runs_left = waiting_runs.saturating_sub(before.saturating_mul(ready)).saturating_add(rival_runs);
        let by_gas = gas_left.saturating_add(gas).div_ceil(room) - 1;
        Some(by_gas.max(runs_left / ready))
    }

    /// Gas that a block leaves to runs with this bid: users that pay as much go first.
    fn room(&self, bid: u64) -> Option<u64> {
        let above = u128::from(bid).checked_sub(self.next.base_fee.0)?;
        let taken = self.recent.gas_paying(above).saturating_add(self.recent.cron_gas);
        let each = taken.checked_div(self.recent.blocks).unwrap_or(0);
        self.parameters.block_gas_max().0.checked_sub(each).filter(|room| *room > 0)
    }

    /// What becomes due with a run at this time, as far as it competes with it: in the time of one block before it.
    /// `None` if they are too many to read.
    pub(super) fn rivals(&self, state: &HistoricalState, due: TimestampMs) -> RpcResult<Option<Crowd>> {
        let from = due.0.saturating_sub(self.recent.pace_ms.unwrap_or(0).max(1) - 1);
        let from =
            Entry { queue: Queue::Market, at: from, priority: Priority(u64::MAX), schedule: ScheduleId(0) };
        let found =
            Calendar::new(state).due_from(Queue::Market, due.0, Some(from), ESTIMATE_SCHEDULES_MAX + 1);
        let crowd = Crowd::read(state, found.map_err(error::internal)?)?;
        Ok(Some(crowd).filter(|crowd| !crowd.is_cut))
    }

    /// What a run pays per gas in a block whose highest price is so much above the base fee.
    pub(super) fn price_like(&self, above_base_fee: u128, bid: u64) -> GasPrice {
        GasPrice(self.next.base_fee.0.saturating_add(above_base_fee).min(bid.into()))
    }
}

impl Recent {
    fn read(view: &View, tip: &IndexedBlock) -> RpcResult<Self> {
        let last = tip.number();
        // Genesis has a time, and nothing that paid.
        let first = last.saturating_sub(ESTIMATE_BLOCKS_MAX).max(view.index.floor());
        let (mut recent, mut reading) = (Self::default(), Reading::new(LATER));
        for number in (first + 1)..=last {
            let block = view.block(Some(number.into()))?;
            reading.count(&block)?;
            recent.add(&block);
        }
        let since = view.index.header(first).map_err(error::internal)?;
        recent.pace_ms = since.and_then(|since| {
            let ms = tip.block.header.timestamp.0.saturating_sub(since.timestamp.0);
            ms.checked_div(recent.blocks).map(|each| each.max(1))
        });
        recent.finish();
        Ok(recent)
    }

    fn add(&mut self, block: &IndexedBlock) {
        let base_fee = block.block.header.base_fee.0;
        let mut top = 0;
        let ran = block.receipts.iter().zip(&block.parties).skip(block.unseen());
        for (receipt, parties) in ran {
            let above = receipt.effective_gas_price.0.saturating_sub(base_fee);
            match parties.run.as_ref().map(|run| run.lane) {
                None => {
                    self.paid.push((above, receipt.gas_used.0));
                    top = top.max(above);
                }
                Some(Lane::Cron) => self.cron_gas = self.cron_gas.saturating_add(receipt.gas_used.0),
                Some(Lane::Market | Lane::Reserved | Lane::Spare | Lane::Signed) => {}
            }
        }
        self.above_base_fee.push(top);
        self.blocks += 1;
    }

    fn finish(&mut self) {
        self.above_base_fee.sort_unstable();
        self.paid.sort_unstable_by(|a, b| b.cmp(a));
        let mut sum = 0u64;
        for (_, gas) in &mut self.paid {
            sum = sum.saturating_add(*gas);
            *gas = sum;
        }
    }

    /// The gas of all users together that paid at least this much above the base fee.
    fn gas_paying(&self, above: u128) -> u64 {
        let count = self.paid.partition_point(|(paid, _)| *paid >= above);
        count.checked_sub(1).map_or(0, |last| self.paid[last].1)
    }
}

impl Crowd {
    fn read(state: &HistoricalState, mut entries: Vec<Entry>) -> RpcResult<Self> {
        let is_cut = entries.len() > ESTIMATE_SCHEDULES_MAX;
        entries.truncate(ESTIMATE_SCHEDULES_MAX);
        entries.sort_by_cached_key(Entry::market_order);
        let (mut runs, mut sum) = (Vec::with_capacity(entries.len()), 0u64);
        for entry in entries {
            sum = sum.saturating_add(gas_of(state, &entry)?);
            runs.push((entry, sum));
        }
        Ok(Self { runs, is_cut })
    }

    /// The gas and the number of those that go before an entry; `None` if it may be behind more than were read.
    fn before(&self, entry: &Entry) -> Option<(u64, u64)> {
        let count = self.runs.partition_point(|(run, _)| run.market_order() < entry.market_order());
        if self.is_cut && count == self.runs.len() {
            return None;
        }
        let gas = count.checked_sub(1).map_or(0, |last| self.runs[last].1);
        Some((gas, count as u64))
    }
}
