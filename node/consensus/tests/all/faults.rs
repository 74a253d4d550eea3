//! A candidate that meets a fault is left out and not tried again at once, and blocks keep coming.

use alloy_consensus::TxEip1559;
use alloy_primitives::{Address, B256, Bytes, TxHash, TxKind, U256, address};
use almanac_consensus::{Application, Deadline, MadeBlock, Proposal, SharedPool, Tip};
use almanac_exec::{BlockError, Fault, StateFault};
use almanac_mempool::{Pool, PoolConfig, SenderState};
use almanac_primitives::{
    Account, Block, ConsensusContext, GasPrice, StateDiff, StateKey, TimestampMs, UserTransaction, Wei,
    testing::*,
};
use almanac_schedule::CalendarAgenda;
use almanac_state::{CommitError, MemoryBatch, MemoryStore, SealError, StateStore};
use std::sync::Arc;

const BASE_FEE: GasPrice = GasPrice(1_000_000_000);

/// An account whose code is gone.
const BROKEN: Address = address!("0x00000000000000000000000000000000000d0bad");

fn damaged_chain() -> (Application<MemoryStore>, Tip<MemoryBatch>) {
    let genesis = genesis();
    let mut state = genesis.state().unwrap();
    let account =
        Account { nonce: 1, balance: U256::ZERO, code_hash: B256::repeat_byte(0xbc), is_keyed: false };
    state.insert(StateKey::Account(BROKEN), account.encode());
    Application::new(&genesis, MemoryStore::from_genesis(state), Arc::new(CalendarAgenda)).unwrap()
}

fn pool_of(transactions: &[UserTransaction]) -> Arc<SharedPool> {
    let pool = SharedPool::new(Pool::new(PoolConfig::default(), BASE_FEE));
    for transaction in transactions {
        let rich = SenderState { nonce: 0, balance: Wei(U256::MAX), is_delegated: false };
        pool.lock().insert(recovered(transaction.clone()), rich).unwrap();
    }
    pool
}

async fn propose<S: StateStore<Batch = MemoryBatch>>(
    application: &Application<S>,
    tip: &Tip<MemoryBatch>,
    pool: &SharedPool,
) -> MadeBlock<MemoryBatch> {
    let proposal = Proposal {
        timestamp: TimestampMs(tip.header.timestamp.0 + 1_000),
        fee_recipient: FEE_RECIPIENT,
        consensus: ConsensusContext::default(),
        candidates: pool.candidates(),
        more: almanac_consensus::More::NONE,
        deadline: Deadline::NEVER,
    };
    application.propose(tip, proposal).await.unwrap()
}

fn included(made: &MadeBlock<MemoryBatch>) -> Vec<TxHash> {
    made.block.transactions.iter().map(UserTransaction::hash).collect()
}

/// A user's transaction reaches a value that is not there: it used to fail every proposal of every validator.
#[tokio::test]
async fn a_candidate_that_meets_a_fault_stops_no_block() {
    let (application, tip) = damaged_chain();
    let bad = call(person(0), 0, BROKEN, Bytes::new(), 100_000);
    let good = transfer(person(1), 0, person(2).address, 1);
    let pool = pool_of(&[bad.clone(), good.clone()]);
    let made = propose(&application, &tip, &pool).await;
    assert_eq!(included(&made), [good.hash()]);
    let [(hash, error)] = &made.faulted[..] else { panic!("{:?}", made.faulted) };
    assert_eq!(*hash, bad.hash());
    assert!(matches!(error, BlockError::State(StateFault::Missing { .. })), "{error}");
    assert!(pool.lock().contains(bad.hash()), "a proposal alone changes no pool");
    pool.note_faults(&made);
    let candidates: Vec<_> = pool.candidates().iter().map(|candidate| candidate.hash()).collect();
    assert_eq!(candidates, [good.hash()], "the next proposal leaves it out");
    let (other, other_tip) = damaged_chain();
    other.verify(&other_tip, Block::clone(&made.block)).await.unwrap();
}

/// A disk that gives no answer once must not cost a user the transaction: it is valid, and it is tried again.
#[tokio::test]
async fn what_the_state_could_not_be_read_for_waits_and_comes_back() {
    let (application, tip) = damaged_chain();
    let bad = call(person(0), 0, BROKEN, Bytes::new(), 100_000);
    let next = transfer(person(0), 1, person(2).address, 1);
    let pool = pool_of(&[bad.clone(), next]);
    let mut made = propose(&application, &tip, &pool).await;
    assert!(made.block.transactions.is_empty());
    pool.on_final_block(&made, BASE_FEE);
    assert!(pool.lock().contains(bad.hash()), "it is kept");
    made.faulted.clear();
    let mut blocks = 0;
    while pool.candidates().is_empty() {
        assert!(blocks < 100, "it comes back");
        pool.on_final_block(&made, BASE_FEE);
        blocks += 1;
    }
    assert_eq!(blocks, 16);
    assert_eq!(pool.candidates().len(), 2, "with those after it");
}

/// A broken invariant is about the transaction: it would be broken again.
#[tokio::test]
async fn what_breaks_an_invariant_is_dropped() {
    let (application, tip) = damaged_chain();
    let (bad, good) = (transfer(person(0), 0, BROKEN, 1), transfer(person(1), 0, person(2).address, 1));
    let pool = pool_of(&[bad.clone(), good.clone()]);
    let mut made = propose(&application, &tip, &pool_of(&[])).await;
    made.faulted.push((bad.hash(), Fault::RulesDisagree { reason: "made up".to_owned() }.into()));
    pool.on_final_block(&made, BASE_FEE);
    assert!(!pool.lock().contains(bad.hash()) && pool.lock().contains(good.hash()));
}

/// Each asks for a whole block and uses hardly any of it: one runs in a block, and thousands used to be all that a
/// proposer looked at.
#[test]
fn candidates_that_ask_for_whole_blocks_leave_places_for_others() {
    let wide = (0..20).map(|n| call(person(n), 0, person(2).address, Bytes::new(), 30_000_000));
    let sixteenth = call(person(20), 0, person(2).address, Bytes::new(), 30_000_000 / 16);
    let cheap = eip1559(0, TxKind::Call(person(2).address), 1, Bytes::new(), 21_000);
    let cheap = sign(TxEip1559 { max_priority_fee_per_gas: 1, ..cheap }, person(21).secret);
    let pool = pool_of(&wide.chain([sixteenth.clone(), cheap.clone()]).collect::<Vec<_>>());
    let candidates: Vec<_> = pool.candidates().iter().map(|candidate| candidate.hash()).collect();
    assert_eq!(candidates.len(), 8 + 2, "eight blocks of wide ones, and the others");
    assert_eq!(candidates[8..], [sixteenth.hash(), cheap.hash()], "a sixteenth of a block is not wide");
}

/// A store that cannot take what one candidate did, and says so only when the block is sealed.
struct Picky(MemoryStore);

impl StateStore for Picky {
    type Batch = MemoryBatch;

    fn tip(&self) -> MemoryBatch {
        self.0.tip()
    }

    async fn seal(&self, parent: &MemoryBatch, diff: &StateDiff) -> Result<MemoryBatch, SealError> {
        let key = StateKey::Account(person(0).address);
        match diff.changes().iter().any(|change| change.key == key) {
            true => Err(SealError::ValueTooLarge { key, given: 2, max: 1 }),
            false => self.0.seal(parent, diff).await,
        }
    }

    async fn commit(&self, batch: &MemoryBatch) -> Result<(), CommitError> {
        self.0.commit(batch).await
    }
}

/// Where nobody can tell which candidate it was, the body is empty, and the block is there.
#[tokio::test]
async fn a_fault_of_the_whole_block_leaves_an_empty_body() {
    let genesis = genesis();
    let store = Picky(MemoryStore::from_genesis(genesis.state().unwrap()));
    let (application, tip) = Application::new(&genesis, store, Arc::new(CalendarAgenda)).unwrap();
    let good = transfer(person(1), 0, person(2).address, 1);
    let made = propose(&application, &tip, &pool_of(std::slice::from_ref(&good))).await;
    assert_eq!(included(&made), [good.hash()]);
    let bad = transfer(person(0), 0, person(2).address, 1);
    let made = propose(&application, &tip, &pool_of(&[bad, good])).await;
    assert!(made.block.transactions.is_empty());
}

/// The next proposals find out which candidate it was and drop it. The others are included and none of them is dropped.
#[tokio::test]
async fn the_culprit_of_a_fault_of_the_whole_block_leaves_the_pool() {
    let genesis = genesis();
    let store = Picky(MemoryStore::from_genesis(genesis.state().unwrap()));
    let (application, mut tip) = Application::new(&genesis, store, Arc::new(CalendarAgenda)).unwrap();
    let bad = transfer(person(0), 0, person(2).address, 1);
    let good: Vec<_> = (1..6).map(|n| transfer(person(n), 0, person(7).address, 1)).collect();
    let pool = pool_of(&[&good[..3], std::slice::from_ref(&bad), &good[3..]].concat());
    let mut included_ever = Vec::new();
    for _ in 0..8 {
        let made = propose(&application, &tip, &pool).await;
        application.commit(&made).await.unwrap();
        included_ever.extend(included(&made));
        pool.on_final_block(&made, BASE_FEE);
        tip = made.tip;
    }
    assert!(!pool.lock().contains(bad.hash()), "it is tried in every proposal, and empties each");
    included_ever.sort_unstable();
    let mut expected: Vec<_> = good.iter().map(UserTransaction::hash).collect();
    expected.sort_unstable();
    assert_eq!(included_ever, expected);
}

/// A disk that gives no answer says nothing of the candidates.
#[tokio::test]
async fn a_read_that_fails_accuses_nobody() {
    let genesis = genesis();
    let store = MemoryStore::from_genesis(genesis.state().unwrap());
    let (application, tip) = Application::new(&genesis, store, Arc::new(CalendarAgenda)).unwrap();
    let first = transfer(person(1), 0, person(2).address, 1);
    let other = propose(&application, &tip, &pool_of(&[])).await;
    application.commit(&other).await.unwrap();
    let next = propose(&application, &other.tip, &pool_of(&[])).await;
    application.commit(&next).await.unwrap();
    // The state after the first block is gone: every read of it fails.
    let pool = pool_of(std::slice::from_ref(&first));
    let proposal = Proposal {
        timestamp: TimestampMs(tip.header.timestamp.0 + 1_000),
        fee_recipient: FEE_RECIPIENT,
        consensus: ConsensusContext::default(),
        candidates: pool.candidates(),
        more: almanac_consensus::More::NONE,
        deadline: Deadline::NEVER,
    };
    application.propose(&tip, proposal).await.unwrap_err();
    assert!(pool.lock().contains(first.hash()));
}
