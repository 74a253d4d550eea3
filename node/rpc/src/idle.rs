//! Knows whether anybody still uses a connection.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

/// What happens on one connection.
#[derive(Clone, Debug)]
pub(crate) struct Activity(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// Requests that are being answered. A WebSocket is one that never ends: its own pings find out whether anybody
    /// is there.
    busy: usize,
    last: Instant,
}

/// A request that is being answered, until this is dropped.
pub(crate) struct Busy(Activity);

impl Activity {
    /// A connection that was just made.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(State { busy: 0, last: Instant::now() })))
    }

    /// Begins a request.
    pub(crate) fn begin(&self) -> Busy {
        self.lock().busy += 1;
        Busy(self.clone())
    }

    /// Waits until nothing has happened for so long.
    pub(crate) async fn idle(&self, time_max: Duration) {
        loop {
            let left = {
                let state = self.lock();
                if state.busy > 0 { time_max } else { time_max.saturating_sub(state.last.elapsed()) }
            };
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nobody panics while holding a count")
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.busy -= 1;
        state.last = Instant::now();
    }
}
