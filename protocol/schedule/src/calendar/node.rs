//! The nodes of the tree: leaves hold entries, branches point to child nodes.
//!
//! ```text
//! leaf    version 1 | level 0 | from | until | count u32 | key …                   keys and bounds: 25 bytes
//! branch  version 1 | level   |                count u32 | (key, child u64) …
//! ```
//!
//! A leaf carries its bounds: it holds all entries at or after `from` and before `until`. So one leaf, proven
//! against the state root, proves both the presence and the absence of entries in its span. A branch carries no
//! bounds: its first key is where it begins, and a descending reader knows where it ends.

#[cfg(test)]
mod tests;

use super::{
    anchor::ANCHOR,
    entry::{ENTRY_BYTES, Key},
};
use almanac_primitives::{
    codec::{DecodeError, Reader, Writer},
    params::{CALENDAR_NODE_ITEMS_MAX, STATE_VALUE_BYTES_MAX},
};

/// Most items in a node. Small in unit tests, to make small trees deep.
pub(super) const ITEMS_MAX: usize = if cfg!(test) { 8 } else { CALENDAR_NODE_ITEMS_MAX };
/// Fewest items in a node, unless it is the only one on its level. Far below half, so that a node that was just
/// split does not have to be merged after a few removals.
pub(super) const ITEMS_MIN: usize = ITEMS_MAX / 4;
/// Target number of items after a split. Below the maximum, so that the new nodes can grow before the next
/// split.
pub(super) const ITEMS_FILL: usize = ITEMS_MAX / 4 * 3;

const VERSION: u8 = 1;
const LEAF: u8 = 0;
/// Version, level and count.
const FRAME_BYTES: usize = 6;
const NODE_BYTES_MAX: usize = FRAME_BYTES + 2 * ENTRY_BYTES + ITEMS_MAX * (ENTRY_BYTES + 8);

const _: () = assert!(ITEMS_MIN >= 2, "a branch with one child would make the tree deeper for nothing");
const _: () = assert!(2 * ITEMS_FILL > ITEMS_MAX, "what overflows by one is split in two");
const _: () = assert!(NODE_BYTES_MAX <= STATE_VALUE_BYTES_MAX, "a node is one state value");

/// The positions that a node covers: from the first (included) to the second (excluded).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub from: Key,
    pub until: Key,
}

impl Span {
    pub(super) const ALL: Self = Self { from: Key::FIRST, until: Key::END };
}

/// An entry of a leaf, or a child of a branch with the position where the child begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub key: Key,
    /// The child's number; 0 in leaves, where it is not stored.
    pub child: u64,
}

/// A decoded node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub level: u8,
    pub span: Span,
    /// Ascending by key.
    pub items: Vec<Item>,
}

/// Why bytes are not a node of a calendar.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeError {
    /// The encoding is invalid.
    #[error(transparent)]
    Encoding(#[from] DecodeError),
    /// A node of another level was expected.
    #[error("the node is on level {given}, not on level {expected}")]
    WrongLevel {
        /// The level found.
        given: u8,
        /// The level expected at this position of the tree.
        expected: u8,
    },
    /// The node's span differs from the one in its parent.
    #[error("the node does not begin and end where its parent says")]
    WrongSpan,
    /// The bounds of a leaf enclose nothing, or are not positions of entries.
    #[error("the bounds of the leaf hold nothing between them")]
    BadSpan,
    /// Keys do not ascend, or lie outside the node's span.
    #[error("key {index} is not behind the one before it, or outside of the node's bounds")]
    KeyOutOfPlace {
        /// Its position.
        index: usize,
    },
    /// A node has too few items and is not the only one on its level.
    #[error("the node has {given} items, at least {min} are needed")]
    TooFew {
        /// Items found.
        given: usize,
        /// Items needed.
        min: usize,
    },
    /// A branch that leads to the anchor, which is no node of the tree.
    #[error("child {index} has number 0, which is the anchor's")]
    ChildIsAnchor {
        /// Its position.
        index: usize,
    },
}

impl Node {
    /// The root of an empty tree.
    pub(super) fn empty() -> Self {
        Self { level: LEAF, span: Span::ALL, items: vec![] }
    }

    /// The child whose span contains a key, with that span.
    pub(super) fn child(&self, key: &Key) -> (u64, Span) {
        let behind = self.items.partition_point(|item| item.key <= *key);
        let item = self.items[behind.checked_sub(1).expect("a branch begins where its first child does")];
        let until = self.items.get(behind).map_or(self.span.until, |next| next.key);
        (item.child, Span { from: item.key, until })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::versioned(VERSION, self.encoded_len());
        out.u8(self.level);
        if self.level == LEAF {
            out.raw(&self.span.from.0);
            out.raw(&self.span.until.0);
        }
        out.count(self.items.len());
        for item in &self.items {
            out.raw(&item.key.0);
            if self.level != LEAF {
                out.u64(item.child);
            }
        }
        out.finish()
    }

    fn encoded_len(&self) -> usize {
        let (bounds, item) =
            if self.level == LEAF { (2 * ENTRY_BYTES, ENTRY_BYTES) } else { (0, ENTRY_BYTES + 8) };
        FRAME_BYTES + bounds + self.items.len() * item
    }

    /// Decodes a node of the given level. `until` is the end of its span, as the parent defines it.
    pub(super) fn decode(encoded: &[u8], level: u8, until: Key) -> Result<Self, NodeError> {
        let mut input = Reader::versioned(encoded, "calendar node", VERSION)?;
        let given = input.u8("level")?;
        match level {
            _ if given != level => Err(NodeError::WrongLevel { given, expected: level }),
            LEAF => decode_leaf(input),
            _ => decode_branch(input, level, until),
        }
    }

    /// Checks that the node has the level and span of this position in the tree.
    pub(super) fn check_place(&self, level: u8, span: Span) -> Result<(), NodeError> {
        if self.level != level {
            return Err(NodeError::WrongLevel { given: self.level, expected: level });
        }
        if self.span != span {
            return Err(NodeError::WrongSpan);
        }
        Ok(())
    }
}

fn decode_leaf(mut input: Reader<'_>) -> Result<Node, NodeError> {
    let span = Span { from: key(&mut input)?, until: key(&mut input)? };
    if span.from >= span.until || !span.from.is_entry() || !(span.until.is_entry() || span.until == Key::END)
    {
        return Err(NodeError::BadSpan);
    }
    let count = input.count("entries of a calendar leaf", ITEMS_MAX)?;
    let mut items = Vec::with_capacity(count);
    for _ in 0..count {
        items.push(Item { key: key(&mut input)?, child: 0 });
    }
    input.finish("calendar leaf")?;
    let node = Node { level: LEAF, span, items };
    check_order(&node)?;
    // The only leaf of a tree may hold any number of items.
    if count < ITEMS_MIN && span != Span::ALL {
        return Err(NodeError::TooFew { given: count, min: ITEMS_MIN });
    }
    Ok(node)
}

fn decode_branch(mut input: Reader<'_>, level: u8, until: Key) -> Result<Node, NodeError> {
    let count = input.count("children of a calendar branch", ITEMS_MAX)?;
    let mut items = Vec::with_capacity(count);
    for _ in 0..count {
        items.push(Item { key: key(&mut input)?, child: input.u64("child")? });
    }
    input.finish("calendar branch")?;
    // Two is the root's minimum. The parent checks the minimum of other branches.
    let [first, _, ..] = items[..] else {
        return Err(NodeError::TooFew { given: count, min: 2 });
    };
    if let Some(index) = items.iter().position(|item| item.child == ANCHOR) {
        return Err(NodeError::ChildIsAnchor { index });
    }
    let node = Node { level, span: Span { from: first.key, until }, items };
    check_order(&node)?;
    Ok(node)
}

fn key(input: &mut Reader<'_>) -> Result<Key, DecodeError> {
    Ok(Key(input.raw("key", ENTRY_BYTES)?.try_into().expect("raw returns the length asked for")))
}

fn check_order(node: &Node) -> Result<(), NodeError> {
    let mut before = None;
    for (index, Item { key, .. }) in node.items.iter().enumerate() {
        let ascends = before.map_or(node.span.from <= *key, |before| before < *key);
        if !ascends || !key.is_entry() {
            return Err(NodeError::KeyOutOfPlace { index });
        }
        before = Some(*key);
    }
    match before {
        Some(last) if last >= node.span.until => {
            Err(NodeError::KeyOutOfPlace { index: node.items.len() - 1 })
        }
        _ => Ok(()),
    }
}
