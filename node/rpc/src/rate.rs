//! Limits the calls per second of each client.

use crate::peer::Peer;
use quick_cache::unsync::Cache;
use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// Clients that are remembered. Beyond it, those who ask least are forgotten, which favours them.
const CLIENTS_MAX: usize = 10_000;

/// A second's worth of calls is what a client can save up.
const SAVED_MAX: Duration = Duration::from_secs(1);

/// A bucket for each client, which fills at the rate and holds a second's worth.
///
/// A bucket is the moment at which it will be full again (the generic cell rate algorithm): a call moves that moment by
/// the time of one call.
#[derive(Debug)]
pub(crate) struct Rate {
    call_time: Option<Duration>,
    full_at: Mutex<Cache<Peer, Instant>>,
}

impl Rate {
    /// So many calls per second, or any number.
    pub(crate) fn new(per_second: Option<u32>) -> Arc<Self> {
        let call_time = per_second.map(|calls| SAVED_MAX / calls.max(1));
        Arc::new(Self { call_time, full_at: Mutex::new(Cache::new(CLIENTS_MAX)) })
    }

    /// Takes so many calls from a client's bucket, or returns how long to wait for one.
    pub(crate) fn take(&self, peer: Peer, calls: usize) -> Result<(), Duration> {
        self.take_at(peer, calls, Instant::now())
    }

    fn take_at(&self, peer: Peer, calls: usize, now: Instant) -> Result<(), Duration> {
        let Some(call_time) = self.call_time else { return Ok(()) };
        let mut buckets = self.full_at.lock().expect("nobody panics while holding the buckets");
        let full_at = buckets.get(&peer).map_or(now, |full_at| now.max(*full_at));
        // A batch may overdraw: one call must be there, the others are paid for by waiting afterwards.
        let wait = (full_at - now).saturating_sub(SAVED_MAX - call_time);
        if !wait.is_zero() {
            return Err(wait);
        }
        let calls = u32::try_from(calls).unwrap_or(u32::MAX);
        buckets.insert(peer, full_at + call_time.saturating_mul(calls));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn peer(n: u8) -> Peer {
        Peer::new(Ipv4Addr::new(10, 0, 0, n).into())
    }

    #[test]
    fn a_second_holds_so_many_calls_and_no_more() {
        let rate = Rate::new(Some(10));
        let start = Instant::now();
        for n in 0..10 {
            assert_eq!(rate.take_at(peer(1), 1, start), Ok(()), "{n}");
        }
        assert_eq!(rate.take_at(peer(1), 1, start), Err(Duration::from_millis(100)));
        assert_eq!(rate.take_at(peer(2), 1, start), Ok(()), "others have their own");
        assert_eq!(rate.take_at(peer(1), 1, start + Duration::from_millis(100)), Ok(()));
        assert!(rate.take_at(peer(1), 1, start + Duration::from_millis(150)).is_err());
        for n in 0..10 {
            assert_eq!(
                rate.take_at(peer(1), 1, start + Duration::from_secs(60)),
                Ok(()),
                "{n} after a pause"
            );
        }
        assert!(
            rate.take_at(peer(1), 1, start + Duration::from_secs(60)).is_err(),
            "a pause saves up a second"
        );
    }

    #[test]
    fn a_large_batch_is_paid_for_afterwards() {
        let rate = Rate::new(Some(10));
        let start = Instant::now();
        assert_eq!(rate.take_at(peer(1), 30, start), Ok(()));
        assert!(rate.take_at(peer(1), 1, start + Duration::from_millis(2_050)).is_err());
        assert_eq!(rate.take_at(peer(1), 1, start + Duration::from_millis(2_150)), Ok(()));
    }

    #[test]
    fn memory_is_bounded_and_a_busy_client_is_not_forgotten_in_a_crowd() {
        let rate = Rate::new(Some(10));
        let start = Instant::now();
        assert_eq!(rate.take_at(peer(1), 20, start), Ok(()));
        for n in 0..4 * CLIENTS_MAX {
            let stranger = Ipv4Addr::from_bits(0x0b00_0000 + u32::try_from(n).unwrap());
            assert_eq!(rate.take_at(Peer::new(stranger.into()), 1, start), Ok(()));
            if n % 1_000 == 0 {
                assert!(rate.take_at(peer(1), 1, start).is_err(), "after {n} others");
            }
        }
        let remembered = rate.full_at.lock().unwrap().len();
        assert!((CLIENTS_MAX / 2..=CLIENTS_MAX).contains(&remembered), "{remembered}");
    }

    #[test]
    fn without_a_limit_nobody_waits() {
        let rate = Rate::new(None);
        assert!((0..10_000).all(|_| rate.take(peer(1), 100).is_ok()));
    }
}
