//! Proposing is bounded whatever is in the pool: by time, by keys, by bytes, and by what is held in memory.

mod kinds;

use alloy_primitives::{Address, Bytes, U256};
use almanac_consensus::{Application, Clock as _, Deadline, Proposal, SharedPool, SystemClock, Tip};
use almanac_mempool::{Pool, PoolConfig, SenderState};
use almanac_primitives::{
    Chain, ConsensusContext, GasPrice, RecoveredTransaction, StateCommitment, StateDiff, StateKey,
    StateReadError, TimestampMs, UserTransaction, Wei,
    params::{BLOCK_BODY_BYTES_MAX, BLOCK_TRANSACTIONS_MAX, TRANSACTION_BYTES_MAX},
    testing::*,
    transaction::TransactionDecodeError,
};
use almanac_schedule::CalendarAgenda;
use almanac_state::{CommitError, MemoryBatch, MemoryStore, SealError, SealedBatch, StateStore, StateView};
use kinds::{Kind, rich, rich_state};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// Counts the keys that a batch is asked for.
struct Counting {
    store: MemoryStore,
    keys: Arc<AtomicUsize>,
}

#[derive(Clone)]
struct CountingBatch {
    batch: MemoryBatch,
    keys: Arc<AtomicUsize>,
}

impl StateStore for Counting {
    type Batch = CountingBatch;

    fn tip(&self) -> CountingBatch {
        CountingBatch { batch: self.store.tip(), keys: self.keys.clone() }
    }

    async fn seal(&self, parent: &CountingBatch, diff: &StateDiff) -> Result<CountingBatch, SealError> {
        let batch = self.store.seal(&parent.batch, diff).await?;
        Ok(CountingBatch { batch, keys: self.keys.clone() })
    }

    async fn commit(&self, batch: &CountingBatch) -> Result<(), CommitError> {
        self.store.commit(&batch.batch).await
    }
}

impl StateView for CountingBatch {
    async fn get_many(&self, keys: &[StateKey]) -> Result<Vec<Option<Bytes>>, StateReadError> {
        self.keys.fetch_add(keys.len(), Relaxed);
        self.batch.get_many(keys).await
    }
}

impl SealedBatch for CountingBatch {
    fn commitment(&self) -> StateCommitment {
        self.batch.commitment()
    }
}

/// The state that every proposal is made on.
static STATE: LazyLock<BTreeMap<StateKey, Bytes>> = LazyLock::new(rich_state);

/// The chain that transactions are signed for.
static NAME: LazyLock<Chain> = LazyLock::new(|| chain().0.chain());

fn chain() -> (Application<Counting>, Tip<CountingBatch>, Arc<AtomicUsize>) {
    let keys = Arc::new(AtomicUsize::new(0));
    let store = Counting { store: MemoryStore::from_genesis(STATE.clone()), keys: keys.clone() };
    let (application, tip) = Application::new(&rich(), store, Arc::new(CalendarAgenda)).unwrap();
    (application, tip, keys)
}

/// So many of a kind, from several senders, in a pool that has recovered all their signatures.
fn flooded(kind: Kind, count: u64) -> Arc<SharedPool> {
    let pool = SharedPool::new(Pool::new(PoolConfig::default(), GasPrice(1_000_000_000)));
    let rich = SenderState { nonce: 0, balance: Wei(U256::MAX), is_delegated: false };
    for n in 0..count {
        let sent = RecoveredTransaction::recover(kind.nth(&NAME, n), &NAME).unwrap();
        pool.lock().insert_paid(sent, rich, rich).unwrap();
    }
    pool
}

struct Made {
    took: Duration,
    keys: usize,
    count: usize,
    bytes: usize,
}

async fn propose(candidates: Vec<RecoveredTransaction>, deadline: Deadline) -> Made {
    let (application, tip, keys) = chain();
    let proposal = Proposal {
        timestamp: TimestampMs(tip.header.timestamp.0 + 1_000),
        fee_recipient: FEE_RECIPIENT,
        consensus: ConsensusContext::default(),
        candidates,
        more: almanac_consensus::More::NONE,
        deadline,
    };
    let start = Instant::now();
    let made = application.propose(&tip, proposal).await.unwrap();
    let took = start.elapsed();
    let body = &made.block.transactions;
    let bytes = body.iter().map(|sent| sent.encoded().len()).sum();
    Made { took, keys: keys.load(Relaxed), count: body.len(), bytes }
}

/// Keys that transactions fetch which are executed: what so much gas pays for at 1,900 each.
fn paid_keys_max(gas: u64) -> usize {
    usize::try_from(gas / 1_900).unwrap()
}

/// Keys that are fetched for a candidate before it has passed: of a native one its sender, itself as the target of the
/// batch, the first eight accounts that it calls, its fee payer and its nonce.
const FREE_KEYS_MAX: usize = 12;

/// Candidates that are fetched for at a time.
const STEP_CANDIDATES: usize = 128;

/// Keys that a block without transactions may fetch.
const PLAIN_KEYS_MAX: usize = 100;

/// However many of the dearest there are, as many keys are fetched as the block pays for, and a few per candidate.
#[tokio::test]
async fn keys_and_bytes_are_bounded_by_what_a_block_pays_for() {
    for (kind, count) in Kind::FLOODS {
        let offered = flooded(kind, count).candidates();
        let max = paid_keys_max(30_000_000) + FREE_KEYS_MAX * offered.len() + PLAIN_KEYS_MAX;
        let made = propose(offered, Deadline::NEVER).await;
        println!(
            "{kind:?}: {} of {count} with {} bytes in {:?}, {} keys of at most {max}",
            made.count, made.bytes, made.took, made.keys
        );
        assert!(made.keys <= max, "{kind:?}: {} keys", made.keys);
        assert!(made.count > 0 && made.bytes <= BLOCK_BODY_BYTES_MAX, "{kind:?}: {} bytes", made.bytes);
    }
}

/// Takes candidates out of a pool and proposes with them. The time is that of both.
async fn propose_from(pool: &SharedPool, deadline: Deadline) -> Made {
    let start = Instant::now();
    let candidates = pool.candidates();
    let chosen = start.elapsed();
    let made = propose(candidates, deadline).await;
    Made { took: chosen + made.took, ..made }
}

/// Past the deadline: candidates, the keys of one step, one transaction, and a step of the store. The time is compared
/// with a plain proposal and a full block of this run.
#[tokio::test]
async fn the_deadline_holds_for_the_dearest_pool() {
    let plain = propose(Vec::new(), Deadline::NEVER).await.took;
    for (kind, count) in Kind::FLOODS {
        let pool = flooded(kind, count);
        let gas = pool.candidates()[0].transaction().gas_limit();
        let full = propose_from(&pool, Deadline::NEVER).await;
        let mut late = Vec::new();
        // The machine may pause in one of them.
        for _ in 0..3 {
            late.push(propose_from(&pool, Deadline::at(SystemClock, SystemClock.now())).await);
        }
        let took = late.iter().map(|made| made.took).min().unwrap();
        println!(
            "plain {plain:?}, a block with {} of {kind:?} {:?}, past the deadline {took:?} and {} keys",
            full.count, full.took, late[0].keys
        );
        for made in &late {
            assert_eq!(made.count, 1, "{kind:?}: it was late from the start");
            let max = FREE_KEYS_MAX * STEP_CANDIDATES + paid_keys_max(gas) + PLAIN_KEYS_MAX;
            assert!(made.keys <= max, "{kind:?}: {} keys of at most {max}", made.keys);
        }
        // One transaction may fill the block.
        let most = if full.count == 1 { 2 * full.took } else { full.took };
        assert!(took < plain + most, "{kind:?}: {took:?}");
    }
}

/// What is held: candidates are shared with the pool, so that cloning them costs a pointer each.
#[test]
fn candidates_share_what_the_pool_holds() {
    for (kind, _) in Kind::FLOODS {
        let pool = flooded(kind, 1);
        let candidates = pool.candidates();
        let pool = pool.lock();
        let [candidate] = &candidates[..] else { panic!("{kind:?}: {} candidates", candidates.len()) };
        let held = pool.get(candidate.hash()).unwrap();
        let parts = |shared: &RecoveredTransaction| {
            let encoded = shared.transaction().encoded().as_ptr();
            (encoded, shared.authorities().as_ptr(), shared.proven().map(std::ptr::from_ref))
        };
        assert_eq!(parts(held), parts(candidate), "{kind:?}");
    }
}

/// Both sides of how many are taken out of the pool for a proposal.
#[test]
fn no_more_candidates_than_a_block_may_hold() {
    let pool = SharedPool::new(Pool::new(
        PoolConfig { sender_count_max: 20_000, ..PoolConfig::default() },
        GasPrice(1),
    ));
    let rich = SenderState { nonce: 0, balance: Wei(U256::MAX), is_delegated: false };
    let one = recovered(transfer(person(0), 0, Address::ZERO, 1));
    pool.lock().insert(one, rich).unwrap();
    for nonce in 1..=BLOCK_TRANSACTIONS_MAX as u64 {
        pool.lock().insert(recovered(transfer(person(0), nonce, Address::ZERO, 1)), rich).unwrap();
        if nonce >= BLOCK_TRANSACTIONS_MAX as u64 - 1 {
            assert_eq!(pool.candidates().len(), BLOCK_TRANSACTIONS_MAX);
        }
    }
}

/// The last kind there is has no place in a pool.
#[test]
fn blobs_do_not_get_there() {
    let mut blob = Kind::List.nth(&NAME, 0).encoded().to_vec();
    blob[0] = 3;
    assert!(blob.len() < TRANSACTION_BYTES_MAX);
    assert_eq!(UserTransaction::decode(&blob), Err(TransactionDecodeError::BlobUnsupported));
}
