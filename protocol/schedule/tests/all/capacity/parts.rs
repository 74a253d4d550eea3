//! Both sides of each limit, one second at a time.

use super::model::{Parts, Twin, unbounded};
use alloy_primitives::U256;
use almanac_schedule::{
    Failure,
    capacity::{self, Class, NextFree, NotBooked, Reach},
    ledger::MemoryLedger,
};

const SECOND: u64 = 1_700_000_000;

fn twin() -> Twin {
    Twin::new(Parts::DEFAULT)
}

fn available(twin: &mut Twin) -> [u64; 2] {
    let shares = twin.parts.shares();
    [Class::High, Class::Medium]
        .map(|class| capacity::available(&mut twin.slots, shares, SECOND, class).unwrap())
}

#[test]
fn flip330_06_both_sides_of_each_part() {
    let mut twin = twin();
    assert_eq!(available(&mut twin), [30_000, 15_000]);
    assert!(!twin.book(SECOND, Class::High, 30_001));
    assert!(twin.book(SECOND, Class::High, 30_000));
    assert_eq!(available(&mut twin), [0, 5_000], "Medium keeps its own part");
    assert!(!twin.book(SECOND, Class::Medium, 5_001));
    assert!(twin.book(SECOND, Class::Medium, 5_000));
    assert_eq!(available(&mut twin), [0, 0]);
    assert!(!twin.book(SECOND, Class::High, 1));
    assert!(!twin.book(SECOND, Class::Medium, 1));
    twin.release_all();

    assert!(!twin.book(SECOND, Class::Medium, 15_001));
    assert!(twin.book(SECOND, Class::Medium, 15_000));
    assert!(!twin.book(SECOND, Class::High, 20_001));
    assert!(twin.book(SECOND, Class::High, 20_000));
    assert_eq!(available(&mut twin), [0, 0]);
    for effort in [u64::from(u16::MAX), u64::from(u16::MAX) + 1, u64::MAX - 40_000] {
        assert!(!twin.book(SECOND, Class::High, effort), "numbers that do not fit a booking do not wrap");
    }
    twin.release_all();
}

#[test]
fn flip330_07_medium_moves_to_the_next_second_with_room() {
    let mut twin = twin();
    for second in SECOND..SECOND + 3 {
        twin.book(second, Class::Medium, 15_000);
    }
    assert_eq!(twin.search(SECOND, 1, unbounded(3)).1, NextFree::Nowhere);
    assert_eq!(twin.search(SECOND, 1, unbounded(4)).1, NextFree::At(SECOND + 3));
    assert_eq!(twin.search(SECOND + 3, 15_000, unbounded(1)).1, NextFree::At(SECOND + 3));
    assert_eq!(twin.search(SECOND + 3, 15_001, unbounded(1)), (0, NextFree::Nowhere));
    assert_eq!(twin.search(SECOND + 3, 1, unbounded(0)), (0, NextFree::Nowhere));
}

#[test]
fn both_sides_of_the_reads() {
    let mut twin = twin();
    let start = SECOND / 8 * 8;
    for second in start..start + 8 {
        twin.book(second, Class::Medium, 15_000);
    }
    let (reads, found) = twin.search(start, 1, unbounded(100));
    assert_eq!(found, NextFree::At(start + 8));
    assert_eq!(twin.search(start, 1, Reach { seconds: 100, reads }), (reads, found));
    for (reads, from) in [(reads - 1, start + 8), (1, start + 8), (0, start)] {
        let stopped = NextFree::Unsearched { from };
        assert_eq!(twin.search(start, 1, Reach { seconds: 100, reads }), (reads, stopped));
    }
}

#[test]
fn what_is_not_booked_cannot_be_released() {
    let mut twin = twin();
    twin.book(SECOND, Class::High, 100);
    let before = twin.slots.ledger.clone();
    let shares = twin.parts.shares();
    let cases = [
        (SECOND, Class::High, 101, 100),
        (SECOND, Class::High, u64::MAX, 100),
        (SECOND, Class::Medium, 1, 0),
        (SECOND + 1, Class::High, 1, 0),
    ];
    for (second, class, effort, booked) in cases {
        let released = capacity::release(&mut twin.slots, shares, second, class, effort);
        assert_eq!(released, Err(Failure::Refused(NotBooked { second, class, effort, booked })));
    }
    assert_eq!(twin.slots.ledger, before);
    twin.release_all();
}

/// FLIP330-21: what is booked stays booked where the parts shrink, and can be released to the unit.
#[test]
fn flip330_21_shrunk_parts_leave_bookings_alone() {
    let mut twin = Twin::new(Parts { high: 40_000, medium: 7_232, shared: 25_535 });
    assert!(twin.book(SECOND, Class::High, 65_535), "the most that a second can hold");
    assert!(twin.book(SECOND, Class::Medium, 7_232));
    twin.set_parts(Parts { high: 0, medium: 0, shared: 0 });
    assert_eq!(available(&mut twin), [0, 0]);
    assert!(!twin.book(SECOND, Class::High, 1));
    assert!(!twin.book(SECOND, Class::Medium, 1));
    twin.release_all();
}

#[test]
fn the_end_of_time_does_not_overflow() {
    let shares = Parts::DEFAULT.shares();
    let mut ledger = MemoryLedger::default();
    for second in [u64::MAX, u64::MAX - 1] {
        capacity::book(&mut ledger, shares, second, Class::Medium, 15_000).unwrap();
    }
    let reach = Reach { seconds: u64::MAX, reads: 64 };
    let found = capacity::next_free(&mut ledger, shares, u64::MAX - 2, 15_000, reach);
    assert_eq!(found, Ok(NextFree::At(u64::MAX - 2)));
    let found = capacity::next_free(&mut ledger, shares, u64::MAX - 1, 1, reach);
    assert_eq!(found, Ok(NextFree::Nowhere));
    for second in [u64::MAX, u64::MAX - 1] {
        capacity::release(&mut ledger, shares, second, Class::Medium, 15_000).unwrap();
    }
    assert_eq!(ledger, MemoryLedger::default());
}

/// The sparse case is the usual one: a booking costs one new slot and no hints.
#[test]
fn a_lone_booking_is_one_slot() {
    let mut twin = twin();
    let shares = twin.parts.shares();
    let (booked, done) =
        twin.slots.count(|slots| capacity::book(slots, shares, SECOND, Class::Medium, 15_000));
    assert_eq!((booked, done), ([1, 1, 1], Ok(())));
    assert_eq!(twin.slots.ledger.slots.keys().collect::<Vec<_>>(), [&capacity::bookings_slot(SECOND)]);
    let (released, done) =
        twin.slots.count(|slots| capacity::release(slots, shares, SECOND, Class::Medium, 15_000));
    assert_eq!((released, done), ([4, 1, 0], Ok(())));
    assert_eq!(twin.slots.ledger.slots.get(&U256::ZERO), None);
}

/// The case for which a release visits every rank: High's own part shrinks and grows again. The hints of rank 1 were
/// renewed meanwhile and promise much; those of rank 2 were not, and still hold.
#[test]
fn a_release_lowers_the_hints_of_every_rank() {
    let start = SECOND / 128 * 128;
    let mut twin = twin();
    for second in start..start + 128 {
        twin.book(second, Class::Medium, 9_000);
        twin.book(second, Class::Medium, 3_000);
    }
    twin.set_parts(Parts { high: 10_000, ..Parts::DEFAULT });
    for second in start..start + 8 {
        twin.book(second, Class::Medium, 1);
    }
    twin.set_parts(Parts::DEFAULT);
    let released = (start + 40, Class::Medium, 3_000);
    let index = twin.held.iter().position(|booking| *booking == released).unwrap();
    twin.release(index);
    assert_eq!(twin.search(start, 5_000, unbounded(1_000)).1, NextFree::At(start + 40));
    twin.release_all();
}
