//! Tests that a vote is not lost when its ancestors become final in the meantime: they are looked up again.

use super::{verdicts::chain, *};
use almanac_primitives::{StateDiff, testing::genesis};
use almanac_schedule::CalendarAgenda;
use almanac_state::{CommitError, MemoryBatch, MemoryStore, SealError};
use commonware_cryptography::Digested;
use commonware_runtime::reschedule;
use futures::{Stream, executor::block_on};
use std::{
    collections::VecDeque,
    pin::Pin,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    task::{Context, Poll},
};

/// A store that is slow to seal its first batches, so that others overtake them. It may also be slow to report
/// a commit.
struct Slow {
    store: MemoryStore,
    times: AtomicU32,
    commit_turns: u32,
}

impl StateStore for Slow {
    type Batch = MemoryBatch;

    fn tip(&self) -> MemoryBatch {
        self.store.tip()
    }

    async fn seal(&self, parent: &MemoryBatch, diff: &StateDiff) -> Result<MemoryBatch, SealError> {
        if self.times.fetch_update(Relaxed, Relaxed, |times| times.checked_sub(1)).is_ok() {
            reschedule().await;
        }
        self.store.seal(parent, diff).await
    }

    async fn commit(&self, batch: &MemoryBatch) -> Result<(), CommitError> {
        self.store.commit(batch).await?;
        for _ in 0..self.commit_turns {
            reschedule().await;
        }
        Ok(())
    }
}

fn replica(slow_times: u32, commit_turns: u32) -> Arc<Replica<Slow>> {
    let genesis = genesis();
    let store = MemoryStore::from_genesis(genesis.state().unwrap());
    let store = Slow { store, times: slow_times.into(), commit_turns };
    let (application, tip) = Application::new(&genesis, store, Arc::new(CalendarAgenda)).unwrap();
    Replica::new(application, tip)
}

/// Ancestors that arrive one by one, each after some turns of other tasks, as if fetched from a peer.
#[derive(Clone)]
struct Trickle {
    blocks: VecDeque<Digested<ConsensusBlock>>,
    turns: u32,
    waited: u32,
}

impl Stream for Trickle {
    type Item = Digested<ConsensusBlock>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.waited < self.turns {
            self.waited += 1;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.waited = 0;
        Poll::Ready(self.blocks.pop_front())
    }
}

impl Ancestry<ConsensusBlock> for Trickle {
    fn peek(&self) -> Option<&Digested<ConsensusBlock>> {
        self.blocks.front()
    }
}

/// Is asked for the state after the last block while the replica makes one after the other final.
fn reach_while_final(slow_times: u32, turns: u32) -> Result<(), ReplicaError> {
    reach_while_committed(slow_times, turns, 0)
}

fn reach_while_committed(slow_times: u32, turns: u32, commit_turns: u32) -> Result<(), ReplicaError> {
    let (replica, blocks) = (replica(slow_times, commit_turns), chain(6));
    let origin = ConsensusBlock::genesis(replica.tip().header);
    let newest_first = blocks.iter().rev().map(|block| ConsensusBlock::new(block.clone()).unwrap());
    let newest_first = newest_first.chain([origin]).map(ConsensusBlock::digested).collect();
    let ancestors = Trickle { blocks: newest_first, turns, waited: 0 };
    let finalize = async {
        for block in &blocks {
            replica.finalize(block, None).await.unwrap();
            reschedule().await;
        }
    };
    let (reached, ()) = block_on(futures::future::join(replica.reach(ancestors), finalize));
    assert_eq!(reached?.hash, blocks.last().unwrap().hash());
    Ok(())
}

#[test]
fn ancestors_that_become_final_while_they_are_executed_are_looked_up_again() {
    assert!(reach_while_final(0, 0).is_ok(), "nothing in the way");
    for slow_times in 1..8 {
        reach_while_final(slow_times, 0).unwrap();
    }
}

/// A walk down that has passed a block when it becomes final ends at one below the last final block.
#[test]
fn ancestors_that_become_final_while_they_are_fetched_are_looked_up_again() {
    for turns in 1..8 {
        reach_while_final(0, turns).unwrap();
        reach_while_final(3, turns).unwrap();
    }
}

/// The store's head moves before the ledger learns of it. Executing on the old head in between fails, and no
/// final block yet tells this from a permanent failure.
#[test]
fn ancestors_that_are_executed_while_a_commit_is_under_way_are_looked_up_again() {
    for commit_turns in 1..8 {
        for slow_times in 0..8 {
            reach_while_committed(slow_times, 0, commit_turns).unwrap();
            reach_while_committed(slow_times, 1, commit_turns).unwrap();
        }
    }
}
