//! Checks the whole calendar by reading every node. For tests and for audits of a state.

use super::{
    Calendar,
    anchor::NEVER,
    entry::Key,
    node::{ITEMS_MIN, Node, Span},
    queue::Queue,
    tree::{CalendarError, Tree},
};
use std::collections::BTreeSet;

/// What a calendar consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Census {
    /// Levels of the tree.
    pub levels: u8,
    /// The numbers of its nodes, without 0, the head's. The state must hold no other nodes: callers that can
    /// list the state compare.
    pub nodes: BTreeSet<u64>,
    /// Entries in all queues.
    pub entries: u64,
}

/// What is wrong with a calendar.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// It cannot be read.
    #[error(transparent)]
    Calendar(#[from] CalendarError),
    /// A node has fewer than the minimum number of items, and is not the only one on its level.
    #[error("node {node} has {given} items, at least {min} are needed")]
    TooFew {
        /// Its number.
        node: u64,
        /// Its items.
        given: usize,
        /// Items needed.
        min: usize,
    },
    /// The anchor's first place of a queue is not that of its first entry.
    #[error("the anchor says that the {queue:?} queue begins at {given}, its first entry is at {found}")]
    WrongFirst {
        /// The queue.
        queue: Queue,
        /// What the anchor says.
        given: u64,
        /// The place in the leaves; the last possible place if the queue is empty.
        found: u64,
    },
    /// A node has a number that the head has not assigned yet.
    #[error("node {node} has a number that is not below the next, {next}")]
    NotGivenOut {
        /// Its number.
        node: u64,
        /// The anchor's next number.
        next: u64,
    },
}

impl Calendar<'_> {
    /// Checks every node: order, bounds, fill, counts, numbers. Its cost grows with the calendar.
    pub fn check_all(&self) -> Result<Census, CheckError> {
        let mut tree = Tree::open(self.state)?;
        let (mut nodes, mut counts) = (BTreeSet::new(), [0; Queue::ALL.len()]);
        let mut firsts = [NEVER; Queue::ALL.len()];
        for level in (0..tree.anchor.levels).rev() {
            let mut at = Key::FIRST;
            while at != Key::END {
                let (number, node) = tree.find(level, &at)?;
                check_fill(number, node)?;
                if level == 0 {
                    for entry in node.items.iter().map(|item| item.key.entry()) {
                        let place = entry.queue.place();
                        counts[place] += 1;
                        firsts[place] = firsts[place].min(entry.at);
                    }
                }
                at = node.span.until;
                // A node with two parents has been rejected already: its span matches at most one of them.
                nodes.insert(number);
            }
        }
        for (queue, counted) in Queue::ALL.into_iter().zip(counts) {
            let count = tree.anchor.count(queue);
            if count != counted {
                return Err(CalendarError::Miscounted { queue, count }.into());
            }
        }
        for (queue, found) in Queue::ALL.into_iter().zip(firsts) {
            let given = tree.anchor.first(queue);
            if given != found {
                return Err(CheckError::WrongFirst { queue, given, found });
            }
        }
        let next = tree.anchor.next;
        if let Some(&node) = nodes.last().filter(|last| **last >= next) {
            return Err(CheckError::NotGivenOut { node, next });
        }
        Ok(Census { levels: tree.anchor.levels, nodes, entries: counts.iter().sum() })
    }
}

fn check_fill(number: u64, node: &Node) -> Result<(), CheckError> {
    let (given, min) = (node.items.len(), ITEMS_MIN);
    if node.span != Span::ALL && given < min {
        return Err(CheckError::TooFew { node: number, given, min });
    }
    Ok(())
}
