//! Finds the transaction that causes a fault of a whole block, over several proposals.
//!
//! Such a fault names no transaction: the state refuses the block, or an invariant is broken at its end. The proposer
//! falls back to an empty body. Its next proposal takes half as many candidates, and so on, until a single candidate
//! causes the fault: that one is dropped. A proposal that passes removes its candidates from the pool, which brings
//! the culprit closer to the front, and the next proposal takes twice as many. No proposal takes longer than before,
//! and no other candidate is dropped.

use crate::deadline::InTime;
use alloy_primitives::TxHash;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// How many candidates a proposal takes.
#[derive(Debug)]
pub(crate) struct Narrow(AtomicUsize);

impl Default for Narrow {
    fn default() -> Self {
        Self(AtomicUsize::new(usize::MAX))
    }
}

impl Narrow {
    /// Limits a source to the number of candidates that a proposal takes.
    pub(crate) fn limit(&self, source: InTime) -> InTime {
        source.at_most(self.0.load(Relaxed))
    }

    /// Whether proposals are limited, after a fault.
    pub(crate) fn is_searching(&self) -> bool {
        self.0.load(Relaxed) < usize::MAX
    }

    /// Records that a proposal passed.
    pub(crate) fn widen(&self) {
        self.0.store(self.0.load(Relaxed).saturating_mul(2), Relaxed);
    }

    /// Records that a proposal with these candidates caused a fault. Returns the culprit if it is known.
    pub(crate) fn after_fault(&self, taken: &[TxHash]) -> Option<TxHash> {
        self.0.store((taken.len() / 2).max(1), Relaxed);
        match taken {
            [culprit] => Some(*culprit),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever its position, the culprit is found after a number of faults logarithmic in the number of
    /// candidates; and no other candidate is dropped.
    #[test]
    fn the_culprit_is_found_wherever_it_stands() {
        const COUNT: usize = 1_000;
        for culprit in [0, 1, 499, 998, 999] {
            let mut pool: Vec<_> = (0..COUNT).map(|n| TxHash::with_last_byte(n as u8) ^ marked(n)).collect();
            let (narrow, bad, mut faults) = (Narrow::default(), pool[culprit], 0);
            let found = loop {
                let taken = pool[..pool.len().min(narrow.0.load(Relaxed))].to_vec();
                if taken.contains(&bad) {
                    faults += 1;
                    if let Some(found) = narrow.after_fault(&taken) {
                        break found;
                    }
                } else {
                    narrow.widen();
                    pool.drain(..taken.len());
                }
            };
            assert!(found == bad && faults <= 2 * COUNT.ilog2() + 2, "{culprit}: {faults} faults");
        }
    }

    fn marked(n: usize) -> TxHash {
        TxHash::from(alloy_primitives::U256::from(n) << 8)
    }

    #[test]
    fn without_a_fault_nothing_is_limited() {
        let narrow = Narrow::default();
        narrow.widen();
        assert_eq!(narrow.0.load(Relaxed), usize::MAX);
        assert!(!narrow.is_searching());
        assert_eq!(narrow.after_fault(&[TxHash::ZERO; 5]), None);
        assert_eq!(narrow.0.load(Relaxed), 2);
        assert!(narrow.is_searching());
        (0..64).for_each(|_| narrow.widen());
        assert_eq!(narrow.0.load(Relaxed), usize::MAX);
        assert!(!narrow.is_searching());
    }
}
