//! A network with one validator down, so that every vote is needed, and another whose disk gives no answer for a moment.
//! That costs the moment, and no more.
#![allow(unreachable_pub, reason = "modules of a test")]

pub mod network;

use almanac_primitives::StateDiff;
use almanac_state::{CommitError, MemoryBatch, MemoryStore, SealError, StateStore};
use commonware_runtime::{Clock as _, Runner as _, Spawner as _, Supervisor as _, deterministic};
use network::{Running, chain, connect, start};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

/// What goes wrong with a disk.
#[derive(Clone, Default)]
struct Disk {
    is_failing: Arc<AtomicBool>,
    failures: Arc<AtomicU32>,
}

struct Flaky {
    store: MemoryStore,
    disk: Disk,
}

impl Flaky {
    fn new(disk: Disk) -> Self {
        Self { store: MemoryStore::from_genesis(chain().state().unwrap()), disk }
    }
}

impl StateStore for Flaky {
    type Batch = MemoryBatch;

    fn tip(&self) -> MemoryBatch {
        self.store.tip()
    }

    async fn seal(&self, parent: &MemoryBatch, diff: &StateDiff) -> Result<MemoryBatch, SealError> {
        if self.disk.is_failing.load(Relaxed) {
            self.disk.failures.fetch_add(1, Relaxed);
            return Err(SealError::Store { reason: "the disk gave no answer".to_owned() });
        }
        self.store.seal(parent, diff).await
    }

    async fn commit(&self, batch: &MemoryBatch) -> Result<(), CommitError> {
        self.store.commit(batch).await
    }
}

/// A failure for so long, at many moments of a view: every vote of the failing one is needed.
fn survives(failing: Duration) {
    deterministic::Runner::timed(Duration::from_secs(600)).start(|context| async move {
        let oracle = connect(&context).await;
        let disk = Disk::default();
        let mut replicas = Vec::new();
        for index in 0..3 {
            let disk = if index == 0 { disk.clone() } else { Disk::default() };
            let started = start(context.child("validator"), &oracle, index, Flaky::new(disk), None).await;
            let Running { replica, finalizer, .. } = started;
            context.child("finality").spawn(|_| async move {
                finalizer.await.expect("it was not stopped").expect("final blocks can be committed");
            });
            replicas.push(replica);
        }
        replicas[0].wait_for(3).await;
        for round in 0..20 {
            context.sleep(Duration::from_millis(13 * round)).await;
            disk.is_failing.store(true, Relaxed);
            context.sleep(failing).await;
            disk.is_failing.store(false, Relaxed);
            let height = replicas[1].tip().header.number;
            for replica in &replicas {
                tokio::select! {
                    () = replica.wait_for(height + 5) => {}
                    () = context.sleep(Duration::from_secs(60)) => panic!(
                        "the network stands still at block {height} after failure {round}: heights {:?}",
                        replicas.iter().map(|replica| replica.tip().header.number).collect::<Vec<_>>()
                    ),
                }
            }
        }
        assert!(disk.failures.load(Relaxed) > 10, "{} failures", disk.failures.load(Relaxed));
    });
}

#[test]
fn a_disk_that_fails_for_a_moment_costs_no_verdict() {
    survives(Duration::from_millis(150));
}

#[test]
fn a_disk_that_fails_for_longer_than_a_view_costs_no_verdict() {
    survives(Duration::from_secs(2));
}
