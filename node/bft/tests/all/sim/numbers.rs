//! The heights of a validator's blocks by their hashes, as the index of a real node knows them.

use crate::sim::machine::Machine;
use alloy_primitives::BlockHash;
use almanac_bft::BlockNumbers;
use almanac_consensus::{Sink, SinkError};
use almanac_exec::BlockOutput;
use almanac_primitives::Block;
use almanac_state::BlockJournal;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

pub struct Numbers(Mutex<BTreeMap<BlockHash, u64>>);

impl Numbers {
    /// Those of the blocks that are on disk, behind the one that the chain starts from.
    pub async fn read(archive: &BlockJournal<Machine>, first: u64) -> Arc<Self> {
        let mut numbers = BTreeMap::new();
        for number in first + 1..=archive.height().await.unwrap() {
            let archived = archive.get(number).await.unwrap().expect("an archived block");
            numbers.insert(archived.block.hash(), number);
        }
        Arc::new(Self(Mutex::new(numbers)))
    }
}

impl Sink for Numbers {
    fn finalized(&self, block: &Arc<Block>, _: &Arc<BlockOutput>) -> Result<(), SinkError> {
        self.0.lock().unwrap().insert(block.hash(), block.header.number);
        Ok(())
    }

    fn reverted(&self, _: u64) -> Result<(), SinkError> {
        unreachable!("final blocks stay")
    }
}

impl BlockNumbers for Numbers {
    fn number_of(&self, hash: BlockHash) -> Result<Option<u64>, String> {
        Ok(self.0.lock().unwrap().get(&hash).copied())
    }
}
