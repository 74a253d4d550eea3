//! Starts an index from a copied state, without the earlier blocks.

use crate::{
    IndexConfig,
    block::IndexedBlock,
    error::{OpenError, StoreError},
    open::FORMAT,
    read::{META_FLOOR, META_FORMAT, META_GENESIS, META_OLDEST},
    rows, schedules,
    store::{Batch, Store, Table},
    write,
};
use alloy_primitives::Bytes;
use almanac_primitives::{Block, Header, StateKey};
use std::{path::Path, sync::Arc};

/// Schedules to write per batch.
const SCHEDULES_AT_ONCE: usize = 1_000;

/// An index under construction. It is usable only once finished; what a crash leaves of it must be removed.
pub struct CopiedIndex {
    store: Store,
    genesis: Header,
}

impl CopiedIndex {
    /// Begins one in an empty or missing directory, for the chain with this block 0.
    pub fn begin(path: &Path, config: &IndexConfig, genesis: Header) -> Result<Self, OpenError> {
        let store = Store::open(path, config)?;
        let mut batch = Batch::default();
        batch.insert(Table::Meta, META_GENESIS, genesis.hash().as_slice());
        let failed = |StoreError { path, reason }| OpenError::Io { path, reason };
        store.commit(batch).map_err(failed)?;
        Ok(Self { store, genesis })
    }

    /// Adds values, each key once in the list, and returns how many of them were new.
    pub fn add(&mut self, values: Vec<(StateKey, Bytes)>) -> Result<u64, StoreError> {
        let mut batch = Batch::default();
        let mut added = 0;
        for (key, value) in values {
            let key = rows::state_key(&key);
            let is_known = self.store.ask(|view| view.get(Table::State, &key, |_| Ok(())))?.is_some();
            if !is_known {
                batch.insert(Table::State, &key, &value[..]);
                added += 1;
            }
        }
        self.store.commit(batch)?;
        Ok(added)
    }

    /// Makes it the index of a chain whose last block has this header and whose state was added. On return it
    /// is durable across a power cut.
    pub fn finish(self, floor: Header) -> Result<(), StoreError> {
        self.add_schedules(floor.number)?;
        let block_zero = block(self.genesis.clone());
        let mut batch = Batch::default();
        self.store.ask(|view| write::add_block(&mut batch, view, &block_zero))?;
        self.store.commit(std::mem::take(&mut batch))?;
        let number = floor.number.to_be_bytes();
        self.store.ask(|view| write::add_block(&mut batch, view, &block(floor)))?;
        batch.insert(Table::Meta, META_OLDEST, number);
        batch.insert(Table::Meta, META_FLOOR, number);
        batch.insert(Table::Meta, META_FORMAT, FORMAT.to_be_bytes());
        self.store.commit(batch)?;
        self.store.sync()
    }

    /// Lists the live schedules. The state does not contain ended ones.
    fn add_schedules(&self, floor: u64) -> Result<(), StoreError> {
        let ids = self.store.ask(schedules::living)?;
        for ids in ids.chunks(SCHEDULES_AT_ONCE) {
            let mut batch = Batch::default();
            for id in ids {
                self.store.ask(|view| schedules::add_living(&mut batch, view, *id, floor))?;
            }
            self.store.commit(batch)?;
        }
        Ok(())
    }
}

/// A block of which only the header is known.
fn block(header: Header) -> IndexedBlock {
    IndexedBlock::alone(Arc::new(Block { header, transactions: Vec::new() }))
}
