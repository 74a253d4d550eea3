//! Proves values on the validator's own runtime, because its store must not be read from another one.

use crate::replica::Replica;
use almanac_consensus::Proven;
use almanac_primitives::StateKey;
use almanac_state::{ProveError, StateStore};
use std::{future::Future, sync::Arc};
use tokio::sync::{mpsc, oneshot};

/// Queued requests. Further callers wait for room.
const WAITING_MAX: usize = 16;

/// Requests proofs from a validator. Clones use the same one.
#[derive(Clone, Debug)]
pub struct Prover(mpsc::Sender<Request>);

#[derive(Debug)]
struct Request {
    keys: Vec<StateKey>,
    reply: oneshot::Sender<Result<Proven, ProveError>>,
}

impl Prover {
    /// Returns a handle, and a future that must run where the ledger's store lives. It handles one request at a
    /// time, so that commits can access the store in between.
    pub fn new<S: StateStore<Batch: Send + 'static>>(
        replica: Arc<Replica<S>>,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let (requests, mut inbox) = mpsc::channel::<Request>(WAITING_MAX);
        let answering = async move {
            while let Some(Request { keys, mut reply }) = inbox.recv().await {
                tokio::select! {
                    proven = replica.prove(&keys) => {
                        // Whoever asked may have gone since.
                        let _ = reply.send(proven);
                    }
                    () = reply.closed() => {}
                }
            }
        };
        (Self(requests), answering)
    }

    /// Proves values in the state after the last final block; `None` if the validator has ended.
    pub async fn prove(&self, keys: Vec<StateKey>) -> Option<Result<Proven, ProveError>> {
        let (reply, answer) = oneshot::channel();
        self.0.send(Request { keys, reply }).await.ok()?;
        answer.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use almanac_consensus::{Application, Deadline, Proposal};
    use almanac_primitives::{
        ConsensusContext, Header, StateDiff, TimestampMs,
        addresses::BLOCK_HASH_HISTORY,
        testing::{FEE_RECIPIENT, START, genesis, person},
    };
    use almanac_schedule::CalendarAgenda;
    use almanac_state::{
        CommitError, MemoryBatch, MemoryStore, QmdbConfig, QmdbStore, SealError, StateProof, verify,
    };
    use commonware_runtime::{
        Clock as _, Runner as _, Spawner as _, Supervisor as _, deterministic, reschedule,
    };
    use futures::executor::block_on;
    use std::{
        sync::atomic::{AtomicU32, Ordering::Relaxed},
        time::Duration,
    };

    const BLOCKS: u64 = 60;

    async fn replica(context: &deterministic::Context) -> Arc<Replica<QmdbStore<deterministic::Context>>> {
        let genesis = genesis();
        let config = QmdbConfig::new("proven");
        let store =
            QmdbStore::open(context.child("state"), &config, &genesis.state().unwrap()).await.unwrap();
        let (application, tip) = Application::new(&genesis, store, Arc::new(CalendarAgenda)).unwrap();
        Replica::new(application, tip)
    }

    async fn finalize_next<S: StateStore<Batch: Send + 'static>>(replica: &Replica<S>) {
        let tip = replica.tip();
        let proposal = Proposal {
            timestamp: TimestampMs(START.0 + tip.header.number + 1),
            fee_recipient: FEE_RECIPIENT,
            consensus: ConsensusContext::default(),
            candidates: Vec::new(),
            more: almanac_consensus::More::NONE,
            deadline: Deadline::NEVER,
        };
        let made = replica.propose(&tip, proposal).await.unwrap();
        replica.finalize(&made.block, None).await.unwrap();
    }

    fn keys() -> Vec<StateKey> {
        let people = (0..8).map(|n| StateKey::Account(person(n).address));
        people.chain([StateKey::Account(BLOCK_HASH_HISTORY)]).collect()
    }

    /// Blocks become final while proofs are made: each answer is of one block, and valid.
    #[test]
    fn one_answer_is_of_one_block_while_others_become_final() {
        deterministic::Runner::default().start(|context| async move {
            let replica = replica(&context).await;
            let (prover, proving) = Prover::new(replica.clone());
            context.child("prover").spawn(|_| proving);
            let chain = replica.clone();
            let chain = context.child("chain").spawn(|context| async move {
                for _ in 0..BLOCKS / 3 {
                    // Three in a row interrupt the proofs of one answer, then there is time for one.
                    for _ in 0..3 {
                        finalize_next(&chain).await;
                        reschedule().await;
                    }
                    context.sleep(Duration::from_millis(1)).await;
                }
            });
            let mut heights = Vec::new();
            while replica.tip().header.number < BLOCKS {
                let Proven { header, proofs } = prover.prove(keys()).await.unwrap().unwrap();
                assert_eq!(proofs.iter().map(|proof| proof.key).collect::<Vec<_>>(), keys());
                for proof in &proofs {
                    verify(&header, proof).unwrap();
                }
                heights.push(header.number);
            }
            chain.await.unwrap();
            assert!(heights.is_sorted(), "{heights:?}");
            heights.dedup();
            assert!(heights.len() > 5, "they were made between many blocks: {heights:?}");
        });
    }

    /// A store that commits a block just before each of the first proofs.
    struct Hurried {
        store: MemoryStore,
        times: AtomicU32,
    }

    impl StateStore for Hurried {
        type Batch = MemoryBatch;

        fn tip(&self) -> MemoryBatch {
            self.store.tip()
        }

        async fn seal(&self, parent: &MemoryBatch, diff: &StateDiff) -> Result<MemoryBatch, SealError> {
            self.store.seal(parent, diff).await
        }

        async fn commit(&self, batch: &MemoryBatch) -> Result<(), CommitError> {
            self.store.commit(batch).await
        }

        async fn prove(&self, header: &Header, _: StateKey) -> Result<StateProof, ProveError> {
            let left = self.times.fetch_update(Relaxed, Relaxed, |times| times.checked_sub(1));
            left.map_or(Err(ProveError::Unsupported), |_| {
                let (block_number, state_root) = (header.number, header.commitment.state_root);
                let (store_height, store_root) = (block_number + 1, state_root);
                Err(ProveError::Stale { block_number, state_root, store_height, store_root })
            })
        }
    }

    /// `Unsupported` stands for a proof that was reached, because a memory store makes none.
    #[test]
    fn blocks_that_come_between_are_waited_for_and_not_for_ever() {
        let proven_after = |times: u32| {
            let genesis = genesis();
            let store = MemoryStore::from_genesis(genesis.state().unwrap());
            let store = Hurried { store, times: times.into() };
            let (application, tip) = Application::new(&genesis, store, Arc::new(CalendarAgenda)).unwrap();
            let replica = Replica::new(application, tip);
            let keys = keys();
            let chain = async {
                for _ in 0..10 {
                    finalize_next(&replica).await;
                    reschedule().await;
                }
            };
            let (proven, ()) = block_on(futures::future::join(replica.prove(&keys[..1]), chain));
            proven.unwrap_err()
        };
        assert!(matches!(proven_after(0), ProveError::Unsupported));
        assert!(matches!(proven_after(4), ProveError::Unsupported));
        let refused = proven_after(5);
        assert!(
            matches!(refused, ProveError::Stale { block_number: 4, .. }),
            "each try is of a later block: {refused}"
        );
    }

    #[test]
    fn what_is_not_there_is_refused_and_an_ended_validator_says_nothing() {
        deterministic::Runner::default().start(|context| async move {
            let (prover, proving) = Prover::new(replica(&context).await);
            let task = context.child("prover").spawn(|_| proving);
            let refused = prover.prove(vec![StateKey::Calendar(9)]).await.unwrap().unwrap_err();
            assert!(matches!(refused, ProveError::AbsenceUnprovable { block_number: 0, .. }), "{refused}");
            assert_eq!(prover.prove(keys()).await.unwrap().unwrap().header.number, 0, "it goes on");
            task.abort();
            assert!(prover.prove(keys()).await.is_none());
        });
    }
}
