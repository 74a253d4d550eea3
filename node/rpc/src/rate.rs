//! Limits the calls per second of each client.

use crate::peer::Peer;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// Clients that are remembered. Beyond it, those who have asked least lately are forgotten, which favours them.
const CLIENTS_MAX: usize = 10_000;

/// A bucket for each client, which fills at the rate and holds a second's worth.
#[derive(Debug)]
pub(crate) struct Rate {
    per_second: Option<u32>,
    buckets: Mutex<BTreeMap<Peer, Bucket>>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Rate {
    /// So many calls per second, or any number.
    pub(crate) fn new(per_second: Option<u32>) -> Arc<Self> {
        Arc::new(Self { per_second, buckets: Mutex::default() })
    }

    /// Takes so many calls from a client's bucket, or says how long to wait for one.
    pub(crate) fn take(&self, peer: Peer, calls: usize) -> Result<(), Duration> {
        self.take_at(peer, calls, Instant::now())
    }

    fn take_at(&self, peer: Peer, calls: usize, now: Instant) -> Result<(), Duration> {
        let Some(per_second) = self.per_second.map(f64::from) else { return Ok(()) };
        let mut buckets = self.buckets.lock().expect("nobody panics while holding the buckets");
        if buckets.len() >= CLIENTS_MAX {
            buckets.retain(|_, bucket| now.duration_since(bucket.at) < Duration::from_secs(1));
        }
        let bucket = buckets.entry(peer).or_insert(Bucket { left: per_second, at: now });
        let filled = now.saturating_duration_since(bucket.at).as_secs_f64() * per_second;
        let left = (bucket.left + filled).min(per_second) - calls as f64;
        // A batch may overdraw; whoever is below zero waits.
        if bucket.left + filled < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - bucket.left - filled) / per_second));
        }
        *bucket = Bucket { left, at: now };
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
    fn without_a_limit_nobody_waits() {
        let rate = Rate::new(None);
        assert!((0..10_000).all(|_| rate.take(peer(1), 100).is_ok()));
    }
}
