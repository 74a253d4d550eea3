//! Node 0, the head: the root of the tree, and for each queue the number of entries and the place of the first.

use super::queue::Queue;
use almanac_primitives::codec::{DecodeError, Reader, Writer};

/// The number under which the anchor is stored.
pub(super) const ANCHOR: u64 = 0;

/// Upper bound on levels: a tree of 2^64 entries with minimally filled nodes has fewer.
pub(super) const LEVELS_MAX: u8 = 16;

const VERSION: u8 = 4;

/// The first place of an empty queue.
pub(super) const NEVER: u64 = u64::MAX;

const BYTES: usize = 2 + 8 * (2 + 2 * Queue::ALL.len());

/// What a reader needs before it can descend the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Anchor {
    /// Levels of the tree; one where the root is a leaf.
    pub levels: u8,
    /// The number of the root node.
    pub root: u64,
    /// The next node number to assign.
    pub next: u64,
    /// Entries per queue, in the order of [`Queue::ALL`].
    pub counts: [u64; Queue::ALL.len()],
    /// The place of the first entry of each queue. A block with nothing due reads nothing else.
    pub firsts: [u64; Queue::ALL.len()],
}

impl Anchor {
    /// The anchor of a calendar that nothing has been written to: its root is an empty leaf.
    pub(super) const EMPTY: Self = Self {
        levels: 1,
        root: 1,
        next: 2,
        counts: [0; Queue::ALL.len()],
        firsts: [NEVER; Queue::ALL.len()],
    };

    /// The level of the root. Leaves are on level 0.
    pub(super) fn top(&self) -> u8 {
        self.levels - 1
    }

    pub(super) fn count(&self, queue: Queue) -> u64 {
        self.counts[queue.place()]
    }

    pub(super) fn first(&self, queue: Queue) -> u64 {
        self.firsts[queue.place()]
    }

    /// Stored form: version, levels, root, next number, a count per queue, a first place per queue.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::versioned(VERSION, BYTES);
        out.u8(self.levels);
        out.u64(self.root);
        out.u64(self.next);
        self.counts.iter().for_each(|count| out.u64(*count));
        self.firsts.iter().for_each(|first| out.u64(*first));
        out.finish()
    }

    /// Reads the stored form.
    pub(super) fn decode(encoded: &[u8]) -> Result<Self, DecodeError> {
        let mut input = Reader::versioned(encoded, "calendar anchor", VERSION)?;
        let levels = input.u8("levels")?;
        if !(1..=LEVELS_MAX).contains(&levels) {
            return Err(DecodeError::UnknownValue { what: "levels", given: levels.into() });
        }
        let (root, next) = (input.u64("root")?, input.u64("next number")?);
        if root == ANCHOR || root >= next {
            return Err(DecodeError::UnknownValue { what: "root", given: root });
        }
        let mut counts = [0; Queue::ALL.len()];
        for count in &mut counts {
            *count = input.u64("entries of a queue")?;
        }
        let mut firsts = [NEVER; Queue::ALL.len()];
        for first in &mut firsts {
            *first = input.u64("first place of a queue")?;
        }
        input.finish("calendar anchor")?;
        Ok(Self { levels, root, next, counts, firsts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_sides_of_each_bound() {
        let decoded = |anchor: Anchor| Anchor::decode(&anchor.encode());
        for levels in [1, LEVELS_MAX] {
            let anchor = Anchor { levels, ..Anchor::EMPTY };
            assert_eq!(decoded(anchor), Ok(anchor));
        }
        for levels in [0, LEVELS_MAX + 1] {
            let refused = DecodeError::UnknownValue { what: "levels", given: levels.into() };
            assert_eq!(decoded(Anchor { levels, ..Anchor::EMPTY }), Err(refused));
        }
        for root in [0, 7] {
            let refused = DecodeError::UnknownValue { what: "root", given: root };
            assert_eq!(decoded(Anchor { root, next: 7, ..Anchor::EMPTY }), Err(refused));
        }
        let last = Anchor { root: 6, next: 7, ..Anchor::EMPTY };
        assert_eq!(decoded(last), Ok(last));
        let long = [&Anchor::EMPTY.encode()[..], &[0]].concat();
        assert_eq!(
            Anchor::decode(&long),
            Err(DecodeError::TrailingBytes { what: "calendar anchor", extra: 1 })
        );
    }

    proptest! {
        #[test]
        fn one_anchor_has_one_encoding(mut bytes in proptest::collection::vec(any::<u8>(), 0..140), plausible: bool) {
            if plausible {
                bytes.resize(BYTES, 0);
                bytes[..2].copy_from_slice(&[VERSION, 3]);
            }
            if let Ok(anchor) = Anchor::decode(&bytes) {
                prop_assert_eq!(anchor.encode(), bytes);
            }
        }
    }
}
