//! A store over the state of another chain, for forked developer chains.
//!
//! Any store holds what the chain's own blocks wrote; values that it lacks come from the origin ([`Origin`]). Nothing of
//! the origin is ever written: the root covers the genesis and what blocks changed. Of the rest it covers the hash of
//! the origin's block, which is in the genesis.

use crate::{
    proof::{ProveError, StateProof},
    store::{CommitError, SealError, SealedBatch, StateStore},
    view::StateView,
};
use alloy_primitives::Bytes;
use almanac_primitives::{Header, Origin, StateChange, StateCommitment, StateDiff, StateKey, StateReadError};
use std::fmt;

/// A store of changes over an origin.
#[derive(Clone)]
pub struct ForkedStore<S> {
    changes: S,
    origin: Origin,
}

/// The state after a block of a [`ForkedStore`].
#[derive(Clone)]
pub struct ForkedBatch<B> {
    changes: B,
    origin: Origin,
}

impl<S> ForkedStore<S> {
    /// The state of `origin` with what `changes` holds on top.
    pub fn new(changes: S, origin: Origin) -> Self {
        Self { changes, origin }
    }

    fn batch<B>(&self, changes: B) -> ForkedBatch<B> {
        ForkedBatch { changes, origin: self.origin.clone() }
    }
}

impl<S: StateStore> StateStore for ForkedStore<S> {
    type Batch = ForkedBatch<S::Batch>;

    fn tip(&self) -> Self::Batch {
        self.batch(self.changes.tip())
    }

    async fn seal(&self, parent: &Self::Batch, diff: &StateDiff) -> Result<Self::Batch, SealError> {
        let keys: Vec<StateKey> = diff.changes().iter().map(|change| change.key).collect();
        let stored = parent.stored(&keys).await.map_err(|error| unread(&error))?;
        let seen = self.origin.complete(&keys, stored.clone()).map_err(|error| unread(&error))?;
        let mut changes = Vec::with_capacity(keys.len());
        for ((StateChange { key, old, new }, stored), found) in diff.changes().iter().zip(stored).zip(seen) {
            if *old != found {
                return Err(SealError::OldValueDiffers { key: *key, given: old.clone(), found });
            }
            changes.push(StateChange { key: *key, old: stored, new: Origin::to_stored(key, new.clone()) });
        }
        let sealed = self.changes.seal(&parent.changes, &StateDiff::new(changes)).await?;
        Ok(self.batch(sealed))
    }

    async fn commit(&self, batch: &Self::Batch) -> Result<(), CommitError> {
        self.changes.commit(&batch.changes).await
    }

    fn reset(&self) -> Option<Self::Batch> {
        self.changes.reset().map(|genesis| self.batch(genesis))
    }

    /// Proves the chain's own records. The root says nothing about values that the origin may have.
    async fn prove(&self, header: &Header, key: StateKey) -> Result<StateProof, ProveError> {
        if Origin::has(&key) {
            return Err(ProveError::Forked { key });
        }
        self.changes.prove(header, key).await
    }
}

fn unread(error: &StateReadError) -> SealError {
    SealError::Store { reason: error.to_string() }
}

impl<B: StateView> ForkedBatch<B> {
    async fn stored(&self, keys: &[StateKey]) -> Result<Vec<Option<Bytes>>, StateReadError> {
        self.changes.get_many(keys).await
    }
}

impl<B: StateView> StateView for ForkedBatch<B> {
    async fn get_many(&self, keys: &[StateKey]) -> Result<Vec<Option<Bytes>>, StateReadError> {
        let stored = self.stored(keys).await?;
        self.origin.complete(keys, stored)
    }
}

impl<B: SealedBatch> SealedBatch for ForkedBatch<B> {
    fn commitment(&self) -> StateCommitment {
        self.changes.commitment()
    }
}

impl<B: fmt::Debug> fmt::Debug for ForkedBatch<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForkedBatch").field("changes", &self.changes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryStore;
    use alloy_primitives::{Address, U256};
    use almanac_primitives::StateRead;
    use futures::executor::block_on;
    use proptest::{collection::vec, option, prelude::*};
    use std::collections::BTreeMap;

    struct Below(BTreeMap<StateKey, Bytes>);

    impl StateRead for Below {
        fn read(&self, key: StateKey) -> Result<Option<Bytes>, StateReadError> {
            Ok(self.0.get(&key).cloned())
        }
    }

    fn key(n: u8) -> StateKey {
        StateKey::Slot(Address::repeat_byte(7), U256::from(n))
    }

    fn value(n: u8) -> Bytes {
        vec![n.saturating_add(1)].into()
    }

    fn read(batch: &ForkedBatch<crate::MemoryBatch>) -> Vec<Option<Bytes>> {
        block_on(batch.get_many(&(0..4).map(key).collect::<Vec<_>>())).unwrap()
    }

    /// One block: the values that it sets and removes.
    fn block(before: &[Option<Bytes>], writes: &[(u8, Option<u8>)]) -> (StateDiff, Vec<Option<Bytes>>) {
        let mut after = before.to_vec();
        for (n, new) in writes {
            after[usize::from(*n)] = new.map(value);
        }
        let change = |n: u8| {
            let at = usize::from(n);
            StateChange { key: key(n), old: before[at].clone(), new: after[at].clone() }
        };
        (StateDiff::new((0..4).map(change).collect()), after)
    }

    proptest! {
        /// Over any origin, any blocks leave what a plain map would hold, and each state stays readable as it was.
        #[test]
        fn fork_04_a_forked_store_is_a_map(
            below in vec(option::of(0..3u8), 4),
            blocks in vec(vec((0..4u8, option::of(0..3u8)), 0..5), 1..8),
        ) {
            let values = (0u8..).zip(&below).filter_map(|(n, at)| Some((key(n), value((*at)?)))).collect();
            let store = ForkedStore::new(MemoryStore::from_genesis(BTreeMap::new()), Origin::new(Below(values)));
            let mut states = vec![(store.tip(), below.iter().map(|at| at.map(value)).collect::<Vec<_>>())];
            for writes in &blocks {
                let (parent, before) = states.last().unwrap();
                let (diff, after) = block(before, writes);
                let sealed = block_on(store.seal(parent, &diff)).unwrap();
                states.push((sealed, after));
            }
            for (batch, expected) in &states {
                prop_assert_eq!(&read(batch), expected);
            }
            for (batch, expected) in &states[1..] {
                block_on(store.commit(batch)).unwrap();
                prop_assert_eq!(&read(&store.tip()), expected);
            }
            let first = &states[0].1;
            prop_assert_eq!(&read(&store.reset().unwrap()), first);
        }
    }

    #[test]
    fn fork_05_an_old_value_must_be_what_readers_see() {
        let below = BTreeMap::from([(key(0), value(0))]);
        let store = ForkedStore::new(MemoryStore::from_genesis(BTreeMap::new()), Origin::new(Below(below)));
        let diff = StateDiff::new(vec![StateChange { key: key(0), old: None, new: Some(value(1)) }]);
        let refused = block_on(store.seal(&store.tip(), &diff)).unwrap_err();
        let expected = SealError::OldValueDiffers { key: key(0), given: None, found: Some(value(0)) };
        assert_eq!(refused, expected);
    }

    #[test]
    fn fork_06_the_root_does_not_depend_on_what_was_read() {
        let store =
            |below| ForkedStore::new(MemoryStore::from_genesis(BTreeMap::new()), Origin::new(Below(below)));
        let (read_some, plain) = (store(BTreeMap::from([(key(0), value(0))])), store(BTreeMap::new()));
        read(&read_some.tip());
        let diff = StateDiff::new(vec![StateChange { key: key(1), old: None, new: Some(value(1)) }]);
        let root = |store: &ForkedStore<MemoryStore>| {
            block_on(store.seal(&store.tip(), &diff)).unwrap().commitment().state_root
        };
        assert_eq!(root(&read_some), root(&plain));
        assert_ne!(root(&plain), plain.tip().commitment().state_root);
    }

    #[test]
    fn fork_07_values_of_the_origin_are_not_proven() {
        let store =
            ForkedStore::new(MemoryStore::from_genesis(BTreeMap::new()), Origin::new(Below(BTreeMap::new())));
        let refused = block_on(store.prove(&Header::default(), key(0))).unwrap_err();
        assert!(matches!(refused, ProveError::Forked { key: refused } if refused == key(0)), "{refused}");
        let own = block_on(store.prove(&Header::default(), StateKey::Calendar(0))).unwrap_err();
        assert!(matches!(own, ProveError::Unsupported), "{own}");
    }
}
