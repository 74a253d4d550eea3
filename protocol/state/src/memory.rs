//! The state in memory, for developer chains and tests.
//!
//! Committed values are in one sorted map. Above it is a tree of layers, one per sealed batch, each with its block's
//! changes and a pointer to its parent. A read goes through the layers from the batch down to the map, so it takes
//! time in proportion to the number of uncommitted blocks, which is small.
//!
//! There is no Merkle tree, so there are no proofs. The root is a chain of hashes over the write sets since genesis:
//! it shows whether two nodes made the same changes in the same blocks, not whether a value is in the state. Both
//! roots of the commitment are this one.

use crate::{
    store::{CommitError, SealError, SealedBatch, StaleBatch, StateStore},
    view::StateView,
};
use alloy_primitives::{B256, Bytes, Keccak256};
use almanac_primitives::{
    StateChange, StateCommitment, StateDiff, StateKey, StateReadError, params::STATE_VALUE_BYTES_MAX,
};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard},
};

/// A store in memory. Clones share it.
#[derive(Clone)]
pub struct MemoryStore(Arc<RwLock<Committed>>);

/// The state after a block of a [`MemoryStore`].
#[derive(Clone)]
pub struct MemoryBatch {
    store: MemoryStore,
    layer: Arc<Layer>,
}

struct Committed {
    genesis: BTreeMap<StateKey, Bytes>,
    values: BTreeMap<StateKey, Bytes>,
    tip: Arc<Layer>,
}

struct Layer {
    /// Number of batches below it, including genesis.
    height: u64,
    commitment: StateCommitment,
    diff: StateDiff,
    /// `None` once committed: nothing reads below the head, and history must not stay in memory. Written only
    /// while the store is locked for writing, so it is stable for readers.
    parent: Mutex<Option<Arc<Self>>>,
}

impl MemoryStore {
    /// The state at genesis.
    pub fn from_genesis(values: BTreeMap<StateKey, Bytes>) -> Self {
        Self(Arc::new(RwLock::new(Committed::from_genesis(values))))
    }

    fn read(&self) -> RwLockReadGuard<'_, Committed> {
        self.0.read().expect("nothing panics while it holds the store")
    }

    fn batch(&self, layer: Arc<Layer>) -> MemoryBatch {
        MemoryBatch { store: self.clone(), layer }
    }

    fn assert_owns(&self, batch: &MemoryBatch) {
        assert!(Arc::ptr_eq(&self.0, &batch.store.0), "a batch is used with the store that sealed it");
    }
}

impl StateStore for MemoryStore {
    type Batch = MemoryBatch;

    fn tip(&self) -> MemoryBatch {
        self.batch(Arc::clone(&self.read().tip))
    }

    async fn seal(&self, parent: &MemoryBatch, diff: &StateDiff) -> Result<MemoryBatch, SealError> {
        self.assert_owns(parent);
        check_diff(&self.read().at(&parent.layer)?, diff)?;
        Ok(self.batch(Arc::new(Layer::on(&parent.layer, diff))))
    }

    async fn commit(&self, batch: &MemoryBatch) -> Result<(), CommitError> {
        self.assert_owns(batch);
        self.0.write().expect("nothing panics while it holds the store").advance(&batch.layer)
    }

    fn reset(&self) -> Option<MemoryBatch> {
        let mut committed = self.0.write().expect("nothing panics while it holds the store");
        *committed = Committed::from_genesis(std::mem::take(&mut committed.genesis));
        Some(self.batch(Arc::clone(&committed.tip)))
    }
}

impl StateView for MemoryBatch {
    async fn get_many(&self, keys: &[StateKey]) -> Result<Vec<Option<Bytes>>, StateReadError> {
        let Some(&first) = keys.first() else {
            return Ok(Vec::new());
        };
        let committed = self.store.read();
        let state =
            committed.at(&self.layer).map_err(|stale| StateReadError::failed(first, stale.to_string()))?;
        Ok(keys.iter().map(|key| state.get(key).cloned()).collect())
    }
}

impl SealedBatch for MemoryBatch {
    fn commitment(&self) -> StateCommitment {
        self.layer.commitment
    }
}

impl fmt::Debug for MemoryBatch {
    // Only the layer itself: a chain of parents can be too long to print.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBatch")
            .field("height", &self.layer.height)
            .field("commitment", &self.layer.commitment)
            .finish_non_exhaustive()
    }
}

/// A state that cannot change while the store is locked: layers, newest first, over committed values.
struct LayeredState<'a> {
    layers: Vec<Arc<Layer>>,
    values: &'a BTreeMap<StateKey, Bytes>,
}

impl Committed {
    fn from_genesis(genesis: BTreeMap<StateKey, Bytes>) -> Self {
        let commitment = commitment(genesis_root(&genesis), genesis.len() as u64);
        let tip = Layer { height: 0, commitment, diff: StateDiff::default(), parent: Mutex::new(None) };
        Self { values: genesis.clone(), genesis, tip: Arc::new(tip) }
    }

    /// The state of a layer, if it descends from the head.
    fn at(&self, layer: &Arc<Layer>) -> Result<LayeredState<'_>, StaleBatch> {
        let stale = StaleBatch { height: layer.height, tip_height: self.tip.height };
        let mut layers = Vec::new();
        let mut below = Arc::clone(layer);
        while below.height > self.tip.height {
            // One without a parent was committed before a reset.
            let parent = below.parent().ok_or(stale)?;
            layers.push(std::mem::replace(&mut below, parent));
        }
        if Arc::ptr_eq(&below, &self.tip) {
            Ok(LayeredState { layers, values: &self.values })
        } else {
            Err(stale)
        }
    }

    /// Moves the head to a direct child.
    fn advance(&mut self, layer: &Arc<Layer>) -> Result<(), CommitError> {
        if !layer.parent().is_some_and(|parent| Arc::ptr_eq(&parent, &self.tip)) {
            return Err(CommitError::NotOnTip {
                height: layer.height,
                root: layer.commitment.state_root,
                tip_height: self.tip.height,
                tip_root: self.tip.commitment.state_root,
            });
        }
        for change in layer.diff.changes() {
            match &change.new {
                Some(value) => self.values.insert(change.key, value.clone()),
                None => self.values.remove(&change.key),
            };
        }
        self.tip = Arc::clone(layer);
        *layer.parent.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }
}

impl LayeredState<'_> {
    fn get(&self, key: &StateKey) -> Option<&Bytes> {
        match self.layers.iter().find_map(|layer| layer.change(key)) {
            Some(change) => change.new.as_ref(),
            None => self.values.get(key),
        }
    }
}

impl Layer {
    fn on(parent: &Arc<Self>, diff: &StateDiff) -> Self {
        let StateCommitment { state_root, ops_end, .. } = parent.commitment;
        let ops_end = ops_end.checked_add(diff.changes().len() as u64).expect("2^64 changes take for ever");
        Self {
            height: parent.height.checked_add(1).expect("2^64 blocks take for ever"),
            commitment: commitment(next_root(state_root, diff), ops_end),
            diff: diff.clone(),
            parent: Mutex::new(Some(Arc::clone(parent))),
        }
    }

    fn parent(&self) -> Option<Arc<Self>> {
        self.parent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, key: &StateKey) -> Option<&StateChange> {
        let changes = self.diff.changes();
        changes.binary_search_by_key(key, |change| change.key).ok().map(|index| &changes[index])
    }
}

impl Drop for Layer {
    // Drop parents in a loop. The default drop is recursive, and a long chain of abandoned batches would
    // overflow the stack.
    fn drop(&mut self) {
        let mut next = take_parent(self);
        while let Some(mut layer) = next.and_then(Arc::into_inner) {
            next = take_parent(&mut layer);
        }
    }
}

fn take_parent(layer: &mut Layer) -> Option<Arc<Layer>> {
    layer.parent.get_mut().unwrap_or_else(PoisonError::into_inner).take()
}

fn check_diff(parent: &LayeredState<'_>, diff: &StateDiff) -> Result<(), SealError> {
    for StateChange { key, old, new } in diff.changes() {
        let found = parent.get(key);
        if found != old.as_ref() {
            return Err(SealError::OldValueDiffers { key: *key, given: old.clone(), found: found.cloned() });
        }
        let given = new.as_ref().map_or(0, |value| value.len());
        if given > STATE_VALUE_BYTES_MAX {
            return Err(SealError::ValueTooLarge { key: *key, given, max: STATE_VALUE_BYTES_MAX });
        }
    }
    Ok(())
}

fn commitment(root: B256, ops_end: u64) -> StateCommitment {
    StateCommitment { state_root: root, ops_root: root, ops_start: 0, ops_end }
}

/// Separates the genesis root from every other hash.
const GENESIS_TAG: &[u8] = b"almanac memory state 1";

/// keccak-256 of the tag, the number of values (u64), and each of them in key order.
fn genesis_root(values: &BTreeMap<StateKey, Bytes>) -> B256 {
    let mut hasher = Keccak256::new();
    hasher.update(GENESIS_TAG);
    hasher.update((values.len() as u64).to_be_bytes());
    for (key, value) in values {
        hash_write(&mut hasher, key, Some(value));
    }
    hasher.finalize()
}

/// keccak-256 of the parent's root, the number of changes (u64), and each of them in key order.
fn next_root(parent: B256, diff: &StateDiff) -> B256 {
    let mut hasher = Keccak256::new();
    hasher.update(parent);
    hasher.update((diff.changes().len() as u64).to_be_bytes());
    for change in diff.changes() {
        hash_write(&mut hasher, &change.key, change.new.as_ref());
    }
    hasher.finalize()
}

/// Hashed key, one byte that tells whether there is a value, length (u32), value.
fn hash_write(hasher: &mut Keccak256, key: &StateKey, value: Option<&Bytes>) {
    let bytes = value.map_or(&[][..], |value| &value[..]);
    hasher.update(key.hashed());
    hasher.update([u8::from(value.is_some())]);
    hasher.update(u32::try_from(bytes.len()).expect("values are bounded far below 2^32").to_be_bytes());
    hasher.update(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::b256;
    use futures::executor::block_on;
    use std::sync::Weak;

    fn key(number: u64) -> StateKey {
        StateKey::Calendar(number)
    }

    fn change(number: u64, old: Option<&'static str>, new: Option<&'static str>) -> StateChange {
        StateChange { key: key(number), old: old.map(Bytes::from), new: new.map(Bytes::from) }
    }

    fn diff<const N: usize>(changes: [StateChange; N]) -> StateDiff {
        StateDiff::new(changes.into_iter().collect())
    }

    fn store<const N: usize>(values: [(u64, &'static str); N]) -> MemoryStore {
        MemoryStore::from_genesis(
            values.into_iter().map(|(number, value)| (key(number), Bytes::from(value))).collect(),
        )
    }

    fn seal(store: &MemoryStore, parent: &MemoryBatch, diff: &StateDiff) -> MemoryBatch {
        block_on(store.seal(parent, diff)).expect("the diff fits its parent")
    }

    fn get(batch: &MemoryBatch, number: u64) -> Option<Bytes> {
        block_on(batch.get_many(&[key(number)])).expect("the batch is not stale").remove(0)
    }

    fn is_alive(layer: &Weak<Layer>) -> bool {
        layer.upgrade().is_some()
    }

    #[test]
    fn the_roots_of_a_small_history() {
        let store = store([(1, "one"), (2, "two")]);
        let genesis = store.tip();
        let first =
            seal(&store, &genesis, &diff([change(1, Some("one"), None), change(3, None, Some("three"))]));
        let second = seal(&store, &first, &StateDiff::default());

        let commitments = [genesis, first, second].map(|batch| batch.commitment());
        let roots = [
            b256!("0xd50ddd6911acc14c1b5c2c9fc738673643f6c4be3c5605178a578629bbb230eb"),
            b256!("0x852e8f8325ad0df51082963aead61fc598831bea340a65b151be3c52142259cc"),
            b256!("0x67d18040bca8ec59f2fe26a3c2b692662b0f708c992db60f8e07b2047b0a48f6"),
        ];
        let expected = [(roots[0], 2), (roots[1], 4), (roots[2], 4)].map(|(root, ops_end)| StateCommitment {
            state_root: root,
            ops_root: root,
            ops_start: 0,
            ops_end,
        });
        assert_eq!(commitments, expected);
    }

    #[test]
    fn every_difference_between_histories_shows_in_the_root() {
        let root = |store: &MemoryStore, diffs: &[StateDiff]| {
            let mut batch = store.tip();
            for diff in diffs {
                batch = seal(store, &batch, diff);
            }
            batch.commitment().state_root
        };
        let add = |number, new| change(number, None, Some(new));
        let empty = store([]);
        let histories = [
            root(&empty, &[]),
            root(&store([(1, "a")]), &[]),
            root(&store([(1, "b")]), &[]),
            root(&store([(2, "a")]), &[]),
            root(&store([(1, "")]), &[]),
            root(&store([(1, "a"), (2, "b")]), &[]),
            root(&empty, &[diff([])]),
            root(&empty, &[diff([]), diff([])]),
            root(&empty, &[diff([add(1, "a")])]),
            root(&empty, &[diff([add(1, "b")])]),
            root(&empty, &[diff([add(2, "a")])]),
            root(&empty, &[diff([add(1, "")])]),
            root(&empty, &[diff([add(1, "a"), add(2, "b")])]),
            root(&empty, &[diff([add(1, "a")]), diff([add(2, "b")])]),
            root(&empty, &[diff([add(2, "b")]), diff([add(1, "a")])]),
            // The same content as the empty state, reached another way.
            root(&empty, &[diff([add(1, "a")]), diff([change(1, Some("a"), None)])]),
            root(&empty, &[diff([add(1, "")]), diff([change(1, Some(""), None)])]),
            root(&empty, &[diff([add(1, "a")]), diff([change(1, Some("a"), Some(""))])]),
        ];
        let distinct: std::collections::BTreeSet<_> = histories.iter().collect();
        assert_eq!(distinct.len(), histories.len());

        let again = store([]);
        assert_eq!(
            root(&again, &[diff([add(1, "a"), add(2, "b")])]),
            histories[12],
            "same history, same root"
        );
    }

    #[test]
    fn committing_changes_no_root() {
        let (committed, floating) = (store([(1, "a")]), store([(1, "a")]));
        let diffs = [
            diff([change(1, Some("a"), Some("b"))]),
            diff([change(2, None, Some("c"))]),
            diff([change(1, Some("b"), None)]),
        ];
        let mut above = floating.tip();
        for diff in &diffs {
            let batch = seal(&committed, &committed.tip(), diff);
            block_on(committed.commit(&batch)).expect("it is on the tip");
            above = seal(&floating, &above, diff);
            assert_eq!(committed.tip().commitment(), above.commitment());
        }
    }

    #[test]
    fn a_diff_from_another_state_is_refused_with_the_key() {
        let store = store([(1, "a"), (2, "b")]);
        let cases = [
            (change(2, Some("x"), Some("c")), Some("x"), Some("b")),
            (change(2, None, Some("c")), None, Some("b")),
            (change(3, Some("x"), None), Some("x"), None),
            (change(2, Some(""), Some("c")), Some(""), Some("b")),
        ];
        for (wrong, given, found) in cases {
            let key = wrong.key;
            let error = block_on(store.seal(&store.tip(), &diff([change(1, Some("a"), None), wrong])));
            let expected = SealError::OldValueDiffers {
                key,
                given: given.map(Bytes::from),
                found: found.map(Bytes::from),
            };
            assert_eq!(error.expect_err("the old value is wrong"), expected);
        }
    }

    #[test]
    fn an_old_value_is_checked_against_the_parent_and_not_the_tip() {
        let store = store([(1, "a")]);
        let parent = seal(&store, &store.tip(), &diff([change(1, Some("a"), Some("b"))]));
        let removed = seal(&store, &parent, &diff([change(1, Some("b"), None)]));
        assert!(block_on(store.seal(&parent, &diff([change(1, Some("a"), Some("c"))]))).is_err());
        assert!(block_on(store.seal(&removed, &diff([change(1, Some("b"), Some("c"))]))).is_err());
        assert!(block_on(store.seal(&removed, &diff([change(1, None, Some("c"))]))).is_ok());
    }

    #[test]
    fn a_value_may_have_the_largest_size_and_no_more() {
        let store = store([]);
        let sized = |bytes: usize| {
            StateDiff::new(vec![StateChange { key: key(1), old: None, new: Some(vec![7; bytes].into()) }])
        };
        assert!(block_on(store.seal(&store.tip(), &sized(STATE_VALUE_BYTES_MAX))).is_ok());
        let error =
            block_on(store.seal(&store.tip(), &sized(STATE_VALUE_BYTES_MAX + 1))).expect_err("too large");
        let (given, max) = (STATE_VALUE_BYTES_MAX + 1, STATE_VALUE_BYTES_MAX);
        assert_eq!(error, SealError::ValueTooLarge { key: key(1), given, max });
    }

    #[test]
    fn a_twin_of_a_committed_batch_is_stale() {
        let store = store([(1, "a")]);
        let change = diff([change(1, Some("a"), Some("b"))]);
        let (batch, twin) = (seal(&store, &store.tip(), &change), seal(&store, &store.tip(), &change));
        assert_eq!(batch.commitment(), twin.commitment());
        block_on(store.commit(&batch)).expect("it is on the tip");

        let error = block_on(twin.get_many(&[key(5), key(1)])).expect_err("stale");
        assert_eq!(error.key, key(5));
        assert_eq!(error.reason, StaleBatch { height: 1, tip_height: 1 }.to_string());
        let stale = SealError::StaleParent(StaleBatch { height: 1, tip_height: 1 });
        assert_eq!(block_on(store.seal(&twin, &StateDiff::default())).expect_err("stale"), stale);
        assert!(block_on(store.commit(&twin)).is_err());
    }

    #[test]
    fn only_a_child_of_the_tip_can_be_committed() {
        let store = store([]);
        let genesis = store.tip();
        let child = seal(&store, &genesis, &StateDiff::default());
        let grandchild = seal(&store, &child, &StateDiff::default());
        assert!(block_on(store.commit(&genesis)).is_err(), "the tip itself");
        let error = block_on(store.commit(&grandchild)).expect_err("its parent is not committed");
        let expected = CommitError::NotOnTip {
            height: 2,
            root: grandchild.commitment().state_root,
            tip_height: 0,
            tip_root: genesis.commitment().state_root,
        };
        assert_eq!(error, expected);
        assert_eq!(store.tip().commitment(), genesis.commitment(), "a refused commit changes nothing");
        block_on(store.commit(&child)).expect("a child of the tip");
        assert!(block_on(store.commit(&child)).is_err(), "twice");
        block_on(store.commit(&grandchild)).expect("a child of the tip by now");
    }

    #[test]
    #[should_panic(expected = "a batch is used with the store that sealed it")]
    fn a_batch_of_another_store_is_refused() {
        let (mine, other) = (store([]), store([]));
        drop(block_on(mine.seal(&other.tip(), &StateDiff::default())));
    }

    #[test]
    fn layers_are_freed_once_committed_or_abandoned() {
        let store = store([]);
        let mut committed = Vec::new();
        // One block is always pending, so that the tip is never without a descendant.
        let mut pending = seal(&store, &store.tip(), &StateDiff::default());
        for _ in 0..100 {
            let next = seal(&store, &pending, &StateDiff::default());
            let abandoned = seal(&store, &pending, &StateDiff::default());
            let above = seal(&store, &abandoned, &StateDiff::default());
            block_on(store.commit(&pending)).expect("it is on the tip");
            committed.push(Arc::downgrade(&pending.layer));
            pending = next;

            let layers = [&abandoned, &above].map(|batch| Arc::downgrade(&batch.layer));
            drop(abandoned);
            assert!(layers.iter().all(is_alive), "a batch keeps what it is built on");
            drop(above);
            assert!(!layers.iter().any(is_alive));
        }
        let alive: Vec<_> = committed.iter().map(is_alive).collect();
        assert_eq!(alive.iter().filter(|alive| **alive).count(), 1, "only the tip");
        assert!(alive[99]);
    }

    #[test]
    fn a_long_chain_is_read_committed_and_dropped_on_a_small_stack() {
        let run = || {
            let store = store([(0, "genesis")]);
            let mut chain = vec![store.tip()];
            for height in 1..=10_000 {
                chain.push(seal(&store, &chain[height - 1], &diff([change(height as u64, None, Some("x"))])));
            }
            let tip = chain.pop().expect("a tip");
            assert_eq!(get(&tip, 0), Some(Bytes::from("genesis")));
            assert_eq!((get(&tip, 1), get(&tip, 10_000)), (Some(Bytes::from("x")), Some(Bytes::from("x"))));
            for batch in &chain[1..100] {
                block_on(store.commit(batch)).expect("in order");
            }
            let bottom = Arc::downgrade(&chain[200].layer);
            drop(chain);
            assert!(is_alive(&bottom), "the tip holds the chain");
            drop(tip);
            assert!(!is_alive(&bottom));
        };
        let small = std::thread::Builder::new().stack_size(128 * 1024).spawn(run).expect("a thread");
        small.join().expect("no overflow");
    }
}
