//! Logs, and filters over logs, blocks and pending transactions.

use super::Eth;
use crate::{
    answer::{Answer, Room},
    bounds::{LOG_CHOICES_MAX, LOG_RANGE_MAX, LOGS_MAX},
    error,
    filters::{Kind, Progress, drain},
    peer::Client,
    types::RpcLog,
};
use alloy_eips::BlockNumberOrTag;
use alloy_primitives::{B256, U128};
use alloy_rpc_types_eth::{Filter, FilterBlockOption};
use almanac_index::{Index, LogFilter, LogsError};
use jsonrpsee::{Extensions, core::RpcResult, proc_macros::rpc};
use serde::Serialize;

#[rpc(server)]
pub(crate) trait LogsApi {
    /// The logs that a filter asks for.
    #[method(name = "eth_getLogs")]
    async fn logs(&self, filter: Filter) -> RpcResult<Answer<Found>>;

    /// A filter over the logs of blocks to come.
    #[method(name = "eth_newFilter", with_extensions)]
    fn new_filter(&self, filter: Filter) -> RpcResult<U128>;

    /// A filter over blocks to come.
    #[method(name = "eth_newBlockFilter", with_extensions)]
    fn new_block_filter(&self) -> RpcResult<U128>;

    /// A filter over transactions that come into the pool.
    #[method(name = "eth_newPendingTransactionFilter", with_extensions)]
    fn new_pending_filter(&self) -> RpcResult<U128>;

    /// Removes a filter.
    #[method(name = "eth_uninstallFilter")]
    fn uninstall(&self, id: U128) -> RpcResult<bool>;

    /// What is new since the last time.
    #[method(name = "eth_getFilterChanges")]
    async fn changes(&self, id: U128) -> RpcResult<Answer<Changes>>;

    /// All logs that a filter asks for.
    #[method(name = "eth_getFilterLogs")]
    async fn filter_logs(&self, id: U128) -> RpcResult<Answer<Found>>;
}

/// Logs, each written when it was found.
type Found = Vec<Answer<RpcLog>>;

/// News of a filter.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Changes {
    /// Of blocks or transactions.
    Hashes(Vec<B256>),
    /// Of logs.
    Logs(Found),
}

#[jsonrpsee::core::async_trait]
impl LogsApiServer for Eth {
    async fn logs(&self, filter: Filter) -> RpcResult<Answer<Found>> {
        let filter = self.log_filter(&filter)?;
        let index = self.view.index.clone();
        self.heavy.answer(NARROWER, move || find_logs(&index, &filter)).await
    }

    fn new_filter(&self, request: &Extensions, filter: Filter) -> RpcResult<U128> {
        let wanted = self.log_filter(&filter)?;
        // It tells of blocks from now on, or from a later one if the client says so; or up to one.
        let next = wanted.from.max(self.view.index.height().saturating_add(1));
        let progress = Progress::after(next.saturating_sub(1), &self.heads);
        let from = open_start(&filter).unwrap_or(wanted.from);
        let to = open_end(&filter).unwrap_or(wanted.to);
        let whole = LogFilter { from, to, ..wanted };
        self.add_filter(request, Kind::Logs(whole, progress))
    }

    fn new_block_filter(&self, request: &Extensions) -> RpcResult<U128> {
        let progress = Progress::after(self.view.index.height(), &self.heads);
        self.add_filter(request, Kind::Blocks(progress))
    }

    fn new_pending_filter(&self, request: &Extensions) -> RpcResult<U128> {
        let pending = self.admission.pool().listen();
        self.add_filter(request, Kind::Pending(pending))
    }

    fn uninstall(&self, id: U128) -> RpcResult<bool> {
        Ok(self.filters.remove(id.to()))
    }

    async fn changes(&self, id: U128) -> RpcResult<Answer<Changes>> {
        let tip = self.view.index.height();
        let news = self.filters.with(id.to(), |kind| match kind {
            Kind::Blocks(progress) => News::Blocks(progress.advance(tip, &self.heads)),
            Kind::Logs(filter, progress) => {
                let range = progress.advance(tip, &self.heads);
                // What has no start of its own starts where it was made.
                let from = if filter.from == TIP { 0 } else { filter.from };
                let (from, to) = ((*range.start()).max(from), (*range.end()).min(filter.to));
                News::Logs(LogFilter { from, to, ..filter.clone() })
            }
            Kind::Pending(pending) => News::Pending(drain(pending)),
        });
        let (news, index) = (news.map_err(error::refused)?, self.view.index.clone());
        let tell = move || match news {
            News::Pending(hashes) => Ok(Changes::Hashes(hashes)),
            News::Blocks(heights) => hashes(&index, heights).map(Changes::Hashes),
            News::Logs(filter) => find_logs(&index, &filter).map(Changes::Logs),
        };
        self.heavy.answer(NARROWER, tell).await
    }

    async fn filter_logs(&self, id: U128) -> RpcResult<Answer<Found>> {
        let filter = self.filters.with(id.to(), |kind| match kind {
            Kind::Logs(filter, _) => Some(filter.clone()),
            Kind::Blocks(_) | Kind::Pending(_) => None,
        });
        let filter = filter.map_err(error::refused)?;
        let filter = filter.ok_or_else(|| error::invalid("the filter is not one over logs"))?;
        let tip = self.view.index.height();
        let (from, to) = (if filter.from == TIP { tip } else { filter.from }, filter.to.min(tip));
        let index = self.view.index.clone();
        let find = move || find_logs(&index, &LogFilter { from, to, ..filter });
        self.heavy.answer(NARROWER, find).await
    }
}

enum News {
    Blocks(std::ops::RangeInclusive<u64>),
    Logs(LogFilter),
    Pending(Vec<B256>),
}

impl Eth {
    fn add_filter(&self, request: &Extensions, kind: Kind) -> RpcResult<U128> {
        let id = self.filters.add(request.get::<Client>().copied(), kind);
        id.map(U128::from).map_err(error::limit)
    }

    /// A client's filter as the index takes it, within all limits.
    pub(super) fn log_filter(&self, filter: &Filter) -> RpcResult<LogFilter> {
        let (from, to) = match filter.block_option {
            FilterBlockOption::AtBlockHash(hash) => {
                let number = self.view.number(Some(hash.into()))?;
                (number, number)
            }
            FilterBlockOption::Range { from_block, to_block } => {
                (self.height_of(from_block)?, self.height_of(to_block)?)
            }
        };
        // Clients ask beyond the last block; there is nothing to search there.
        let searched_to = to.min(self.view.index.height()).max(from);
        if from > to {
            return Err(error::invalid(format!("the range ends at block {to}, before it begins at {from}")));
        }
        if searched_to - from >= LOG_RANGE_MAX {
            let given = searched_to - from + 1;
            return Err(error::limit(format!(
                "a range of {given} blocks is above the limit of {LOG_RANGE_MAX}"
            )));
        }
        let addresses: Vec<_> = filter.address.iter().copied().collect();
        let topics = filter.topics.each_ref().map(|topics| topics.iter().copied().collect::<Vec<_>>());
        let widest = topics.iter().map(Vec::len).chain([addresses.len()]).max().unwrap_or_default();
        if widest > LOG_CHOICES_MAX {
            return Err(error::limit(format!(
                "{widest} addresses or topics at one position are above the limit of {LOG_CHOICES_MAX}"
            )));
        }
        Ok(LogFilter { from, to, addresses, topics })
    }

    fn height_of(&self, tag: Option<BlockNumberOrTag>) -> RpcResult<u64> {
        match tag.unwrap_or_default() {
            BlockNumberOrTag::Number(number) => Ok(number),
            BlockNumberOrTag::Earliest => Ok(0),
            _ => Ok(self.view.index.height()),
        }
    }
}

/// How to ask for fewer logs.
const NARROWER: &str = "ask for fewer blocks, addresses or topics";

fn hashes(index: &Index, heights: std::ops::RangeInclusive<u64>) -> RpcResult<Vec<B256>> {
    let hashes = heights.take(LOGS_MAX).map(|height| index.hash(height).map_err(error::internal));
    hashes.filter_map(Result::transpose).collect()
}

/// Writes each log as soon as it is found, so that what does not fit an answer ends the search.
fn find_logs(index: &Index, filter: &LogFilter) -> RpcResult<Found> {
    let (mut room, mut found, mut refusal) = (Room::new(NARROWER), Vec::new(), None);
    let searched = index.search_logs(filter, LOGS_MAX, |entry| match room.write(&RpcLog::new(&entry)) {
        Ok(log) => {
            found.push(log);
            true
        }
        Err(reason) => {
            refusal = Some(reason);
            false
        }
    });
    match searched {
        Ok(()) => Ok(found),
        Err(LogsError::Store(reason)) => Err(error::internal(reason)),
        Err(not_kept @ LogsError::NotKept { .. }) => Err(error::invalid(not_kept)),
        // How far there was room is worth more than that there was none.
        Err(LogsError::TooLarge { complete_to: None }) => {
            Err(refusal.unwrap_or_else(|| error::limit(NARROWER)))
        }
        Err(too_much) => Err(error::limit(format!("query returned too much: {too_much}"))),
    }
}

/// Stands for the last block at the time of asking.
const TIP: u64 = u64::MAX;

/// A filter without a start, or with "latest" as its start, is about the last block, whichever that is.
fn open_start(filter: &Filter) -> Option<u64> {
    match filter.block_option {
        FilterBlockOption::Range { from_block: None | Some(BlockNumberOrTag::Latest), .. } => Some(TIP),
        FilterBlockOption::Range { .. } | FilterBlockOption::AtBlockHash(_) => None,
    }
}

/// A filter without an end, or with "latest" as its end, goes on.
fn open_end(filter: &Filter) -> Option<u64> {
    match filter.block_option {
        FilterBlockOption::Range {
            to_block: Some(BlockNumberOrTag::Number(_) | BlockNumberOrTag::Earliest),
            ..
        } => None,
        FilterBlockOption::Range { .. } => Some(TIP),
        FilterBlockOption::AtBlockHash(_) => None,
    }
}
