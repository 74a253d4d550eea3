//! A few decoded blocks, since clients ask about the same ones again and again.

use crate::block::IndexedBlock;
use alloy_primitives::BlockHash;
use std::sync::{Arc, Mutex};

/// How many blocks are held. Full ones take a few megabytes each.
const SLOTS: usize = 32;

/// Blocks by their hash. A block never changes, so an entry is never wrong, whatever becomes of the chain.
#[derive(Debug, Default)]
pub(crate) struct BlockCache {
    /// Each hash has one slot; a newer block with the same slot takes it over.
    slots: Mutex<[Option<Arc<IndexedBlock>>; SLOTS]>,
}

impl BlockCache {
    pub(crate) fn get(&self, hash: BlockHash) -> Option<Arc<IndexedBlock>> {
        let slots = self.slots.lock().expect("nobody panics while holding the cache");
        slots[slot(hash)].clone().filter(|block| block.hash == hash)
    }

    pub(crate) fn put(&self, block: Arc<IndexedBlock>) {
        // Nobody waits to fill a cache, least of all whoever adds a block.
        if let Ok(mut slots) = self.slots.try_lock() {
            let slot = slot(block.hash);
            slots[slot] = Some(block);
        }
    }
}

fn slot(hash: BlockHash) -> usize {
    usize::from(hash[31]) % SLOTS
}
