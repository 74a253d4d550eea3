//! Transactions of an account, page by page. A page never ends inside a block.

use crate::{
    answer::{Answer, Room},
    bounds::{OTTERSCAN_PAGE_MAX, OTTERSCAN_TIME_MAX},
    error,
    reading::Reading,
    types::{DatedReceipt, OtsPage, RpcTransaction},
    view::View,
};
use alloy_primitives::Address;
use alloy_rpc_types_trace::otterscan::InternalOperation;
use almanac_index::{Direction, IndexedBlock, Location, Sent};
use almanac_primitives::StateKey;
use almanac_trace::{InternalOperations, Limits};
use jsonrpsee::core::RpcResult;
use std::{ops::RangeInclusive, sync::Arc, time::Instant};

/// How to ask for less.
pub(crate) const LESS: &str = "ask for a smaller page";

/// A size that a page may have.
pub(crate) fn checked_size(size: u64) -> RpcResult<u64> {
    match size {
        1..=OTTERSCAN_PAGE_MAX => Ok(size),
        _ => Err(error::invalid(format!("page size {size} is not in 1..={OTTERSCAN_PAGE_MAX}"))),
    }
}

/// The page that is next to a block, backwards or forwards in time; block 0 stands for the end to begin at.
pub(crate) fn page(
    view: &View,
    address: Address,
    block: u64,
    size: u64,
    order: Direction,
) -> RpcResult<OtsPage> {
    let size = usize::try_from(checked_size(size)?).map_err(error::internal)?;
    let deadline = Instant::now() + OTTERSCAN_TIME_MAX;
    let find = |range: &RangeInclusive<Location>, limit| find(view, address, range, order, limit, deadline);
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
        Direction::Descending => (block == 0, is_last),
        Direction::Ascending => {
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
    order: Direction,
    limit: usize,
    deadline: Instant,
) -> RpcResult<Vec<Sent>> {
    let mut found =
        view.index.transactions_involving(address, range, order, limit).map_err(error::internal)?;
    // Whoever got money inside a call has another balance after that block; which call, a trace tells.
    let (account, heights) = (StateKey::Account(address), range.start().number..=range.end().number);
    let changed = view.index.changes_of(&account, &heights, order, limit).map_err(error::internal)?;
    for height in changed {
        found.extend(paid_inside(view, address, height, deadline)?);
    }
    Ok(order.first(found, limit))
}

/// The transactions of a block in which an address was paid, or paid, by a call inside.
fn paid_inside(view: &View, address: Address, height: u64, deadline: Instant) -> RpcResult<Vec<Sent>> {
    let block = view.block(Some(height.into()))?;
    // One deadline for the whole page: somebody may be paid in every block.
    let time_max = deadline.saturating_duration_since(Instant::now()).min(Limits::BLOCK.time_max);
    let traces = view.retrace_all(&block, &InternalOperations, Limits { time_max, ..Limits::BLOCK });
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
fn beside(block: u64, order: Direction) -> RangeInclusive<Location> {
    let (first, last) = match (order, block) {
        (_, 0) => (0, u64::MAX),
        (Direction::Descending, block) => (0, block - 1),
        (Direction::Ascending, block) => (block.saturating_add(1), u64::MAX),
    };
    Location::first_of(first)..=Location::last_of(last)
}

/// Transactions and their receipts, each written.
type Shown = (Vec<Answer<RpcTransaction>>, Vec<Answer<DatedReceipt>>);

fn show(view: &View, found: &[Sent]) -> RpcResult<Shown> {
    let (mut shown, mut room, mut reading) = (Vec::new(), Room::new(LESS), Reading::new(LESS));
    let mut last: Option<Arc<IndexedBlock>> = None;
    for Sent { location, .. } in found {
        let block = match last.take().filter(|block| block.number() == location.number) {
            Some(block) => block,
            None => {
                let block = view.block(Some(location.number.into()))?;
                reading.count(&block)?;
                block
            }
        };
        let transaction = RpcTransaction::of_block(&block, location.index, view.chain.id);
        if let Some((transaction, receipt)) = transaction.zip(DatedReceipt::new(&block, location.index)) {
            shown.push((room.write(&transaction)?, room.write(&receipt)?));
        }
        last = Some(block);
    }
    Ok(shown.into_iter().unzip())
}
