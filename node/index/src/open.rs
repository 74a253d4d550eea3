//! Creates an index from a genesis, or opens one and finds where it stopped.

use crate::{
    block::IndexedBlock,
    error::{Fault, OpenError, StoreError},
    read::{self, META_FLOOR, META_FORMAT, META_GENESIS, META_OLDEST, META_TIP, meta},
    rows,
    store::{Batch, Store, Table, View},
    write,
};
use alloy_primitives::{BlockHash, Bytes};
use almanac_primitives::{Block, Header, StateKey};
use std::sync::Arc;

/// Version of the layout in [`rows`] and [`Table`]. Raise it with any change of theirs.
pub(crate) const FORMAT: u32 = 8;

/// A genesis can be large, so it is written in batches of this many rows. It is valid only once all are
/// written.
const GENESIS_ROWS: usize = 20_000;

/// Blocks before the tip whose headers are checked on opening. A journal damaged in the middle could have lost
/// some of the most recent ones.
const HEADERS_CHECKED: u64 = 100_000;

/// Where an index stands.
pub(crate) struct Opened {
    pub(crate) tip: IndexedBlock,
    /// Lowest height whose state is kept.
    pub(crate) oldest: u64,
    /// The block before the first stored one: 0, or the block whose state was copied.
    pub(crate) floor: u64,
}

/// Opens an existing index, or begins one with the genesis.
pub(crate) fn open(
    store: &Store,
    genesis: Header,
    state: impl IntoIterator<Item = (StateKey, Bytes)>,
) -> Result<Opened, OpenError> {
    let expected = genesis.hash();
    let found = store.ask(genesis_of).map_err(damaged)?;
    if let Some(found) = found.filter(|found| *found != expected) {
        return Err(OpenError::OtherChain { path: store.name().to_owned(), found, expected });
    }
    match store.ask(|view| view.get(Table::Meta, META_FORMAT, rows::read_format)).map_err(damaged)? {
        None => {
            begin(store, genesis, state).map_err(|StoreError { path, reason }| OpenError::Io { path, reason })
        }
        Some(FORMAT) => store.ask(opened).map_err(damaged),
        Some(format) => Err(refused(store, format)),
    }
}

fn damaged(StoreError { path, reason }: StoreError) -> OpenError {
    OpenError::Damaged { path, reason }
}

fn refused(store: &Store, found: u32) -> OpenError {
    let (path, known) = (store.name().to_owned(), FORMAT);
    if found < known {
        OpenError::FormatTooOld { path, found, known }
    } else {
        OpenError::FormatTooNew { path, found, known }
    }
}

fn genesis_of(view: &View<'_>) -> Result<Option<BlockHash>, Fault> {
    let genesis = view.get(Table::Meta, META_GENESIS, |row| rows::read_hash("meta", row))?;
    let is_empty = view.all().next().is_none();
    if genesis.is_none() && !is_empty {
        return Err(Fault::Missing("genesis in meta".to_owned()));
    }
    Ok(genesis)
}

/// Writes the genesis. The chain's hash goes first and the format last, so that after a crash in between the
/// next start begins again, for the same chain.
fn begin(
    store: &Store,
    header: Header,
    state: impl IntoIterator<Item = (StateKey, Bytes)>,
) -> Result<Opened, StoreError> {
    let hash = header.hash();
    let mut batch = Batch::default();
    batch.insert(Table::Meta, META_GENESIS, hash.as_slice());
    for (count, (key, value)) in (1..).zip(state) {
        batch.insert(Table::State, &rows::state_key(&key), &value[..]);
        if count % GENESIS_ROWS == 0 {
            store.commit(std::mem::take(&mut batch))?;
        }
    }
    store.commit(std::mem::take(&mut batch))?;
    let block = Arc::new(Block { header, transactions: Vec::new() });
    let tip = IndexedBlock::alone(block);
    store.ask(|view| write::add_block(&mut batch, view, &tip))?;
    batch.insert(Table::Meta, META_OLDEST, 0u64.to_be_bytes());
    batch.insert(Table::Meta, META_FORMAT, FORMAT.to_be_bytes());
    store.commit(batch)?;
    store.sync()?;
    Ok(Opened { tip, oldest: 0, floor: 0 })
}

fn opened(view: &View<'_>) -> Result<Opened, Fault> {
    let (tip, hash) = meta(view, META_TIP, rows::read_tip)?;
    let oldest = meta(view, META_OLDEST, |row| rows::read_height("meta", row))?;
    let floor = view.get(Table::Meta, META_FLOOR, |row| rows::read_height("meta", row))?.unwrap_or_default();
    check_headers(view, floor, tip)?;
    let tip = read::block_at(view, tip)?;
    if tip.hash != hash {
        return Err(Fault::Missing(format!("block {hash}, the tip,")));
    }
    Ok(Opened { tip, oldest, floor })
}

fn check_headers(view: &View<'_>, floor: u64, tip: u64) -> Result<(), Fault> {
    let first = tip.saturating_sub(HEADERS_CHECKED).max(floor);
    let mut expected = first..=tip;
    for row in view.range(Table::Headers, &first.to_be_bytes()..=&u64::MAX.to_be_bytes()) {
        let height = rows::height_of(&row?.0)?;
        if expected.next() != Some(height) {
            return Err(Fault::Missing(format!("a block before block {height}")));
        }
    }
    expected.next().map_or(Ok(()), |missing| Err(Fault::Missing(format!("block {missing}"))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use almanac_primitives::TimestampMs;

    fn state() -> Vec<(StateKey, Bytes)> {
        (0..50_000u64).map(|n| (StateKey::Calendar(n), Bytes::from(n.to_be_bytes().to_vec()))).collect()
    }

    fn rows(store: &Store) -> Vec<crate::store::Row> {
        store.ask(|view| view.all().collect()).unwrap()
    }

    /// Simulates a crash after each number of commits, then starts again.
    #[test]
    fn a_genesis_that_was_cut_short_is_begun_again() {
        let whole = Store::in_memory();
        open(&whole, Header::default(), state()).unwrap();
        for rows_written in [0, 1, 20_000, 40_000, 50_000] {
            let store = Store::in_memory();
            let mut batch = Batch::default();
            batch.insert(Table::Meta, META_GENESIS, Header::default().hash().as_slice());
            for (key, value) in state().into_iter().take(rows_written) {
                batch.insert(Table::State, &rows::state_key(&key), &value[..]);
            }
            store.commit(batch).unwrap();

            let other = Header { timestamp: TimestampMs(1), ..Header::default() };
            let refused = open(&store, other, state()).err().unwrap();
            assert!(matches!(refused, OpenError::OtherChain { .. }), "{refused}");
            open(&store, Header::default(), state()).unwrap();
            assert_eq!(rows(&store).len(), rows(&whole).len());
            assert!(rows(&store) == rows(&whole), "after {rows_written} rows");
        }
    }

    #[test]
    fn a_hole_among_the_blocks_is_noticed() {
        let with_blocks = |heights: &[u64], tip: u64| {
            let store = Store::in_memory();
            open(&store, Header::default(), []).unwrap();
            for number in heights {
                let header = Header { number: *number, ..Header::default() };
                let block = Arc::new(Block { header, transactions: Vec::new() });
                let mut batch = Batch::default();
                let indexed = IndexedBlock::alone(block);
                store.ask(|view| write::add_block(&mut batch, view, &indexed)).unwrap();
                store.commit(batch).unwrap();
            }
            let mut batch = Batch::default();
            let hash = Header { number: tip, ..Header::default() }.hash();
            batch.insert(Table::Meta, META_TIP, rows::tip(tip, hash));
            store.commit(batch).unwrap();
            open(&store, Header::default(), []).map(|opened| opened.tip.number())
        };
        assert_eq!(with_blocks(&[1, 2, 3], 3), Ok(3));
        for (heights, tip) in [(&[1, 3][..], 3), (&[2, 3], 3), (&[1, 2], 3), (&[1, 2, 3, 4], 3), (&[], 1)] {
            let refused = with_blocks(heights, tip).unwrap_err();
            assert!(matches!(refused, OpenError::Damaged { .. }), "{heights:?}: {refused}");
        }
    }
}
