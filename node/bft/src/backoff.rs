//! Growing pauses between attempts.

use std::time::Duration;

/// The first pause. Short, because an attempt may only have collided with other work of this node.
const SHORTEST: Duration = Duration::from_millis(10);

/// The longest pause. Short compared with a view, so that a recovered disk costs no further view.
const LONGEST: Duration = Duration::from_secs(1);

/// Pauses that double up to a second. Never ends.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { next: SHORTEST }
    }
}

impl Iterator for Backoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let pause = self.next;
        self.next = (pause * 2).min(LONGEST);
        Some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_second() {
        let pauses: Vec<u128> = Backoff::default().take(10).map(|pause| pause.as_millis()).collect();
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1_000, 1_000, 1_000]);
    }
}
