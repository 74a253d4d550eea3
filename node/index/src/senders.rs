//! Finds the transactions of a sender, from either end.

use crate::{
    block::Location,
    error::Fault,
    rows,
    store::{Row, Table, View},
};
use alloy_primitives::{Address, TxHash};
use std::ops::RangeInclusive;

/// Which end of the range comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Oldest first.
    Ascending,
    /// Newest first.
    Descending,
}

/// A transaction that somebody sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Where it ran.
    pub location: Location,
    /// Its hash.
    pub hash: TxHash,
}

/// At most `limit` transactions that `sender` sent in a range.
pub(crate) fn transactions_of(
    view: &View<'_>,
    sender: Address,
    range: &RangeInclusive<Location>,
    order: Order,
    limit: usize,
) -> Result<Vec<Sent>, Fault> {
    let (first, last) = (rows::sent(sender, *range.start()), rows::sent(sender, *range.end()));
    let found = view.range(Table::Senders, &first..=&last);
    let found: Box<dyn Iterator<Item = _>> = match order {
        Order::Ascending => found,
        Order::Descending => Box::new(found.rev()),
    };
    let read = |row: Result<Row, Fault>| {
        let (key, hash) = row?;
        Ok(Sent { location: rows::read_sent(&key)?, hash: rows::read_hash("senders", &hash)? })
    };
    found.take(limit).map(read).collect()
}
