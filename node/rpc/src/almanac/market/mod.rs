//! Scheduled transactions (AIP-125) as clients see them: the key, the bid, and the block of the run as far as the
//! present tells.

pub(super) mod estimate;
mod outlook;

use super::agenda::read_record;
use crate::{error, view::View};
use alloy_primitives::{B256, U64};
use almanac_index::{HistoricalState, IndexedBlock};
use almanac_schedule::{
    Record,
    calendar::Entry,
    life::read_is_stale,
    market::{BidTerms, is_shut},
    record::Status,
};
use jsonrpsee::core::RpcResult;
use outlook::Outlook;
use serde::Serialize;
use std::cell::OnceCell;

/// What only a scheduled transaction has that has not run.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RpcMarket {
    /// The name under which its door knows it.
    key: RpcKey,
    /// The most that it pays per gas.
    bid: U64,
    /// Whether it is due and waits for a price or for room.
    is_waiting: bool,
    /// While it waits: in how many more blocks it can run before it expires.
    blocks_left: Option<U64>,
    /// Whether `cancelAll`, a rotated key or a shutdown has ended it, so that `claim` returns its deposit at once.
    is_claimable: bool,
    /// The block that runs it at present prices; `null` if none does.
    expected_block: Option<U64>,
}

/// A `ScheduleMapKey`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RpcKey {
    time: U64,
    gas_priority: U64,
    txn_id: B256,
}

impl RpcKey {
    fn new(terms: &BidTerms) -> Self {
        let key = terms.key();
        Self { time: U64::from(key.time), gas_priority: U64::from(key.gas_priority), txn_id: key.txn_id }
    }
}

/// Tells what only scheduled transactions have. Reads what that takes once, when the first of them is met.
pub(super) struct MarketView<'v> {
    view: &'v View,
    tip: &'v IndexedBlock,
    state: &'v HistoricalState,
    outlook: OnceCell<Outlook>,
}

impl<'v> MarketView<'v> {
    /// At the last block and the state after it.
    pub(super) fn new(view: &'v View, tip: &'v IndexedBlock, state: &'v HistoricalState) -> Self {
        Self { view, tip, state, outlook: OnceCell::new() }
    }

    /// What there is to tell of a record; `None` of other doors' schedules, and of one that will not run.
    pub(super) fn of(&self, record: &Record) -> RpcResult<Option<RpcMarket>> {
        let Some(terms) = record.body.terms.market().filter(|_| record.head.status.awaits_run()) else {
            return Ok(None);
        };
        let outlook = self.outlook()?;
        let is_waiting = record.head.status == Status::Waiting;
        let is_stale = read_is_stale(self.state, record).map_err(error::internal)?;
        let is_claimable = is_stale || is_shut(&outlook.parameters);
        let expected = outlook.block_of(record).filter(|_| !is_claimable);
        Ok(Some(RpcMarket {
            key: RpcKey::new(terms),
            bid: U64::from(terms.bid),
            is_waiting,
            blocks_left: is_waiting.then(|| U64::from(record.head.until.saturating_sub(outlook.clock))),
            is_claimable,
            expected_block: expected.map(U64::from),
        }))
    }

    fn outlook(&self) -> RpcResult<&Outlook> {
        if self.outlook.get().is_none() {
            let _ = self.outlook.set(Outlook::read(self.view, self.tip, self.state)?);
        }
        Ok(self.outlook.get().expect("it was read"))
    }
}

/// The gas that an entry's run may use; none if its record cannot be read.
fn gas_of(state: &HistoricalState, entry: &Entry) -> RpcResult<u64> {
    Ok(read_record(state, entry)?.map_or(0, |record| record.body.gas_limit.0))
}
