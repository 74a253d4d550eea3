//! Counts the entries of a queue by time without reading all of them.
//!
//! The tree is read level by level, from the root down, as long as a level has few enough nodes in the span. If that
//! reaches the leaves, the count is exact. Otherwise the children on the last level that was read stand for their
//! subtrees, and a sample tells how many entries such a subtree has. So a drawing of a million entries reads as much
//! as one of some thousand.

use super::{
    Calendar,
    entry::Key,
    queue::Queue,
    tree::{CalendarError, Tree},
};
use almanac_primitives::TimestampMs;

/// How many entries a queue has in each part of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// Ascending. A part ends where the next one begins, the last one with the span.
    pub parts: Vec<Part>,
    /// Whether entries were counted one by one; otherwise their number is an estimate.
    pub is_exact: bool,
}

/// A part of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where it begins.
    pub at: u64,
    /// Entries in it.
    pub entries: u64,
}

/// Subtrees that are looked into to find out how many entries one has.
const SAMPLES: usize = 8;

impl Calendar<'_> {
    /// How the entries of a queue are spread over a span, both ends included. Reads at most `nodes_max` nodes of each
    /// level and a few samples.
    pub fn outline(
        &self,
        queue: Queue,
        from: TimestampMs,
        until: TimestampMs,
        nodes_max: usize,
    ) -> Result<Outline, CalendarError> {
        let mut tree = Tree::open(self.state)?;
        if tree.anchor.count(queue) == 0 {
            return Ok(Outline { parts: vec![], is_exact: true });
        }
        let (begin, end) = (Key::at(queue, from.0), Key::after(queue, until.0));
        let mut level = tree.anchor.top();
        loop {
            let keys = keys_of(&mut tree, level, begin, end)?;
            if level == 0 {
                let parts = keys.iter().map(|key| Part { at: key.entry().at, entries: 1 }).collect();
                return Ok(Outline { parts, is_exact: true });
            }
            if keys.len() > nodes_max {
                return estimate(&mut tree, level, begin, &keys);
            }
            level -= 1;
        }
    }
}

/// The keys in the nodes of a level: entries of leaves, beginnings of children of branches. A child that begins before
/// the span and reaches into it counts.
fn keys_of(tree: &mut Tree<'_>, level: u8, begin: Key, end: Key) -> Result<Vec<Key>, CalendarError> {
    let (mut keys, mut at) = (vec![], begin);
    while at < end {
        let (_, node) = tree.find(level, &at)?;
        let behind = node.items.partition_point(|item| item.key < at);
        let is_inside = level > 0 && node.items.get(behind).is_none_or(|item| item.key > at);
        let first = if is_inside { behind.saturating_sub(1) } else { behind };
        keys.extend(node.items[first..].iter().map(|item| item.key).take_while(|key| *key < end));
        at = node.span.until;
    }
    Ok(keys)
}

/// One part for each child of a level, each with as many entries as a sampled one has in the mean.
fn estimate(tree: &mut Tree<'_>, level: u8, begin: Key, keys: &[Key]) -> Result<Outline, CalendarError> {
    let (mut sum, mut count) = (0_u64, 0_u64);
    for key in keys.iter().step_by(keys.len().div_ceil(SAMPLES).max(1)) {
        let mut entries = 1_u64;
        for below in (0..level).rev() {
            let (_, node) = tree.find(below, key)?;
            entries = entries.saturating_mul(node.items.len() as u64);
        }
        (sum, count) = (sum.saturating_add(entries), count + 1);
    }
    let entries = sum / count.max(1);
    let place = |key: &Key| if *key < begin { begin.entry().at } else { key.entry().at };
    let parts = keys.iter().map(|key| Part { at: place(key), entries }).collect();
    Ok(Outline { parts, is_exact: false })
}
