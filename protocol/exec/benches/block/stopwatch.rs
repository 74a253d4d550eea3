//! Durations of many rounds, and what is typical of them.

use std::{
    fmt,
    time::{Duration, Instant},
};

/// Runs `work` and answers with its result and how long it took.
pub(crate) fn time<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// What the rounds of one measurement took.
#[derive(Clone, Default)]
pub(crate) struct Samples(Vec<Duration>);

impl Samples {
    /// Notes a round, unless it was only to warm up.
    pub(crate) fn push_if(&mut self, is_counted: bool, sample: Duration) {
        if is_counted {
            self.0.push(sample);
        }
    }

    pub(crate) fn median(&self) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort();
        sorted[sorted.len() / 2]
    }

    fn min(&self) -> Duration {
        self.0.iter().copied().min().unwrap_or_default()
    }

    fn max(&self) -> Duration {
        self.0.iter().copied().max().unwrap_or_default()
    }

    /// How often per second a round's `count` things were done, by the median.
    pub(crate) fn per_second(&self, count: usize) -> f64 {
        count as f64 / self.median().as_secs_f64()
    }

    /// The median of `other / self` over the rounds: above 1, this one is faster.
    pub(crate) fn speed_against(&self, other: &Self) -> f64 {
        let mut ratios: Vec<f64> =
            self.0.iter().zip(&other.0).map(|(a, b)| b.as_secs_f64() / a.as_secs_f64()).collect();
        ratios.sort_by(f64::total_cmp);
        ratios[ratios.len() / 2]
    }

    /// The same of the fastest round of each.
    pub(crate) fn best_against(&self, other: &Self) -> f64 {
        other.min().as_secs_f64() / self.min().as_secs_f64()
    }
}

impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
        write!(
            f,
            "median {:8.3} ms   min {:8.3}   max {:8.3}",
            ms(self.median()),
            ms(self.min()),
            ms(self.max())
        )
    }
}
