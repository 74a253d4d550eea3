//! What a block of up to 5,000 insertions and as many removals costs the calendar, and how that grows with what is
//! pending: `make bench-calendar`. The same changes to a plain ordered map in memory stand beside it.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a benchmark looks at the clock")]
#![allow(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "figures for people")]

#[path = "../tests/support/mod.rs"]
mod support;

use almanac_primitives::{StateChange, TimestampMs, params::CALENDAR_NODE_ITEMS_MAX};
use almanac_schedule::calendar::{Change, ENTRY_BYTES, Entry, Queue};
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};
use support::{Draw, Store, cron};

const BLOCKS: usize = 21;
const PENDING: [u64; 3] = [10_000, 100_000, 1_000_000];
const CHANGES: [usize; 3] = [100, 1_000, 5_000];

/// When what is inserted becomes due.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    /// Anywhere among what is pending: nearly every insertion finds a leaf of its own.
    Spread,
    /// All behind what is pending, as where every schedule has the same interval.
    Behind,
}

fn main() {
    println!("nodes of {CALENDAR_NODE_ITEMS_MAX} items; medians of {BLOCKS} blocks");
    println!(
        "{:>9} {:>7} {:>13} | {:>7} {:>8} {:>6} {:>7} {:>7} {:>8} | {:>7} {:>8} | {:>6}",
        "pending",
        "pattern",
        "per block",
        "due ms",
        "apply ms",
        "read",
        "written",
        "removed",
        "KB",
        "due ms",
        "apply ms",
        "factor"
    );
    for pending in PENDING {
        for changes in CHANGES {
            for pattern in [Pattern::Spread, Pattern::Behind] {
                run(pending, changes, pattern);
            }
        }
    }
}

fn run(pending: u64, changes: usize, pattern: Pattern) {
    let mut chain = Chain::new(pending);
    let blocks: Vec<_> = (0..BLOCKS).map(|_| chain.block(changes, pattern)).collect();
    let ms = |of: fn(&Block) -> Duration| median(&blocks, |block| of(block).as_secs_f64() * 1e3);
    let number = |of: fn(&Block) -> usize| median(&blocks, |block| of(block) as f64);
    let (due, apply) = (ms(|block| block.due), ms(|block| block.apply));
    let (map_due, map_apply) = (ms(|block| block.map_due), ms(|block| block.map_apply));
    println!(
        "{pending:>9} {:>7} {:>13} | {due:>7.2} {apply:>8.2} {:>6.0} {:>7.0} {:>7.0} {:>8.0} | {map_due:>7.2} {map_apply:>8.2} | {:>6.1}",
        format!("{pattern:?}").to_lowercase(),
        format!("{changes} + {changes}"),
        number(|block| block.read),
        number(|block| block.written),
        number(|block| block.removed),
        number(|block| block.bytes) / 1e3,
        (due + apply) / (map_due + map_apply),
    );
}

fn median(blocks: &[Block], of: impl Fn(&Block) -> f64) -> f64 {
    let mut figures: Vec<_> = blocks.iter().map(of).collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// What one block cost.
struct Block {
    due: Duration,
    apply: Duration,
    read: usize,
    written: usize,
    removed: usize,
    bytes: usize,
    map_due: Duration,
    map_apply: Duration,
}

/// A calendar and a plain map with the same entries.
struct Chain {
    store: Store,
    map: BTreeSet<[u8; ENTRY_BYTES]>,
    draw: Draw,
    /// The ahead-most due time of what is inserted, from now.
    horizon_ms: u64,
    next_id: u64,
}

impl Chain {
    fn new(pending: u64) -> Self {
        let (store, map) = (Store::default(), BTreeSet::new());
        let mut chain = Self { store, map, draw: Draw::new(pending), horizon_ms: pending * 10, next_id: 0 };
        // By blocks, so that the nodes are as full as they are in a chain.
        while (chain.map.len() as u64) < pending {
            let inserts: Vec<_> =
                (0..5_000).map(|_| Change::Insert(chain.coming(0, Pattern::Spread))).collect();
            chain.put(&inserts);
        }
        chain
    }

    fn coming(&mut self, now: u64, pattern: Pattern) -> Entry {
        self.next_id += 1;
        match pattern {
            Pattern::Spread => cron(now + self.draw.below(self.horizon_ms), self.next_id),
            Pattern::Behind => cron(now + self.horizon_ms, self.next_id),
        }
    }

    fn block(&mut self, changes: usize, pattern: Pattern) -> Block {
        let begin = Instant::now();
        let (due_read, due) = self
            .store
            .reads_of(|calendar| calendar.due(Queue::Cron, TimestampMs(u64::MAX), changes).unwrap());
        let due_time = begin.elapsed();
        let now = due.last().expect("something is pending").at;
        let coming: Vec<_> = (0..changes).map(|_| Change::Insert(self.coming(now, pattern))).collect();
        let all: Vec<_> = due.into_iter().map(Change::Remove).chain(coming).collect();

        let begin = Instant::now();
        let (read, written) = self.store.reads_of(|calendar| calendar.apply(&all).unwrap());
        let apply = begin.elapsed();
        self.store.put(&written);
        let (map_due, map_apply) = self.map_block(changes, &all);
        Block {
            due: due_time,
            apply,
            read: due_read + read,
            written: written.iter().filter(|change| change.new.is_some()).count(),
            removed: written.iter().filter(|change| change.new.is_none()).count(),
            bytes: written.iter().map(bytes).sum(),
            map_due,
            map_apply,
        }
    }

    fn map_block(&mut self, changes: usize, all: &[Change]) -> (Duration, Duration) {
        let begin = Instant::now();
        let due: Vec<_> = self.map.iter().take(changes).map(|key| Entry::decode(key).unwrap()).collect();
        let due_time = begin.elapsed();
        assert!(due.iter().zip(all).all(|(due, change)| *change == Change::Remove(*due)));
        let begin = Instant::now();
        self.change_map(all);
        (due_time, begin.elapsed())
    }

    fn put(&mut self, changes: &[Change]) {
        let written = self.store.calendar().apply(changes).unwrap();
        self.store.put(&written);
        self.change_map(changes);
    }

    fn change_map(&mut self, changes: &[Change]) {
        for change in changes {
            match change {
                Change::Insert(entry) => assert!(self.map.insert(entry.encode())),
                Change::Remove(entry) => assert!(self.map.remove(&entry.encode())),
            }
        }
    }
}

fn bytes(change: &StateChange) -> usize {
    change.new.as_ref().map_or(0, |new| new.len())
}
