//! Whether log lines about blocks are written. Tools turn them off during setup.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// A switch that everybody has who writes such lines. Cloning gives the same one.
#[derive(Clone, Debug)]
pub struct LogSwitch(Arc<AtomicBool>);

impl LogSwitch {
    /// Whether to write.
    pub fn is_on(&self) -> bool {
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
