//! Clocks that are wrong.

use almanac_consensus::Clock;
use almanac_primitives::TimestampMs;

/// How a validator's clock differs from the simulated one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skew {
    /// Ahead, or behind where negative, in milliseconds.
    Offset(i64),
    /// Standing still at the beginning of time, and waiting for nothing.
    Frozen,
}

#[derive(Clone)]
pub struct SimClock<C> {
    inner: C,
    skew: Skew,
}

impl<C> SimClock<C> {
    pub fn new(inner: C, skew: Skew) -> Self {
        Self { inner, skew }
    }
}

impl<C: Clock> Clock for SimClock<C> {
    fn now(&self) -> TimestampMs {
        match self.skew {
            Skew::Offset(ahead) => TimestampMs(self.inner.now().0.saturating_add_signed(ahead)),
            Skew::Frozen => TimestampMs(0),
        }
    }

    async fn sleep_until(&self, deadline: TimestampMs) {
        if let Skew::Offset(ahead) = self.skew {
            let deadline = deadline.0.saturating_add_signed(ahead.saturating_neg());
            self.inner.sleep_until(TimestampMs(deadline)).await;
        }
    }
}
