//! Marshal keeps the newest blocks only: older ones come from the archive, also where a node asks for all of them.

use crate::sync::{
    follow::{VALIDATORS, check_same, connect},
    node::{self, RECENT_BLOCKS, World},
};
use commonware_runtime::{Metrics as _, Runner as _, Supervisor as _, deterministic};
use std::{sync::Arc, time::Duration};

/// Many times what marshal keeps.
const BLOCKS: u64 = 80;

#[test]
fn a_node_that_starts_late_gets_every_block_although_marshal_keeps_few() {
    deterministic::Runner::timed(Duration::from_secs(600)).start(|context| async move {
        let world = Arc::new(World::new(&context, VALIDATORS, 1).await);
        let oracle = connect(&context, &world).await;
        let mut validators = Vec::new();
        for index in 0..VALIDATORS {
            validators.push(node::start(context.child("validator"), &world, &oracle, index, None).await);
        }
        validators[0].replica.wait_for(BLOCKS).await;
        let most = 3 * RECENT_BLOCKS.get();
        for kept in kept(&context) {
            assert!(kept <= most, "marshal keeps {kept} items of {BLOCKS}, at most {most} are allowed");
        }

        let late = node::start(context.child("late"), &world, &oracle, 4, None).await;
        late.replica.wait_for(BLOCKS + 10).await;
        check_same(&late, &validators[0], 0);
        assert_eq!(late.seen.headers.lock().unwrap().keys().next(), Some(&1), "from the first block on");

        // Crashed and started again: what it has acknowledged is not asked for again.
        late.root.abort();
        let _ = late.root.await;
        drop(late.replica);
        validators[0].replica.wait_for(BLOCKS + 40).await;
        let again = node::start(context.child("again"), &world, &oracle, 4, None).await;
        assert!(again.replica.tip().header.number >= BLOCKS + 10, "what was final stays");
        again.replica.wait_for(BLOCKS + 40).await;
        check_same(&again, &validators[0], 0);
    });
}

/// Blocks and certificates that the marshals of all nodes keep, as their metrics say.
fn kept(context: &deterministic::Context) -> Vec<u64> {
    let metrics = context.encode();
    let names = ["blocks_items_tracked", "certificates_items_tracked"];
    let is_kept = |line: &&str| !line.starts_with('#') && names.iter().any(|name| line.contains(name));
    let lines = metrics.lines().filter(is_kept).filter(|line| !line.contains("cache"));
    let kept: Vec<u64> = lines.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
    assert!(kept.len() >= 2, "both archives count what they keep");
    kept
}
