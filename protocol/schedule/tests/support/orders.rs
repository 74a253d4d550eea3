//! Orders of change that are hard on trees. Run with small nodes in the unit tests, with the real ones outside.

use super::support::{Draw, Twin, cron, entry};
use almanac_schedule::calendar::{Change, Entry, Queue};

/// Entries in blocks of each length, then out again in the same order or backwards, checked at every block.
fn in_and_out(entries: &[Entry], steps: &[usize]) {
    for (step, is_backwards) in steps.iter().flat_map(|step| [(*step, false), (*step, true)]) {
        let mut twin = Twin::default();
        for block in entries.chunks(step) {
            twin.insert(block.iter().copied());
            twin.check();
        }
        twin.ask(Queue::Cron, 1_000, 7);
        let mut leaving = entries.to_vec();
        if is_backwards {
            leaving.reverse();
        }
        for block in leaving.chunks(step) {
            twin.remove(block.iter().copied());
            twin.check();
        }
        assert_eq!(twin.check().nodes.len(), 1, "an empty calendar is one leaf");
        twin.insert(entries.iter().copied());
        twin.check();
    }
}

#[test]
fn ascending() {
    let entries: Vec<_> = (0..400).map(|n| cron(n, n)).collect();
    in_and_out(&entries, &[1, 13, 400]);
}

#[test]
fn descending() {
    let entries: Vec<_> = (0..400).rev().map(|n| cron(n, n)).collect();
    in_and_out(&entries, &[1, 13, 400]);
}

#[test]
fn all_at_one_time() {
    let entries: Vec<_> = (0..400).map(|n| entry(Queue::Cron, 500, n % 5, n)).collect();
    in_and_out(&entries, &[1, 13, 400]);
}

#[test]
fn from_both_ends_to_the_middle() {
    let entries: Vec<_> = (0..200).flat_map(|n| [cron(n, n), cron(400 - n, 400 - n)]).collect();
    in_and_out(&entries, &[2, 26]);
}

#[test]
fn lane_by_lane() {
    let entries: Vec<_> = (0..400).map(|n| entry(Queue::TIMED[(n % 4) as usize], n, n % 3, n)).collect();
    in_and_out(&entries, &[1, 50]);
}

/// The way of a chain: what is due goes, and most of it comes again later.
#[test]
fn everything_due_leaves_and_comes_again() {
    let mut twin = Twin::default();
    let mut draw = Draw::new(1);
    twin.insert((0..2_000).map(|n| entry(Queue::TIMED[(n % 4) as usize], draw.below(5_000), n % 3, n)));
    for now in (0..10_000).step_by(100) {
        let due = twin.due(now);
        let again = due.iter().filter(|entry| entry.schedule.0 % 50 != now / 100 % 50).map(|entry| {
            let at = entry.at + 1_000 + entry.schedule.0;
            Change::Insert(Entry { at, ..*entry })
        });
        let changes: Vec<_> = due.iter().copied().map(Change::Remove).chain(again).collect();
        twin.block(&changes);
        twin.check();
        assert_eq!(
            twin.store.calendar().due(Queue::Cron, almanac_primitives::TimestampMs(now), 9),
            Ok(vec![])
        );
    }
}

/// At every fill of a small tree, each single change there is, compared with the map.
#[test]
fn every_single_change_at_every_size() {
    let mut twin = Twin::default();
    for size in 0..300 {
        let held: Vec<_> = twin.map.values().copied().collect();
        for place in [0, size / 3, size / 2, size] {
            let mut more = twin.clone();
            more.insert([cron(2 * place, 1_000)]);
            more.check();
            if let Some(&gone) = held.iter().find(|entry| entry.schedule.0 == place) {
                let mut less = twin.clone();
                less.remove([gone]);
                less.check();
            }
        }
        twin.insert([cron(2 * size + 1, size)]);
    }
}

/// Ranges of all lengths leave at once: groups of every length, at the ends and within.
#[test]
fn ranges_leave_at_once() {
    let mut full = Twin::default();
    full.insert((0..700).map(|n| cron(n, n)));
    for from in (0..700).step_by(41) {
        for length in [1, 2, 7, 60, 190, 420, 700] {
            let mut twin = full.clone();
            twin.remove((from..(from + length).min(700)).map(|n| cron(n, n)));
            twin.check();
        }
    }
}

/// Leaves thinned out so that many are too empty at once.
#[test]
fn thinned_out_evenly() {
    for keep in [2, 3, 5, 9, 30, 100] {
        let mut twin = Twin::default();
        twin.insert((0..900).map(|n| cron(n, n)));
        twin.remove((0..900).filter(|n| n % keep != 0).map(|n| cron(n, n)));
        twin.check();
    }
}
