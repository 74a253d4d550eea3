//! The ends of number ranges, and heads with wrong numbers.

use super::*;
use crate::calendar::node::ITEMS_MAX;
use almanac_primitives::{ScheduleId, StateReadError};

struct Values(BTreeMap<u64, Bytes>);

impl almanac_primitives::StateRead for Values {
    fn read(&self, key: StateKey) -> Result<Option<Bytes>, StateReadError> {
        let StateKey::Calendar(number) = key else { return Ok(None) };
        Ok(self.0.get(&number).cloned())
    }
}

fn entry(due: u64) -> Entry {
    let schedule = ScheduleId(due);
    Entry { queue: Queue::Cron, at: due, priority: Default::default(), schedule }
}

/// A tree of full nodes in which only the path to the first leaf exists.
fn full(levels: u8, next: u64, cron: u64) -> Values {
    let mut values = BTreeMap::new();
    let mut span = Span::ALL;
    let top = Anchor {
        levels,
        root: levels.into(),
        next,
        counts: [0, cron, 0, 0, 0, 0, 0, 0],
        firsts: Anchor::EMPTY.firsts,
    };
    for level in (0..levels).rev() {
        let number = u64::from(level) + 1;
        let step = 1_000 * number;
        let mut items: Vec<_> = (0..ITEMS_MAX as u64)
            .map(|n| Item { key: entry(step + n).key(), child: if level > 0 { 100 + n } else { 0 } })
            .collect();
        if level > 0 {
            items[0] = Item { key: Key::FIRST, child: number - 1 };
        }
        let below = items[1].key;
        values.insert(number, Node { level, span, items }.encode().into());
        span = Span { from: Key::FIRST, until: below };
    }
    values.insert(ANCHOR, top.encode().into());
    Values(values)
}

#[test]
fn levels_and_numbers_end() {
    let apply = |values: &Values| Calendar::new(values).apply(&[Change::Insert(entry(500))]);
    let highest = apply(&full(LEVELS_MAX - 1, 1_000, 8)).unwrap();
    assert_eq!(highest[0].new.as_ref().unwrap()[1], LEVELS_MAX);
    assert_eq!(apply(&full(LEVELS_MAX, 1_000, 8)), Err(ApplyError::Full { what: "level" }));
    // One leaf that is split needs two numbers: for its second half and for a root.
    assert!(apply(&full(1, u64::MAX - 2, 8)).is_ok());
    assert_eq!(apply(&full(1, u64::MAX - 1, 8)), Err(ApplyError::Full { what: "node" }));
}

#[test]
fn counts_that_the_leaves_contradict_are_refused() {
    let insert = |count| Calendar::new(&full(1, 9, count)).apply(&[Change::Insert(entry(500))]).map(drop);
    assert_eq!(insert(u64::MAX - 1), Ok(()));
    assert_eq!(insert(u64::MAX), Err(ApplyError::Full { what: "entry" }));
    let remove = |count| Calendar::new(&full(1, 9, count)).apply(&[Change::Remove(entry(1_000))]).map(drop);
    assert_eq!(remove(1), Ok(()));
    assert_eq!(remove(0), Err(CalendarError::Miscounted { queue: Queue::Cron, count: 0 }.into()));
}

#[test]
fn no_changes_write_nothing() {
    assert_eq!(Calendar::new(&Values(BTreeMap::new())).apply(&[]), Ok(vec![]));
    assert_eq!(Calendar::new(&full(3, 9, 8)).apply(&[]), Ok(vec![]));
}
