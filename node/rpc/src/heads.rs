//! Notifies waiters of a new block, or of reverted blocks.

use almanac_consensus::{Sink, SinkError};
use almanac_exec::BlockOutput;
use almanac_index::{Index, IndexedBlock};
use almanac_primitives::Block;
use std::sync::{Arc, Mutex};
use tokio::sync::broadcast;

/// Blocks that a listener may be behind before it is told that it missed some.
const BACKLOG: usize = 1_024;

/// Something happened to the chain.
#[derive(Clone, Debug)]
pub enum Head {
    /// A block was added, and the index has it.
    New(Arc<IndexedBlock>),
    /// The blocks above this height are gone.
    Reverted(u64),
}

/// Hears of blocks after the index has, and passes them on.
#[derive(Debug)]
pub struct Heads {
    index: Arc<Index>,
    listeners: broadcast::Sender<Head>,
    /// The height of every going back, oldest first.
    reverts: Mutex<Vec<u64>>,
}

impl Heads {
    /// News of the chain that `index` has.
    pub fn new(index: Arc<Index>) -> Arc<Self> {
        let (listeners, _) = broadcast::channel(BACKLOG);
        Arc::new(Self { index, listeners, reverts: Mutex::default() })
    }

    /// News from here on.
    pub fn listen(&self) -> broadcast::Receiver<Head> {
        self.listeners.subscribe()
    }

    /// How often the chain went back so far.
    pub fn revert_count(&self) -> usize {
        self.lock_reverts().len()
    }

    /// The lowest height that the chain went back to since `count` of these.
    pub fn lowest_since(&self, count: usize) -> Option<u64> {
        self.lock_reverts().get(count..)?.iter().copied().min()
    }

    fn lock_reverts(&self) -> std::sync::MutexGuard<'_, Vec<u64>> {
        self.reverts.lock().expect("nobody panics while holding the list")
    }

    fn tell(&self, head: Head) {
        // Nobody may be listening.
        let _ = self.listeners.send(head);
    }
}

impl Sink for Heads {
    fn finalized(&self, _: &Arc<Block>, _: &Arc<BlockOutput>) -> Result<(), SinkError> {
        self.tell(Head::New(self.index.tip()));
        Ok(())
    }

    fn reverted(&self, height: u64) -> Result<(), SinkError> {
        self.lock_reverts().push(height);
        self.tell(Head::Reverted(height));
        Ok(())
    }
}
