//! Tests which errors are verdicts, the same on all nodes forever, and which are local failures without a verdict.

use super::*;
use alloy_primitives::U256;
use almanac_consensus::Deadline;
use almanac_mempool::{Pool, PoolConfig, SenderState};
use almanac_primitives::{
    ConsensusContext, Header, TimestampMs, Wei,
    testing::{FEE_RECIPIENT, START, genesis, person, recovered, transfer},
};
use almanac_schedule::CalendarAgenda;
use almanac_state::{MemoryBatch, MemoryStore};
use commonware_consensus::marshal::ancestry;
use futures::{FutureExt as _, executor::block_on};

type Made = MadeBlock<MemoryBatch>;

/// A network of nodes that know nothing of each other.
fn replica() -> Arc<Replica<MemoryStore>> {
    let genesis = genesis();
    let store = MemoryStore::from_genesis(genesis.state().unwrap());
    let (application, tip) = Application::new(&genesis, store, Arc::new(CalendarAgenda)).unwrap();
    Replica::new(application, tip)
}

/// A block on `parent`. Those with other times are other blocks.
fn propose(replica: &Replica<MemoryStore>, parent: &Tip<MemoryBatch>, after_ms: u64) -> Made {
    propose_with(replica, parent, after_ms, Vec::new())
}

fn propose_with(
    replica: &Replica<MemoryStore>,
    parent: &Tip<MemoryBatch>,
    after_ms: u64,
    candidates: Vec<RecoveredTransaction>,
) -> Made {
    let proposal = Proposal {
        timestamp: TimestampMs(START.0 + after_ms),
        fee_recipient: FEE_RECIPIENT,
        consensus: ConsensusContext::default(),
        candidates,
        more: almanac_consensus::More::NONE,
        deadline: Deadline::NEVER,
    };
    block_on(replica.propose(parent, proposal)).unwrap()
}

/// A chain of blocks from the first on.
pub(super) fn chain(length: u64) -> Vec<Arc<Block>> {
    let replica = replica();
    let mut tip = replica.tip();
    (1..=length)
        .map(|number| {
            let made = propose(&replica, &tip, number);
            tip = made.tip;
            made.block
        })
        .collect()
}

/// The blocks of a chain with its start, the newest first, as consensus hands them out.
fn ancestors(replica: &Replica<MemoryStore>, chain: &[Arc<Block>]) -> impl Ancestry<ConsensusBlock> {
    let start = ConsensusBlock::genesis(replica.tip().header);
    let blocks = chain.iter().rev().map(|block| ConsensusBlock::new(block.clone()).unwrap());
    ancestry::from_iter(blocks.chain([start]).map(ConsensusBlock::digested))
}

fn finalize(replica: &Replica<MemoryStore>, block: &Block) -> Result<bool, ReplicaError> {
    block_on(replica.finalize(block, None)).map(|made| made.is_some())
}

fn altered(block: &Block, change: impl FnOnce(&mut Header)) -> Block {
    let mut altered = block.clone();
    change(&mut altered.header);
    altered
}

#[test]
fn a_lie_is_refused_for_ever_and_an_abandoned_or_stale_parent_is_no_reason_to() {
    let replica = replica();
    let start = replica.tip();
    let block = chain(1).remove(0);
    let other = propose(&replica, &start, 50);
    let verdict = |parent: &Tip<MemoryBatch>, block: &Block| {
        block_on(replica.verify(parent, block)).map(drop).map_err(|error| error.is_verdict())
    };
    for lie in [
        altered(&block, |header| header.gas_used.0 += 1),
        altered(&block, |header| header.number += 1),
        altered(&block, |header| header.protocol_version += 1),
        altered(&block, |header| header.timestamp = start.header.timestamp),
        altered(&block, |header| header.parent_hash = B256::repeat_byte(1)),
    ] {
        assert_eq!(verdict(&start, &lie), Err(true), "{lie:?}");
    }
    assert_eq!(verdict(&start, &block), Ok(()));
    assert!(finalize(&replica, &other.block).unwrap());
    let late = propose_elsewhere(&start, 70);
    assert_eq!(verdict(&start, &late), Err(false), "the state below was replaced by another");
    let abandoned = ReplicaError::Abandoned { number: 1, hash: block.hash() };
    assert!(!abandoned.is_verdict() && !ReplicaError::NoAncestors.is_verdict());
}

/// A block on the start that this replica has not executed.
fn propose_elsewhere(start: &Tip<MemoryBatch>, after_ms: u64) -> Block {
    let elsewhere = replica();
    assert_eq!(elsewhere.tip().hash, start.hash);
    Block::clone(&propose(&elsewhere, &elsewhere.tip(), after_ms).block)
}

#[test]
fn blocks_become_final_once_in_order_and_on_one_chain() {
    let replica = replica();
    let blocks = chain(3);
    let rival = propose_elsewhere(&replica.tip(), 50);
    assert!(finalize(&replica, &blocks[1]).is_err(), "not before its parent");
    assert_eq!(replica.tip().header.number, 0);
    assert!(finalize(&replica, &blocks[0]).unwrap());
    assert!(!finalize(&replica, &blocks[0]).unwrap(), "delivered again");
    let refused = finalize(&replica, &rival).unwrap_err();
    assert!(matches!(refused, ReplicaError::Abandoned { number: 1, .. }), "{refused}");
    assert!(finalize(&replica, &blocks[1]).unwrap() && finalize(&replica, &blocks[2]).unwrap());
    assert!(!finalize(&replica, &blocks[0]).unwrap(), "long ago");
    assert_eq!(replica.tip().hash, blocks[2].hash());
}

/// Executed above the tip in any order, also twice, and then committed one by one.
#[test]
fn what_was_executed_ahead_is_what_becomes_final() {
    let replica = replica();
    let blocks = chain(4);
    let tip = block_on(replica.reach(ancestors(&replica, &blocks[..3]))).unwrap();
    assert_eq!(tip.hash, blocks[2].hash());
    let again = block_on(replica.reach(ancestors(&replica, &blocks))).unwrap();
    assert_eq!(again.hash, blocks[3].hash());
    assert!(finalize(&replica, &blocks[1]).is_err(), "executed, and still not before its parent");
    for block in &blocks {
        assert!(finalize(&replica, block).unwrap());
    }
    assert_eq!(replica.tip().hash, blocks[3].hash());
}

#[test]
fn a_chain_that_was_left_behind_is_not_built_on() {
    let replica = replica();
    let blocks = chain(2);
    let ancestors = ancestors(&replica, &blocks);
    let rival = propose_elsewhere(&replica.tip(), 50);
    assert!(finalize(&replica, &rival).unwrap());
    let refused = block_on(replica.reach(ancestors)).unwrap_err();
    assert!(matches!(refused, ReplicaError::Abandoned { number: 1, .. }), "{refused}");
}

/// Both sides of how far ahead blocks are executed.
#[test]
fn a_node_that_is_far_behind_catches_up_first() {
    let replica = replica();
    let blocks = chain(RECOVERED_BLOCKS_MAX + 1);
    let (near, far) = (ancestors(&replica, &blocks[..blocks.len() - 1]), ancestors(&replica, &blocks));
    assert!(replica.reach(far.clone()).now_or_never().is_none(), "it waits");
    assert_eq!(block_on(replica.reach(near)).unwrap().header.number, RECOVERED_BLOCKS_MAX);
    assert!(replica.reach(far.clone()).now_or_never().is_none(), "whatever else was executed");
    assert!(finalize(&replica, &blocks[0]).unwrap());
    assert_eq!(block_on(replica.reach(far)).unwrap().header.number, RECOVERED_BLOCKS_MAX + 1);
}

/// The pool learns of blocks when they are final. Transactions of non-final ancestors must not be offered
/// again: they would be rejected, together with their sender's next ones.
#[test]
fn a_proposer_offers_what_comes_after_its_parent_and_nothing_twice() {
    let replica = replica();
    let pool = SharedPool::new(Pool::new(PoolConfig::default(), replica.tip().header.base_fee));
    let send = |nonce| {
        let sent = recovered(transfer(person(0), nonce, FEE_RECIPIENT, 1));
        let rich = SenderState { nonce: 0, balance: Wei(U256::MAX), is_delegated: false };
        pool.lock().insert(sent, rich).unwrap();
    };
    let nonces =
        |made: &Made| -> Vec<u64> { made.block.transactions.iter().map(|sent| sent.nonce()).collect() };
    let next = |parent: &Tip<MemoryBatch>, after_ms| {
        propose_with(&replica, parent, after_ms, replica.candidates(&pool, parent))
    };
    send(0);
    let first = next(&replica.tip(), 1);
    send(1);
    let second = next(&first.tip, 2);
    send(2);
    assert!(finalize(&replica, &first.block).unwrap());
    let third = next(&second.tip, 3);
    assert_eq!([&first, &second, &third].map(nonces), [vec![0], vec![1], vec![2]]);
}
