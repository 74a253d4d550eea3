//! A node that meets a broken invariant in a final block stops before it writes anything of that block. The others go on.
//!
//! No block can do this; a bug of ours might. So one node's store misreads the account in which burned money is counted.

use crate::attempts::network::{Answer, Running, chain, connect, start};
use alloy_primitives::{BlockHash, Bytes, U256};
use almanac_bft::{FinalizeError, replica::ReplicaError};
use almanac_consensus::ApplicationError;
use almanac_exec::{BlockError, Fault};
use almanac_mempool::SenderState;
use almanac_primitives::{
    Account, Block, Receipt, StateCommitment, StateDiff, StateKey, StateReadError, Wei, addresses::BURN,
    testing::*,
};
use almanac_state::{
    BlockArchive, CommitError, MemoryBatch, MemoryStore, SealError, SealedBatch, SignedBlock, StateStore,
    StateView,
};
use commonware_runtime::{Clock as _, Runner as _, Supervisor as _, deterministic};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

/// A store that may read a wei where burned money is counted, so that money seems to vanish whenever some is burned.
struct Store {
    inner: MemoryStore,
    is_wrong: bool,
}

#[derive(Clone)]
struct Batch {
    inner: MemoryBatch,
    is_wrong: bool,
}

impl Store {
    fn new(is_wrong: bool) -> Self {
        Self { inner: MemoryStore::from_genesis(chain().state().unwrap()), is_wrong }
    }

    fn batch(&self, inner: MemoryBatch) -> Batch {
        Batch { inner, is_wrong: self.is_wrong }
    }
}

impl StateStore for Store {
    type Batch = Batch;

    fn tip(&self) -> Batch {
        self.batch(self.inner.tip())
    }

    async fn seal(&self, parent: &Batch, diff: &StateDiff) -> Result<Batch, SealError> {
        Ok(self.batch(self.inner.seal(&parent.inner, diff).await?))
    }

    async fn commit(&self, batch: &Batch) -> Result<(), CommitError> {
        self.inner.commit(&batch.inner).await
    }
}

impl StateView for Batch {
    async fn get_many(&self, keys: &[StateKey]) -> Result<Vec<Option<Bytes>>, StateReadError> {
        let mut values = self.inner.get_many(keys).await?;
        let burned = keys.iter().zip(&mut values).filter(|(key, _)| **key == StateKey::Account(BURN));
        for (_, value) in burned.filter(|_| self.is_wrong) {
            *value = Some(Account { balance: U256::ONE, ..Account::default() }.encode());
        }
        Ok(values)
    }
}

impl SealedBatch for Batch {
    fn commitment(&self) -> StateCommitment {
        self.inner.commitment()
    }
}

/// The blocks that a node has written.
#[derive(Default)]
struct Archive(Mutex<Vec<BlockHash>>);

impl BlockArchive for Archive {
    fn append<'a>(&'a self, block: &'a Block, _: &'a [Receipt], _: Option<&'a [u8]>) -> Answer<'a, ()> {
        self.0.lock().unwrap().push(block.hash());
        Box::pin(async { Ok(()) })
    }

    fn signed(&self, _: u64) -> Answer<'_, Option<SignedBlock>> {
        Box::pin(async { Ok(None) })
    }
}

/// Offers a validator's pool a transaction that burns money.
fn send(node: &Running<Store>) {
    let rich = SenderState { nonce: 0, balance: Wei(U256::MAX), is_delegated: false };
    node.pool.lock().insert(recovered(transfer(person(0), 0, BURN, 1)), rich).unwrap();
}

fn is_not_conserved(error: &ReplicaError) -> bool {
    let ReplicaError::Local(error) = error else { return false };
    let ApplicationError::Block(BlockError::Fault(fault)) = &**error else { return false };
    matches!(**fault, Fault::ValueNotConserved { .. })
}

#[test]
fn a_node_that_loses_money_stops_before_it_writes() {
    deterministic::Runner::timed(Duration::from_secs(600)).start(|context| async move {
        let oracle = connect(&context).await;
        let mut sound = Vec::new();
        for index in 0..3 {
            sound.push(start(context.child("validator"), &oracle, index, Store::new(false), None).await);
        }
        let archive = Arc::new(Archive::default());
        let (validator, kept) = (context.child("validator"), archive.clone());
        let wrong = start(validator, &oracle, 3, Store::new(true), Some(kept)).await;
        wrong.replica.wait_for(3).await;
        sound.iter().for_each(send);

        let ended = tokio::select! {
            ended = wrong.finalizer => ended.expect("it was not stopped").expect_err("it cannot go on"),
            () = context.sleep(Duration::from_secs(60)) => panic!(
                "it did not stop, and is at block {}", wrong.replica.tip().header.number
            ),
        };
        let FinalizeError::Replica { number, error } = ended else { panic!("{ended}") };
        assert!(is_not_conserved(&error), "{error}");

        for node in &sound {
            node.replica.wait_for(number + 5).await;
        }
        let tip = wrong.replica.tip();
        assert_eq!(tip.header.number, number - 1);
        let archived = archive.0.lock().unwrap();
        assert_eq!((archived.len() as u64, archived.last()), (number - 1, Some(&tip.hash)));
        let store = wrong.replica.application().store();
        assert_eq!(store.tip().commitment(), tip.header.commitment);
    });
}
