//! A day and more that is booked out, and who looks for room in it.

use super::model::{Counting, Parts, Twin, unbounded};
use almanac_primitives::params::{CAPACITY_SEARCH_READS_MAX, CAPACITY_SEARCH_SECONDS_MAX};
use almanac_schedule::capacity::{self, Class, NextFree, Reach, Shares, search_reads_exact};

/// The first second of one of the longest stretches.
const START: u64 = 32_768 * 52_000;
/// Seconds that are booked: the longest search from any second of the first of these stretches stays within.
const SECONDS: u64 = 4 * 32_768;
const DAY: u64 = CAPACITY_SEARCH_SECONDS_MAX;
const REACH: Reach = Reach { seconds: DAY, reads: CAPACITY_SEARCH_READS_MAX };
const SHARES: Shares = Shares::DEFAULT;

/// Every second has so much booked for Medium.
fn booked_out(effort: u64) -> Counting {
    let mut slots = Counting::default();
    for second in START..START + SECONDS {
        capacity::book(&mut slots, SHARES, second, Class::Medium, effort).unwrap();
    }
    slots
}

fn search(slots: &mut Counting, from: u64, effort: u64) -> (u64, NextFree) {
    let ([reads, ..], found) = slots.count(|slots| capacity::next_free(slots, SHARES, from, effort, REACH));
    (reads, found.unwrap())
}

fn release(slots: &mut Counting, second: u64, effort: u64) {
    capacity::release(slots, SHARES, second, Class::Medium, effort).unwrap();
}

/// Seconds at both ends of stretches of every rank.
fn starts() -> impl Iterator<Item = u64> {
    [0, 1, 7, 8, 127, 128, 2_047, 2_048, 20_000, 32_640, 32_759, 32_767].into_iter().map(|at| START + at)
}

#[test]
fn flip330_07_a_full_day_ahead_takes_ten_reads() {
    let mut slots = booked_out(15_000);
    let mut most = 0;
    for from in starts() {
        let (reads, found) = search(&mut slots, from, 11);
        assert_eq!(found, NextFree::Nowhere);
        most = most.max(reads);
        for last in [from + DAY - 1, from + DAY] {
            // Room before the first second, which the hints above it promise.
            let before = from.saturating_sub(9).max(START);
            let is_before = before < from;
            release(&mut slots, last, 11);
            if is_before {
                release(&mut slots, before, 11);
            }
            let (reads, found) = search(&mut slots, from, 11);
            let expected = if last < from + DAY { NextFree::At(last) } else { NextFree::Nowhere };
            assert_eq!(found, expected, "from {from}, room at {last}");
            most = most.max(reads);
            assert_eq!(search(&mut slots, from, 12).1, NextFree::Nowhere, "one unit too much");
            for second in [Some(last), is_before.then_some(before)].into_iter().flatten() {
                capacity::book(&mut slots, SHARES, second, Class::Medium, 11).unwrap();
            }
        }
    }
    println!(
        "a search in a full day reads {most} slots at most; {} slots are stored",
        slots.ledger.slots.len()
    );
    assert_eq!(most, search_reads_exact(DAY), "the bound is met, so it is not too high");
    assert_eq!(most, 10);
}

#[test]
fn hours_that_were_full_leave_no_slot_when_all_is_released() {
    let mut slots = Counting::default();
    let seconds = 32_768;
    for second in START..START + seconds {
        capacity::book(&mut slots, SHARES, second, Class::High, 20_001).unwrap();
    }
    assert_eq!(slots.ledger.slots.len(), 4_096 + 256 + 16 + 1);
    // An odd step meets each of them once, in no order of theirs.
    for second in (0..seconds).map(|n| START + n * 20_011 % seconds) {
        capacity::release(&mut slots, SHARES, second, Class::High, 20_001).unwrap();
    }
    assert!(slots.ledger.slots.is_empty());
}

#[test]
fn room_at_every_other_second_is_found_at_once() {
    let mut slots = Counting::default();
    for second in (START..START + SECONDS).step_by(2) {
        capacity::book(&mut slots, SHARES, second, Class::Medium, 15_000).unwrap();
    }
    for from in starts() {
        let (reads, found) = search(&mut slots, from, 9_999);
        assert_eq!((reads, found), (1, NextFree::At(from | 1)));
    }
    let bookings = SECONDS / 8;
    assert_eq!(slots.ledger.slots.len() as u64, bookings, "a stretch with a free second needs no hint");
}

/// Every second has room for ten units, which fits nobody, and one of them for eleven.
#[test]
fn crumbs_in_every_second_do_not_slow_a_search() {
    let mut slots = booked_out(14_990);
    for (from, at) in starts().zip((0..).map(|n| START + 50_000 + 3_001 * n)) {
        release(&mut slots, at, 1);
        let (reads, found) = search(&mut slots, from, 11);
        assert_eq!(found, NextFree::At(at));
        assert!(reads <= search_reads_exact(DAY), "{reads}");
        assert_eq!(search(&mut slots, from, 10), (1, NextFree::At(from)));
        capacity::book(&mut slots, SHARES, at, Class::Medium, 1).unwrap();
    }
}

/// High that uses the shared part takes room from Medium, which hints must know.
#[test]
fn a_day_full_of_high_leaves_medium_its_own_part() {
    let mut slots = Counting::default();
    for second in START..START + SECONDS {
        capacity::book(&mut slots, SHARES, second, Class::High, 30_000).unwrap();
    }
    let from = START + 32_767;
    assert_eq!(search(&mut slots, from, 5_000), (1, NextFree::At(from)));
    let (reads, found) = search(&mut slots, from, 5_001);
    assert_eq!(found, NextFree::Nowhere);
    assert!(reads <= search_reads_exact(DAY), "{reads}");
}

/// After a change of High's own part, hints are worth less: a search may be stopped, and says how far it came.
#[test]
fn after_a_change_of_parts_searches_are_bounded_and_miss_nothing() {
    let mut twin = Twin::new(Parts::DEFAULT);
    for second in START..START + 4_000 {
        twin.book(second, Class::Medium, 15_000);
    }
    let free = NextFree::At(START + 4_000);
    assert!(twin.search(START, 11, REACH).0 <= 10);

    twin.set_parts(Parts { high: 10_000, ..Parts::DEFAULT });
    let (reads, found) = twin.search(START, 11, REACH);
    assert_eq!(found, free, "a smaller part of High takes nothing from hints");
    assert!(reads <= 10, "{reads}");

    twin.set_parts(Parts { high: 21_000, ..Parts::DEFAULT });
    let (reads, found) = twin.search(START, 1_001, REACH);
    assert_eq!(found, free, "a larger one takes the difference");
    assert!(reads <= 10, "{reads}");
    let (reads, found) = twin.search(START, 1_000, REACH);
    let NextFree::Unsearched { from } = found else { panic!("{found:?} after {reads} reads") };
    println!("without hints, {reads} reads reach {} seconds", from - START);
    assert!(from >= START + 400);

    assert_eq!(twin.search(START, 1_000, unbounded(DAY)).1, free);
    twin.release_all();
}
