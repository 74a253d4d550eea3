//! Tests that a voter that cannot decide at once retries, and answers as soon as it can.

use super::*;
use crate::validators::ValidatorSet;
use almanac_consensus::Application;
use almanac_exec::Fault;
use almanac_mempool::{Pool, PoolConfig};
use almanac_primitives::{
    Block, DurationMs, Genesis, StateDiff, StateKey, StateReadError,
    genesis::Validator,
    testing::{self, FEE_RECIPIENT},
};
use almanac_schedule::CalendarAgenda;
use almanac_state::{CommitError, MemoryBatch, MemoryStore, SealError, StaleBatch};
use commonware_consensus::{
    marshal::ancestry,
    types::{Epoch, Round, View},
};
use commonware_cryptography::{Digestible as _, Signer as _, ed25519::PrivateKey};
use commonware_runtime::{Runner as _, Supervisor as _, deterministic};
use std::{
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::sync::oneshot;

/// A store whose next seals fail, or whose next one answers late.
struct Flaky {
    store: MemoryStore,
    failures: AtomicU32,
    error: SealError,
    held: Mutex<Option<oneshot::Receiver<()>>>,
}

impl StateStore for Flaky {
    type Batch = MemoryBatch;

    fn tip(&self) -> MemoryBatch {
        self.store.tip()
    }

    async fn seal(&self, parent: &MemoryBatch, diff: &StateDiff) -> Result<MemoryBatch, SealError> {
        if self.failures.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
            return Err(self.error.clone());
        }
        let sealed = self.store.seal(parent, diff).await;
        let held = self.held.lock().unwrap().take();
        if let Some(released) = held {
            released.await.unwrap();
        }
        sealed
    }

    async fn commit(&self, batch: &MemoryBatch) -> Result<(), CommitError> {
        self.store.commit(batch).await
    }
}

fn broken_disk() -> SealError {
    SealError::Store { reason: "read failed".to_owned() }
}

fn key() -> PrivateKey {
    PrivateKey::from_seed(1)
}

fn network() -> Genesis {
    let public_key = key_bytes(&key().public_key());
    let validator = Validator { name: "v0".to_owned(), public_key, fee_recipient: FEE_RECIPIENT };
    Genesis { validators: vec![validator], timestamp_ms: TimestampMs(0), ..testing::genesis() }
}

type Clock = crate::RuntimeClock<deterministic::Context>;

fn voter(context: &deterministic::Context, failures: u32, error: SealError) -> Voter<Flaky, Clock> {
    let store = MemoryStore::from_genesis(network().state().unwrap());
    voter_on(context, Flaky { store, failures: failures.into(), error, held: Mutex::default() })
}

fn voter_on(context: &deterministic::Context, store: Flaky) -> Voter<Flaky, Clock> {
    let genesis = network();
    let (application, tip) = Application::new(&genesis, store, Arc::new(CalendarAgenda)).unwrap();
    let pool = SharedPool::new(Pool::new(PoolConfig::default(), tip.header.base_fee));
    Voter {
        replica: Replica::new(application, tip),
        pool,
        clock: crate::RuntimeClock::new(context.child("clock")),
        time: TimeConfig { block_time: DurationMs(100), tolerance: DurationMs(500) },
        validators: Arc::new(ValidatorSet::new(&genesis).unwrap()),
    }
}

fn origin(voter: &Voter<Flaky, Clock>) -> ConsensusBlock {
    ConsensusBlock::genesis(voter.replica.tip().header)
}

fn round(voter: &Voter<Flaky, Clock>) -> BlockContext {
    BlockContext {
        round: Round::new(Epoch::zero(), View::new(1)),
        leader: key().public_key(),
        parent: (View::zero(), origin(voter).digest()),
    }
}

/// A proposal of a voter with a working disk.
async fn propose(context: &deterministic::Context, voter: &mut Voter<Flaky, Clock>) -> Option<Arc<Block>> {
    let ancestry = ancestry::from_iter([origin(voter).digested()]);
    let asked = (context.child("propose"), round(voter));
    let made = Consensus::<deterministic::Context>::propose(voter, asked, ancestry, ()).await;
    made.map(|block| block.inner().block().clone())
}

async fn verify(
    context: &deterministic::Context,
    voter: &mut Voter<Flaky, Clock>,
    block: Arc<Block>,
) -> Option<bool> {
    let blocks = [ConsensusBlock::new(block).unwrap(), origin(voter)];
    let ancestry = ancestry::from_iter(blocks.map(ConsensusBlock::digested));
    let asked = (context.child("verify"), round(voter));
    let verdict = Consensus::<deterministic::Context>::verify(voter, asked, ancestry);
    tokio::select! {
        verdict = verdict => Some(verdict),
        () = context.sleep(Duration::from_secs(60)) => None,
    }
}

/// A voter's verdicts on a valid block and on an invalid one, within a minute.
fn verdicts(failures: u32, error: &SealError) -> (Option<bool>, Option<bool>) {
    deterministic::Runner::default().start(|context| async move {
        let mut other = voter(&context, 0, broken_disk());
        let block = propose(&context, &mut other).await.unwrap();
        let mut bad = Block::clone(&block);
        bad.header.gas_used.0 += 1;
        let good = verify(&context, &mut voter(&context, failures, error.clone()), block).await;
        let bad = verify(&context, &mut voter(&context, failures, error.clone()), bad.into()).await;
        (good, bad)
    })
}

#[test]
fn a_verdict_is_given_as_soon_as_the_disk_answers_again() {
    let stale = SealError::StaleParent(StaleBatch { height: 1, tip_height: 2 });
    for error in [broken_disk(), stale] {
        for failures in [0, 1, 2, 20] {
            assert_eq!(verdicts(failures, &error), (Some(true), Some(false)), "{failures} times: {error}");
        }
        assert_eq!(verdicts(u32::MAX, &error), (None, None), "no verdict without an answer");
    }
}

/// What it executes is then a child of no block that is known; another attempt knows the block itself.
#[test]
fn a_block_that_becomes_final_while_it_is_judged_gets_a_verdict() {
    deterministic::Runner::default().start(|context| async move {
        let block = propose(&context, &mut voter(&context, 0, broken_disk())).await.unwrap();
        let (release, held) = oneshot::channel();
        let store = MemoryStore::from_genesis(network().state().unwrap());
        let held = Mutex::new(Some(held));
        let mut voter = voter_on(&context, Flaky { store, failures: 0.into(), error: broken_disk(), held });
        let replica = voter.replica.clone();
        let meanwhile = async {
            context.sleep(Duration::from_secs(1)).await;
            assert!(replica.finalize(&block, None).await.unwrap().is_some());
            release.send(()).expect("the voter waits for it");
        };
        let (verdict, ()) = tokio::join!(verify(&context, &mut voter, block.clone()), meanwhile);
        assert_eq!(verdict, Some(true));
    });
}

/// A retry would fail the same way: the question stays open, without further work.
#[test]
fn what_cannot_pass_is_not_tried_again() {
    assert_eq!(verdicts(1, &SealError::Closed), (None, None));
    let read = |error| ReplicaError::from(ApplicationError::from(error)).is_transient();
    let key = StateKey::Account(FEE_RECIPIENT);
    assert!(read(StateReadError::failed(key, "disk")) && !read(StateReadError::closed(key, "closed")));
    let fault = BlockError::from(Fault::RulesDisagree { reason: "nonce".to_owned() });
    assert!(!ReplicaError::from(ApplicationError::from(fault)).is_transient());
    let stopped = ReplicaError::Stopped { reason: String::new() };
    assert!(!stopped.is_transient() && !ReplicaError::TimeExhausted.is_transient());
}

/// Both sides of how often a proposer tries.
#[test]
fn a_proposer_tries_again_within_its_view() {
    let propose_after = |failures| {
        deterministic::Runner::default().start(|context| async move {
            let mut voter = voter(&context, failures, broken_disk());
            let begin = context.current();
            let made = propose(&context, &mut voter).await;
            (made.is_some(), context.current().duration_since(begin).unwrap())
        })
    };
    let most = u32::try_from(PROPOSE_AGAIN_MAX).unwrap();
    assert!(propose_after(0).0 && propose_after(1).0 && propose_after(most).0);
    let (is_made, took) = propose_after(most + 1);
    assert!(!is_made && took < Duration::from_millis(600), "{took:?}");
}
