//! A leaf by itself, for whoever has it with a proof of its state value and nothing else.

use super::{
    entry::{Entry, Key},
    node::{Node, NodeError, Span},
    queue::Queue,
};
use almanac_primitives::TimestampMs;

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

    /// Whether this leaf begins where another ends, so that nothing can be between them.
    pub fn follows(&self, other: &Self) -> bool {
        self.span.from == other.span.until
    }
}

/// Why leaves do not tell everything that is due at some times.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpanError {
    /// The span ends before it begins.
    #[error("the span ends at {until}, before it begins at {from}")]
    Backwards {
        /// Where it begins.
        from: TimestampMs,
        /// Where it ends.
        until: TimestampMs,
    },
    /// No leaf is there, or the first begins too late.
    #[error("no leaf answers for the beginning of the span, {from}: something could be due there")]
    NoBeginning {
        /// The beginning.
        from: TimestampMs,
    },
    /// Something could be between two leaves.
    #[error("leaf {index} does not begin where the one before it ends: something could be due between them")]
    Gap {
        /// The position of the second.
        index: usize,
    },
    /// The last leaf ends too early.
    #[error("no leaf answers for the end of the span, {until}: something could be due there")]
    NoEnd {
        /// The end.
        until: TimestampMs,
    },
}

/// All that a queue has due at these times, both included, as leaves in order tell it; an error where there is a time
/// that they do not answer for.
pub fn due_in(
    leaves: &[Leaf],
    queue: Queue,
    from: TimestampMs,
    until: TimestampMs,
) -> Result<Vec<Entry>, SpanError> {
    if from > until {
        return Err(SpanError::Backwards { from, until });
    }
    if leaves.first().is_none_or(|first| first.span.from > Key::at(queue, from.0)) {
        return Err(SpanError::NoBeginning { from });
    }
    if let Some(before) = leaves.windows(2).position(|pair| !pair[1].follows(&pair[0])) {
        return Err(SpanError::Gap { index: before + 1 });
    }
    if leaves.last().is_none_or(|last| last.span.until < Key::after(queue, until.0)) {
        return Err(SpanError::NoEnd { until });
    }
    let entries = leaves.iter().flat_map(Leaf::entries).copied();
    Ok(entries.filter(|entry| entry.queue == queue && (from..=until).contains(&entry.due())).collect())
}
