//! Random histories of blocks against the plain map. Run with small nodes in the unit tests, with the real ones
//! outside.

use super::support::{Twin, changed, entry};
use almanac_schedule::calendar::{Change, Entry, Queue};
use proptest::{collection::vec, prelude::*, sample::Index};
use std::collections::BTreeSet;

/// What happens in a block, before it is known what the calendar holds.
#[derive(Clone, Debug)]
struct Plan {
    inserts: Vec<Entry>,
    removes: Vec<Index>,
    /// Everything due up to here leaves.
    due: Option<u64>,
    everything_leaves: bool,
    probe: Entry,
    now: u64,
    count_max: usize,
}

const TIMES: u64 = 60;

fn any_entry() -> impl Strategy<Value = Entry> {
    // Few times and priorities, so that they coincide; sometimes the ends of the ranges.
    let number = |small: u64| prop_oneof![30 => 0..small, 1 => Just(u64::MAX)];
    (0..4usize, number(TIMES), number(3), number(400))
        .prop_map(|(queue, due, priority, id)| entry(Queue::TIMED[queue], due, priority, id))
}

fn plan(block_max: usize) -> impl Strategy<Value = Plan> {
    (
        vec(any_entry(), 0..block_max),
        vec(any::<Index>(), 0..block_max),
        prop::option::weighted(0.2, 0..TIMES),
        prop::bool::weighted(0.02),
        any_entry(),
        0..TIMES,
        0..40usize,
    )
        .prop_map(|(inserts, removes, due, everything_leaves, probe, now, count_max)| Plan {
            inserts,
            removes,
            due,
            everything_leaves,
            probe,
            now,
            count_max,
        })
}

/// The changes of a plan that the calendar must take, in no order.
fn changes(twin: &Twin, plan: &Plan) -> Vec<Change> {
    let held: Vec<_> = twin.map.values().copied().collect();
    let mut leaving: BTreeSet<Entry> = plan.due.map_or(vec![], |now| twin.due(now)).into_iter().collect();
    if plan.everything_leaves {
        leaving.extend(&held);
    }
    if !held.is_empty() {
        leaving.extend(plan.removes.iter().map(|index| index.get(&held)));
    }
    let coming: BTreeSet<_> = plan.inserts.iter().filter(|entry| !held.contains(entry)).copied().collect();
    coming.into_iter().map(Change::Insert).chain(leaving.into_iter().map(Change::Remove)).collect()
}

fn live(plans: &[Plan]) {
    let mut twin = Twin::default();
    for plan in plans {
        let changes = changes(&twin, plan);
        twin.refuses_what_is_wrong(plan.probe, &changes);
        let other_order: Vec<_> = changes.iter().rev().copied().collect();
        let expected = twin.store.calendar().apply(&other_order).unwrap();
        assert_eq!(twin.block(&changes), expected, "the order of the list means nothing");
        twin.check();
        twin.ask(plan.probe.queue, plan.now, plan.count_max);
        changes.iter().for_each(|change| {
            twin.contains(&changed(change));
        });
    }
    let everything: Vec<_> = twin.map.values().copied().collect();
    twin.remove(everything);
    twin.check();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn small_blocks_agree_with_a_plain_map(plans in vec(plan(6), 1..80)) {
        live(&plans);
    }

    #[test]
    fn large_blocks_agree_with_a_plain_map(plans in vec(plan(150), 1..16)) {
        live(&plans);
    }
}
