//! A token bucket for each peer: a rate per second, and a burst.

use almanac_primitives::TimestampMs;
use std::collections::BTreeMap;

/// The rate and burst of every peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allowance {
    pub(crate) per_second: u64,
    /// A peer that has used up its burst has to wait.
    pub(crate) burst: u64,
}

/// The usage of each peer. Contains only peers with recent usage.
#[derive(Debug)]
pub(crate) struct Credits<P> {
    allowance: Allowance,
    used: BTreeMap<P, Used>,
}

#[derive(Clone, Copy, Debug)]
struct Used {
    /// In thousandths, so that each millisecond gives back `per_second` of them.
    amount: u64,
    at: TimestampMs,
}

impl<P: Ord> Credits<P> {
    /// No peer has used anything.
    pub(crate) fn new(allowance: Allowance) -> Self {
        Self { allowance, used: BTreeMap::new() }
    }

    /// Whether a peer has credit left.
    pub(crate) fn is_good(&mut self, peer: &P, now: TimestampMs) -> bool {
        if let Some(used) = self.used.get_mut(peer) {
            // After the clock was set back, count from the new time instead of waiting until it catches up.
            used.at = used.at.min(now);
        }
        let used = self.used(peer, now);
        if used == 0 {
            self.used.remove(peer);
        }
        used < self.allowance.burst.saturating_mul(1_000)
    }

    /// Charges a peer. The cost may exceed its credit.
    pub(crate) fn charge(&mut self, peer: P, cost: usize, now: TimestampMs) {
        let cost = u64::try_from(cost).expect("a length fits 64 bits").saturating_mul(1_000);
        if cost > 0 {
            let amount = self.used(&peer, now).saturating_add(cost);
            self.used.insert(peer, Used { amount, at: now });
        }
    }

    /// Refunds part of a charge.
    pub(crate) fn refund(&mut self, peer: &P, cost: usize) {
        let cost = u64::try_from(cost).expect("a length fits 64 bits").saturating_mul(1_000);
        if let Some(used) = self.used.get_mut(peer) {
            used.amount = used.amount.saturating_sub(cost);
        }
    }

    /// How long until a peer has credit again, in milliseconds.
    pub(crate) fn wait_ms(&self, peer: &P, now: TimestampMs) -> u64 {
        let over = self.used(peer, now).checked_sub(self.allowance.burst.saturating_mul(1_000));
        // A peer exactly at the burst has nothing left either.
        over.map_or(0, |over| (over + 1).div_ceil(self.allowance.per_second.max(1)))
    }

    /// What still counts as used. Setting the clock back gives nothing back.
    fn used(&self, peer: &P, now: TimestampMs) -> u64 {
        self.used.get(peer).map_or(0, |used| {
            let passed_ms = now.0.saturating_sub(used.at.0);
            used.amount.saturating_sub(passed_ms.saturating_mul(self.allowance.per_second))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWANCE: Allowance = Allowance { per_second: 2_000, burst: 4_096 };
    const BURST: usize = 4_096;

    fn at(ms: u64) -> TimestampMs {
        TimestampMs(1_000_000 + ms)
    }

    #[test]
    fn both_sides_of_the_burst_and_each_peer_for_itself() {
        let mut credits = Credits::new(ALLOWANCE);
        credits.charge('a', BURST - 1, at(0));
        assert!(credits.is_good(&'a', at(0)));
        credits.charge('a', 1, at(0));
        assert!(!credits.is_good(&'a', at(0)));
        assert!(credits.is_good(&'b', at(0)));
    }

    #[test]
    fn credit_comes_back_at_the_rate_and_then_nothing_is_remembered() {
        let mut credits = Credits::new(ALLOWANCE);
        credits.charge('a', BURST + 2_000, at(0));
        assert!(!credits.is_good(&'a', at(1_000)));
        assert!(credits.is_good(&'a', at(1_001)), "a second later, for 2,000 too many");
        let whole = 1_000 * (ALLOWANCE.burst + 2_000) / ALLOWANCE.per_second;
        assert!(credits.is_good(&'a', at(whole - 1)));
        assert_eq!(credits.used.len(), 1);
        assert!(credits.is_good(&'a', at(whole)));
        assert!(credits.used.is_empty());
    }

    #[test]
    fn the_wait_is_as_long_as_it_takes_and_no_longer() {
        let mut credits = Credits::new(ALLOWANCE);
        assert_eq!(credits.wait_ms(&'a', at(0)), 0);
        for cost in [BURST - 1, 1, 1, 777, 100_000] {
            credits.charge('a', cost, at(0));
            let wait = credits.wait_ms(&'a', at(0));
            assert_eq!(wait == 0, credits.is_good(&'a', at(0)), "{wait}");
            assert!(credits.is_good(&'a', at(wait)), "{wait}");
            assert!(wait == 0 || !credits.is_good(&'a', at(wait - 1)), "{wait}");
        }
    }

    #[test]
    fn a_refund_takes_back_a_charge_and_no_more() {
        let mut credits = Credits::new(ALLOWANCE);
        credits.refund(&'a', 10);
        credits.charge('a', BURST + 5, at(0));
        credits.refund(&'a', 5);
        assert!(!credits.is_good(&'a', at(0)));
        credits.refund(&'a', 1);
        assert!(credits.is_good(&'a', at(0)));
        credits.refund(&'a', 2 * BURST);
        credits.charge('a', BURST - 1, at(0));
        assert!(credits.is_good(&'a', at(0)));
        credits.charge('a', 1, at(0));
        assert!(!credits.is_good(&'a', at(0)), "nothing was saved up");
    }

    /// In the long run, a peer gets the burst and the rate, whatever the size of its charges.
    #[test]
    fn no_more_than_the_rate_over_time() {
        for size in [1, 100, 1_024] {
            let (mut credits, mut cost) = (Credits::new(ALLOWANCE), 0);
            for ms in 0..60_000 {
                if credits.is_good(&'a', at(ms)) {
                    credits.charge('a', size, at(ms));
                    cost += size as u64;
                }
            }
            let most = ALLOWANCE.burst + 60 * ALLOWANCE.per_second + 1_024;
            assert!(cost <= most, "{cost} of {most}, {size} at a time");
        }
    }

    #[test]
    fn a_clock_that_goes_back_gives_nothing_back() {
        let mut credits = Credits::new(ALLOWANCE);
        credits.charge('a', BURST, at(5_000));
        assert!(!credits.is_good(&'a', at(0)));
        assert!(credits.is_good(&'a', at(1)));
    }

    /// A peer without credit does not wait for an hour when the clock is set back by an hour.
    #[test]
    fn a_clock_that_is_set_back_costs_a_peer_nothing() {
        let mut credits = Credits::new(ALLOWANCE);
        credits.charge('a', BURST + 2_000, at(3_600_000));
        assert!(!credits.is_good(&'a', at(0)));
        assert!(!credits.is_good(&'a', at(1_000)), "nor does it gain anything");
        assert!(credits.is_good(&'a', at(1_001)));
    }
}
