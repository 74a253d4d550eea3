//! Proves values of the last committed state.

use super::{QmdbStore, value::key};
use crate::proof::{ProveError, StateProof};
use alloy_primitives::B256;
use almanac_primitives::{Header, StateKey};
use commonware_runtime::Spawner;
use commonware_storage::Context;

impl<E: Context + Spawner> QmdbStore<E> {
    /// Proves a value in the state after the block with this header, which must be the last committed one.
    pub async fn prove(&self, header: &Header, name: StateKey) -> Result<StateProof, ProveError> {
        // Hold the lock to the end: root, value and path must be of one commit.
        let guard = self.shared.database.read().await;
        let database = self.shared.opened(&guard).ok_or(ProveError::Closed)?;
        let (block_number, state_root) = (header.number, header.commitment.state_root);
        let store_root = B256::from_slice(database.root().as_ref());
        if state_root != store_root {
            let store_height = self.height();
            return Err(ProveError::Stale { block_number, state_root, store_height, store_root });
        }
        let failed = |error| ProveError::Store { key: name, reason: self.shared.unread(&error) };
        let found = database.get(&key(&name)).await.map_err(failed)?;
        let value = found.ok_or(ProveError::AbsenceUnprovable { key: name, block_number })?.0;
        let path = database.key_value_proof(key(&name)).await.map_err(failed)?;
        Ok(StateProof { block_number, block_hash: header.hash(), key: name, value, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        proof::{StatePath, verify},
        qmdb::QmdbConfig,
        store::{SealedBatch as _, StateStore as _},
    };
    use alloy_primitives::Bytes;
    use almanac_primitives::{StateChange, StateDiff};
    use commonware_runtime::{Runner as _, deterministic};
    use commonware_storage::{
        mmr::Location,
        qmdb::any::unordered::{Operation, Update},
    };
    use commonware_utils::NZU64;
    use std::collections::BTreeMap;

    /// A node can prove every operation that ever happened. Only operations that are still current may pass as
    /// proofs of the state, and claiming that an old one is current must not help.
    #[test]
    fn operations_that_no_longer_hold_prove_nothing() {
        deterministic::Runner::default().start(|context| async move {
            let (store, header, values) = written_over(context).await;
            let names: BTreeMap<B256, StateKey> = values.keys().map(|name| (name.hashed(), *name)).collect();
            let guard = store.shared.database.read().await;
            let database = guard.as_ref().unwrap();
            let (mut current, mut old, mut in_dead_chunk) = (0, 0, 0);
            for location in 0..header.commitment.ops_end {
                let loc = Location::new(location);
                let (range_proof, operations, chunks) = database.range_proof(loc, NZU64!(1)).await.unwrap();
                let [Operation::Update(Update(hashed, value))] = &operations[..] else { continue };
                let name = names[&B256::from_slice(hashed)];
                let path = StatePath { loc, chunk: chunks[0], range_proof };
                let mut proof = StateProof {
                    block_number: header.number,
                    block_hash: header.hash(),
                    key: name,
                    value: value.0.clone(),
                    path,
                };
                let bit = usize::try_from(location % 256).unwrap();
                if proof.path.chunk[bit / 8] & 1 << (bit % 8) != 0 {
                    assert_eq!(value.0, values[&name]);
                    assert!(verify(&header, &proof).is_ok(), "operation {location}");
                    current += 1;
                    continue;
                }
                assert!(verify(&header, &proof).is_err(), "operation {location}");
                proof.path.chunk[bit / 8] |= 1 << (bit % 8);
                assert!(verify(&header, &proof).is_err(), "operation {location}");
                old += 1;
                in_dead_chunk += u64::from(chunks[0] == [0; 32]);
            }
            assert_eq!(current, values.len());
            assert!(old > 500 && in_dead_chunk > 200, "{old} old operations, {in_dead_chunk} in dead chunks");
        });
    }

    /// A store in which most operations were superseded, and its values.
    async fn written_over(
        context: deterministic::Context,
    ) -> (QmdbStore<deterministic::Context>, Header, BTreeMap<StateKey, Bytes>) {
        let value = |round: u64| Bytes::from(round.to_be_bytes().to_vec());
        let names = || (0..60).map(StateKey::Calendar);
        let mut values: BTreeMap<StateKey, Bytes> = names().map(|name| (name, value(0))).collect();
        let store = QmdbStore::open(context, &QmdbConfig::new("proven"), &values).await.unwrap();
        for round in 1..=20 {
            let changes = names()
                .map(|name| StateChange {
                    key: name,
                    old: values.insert(name, value(round)),
                    new: Some(value(round)),
                })
                .collect();
            let batch = store.seal(&store.tip(), &StateDiff::new(changes)).await.unwrap();
            store.commit(&batch).await.unwrap();
        }
        let header = Header { number: 20, commitment: store.tip().commitment(), ..Header::default() };
        (store, header, values)
    }
}
