//! What a block and a curious person ask: what is due, what comes next, what is on the agenda.
//!
//! No answer costs more because more is pending: it reads the way down and the leaves that it tells of.

use super::{
    Calendar,
    entry::{Entry, Key},
    leaf::Leaf,
    tree::{CalendarError, Tree},
};
use almanac_primitives::{Lane, TimestampMs};
use std::cmp::Reverse;

/// Where a page of the agenda begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// With what is due at this time.
    At(TimestampMs),
    /// Behind this entry, which may be gone: usually the last of the page before.
    After(Entry),
}

impl Calendar<'_> {
    /// How many entries a lane has.
    pub fn count(&self, lane: Lane) -> Result<u64, CalendarError> {
        Ok(Tree::open(self.state)?.head.count(lane))
    }

    /// Whether an entry is there.
    pub fn contains(&self, entry: &Entry) -> Result<bool, CalendarError> {
        let mut tree = Tree::open(self.state)?;
        let (_, leaf) = tree.find(0, &entry.key())?;
        Ok(leaf.items.binary_search_by_key(&entry.key(), |item| item.key).is_ok())
    }

    /// The entries of a lane that are due at `now`: oldest first, and the higher priority first among those of one
    /// time. At most `count_max`; the others stay due.
    pub fn due(&self, lane: Lane, now: TimestampMs, count_max: usize) -> Result<Vec<Entry>, CalendarError> {
        self.due_from(lane, now, None, count_max)
    }

    /// As [`Calendar::due`], from an entry on, which may be gone.
    pub fn due_from(
        &self,
        lane: Lane,
        now: TimestampMs,
        from: Option<Entry>,
        count_max: usize,
    ) -> Result<Vec<Entry>, CalendarError> {
        let mut tree = Tree::open(self.state)?;
        // Most lanes of most blocks: the head alone knows.
        if tree.head.first(lane) > now {
            return Ok(vec![]);
        }
        let from = from.map_or(Key::at(lane, TimestampMs(0)), |entry| entry.key());
        walk(&mut tree, from, Key::after(lane, now), count_max)
    }

    /// When something becomes due first in one of these lanes, or `None` where they are empty. The head knows.
    pub fn next_due(&self, lanes: &[Lane]) -> Result<Option<TimestampMs>, CalendarError> {
        let head = Tree::open(self.state)?.head;
        Ok(lanes.iter().filter(|lane| head.count(**lane) > 0).map(|lane| head.first(*lane)).min())
    }

    /// The entry that becomes due first of all lanes, or `None` where nothing is scheduled. Of several at one time,
    /// the one whose lane is served first.
    pub fn first(&self) -> Result<Option<Entry>, CalendarError> {
        let mut tree = Tree::open(self.state)?;
        let mut first: Option<Entry> = None;
        for lane in Lane::ALL {
            let count = tree.head.count(lane);
            if count == 0 {
                continue;
            }
            let found = walk(&mut tree, Key::at(lane, TimestampMs(0)), Key::end_of(lane), 1)?;
            let entry = *found.first().ok_or(CalendarError::Miscounted { lane, count })?;
            if first.is_none_or(|first| entry.due < first.due) {
                first = Some(entry);
            }
        }
        Ok(first)
    }

    /// A page of what is due when, over some lanes or all: by time, then as a block would serve it. At most
    /// `count_max` entries; [`Cursor::After`] the last one is the next page.
    pub fn agenda(
        &self,
        lanes: &[Lane],
        cursor: Cursor,
        count_max: usize,
    ) -> Result<Vec<Entry>, CalendarError> {
        let mut tree = Tree::open(self.state)?;
        let mut page = vec![];
        for lane in Lane::ALL.into_iter().filter(|lane| lanes.contains(lane)) {
            page.extend(walk(&mut tree, start(cursor, lane), Key::end_of(lane), count_max)?);
        }
        page.sort_unstable_by_key(agenda_order);
        page.truncate(count_max);
        Ok(page)
    }
}

impl Calendar<'_> {
    /// The leaves that tell everything that a lane has due at these times, both included, with the numbers of
    /// their nodes; at most `count_max`, from the first on. Who proves them proves that nothing else is due then.
    pub fn leaves(
        &self,
        lane: Lane,
        from: TimestampMs,
        until: TimestampMs,
        count_max: usize,
    ) -> Result<Vec<(u64, Leaf)>, CalendarError> {
        let mut tree = Tree::open(self.state)?;
        let (mut at, end) = (Key::at(lane, from), Key::after(lane, until));
        let mut leaves = vec![];
        while at < end && leaves.len() < count_max {
            let (number, node) = tree.find(0, &at)?;
            at = node.span.until;
            leaves.push((number, Leaf::of(node)));
        }
        Ok(leaves)
    }
}

/// Where a page begins in one lane.
fn start(cursor: Cursor, lane: Lane) -> Key {
    match cursor {
        Cursor::At(time) => Key::at(lane, time),
        Cursor::After(entry) if lane < entry.lane => Key::after(lane, entry.due),
        Cursor::After(entry) if lane == entry.lane => entry.key().next(),
        Cursor::After(entry) => Key::at(lane, entry.due),
    }
}

fn agenda_order(entry: &Entry) -> impl Ord + use<> {
    (entry.due, entry.lane, Reverse(entry.priority), entry.schedule)
}

/// The first entries at `from` or behind it and before `until`.
fn walk(tree: &mut Tree<'_>, from: Key, until: Key, count_max: usize) -> Result<Vec<Entry>, CalendarError> {
    let mut found = vec![];
    let mut at = from;
    while at < until && found.len() < count_max {
        let (_, leaf) = tree.find(0, &at)?;
        let begin = leaf.items.partition_point(|item| item.key < at);
        let here = leaf.items[begin..].iter().map(|item| item.key).take_while(|key| *key < until);
        found.extend(here.take(count_max - found.len()).map(|key| key.entry()));
        at = leaf.span.until;
    }
    Ok(found)
}
