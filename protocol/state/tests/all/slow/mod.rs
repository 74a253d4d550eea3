//! A slow disk delays the commit of a block, and nothing else.
#![allow(unreachable_pub, reason = "modules of a test")]

mod disk;
use crate::support::{advance, open, read, seal, writes};
use almanac_state::{QmdbStore, SealedBatch as _, StateStore as _};
use commonware_runtime::{Clock as _, Runner as _, Spawner as _, Supervisor as _, deterministic};
use disk::SlowDisk;
use std::time::Duration;

type Store = QmdbStore<SlowDisk>;

const SYNC: Duration = Duration::from_millis(500);

/// Whoever read for the next block waited until the last one was on disk.
#[test]
fn reads_for_the_next_block_do_not_wait_for_the_disk() {
    deterministic::Runner::default().start(|context| async move {
        let disk = SlowDisk::new(context.child("disk"));
        let store = open(&disk, "a").await.unwrap();
        for height in 1..=30 {
            advance(&store, height).await;
        }
        let last = seal(&store, &store.tip(), &writes(31)).await;
        disk.slow_down(SYNC);
        let begin = context.current();
        let (committed, batch) = (store.clone(), last.clone());
        let committing = context.child("commit").spawn(|context| async move {
            committed.commit(&batch).await.unwrap();
            context.current()
        });
        context.sleep(SYNC / 10).await;

        let asked = context.current();
        let values = read::<Store>(&last, 40).await;
        let next = seal(&store, &last, &writes(32)).await;
        let waited = context.current().duration_since(asked).unwrap();
        assert!(waited < SYNC / 10, "a read for the next block waited {waited:?} for a sync of {SYNC:?}");

        let took = committing.await.unwrap().duration_since(begin).unwrap();
        assert!(took >= SYNC, "the block is committed after {took:?}, before it was on disk");
        assert_eq!(read::<Store>(&store.tip(), 40).await, values);
        disk.slow_down(Duration::ZERO);
        store.commit(&next).await.unwrap();
        assert_eq!(store.tip().commitment(), next.commitment());
    });
}
