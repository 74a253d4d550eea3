//! Clocks that are wrong.

use crate::sim::run::milliseconds;
use almanac_consensus::Clock;
use almanac_primitives::TimestampMs;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// How a validator's clock differs from the simulated one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skew {
    /// Ahead, or behind where negative, in milliseconds.
    Offset(i64),
    /// Standing still at the beginning of time, and waiting for nothing.
    Frozen,
}

/// The clock that a validator votes or proposes by.
#[derive(Clone)]
pub struct SimClock<C> {
    inner: C,
    skew: Skew,
    work: Arc<Work>,
}

/// Time that executing takes. In the simulator it takes none, so it is added: each look at the clock is one between
/// two transactions.
#[derive(Default)]
struct Work {
    each_us: u64,
    spent_us: AtomicU64,
}

impl<C: Clock> SimClock<C> {
    pub fn new(inner: C, skew: Skew) -> Self {
        Self { inner, skew, work: Arc::default() }
    }

    /// The same for one who executes a transaction between two looks at it.
    pub fn while_choosing(inner: C, skew: Skew, transaction_time: Duration) -> Self {
        let each_us = u64::try_from(transaction_time.as_micros()).unwrap();
        Self { work: Arc::new(Work { each_us, spent_us: AtomicU64::new(0) }), ..Self::new(inner, skew) }
    }

    /// Lets the time pass that choosing transactions took.
    pub async fn pass_choosing(&self) {
        let spent_us = self.work.spent_us.swap(0, Relaxed);
        self.pass(Duration::from_micros(spent_us)).await;
    }

    /// Lets time pass.
    pub async fn pass(&self, time: Duration) {
        let until = TimestampMs(self.inner.now().0 + milliseconds(time).0);
        self.inner.sleep_until(until).await;
    }
}

impl<C: Clock> Clock for SimClock<C> {
    fn now(&self) -> TimestampMs {
        let spent_us = self.work.spent_us.fetch_add(self.work.each_us, Relaxed);
        match self.skew {
            Skew::Offset(ahead) => {
                TimestampMs(self.inner.now().0.saturating_add_signed(ahead) + spent_us / 1_000)
            }
            Skew::Frozen => TimestampMs(0),
        }
    }

    async fn sleep_until(&self, deadline: TimestampMs) {
        if let Skew::Offset(ahead) = self.skew {
            let deadline = deadline.0.saturating_add_signed(ahead.saturating_neg());
            self.inner.sleep_until(TimestampMs(deadline)).await;
        }
        self.work.spent_us.store(0, Relaxed);
    }
}
