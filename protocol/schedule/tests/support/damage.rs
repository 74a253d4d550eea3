//! Damaged state. Run with small nodes in the unit tests, with the real ones outside.

use super::support::{Store, Twin, cron, entry};
use almanac_primitives::TimestampMs;
use almanac_schedule::calendar::{CalendarError, Change, CheckError, Cursor, NodeError, Queue};
use proptest::{prelude::*, sample::Index};

fn twin() -> Twin {
    let mut twin = Twin::default();
    twin.insert((0..660).map(|n| entry(Queue::TIMED[(n / 3 % 4) as usize], n / 2, n % 2, n)));
    // A leaf is split once more, so that the highest number is not the root's.
    twin.insert((660..700).map(|n| cron(1_000, n)));
    twin.check();
    twin
}

/// Asks everything and changes much; what it answers does not matter.
fn use_all(store: &Store) {
    let calendar = store.calendar();
    for queue in Queue::TIMED {
        let _ = calendar.due(queue, TimestampMs(200), 500);
        let _ = calendar.agenda(&[queue], Cursor::At(TimestampMs(0)), 1_000);
    }
    let _ = (calendar.first(), calendar.contains(&cron(3, 3)));
    let everything = calendar.agenda(&Queue::TIMED, Cursor::At(TimestampMs(0)), 1_000).unwrap_or_default();
    let leaving = everything.iter().step_by(2).copied().map(Change::Remove);
    let coming = (0..400).map(|n| Change::Insert(cron(n * 3, 10_000 + n)));
    let _ = calendar.apply(&leaving.chain(coming).collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A damaged value is an error, or another calendar, or not looked at: never a panic or a walk without end.
    #[test]
    fn damage_never_panics(which: Index, place: Index, byte: u8, other: Index, kind in 0..4) {
        let whole = twin();
        let mut store = whole.store.clone();
        let numbers: Vec<_> = store.values.keys().copied().collect();
        let (number, other) = (*which.get(&numbers), *other.get(&numbers));
        match kind {
            0 => drop(store.values.remove(&number)),
            1 => drop(store.values.insert(number, whole.store.values[&other].clone())),
            _ => {
                let mut bytes = store.values[&number].to_vec();
                *place.get_mut(&mut bytes[..]) = byte;
                store.values.insert(number, bytes.into());
            }
        }
        use_all(&store);
        let told = |store: &Store| store.calendar().agenda(&Queue::TIMED, Cursor::At(TimestampMs(0)), 1_000);
        if store.calendar().check_all().is_ok() && !store.values.is_empty() && number != 0 {
            // What passes is a calendar, if another one: as many entries, in order.
            prop_assert_eq!(told(&store).unwrap().len(), told(&whole.store).unwrap().len());
        }
    }
}

#[test]
fn what_is_missing_is_named() {
    let mut store = twin().store;
    let root = u64::from_be_bytes(*store.values[&0][2..].first_chunk().unwrap());
    store.values.remove(&root);
    let missing = CalendarError::Missing { node: root };
    assert_eq!(store.calendar().first(), Err(missing.clone()));
    assert_eq!(store.calendar().check_all(), Err(missing.clone().into()));
    assert_eq!(store.calendar().apply(&[Change::Insert(cron(1, 1))]), Err(missing.into()));
}

#[test]
fn the_check_names_what_is_wrong() {
    let whole = twin().store;
    let head = whole.values[&0].to_vec();
    let with_head = |at: usize, number: u64| {
        let mut store = whole.clone();
        let mut head = head.clone();
        head[at..at + 8].copy_from_slice(&number.to_be_bytes());
        store.values.insert(0, head.into());
        store.calendar().check_all()
    };
    let counted = u64::from_be_bytes(*head[26..].first_chunk().unwrap());
    let miscounted = CalendarError::Miscounted { queue: Queue::Cron, count: counted + 1 };
    assert_eq!(with_head(26, counted + 1), Err(miscounted.into()));
    let first = u64::from_be_bytes(*head[90..].first_chunk().unwrap());
    for given in [first + 1, u64::MAX] {
        let wrong = CheckError::WrongFirst { queue: Queue::Cron, given, found: first };
        assert_eq!(with_head(90, given), Err(wrong));
    }
    let last = *whole.values.keys().next_back().unwrap();
    assert_eq!(with_head(10, last), Err(CheckError::NotGivenOut { node: last, next: last }));
    assert!(with_head(10, last + 1).is_ok(), "the number behind the last may be the next");
}

/// A branch that leads to one leaf twice: the second place is not that leaf's.
#[test]
fn a_node_at_two_places_is_refused() {
    let mut store = twin().store;
    let (&number, branch) =
        store.values.iter().find(|(number, value)| **number != 0 && value[1] == 1).unwrap();
    let mut bytes = branch.to_vec();
    // Behind version, level and count: a key of 25 bytes and a number of 8 for each child.
    let (first, second) = (6 + 25, 6 + 33 + 25);
    bytes.copy_within(first..first + 8, second);
    let twice = u64::from_be_bytes(*bytes[first..].first_chunk().unwrap());
    store.values.insert(number, bytes.into());
    let refused = CalendarError::Node { node: twice, error: NodeError::WrongSpan };
    assert_eq!(store.calendar().check_all(), Err(refused.clone().into()));
    assert_eq!(store.calendar().agenda(&Queue::TIMED, Cursor::At(TimestampMs(0)), 1_000), Err(refused));
}
