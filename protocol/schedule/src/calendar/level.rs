//! Changes one level of the tree at once: a row of nodes, some of which gain items and some lose items.
//!
//! ```text
//! level above     … a → 7   b → 3   c → 9 …
//!                      |       |       |            the changes of the level above are what became of
//! this level      [ a . . ][ b     ][ c . . . ]     the names: here that of b goes, and c's moves
//!                            \___________/
//!                              one group: too few items are joined with the node to the right, and the
//!                              group is cut into nodes again where it is too long
//! ```
//!
//! Merging neighbours ignores whether they share a parent. Neighbours are looked up in the tree as it was
//! before the block, which no step modifies.

use super::{
    apply::{ApplyError, Op},
    entry::Key,
    node::{ITEMS_FILL, ITEMS_MAX, ITEMS_MIN, Item, Node, Span},
    tree::Tree,
};
use std::{collections::BTreeMap, mem};

/// Neighbouring nodes of one level with their items after the change.
pub(super) struct Group {
    /// The nodes before the change, by first key.
    pub old: Vec<Item>,
    span: Span,
    items: Vec<Item>,
}

/// Applies sorted changes to a level. Returns the groups in order; no two share a node.
pub(super) fn regroup(tree: &mut Tree<'_>, level: u8, ops: &[(Key, Op)]) -> Result<Vec<Group>, ApplyError> {
    let mut groups: Vec<Group> = vec![];
    let mut rest = ops;
    while let Some((key, _)) = rest.first() {
        let mut group = take(tree, level, key, &mut rest)?;
        while group.items.len() < ITEMS_MIN && group.span.until != Key::END {
            let until = group.span.until;
            group = group.join(take(tree, level, &until, &mut rest)?);
        }
        if group.items.len() < ITEMS_MIN && group.span.from != Key::FIRST {
            group = left_of(&group, tree, level, &mut groups)?.join(group);
        }
        groups.push(group);
    }
    Ok(groups)
}

/// The node whose span contains a key, with the changes that fall into that span.
fn take(tree: &mut Tree<'_>, level: u8, key: &Key, rest: &mut &[(Key, Op)]) -> Result<Group, ApplyError> {
    let (number, node) = tree.take(level, key)?;
    let (ops, behind) = rest.split_at(rest.partition_point(|(key, _)| *key < node.span.until));
    *rest = behind;
    let old = vec![Item { key: node.span.from, child: number }];
    Ok(Group { old, span: node.span, items: merge(&node.items, ops)? })
}

/// The left neighbour of a group that has no right neighbour: part of the previous group, or an unchanged node.
fn left_of(
    group: &Group,
    tree: &mut Tree<'_>,
    level: u8,
    groups: &mut Vec<Group>,
) -> Result<Group, ApplyError> {
    if let Some(last) = groups.pop_if(|last| last.span.until == group.span.from) {
        return Ok(last);
    }
    take(tree, level, &group.span.from.previous(), &mut &[][..])
}

/// Items with sorted changes applied.
pub(super) fn merge(items: &[Item], ops: &[(Key, Op)]) -> Result<Vec<Item>, ApplyError> {
    let mut merged = Vec::with_capacity(items.len() + ops.len());
    let mut rest = items;
    for &(key, op) in ops {
        let (before, behind) = rest.split_at(rest.partition_point(|item| item.key < key));
        merged.extend_from_slice(before);
        let is_there = behind.first().is_some_and(|item| item.key == key);
        match (op, is_there) {
            (Op::Insert(child), false) | (Op::Replace(child), true) => merged.push(Item { key, child }),
            (Op::Remove, true) => {}
            (Op::Insert(_), true) => return Err(ApplyError::AlreadyThere(key.entry())),
            (Op::Remove | Op::Replace(_), false) => return Err(ApplyError::NotThere(key.entry())),
        }
        rest = &behind[usize::from(is_there)..];
    }
    merged.extend_from_slice(rest);
    Ok(merged)
}

impl Group {
    fn join(mut self, right: Self) -> Self {
        self.old.extend(right.old);
        self.items.extend(right.items);
        self.span.until = right.span.until;
        self
    }

    /// How many nodes the group becomes.
    pub(super) fn pieces(&self) -> usize {
        pieces(self.items.len())
    }

    /// The nodes that the group becomes. Takes the group's items.
    pub(super) fn cut(&mut self, level: u8) -> Vec<Node> {
        cut(level, self.span, mem::take(&mut self.items))
    }

    /// The changes for the level above, given the new nodes' numbers by first key.
    pub(super) fn renamed(&self, new: &[Item]) -> Vec<(Key, Op)> {
        let mut names: BTreeMap<Key, (Option<u64>, Option<u64>)> = BTreeMap::new();
        self.old.iter().for_each(|old| names.entry(old.key).or_default().0 = Some(old.child));
        new.iter().for_each(|new| names.entry(new.key).or_default().1 = Some(new.child));
        let op = |names| match names {
            (None, Some(new)) => Some(Op::Insert(new)),
            (Some(_), None) => Some(Op::Remove),
            (Some(old), Some(new)) if old != new => Some(Op::Replace(new)),
            _ => None,
        };
        names.into_iter().filter_map(|(key, names)| Some((key, op(names)?))).collect()
    }
}

/// How many nodes this many items need.
fn pieces(items: usize) -> usize {
    if items <= ITEMS_MAX { 1 } else { items.div_ceil(ITEMS_FILL) }
}

/// Cuts items into nodes of even length. A leaf begins where the previous one ends. A branch begins with its
/// first child, because whatever was before that child now belongs to another branch.
pub(super) fn cut(level: u8, span: Span, items: Vec<Item>) -> Vec<Node> {
    let pieces = pieces(items.len());
    let starts: Vec<_> = (0..pieces).map(|piece| items.len() * piece / pieces).collect();
    let (mut rest, mut until) = (items, span.until);
    let mut nodes: Vec<_> = starts
        .into_iter()
        .rev()
        .map(|start| {
            let items = if start == 0 { mem::take(&mut rest) } else { rest.split_off(start) };
            let from = match items.first() {
                Some(first) if start > 0 || level > 0 => first.key,
                _ => span.from,
            };
            let node = Node { level, span: Span { from, until }, items };
            until = from;
            node
        })
        .collect();
    nodes.reverse();
    nodes
}
