//! Proposing is bounded whatever is in the pool: by time, by keys, and by what is held in memory.

use alloy_consensus::{TxEip1559, TxLegacy};
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_primitives::{Address, Bytes, TxKind, U256};
use almanac_consensus::{Application, Clock as _, Deadline, Proposal, SharedPool, SystemClock, Tip};
use almanac_mempool::{Pool, PoolConfig, SenderState};
use almanac_primitives::{
    ConsensusContext, GasPrice, Genesis, RecoveredTransaction, StateCommitment, StateDiff, StateKey,
    StateReadError, TimestampMs, UserTransaction, Wei,
    genesis::Allocation,
    params::{BLOCK_TRANSACTIONS_MAX, TRANSACTION_BYTES_MAX},
    testing::*,
    transaction::TransactionDecodeError,
};
use almanac_schedule::CalendarAgenda;
use almanac_state::{CommitError, MemoryBatch, MemoryStore, SealError, SealedBatch, StateStore, StateView};
use std::{
    sync::{
        Arc,
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

const SENDERS: u64 = 40;

/// The dearest legal transactions of one kind: as large as they may be.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Calldata of 127 KiB.
    Legacy,
    /// An access list of 3,850 keys.
    List,
    /// Init code that the EVM has to look through.
    Create,
    /// 1,000 authorisations.
    Delegations,
}

/// People with the money for it.
fn rich() -> Genesis {
    let mut genesis = genesis();
    let much = Allocation { balance: Wei(U256::from(10u128.pow(24))), ..Default::default() };
    genesis.allocations.extend((0..SENDERS).map(|n| (person(n).address, much.clone())));
    genesis
}

impl Kind {
    fn sign(self, from: Person, nonce: u64) -> UserTransaction {
        let to = person(1).address;
        match self {
            Self::Legacy => {
                let input = vec![7; 127 * 1024].into();
                sign(TxLegacy { input, gas_limit: 6_000_000, ..legacy(nonce, to, 0) }, from.secret)
            }
            Self::List => {
                // No key twice, in all of them together.
                let tag = u64::from_be_bytes(from.address[..8].try_into().unwrap());
                let slots = (0..3_850).map(|slot| U256::from_limbs([slot, nonce, tag, 0]).into()).collect();
                let list =
                    AccessList(vec![AccessListItem { address: contracts::COUNTER, storage_keys: slots }]);
                sign(eip2930(nonce, to, list, 7_500_000), from.secret)
            }
            Self::Create => {
                let input = vec![0x5b; 48 * 1024].into();
                let tx = eip1559(nonce, TxKind::Create, 0, Bytes::new(), 6_000_000);
                sign(TxEip1559 { input, ..tx }, from.secret)
            }
            Self::Delegations => {
                let signed = authorize(person(3), 0, contracts::COUNTER);
                sign(eip7702(nonce, to, vec![signed; 1_000], 29_000_000), from.secret)
            }
        }
    }
}

/// So many of a kind, from several senders, as the pool hands them out.
fn flood(kind: Kind, count: u64) -> Vec<RecoveredTransaction> {
    let pool = SharedPool::new(Pool::new(PoolConfig::default(), GasPrice(1_000_000_000)));
    // Recovering a thousand authorisations takes a while: the pool has them recovered.
    for n in 0..count {
        let rich = SenderState { nonce: 0, balance: Wei(U256::MAX), is_delegated: false };
        let sent = kind.sign(person(n % SENDERS), n / SENDERS);
        pool.lock().insert(recovered(sent), rich).unwrap();
    }
    pool.candidates()
}

struct Made {
    took: Duration,
    keys: usize,
    count: usize,
}

fn chain() -> (Application<Counting>, Tip<CountingBatch>, Arc<AtomicUsize>) {
    let genesis = rich();
    let keys = Arc::new(AtomicUsize::new(0));
    let store = Counting { store: MemoryStore::from_genesis(genesis.state().unwrap()), keys: keys.clone() };
    let (application, tip) = Application::new(&genesis, store, Arc::new(CalendarAgenda)).unwrap();
    (application, tip, keys)
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
    Made { took: start.elapsed(), keys: keys.load(Relaxed), count: made.block.transactions.len() }
}

/// Keys that one block may fetch for transactions that it executes: what 30 M gas pays for at 1,900 each.
const PAID_KEYS_MAX: usize = 30_000_000 / 1_900;

/// Keys that are fetched for a candidate before it has passed.
const FREE_KEYS_MAX: usize = 10;

/// However many of the dearest there are, as many keys are fetched as the block pays for, and a few per candidate.
#[tokio::test]
async fn keys_are_bounded_by_what_a_block_pays_for() {
    for (kind, count) in [(Kind::Legacy, 200), (Kind::List, 400), (Kind::Create, 200), (Kind::Delegations, 8)]
    {
        let made = propose(flood(kind, count), Deadline::NEVER).await;
        let max = PAID_KEYS_MAX + FREE_KEYS_MAX * count as usize + 100;
        println!(
            "{kind:?}: {} of {count} in {:?}, {} keys of at most {max}",
            made.count, made.took, made.keys
        );
        assert!(made.keys <= max, "{kind:?}: {} keys", made.keys);
        assert!(made.count > 0, "{kind:?}");
    }
}

/// Time past the deadline: one transaction, and a step of the store. Compared with a plain proposal of this run.
#[tokio::test]
async fn the_deadline_holds_for_the_dearest_pool() {
    let plain = propose(Vec::new(), Deadline::NEVER).await.took;
    let dearest = propose(flood(Kind::List, 4), Deadline::NEVER).await.took;
    let offered = flood(Kind::List, 800);
    let deadline = Deadline::at(SystemClock, SystemClock.now());
    let made = propose(offered, deadline).await;
    println!("plain {plain:?}, a full block {dearest:?}, 800 lists past the deadline {:?}", made.took);
    assert_eq!(made.count, 1, "it was late from the start");
    assert!(made.took < plain + 2 * dearest, "{:?}", made.took);
}

/// What is held: candidates are shared with the pool, so that cloning them costs a pointer each.
#[test]
fn candidates_share_what_the_pool_holds() {
    let pool = SharedPool::new(Pool::new(PoolConfig::default(), GasPrice(1_000_000_000)));
    let rich = SenderState { nonce: 0, balance: Wei(U256::MAX), is_delegated: false };
    let sent = recovered(Kind::Delegations.sign(person(0), 0));
    let hash = sent.hash();
    pool.lock().insert(sent, rich).unwrap();
    let candidates = pool.candidates();
    let pool = pool.lock();
    let held = pool.get(hash).unwrap();
    assert!(std::ptr::eq(held.authorities(), candidates[0].authorities()));
    assert!(std::ptr::eq(
        held.transaction().encoded().as_ptr(),
        candidates[0].transaction().encoded().as_ptr()
    ));
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
    let mut blob = Kind::List.sign(person(0), 0).encoded().to_vec();
    blob[0] = 3;
    assert!(blob.len() < TRANSACTION_BYTES_MAX);
    assert_eq!(UserTransaction::decode(&blob), Err(TransactionDecodeError::BlobUnsupported));
}
