//! Proposing, verifying and committing, on forks and against blocks that lie.

use crate::support::application;
use alloy_primitives::U256;
use almanac_consensus::{Application, ApplicationError, Deadline, MadeBlock, Proposal, SharedPool, Tip};
use almanac_mempool::{Pool, PoolConfig, SenderState};
use almanac_primitives::{Block, ConsensusContext, TimestampMs, UserTransaction, Wei, testing::*};
use almanac_state::{CommitError, MemoryBatch, MemoryStore};

fn proposal(tip: &Tip<MemoryBatch>, transactions: Vec<UserTransaction>) -> Proposal {
    Proposal {
        timestamp: TimestampMs(tip.header.timestamp.0 + 100),
        fee_recipient: FEE_RECIPIENT,
        consensus: ConsensusContext::default(),
        candidates: transactions.into_iter().map(recovered).collect(),
        more: almanac_consensus::More::NONE,
        deadline: Deadline::NEVER,
    }
}

async fn propose(
    application: &Application<MemoryStore>,
    tip: &Tip<MemoryBatch>,
    transactions: Vec<UserTransaction>,
) -> MadeBlock<MemoryBatch> {
    application.propose(tip, proposal(tip, transactions)).await.unwrap()
}

#[tokio::test]
async fn a_proposed_block_verifies_on_another_node() {
    let ((here, here_tip), (there, there_tip)) = (application(), application());
    let made = propose(&here, &here_tip, vec![transfer(person(0), 0, person(1).address, 5)]).await;

    let received = Block::decode(&made.block.encode()).unwrap();
    let verified = there.verify(&there_tip, received).await.unwrap();

    assert_eq!(verified.output, made.output);
    assert_eq!(verified.tip.hash, made.tip.hash);
    there.commit(&verified).await.unwrap();
    here.commit(&made).await.unwrap();
}

/// The body is spread by the proposer, and a verifier takes the order of the body.
#[tokio::test]
async fn aip125_14_a_proposer_spreads_equal_senders_and_equal_targets() {
    let ((here, here_tip), (there, there_tip)) = (application(), application());
    let of_one = |nonce: u64| transfer(person(0), nonce, person(10 + nonce).address, 1);
    let to_one = |n: u64| transfer(person(n), 0, person(20).address, 1);
    let other = transfer(person(3), 0, person(21).address, 1);
    let by_price = vec![of_one(0), of_one(1), to_one(1), to_one(2), other.clone()];
    let made = propose(&here, &here_tip, by_price).await;
    let expected = [of_one(0), to_one(1), other, of_one(1), to_one(2)];
    assert_eq!(made.block.transactions, expected);
    let verified = there.verify(&there_tip, Block::clone(&made.block)).await.unwrap();
    assert_eq!(verified.tip.hash, made.tip.hash);
}

/// One of two senders is known from the pool, the other is recovered: the block is the same.
#[tokio::test]
async fn a_block_verifies_with_senders_from_the_pool() {
    let ((here, here_tip), (mut there, there_tip)) = (application(), application());
    let transactions = [0, 1].map(|n| transfer(person(n), 0, person(5).address, 5)).to_vec();
    let pool = SharedPool::new(Pool::new(PoolConfig::default(), there_tip.header.base_fee));
    let rich = SenderState { nonce: 0, balance: Wei(U256::MAX), is_delegated: false };
    pool.lock().insert(recovered(transactions[0].clone()), rich).unwrap();
    assert_eq!(pool.known(&transactions).into_keys().collect::<Vec<_>>(), [transactions[0].hash()]);
    there.know_senders(pool);
    let made = propose(&here, &here_tip, transactions).await;
    let verified = there.verify(&there_tip, Block::clone(&made.block)).await.unwrap();
    assert_eq!(verified.output, made.output);
    assert_eq!(verified.tip.hash, made.tip.hash);
}

#[tokio::test]
async fn forks_are_built_on_any_parent_and_the_loser_goes_stale() {
    let (application, genesis) = application();
    let (alice, bob) = (person(0), person(1));
    let left = propose(&application, &genesis, vec![transfer(alice, 0, bob.address, 1)]).await;
    let right = propose(&application, &genesis, vec![transfer(alice, 0, bob.address, 2)]).await;
    let left_child = propose(&application, &left.tip, vec![transfer(alice, 1, bob.address, 1)]).await;
    let right_child = propose(&application, &right.tip, vec![transfer(bob, 0, alice.address, 1)]).await;
    assert_ne!(left.tip.hash, right.tip.hash);

    application.commit(&left).await.unwrap();

    assert!(matches!(
        application.commit(&right).await,
        Err(ApplicationError::Commit(CommitError::NotOnTip { .. }))
    ));
    let lost = application.propose(&right_child.tip, proposal(&right_child.tip, vec![])).await;
    assert!(lost.is_err(), "nothing can be built on the branch that lost");
    application.commit(&left_child).await.unwrap();
}

/// Every field of a header is checked: a block that lies about any of them is refused, and the field is named.
#[tokio::test]
async fn a_header_that_lies_is_refused() {
    let (application, tip) = application();
    let made = propose(&application, &tip, vec![transfer(person(0), 0, person(1).address, 5)]).await;
    type Lie = (&'static str, fn(&mut Block));
    let lies: [Lie; 16] = [
        ("names the parent", |b| b.header.parent_hash.0[0] ^= 1),
        ("does not follow the parent's", |b| b.header.number += 1),
        ("is not after the parent's", |b| b.header.timestamp = START),
        ("protocol version 2", |b| b.header.protocol_version = 2),
        ("gas_limit", |b| b.header.gas_limit.0 += 1),
        ("gas_used", |b| b.header.gas_used.0 += 1),
        ("reserved_gas_used", |b| b.header.reserved_gas_used.0 += 1),
        ("base_fee", |b| b.header.base_fee.0 -= 1),
        ("transactions_root", |b| b.header.transactions_root.0[0] ^= 1),
        ("transactions_root", |b| b.transactions.clear()),
        ("receipts_root", |b| b.header.receipts_root.0[0] ^= 1),
        ("logs_bloom", |b| b.header.logs_bloom.0[0] ^= 1),
        ("commitment", |b| b.header.commitment.state_root.0[0] ^= 1),
        ("commitment", |b| b.header.commitment.ops_root.0[0] ^= 1),
        ("commitment", |b| b.header.commitment.ops_end += 1),
        ("transaction 1 of the body", |b| b.transactions.push(b.transactions[0].clone())),
    ];
    for (expected, lie) in lies {
        let mut block = (*made.block).clone();
        lie(&mut block);
        let error = application.verify(&tip, block).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
    // Time, fee recipient and consensus context are the proposer's to choose: another choice is another block.
    let mut other = (*made.block).clone();
    other.header.fee_recipient = person(3).address;
    let error = application.verify(&tip, other).await.unwrap_err().to_string();
    assert!(error.contains("receipts_root") || error.contains("commitment"), "{error}");
    application.verify(&tip, (*made.block).clone()).await.unwrap();
}
