//! Searches the calls of a range of blocks.

use crate::{
    answer::{Answer, Room},
    bounds::{TRACE_FILTER_ADDRESSES_MAX, TRACE_FILTER_BLOCKS_MAX},
    error,
    view::View,
};
use alloy_rpc_types_trace::{filter::TraceFilter, parity::LocalizedTransactionTrace};
use almanac_trace::{CallTraces, Limits};
use jsonrpsee::core::RpcResult;
use std::time::Instant;

/// How to ask for less.
pub(crate) const LESS: &str = "give a shorter range, or a smaller count";

/// The calls that a filter asks for, in order. The time of a block's trace holds for the whole search.
pub(crate) fn search(view: &View, filter: &TraceFilter) -> RpcResult<Vec<Answer<LocalizedTransactionTrace>>> {
    check_addresses(filter)?;
    let blocks = blocks(view, filter)?;
    let begin = Instant::now();
    let (matcher, mut skip) = (filter.matcher(), filter.after.unwrap_or(0));
    let wanted = filter.count.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX);
    let (mut found, mut room) = (Vec::new(), Room::new(LESS));
    for number in blocks {
        if found.len() >= wanted {
            break;
        }
        let time_max = Limits::BLOCK.time_max.saturating_sub(begin.elapsed());
        let block = view.block(Some(number.into()))?;
        let limits = Limits { time_max, ..Limits::BLOCK };
        let traces = view.retrace_all(&block, &CallTraces, limits).map_err(|error| error::trace(&error))?;
        for trace in traces.into_iter().flatten().filter(|trace| matcher.matches(&trace.trace)) {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            if found.len() >= wanted {
                break;
            }
            found.push(room.write(&trace)?);
        }
    }
    Ok(found)
}

fn check_addresses(filter: &TraceFilter) -> RpcResult<()> {
    let given = filter.from_address.len().max(filter.to_address.len());
    if given > TRACE_FILTER_ADDRESSES_MAX {
        return Err(error::limit(format!(
            "{given} addresses on one side are above the limit of {TRACE_FILTER_ADDRESSES_MAX}"
        )));
    }
    Ok(())
}

fn blocks(view: &View, filter: &TraceFilter) -> RpcResult<std::ops::RangeInclusive<u64>> {
    let tip = view.index.height();
    let (from, to) = (filter.from_block.unwrap_or(0), filter.to_block.unwrap_or(tip).min(tip));
    let count = to.saturating_add(1).saturating_sub(from);
    if count > TRACE_FILTER_BLOCKS_MAX {
        return Err(error::limit(format!(
            "{count} blocks from {from} to {to} are above the limit of {TRACE_FILTER_BLOCKS_MAX}: give a shorter range"
        )));
    }
    Ok(from..=to)
}
