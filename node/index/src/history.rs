//! The state after one block, as long as it is kept.
//!
//! In addition to the state at the tip, the index stores the old value of each key that a block changed. A
//! reader is bound to a height and finds the first change after it, so a long request sees one consistent state
//! while new blocks arrive. Between two reads it holds no lock.

use crate::{index::Shared, read};
use alloy_primitives::Bytes;
use almanac_primitives::{Origin, StateKey, StateRead, StateReadError};
use std::{fmt, sync::Arc};

/// Prefix of the error when a reader's block is gone. Execution passes errors on as text, so callers use this
/// prefix to tell a reverted or pruned block from a failing store.
pub const GONE: &str = "the state is gone";

/// The state after one block. Reads return that state, or fail if it is gone.
#[derive(Clone)]
pub struct HistoricalState {
    shared: Arc<Shared>,
    height: u64,
    /// How many reverts had happened when this was created.
    reverts: usize,
}

impl HistoricalState {
    pub(crate) fn new(shared: Arc<Shared>, height: u64, reverts: usize) -> Self {
        Self { shared, height, reverts }
    }

    /// The height of the block.
    pub fn height(&self) -> u64 {
        self.height
    }

    /// What the index holds of a key. On a forked chain, `None` is what no block of ours has written.
    fn stored(&self, key: &StateKey) -> Result<Option<Bytes>, String> {
        // No revert happens while this lock is held. It is held for one read only.
        let reverts = self.shared.reverts();
        if let Some(lower) = reverts[self.reverts..].iter().find(|height| **height < self.height) {
            return Err(format!("{GONE}: block {} was taken back, to block {lower}: ask anew", self.height));
        }
        let is_forked = self.shared.origin.is_some();
        let read = self.shared.store.ask(|view| read::value_at(view, key, self.height, is_forked));
        let value = read.map_err(|error| error.to_string())?;
        // `oldest` rises before rows are pruned, so a value read before this check is correct.
        let oldest = self.shared.oldest();
        if self.height < oldest {
            return Err(format!(
                "{GONE}: block {} is no longer kept, the oldest is {oldest}: ask for a later block",
                self.height
            ));
        }
        Ok(value)
    }
}

impl StateRead for HistoricalState {
    fn read(&self, key: StateKey) -> Result<Option<Bytes>, StateReadError> {
        let stored = self.stored(&key).map_err(|reason| StateReadError::failed(key, reason))?;
        match &self.shared.origin {
            // It may take long, so no lock is held.
            Some(origin) => origin.seen(&key, stored),
            None => Ok(stored),
        }
    }

    fn announce(&self, keys: &[StateKey]) {
        let Some(origin) = &self.shared.origin else { return };
        let is_lacking = |key: &&StateKey| Origin::has(key) && matches!(self.stored(key), Ok(None));
        let lacking: Vec<_> = keys.iter().filter(is_lacking).copied().collect();
        origin.announce(&lacking);
    }
}

impl fmt::Debug for HistoricalState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HistoricalState").field("height", &self.height).finish_non_exhaustive()
    }
}
