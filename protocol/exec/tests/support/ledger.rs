//! What must hold between records, bodies, calendar and the ledger's money after every block.

use super::MapState;
use alloy_primitives::U256;
use almanac_primitives::{ScheduleId, StateKey, addresses::LEDGER};
use almanac_schedule::{
    Calendar, Record,
    calendar::Queue,
    record::{Status, schedule_of_head_slot},
};
use std::collections::BTreeSet;

/// All records of a state.
pub fn records(state: &MapState) -> Vec<Record> {
    ids(state).into_iter().map(|id| Record::read(state, id).unwrap().expect("it has a head")).collect()
}

fn ids(state: &MapState) -> BTreeSet<ScheduleId> {
    let slots = state.0.keys().filter_map(|key| match key {
        StateKey::Slot(LEDGER, slot) => Some(*slot),
        _ => None,
    });
    slots.filter_map(schedule_of_head_slot).collect()
}

/// Checks everything that a state says of schedules against everything else that it says of them.
pub fn check(state: &MapState) {
    let records = records(state);
    let escrows: U256 = records.iter().map(|record| record.escrow.0).sum();
    assert!(state.account(LEDGER).balance >= escrows, "the ledger covers every escrow");

    let bodies = state.0.keys().filter_map(|key| match key {
        StateKey::Body(id) => Some(*id),
        _ => None,
    });
    let bodies: BTreeSet<_> = bodies.collect();
    assert_eq!(bodies, records.iter().map(|record| record.id).collect(), "a body for each record, no other");

    let calendar = Calendar::new(state);
    let census = calendar.check_all().unwrap();
    let nodes = state.0.keys().filter_map(|key| match key {
        StateKey::Calendar(node) if *node > 0 => Some(*node),
        _ => None,
    });
    let nodes: BTreeSet<_> = nodes.collect();
    assert!(nodes.is_empty() || nodes == census.nodes, "no node of the calendar is left over");

    let mut expected: Vec<_> = records.iter().flat_map(|record| record.head.entries(record.id)).collect();
    expected.sort_unstable();
    let of = |queue| calendar.due_from(queue, u64::MAX, None, usize::MAX).unwrap();
    let listed: Vec<_> = Queue::ALL.into_iter().flat_map(of).collect();
    assert_eq!(listed, expected, "the calendar says what the records say");
    assert!(
        records.iter().all(|record| record.head.status != Status::Running),
        "nothing runs between blocks"
    );
}
