//! What must hold between records, bodies, calendar and the ledger's money after every block.

use super::MapState;
use alloy_primitives::{Address, Bytes, U256};
use almanac_primitives::{ScheduleId, StateKey, Wei, addresses::LEDGER, keys::Leaf, state::decode_slot};
use almanac_schedule::{
    Calendar, Ledger, Record,
    calendar::Queue,
    capacity::{Booked, Booking, Bookings, Class, bookings_slot},
    record::{Door, Status, name_slot, named_by, schedule_of_head_slot},
    signed::{Identity, Signer, Tally, fund_slot, is_identity_slot, signer_slots, signers},
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
    let funds = funds(state);
    assert!(
        state.account(LEDGER).balance >= escrows + funds,
        "the ledger covers every escrow and every fund"
    );
    check_signatures(state, &records);

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

/// What all funds hold.
pub fn funds(state: &MapState) -> U256 {
    let kind = fund_slot(Address::ZERO).as_limbs()[3];
    let held = state.0.iter().filter_map(|(key, value)| match key {
        StateKey::Slot(LEDGER, slot) if slot.as_limbs()[3] == kind => Some(decode_slot(value).unwrap()),
        _ => None,
    });
    held.sum()
}

/// Every recorded signature is one of a schedule that exists, as many as its tally says, and an identity leads to the
/// schedule that holds it.
fn check_signatures(state: &MapState, records: &[Record]) {
    let kind = signer_slots(ScheduleId(0), 0)[0].as_limbs()[2];
    let stored = state.0.keys().filter_map(|key| match key {
        StateKey::Slot(LEDGER, slot) if slot.as_limbs()[2] == kind && slot.as_limbs()[3] == 0 => Some(*slot),
        _ => None,
    });
    let (mut ledger, mut expected) = (ReadLedger(state), BTreeSet::new());
    for record in records.iter().filter(|record| record.body.door() == Door::Signed) {
        let tally = Tally::load(&mut ledger, record.id).unwrap();
        let signers = signers(&mut ledger, record.id, &tally).unwrap();
        for (n, signer) in (0..).zip(&signers) {
            let [slot, key] = signer_slots(record.id, n);
            expected.insert(slot);
            if matches!(signer.expect("it can be read"), Signer::Leaf(Leaf::Ed25519(_))) {
                expected.insert(key);
            }
        }
        let identity = Identity::load(&mut ledger, record.body.terms.identity().unwrap()).unwrap();
        assert_eq!(identity.live == Some(record.id), holds_identity(record), "{}", record.id);
    }
    assert_eq!(stored.collect::<BTreeSet<_>>(), expected, "signatures and schedules belong to each other");
    let live = state.0.iter().filter_map(|(key, value)| match key {
        StateKey::Slot(LEDGER, slot) if is_identity_slot(*slot) => Some(decode_slot(value).unwrap()),
        _ => None,
    });
    for word in live.filter(|word| word.as_limbs()[2] == 1) {
        let id = ScheduleId(word.as_limbs()[0]);
        assert!(records.iter().any(|record| record.id == id && holds_identity(record)));
    }
}

/// One that a fault put aside holds it too: its calls may have been made, and its signatures must not count again.
fn holds_identity(record: &Record) -> bool {
    matches!(record.head.status, Status::Pending | Status::Quarantined)
}

/// The ledger's slots of a state, to be read only.
struct ReadLedger<'s>(&'s MapState);

impl Ledger for ReadLedger<'_> {
    type Error = std::convert::Infallible;

    fn load(&mut self, slot: U256) -> Result<U256, Self::Error> {
        let stored = self.0.0.get(&StateKey::Slot(LEDGER, slot));
        Ok(stored.map_or(U256::ZERO, |stored| decode_slot(stored).unwrap()))
    }

    fn store(&mut self, _: U256, _: U256) -> Result<(), Self::Error> {
        unreachable!("only read")
    }

    fn body(&mut self, _: ScheduleId) -> Result<Option<Bytes>, Self::Error> {
        unreachable!("only slots")
    }

    fn keep_body(&mut self, _: ScheduleId, _: Bytes) -> Result<(), Self::Error> {
        unreachable!("only read")
    }

    fn credit(&mut self, _: Address, _: Wei) -> Result<(), Self::Error> {
        unreachable!("only read")
    }

    fn take_back(&mut self, _: Address, _: Wei) -> Result<(), Self::Error> {
        unreachable!("only read")
    }

    fn burn(&mut self, _: Wei) -> Result<(), Self::Error> {
        unreachable!("only read")
    }

    fn move_entry(&mut self) -> Result<(), Self::Error> {
        unreachable!("only read")
    }

    fn prepay(&mut self, _: u64) -> Result<(), Self::Error> {
        unreachable!("only read")
    }
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
