//! A proposer that runs out of time makes a smaller block, and leaves out nothing that is due.

use crate::support::{application, job};
use alloy_primitives::TxHash;
use almanac_consensus::{Clock, Deadline, More, Proposal, SharedPool, Tip};
use almanac_mempool::{Pool, PoolConfig, SenderState};
use almanac_primitives::{
    Block, ConsensusContext, DurationMs, TimestampMs, UserTransaction, run::RUN_TYPE, testing::*,
};
use almanac_state::MemoryBatch;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// A millisecond passes with every look at it.
#[derive(Clone)]
struct TickingClock(Arc<AtomicU64>);

impl TickingClock {
    fn start() -> Self {
        Self(Arc::new(AtomicU64::new(START.0)))
    }
}

impl Clock for TickingClock {
    fn now(&self) -> TimestampMs {
        TimestampMs(self.0.fetch_add(1, Ordering::Relaxed))
    }

    async fn sleep_until(&self, _: TimestampMs) {}
}

/// The clock reaches the moment at the look after so many that found it earlier.
fn after_looks(looks: u64) -> Deadline {
    Deadline::at(TickingClock::start(), TimestampMs(START.0 + looks))
}

fn transfers(count: u64) -> Vec<UserTransaction> {
    (0..count).map(|nonce| transfer(person(0), nonce, person(1).address, 1)).collect()
}

fn proposal(tip: &Tip<MemoryBatch>, transactions: Vec<UserTransaction>, deadline: Deadline) -> Proposal {
    Proposal {
        timestamp: TimestampMs(tip.header.timestamp.0 + 10_000),
        fee_recipient: FEE_RECIPIENT,
        consensus: ConsensusContext::default(),
        candidates: transactions.into_iter().map(recovered).collect(),
        more: More::NONE,
        deadline,
    }
}

fn hashes(transactions: &[UserTransaction]) -> Vec<TxHash> {
    transactions.iter().map(UserTransaction::hash).collect()
}

/// Both sides: the transaction that time is up after, and enough time for all.
#[tokio::test]
async fn the_choice_ends_with_the_time() {
    for (looks, taken) in [(0, 1), (1, 1), (2, 2), (7, 7), (8, 8), (9, 8), (1_000, 8)] {
        let (here, tip) = application();
        let offered = transfers(8);
        let made = here.propose(&tip, proposal(&tip, offered.clone(), after_looks(looks))).await.unwrap();
        assert_eq!(hashes(&made.block.transactions), hashes(&offered[..taken]), "{looks} looks");
        assert!(made.refused.is_empty(), "what was not looked at stays in the pool");
        let (other, other_tip) = application();
        other.verify(&other_tip, Block::clone(&made.block)).await.unwrap();
    }
}

/// One transaction can void thousands of others. Their places go to those behind them, a few times and not for ever.
#[tokio::test]
async fn void_candidates_are_replaced_by_others() {
    let void = |from: u64| transfer(person(from), 7, person(1).address, 1);
    for (honest_in, asked, taken) in [(1, 1, 5), (3, 3, 5), (4, 3, 0)] {
        let (here, tip) = application();
        let calls = Arc::new(AtomicU64::new(0));
        let counted = calls.clone();
        let more = More::by(move |offered| {
            let call = counted.fetch_add(1, Ordering::Relaxed) + 1;
            assert_eq!(offered.len() as u64, call, "all that were offered are named");
            let next = if call == honest_in { transfers(5) } else { vec![void(1 + call)] };
            next.into_iter().map(recovered).collect()
        });
        let proposal = Proposal { more, ..proposal(&tip, vec![void(1)], Deadline::NEVER) };
        let made = here.propose(&tip, proposal).await.unwrap();
        assert_eq!((calls.load(Ordering::Relaxed), made.block.transactions.len()), (asked, taken));
        let (other, other_tip) = application();
        other.verify(&other_tip, Block::clone(&made.block)).await.unwrap();
    }
}

/// Nobody is asked for more while most candidates are good, or once the time is over.
#[tokio::test]
async fn others_are_asked_for_only_where_half_are_void() {
    let void = transfer(person(2), 7, person(1).address, 1);
    let never = || More::by(|_| panic!("nobody needs more"));
    let (here, tip) = application();
    let offered = [transfers(2), vec![void.clone()]].concat();
    let made = here.propose(&tip, Proposal { more: never(), ..proposal(&tip, offered, Deadline::NEVER) });
    assert_eq!(made.await.unwrap().block.transactions.len(), 2);
    let (here, tip) = application();
    let late = Proposal { more: never(), ..proposal(&tip, vec![void], after_looks(1)) };
    let consensus = ConsensusContext { view: 9, ..late.consensus };
    let made = here.propose(&tip, Proposal { consensus, ..late }).await.unwrap();
    assert!(made.block.transactions.is_empty());
}

/// What one account stands for takes a tenth of a proposer's list; others have the rest.
#[test]
fn one_account_stands_for_a_tenth_of_the_candidates() {
    let config = PoolConfig { vouched_count_free: 1, ..PoolConfig::default() };
    let mut pool = Pool::new(config, almanac_primitives::GasPrice(0));
    let rich = SenderState {
        balance: almanac_primitives::Wei(alloy_primitives::U256::MAX),
        ..SenderState::default()
    };
    let tenth = almanac_primitives::params::BLOCK_TRANSACTIONS_MAX / 10;
    for nonce in 0..tenth as u64 + 3 {
        let call = native::native_call(person(9).address, 0, alloy_primitives::Bytes::new());
        let transaction = native::orderless(person(3).address, nonce, 1_700_000_060, vec![call]);
        pool.insert(recovered(native::sign_native(transaction, &[person(3).into()])), rich).unwrap();
    }
    pool.insert(recovered(transfer(person(4), 0, person(1).address, 1)), rich).unwrap();
    let candidates = SharedPool::new(pool).candidates();
    assert_eq!(candidates.iter().filter(|one| one.sender() == person(3).address).count(), tenth + 1);
    assert!(candidates.iter().any(|one| one.sender() == person(4).address));
}

#[tokio::test]
async fn without_a_deadline_all_are_taken() {
    let (application, tip) = application();
    let made = application.propose(&tip, proposal(&tip, transfers(50), Deadline::NEVER)).await.unwrap();
    assert_eq!(made.block.transactions.len(), 50);
}

/// Time that is up from the start must not let a block be filled by nothing, nor by what is refused.
#[tokio::test]
async fn one_is_taken_however_late_it_is() {
    let (application, tip) = application();
    let refused = [5, 6].map(|nonce| transfer(person(nonce), nonce, person(1).address, 1));
    let offered = [&refused[..], &transfers(3)].concat();
    let made = application.propose(&tip, proposal(&tip, offered.clone(), after_looks(0))).await.unwrap();
    assert_eq!(made.refused.iter().map(|(hash, _)| *hash).collect::<Vec<_>>(), hashes(&refused));
    assert_eq!(hashes(&made.block.transactions), hashes(&offered[2..3]));
}

/// Both sides: after one failed view something is tried past the deadline, after two nothing is.
#[tokio::test]
async fn after_two_failed_views_nothing_is_tried_past_the_deadline() {
    for (failed, looks, taken) in
        [(0, 0, 1), (1, 0, 1), (2, 0, 0), (2, 1, 1), (3, 0, 0), (u64::MAX - 9, 0, 0)]
    {
        let (application, tip) = application();
        let consensus = ConsensusContext { view: 8 + failed, parent_view: 7, ..ConsensusContext::default() };
        let proposal = Proposal { consensus, ..proposal(&tip, transfers(3), after_looks(looks)) };
        let made = application.propose(&tip, proposal).await.unwrap();
        assert_eq!(made.block.transactions.len(), taken, "{failed} failed views, {looks} looks");
    }
}

/// Both sides: a pool full of what is refused must not outlast the time, however much of it there is.
#[tokio::test]
async fn what_is_refused_ends_with_the_time_too() {
    for (refused, taken) in [(7, 1), (8, 0), (100, 0)] {
        let (application, tip) = application();
        let ahead = (0..refused).map(|n| transfer(person(20 + n), 0, person(1).address, 1));
        let offered = ahead.chain(transfers(1)).collect();
        let made = application.propose(&tip, proposal(&tip, offered, after_looks(0))).await.unwrap();
        assert_eq!(made.refused.len() as u64, refused.min(8));
        assert_eq!(made.block.transactions.len(), taken, "behind {refused} from people without money");
    }
}

/// Slow due runs cost their owner a small part of a block, and kept everybody else out of it: half of the time is left
/// after them. Both sides, and not after two failed views.
#[tokio::test]
async fn due_work_leaves_time_for_transactions() {
    for (failed, least, taken) in
        [(0, 1, 1), (0, 2, 1), (0, 3, 2), (0, 7, 6), (1, 7, 6), (2, 7, 0), (0, 100, 8)]
    {
        let (application, tip) = application();
        let consensus = ConsensusContext { view: 8 + failed, parent_view: 7, ..ConsensusContext::default() };
        // The time was up before the first transaction.
        let deadline = after_looks(0).leaving(DurationMs(least));
        let proposal = Proposal { consensus, ..proposal(&tip, transfers(8), deadline) };
        let made = application.propose(&tip, proposal).await.unwrap();
        assert_eq!(made.block.transactions.len(), taken, "{failed} failed views, {least} ms");
    }
}

/// A proposal whose first attempt fails is made again in what is left of its time.
#[tokio::test]
async fn a_second_attempt_gets_no_further_time() {
    let (application, tip) = application();
    let deadline = after_looks(0).leaving(DurationMs(4));
    let offer = || proposal(&tip, transfers(8), deadline.clone());
    let first = application.propose(&tip, offer()).await.unwrap();
    assert_eq!(first.block.transactions.len(), 3);
    let second = application.propose(&tip, offer()).await.unwrap();
    assert_eq!(second.block.transactions.len(), 1, "one is taken however late it is");
}

#[tokio::test]
async fn what_is_due_runs_however_late_it_is() {
    const JOBS: u64 = 20;
    let (application, tip) = application();
    let due_s = tip.header.timestamp.seconds() + 20;
    let jobs = (0..JOBS).map(|nonce| job(nonce, due_s)).collect();
    let made = application.propose(&tip, proposal(&tip, jobs, Deadline::NEVER)).await.unwrap();
    application.commit(&made).await.unwrap();

    let late = proposal(&made.tip, transfers(8), after_looks(0));
    let ran = application.propose(&made.tip, late).await.unwrap();

    let runs = ran.output.receipts.iter().filter(|receipt| receipt.transaction_type == RUN_TYPE).count();
    assert_eq!(runs as u64, JOBS);
    assert_eq!(ran.block.transactions.len(), 1);
}
