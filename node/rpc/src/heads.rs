//! Notifies waiters of a new block, or of reverted blocks.

use crate::{
    bounds::NEWS_MAX,
    recent::{Backlog, Recent},
};
use almanac_consensus::{Sink, SinkError};
use almanac_exec::BlockOutput;
use almanac_index::Index;
use almanac_primitives::Block;
use std::sync::{Arc, Mutex};
use tokio::sync::broadcast;

/// Something happened to the chain.
#[derive(Clone, Debug)]
pub enum ChainEvent {
    /// A block was added, and the index has it.
    New(Arc<Recent>),
    /// The blocks above this height are gone.
    Reverted(u64),
}

/// Hears of blocks after the index has, and passes them on.
#[derive(Debug)]
pub struct Heads {
    index: Arc<Index>,
    listeners: broadcast::Sender<ChainEvent>,
    backlog: Mutex<Backlog>,
    /// The height of every going back, oldest first.
    reverts: Mutex<Vec<u64>>,
}

impl Heads {
    /// News of the chain that `index` has.
    pub fn new(index: Arc<Index>) -> Arc<Self> {
        let (listeners, _) = broadcast::channel(NEWS_MAX);
        Arc::new(Self { index, listeners, backlog: Mutex::default(), reverts: Mutex::default() })
    }

    /// News from here on.
    pub fn listen(&self) -> broadcast::Receiver<ChainEvent> {
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

    fn tell(&self, head: ChainEvent) {
        // Nobody may be listening.
        let _ = self.listeners.send(head);
    }
}

impl Sink for Heads {
    fn finalized(&self, _: &Arc<Block>, _: &Arc<BlockOutput>) -> Result<(), SinkError> {
        let mut backlog = self.backlog.lock().expect("nobody panics while holding the backlog");
        self.tell(ChainEvent::New(backlog.push(self.index.tip())));
        Ok(())
    }

    fn reverted(&self, height: u64) -> Result<(), SinkError> {
        self.lock_reverts().push(height);
        self.tell(ChainEvent::Reverted(height));
        Ok(())
    }
}
