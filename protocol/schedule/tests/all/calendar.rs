//! The calendar with nodes of the size that chains have.

#[path = "../support/damage.rs"]
mod damage;
#[path = "../support/model.rs"]
mod model;
#[path = "../support/orders.rs"]
mod orders;
use crate::support::{self, Draw, Store, Twin, cron, entry};
use alloy_primitives::Bytes;
use almanac_primitives::{StateKey, StateRead, StateReadError, TimestampMs, params::LANE_BLOCK_RUNS_MAX};
use almanac_schedule::calendar::{
    ApplyError, Calendar, CalendarError, Change, CheckError, Cursor, Entry, Leaf, NodeError, Queue,
    SpanError, due_in,
};

/// Half in the past of 1,000,000 and half in its future, each half spread over its lanes.
fn pending(count: u64) -> Twin {
    let mut twin = Twin::default();
    let mut draw = Draw::new(count);
    let entries: Vec<_> = (0..count)
        .map(|n| entry(Queue::TIMED[draw.below(4) as usize], draw.below(2_000_000), draw.below(3), n))
        .collect();
    entries.chunks(10_000).for_each(|block| drop(twin.insert(block.iter().copied())));
    twin
}

/// What a question reads depends on what it answers and the height of the tree, not on what is pending.
#[test]
fn reading_costs_the_same_however_much_is_pending() {
    let now = TimestampMs(1_000_000);
    for (count, levels) in [(10, 1), (1_000, 3), (100_000, 4)] {
        let twin = pending(count);
        let census = twin.check();
        assert_eq!(census.levels, levels, "{count} entries");
        let levels = usize::from(levels);
        let reads = |ask: &dyn Fn(Calendar<'_>) -> usize| twin.store.reads_of(ask);

        assert_eq!(reads(&|calendar| calendar.count(Queue::Cron).unwrap() as usize).0, 1);
        assert_eq!(reads(&|calendar| calendar.contains(&cron(5, 5)).unwrap().into()).0, 1 + levels);
        // A block in which nothing is due, and whoever sleeps until something is, read the head and nothing else.
        let early = |calendar: Calendar<'_>| {
            let first = calendar.next_due(&Queue::TIMED).unwrap().expect("something is pending");
            let before = TimestampMs(first.0.saturating_sub(1));
            let due = Queue::TIMED.map(|queue| calendar.due(queue, before, 10).unwrap().len());
            due.iter().sum()
        };
        assert_eq!(reads(&early), (1 + Queue::TIMED.len(), 0));
        // The head, a way down in each queue, and one leaf more where a queue begins in the middle of one.
        assert!(reads(&|calendar| calendar.first().iter().count()).0 <= 1 + 4 * (levels + 1));
        for count_max in [1, 100, LANE_BLOCK_RUNS_MAX] {
            let (read, found) = reads(&|calendar| calendar.due(Queue::Market, now, count_max).unwrap().len());
            assert!(found == count_max || found as u64 <= count, "{found}");
            // A leaf for every 8 entries at most, a branch for every 8 of those; and where it begins and ends.
            let leaves = found.div_ceil(8) + 1;
            let branches = leaves.div_ceil(8) + leaves.div_ceil(64);
            assert!(read <= 1 + levels + leaves + branches, "{read} reads for {found} of {count}");
        }
        let page =
            |calendar: Calendar<'_>| calendar.agenda(&Queue::TIMED, Cursor::At(now), 20).unwrap().len();
        let (read, found) = reads(&page);
        assert!(found <= 20 && read <= 1 + 4 * (levels + 3), "{read} reads for a page");
    }
}

/// A drawing of what is due reads as much of a hundred thousand entries as of a thousand, and is near the truth.
#[test]
fn an_outline_reads_so_much_and_no_more() {
    const NODES_MAX: usize = 100;
    let spans = [(0, 2_000_000), (500_000, 700_000), (1_999_990, u64::MAX), (3_000_000, 4_000_000)];
    for count in [0, 10, 1_000, 100_000] {
        let twin = pending(count);
        for (from, until) in spans {
            for queue in Queue::TIMED {
                let real: Vec<u64> = twin
                    .map
                    .values()
                    .filter(|entry| entry.queue == queue && (from..=until).contains(&entry.at))
                    .map(|entry| entry.at)
                    .collect();
                let (from, until) = (TimestampMs(from), TimestampMs(until));
                let ask = |calendar: Calendar<'_>| calendar.outline(queue, from, until, NODES_MAX).unwrap();
                let (reads, outline) = twin.store.reads_of(ask);
                // Nodes of a level, those above them, one where the span begins inside, and the samples.
                assert!(reads <= NODES_MAX + NODES_MAX / 7 + 8 * 4 + 8, "{reads} reads, {count} entries");
                let sum: u64 = outline.parts.iter().map(|part| part.entries).sum();
                if outline.is_exact {
                    let places: Vec<u64> = outline.parts.iter().map(|part| part.at).collect();
                    assert_eq!((places, sum), (real.clone(), real.len() as u64));
                } else {
                    let (real, sum) = (real.len() as f64, sum as f64);
                    assert!(
                        (sum - real).abs() < real * 0.35,
                        "{sum} entries are estimated, there are {real}"
                    );
                    assert!(outline.parts.is_sorted_by_key(|part| part.at));
                    assert!(outline.parts.first().is_some_and(|part| part.at >= from.0));
                }
                assert_eq!(outline.is_exact, count < 100_000 || real.len() < 2_000, "{count} {}", real.len());
            }
        }
    }
}

/// The bound is `WRITES_PER_CHANGE_AND_LEVEL`, which the store asserts at every block.
#[test]
fn writing_costs_the_same_however_much_is_pending() {
    for count in [10, 1_000, 100_000] {
        let mut twin = pending(count);
        for n in 0..50 {
            twin.insert([cron(n * 40_000, count + n)]);
            let first = *twin.map.values().next().unwrap();
            twin.remove([first]);
            let last = *twin.map.values().next_back().unwrap();
            twin.block(&[Change::Remove(last), Change::Insert(cron(n, last.schedule.0))]);
        }
        twin.check();
    }
}

/// Four levels of real nodes, thinned out and filled again.
#[test]
fn a_large_calendar_empties_and_fills_again() {
    let mut twin = pending(30_000);
    assert_eq!(twin.check().levels, 4);
    for round in 0..3 {
        let leaving: Vec<_> =
            twin.map.values().copied().filter(|entry| entry.schedule.0 % 500 != 7).collect();
        twin.remove(leaving.iter().copied());
        assert!(twin.check().levels <= 2);
        twin.ask(Queue::Spare, 900_000, 300);
        twin.insert(leaving.iter().copied());
        assert_eq!(twin.check().levels, 4, "round {round}");
    }
    let everything: Vec<_> = twin.map.values().copied().collect();
    twin.remove(everything);
    assert_eq!(twin.check().levels, 1);
}

/// Numbers of nodes that a block frees are taken again in it: a calendar that goes round writes no more values
/// than it has nodes to change, and its nodes stay few.
#[test]
fn freed_nodes_are_taken_again() {
    let mut twin = Twin::default();
    twin.insert((0..5_000).map(|n| cron(n, n)));
    let nodes = twin.check().nodes.len();
    for round in 1..20 {
        let due = twin.due(round * 500 - 1);
        let again: Vec<_> =
            due.iter().map(|entry| Change::Insert(cron(entry.at + 5_000, entry.schedule.0))).collect();
        let written = twin.block(&[again, due.into_iter().map(Change::Remove).collect()].concat());
        let removed = written.iter().filter(|change| change.new.is_none()).count();
        let made = written.iter().filter(|change| change.old.is_none()).count();
        assert!(removed == 0 || made == 0, "{removed} nodes removed and {made} made in one block");
    }
    assert!(twin.check().nodes.len() <= 2 * nodes);
}

/// A tree shows its history in its nodes, never in its entries.
#[test]
fn equal_entries_tell_the_same_whatever_led_to_them() {
    let mut at_once = Twin::default();
    at_once.insert((0..500).map(|n| cron(n % 37, n)));
    let mut one_by_one = Twin::default();
    (0..900).rev().for_each(|n| drop(one_by_one.insert([cron(n % 37, n)])));
    one_by_one.remove((500..900).map(|n| cron(n % 37, n)));
    assert_ne!(at_once.store.values, one_by_one.store.values);
    let told = |twin: &Twin| twin.store.calendar().agenda(&Queue::TIMED, Cursor::At(TimestampMs(0)), 1_000);
    assert_eq!(told(&at_once), told(&one_by_one));
    assert_eq!(told(&at_once).unwrap().len(), 500);
}

#[test]
fn a_leaf_tells_what_it_answers_for() {
    let mut twin = Twin::default();
    twin.insert((0..200).map(|n| cron(10 * n, n)));
    let leaves = twin.store.leaves();
    assert!(leaves.len() >= 3);
    let (leaf, next) = (&leaves[1], &leaves[2]);
    let (first, last) = (leaf.entries()[0].at, leaf.entries()[leaf.entries().len() - 1].at);
    let alone = |queue, from, until| {
        due_in(std::slice::from_ref(leaf), queue, TimestampMs(from), TimestampMs(until)).is_ok()
    };
    let answers = |from, until| alone(Queue::Cron, from, until);
    assert!(answers(first + 1, last), "all of these are its own");
    assert!(answers(last + 1, last + 9), "and that nothing is between its last and the next leaf's first");
    assert!(!answers(first - 1, last) && !answers(first + 1, last + 10));
    assert!(!alone(Queue::Market, first + 1, last));
    assert!(leaf.answers_for(&cron(last + 5, 7)) && !leaf.answers_for(&next.entries()[0]));
    assert!(next.follows(leaf) && !leaf.follows(next) && !leaves[0].follows(next));
    let branch = twin.store.values.values().find(|value| value[1] == 1).unwrap();
    assert_eq!(Leaf::decode(branch), Err(NodeError::WrongLevel { given: 1, expected: 0 }));
    assert!(Store::default().leaves().is_empty());
}

/// Decoders know of two children, since a root may have as few; whoever checks all knows of eight.
#[test]
fn a_branch_that_is_not_the_root_needs_eight_children() {
    let store = pending(10_000).store;
    let (&node, branch) = store.values.iter().find(|(node, value)| **node != 0 && value[1] == 1).unwrap();
    let with_children = |count: u8| {
        let mut store = store.clone();
        let mut bytes = branch[..6 + 33 * usize::from(count)].to_vec();
        bytes[5] = count;
        store.values.insert(node, bytes.into());
        store.calendar().check_all().unwrap_err()
    };
    assert_eq!(with_children(7), CheckError::TooFew { node, given: 7, min: 8 });
    // Enough of them, but the last does not reach as far as those that are gone.
    let unequal = matches!(
        with_children(8),
        CheckError::Calendar(CalendarError::Node { error: NodeError::WrongSpan, .. })
    );
    assert!(unequal);
}

/// A disk that fails.
struct Failing;

impl StateRead for Failing {
    fn read(&self, key: StateKey) -> Result<Option<Bytes>, StateReadError> {
        Err(StateReadError::failed(key, "the disk is gone"))
    }
}

/// A store that cannot be read is never an empty calendar.
#[test]
fn a_failing_store_is_an_error() {
    let failed = StateReadError::failed(StateKey::Calendar(0), "the disk is gone");
    let calendar = Calendar::new(&Failing);
    assert_eq!(calendar.due(Queue::Cron, TimestampMs(1), 1), Err(CalendarError::Read(failed.clone())));
    assert_eq!(calendar.first(), Err(CalendarError::Read(failed.clone())));
    let refused = calendar.apply(&[Change::Insert(cron(1, 1))]);
    assert_eq!(refused, Err(ApplyError::Calendar(CalendarError::Read(failed))));
}

/// A leaf that is left out, whichever it is, and one that is out of place are noticed.
fn refuse_less(leaves: &[Leaf], queue: Queue, from: TimestampMs, until: TimestampMs) {
    for omitted in 0..leaves.len() {
        let rest = [&leaves[..omitted], &leaves[omitted + 1..]].concat();
        let expected = match omitted {
            0 => SpanError::NoBeginning { from },
            _ if omitted == rest.len() => SpanError::NoEnd { until },
            index => SpanError::Gap { index },
        };
        assert_eq!(due_in(&rest, queue, from, until), Err(expected), "without leaf {omitted}");
    }
    if leaves.len() > 1 {
        let backwards: Vec<Leaf> = leaves.iter().rev().cloned().collect();
        assert!(due_in(&backwards, queue, from, until).is_err());
        let twice = [leaves, &leaves[..1]].concat();
        assert_eq!(due_in(&twice, queue, from, until), Err(SpanError::Gap { index: leaves.len() }));
    }
    let (next, before) = (TimestampMs(until.0 + 1), TimestampMs(until.0));
    assert_eq!(due_in(leaves, queue, next, before), Err(SpanError::Backwards { from: next, until: before }));
}

/// The leaves of a span are all that it takes to know what is due in it: they leave no gap, and end where it does.
#[test]
fn leaves_of_a_span_answer_for_all_of_it() {
    let mut draw = Draw::new(7);
    for count in [1, 20, 40, 3_000] {
        let twin = pending(count);
        for _ in 0..100 {
            let queue = Queue::TIMED[draw.below(4) as usize];
            let (a, b) = (draw.below(2_100_000), draw.below(2_100_000));
            let (from, until) = (TimestampMs(a.min(b)), TimestampMs(a.max(b)));
            let found = twin.store.calendar().leaves(queue, from, until, usize::MAX).unwrap();
            let is_due = |entry: &&Entry| entry.queue == queue && (from..=until).contains(&entry.due());
            let leaves: Vec<Leaf> = found.iter().map(|(_, leaf)| leaf.clone()).collect();
            let due = due_in(&leaves, queue, from, until).unwrap();
            assert_eq!(due, twin.map.values().filter(is_due).copied().collect::<Vec<_>>());
            refuse_less(&leaves, queue, from, until);
            assert!(found.windows(2).all(|pair| pair[1].1.follows(&pair[0].1)), "no gap");
            let (first, last) = (entry(queue, from.0, u64::MAX, 0), entry(queue, until.0, 0, u64::MAX));
            assert!(found[0].1.answers_for(&first) && found[found.len() - 1].1.answers_for(&last));
            for (node, leaf) in &found {
                let stored = twin.store.read(StateKey::Calendar(*node)).unwrap().unwrap();
                assert_eq!(Leaf::decode(&stored), Ok(leaf.clone()), "what is proven is what was read");
            }
            let few = twin.store.calendar().leaves(queue, from, until, 1).unwrap();
            assert_eq!(few[..], found[..1]);
        }
        let none = twin.store.calendar().leaves(Queue::Cron, TimestampMs(9), TimestampMs(7), 5).unwrap();
        assert_eq!(none, [], "a span that ends before it begins needs nothing");
    }
}
