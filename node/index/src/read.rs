//! Reads state, blocks and transactions from the rows.

use crate::{
    block::{IndexedBlock, Location, Place, unseen},
    error::Fault,
    participants::Direction,
    rows::{self, ReceiptRow},
    schedules,
    store::{Table, View},
};
use alloy_primitives::{BlockHash, Bytes, TxHash, keccak256};
use almanac_primitives::{Block, Header, Origin, ScheduleId, StateKey};
use std::{collections::BTreeMap, ops::RangeInclusive, sync::Arc};

/// Rows of `meta`.
pub(crate) const META_FORMAT: &[u8] = b"format";
pub(crate) const META_GENESIS: &[u8] = b"genesis";
pub(crate) const META_TIP: &[u8] = b"tip";
pub(crate) const META_OLDEST: &[u8] = b"oldest";
/// Before this height, the history of nonces is not kept. Present once it is so.
pub(crate) const META_NONCES: &[u8] = b"nonces";
/// Present only if the state was copied.
pub(crate) const META_FLOOR: &[u8] = b"floor";

/// Reads a row of `meta`.
pub(crate) fn meta<T>(
    view: &View<'_>,
    name: &[u8],
    read: impl FnOnce(&[u8]) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let found = view.get(Table::Meta, name, read)?;
    found.ok_or_else(|| Fault::Missing(format!("{} in meta", String::from_utf8_lossy(name))))
}

/// The value of a state key at a height: the old value of the first later change, or the current value. Where a forked
/// chain removed it, no bytes; `None` is what no block has written, and any nonce where those are no longer kept.
pub(crate) fn value_at(
    view: &View<'_>,
    key: &StateKey,
    height: u64,
    is_forked: bool,
) -> Result<Option<Bytes>, Fault> {
    let name = key;
    let key = rows::state_key(key);
    // Skip the search for a change at the tip: it is the slowest part, and there is no later change.
    if height < meta(view, META_TIP, rows::read_tip)?.0 {
        if rows::is_nonce(&key) && height < nonces_from(view)? {
            return Ok(None);
        }
        let (first, last) = (rows::at_height(&key, height + 1), rows::at_height(&key, u64::MAX));
        if let Some(change) = view.range(Table::History, &first..=&last).next() {
            let old = rows::read_old(&change?.1)?;
            return Ok(if is_forked { Origin::to_stored(name, old) } else { old });
        }
    }
    view.get(Table::State, &key, |row| Ok(Bytes::copy_from_slice(row)))
}

/// The lowest height at which the history of nonces is known.
pub(crate) fn nonces_from(view: &View<'_>) -> Result<u64, Fault> {
    let from = view.get(Table::Meta, META_NONCES, |row| rows::read_height("meta", row))?;
    Ok(from.unwrap_or_default())
}

/// Every account and every slot at the tip, accounts first. Of a forked chain, without the marks of what it removed,
/// which have no bytes.
pub(crate) fn accounts_and_slots(view: &View<'_>, is_forked: bool) -> Result<Vec<(StateKey, Bytes)>, Fault> {
    let last = [&[1][..], &[u8::MAX; 52]].concat();
    let rows = view.range(Table::State, &[0]..=&last);
    let there = rows.filter(|row| row.as_ref().map_or(true, |(_, value)| !is_forked || !value.is_empty()));
    there.map(|row| row.and_then(|(key, value)| Ok((rows::read_account_key(&key)?, value.into())))).collect()
}

/// Up to `limit` encoded state keys at the tip after the given one, ascending.
pub(crate) fn names_after(
    view: &View<'_>,
    after: Option<&StateKey>,
    limit: usize,
) -> Result<Vec<Vec<u8>>, Fault> {
    // No key is a prefix of another, so the next key is above this key followed by a zero byte.
    let first = after.map_or_else(Vec::new, |after| [&rows::state_key(after)[..], &[0]].concat());
    let rows = view.range(Table::State, &first..=&[u8::MAX]);
    rows.take(limit).map(|row| Ok(row?.0)).collect()
}

/// The encoded state keys that a block changed, or `None` if they are not kept.
pub(crate) fn changed_in(view: &View<'_>, height: u64) -> Result<Option<Vec<Vec<u8>>>, Fault> {
    view.get(Table::Changes, &height.to_be_bytes(), |row| {
        Ok(rows::read_changes(row)?.into_iter().map(<[u8]>::to_vec).collect())
    })
}

/// The heights at which a state key changed.
pub(crate) fn changes_of(
    view: &View<'_>,
    key: &StateKey,
    heights: &RangeInclusive<u64>,
    direction: Direction,
    limit: usize,
) -> Result<Vec<u64>, Fault> {
    let key = rows::state_key(key);
    let (first, last) = (rows::at_height(&key, *heights.start()), rows::at_height(&key, *heights.end()));
    let found = direction.of(view.range(Table::History, &first..=&last));
    found.take(limit).map(|row| rows::height_of(&row?.0)).collect()
}

/// Hash of the block at a height.
pub(crate) fn hash_at(view: &View<'_>, number: u64) -> Result<Option<BlockHash>, Fault> {
    view.get(Table::Headers, &number.to_be_bytes(), |row| Ok(keccak256(row)))
}

/// Header of the block at a height.
pub(crate) fn header_at(view: &View<'_>, number: u64) -> Result<Header, Fault> {
    let header = view.get(Table::Headers, &number.to_be_bytes(), |row| {
        Header::decode(row).map_err(|error| Fault::Row { table: "headers", error })
    })?;
    header.ok_or_else(|| Fault::Missing(format!("block {number} in headers")))
}

/// Height of the block with a hash.
pub(crate) fn number_of(view: &View<'_>, hash: BlockHash) -> Result<Option<u64>, Fault> {
    view.get(Table::Numbers, hash.as_slice(), |row| rows::read_height("numbers", row))
}

/// Where a transaction ran.
pub(crate) fn location_of(view: &View<'_>, hash: TxHash) -> Result<Option<Location>, Fault> {
    view.get(Table::Locations, hash.as_slice(), rows::read_place)
}

/// One receipt and its size in bytes. Does not fill in calldata that is stored in a schedule's body.
pub(crate) fn receipt_at(view: &View<'_>, location: Location) -> Result<(ReceiptRow, usize), Fault> {
    let read = |row: &[u8]| Ok((rows::read_receipt(row)?, row.len()));
    let row = view.get(Table::Receipts, &rows::place(location), read)?;
    let Location { number, index } = location;
    row.ok_or_else(|| Fault::Missing(format!("receipt {index} of block {number}")))
}

/// What is known of a receipt's position.
pub(crate) fn place_at(view: &View<'_>, location: Location) -> Result<Place, Fault> {
    let header = header_at(view, location.number)?;
    let (first, _) = receipt_at(view, Location::first_of(location.number))?;
    Ok(Place {
        location,
        block_hash: header.hash(),
        timestamp: header.timestamp,
        unseen: unseen(&first.receipt),
        transaction_hash: receipt_at(view, location)?.0.receipt.transaction_hash,
    })
}

/// The block at a height, with its receipts, parties and events.
pub(crate) fn block_at(view: &View<'_>, number: u64) -> Result<IndexedBlock, Fault> {
    let key = number.to_be_bytes();
    let missing = |table| move || Fault::Missing(format!("block {number} in {table}"));
    let header = view.get(Table::Headers, &key, |row| Ok(row.to_vec()))?.ok_or_else(missing("headers"))?;
    let body = view.get(Table::Bodies, &key, |row| Ok(row.to_vec()))?.ok_or_else(missing("bodies"))?;
    let hash = keccak256(&header);
    let block =
        Block::decode(&[header, body].concat()).map_err(|error| Fault::Row { table: "bodies", error })?;
    let (mut receipts, mut parties) = (Vec::new(), Vec::new());
    let (first, last) = (rows::place(Location::first_of(number)), rows::place(Location::last_of(number)));
    let mut inputs = BTreeMap::new();
    for row in view.range(Table::Receipts, &first..=&last) {
        let mut row = rows::read_receipt(&row?.1)?;
        if let Some(run) = row.parties.run.as_mut().filter(|_| row.is_input_in_body) {
            run.input = input_of(view, &mut inputs, run.schedule_ref.schedule)?;
        }
        receipts.push(row.receipt);
        parties.push(row.parties);
    }
    let events = view.get(Table::ScheduleEvents, &key, schedules::read_events)?.unwrap_or_default();
    Ok(IndexedBlock { block: Arc::new(block), hash, receipts, parties, events })
}

/// The calldata of a schedule, cached for several runs in a block.
fn input_of(
    view: &View<'_>,
    known: &mut BTreeMap<ScheduleId, Bytes>,
    id: ScheduleId,
) -> Result<Bytes, Fault> {
    if let Some(input) = known.get(&id) {
        return Ok(input.clone());
    }
    let body = schedules::body(view, id)?;
    let body = body.ok_or_else(|| Fault::Missing(format!("the body of schedule {id}")))?;
    let input = body.call().input.clone();
    known.insert(id, input.clone());
    Ok(input)
}
