//! Turns log lines about blocks on and off. Tools turn them off during setup.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Shared by all that write such lines: clones are the same switch.
#[derive(Clone, Debug)]
pub(crate) struct LogSwitch(Arc<AtomicBool>);

impl LogSwitch {
    /// Whether to write.
    pub(crate) fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Turns it on or off.
    pub(crate) fn set(&self, is_on: bool) {
        self.0.store(is_on, Ordering::Relaxed);
    }
}

impl Default for LogSwitch {
    fn default() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }
}
