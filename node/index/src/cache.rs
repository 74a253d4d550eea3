//! A few decoded blocks, since clients often ask about the same ones.

use crate::block::IndexedBlock;
use alloy_primitives::BlockHash;
use std::sync::{Arc, Mutex};

/// Number of cached blocks. Full ones take a few megabytes each.
const SLOTS: usize = 32;

/// Blocks by their hash. A block never changes, so an entry stays valid even if the chain is reverted.
#[derive(Debug, Default)]
pub(crate) struct BlockCache {
    /// Each hash maps to one slot; a newer block with the same slot replaces the older.
    slots: Mutex<[Option<Arc<IndexedBlock>>; SLOTS]>,
}

impl BlockCache {
    pub(crate) fn get(&self, hash: BlockHash) -> Option<Arc<IndexedBlock>> {
        let slots = self.slots.lock().expect("nobody panics while holding the cache");
        slots[slot(hash)].clone().filter(|block| block.hash == hash)
    }

    pub(crate) fn put(&self, block: Arc<IndexedBlock>) {
        // Never wait to fill the cache, least of all in the thread that adds blocks.
        if let Ok(mut slots) = self.slots.try_lock() {
            let slot = slot(block.hash);
            slots[slot] = Some(block);
        }
    }
}

fn slot(hash: BlockHash) -> usize {
    usize::from(hash[31]) % SLOTS
}
