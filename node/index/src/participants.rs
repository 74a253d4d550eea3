//! Finds the transactions in which an address took part, in either order.

use crate::{
    block::Location,
    error::Fault,
    read, rows,
    store::{Row, Table, View},
};
use alloy_primitives::{Address, TxHash};
use std::ops::RangeInclusive;

/// Which end of the range comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Oldest first.
    #[default]
    Ascending,
    /// Newest first.
    Descending,
}

impl Direction {
    /// The first `limit` of what was found in several places, each once.
    pub fn first(self, mut found: Vec<Sent>, limit: usize) -> Vec<Sent> {
        found.sort_unstable_by_key(|sent| sent.location);
        found.dedup();
        if self == Self::Descending {
            found.reverse();
        }
        found.truncate(limit);
        found
    }

    /// Puts items into this order.
    pub(crate) fn of<'a, T: 'a>(
        self,
        ascending: impl DoubleEndedIterator<Item = T> + 'a,
    ) -> Box<dyn Iterator<Item = T> + 'a> {
        match self {
            Self::Ascending => Box::new(ascending),
            Self::Descending => Box::new(ascending.rev()),
        }
    }
}

/// A transaction in which an address took part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Where it ran.
    pub location: Location,
    /// Its hash.
    pub hash: TxHash,
}

/// The role of an address in a transaction. A prologue has no participants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Part {
    /// Its key signed it.
    Signed = 0,
    /// It is the sender of a run, which is not signed.
    Ran = 1,
    /// It was called or paid.
    Received = 2,
    /// It is the contract that the transaction created.
    Created = 3,
    /// Its key signed it, without a sequence number: those of [`Part::Signed`] ascend, these do not.
    Orderless = 4,
}

/// The roles of a sender.
pub(crate) const SENDER: &[Part] = &[Part::Signed, Part::Ran, Part::Orderless];
/// The roles of an account whose key signed.
pub(crate) const SIGNER: &[Part] = &[Part::Signed, Part::Orderless];
/// All roles.
pub(crate) const ANYONE: &[Part] = &[Part::Signed, Part::Ran, Part::Received, Part::Created, Part::Orderless];

/// At most `limit` transactions in a range in which an address had one of these roles, each once.
pub(crate) fn transactions_of(
    view: &View<'_>,
    address: Address,
    parts: &[Part],
    range: &RangeInclusive<Location>,
    direction: Direction,
    limit: usize,
) -> Result<Vec<Sent>, Fault> {
    let mut found = Vec::new();
    for part in parts {
        found.extend(rows_of(view, address, *part, range, direction, limit)?);
    }
    // Whoever pays himself has two parts in one transaction.
    Ok(direction.first(found, limit))
}

fn rows_of(
    view: &View<'_>,
    address: Address,
    part: Part,
    range: &RangeInclusive<Location>,
    direction: Direction,
    limit: usize,
) -> Result<Vec<Sent>, Fault> {
    let first = rows::involved(address, part, *range.start());
    let last = rows::involved(address, part, *range.end());
    let found = direction.of(view.range(Table::Involved, &first..=&last));
    let read = |row: Result<Row, Fault>| {
        let (key, hash) = row?;
        Ok(Sent { location: rows::read_involved(&key)?, hash: rows::read_hash("involved", &hash)? })
    };
    found.take(limit).map(read).collect()
}

/// The transaction that created a contract, unless another contract did.
pub(crate) fn creation_of(view: &View<'_>, contract: Address) -> Result<Option<Sent>, Fault> {
    let whole = Location::first_of(0)..=Location::last_of(u64::MAX);
    Ok(rows_of(view, contract, Part::Created, &whole, Direction::Ascending, 1)?.pop())
}

/// The transaction that an account signed with a nonce. Not every nonce has one, because a delegation
/// (EIP-7702) uses a nonce too. Nonces ascend, so this is a binary search over blocks.
pub(crate) fn signed_with_nonce(
    view: &View<'_>,
    sender: Address,
    nonce: u64,
    tip: u64,
) -> Result<Option<Sent>, Fault> {
    let (mut low, mut end) = (0, tip.saturating_add(1));
    while low < end {
        let middle = low + (end - low) / 2;
        let upper = Location::first_of(middle)..=Location::last_of(end - 1);
        let Some(next) = rows_of(view, sender, Part::Signed, &upper, Direction::Ascending, 1)?.pop() else {
            end = middle;
            continue;
        };
        let number = next.location.number;
        let in_block = signed_in(view, sender, number)?;
        if let Some((_, sent)) = in_block.iter().find(|(given, _)| *given == nonce) {
            return Ok(Some(*sent));
        }
        if in_block.first().is_some_and(|(first, _)| *first > nonce) {
            end = middle;
        } else {
            low = number.saturating_add(1);
        }
    }
    Ok(None)
}

/// The transactions that an account signed in a block, with their nonces.
fn signed_in(view: &View<'_>, sender: Address, number: u64) -> Result<Vec<(u64, Sent)>, Fault> {
    let block = Location::first_of(number)..=Location::last_of(number);
    let rows = rows_of(view, sender, Part::Signed, &block, Direction::Ascending, usize::MAX)?;
    let body = read::block_at(view, number)?.block;
    let nonce_of = |sent: &Sent| {
        let transaction = body.transactions.iter().find(|transaction| transaction.hash() == sent.hash);
        transaction.map(|transaction| (transaction.nonce(), *sent))
    };
    let missing =
        |sent: &Sent| Fault::Missing(format!("transaction {} in the body of block {number}", sent.hash));
    rows.iter().map(|sent| nonce_of(sent).ok_or_else(|| missing(sent))).collect()
}
