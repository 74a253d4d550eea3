//! Logs the progress of long work.

use std::time::{Duration, Instant};

/// Work that goes block by block.
pub(crate) struct Progress {
    doing: &'static str,
    total: u64,
    reported: Instant,
}

impl Progress {
    const EVERY: Duration = Duration::from_secs(1);

    /// Work of `total` blocks.
    pub(crate) fn new(doing: &'static str, total: u64) -> Self {
        Self { doing, total, reported: Instant::now() }
    }

    /// Writes a line if the last one was a while ago.
    pub(crate) fn report(&mut self, done: u64) {
        if self.reported.elapsed() >= Self::EVERY {
            self.reported = Instant::now();
            tracing::info!("{} {done} of {} blocks", self.doing, self.total);
        }
    }
}
