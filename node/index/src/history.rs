//! Flat state that remembers: the value of any key at any kept height.
//!
//! Each key has the list of its versions, oldest first. A reader is bound to a height and finds the last version
//! at or below it, so that a question which takes a while sees one state, whatever blocks come meanwhile.

use alloy_primitives::Bytes;
use almanac_primitives::{StateDiff, StateKey, StateRead, StateReadError};
use std::{
    collections::HashMap,
    sync::{Arc, RwLock},
};

#[derive(Debug)]
struct Version {
    height: u64,
    value: Option<Bytes>,
}

#[derive(Debug, Default)]
struct Versions {
    keys: HashMap<StateKey, Vec<Version>>,
    oldest_kept: u64,
}

/// The state at the tip and at every kept height before it.
#[derive(Clone, Debug)]
pub struct History {
    versions: Arc<RwLock<Versions>>,
    depth: u64,
}

impl History {
    /// The state of block 0. Of later blocks, the last `depth` stay readable; `u64::MAX` keeps all.
    pub fn new(genesis: impl IntoIterator<Item = (StateKey, Bytes)>, depth: u64) -> Self {
        let keys = genesis
            .into_iter()
            .map(|(key, value)| (key, vec![Version { height: 0, value: Some(value) }]))
            .collect();
        Self { versions: Arc::new(RwLock::new(Versions { keys, oldest_kept: 0 })), depth }
    }

    /// Takes what block `height` changed. The same block twice changes nothing.
    pub fn apply(&self, height: u64, diff: &StateDiff) {
        let mut versions = self.versions.write().expect("nobody panics while holding the history");
        versions.oldest_kept = versions.oldest_kept.max(height.saturating_sub(self.depth));
        let oldest_kept = versions.oldest_kept;
        for change in diff.changes() {
            let list = versions.keys.entry(change.key).or_default();
            if list.last().is_some_and(|last| last.height >= height) {
                continue;
            }
            list.push(Version { height, value: change.new.clone() });
            forget_before(list, oldest_kept);
        }
    }

    /// Takes back what the blocks above `height` changed.
    pub fn revert_to(&self, height: u64) {
        let mut versions = self.versions.write().expect("nobody panics while holding the history");
        for list in versions.keys.values_mut() {
            list.truncate(list.partition_point(|version| version.height <= height));
        }
    }

    /// The state after block `height`, or `None` where that is no longer kept.
    pub fn at(&self, height: u64) -> Option<HistoricalState> {
        let versions = self.versions.read().expect("nobody panics while holding the history");
        (height >= versions.oldest_kept).then(|| HistoricalState { history: self.clone(), height })
    }
}

/// Drops versions that no kept height can see: all but the last one at or before the oldest.
fn forget_before(list: &mut Vec<Version>, oldest_kept: u64) {
    let visible = list.partition_point(|version| version.height <= oldest_kept).saturating_sub(1);
    list.drain(..visible);
}

/// The state after one block. It stays what it is, or says that it is gone.
#[derive(Clone, Debug)]
pub struct HistoricalState {
    history: History,
    height: u64,
}

impl StateRead for HistoricalState {
    fn read(&self, key: StateKey) -> Result<Option<Bytes>, StateReadError> {
        let versions = self.history.versions.read().expect("nobody panics while holding the history");
        if self.height < versions.oldest_kept {
            let reason = format!(
                "block {} is no longer kept, the oldest is {}: ask for a later block",
                self.height, versions.oldest_kept
            );
            return Err(StateReadError { key, reason });
        }
        let value = versions.keys.get(&key).and_then(|list| {
            let newer = list.partition_point(|version| version.height <= self.height);
            list[..newer].last()?.value.clone()
        });
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use almanac_primitives::StateChange;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    type Snapshot = BTreeMap<StateKey, Bytes>;

    fn key(n: u8) -> StateKey {
        StateKey::Calendar(n.into())
    }

    fn value(n: u8) -> Bytes {
        Bytes::from(vec![n])
    }

    /// Turns writes into a diff against the last snapshot, and the snapshot after it.
    fn step(before: &Snapshot, writes: &[(u8, Option<u8>)]) -> (StateDiff, Snapshot) {
        let mut after = before.clone();
        for (k, v) in writes {
            match v {
                Some(v) => after.insert(key(*k), value(*v)),
                None => after.remove(&key(*k)),
            };
        }
        let keys: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).copied().collect();
        let changes = keys
            .into_iter()
            .map(|key| StateChange { key, old: before.get(&key).cloned(), new: after.get(&key).cloned() })
            .collect();
        (StateDiff::new(changes), after)
    }

    proptest! {
        /// Against a list of whole snapshots: every key at every height, kept or refused.
        #[test]
        fn every_key_at_every_kept_height(
            blocks in proptest::collection::vec(
                proptest::collection::vec((0..6u8, proptest::option::of(1..9u8)), 0..6), 1..12),
            depth in 0..15u64,
            repeat: bool,
        ) {
            let mut snapshots = vec![Snapshot::from([(key(0), value(9))])];
            let history = History::new(snapshots[0].clone(), depth);
            for writes in &blocks {
                let (diff, after) = step(snapshots.last().unwrap(), writes);
                let height = snapshots.len() as u64;
                history.apply(height, &diff);
                if repeat {
                    history.apply(height, &diff);
                }
                snapshots.push(after);
            }
            let tip = snapshots.len() as u64 - 1;
            for (height, snapshot) in (0u64..).zip(&snapshots) {
                let Some(state) = history.at(height) else {
                    prop_assert!(height < tip.saturating_sub(depth));
                    continue;
                };
                prop_assert!(height >= tip.saturating_sub(depth));
                for k in 0..6 {
                    prop_assert_eq!(state.read(key(k)).unwrap(), snapshot.get(&key(k)).cloned());
                }
            }
        }
    }

    #[test]
    fn a_held_state_does_not_change_and_then_says_that_it_is_gone() {
        let history = History::new([(key(1), value(1))], 1);
        let held = history.at(0).unwrap();
        let (diff, after) = step(&Snapshot::from([(key(1), value(1))]), &[(1, Some(2))]);
        history.apply(1, &diff);
        assert_eq!(held.read(key(1)), Ok(Some(value(1))));

        let (diff, _) = step(&after, &[(1, None)]);
        history.apply(2, &diff);
        let gone = held.read(key(1)).unwrap_err().to_string();
        assert!(gone.contains("block 0 is no longer kept, the oldest is 1"), "{gone}");
        assert_eq!(history.at(2).unwrap().read(key(1)), Ok(None));
    }
}
