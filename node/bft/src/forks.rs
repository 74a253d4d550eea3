//! The executed blocks above the last final one, on every fork.
//!
//! ```text
//! final ── 7 (tip) ─┬─ 8a ─── 9a    advance_to(8a): 8a becomes the tip, 9a stays,
//!                   └─ 8b ─── 9b                    8b and 9b are forgotten
//! ```

use alloy_primitives::{BlockHash, TxHash};
use almanac_consensus::{MadeBlock, Tip};
use almanac_primitives::{Block, Header, UserTransaction};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Executed blocks to keep at most, unless they are in one line: one of each view that fails while nothing becomes final.
const KEPT_MAX: usize = 256;

/// Every executed block that may still become final.
pub(crate) struct Forks<B> {
    tip: Tip<B>,
    /// The block of the tip, if it became final here: the pool may not know it yet.
    newest_final: Option<Arc<Block>>,
    /// Ordered by height, so that iteration visits parents before children.
    made: BTreeMap<(u64, BlockHash), MadeBlock<B>>,
}

/// What is known of a block.
pub(crate) enum Place<B> {
    /// The last final block, or an executed block above it.
    Known(Box<Tip<B>>),
    /// It was not executed yet.
    Unknown,
    /// The chain continued without it.
    Abandoned,
}

impl<B: Clone> Forks<B> {
    pub(crate) fn new(tip: Tip<B>) -> Self {
        Self { tip, newest_final: None, made: BTreeMap::new() }
    }

    /// The last final block.
    pub(crate) fn tip(&self) -> &Tip<B> {
        &self.tip
    }

    pub(crate) fn find(&self, number: u64, hash: BlockHash) -> Place<B> {
        if hash == self.tip.hash {
            return Place::Known(Box::new(self.tip.clone()));
        }
        if number <= self.tip.header.number {
            return Place::Abandoned;
        }
        self.get(number, hash).map_or(Place::Unknown, |made| Place::Known(Box::new(made.tip.clone())))
    }

    pub(crate) fn get(&self, number: u64, hash: BlockHash) -> Option<&MadeBlock<B>> {
        self.made.get(&(number, hash))
    }

    /// Keeps an executed block and returns the one to use. Two executions of one block are distinct to the
    /// state store, and all its children must be built on the same one. `None` if the chain continued without
    /// it in the meantime.
    pub(crate) fn keep(&mut self, made: MadeBlock<B>) -> Option<MadeBlock<B>> {
        let key = (made.tip.header.number, made.tip.hash);
        let kept = self.insert(made)?.clone();
        while self.made.len() > KEPT_MAX && self.forget_oldest(key) {}
        Some(kept)
    }

    fn insert(&mut self, made: MadeBlock<B>) -> Option<&MadeBlock<B>> {
        if !self.leads_to(&made.tip.header) {
            return None;
        }
        Some(self.made.entry((made.tip.header.number, made.tip.hash)).or_insert(made))
    }

    /// Forgets the block of the oldest view that nothing is built on, and that nobody has who may be building on it: what
    /// he builds could not be kept, or would be on another execution of it than the one that is kept then. If it is needed
    /// after all, it is executed again. Returns whether there was one.
    fn forget_oldest(&mut self, newest: (u64, BlockHash)) -> bool {
        let parent_of =
            |made: &MadeBlock<B>| (made.tip.header.number.saturating_sub(1), made.tip.header.parent_hash);
        let parents: BTreeSet<_> = self.made.values().map(parent_of).collect();
        let is_free = |key: &(u64, BlockHash), made: &MadeBlock<B>| {
            *key != newest && !parents.contains(key) && !made.tip.is_copied()
        };
        let ends = self.made.iter().filter(|(key, made)| is_free(key, made));
        let oldest = ends.min_by_key(|(_, made)| made.tip.header.consensus.view).map(|(key, _)| *key);
        oldest.is_some_and(|oldest| self.made.remove(&oldest).is_some())
    }

    /// Hashes of the transactions in the newest final block and in those above it, up to a known block.
    pub(crate) fn included(&self, number: u64, hash: BlockHash) -> BTreeSet<TxHash> {
        let mut place = (number, hash);
        let mut blocks = Vec::from_iter(&self.newest_final);
        while let Some(made) = self.made.get(&place) {
            blocks.push(&made.block);
            place = (made.tip.header.number.saturating_sub(1), made.tip.header.parent_hash);
        }
        blocks.iter().flat_map(|block| &block.transactions).map(UserTransaction::hash).collect()
    }

    /// Makes a block that lies directly on the tip the tip, and forgets what does not descend from it.
    pub(crate) fn advance_to(&mut self, made: &MadeBlock<B>) {
        assert_eq!(made.tip.header.parent_hash, self.tip.hash, "final blocks follow one another");
        self.tip = made.tip.clone();
        self.newest_final = Some(made.block.clone());
        // Parents come before children, who would look like nobody's if some were to be forgotten on the way.
        for (_, made) in std::mem::take(&mut self.made) {
            self.insert(made);
        }
    }

    fn leads_to(&self, header: &Header) -> bool {
        let Some(parent) = header.number.checked_sub(1) else { return false };
        matches!(self.find(parent, header.parent_hash), Place::Known(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use almanac_consensus::{Application, Deadline, Proposal};
    use almanac_primitives::{
        ConsensusContext, TimestampMs,
        testing::{FEE_RECIPIENT, START, genesis, person, recovered, transfer},
    };
    use almanac_schedule::CalendarAgenda;
    use almanac_state::{MemoryBatch, MemoryStore};
    use futures::executor::block_on;

    type Made = MadeBlock<MemoryBatch>;

    struct Maker(Application<MemoryStore>);

    impl Maker {
        fn start() -> (Self, Forks<MemoryBatch>) {
            let genesis = genesis();
            let store = MemoryStore::from_genesis(genesis.state().unwrap());
            let (application, tip) = Application::new(&genesis, store, Arc::new(CalendarAgenda)).unwrap();
            (Self(application), Forks::new(tip))
        }

        fn child(&self, parent: &Tip<MemoryBatch>, after_ms: u64) -> Made {
            self.child_with(parent, after_ms, &[])
        }

        fn child_with(&self, parent: &Tip<MemoryBatch>, after_ms: u64, senders: &[u64]) -> Made {
            let candidate = |n: &u64| recovered(transfer(person(*n), 0, FEE_RECIPIENT, 1));
            let proposal = Proposal {
                timestamp: TimestampMs(START.0 + after_ms),
                fee_recipient: FEE_RECIPIENT,
                consensus: ConsensusContext {
                    view: after_ms,
                    parent_view: after_ms - 1,
                    ..Default::default()
                },
                candidates: senders.iter().map(candidate).collect(),
                more: almanac_consensus::More::NONE,
                deadline: Deadline::NEVER,
            };
            block_on(self.0.propose(parent, proposal)).unwrap()
        }
    }

    fn is_known(forks: &Forks<MemoryBatch>, made: &Made) -> bool {
        matches!(forks.find(made.tip.header.number, made.tip.hash), Place::Known(_))
    }

    #[test]
    fn advancing_keeps_descendants_and_forgets_the_rest() {
        let (maker, mut forks) = Maker::start();
        let (a, b) = (maker.child(forks.tip(), 1), maker.child(forks.tip(), 2));
        let (on_a, on_b) = (maker.child(&a.tip, 3), maker.child(&b.tip, 4));
        let on_on_a = maker.child(&on_a.tip, 5);
        for made in [&a, &b, &on_a, &on_b, &on_on_a] {
            assert!(forks.keep(made.clone()).is_some());
        }
        forks.advance_to(&a);
        assert_eq!(forks.tip().hash, a.tip.hash);
        assert!(is_known(&forks, &a) && is_known(&forks, &on_a) && is_known(&forks, &on_on_a));
        assert!(matches!(forks.find(1, b.tip.hash), Place::Abandoned), "at the height of the tip");
        assert!(!is_known(&forks, &on_b), "above it");
        assert_eq!(forks.made.len(), 2);
        assert!(forks.keep(on_b).is_none(), "what is executed too late is not kept");
        assert!(forks.keep(b).is_none());
    }

    /// What the pool may still hold although it is in a block: on the path to the parent, and on no other fork.
    #[test]
    fn included_is_what_lies_on_the_way_and_the_newest_final() {
        let hashes = |senders: &[u64]| -> BTreeSet<TxHash> {
            senders.iter().map(|n| transfer(person(*n), 0, FEE_RECIPIENT, 1).hash()).collect()
        };
        let (maker, mut forks) = Maker::start();
        let a = maker.child_with(forks.tip(), 1, &[0]);
        let b = maker.child_with(forks.tip(), 2, &[1]);
        let on_a = maker.child_with(&a.tip, 3, &[2, 3]);
        for made in [&a, &b, &on_a] {
            forks.keep(made.clone()).unwrap();
        }
        let included =
            |forks: &Forks<MemoryBatch>, tip: &Tip<MemoryBatch>| forks.included(tip.header.number, tip.hash);
        assert_eq!(included(&forks, forks.tip()), hashes(&[]));
        assert_eq!(included(&forks, &b.tip), hashes(&[1]));
        assert_eq!(included(&forks, &on_a.tip), hashes(&[0, 2, 3]));
        forks.advance_to(&a);
        assert_eq!(included(&forks, &a.tip), hashes(&[0]), "final, and perhaps not known to the pool");
        assert_eq!(included(&forks, &on_a.tip), hashes(&[0, 2, 3]));
        forks.advance_to(&on_a);
        assert_eq!(included(&forks, &on_a.tip), hashes(&[2, 3]), "the pool was told of the one before");
    }

    /// Views fail and nothing becomes final: all of them are proposed on the same block.
    #[test]
    fn failed_views_leave_a_bounded_number_of_blocks() {
        let (maker, mut forks) = Maker::start();
        let base = maker.child(forks.tip(), 1);
        forks.keep(base.clone()).unwrap();
        let mut failed = Vec::new();
        for (count, view) in (2..).zip(2..KEPT_MAX as u64 + 12) {
            failed.push(forks.keep(maker.child(&base.tip, view)).unwrap().tip.hash);
            assert_eq!(forks.made.len(), KEPT_MAX.min(count));
        }
        let is_known = |forks: &Forks<MemoryBatch>, hash| matches!(forks.find(2, hash), Place::Known(_));
        let (oldest, newest) = failed.split_at(failed.len() + 1 - KEPT_MAX);
        assert!(!oldest.iter().any(|hash| is_known(&forks, *hash)), "the oldest views");
        assert!(newest.iter().all(|hash| is_known(&forks, *hash)) && forks.get(1, base.tip.hash).is_some());
        forks.keep(maker.child(&base.tip, 2)).unwrap();
        assert!(is_known(&forks, oldest[0]), "it was executed again, so somebody needs it");
    }

    /// Regression: the oldest of the failed views was forgotten while a block was made on it. That block was abandoned;
    /// or, if the forgotten one was executed again meanwhile, kept on another execution than the one to become final.
    #[test]
    fn what_somebody_builds_on_is_not_forgotten() {
        let (maker, mut forks) = Maker::start();
        let oldest = forks.keep(maker.child(forks.tip(), 1)).unwrap().tip;
        let tip = forks.tip().clone();
        for view in 2..KEPT_MAX as u64 + 12 {
            forks.keep(maker.child(&tip, view)).unwrap();
        }
        assert_eq!(forks.made.len(), KEPT_MAX);
        let child = forks.keep(maker.child(&oldest, 2 * KEPT_MAX as u64));
        assert!(child.is_some(), "its parent is there");
        drop((oldest, child));
        assert_eq!(forks.made.len(), KEPT_MAX);
    }

    /// Regression: where more were kept than usual, a block looked like nobody's before its children were kept again.
    #[test]
    fn advancing_forgets_no_parent_however_many_blocks_are_kept() {
        let (maker, mut forks) = Maker::start();
        let base = maker.child(forks.tip(), 1);
        forks.keep(base.clone()).unwrap();
        let views = 2..KEPT_MAX as u64 + 12;
        let held: Vec<_> = views.map(|view| forks.keep(maker.child(&base.tip, view)).unwrap().tip).collect();
        let child = forks.keep(maker.child(&held[0], 2 * KEPT_MAX as u64)).unwrap().tip;
        assert!(forks.made.len() > KEPT_MAX, "somebody has them all");
        let oldest = held[0].hash;
        drop(held);
        forks.advance_to(&base);
        assert!(forks.get(2, oldest).is_some() && forks.get(3, child.hash).is_some());
        forks.keep(maker.child(forks.tip(), 3 * KEPT_MAX as u64)).unwrap();
        assert_eq!(forks.made.len(), KEPT_MAX, "what nobody has any more goes with the next");
        assert!(forks.get(2, oldest).is_some() && forks.get(3, child.hash).is_some());
    }

    /// Children sealed on one execution cannot be committed after the other.
    #[test]
    fn the_first_execution_of_a_block_stays() {
        let (maker, mut forks) = Maker::start();
        let (first, again) = (maker.child(forks.tip(), 1), maker.child(forks.tip(), 1));
        assert_eq!(first.tip.hash, again.tip.hash);
        let kept = forks.keep(first).unwrap();
        let on_kept = maker.child(&kept.tip, 2);
        let on_again = maker.child(&forks.keep(again).unwrap().tip, 3);
        let committed = forks.get(1, kept.tip.hash).unwrap().clone();
        block_on(maker.0.commit(&committed)).unwrap();
        for child in [on_kept, on_again] {
            assert!(block_on(maker.0.next_environment(&child.tip)).is_ok(), "it can be built on");
        }
    }

    #[test]
    fn a_block_without_its_parent_is_not_kept() {
        let (maker, mut forks) = Maker::start();
        let parent = maker.child(forks.tip(), 1);
        assert!(forks.keep(maker.child(&parent.tip, 2)).is_none());
    }

    #[test]
    #[should_panic(expected = "final blocks follow one another")]
    fn the_tip_cannot_jump() {
        let (maker, mut forks) = Maker::start();
        let parent = maker.child(forks.tip(), 1);
        forks.advance_to(&maker.child(&parent.tip, 2));
    }
}
