//! The names of values, for nodes that copy the state: as the index has them, and as a copy gathers them.

use alloy_primitives::Bytes;
use almanac_bft::sync::{KnownKeys, ValueSink};
use almanac_consensus::{Sink, SinkError};
use almanac_exec::BlockOutput;
use almanac_index::Index;
use almanac_primitives::{Block, StateKey, codec::Reader};
use almanac_state::proof::key;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

/// Names as the index of a validator has them.
pub struct IndexNames(pub Arc<Index>);

impl KnownKeys for IndexNames {
    fn after(&self, after: Option<&StateKey>, limit: usize) -> Result<Vec<StateKey>, String> {
        let names = self.0.names_after(after, limit).map_err(|error| error.to_string())?;
        names.iter().map(|name| read(name)).collect()
    }

    fn changed_in(&self, height: u64) -> Result<Option<Vec<StateKey>>, String> {
        let names = self.0.changed_in(height).map_err(|error| error.to_string())?;
        names.map(|names| names.iter().map(|name| read(name)).collect()).transpose()
    }
}

fn read(name: &[u8]) -> Result<StateKey, String> {
    key::read(&mut Reader::new(name)).map_err(|error| error.to_string())
}

/// Names as a follower gathers them. Its index would have to be on a real disk.
#[derive(Default)]
pub struct CopiedNames {
    names: Mutex<BTreeSet<StateKey>>,
    changed: Mutex<BTreeMap<u64, Vec<StateKey>>>,
}

impl ValueSink for &CopiedNames {
    fn add(&mut self, values: Vec<(StateKey, Bytes)>) -> Result<u64, String> {
        let mut names = self.names.lock().unwrap();
        Ok(values.into_iter().filter(|(name, _)| names.insert(*name)).count() as u64)
    }
}

impl CopiedNames {
    pub fn count(&self) -> u64 {
        self.names.lock().unwrap().len() as u64
    }
}

impl Sink for CopiedNames {
    fn finalized(&self, block: &Arc<Block>, output: &Arc<BlockOutput>) -> Result<(), SinkError> {
        let mut names = self.names.lock().unwrap();
        for change in output.diff.changes() {
            match change.new {
                Some(_) => names.insert(change.key),
                None => names.remove(&change.key),
            };
        }
        let changed = output.diff.changes().iter().map(|change| change.key).collect();
        self.changed.lock().unwrap().insert(block.header.number, changed);
        Ok(())
    }

    fn reverted(&self, _: u64) -> Result<(), SinkError> {
        unreachable!("final blocks stay")
    }
}

impl KnownKeys for CopiedNames {
    fn after(&self, after: Option<&StateKey>, limit: usize) -> Result<Vec<StateKey>, String> {
        let names = self.names.lock().unwrap();
        Ok(names.iter().filter(|name| after.is_none_or(|after| *name > after)).take(limit).copied().collect())
    }

    fn changed_in(&self, height: u64) -> Result<Option<Vec<StateKey>>, String> {
        Ok(self.changed.lock().unwrap().get(&height).cloned())
    }
}
