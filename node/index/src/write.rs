//! Turns blocks into rows, prunes old state, and reverts blocks.

use crate::{
    block::{IndexedBlock, Location, Parties},
    error::Fault,
    index::FORGET_PER_BLOCK,
    participants::Part,
    read::{self, META_NONCES, META_OLDEST, META_TIP},
    rows::{self, Term},
    schedules,
    store::{Batch, Table, View},
};
use alloy_primitives::TxHash;
use almanac_primitives::{Origin, StateDiff, run::PROLOGUE_TYPE};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
};

/// Adds a block that follows the tip, with its state changes. A forked chain keeps a mark of what it removes.
pub(crate) fn add(
    batch: &mut Batch,
    view: &View<'_>,
    indexed: &IndexedBlock,
    diff: &StateDiff,
    is_forked: bool,
) -> Result<(), Fault> {
    let number = indexed.number();
    for change in diff.changes() {
        let key = rows::state_key(&change.key);
        let new = change.new.clone();
        match if is_forked { Origin::to_stored(&change.key, new) } else { new } {
            Some(new) => batch.insert(Table::State, &key, &new[..]),
            None => batch.remove(Table::State, &key),
        }
        batch.insert(Table::History, &rows::at_height(&key, number), rows::old(change.old.as_ref()));
    }
    let keys = diff.changes().iter().map(|change| &change.key);
    batch.insert(Table::Changes, &number.to_be_bytes(), rows::changes(keys));
    add_block(batch, view, indexed)?;
    schedules::add(batch, view, indexed, diff)
}

/// Adds a block without state changes: genesis has no history.
pub(crate) fn add_block(batch: &mut Batch, view: &View<'_>, indexed: &IndexedBlock) -> Result<(), Fault> {
    let number = indexed.number().to_be_bytes();
    let (header, block) = (indexed.block.header.encode(), indexed.block.encode());
    batch.insert(Table::Bodies, &number, &block[header.len()..]);
    batch.insert(Table::Headers, &number, header);
    batch.insert(Table::Numbers, indexed.hash.as_slice(), number);
    let mut first_log = 0;
    for (index, (receipt, parties)) in indexed.receipts.iter().zip(&indexed.parties).enumerate() {
        let place = rows::place(Location { number: indexed.number(), index });
        let is_input_in_body = is_input_in_body(view, parties)?;
        batch.insert(Table::Receipts, &place, rows::receipt(parties, is_input_in_body, first_log, receipt));
        first_log += receipt.logs.len();
    }
    for (location, hash) in transactions(indexed) {
        batch.insert(Table::Locations, hash.as_slice(), rows::place(location));
    }
    for (key, hash) in involved(indexed) {
        batch.insert(Table::Involved, &key, hash.as_slice());
    }
    for (term, indexes) in terms(indexed) {
        let key = rows::at_height(&term.prefix(), indexed.number());
        batch.insert(Table::Postings, &key, rows::posting(&indexes));
    }
    batch.insert(Table::Meta, META_TIP, rows::tip(indexed.number(), indexed.hash));
    Ok(())
}

/// Whether the body of a run's schedule has its calldata. Only bodies stored with an earlier block count.
fn is_input_in_body(view: &View<'_>, parties: &Parties) -> Result<bool, Fault> {
    let Some(run) = &parties.run else { return Ok(false) };
    let body = schedules::body(view, run.schedule_ref.schedule)?;
    Ok(body.is_some_and(|body| body.call().input == run.input))
}

/// Prunes the states before the last of `heights`, which are the next ones to go.
pub(crate) fn forget(batch: &mut Batch, view: &View<'_>, heights: RangeInclusive<u64>) -> Result<(), Fault> {
    batch.insert(Table::Meta, META_OLDEST, heights.end().to_be_bytes());
    for height in heights {
        // The old value at a height is needed only by lower heights.
        for key in changes(view, height)? {
            batch.remove(Table::History, &rows::at_height(&key, height));
        }
        batch.remove(Table::Changes, &height.to_be_bytes());
    }
    Ok(())
}

/// Prunes the history of nonces up to a height, a few blocks at a time. What is before the oldest state is gone already.
pub(crate) fn forget_nonces(batch: &mut Batch, view: &View<'_>, oldest: u64, to: u64) -> Result<(), Fault> {
    let first = read::nonces_from(view)?.max(oldest) + 1;
    let last = to.min(first.saturating_add(FORGET_PER_BLOCK - 1));
    if last < first {
        return Ok(());
    }
    for height in first..=last {
        for key in changes(view, height)?.iter().filter(|key| rows::is_nonce(key)) {
            batch.remove(Table::History, &rows::at_height(key, height));
        }
    }
    batch.insert(Table::Meta, META_NONCES, last.to_be_bytes());
    Ok(())
}

/// Reverts the last block.
pub(crate) fn take_back(
    batch: &mut Batch,
    view: &View<'_>,
    indexed: &IndexedBlock,
    is_forked: bool,
) -> Result<(), Fault> {
    let number = indexed.number();
    for key in changes(view, number)? {
        let at = rows::at_height(&key, number);
        let missing = || Fault::Missing(format!("what block {number} changed"));
        let old = view.get(Table::History, &at, rows::read_old)?.ok_or_else(missing)?;
        // An old value is what readers saw: where there was none, the origin must not show through now.
        match if is_forked { rows::marked(&key, old)? } else { old } {
            Some(old) => batch.insert(Table::State, &key, &old[..]),
            None => batch.remove(Table::State, &key),
        }
        batch.remove(Table::History, &at);
    }
    batch.remove(Table::Changes, &number.to_be_bytes());
    take_back_block(batch, indexed);
    schedules::take_back(batch, view, indexed)?;
    let parent = read::header_at(view, number - 1)?;
    batch.insert(Table::Meta, META_TIP, rows::tip(parent.number, parent.hash()));
    Ok(())
}

fn take_back_block(batch: &mut Batch, indexed: &IndexedBlock) {
    let number = indexed.number().to_be_bytes();
    batch.remove(Table::Headers, &number);
    batch.remove(Table::Bodies, &number);
    batch.remove(Table::Numbers, indexed.hash.as_slice());
    for (location, hash) in transactions(indexed) {
        batch.remove(Table::Receipts, &rows::place(location));
        batch.remove(Table::Locations, hash.as_slice());
    }
    for (key, _) in involved(indexed) {
        batch.remove(Table::Involved, &key);
    }
    for term in terms(indexed).into_keys() {
        batch.remove(Table::Postings, &rows::at_height(&term.prefix(), indexed.number()));
    }
}

/// The state keys that a block changed.
fn changes(view: &View<'_>, number: u64) -> Result<Vec<Vec<u8>>, Fault> {
    read::changed_in(view, number)?.ok_or_else(|| Fault::Missing(format!("block {number} in changes")))
}

fn transactions(indexed: &IndexedBlock) -> impl Iterator<Item = (Location, TxHash)> {
    let number = indexed.number();
    let receipts = indexed.receipts.iter().enumerate();
    receipts.map(move |(index, receipt)| (Location { number, index }, receipt.transaction_hash))
}

/// The keys of a block's participants, each once, with the transaction hashes.
fn involved(indexed: &IndexedBlock) -> impl Iterator<Item = (Vec<u8>, TxHash)> {
    let both = transactions(indexed).zip(indexed.receipts.iter().zip(&indexed.parties));
    let by_people = both.filter(|(_, (receipt, _))| receipt.transaction_type != PROLOGUE_TYPE);
    let mut body = indexed.block.transactions.iter();
    by_people.flat_map(move |((location, hash), (receipt, parties))| {
        // Every receipt that is neither the prologue's nor a run's has its transaction in the body, in order.
        let signed = if parties.run.is_none() { body.next() } else { None };
        let sender = match signed {
            Some(signed) if signed.is_orderless() => Part::Orderless,
            Some(_) => Part::Signed,
            None if parties.run.is_some() => Part::Ran,
            None => Part::Signed,
        };
        let everyone = [
            (Some(parties.from), sender),
            (parties.to, Part::Received),
            (receipt.contract_address, Part::Created),
        ];
        let calls = signed.and_then(|signed| signed.native()).into_iter().flat_map(|native| &native.calls);
        let everyone = everyone.into_iter().chain(calls.map(|call| (call.to, Part::Received)));
        // Calls may share a target, and the recipient of a transaction with one call is that call's.
        let keys: BTreeSet<_> =
            everyone.filter_map(|(address, part)| Some(rows::involved(address?, part, location))).collect();
        keys.into_iter().map(move |key| (key, hash))
    })
}

/// For each term, the receipts of a block that have a log with it.
fn terms(indexed: &IndexedBlock) -> BTreeMap<Term, Vec<u32>> {
    let mut terms = BTreeMap::<_, Vec<u32>>::new();
    for (index, receipt) in (0u32..).zip(&indexed.receipts) {
        for term in receipt.logs.iter().flat_map(Term::of) {
            let indexes = terms.entry(term).or_default();
            if indexes.last() != Some(&index) {
                indexes.push(index);
            }
        }
    }
    terms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Row, Store};
    use alloy_primitives::Bytes;
    use almanac_primitives::{Block, Header, StateChange, StateKey};
    use proptest::{collection::vec, option, prelude::*};
    use std::sync::Arc;

    type State = BTreeMap<StateKey, Bytes>;

    fn key(n: u8) -> StateKey {
        StateKey::Calendar(n.into())
    }

    fn block(number: u64) -> IndexedBlock {
        let header = Header { number, ..Header::default() };
        IndexedBlock::alone(Arc::new(Block { header, transactions: Vec::new() }))
    }

    fn rows_of(store: &Store, table: Table) -> Vec<Row> {
        store.ask(|view| view.range(table, &[]..=&[u8::MAX; 64]).collect()).unwrap()
    }

    fn step(before: &State, writes: &[(u8, Option<u8>)]) -> (StateDiff, State) {
        let mut after = before.clone();
        for (n, new) in writes {
            match new {
                Some(new) => after.insert(key(*n), vec![*new].into()),
                None => after.remove(&key(*n)),
            };
        }
        let change = |n| {
            let key = key(n);
            StateChange { key, old: before.get(&key).cloned(), new: after.get(&key).cloned() }
        };
        (StateDiff::new((0..4).map(change).collect()), after)
    }

    proptest! {
        /// Everything stored is needed by some readable height.
        #[test]
        fn nothing_is_kept_that_no_height_needs(
            blocks in vec(vec((0..4u8, option::of(0..3u8)), 0..5), 1..12),
            oldest in 0..12u64,
        ) {
            let store = Store::in_memory();
            let (mut state, mut history, mut heights) = (State::new(), Vec::new(), Vec::new());
            let oldest = oldest.min(blocks.len() as u64);
            for (number, writes) in (1u64..).zip(&blocks) {
                let (diff, after) = step(&state, writes);
                let mut batch = Batch::default();
                store.ask(|view| add(&mut batch, view, &block(number), &diff, false)).unwrap();
                store.commit(batch).unwrap();
                if number > oldest {
                    history.extend(diff.changes().iter().map(|change| {
                        let key = rows::at_height(&rows::state_key(&change.key), number);
                        (key, rows::old(change.old.as_ref()))
                    }));
                    heights.push(number.to_be_bytes().to_vec());
                }
                state = after;
            }
            if oldest > 0 {
                let mut batch = Batch::default();
                store.ask(|view| forget(&mut batch, view, 1..=oldest)).unwrap();
                store.commit(batch).unwrap();
            }
            history.sort();
            prop_assert_eq!(rows_of(&store, Table::History), history);
            let changed: Vec<_> = rows_of(&store, Table::Changes).into_iter().map(|(height, _)| height).collect();
            prop_assert_eq!(changed, heights);
            let state: Vec<Row> = state.iter().map(|(key, value)| (rows::state_key(key), value.to_vec())).collect();
            prop_assert_eq!(rows_of(&store, Table::State), state);
        }
    }

    /// Of what blocks changed, the history of nonces goes first; names and the state at the tip stay.
    #[test]
    fn orderless_06_the_history_of_nonces_is_kept_at_the_tip_only() {
        let store = Store::in_memory();
        let nonce = StateKey::Nonce(alloy_primitives::Address::ZERO, 5);
        let (log, other) = (StateKey::NonceLog(7, 1), key(1));
        for number in 1..=20u64 {
            let value = |n: u64| Some(Bytes::from(n.to_be_bytes().to_vec()));
            let change = |key| StateChange { key, old: value(number - 1), new: value(number) };
            let diff = StateDiff::new([nonce, log, other].map(change).into());
            let mut batch = Batch::default();
            store.ask(|view| add(&mut batch, view, &block(number), &diff, false)).unwrap();
            let depth = number.saturating_sub(4);
            store.ask(|view| forget_nonces(&mut batch, view, 0, depth)).unwrap();
            store.commit(batch).unwrap();
        }
        let kept = |key: &StateKey| {
            let prefix = rows::state_key(key);
            rows_of(&store, Table::History).iter().filter(|(row, _)| row.starts_with(&prefix)).count()
        };
        assert_eq!([nonce, log, other].map(|key| kept(&key)), [4, 4, 20]);
        assert_eq!((rows_of(&store, Table::State).len(), rows_of(&store, Table::Changes).len()), (3, 20));
        let read = |key, height| {
            let value = store.ask(|view| read::value_at(view, &key, height, false)).unwrap();
            value.map(|value| u64::from_be_bytes(value[..].try_into().unwrap()))
        };
        for height in 0..=20 {
            assert_eq!(read(other, height), Some(height));
            let known = (height >= 16).then_some(height);
            assert_eq!((read(nonce, height), read(log, height)), (known, known), "{height}");
        }
    }

    #[test]
    #[should_panic(expected = "a batch changes each row once")]
    fn a_batch_refuses_the_same_row_twice() {
        let mut batch = Batch::default();
        batch.insert(Table::Meta, b"a", b"1");
        batch.remove(Table::Meta, b"a");
        let _ = Store::in_memory().commit(batch);
    }
}
