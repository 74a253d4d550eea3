//! Applies all changes of a block to the calendar, in one pass from the leaves up over the nodes that they
//! touch.

#[cfg(test)]
mod tests;

use super::{
    Calendar,
    anchor::{ANCHOR, Anchor, LEVELS_MAX, NEVER},
    entry::{Entry, Key},
    level::{cut, merge, regroup},
    node::{Item, Node, Span},
    queue::Queue,
    tree::{CalendarError, Tree},
};
use alloy_primitives::Bytes;
use almanac_primitives::{StateChange, StateKey};
use std::collections::{BTreeMap, BTreeSet};

/// A change to the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A schedule was created or re-armed.
    Insert(Entry),
    /// A schedule ran, ended or was cancelled.
    Remove(Entry),
}

/// Why changes cannot be applied. Each case is a broken invariant or a failing store: applying anyway would
/// make the calendar differ from the records.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The calendar cannot be read.
    #[error(transparent)]
    Calendar(#[from] CalendarError),
    /// The entry to insert exists already.
    #[error("{0} is in the calendar already")]
    AlreadyThere(Entry),
    /// The entry to remove does not exist.
    #[error("{0} is not in the calendar")]
    NotThere(Entry),
    /// A block makes at most one change per entry, from the state before the block to the state after it.
    #[error("{0} is changed twice in one block")]
    ChangedTwice(Entry),
    /// A counter of the head has reached its maximum. Only a damaged head can get there.
    #[error("the calendar has no room for another {what}")]
    Full {
        /// What the counter counts.
        what: &'static str,
    },
}

/// The change to one key of a level. The number is the child's; leaves use 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Insert(u64),
    Replace(u64),
    Remove,
}

impl Calendar<'_> {
    /// The node writes that a block's changes (in any order) result in, ascending by node number, each once.
    /// Writes nothing.
    pub fn apply(&self, changes: &[Change]) -> Result<Vec<StateChange>, ApplyError> {
        let ops = sorted(changes)?;
        let tree = Tree::open(self.state)?;
        let mut edit = Edit { anchor: tree.anchor, tree, written: BTreeMap::new(), free: BTreeSet::new() };
        edit.change_levels(ops)?;
        edit.shrink();
        edit.count(changes)?;
        edit.find_firsts(changes)?;
        Ok(edit.finish())
    }

    /// The subset of a block's changes that can be applied, without those that contradict the tree. Used after
    /// a fault of our own, to bring the calendar as close to the records as possible.
    pub fn possible(&self, changes: &[Change]) -> Result<Vec<Change>, CalendarError> {
        let mut wanted = BTreeMap::new();
        for change in changes {
            match change {
                Change::Insert(entry) => wanted.insert(entry.key(), *change),
                // An insertion of the same entry takes precedence over its removal.
                Change::Remove(entry) => Some(*wanted.entry(entry.key()).or_insert(*change)),
            };
        }
        let mut possible = Vec::with_capacity(wanted.len());
        for change in wanted.into_values() {
            let is_possible = match change {
                Change::Insert(entry) => !self.contains(&entry)?,
                Change::Remove(entry) => self.contains(&entry)?,
            };
            possible.extend(is_possible.then_some(change));
        }
        Ok(possible)
    }
}

fn sorted(changes: &[Change]) -> Result<Vec<(Key, Op)>, ApplyError> {
    let mut ops: Vec<_> = changes
        .iter()
        .map(|change| match change {
            Change::Insert(entry) => (entry.key(), Op::Insert(0)),
            Change::Remove(entry) => (entry.key(), Op::Remove),
        })
        .collect();
    ops.sort_unstable_by_key(|(key, _)| *key);
    match ops.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(ApplyError::ChangedTwice(pair[0].0.entry())),
        None => Ok(ops),
    }
}

/// The tree before the block, and the changes made to it so far.
struct Edit<'a> {
    tree: Tree<'a>,
    anchor: Anchor,
    written: BTreeMap<u64, Written>,
    /// Numbers of nodes that no longer exist. This block reuses them or removes them from the state. No free
    /// list outlives the block, since 64-bit numbers never run out.
    free: BTreeSet<u64>,
}

/// A node in its stored form.
struct Written {
    bytes: Bytes,
    /// The child of a branch that has exactly one.
    only_child: Option<u64>,
}

impl Edit<'_> {
    /// Changes the leaves, then the keys above them that changed as a result, level by level until nothing
    /// changes.
    fn change_levels(&mut self, mut ops: Vec<(Key, Op)>) -> Result<(), ApplyError> {
        for level in 0..self.anchor.levels {
            ops = self.change_level(level, &ops)?;
        }
        let tops = merge(&[Item { key: Key::FIRST, child: self.anchor.root }], &ops)?;
        self.grow(tops)
    }

    fn change_level(&mut self, level: u8, ops: &[(Key, Op)]) -> Result<Vec<(Key, Op)>, ApplyError> {
        let groups = regroup(&mut self.tree, level, ops)?;
        // Collect all free numbers before taking any, so that as few numbers as possible are touched.
        for group in &groups {
            self.free.extend(group.old.iter().skip(group.pieces()).map(|old| old.child));
        }
        let mut above = vec![];
        for mut group in groups {
            let nodes = group.cut(level);
            let new = self.write(nodes, group.old.iter().map(|old| old.child))?;
            above.extend(group.renamed(&new));
        }
        Ok(above)
    }

    /// Adds levels until a single node is on top.
    fn grow(&mut self, mut tops: Vec<Item>) -> Result<(), ApplyError> {
        while tops.len() > 1 {
            let level = self.anchor.levels;
            if level == LEVELS_MAX {
                return Err(ApplyError::Full { what: "level" });
            }
            self.anchor.levels += 1;
            tops = self.write(cut(level, Span::ALL, tops), [])?;
        }
        self.anchor.root = tops[0].child;
        Ok(())
    }

    /// Writes nodes, first under the numbers reserved for them, then under others. Returns each node's first
    /// key and number.
    fn write(
        &mut self,
        nodes: Vec<Node>,
        kept: impl IntoIterator<Item = u64>,
    ) -> Result<Vec<Item>, ApplyError> {
        let mut kept = kept.into_iter();
        let mut items = Vec::with_capacity(nodes.len());
        for node in nodes {
            let number = match kept.next().or_else(|| self.free.pop_first()) {
                Some(number) => number,
                None => self.new_number()?,
            };
            items.push(Item { key: node.span.from, child: number });
            self.written.insert(number, Written::new(&node));
        }
        Ok(items)
    }

    fn new_number(&mut self) -> Result<u64, ApplyError> {
        let number = self.anchor.next;
        self.anchor.next = number.checked_add(1).ok_or(ApplyError::Full { what: "node" })?;
        Ok(number)
    }

    /// Removes branches with a single child from the top. Only a node written in this block can be one.
    fn shrink(&mut self) {
        while let Some(child) = self.written.get(&self.anchor.root).and_then(|root| root.only_child) {
            self.written.remove(&self.anchor.root);
            self.free.insert(self.anchor.root);
            self.anchor.root = child;
            self.anchor.levels -= 1;
        }
    }

    fn count(&mut self, changes: &[Change]) -> Result<(), ApplyError> {
        let (mut inserted, mut removed) = ([0; Queue::ALL.len()], [0; Queue::ALL.len()]);
        for change in changes {
            match change {
                Change::Insert(entry) => inserted[entry.queue.place()] += 1,
                Change::Remove(entry) => removed[entry.queue.place()] += 1,
            }
        }
        for (queue, count) in Queue::ALL.into_iter().zip(&mut self.anchor.counts) {
            let sum = count.checked_add(inserted[queue.place()]).ok_or(ApplyError::Full { what: "entry" })?;
            let left = sum.checked_sub(removed[queue.place()]);
            *count = left.ok_or(CalendarError::Miscounted { queue, count: *count })?;
        }
        Ok(())
    }

    /// Updates the first place of each queue. Searches the tree only where the previous first entry was
    /// removed.
    fn find_firsts(&mut self, changes: &[Change]) -> Result<(), ApplyError> {
        let (before, mut firsts) = (self.anchor.firsts, self.anchor.firsts);
        let mut is_gone = [false; Queue::ALL.len()];
        for change in changes {
            match change {
                Change::Insert(entry) => {
                    let first = &mut firsts[entry.queue.place()];
                    *first = entry.at.min(*first);
                }
                Change::Remove(entry) => {
                    let place = entry.queue.place();
                    is_gone[place] |= entry.at == before[place];
                }
            }
        }
        for queue in Queue::ALL.into_iter().filter(|queue| is_gone[queue.place()]) {
            firsts[queue.place()] = self.first(queue)?;
        }
        self.anchor.firsts = firsts;
        Ok(())
    }

    /// The place of a queue's first entry in the changed tree.
    fn first(&self, queue: Queue) -> Result<u64, ApplyError> {
        let (mut at, until) = (Key::at(queue, 0), Key::end_of(queue));
        while at < until {
            let leaf = self.leaf(&at)?;
            if let Some(item) = leaf.items.iter().find(|item| item.key >= at) {
                return Ok(if item.key < until { item.key.entry().at } else { NEVER });
            }
            at = leaf.span.until;
        }
        Ok(NEVER)
    }

    /// The leaf of the changed tree whose span contains a key.
    fn leaf(&self, key: &Key) -> Result<Node, ApplyError> {
        let (mut number, mut span) = (self.anchor.root, Span::ALL);
        let mut level = self.anchor.top();
        loop {
            let bytes = match self.written.get(&number) {
                Some(written) => written.bytes.clone(),
                None => self.tree.stored(number)?,
            };
            let node = Node::decode(&bytes, level, span.until)
                .map_err(|error| CalendarError::Node { node: number, error })?;
            if level == 0 {
                return Ok(node);
            }
            (number, span) = node.child(key);
            level -= 1;
        }
    }

    /// The changes relative to the state.
    fn finish(self) -> Vec<StateChange> {
        let Self { tree, anchor, written, free } = self;
        let mut values: BTreeMap<u64, Option<Bytes>> =
            free.into_iter().map(|number| (number, None)).collect();
        values.extend(written.into_iter().map(|(number, node)| (number, Some(node.bytes))));
        if !values.is_empty() {
            values.insert(ANCHOR, Some(anchor.encode().into()));
        }
        values
            .into_iter()
            .map(|(number, new)| StateChange {
                key: StateKey::Calendar(number),
                old: tree.bytes(number),
                new,
            })
            .filter(|change| change.old != change.new)
            .collect()
    }
}

impl Written {
    fn new(node: &Node) -> Self {
        let only_child = match node.items[..] {
            [only] if node.level > 0 => Some(only.child),
            _ => None,
        };
        Self { bytes: node.encode().into(), only_child }
    }
}
