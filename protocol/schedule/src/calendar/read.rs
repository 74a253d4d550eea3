//! Reads the calendar: what is due, what comes next, and pages of the agenda.
//!
//! No read costs more because more is pending: it reads the path down and the leaves whose entries it returns.

use super::{
    Calendar,
    entry::{Entry, Key},
    leaf::Leaf,
    queue::Queue,
    tree::{CalendarError, Tree},
};
use almanac_primitives::TimestampMs;
use std::cmp::Reverse;

/// The start of an agenda page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// At the entries due at this time.
    At(TimestampMs),
    /// After this entry, usually the last one of the previous page. The entry need not exist any more.
    After(Entry),
}

impl Calendar<'_> {
    /// How many entries a queue has.
    pub fn count(&self, queue: Queue) -> Result<u64, CalendarError> {
        Ok(Tree::open(self.state)?.anchor.count(queue))
    }

    /// Whether an entry exists.
    pub fn contains(&self, entry: &Entry) -> Result<bool, CalendarError> {
        let mut tree = Tree::open(self.state)?;
        let (_, leaf) = tree.find(0, &entry.key())?;
        Ok(leaf.items.binary_search_by_key(&entry.key(), |item| item.key).is_ok())
    }

    /// The entries of a queue that are due at `now`, oldest first; at the same time, the higher priority first.
    /// Returns at most `count_max`; the rest stay due.
    pub fn due(&self, queue: Queue, now: TimestampMs, count_max: usize) -> Result<Vec<Entry>, CalendarError> {
        self.due_from(queue, now.0, None, count_max)
    }

    /// The entries of a queue up to a place, starting from an entry. That entry need not exist any more.
    pub fn due_from(
        &self,
        queue: Queue,
        until: u64,
        from: Option<Entry>,
        count_max: usize,
    ) -> Result<Vec<Entry>, CalendarError> {
        let mut tree = Tree::open(self.state)?;
        // Most queues of most blocks: the anchor alone knows.
        if tree.anchor.count(queue) == 0 || tree.anchor.first(queue) > until {
            return Ok(vec![]);
        }
        let from = from.map_or(Key::at(queue, 0), |entry| entry.key());
        walk(&mut tree, from, Key::after(queue, until), count_max)
    }

    /// The earliest due time in these queues, or `None` if they are empty. Reads only the head.
    pub fn next_due(&self, queues: &[Queue]) -> Result<Option<TimestampMs>, CalendarError> {
        let anchor = Tree::open(self.state)?.anchor;
        Ok(queues
            .iter()
            .filter(|queue| anchor.count(**queue) > 0)
            .map(|queue| TimestampMs(anchor.first(*queue)))
            .min())
    }

    /// The highest bid that waits, or `None` if nothing waits. Reads only the head.
    pub fn highest_bid(&self) -> Result<Option<u64>, CalendarError> {
        let anchor = Tree::open(self.state)?.anchor;
        Ok((anchor.count(Queue::Waiting) > 0).then(|| u64::MAX - anchor.first(Queue::Waiting)))
    }

    /// The entry that becomes due first in any queue, or `None` if nothing is scheduled. At the same time, the
    /// queue that is served first wins.
    pub fn first(&self) -> Result<Option<Entry>, CalendarError> {
        let mut tree = Tree::open(self.state)?;
        let mut first: Option<Entry> = None;
        for queue in Queue::TIMED {
            let count = tree.anchor.count(queue);
            if count == 0 {
                continue;
            }
            let found = walk(&mut tree, Key::at(queue, 0), Key::end_of(queue), 1)?;
            let entry = *found.first().ok_or(CalendarError::Miscounted { queue, count })?;
            if first.is_none_or(|first| entry.at < first.at) {
                first = Some(entry);
            }
        }
        Ok(first)
    }

    /// A page of the agenda of some queues or all, by time, then in the order a block would serve them. At most
    /// `count_max` entries; [`Cursor::After`] the last one is the next page.
    pub fn agenda(
        &self,
        queues: &[Queue],
        cursor: Cursor,
        count_max: usize,
    ) -> Result<Vec<Entry>, CalendarError> {
        let mut tree = Tree::open(self.state)?;
        let mut page = vec![];
        for queue in Queue::TIMED.into_iter().filter(|queue| queues.contains(queue)) {
            page.extend(walk(&mut tree, start(cursor, queue), Key::end_of(queue), count_max)?);
        }
        page.sort_unstable_by_key(agenda_order);
        page.truncate(count_max);
        Ok(page)
    }
}

impl Calendar<'_> {
    /// The leaves that cover everything a queue has due within a span (both ends included), with their node
    /// numbers; the first `count_max` of them. A proof of these leaves proves that nothing else is due in the
    /// span.
    pub fn leaves(
        &self,
        queue: Queue,
        from: TimestampMs,
        until: TimestampMs,
        count_max: usize,
    ) -> Result<Vec<(u64, Leaf)>, CalendarError> {
        let mut tree = Tree::open(self.state)?;
        let (mut at, end) = (Key::at(queue, from.0), Key::after(queue, until.0));
        let mut leaves = vec![];
        while at < end && leaves.len() < count_max {
            let (number, node) = tree.find(0, &at)?;
            at = node.span.until;
            leaves.push((number, Leaf::of(node)));
        }
        Ok(leaves)
    }
}

/// The position in one queue where a page begins.
fn start(cursor: Cursor, queue: Queue) -> Key {
    match cursor {
        Cursor::At(time) => Key::at(queue, time.0),
        Cursor::After(entry) if queue < entry.queue => Key::after(queue, entry.at),
        Cursor::After(entry) if queue == entry.queue => entry.key().next(),
        Cursor::After(entry) => Key::at(queue, entry.at),
    }
}

fn agenda_order(entry: &Entry) -> impl Ord + use<> {
    (entry.at, entry.queue, Reverse(entry.priority), entry.schedule)
}

/// The first entries at or after `from` and before `until`.
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
