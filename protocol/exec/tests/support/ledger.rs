//! What must hold between records, bodies, calendar and the ledger's money after every block.

use super::MapState;
use alloy_primitives::U256;
use almanac_primitives::{ScheduleId, StateKey, addresses::LEDGER, state::decode_slot};
use almanac_schedule::{
    Calendar, Record,
    calendar::Queue,
    capacity::{Booked, Booking, Bookings, Class, bookings_slot},
    record::{Status, name_slot, named_by, schedule_of_head_slot},
};
use std::collections::{BTreeMap, BTreeSet};

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
    check_bookings(state, &records);
    check_names(state, &records);
    assert!(
        records.iter().all(|record| !matches!(record.head.status, Status::Running | Status::Processed)),
        "nothing runs between blocks"
    );
}

/// Every second has booked what the schedules that wait for it hold, and no more.
fn check_bookings(state: &MapState, records: &[Record]) {
    let mut expected: BTreeMap<u64, Booked> = BTreeMap::new();
    for record in records.iter().filter(|record| record.head.status == Status::Pending) {
        let Some(Booking { second, class, effort }) = record.body.terms.booking(record) else { continue };
        let booked = expected.entry(second).or_default();
        let effort = u16::try_from(effort).unwrap();
        match class {
            Class::High => booked.high += effort,
            Class::Medium => booked.medium += effort,
        }
    }
    for (second, booked) in &expected {
        let stored = &state.0[&StateKey::Slot(LEDGER, bookings_slot(*second))];
        assert_eq!(Bookings::from_word(decode_slot(stored).unwrap()).at(*second), *booked, "second {second}");
    }
    let of_capacity = |key: &&StateKey| matches!(key, StateKey::Slot(LEDGER, slot) if is_capacity(*slot));
    let slots = state.0.keys().filter(of_capacity).count();
    assert!(slots == 0 || !expected.is_empty(), "{slots} slots of capacity are left over");
}

/// Every hash that leads to a schedule leads to one that exists, and no schedule lacks its hash.
fn check_names(state: &MapState, records: &[Record]) {
    let named =
        records.iter().filter_map(|record| Some((name_slot(record.body.terms.hash_name()?), record.id)));
    let expected: BTreeMap<U256, ScheduleId> = named.collect();
    let stored = state.0.iter().filter_map(|(key, value)| match key {
        StateKey::Slot(LEDGER, slot) if slot.bit(255) => Some((*slot, decode_slot(value).unwrap())),
        _ => None,
    });
    let stored: BTreeMap<U256, ScheduleId> =
        stored.map(|(slot, word)| (slot, named_by(word).expect("a name leads somewhere"))).collect();
    assert_eq!(stored, expected, "names and schedules belong to each other");
}

/// Whether a slot of the ledger holds bookings or hints.
fn is_capacity(slot: U256) -> bool {
    slot.as_limbs()[2] == bookings_slot(0).as_limbs()[2]
}
