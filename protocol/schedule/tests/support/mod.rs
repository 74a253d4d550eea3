//! A calendar in a map, checked after every block, and the dull version that it must agree with.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "shared by tests, each of which uses a part")]

use alloy_primitives::Bytes;
use almanac_primitives::{ScheduleId, StateChange, StateKey, StateRead, StateReadError, TimestampMs};
use almanac_schedule::calendar::{
    ApplyError, Calendar, Census, Change, Cursor, Entry, Leaf, Priority, Queue,
};
use std::{
    cell::Cell,
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

/// Nodes that one change may write on each level, at most: its own, a neighbour, the one that lost its first
/// child to that neighbour, and what one of them is split into.
pub const WRITES_PER_CHANGE_AND_LEVEL: usize = 4;

/// State values of a calendar, and how often they were read.
#[derive(Clone, Default)]
pub struct Store {
    pub values: BTreeMap<u64, Bytes>,
    reads: Cell<usize>,
}

impl StateRead for Store {
    fn read(&self, key: StateKey) -> Result<Option<Bytes>, StateReadError> {
        let StateKey::Calendar(node) = key else {
            panic!("the calendar reads its own nodes only, not {key:?}")
        };
        self.reads.set(self.reads.get() + 1);
        Ok(self.values.get(&node).cloned())
    }
}

impl Store {
    pub fn calendar(&self) -> Calendar<'_> {
        Calendar::new(self)
    }

    /// How many values a question reads.
    pub fn reads_of<T>(&self, ask: impl FnOnce(Calendar<'_>) -> T) -> (usize, T) {
        self.reads.set(0);
        let answer = ask(self.calendar());
        (self.reads.get(), answer)
    }

    /// Applies the changes of a block and says what was written.
    pub fn apply(&mut self, changes: &[Change]) -> Result<Vec<StateChange>, ApplyError> {
        let (reads, written) = self.reads_of(|calendar| calendar.apply(changes));
        let written = written?;
        let levels_before = self.levels();
        self.put(&written);
        let levels = usize::from(self.levels().max(levels_before));
        let bound = WRITES_PER_CHANGE_AND_LEVEL * changes.len() * levels + 1;
        assert!(written.len() <= bound, "{} values written for {} changes", written.len(), changes.len());
        assert!(reads <= bound + 1, "{reads} values read for {} changes", changes.len());
        Ok(written)
    }

    pub fn put(&mut self, written: &[StateChange]) {
        assert!(written.is_sorted_by(|a, b| a.key < b.key), "ascending, each number once");
        for StateChange { key, old, new } in written {
            let StateKey::Calendar(node) = key else { panic!("{key:?} is not the calendar's to write") };
            assert_eq!(self.values.get(node), old.as_ref(), "the old value of node {node}");
            assert_ne!(old, new, "node {node} is written without a change");
            match new {
                Some(new) => self.values.insert(*node, new.clone()),
                None => self.values.remove(node),
            };
        }
    }

    fn levels(&self) -> u8 {
        self.values.get(&0).map_or(1, |head| head[1])
    }

    /// All leaves, in order.
    pub fn leaves(&self) -> Vec<Leaf> {
        let mut leaves: Vec<_> = self
            .values
            .iter()
            .filter(|(node, _)| **node != 0)
            .filter_map(|(_, value)| Leaf::decode(value).ok())
            .collect();
        leaves.sort_by_key(|leaf| leaf.entries().first().copied());
        leaves
    }
}

/// What the calendar sorts by, said another way.
type Order = (Queue, u64, Reverse<Priority>, ScheduleId);

pub fn order(entry: &Entry) -> Order {
    (entry.queue, entry.at, Reverse(entry.priority), entry.schedule)
}

pub fn entry(queue: Queue, due: u64, priority: u64, schedule: u64) -> Entry {
    Entry { queue, at: due, priority: Priority(priority), schedule: ScheduleId(schedule) }
}

pub fn cron(due: u64, schedule: u64) -> Entry {
    entry(Queue::Cron, due, 0, schedule)
}

/// The calendar and a plain ordered map, changed together.
#[derive(Clone, Default)]
pub struct Twin {
    pub store: Store,
    pub map: BTreeMap<Order, Entry>,
}

impl Twin {
    /// One block. The changes must be right.
    pub fn block(&mut self, changes: &[Change]) -> Vec<StateChange> {
        let written = self.store.apply(changes).unwrap();
        for change in changes {
            match change {
                Change::Insert(entry) => assert_eq!(self.map.insert(order(entry), *entry), None),
                Change::Remove(entry) => assert_eq!(self.map.remove(&order(entry)), Some(*entry)),
            }
        }
        written
    }

    pub fn insert(&mut self, entries: impl IntoIterator<Item = Entry>) -> Vec<StateChange> {
        self.block(&entries.into_iter().map(Change::Insert).collect::<Vec<_>>())
    }

    pub fn remove(&mut self, entries: impl IntoIterator<Item = Entry>) -> Vec<StateChange> {
        self.block(&entries.into_iter().map(Change::Remove).collect::<Vec<_>>())
    }

    /// Compares everything that does not need a question.
    pub fn check(&self) -> Census {
        let calendar = self.store.calendar();
        let census = calendar.check_all().unwrap();
        assert_eq!(census.entries, self.map.len() as u64);
        if !self.store.values.is_empty() {
            let stored: BTreeSet<_> = self.store.values.keys().copied().filter(|node| *node != 0).collect();
            assert_eq!(census.nodes, stored, "nothing is in the state that is not in the tree");
        }
        for queue in Queue::TIMED {
            let count = self.map.values().filter(|entry| entry.queue == queue).count();
            assert_eq!(calendar.count(queue), Ok(count as u64));
        }
        self.check_leaves();
        let first = self.map.values().min_by_key(|entry| (entry.due(), order(entry)));
        assert_eq!(calendar.first(), Ok(first.copied()));
        census
    }

    /// The leaves by themselves tell the whole calendar.
    fn check_leaves(&self) {
        let leaves = self.store.leaves();
        let told: Vec<_> = leaves.iter().flat_map(|leaf| leaf.entries()).copied().collect();
        assert!(told.iter().eq(self.map.values()));
        assert!(
            leaves.windows(2).all(|pair| pair[1].follows(&pair[0])),
            "there is nothing between two leaves"
        );
        if let (Some(first), Some(last)) = (leaves.first(), leaves.last()) {
            assert!(first.answers_for(&entry(Queue::Reserved, 0, u64::MAX, 0)));
            assert!(last.answers_for(&entry(Queue::Spare, u64::MAX, 0, u64::MAX)));
        }
    }

    /// Asks what is due and what the agenda says.
    pub fn ask(&self, queue: Queue, now: u64, count_max: usize) {
        let calendar = self.store.calendar();
        let due = |entry: &&Entry| entry.queue == queue && entry.at <= now;
        let expected: Vec<_> = self.map.values().filter(due).take(count_max).copied().collect();
        assert_eq!(calendar.due(queue, TimestampMs(now), count_max).as_ref(), Ok(&expected));
        for queues in [&[queue][..], &Queue::TIMED] {
            self.ask_agenda(queues, now, count_max);
        }
    }

    /// Page by page, from a time to the end.
    fn ask_agenda(&self, queues: &[Queue], from: u64, count_max: usize) {
        let calendar = self.store.calendar();
        let mut expected: Vec<_> = self
            .map
            .values()
            .filter(|entry| queues.contains(&entry.queue) && entry.at >= from)
            .copied()
            .collect();
        expected.sort_by_key(|entry| (entry.due(), order(entry)));
        let mut cursor = Cursor::At(TimestampMs(from));
        for page in expected.chunks(count_max.max(1)).take(20) {
            let told = calendar.agenda(queues, cursor, count_max.max(1)).unwrap();
            assert_eq!(told, page);
            cursor = Cursor::After(page[page.len() - 1]);
        }
        if expected.len() <= 20 * count_max {
            assert_eq!(calendar.agenda(queues, cursor, count_max), Ok(vec![]), "nothing is behind the last");
        }
        assert_eq!(calendar.agenda(queues, cursor, 0), Ok(vec![]));
    }

    pub fn contains(&self, entry: &Entry) -> bool {
        let is_there = self.map.contains_key(&order(entry));
        assert_eq!(self.store.calendar().contains(entry), Ok(is_there));
        is_there
    }

    /// What is due at a time, over all lanes.
    pub fn due(&self, now: u64) -> Vec<Entry> {
        self.map.values().filter(|entry| entry.at <= now).copied().collect()
    }

    /// Each wrong change is refused by its name, alone and among right ones.
    pub fn refuses_what_is_wrong(&self, probe: Entry, right: &[Change]) {
        let calendar = self.store.calendar();
        let wrong = match self.contains(&probe) {
            true => (Change::Insert(probe), ApplyError::AlreadyThere(probe)),
            false => (Change::Remove(probe), ApplyError::NotThere(probe)),
        };
        let with = |change| {
            let others = right.iter().filter(|change| changed(change) != probe).copied();
            others.chain([change]).collect::<Vec<_>>()
        };
        assert_eq!(calendar.apply(&[wrong.0]), Err(wrong.1.clone()));
        assert_eq!(calendar.apply(&with(wrong.0)), Err(wrong.1));
        let twice = [with(Change::Insert(probe)), vec![Change::Remove(probe)]].concat();
        assert_eq!(calendar.apply(&twice), Err(ApplyError::ChangedTwice(probe)));
    }
}

pub fn changed(change: &Change) -> Entry {
    let (Change::Insert(entry) | Change::Remove(entry)) = change;
    *entry
}

/// Numbers that look random and are the same in every run.
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}
