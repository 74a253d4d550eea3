//! A single leaf, for verifiers that have only the leaf and a proof of its state value.

use super::{
    entry::{Entry, Key},
    node::{Node, NodeError, Span},
    queue::Queue,
};
use almanac_primitives::TimestampMs;

/// All entries of the calendar within a span: an entry of the span that is not in the leaf does not exist.
///
/// Leaves do not overlap, and together they cover every position. A calendar that was never written has no
/// leaves.
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

    /// Whether the entry lies in this leaf's span: it is in this leaf, or not in the calendar.
    pub fn answers_for(&self, entry: &Entry) -> bool {
        (self.span.from..self.span.until).contains(&entry.key())
    }

    /// Whether this leaf begins where the other ends, so that no entry can lie between them.
    pub fn follows(&self, other: &Self) -> bool {
        self.span.from == other.span.until
    }
}

/// Why leaves do not prove everything that is due in a span.
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
    /// No leaf was given, or the first one begins after the span does.
    #[error("no leaf answers for the beginning of the span, {from}: something could be due there")]
    NoBeginning {
        /// The beginning.
        from: TimestampMs,
    },
    /// There is a gap between two leaves.
    #[error("leaf {index} does not begin where the one before it ends: something could be due between them")]
    Gap {
        /// The position of the second leaf.
        index: usize,
    },
    /// The last leaf ends before the span does.
    #[error("no leaf answers for the end of the span, {until}: something could be due there")]
    NoEnd {
        /// The end.
        until: TimestampMs,
    },
}

/// All entries of a queue that are due within a span (both ends included), given leaves in order. Fails if the
/// leaves do not cover the whole span.
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
