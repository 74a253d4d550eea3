//! Somebody's transactions, page by page. A page never ends inside a block: the next one begins at another block.

use crate::{
    error,
    types::{OtsPage, RpcTransaction, dated_receipt},
    view::View,
};
use alloy_primitives::Address;
use almanac_index::{Location, Order, Sent};
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
    let find = |range: &RangeInclusive<Location>, limit| {
        view.index.transactions_involving(address, range, order, limit).map_err(error::internal)
    };
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
