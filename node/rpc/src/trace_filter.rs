//! Looks through the calls of a range of blocks.

use crate::{error, view::View};
use alloy_rpc_types_trace::{
    filter::TraceFilter,
    parity::{Action, LocalizedTransactionTrace, TraceOutput},
};
use almanac_trace::{CallTraces, Limits};
use jsonrpsee::core::RpcResult;
use std::time::Instant;

/// Blocks that one search may look through. Each is run again.
const BLOCKS_MAX: u64 = 1_000;

/// What one trace takes, beside what went in and came out.
const TRACE_BYTES: usize = 512;

/// The calls that a filter asks for, in order. All limits of a block's trace hold for the whole search.
pub(crate) fn search(view: &View, filter: &TraceFilter) -> RpcResult<Vec<LocalizedTransactionTrace>> {
    let blocks = blocks(view, filter)?;
    let begin = Instant::now();
    let (matcher, mut skip) = (filter.matcher(), filter.after.unwrap_or(0));
    let wanted = filter.count.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX);
    let (mut found, mut bytes) = (Vec::new(), 0usize);
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
            bytes = bytes.saturating_add(size(&trace));
            found.push(trace);
        }
        if u64::try_from(bytes).unwrap_or(u64::MAX) > Limits::BLOCK.bytes_max {
            return Err(error::limit(format!(
                "the traces up to block {number} are too many: ask for fewer blocks"
            )));
        }
    }
    found.truncate(wanted);
    Ok(found)
}

fn blocks(view: &View, filter: &TraceFilter) -> RpcResult<std::ops::RangeInclusive<u64>> {
    let tip = view.index.height();
    let (from, to) = (filter.from_block.unwrap_or(0), filter.to_block.unwrap_or(tip).min(tip));
    let count = to.saturating_add(1).saturating_sub(from);
    if count > BLOCKS_MAX {
        return Err(error::limit(format!(
            "{count} blocks from {from} to {to} are above the limit of {BLOCKS_MAX}: give a shorter range"
        )));
    }
    Ok(from..=to)
}

fn size(trace: &LocalizedTransactionTrace) -> usize {
    let input = match &trace.trace.action {
        Action::Call(call) => call.input.len(),
        Action::Create(creation) => creation.init.len(),
        Action::Selfdestruct(_) | Action::Reward(_) => 0,
    };
    let output = match &trace.trace.result {
        Some(TraceOutput::Call(call)) => call.output.len(),
        Some(TraceOutput::Create(creation)) => creation.code.len(),
        None => 0,
    };
    TRACE_BYTES + input + output
}
