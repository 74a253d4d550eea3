//! Somebody's transactions, page by page. A page never ends inside a block: the next one begins at another block.

use crate::{
    error,
    types::{OtsPage, RpcTransaction, dated_receipt},
    view::View,
};
use alloy_primitives::Address;
use alloy_rpc_types_trace::otterscan::InternalOperation;
use almanac_index::{Location, Order, Sent};
use almanac_primitives::StateKey;
use almanac_trace::{InternalOperations, Limits};
use jsonrpsee::core::RpcResult;
use std::ops::RangeInclusive;

/// Most transactions that a page may be asked for.
const PAGE_MAX: u64 = 500;

/// A size that a page may have.
pub(crate) fn checked_size(size: u64) -> RpcResult<u64> {
    match size {
        1..=PAGE_MAX => Ok(size),
        _ => Err(error::invalid(format!("page size {size} is not in 1..={PAGE_MAX}"))),
    }
}

/// The page that is next to a block, backwards or forwards in time; block 0 stands for the end to begin at.
pub(crate) fn page(view: &View, address: Address, block: u64, size: u64, order: Order) -> RpcResult<OtsPage> {
    let size = usize::try_from(checked_size(size)?).map_err(error::internal)?;
    let find = |range: &RangeInclusive<Location>, limit| find(view, address, range, order, limit);
    let range = beside(block, order);
    let mut found = find(&range, size)?;
    let mut is_last = true;
    if let Some(last) = found.last().map(|sent| sent.location.number) {
        let in_last_block = find(&(Location::first_of(last)..=Location::last_of(last)), usize::MAX)?;
        found.retain(|sent| sent.location.number != last);
        found.extend(in_last_block);
        is_last = find(&beside(last, order), 1)?.is_empty();
    }
    let (first_page, last_page) = match order {
        Order::Descending => (block == 0, is_last),
        Order::Ascending => {
            found.reverse();
            (is_last, block == 0)
        }
    };
    let (txs, receipts) = show(view, &found)?;
    Ok(OtsPage { txs, receipts, first_page, last_page })
}

/// Transactions in a range that somebody sent or received, or in which money came to or from him on the way.
fn find(
    view: &View,
    address: Address,
    range: &RangeInclusive<Location>,
    order: Order,
    limit: usize,
) -> RpcResult<Vec<Sent>> {
    let mut found =
        view.index.transactions_involving(address, range, order, limit).map_err(error::internal)?;
    // Whoever got money inside a call has another balance after that block; which call, a trace tells.
    let (account, heights) = (StateKey::Account(address), range.start().number..=range.end().number);
    let changed = view.index.changes_of(&account, &heights, order, limit).map_err(error::internal)?;
    for height in changed {
        found.extend(paid_inside(view, address, height)?);
    }
    Ok(order.first(found, limit))
}

/// The transactions of a block in which an address was paid, or paid, by a call inside.
fn paid_inside(view: &View, address: Address, height: u64) -> RpcResult<Vec<Sent>> {
    let block = view.block(Some(height.into()))?;
    let traces = view.retrace_all(&block, &InternalOperations, Limits::BLOCK);
    let traces = traces.map_err(|error| error::trace(&error))?;
    let has_part = |operation: &InternalOperation| operation.from == address || operation.to == address;
    let paid = (block.unseen()..).zip(traces).filter(|(_, operations)| operations.iter().any(has_part));
    let sent = |(index, _): (usize, _)| {
        Some(Sent {
            location: Location { number: height, index },
            hash: block.receipts.get(index)?.transaction_hash,
        })
    };
    Ok(paid.filter_map(sent).collect())
}

/// Everything on one side of a block. Nobody has a part in genesis, so 0 is free to mean: from the end.
fn beside(block: u64, order: Order) -> RangeInclusive<Location> {
    let (first, last) = match (order, block) {
        (_, 0) => (0, u64::MAX),
        (Order::Descending, block) => (0, block - 1),
        (Order::Ascending, block) => (block.saturating_add(1), u64::MAX),
    };
    Location::first_of(first)..=Location::last_of(last)
}

fn show(view: &View, found: &[Sent]) -> RpcResult<(Vec<RpcTransaction>, Vec<serde_json::Value>)> {
    let mut shown = Vec::with_capacity(found.len());
    for Sent { location, .. } in found {
        let block = view.block(Some(location.number.into()))?;
        let transaction = RpcTransaction::of_block(&block, location.index, view.chain_id);
        shown.extend(transaction.zip(dated_receipt(&block, location.index)));
    }
    Ok(shown.into_iter().unzip())
}
