//! A leaf by itself, for whoever has it with a proof of its state value and nothing else.

use super::{
    entry::{Entry, Key},
    node::{Node, NodeError, Span},
};
use almanac_primitives::{Lane, TimestampMs};

/// All entries of the calendar within a span: those that it has are there, and no others are.
///
/// Leaves do not overlap, and together they answer for everything. A calendar that was never written to has
/// none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    span: Span,
    entries: Vec<Entry>,
}

impl Leaf {
    /// Reads the state value of a leaf.
    pub fn decode(encoded: &[u8]) -> Result<Self, NodeError> {
        Ok(Self::of(&Node::decode(encoded, 0, Key::END)?))
    }

    pub(super) fn of(node: &Node) -> Self {
        Self { span: node.span, entries: node.items.iter().map(|item| item.key.entry()).collect() }
    }

    /// Its entries, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether the entry would be in this leaf if it were in the calendar.
    pub fn answers_for(&self, entry: &Entry) -> bool {
        (self.span.from..self.span.until).contains(&entry.key())
    }

    /// Whether the leaf tells everything that a lane has due at these times, both included.
    pub fn answers_for_times(&self, lane: Lane, from: TimestampMs, until: TimestampMs) -> bool {
        self.span.from <= Key::at(lane, from) && Key::after(lane, until) <= self.span.until
    }

    /// Whether this leaf begins where another ends, so that nothing can be between them.
    pub fn follows(&self, other: &Self) -> bool {
        self.span.from == other.span.until
    }
}
