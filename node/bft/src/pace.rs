//! Paces work that commits wait for: they wait for a quarter of the time at most.

use commonware_runtime::Clock;
use std::{future::Future, time::Duration};

/// Rest after work, as many times as long.
const REST: u32 = 3;

/// Longest time that counts as work. A clock that is set forward meanwhile must not end the work for hours.
const WORK_MAX: Duration = Duration::from_secs(2);

/// Does some work, and rests afterwards.
pub async fn paced<T>(clock: &impl Clock, work: impl Future<Output = T>) -> T {
    let begin = clock.current();
    let done = work.await;
    let spent = clock.current().duration_since(begin).unwrap_or_default();
    clock.sleep(spent.min(WORK_MAX) * REST).await;
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use commonware_runtime::{Runner as _, deterministic};

    /// Seconds from the begin of work that takes so many, or seems to, until the end of the rest.
    fn seconds_with_rest(work: u64) -> u64 {
        deterministic::Runner::default().start(async |clock| {
            let begin = clock.current();
            paced(&clock, clock.sleep(Duration::from_secs(work))).await;
            clock.current().duration_since(begin).unwrap().as_secs()
        })
    }

    #[test]
    fn rests_three_times_as_long() {
        assert_eq!([0, 1, 2].map(seconds_with_rest), [0, 4, 8]);
    }

    #[test]
    fn a_clock_that_is_set_forward_costs_a_few_seconds() {
        assert_eq!(seconds_with_rest(3_600), 3_606);
    }
}
