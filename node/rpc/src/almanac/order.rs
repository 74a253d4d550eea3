//! `almanac_preview` of a transaction that is not sent yet: what it would book, what that costs, and what its runs would
//! do.

use super::preview::{Attempt as Runs, Preview, PreviewedOrder, parent_at};
use crate::{
    bounds::PREVIEW_TIME_MAX,
    error,
    eth::{
        attempt::{Attempt, Overrides},
        request::CallRequest,
    },
    own_errors::own_error,
    revert,
    types::RpcTime,
    view::View,
};
use alloy_eips::BlockId;
use alloy_primitives::U64;
use almanac_exec::CallResult;
use almanac_primitives::{Header, Outcome, ScheduleId, StateDiff, StateKey, TimestampMs};
use jsonrpsee::core::RpcResult;
use revm::inspector::NoOpInspector;
use serde_json::Value;

/// The transaction, as `eth_call` takes it.
pub(super) fn request(given: Value) -> RpcResult<CallRequest> {
    serde_json::from_value(given).map_err(|reason| error::invalid(format!("transaction: {reason}")))
}

/// Tries the transaction in the next block, and then the first `count` runs of what it books.
pub(super) fn preview(view: &View, request: CallRequest, count: usize) -> RpcResult<Preview> {
    let mut attempt = Attempt::new(view, Some(BlockId::pending()), Overrides::default(), PREVIEW_TIME_MAX)?;
    let call = attempt.call(request)?;
    let tried = attempt.step(call, false, NoOpInspector);
    let (result, diff) = tried.map_err(|error| error::attempt(&error))?;
    let (number, base_fee) = (attempt.base.number(), attempt.environment.base_fee);
    let mut order =
        PreviewedOrder { gas_used: U64::from(result.gas_used.0), costs: None, due: None, error: None };
    if !result.outcome.is_success() {
        order.error = Some(why_not(&result));
        return Ok(Preview::new(None, number, base_fee).of_order(order));
    }
    let id = only_booked(&diff)?;
    attempt.state.apply(&diff);
    let runs = Runs {
        view,
        id,
        parent: parent_at(base_fee, &header_of(&attempt)),
        earliest: TimestampMs(attempt.environment.timestamp.0.saturating_add(1)),
        base_fee,
        parameters: attempt.environment.parameters,
        state: attempt.state,
    };
    if let Some(record) = runs.record()? {
        (order.costs, order.due) = (Some(record.escrow.0), record.head.due.map(RpcTime::new));
    }
    runs.preview(Preview::new(Some(id), number, base_fee).of_order(order), count)
}

/// Header of the block with the transaction, as far as it is known.
fn header_of(attempt: &Attempt) -> Header {
    let environment = &attempt.environment;
    Header {
        number: environment.number,
        parent_hash: attempt.base.hash,
        timestamp: environment.timestamp,
        gas_limit: environment.gas_limit,
        ..attempt.base.block.header.clone()
    }
}

/// The schedule that a transaction books.
fn only_booked(diff: &StateDiff) -> RpcResult<ScheduleId> {
    let booked = diff.changes().iter().filter_map(|change| match change.key {
        StateKey::Body(id) if change.old.is_none() && change.new.is_some() => Some(id),
        _ => None,
    });
    match booked.collect::<Vec<_>>()[..] {
        [id] => Ok(id),
        [] => Err(error::invalid("the transaction would succeed, but it books nothing")),
        ref many => {
            let count = many.len();
            Err(error::invalid(format!("the transaction books {count} schedules: preview one at a time")))
        }
    }
}

/// Why the transaction fails, with the errors of the chain's own contracts in words.
fn why_not(result: &CallResult) -> String {
    match &result.outcome {
        Outcome::Reverted(_) => match own_error(&result.output) {
            Some(error) => error.words,
            None => format!("execution reverted: {}", revert::explain(&result.output)),
        },
        Outcome::Halted(halt) => format!("execution stopped: {halt:?}"),
        Outcome::Success => String::new(),
    }
}
