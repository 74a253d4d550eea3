//! The tree of sealed batches above the committed tip.
//!
//! QMDB links a batch to its parents by weak pointers and compares states by their roots. Here a batch keeps
//! its parents alive, and two batches with equal content are distinct, as in the memory store.

use super::{Sealed, root};
use crate::store::{CommitError, StaleBatch};
use std::sync::{Arc, Mutex, PoisonError};

/// One sealed batch.
pub(crate) struct Layer {
    /// QMDB's batch.
    pub(crate) sealed: Sealed,
    /// Number of batches below it, including genesis.
    pub(crate) height: u64,
    /// `None` once committed: nothing reads below the head, and history must not stay in memory. Written only
    /// while the store is locked for writing, so it is stable for readers.
    parent: Mutex<Option<Arc<Self>>>,
}

impl Layer {
    /// The state on disk.
    pub(super) fn committed(sealed: Sealed, height: u64) -> Arc<Self> {
        Arc::new(Self { sealed, height, parent: Mutex::new(None) })
    }

    /// A batch that was sealed on `parent`.
    pub(super) fn on(parent: &Arc<Self>, sealed: Sealed) -> Arc<Self> {
        let height = parent.height.checked_add(1).expect("2^64 blocks take for ever");
        Arc::new(Self { sealed, height, parent: Mutex::new(Some(Arc::clone(parent))) })
    }

    /// Refuses a batch that `tip` does not lead to.
    pub(super) fn check_live(self: &Arc<Self>, tip: &Arc<Self>) -> Result<(), StaleBatch> {
        let mut below = Arc::clone(self);
        while below.height > tip.height {
            let parent = below.parent().expect("a layer above the tip is uncommitted and has a parent");
            below = parent;
        }
        if Arc::ptr_eq(&below, tip) {
            Ok(())
        } else {
            Err(StaleBatch { height: self.height, tip_height: tip.height })
        }
    }

    /// Refuses a batch that does not lie directly on `tip`.
    pub(super) fn check_next(&self, tip: &Arc<Self>) -> Result<(), CommitError> {
        if self.parent().is_some_and(|parent| Arc::ptr_eq(&parent, tip)) {
            return Ok(());
        }
        Err(CommitError::NotOnTip {
            height: self.height,
            root: root(&self.sealed),
            tip_height: tip.height,
            tip_root: root(&tip.sealed),
        })
    }

    /// Lets go of what is below it, once it is the tip.
    pub(super) fn release_parent(&self) {
        *self.parent.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn parent(&self) -> Option<Arc<Self>> {
        self.parent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Layer {
    // Drop parents in a loop. The default drop is recursive, and a long chain of abandoned batches would
    // overflow the stack.
    fn drop(&mut self) {
        let mut next = take_parent(self);
        while let Some(mut layer) = next.and_then(Arc::into_inner) {
            next = take_parent(&mut layer);
        }
    }
}

fn take_parent(layer: &mut Layer) -> Option<Arc<Layer>> {
    layer.parent.get_mut().unwrap_or_else(PoisonError::into_inner).take()
}
