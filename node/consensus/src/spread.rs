//! Spreads candidates by sender and target, so that transactions which touch the same accounts do not follow each
//! other closely (AIP125-14).
//!
//! This is the proposer's policy, not a rule: verifiers accept a body in any order. `docs/block-order.md` describes
//! it.

use alloy_primitives::Address;
use almanac_primitives::RecoveredTransaction;
use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
};

/// How many of the candidates by price are looked at for the next place. Bounds the work, and how far a candidate
/// moves ahead of its price.
const WINDOW: usize = 32;

/// Places after a transaction in which its sender and its target are avoided.
const GAP: usize = 8;

/// Reorders candidates that are in the order of their price, each sender's by nonce. The next is always the first of
/// `WINDOW` whose sender and target are not among the last `GAP`, or the dearest if there is none. Each sender's stay
/// in order.
pub(crate) fn spread(by_price: &[RecoveredTransaction]) -> Vec<RecoveredTransaction> {
    let order = order(
        by_price
            .iter()
            .map(|candidate| Parties { sender: candidate.sender(), target: candidate.transaction().to() }),
    );
    order.into_iter().map(|index| by_price[index].clone()).collect()
}

/// The accounts by which candidates are spread.
#[derive(Clone, Copy, Debug)]
struct Parties {
    sender: Address,
    /// `None` if the transaction creates a contract: each has a new address.
    target: Option<Address>,
}

/// The order in which candidates are offered, as indexes.
fn order(by_price: impl ExactSizeIterator<Item = Parties>) -> Vec<usize> {
    let (mut senders, mut targets) = (Names::default(), Names::default());
    let named = by_price.enumerate().map(|(index, Parties { sender, target })| Named {
        index,
        sender: senders.number(sender),
        target: target.map(|target| targets.number(target)),
    });
    let mut waiting: VecDeque<Named> = named.collect();
    let mut places = Places::new(&senders, &targets);
    let mut order = Vec::with_capacity(waiting.len());
    while let Some(next) = waiting.remove(places.pick(order.len(), &waiting)) {
        places.take(order.len(), next);
        order.push(next.index);
    }
    order
}

/// A candidate whose accounts are small numbers, so that looking at one costs no comparison of addresses.
#[derive(Clone, Copy, Debug)]
struct Named {
    index: usize,
    sender: usize,
    target: Option<usize>,
}

/// Numbers names in the order of their first appearance.
#[derive(Debug)]
struct Names<T>(HashMap<T, usize>);

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T: Eq + Hash> Names<T> {
    fn number(&mut self, name: T) -> usize {
        let next = self.0.len();
        *self.0.entry(name).or_insert(next)
    }
}

/// The last place of each sender and of each target.
#[derive(Debug)]
struct Places {
    senders: Vec<Option<usize>>,
    targets: Vec<Option<usize>>,
    /// The place for which a candidate of the sender was passed over, so that its later ones are too.
    passed: Vec<Option<usize>>,
}

impl Places {
    fn new(senders: &Names<Address>, targets: &Names<Address>) -> Self {
        let [senders, targets] = [senders, targets].map(|names| names.0.len());
        Self { senders: vec![None; senders], targets: vec![None; targets], passed: vec![None; senders] }
    }

    /// Which of those that wait gets this place.
    fn pick(&mut self, place: usize, waiting: &VecDeque<Named>) -> usize {
        let is_near = |last: Option<usize>| last.is_some_and(|last| place - last <= GAP);
        let found = waiting.iter().take(WINDOW).position(|candidate| {
            let is_free = self.passed[candidate.sender] != Some(place)
                && !is_near(self.senders[candidate.sender])
                && !is_near(candidate.target.and_then(|target| self.targets[target]));
            self.passed[candidate.sender] = Some(place);
            is_free
        });
        found.unwrap_or(0)
    }

    fn take(&mut self, place: usize, candidate: Named) {
        self.senders[candidate.sender] = Some(place);
        if let Some(target) = candidate.target {
            self.targets[target] = Some(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use almanac_primitives::params::BLOCK_TRANSACTIONS_MAX;
    use proptest::prelude::*;
    use std::time::{Duration, Instant};

    fn parties(sender: u8, target: u8) -> Parties {
        let target = (target > 0).then(|| Address::with_last_byte(target));
        Parties { sender: Address::with_last_byte(sender), target }
    }

    fn order_of(by_price: &[Parties]) -> Vec<usize> {
        order(by_price.iter().copied())
    }

    /// The sentence of the policy, word by word.
    fn dull(by_price: &[Parties]) -> Vec<usize> {
        let (mut left, mut taken): (Vec<_>, Vec<usize>) = ((0..by_price.len()).collect(), Vec::new());
        while !left.is_empty() {
            let last = &taken[taken.len().saturating_sub(8)..];
            let is_apart = |at: usize| {
                let Parties { sender, target } = by_price[left[at]];
                let is_first_of_sender = left[..at].iter().all(|&before| by_price[before].sender != sender);
                let is_other = |&near: &usize| {
                    by_price[near].sender != sender && (target.is_none() || by_price[near].target != target)
                };
                is_first_of_sender && last.iter().all(is_other)
            };
            let at = (0..left.len().min(32)).find(|&at| is_apart(at)).unwrap_or(0);
            taken.push(left.remove(at));
        }
        taken
    }

    /// Few accounts, so that they clash, or many.
    fn candidates() -> impl Strategy<Value = Vec<Parties>> {
        (1..60u8, 1..60u8).prop_flat_map(|(senders, targets)| {
            proptest::collection::vec((0..senders, 0..targets).prop_map(|(s, t)| parties(s, t)), 0..200)
        })
    }

    proptest! {
        #[test]
        fn aip125_14_the_order_is_that_of_the_dull_version(by_price in candidates()) {
            prop_assert_eq!(order_of(&by_price), dull(&by_price));
        }

        #[test]
        fn aip125_14_nothing_is_lost_and_nonces_stay_in_order(by_price in candidates()) {
            let order = order_of(&by_price);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            prop_assert!(sorted.into_iter().eq(0..by_price.len()));
            for (place, &index) in order.iter().enumerate() {
                let sender = by_price[index].sender;
                prop_assert!(
                    order[..place].iter().all(|&before| by_price[before].sender != sender || before < index)
                );
            }
        }

        /// None comes more than a window ahead of its price, and the dearest that is left waits for a gap for its
        /// sender and another for its target.
        #[test]
        fn aip125_14_displacement_is_bounded(by_price in candidates()) {
            let order = order_of(&by_price);
            let (mut is_taken, mut first, mut passed) = (vec![false; by_price.len()], 0, 0);
            for (place, &index) in order.iter().enumerate() {
                prop_assert!(index < place + WINDOW);
                is_taken[index] = true;
                passed = if index == first { 0 } else { passed + 1 };
                prop_assert!(passed <= 2 * GAP, "the dearest was passed over {} times", passed);
                first += is_taken[first..].iter().take_while(|is_taken| **is_taken).count();
            }
        }
    }

    #[test]
    fn aip125_14_candidates_without_a_common_account_keep_the_order_of_price() {
        let by_price: Vec<_> = (0..100).map(|n| parties(n, n + 1)).collect();
        assert!(order_of(&by_price).into_iter().eq(0..100));
    }

    /// Both sides of the gap: with eight others between them equals are spread, with fewer they stay close.
    #[test]
    fn aip125_14_equal_senders_and_equal_targets_spread() {
        let of_sender = |n: u8| parties(200, n + 1);
        let to_target = |n: u8| parties(n, 201);
        let other = |n: u8| parties(100 + n, 100 + n);
        for equal in [&of_sender as &dyn Fn(u8) -> Parties, &to_target] {
            let by_price: Vec<_> = (0..3).map(equal).chain((0..16).map(other)).collect();
            let order = order_of(&by_price);
            let places = [0, 1, 2].map(|index| order.iter().position(|taken| *taken == index).unwrap());
            assert_eq!(places, [0, 9, 18]);
            let by_price: Vec<_> = (0..3).map(equal).chain((0..7).map(other)).collect();
            assert_eq!(order_of(&by_price), [0, 3, 4, 5, 6, 7, 8, 9, 1, 2], "too few others");
        }
    }

    /// Both sides of the window: what is further behind does not overtake.
    #[test]
    fn aip125_14_only_a_window_is_looked_at() {
        for (equals, second) in [(32, 32), (33, 1)] {
            let by_price: Vec<_> = (0..equals).map(|n| parties(n, 201)).chain([parties(250, 250)]).collect();
            assert_eq!(order_of(&by_price)[..2], [0, second]);
        }
    }

    /// As many as a proposal has, where every look is in vain: milliseconds, even unoptimised.
    #[test]
    fn spreading_a_whole_proposal_costs_little() {
        let by_price = [parties(1, 1); BLOCK_TRANSACTIONS_MAX];
        let start = Instant::now();
        let order = order_of(&by_price);
        println!("{} candidates of one sender: {:?}", order.len(), start.elapsed());
        assert!(start.elapsed() < Duration::from_secs(1));
    }

    #[test]
    fn aip125_14_transactions_that_create_share_no_target() {
        let by_price: Vec<_> = (0..20).map(|n| parties(n, 0)).collect();
        assert!(order_of(&by_price).into_iter().eq(0..20));
    }
}
