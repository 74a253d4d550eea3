//! The memory store against a dull one that copies the whole state for every batch.

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use almanac_primitives::{StateChange, StateCommitment, StateDiff, StateKey};
use almanac_state::{MemoryBatch, MemoryStore, SealError, SealedBatch as _, StateStore as _, StateView as _};
use futures::executor::block_on;
use proptest::{collection::vec, option, prelude::*};
use std::collections::BTreeMap;

type Values = BTreeMap<StateKey, Bytes>;

/// Few keys of several kinds, so that histories collide.
fn keys() -> Vec<StateKey> {
    let accounts = (0..3).map(|n| StateKey::Account(Address::with_last_byte(n)));
    let slots = (0..3).map(|n| StateKey::Slot(Address::with_last_byte(1), U256::from(n)));
    accounts.chain(slots).chain((0..2).map(StateKey::Calendar)).collect()
}

#[derive(Clone, Debug)]
enum Action {
    /// Seal on the n-th batch there is (modulo their number).
    Seal { parent: usize, writes: BTreeMap<usize, Option<Vec<u8>>> },
    /// Try to commit the n-th batch, whatever it is.
    Commit { batch: usize },
    /// Commit a batch that can be.
    Advance { child: usize },
    /// Forget the handle of the n-th batch.
    Forget { batch: usize },
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let write = (0..8usize, option::of(vec(any::<u8>(), 0..3)));
    let action = prop_oneof![
        6 => (any::<usize>(), vec(write, 0..5)).prop_map(|(parent, writes)| Action::Seal {
            parent,
            writes: writes.into_iter().collect(),
        }),
        1 => any::<usize>().prop_map(|batch| Action::Commit { batch }),
        2 => any::<usize>().prop_map(|child| Action::Advance { child }),
        1 => any::<usize>().prop_map(|batch| Action::Forget { batch }),
    ];
    vec(action, 0..60)
}

/// A batch of the dull store: all values, and the write sets since genesis.
struct Snapshot {
    parent: Option<usize>,
    values: Values,
    root: B256,
    operations: u64,
    handle: Option<MemoryBatch>,
}

struct Model {
    store: MemoryStore,
    snapshots: Vec<Snapshot>,
    tip: usize,
}

impl Model {
    fn new(genesis: Values) -> Self {
        let store = MemoryStore::from_genesis(genesis.clone());
        let mut bytes = b"almanac memory state 1".to_vec();
        bytes.extend((genesis.len() as u64).to_be_bytes());
        for (key, value) in &genesis {
            bytes.extend(written(*key, Some(value)));
        }
        let first = Snapshot {
            parent: None,
            operations: genesis.len() as u64,
            values: genesis,
            root: keccak256(bytes),
            handle: Some(store.tip()),
        };
        Self { store, snapshots: vec![first], tip: 0 }
    }

    /// Whether the tip leads to a batch.
    fn is_live(&self, batch: usize) -> bool {
        batch == self.tip || self.snapshots[batch].parent.is_some_and(|parent| self.is_live(parent))
    }

    fn apply(&mut self, action: &Action) {
        let count = self.snapshots.len();
        match action {
            Action::Seal { parent, writes } => self.seal(parent % count, writes),
            Action::Commit { batch } => self.commit(batch % count),
            Action::Advance { child } => {
                let children: Vec<_> =
                    (0..count).filter(|n| self.snapshots[*n].parent == Some(self.tip)).collect();
                if !children.is_empty() {
                    self.commit(children[child % children.len()]);
                }
            }
            Action::Forget { batch } => self.snapshots[batch % count].handle = None,
        }
    }

    fn seal(&mut self, parent: usize, writes: &BTreeMap<usize, Option<Vec<u8>>>) {
        let snapshot = &self.snapshots[parent];
        let Some(handle) = snapshot.handle.clone() else {
            return;
        };
        let keys = keys();
        let changes: Vec<_> = writes
            .iter()
            .map(|(index, new)| StateChange {
                key: keys[*index],
                old: snapshot.values.get(&keys[*index]).cloned(),
                new: new.clone().map(Bytes::from),
            })
            .collect();
        self.refuse_wrong_old(&handle, &changes, self.is_live(parent));
        let diff = StateDiff::new(changes);
        let sealed = block_on(self.store.seal(&handle, &diff));
        if !self.is_live(parent) {
            assert!(matches!(sealed, Err(SealError::StaleParent(_))), "{sealed:?}");
            return;
        }

        let (mut values, mut bytes) = (snapshot.values.clone(), snapshot.root.to_vec());
        bytes.extend((diff.changes().len() as u64).to_be_bytes());
        for change in diff.changes() {
            bytes.extend(written(change.key, change.new.as_ref()));
            match &change.new {
                Some(value) => values.insert(change.key, value.clone()),
                None => values.remove(&change.key),
            };
        }
        let operations = snapshot.operations + diff.changes().len() as u64;
        let handle = Some(sealed.expect("the parent is live"));
        self.snapshots.push(Snapshot {
            parent: Some(parent),
            values,
            root: keccak256(bytes),
            operations,
            handle,
        });
    }

    /// The same diff with one old value changed must not seal.
    fn refuse_wrong_old(&self, parent: &MemoryBatch, changes: &[StateChange], is_live: bool) {
        let Some(last) = changes.last() else { return };
        let wrong = StateChange { old: Some(Bytes::from_static(b"never written")), ..last.clone() };
        let error =
            block_on(self.store.seal(parent, &StateDiff::new(vec![wrong]))).expect_err("wrong old value");
        match error {
            SealError::OldValueDiffers { key, .. } => assert!(is_live && key == last.key),
            SealError::StaleParent(_) => assert!(!is_live),
            other => panic!("{other}"),
        }
    }

    fn commit(&mut self, batch: usize) {
        let Some(handle) = &self.snapshots[batch].handle else {
            return;
        };
        let outcome = block_on(self.store.commit(handle));
        let is_child = self.snapshots[batch].parent == Some(self.tip);
        assert_eq!(outcome.is_ok(), is_child, "{outcome:?}");
        if is_child {
            self.tip = batch;
        }
    }

    /// Every handle says what the dull store says, and the stale ones nothing.
    fn check(&self) {
        let keys = keys();
        for (batch, snapshot) in self.snapshots.iter().enumerate() {
            let Some(handle) = &snapshot.handle else { continue };
            let read = block_on(handle.get_many(&keys));
            if self.is_live(batch) {
                let expected: Vec<_> = keys.iter().map(|key| snapshot.values.get(key).cloned()).collect();
                assert_eq!(read, Ok(expected));
            } else {
                assert!(read.expect_err("a stale batch").reason.contains("stale"));
            }
            assert_eq!(handle.commitment(), commitment(snapshot));
        }
        assert_eq!(self.store.tip().commitment(), commitment(&self.snapshots[self.tip]));
    }
}

fn commitment(snapshot: &Snapshot) -> StateCommitment {
    let Snapshot { root, operations, .. } = *snapshot;
    StateCommitment { state_root: root, ops_root: root, ops_start: 0, ops_end: operations }
}

fn written(key: StateKey, value: Option<&Bytes>) -> Vec<u8> {
    let mut bytes = key.hashed().to_vec();
    bytes.push(if value.is_some() { 1 } else { 0 });
    let value = value.cloned().unwrap_or_default();
    bytes.extend(u32::try_from(value.len()).expect("short").to_be_bytes());
    bytes.extend(value);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_history_reads_like_full_copies(
        genesis in vec((0..8usize, vec(any::<u8>(), 0..3)), 0..6),
        actions in actions(),
    ) {
        let keys = keys();
        let genesis = genesis.into_iter().map(|(index, value)| (keys[index], Bytes::from(value))).collect();
        let mut model = Model::new(genesis);
        model.check();
        for action in &actions {
            model.apply(action);
            model.check();
        }
    }
}

/// One task commits a growing chain, which counts in every value; others read tips that go stale meanwhile.
#[test]
fn readers_see_one_state_or_an_error_while_others_commit() {
    const BLOCKS: u8 = 200;
    let keys = keys();
    let value = |n: u8| Some(Bytes::from(vec![n]));
    let store = MemoryStore::from_genesis(keys.iter().map(|key| (*key, Bytes::from(vec![0]))).collect());
    std::thread::scope(|scope| {
        let reader = || {
            let mut last = 0;
            while last < BLOCKS {
                let tip = store.tip();
                std::thread::yield_now();
                match block_on(tip.get_many(&keys)) {
                    Ok(values) => {
                        let seen = values[0].as_ref().expect("never removed")[0];
                        assert!(seen >= last, "the tip never goes back");
                        assert_eq!(values, vec![value(seen); keys.len()]);
                        last = seen;
                    }
                    Err(error) => assert!(error.reason.contains("stale")),
                }
            }
        };
        let readers: Vec<_> = (0..3).map(|_| scope.spawn(reader)).collect();
        for n in 0..BLOCKS {
            let change = |key: &StateKey| StateChange { key: *key, old: value(n), new: value(n + 1) };
            let diff = StateDiff::new(keys.iter().map(change).collect());
            let batch = block_on(store.seal(&store.tip(), &diff)).expect("it is on the tip");
            block_on(store.commit(&batch)).expect("it is on the tip");
            std::thread::yield_now();
        }
        readers.into_iter().for_each(|reader| reader.join().expect("no reader fails"));
    });
}

/// Everything that was there before is stale, committed or not, and the same blocks give the same roots again.
#[test]
fn a_reset_store_is_a_new_one() {
    let key = keys()[0];
    let genesis: Values = [(key, Bytes::from_static(b"genesis"))].into();
    let store = MemoryStore::from_genesis(genesis);
    let change = |old: &'static [u8], new: &'static [u8]| {
        let (old, new) = (Some(Bytes::from_static(old)), Some(Bytes::from_static(new)));
        StateDiff::new(vec![StateChange { key, old, new }])
    };
    let origin = store.tip();
    let grow = || {
        let first = block_on(store.seal(&store.tip(), &change(b"genesis", b"one"))).unwrap();
        let second = block_on(store.seal(&first, &change(b"one", b"two"))).unwrap();
        let third = block_on(store.seal(&second, &change(b"two", b"three"))).unwrap();
        block_on(store.commit(&first)).unwrap();
        block_on(store.commit(&second)).unwrap();
        [first, second, third]
    };
    let before = grow();
    let again = store.reset().unwrap();
    assert_eq!(again.commitment(), origin.commitment());
    assert_eq!(block_on(again.get_many(&[key])).unwrap(), [Some(Bytes::from_static(b"genesis"))]);
    for batch in before.iter().chain([&origin]) {
        assert!(block_on(batch.get_many(&[key])).is_err());
        assert!(block_on(store.seal(batch, &StateDiff::default())).is_err());
        assert!(block_on(store.commit(batch)).is_err());
    }
    let after = grow();
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before.commitment(), after.commitment());
    }
    assert_eq!(block_on(after[2].get_many(&[key])).unwrap(), [Some(Bytes::from_static(b"three"))]);
}
