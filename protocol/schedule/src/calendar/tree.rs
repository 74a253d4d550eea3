//! Descends the tree in the state and reads each node once.

use super::{
    anchor::{ANCHOR, Anchor},
    entry::Key,
    node::{Node, NodeError, Span},
    queue::Queue,
};
use alloy_primitives::Bytes;
use almanac_primitives::{StateKey, StateRead, StateReadError, codec::DecodeError};
use std::{
    collections::{BTreeMap, btree_map::Entry},
    mem,
};

/// Why the calendar cannot be read. All but the first are broken invariants: the node must stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CalendarError {
    /// The store failed.
    #[error(transparent)]
    Read(#[from] StateReadError),
    /// The anchor cannot be read.
    #[error("the anchor of the calendar: {0}")]
    Anchor(DecodeError),
    /// A node that another one leads to is not there.
    #[error("node {node} of the calendar is not in the state")]
    Missing {
        /// Its number.
        node: u64,
    },
    /// A node is invalid at its position in the tree.
    #[error("node {node} of the calendar: {error}")]
    Node {
        /// Its number.
        node: u64,
        /// What is wrong with it.
        error: NodeError,
    },
    /// The anchor's count of a queue contradicts the leaves.
    #[error(
        "the anchor of the calendar counts {count} entries in the {queue:?} queue, which its leaves contradict"
    )]
    Miscounted {
        /// The queue.
        queue: Queue,
        /// The count in the head.
        count: u64,
    },
}

/// The tree in the state, with the nodes read so far.
pub(super) struct Tree<'a> {
    state: &'a dyn StateRead,
    pub anchor: Anchor,
    anchor_bytes: Option<Bytes>,
    nodes: BTreeMap<u64, Loaded>,
}

struct Loaded {
    node: Node,
    bytes: Option<Bytes>,
}

impl<'a> Tree<'a> {
    pub(super) fn open(state: &'a dyn StateRead) -> Result<Self, CalendarError> {
        let anchor_bytes = state.read(StateKey::Calendar(ANCHOR))?;
        let mut nodes = BTreeMap::new();
        let anchor = match &anchor_bytes {
            Some(bytes) => Anchor::decode(bytes).map_err(CalendarError::Anchor)?,
            None => {
                nodes.insert(Anchor::EMPTY.root, Loaded { node: Node::empty(), bytes: None });
                Anchor::EMPTY
            }
        };
        Ok(Self { state, anchor, anchor_bytes, nodes })
    }

    /// The node of a level whose span contains a key.
    pub(super) fn find(&mut self, level: u8, key: &Key) -> Result<(u64, &Node), CalendarError> {
        let (mut number, mut at, mut span) = (self.anchor.root, self.anchor.top(), Span::ALL);
        while at > level {
            (number, span) = self.load(number, at, span)?.child(key);
            at -= 1;
        }
        Ok((number, self.load(number, at, span)?))
    }

    /// Like [`Self::find`], but moves the items out: a pass that climbs the levels does not return to the node.
    /// to it.
    pub(super) fn take(&mut self, level: u8, key: &Key) -> Result<(u64, Node), CalendarError> {
        let (number, node) = self.find(level, key)?;
        let (level, span) = (node.level, node.span);
        let items = self.nodes.get_mut(&number).map_or(vec![], |loaded| mem::take(&mut loaded.node.items));
        Ok((number, Node { level, span, items }))
    }

    fn load(&mut self, number: u64, level: u8, span: Span) -> Result<&Node, CalendarError> {
        let loaded = match self.nodes.entry(number) {
            Entry::Occupied(seen) => seen.into_mut(),
            Entry::Vacant(space) => space.insert(read(self.state, number, level, span)?),
        };
        // A node with two parents matches the span of at most one of them.
        match loaded.node.check_place(level, span) {
            Ok(()) => Ok(&loaded.node),
            Err(error) => Err(CalendarError::Node { node: number, error }),
        }
    }

    /// The stored bytes of a node.
    pub(super) fn stored(&self, number: u64) -> Result<Bytes, CalendarError> {
        match self.bytes(number) {
            Some(bytes) => Ok(bytes),
            None => {
                self.state.read(StateKey::Calendar(number))?.ok_or(CalendarError::Missing { node: number })
            }
        }
    }

    /// The stored bytes of a node that has been read already.
    pub(super) fn bytes(&self, number: u64) -> Option<Bytes> {
        match number {
            ANCHOR => self.anchor_bytes.clone(),
            _ => self.nodes.get(&number).and_then(|loaded| loaded.bytes.clone()),
        }
    }
}

fn read(state: &dyn StateRead, number: u64, level: u8, span: Span) -> Result<Loaded, CalendarError> {
    let bytes = state.read(StateKey::Calendar(number))?.ok_or(CalendarError::Missing { node: number })?;
    let node = Node::decode(&bytes, level, span.until)
        .map_err(|error| CalendarError::Node { node: number, error })?;
    Ok(Loaded { node, bytes: Some(bytes) })
}
