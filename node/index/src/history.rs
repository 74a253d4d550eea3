//! The state after one block, for as long as it is kept.
//!
//! Beside the state at the tip there is, for each block and each key that it changed, what the value was before. A
//! reader is bound to a height and finds the first change after it, so that a question which takes a while sees
//! one state, whatever blocks come meanwhile. Between two reads it holds nothing that anybody waits for.

use crate::{index::Shared, read};
use alloy_primitives::Bytes;
use almanac_primitives::{StateKey, StateRead, StateReadError};
use std::{fmt, sync::Arc};

/// What a reader says first when its block is no longer there. Execution passes reasons on as text, so this is how
/// whoever asked tells a chain that moved on from a store that failed.
pub const GONE: &str = "the state is gone";

/// The state after one block. It stays what it is, or says that it is gone.
#[derive(Clone)]
pub struct HistoricalState {
    shared: Arc<Shared>,
    height: u64,
    /// How often blocks had been taken back when this was made.
    reverts: usize,
}

impl HistoricalState {
    pub(crate) fn new(shared: Arc<Shared>, height: u64, reverts: usize) -> Self {
        Self { shared, height, reverts }
    }

    /// The block after which this was the state.
    pub fn height(&self) -> u64 {
        self.height
    }

    fn value(&self, key: &StateKey) -> Result<Option<Bytes>, String> {
        // Nothing is taken back while this is held, and it is held for one read only.
        let reverts = self.shared.reverts();
        if let Some(lower) = reverts[self.reverts..].iter().find(|height| **height < self.height) {
            return Err(format!("{GONE}: block {} was taken back, to block {lower}: ask anew", self.height));
        }
        let read = self.shared.store.ask(|view| read::value_at(view, key, self.height));
        let value = read.map_err(|error| error.to_string())?;
        // A height is given up before its rows go, so what was read before this check was whole.
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
        self.value(&key).map_err(|reason| StateReadError::failed(key, reason))
    }
}

impl fmt::Debug for HistoricalState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HistoricalState").field("height", &self.height).finish_non_exhaustive()
    }
}
