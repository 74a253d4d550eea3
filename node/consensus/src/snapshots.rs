//! Snapshots of a developer chain: state, blocks, pool and clock.
//!
//! ```text
//! committed ── 40 │ 41 ── 42 ── 43 (tip)        snapshots at 40 and 42
//!                 └── held, on top of each other, until no snapshot is below them
//! ```
//!
//! A commit cannot be undone, so while there is a snapshot, blocks are held: executed, sealed and served, but not
//! committed. A revert drops the blocks held above the snapshot; the batches below remain, with the same roots. Held
//! blocks become durable when the last snapshot below them is gone, or when the sequencer stops.

use crate::{
    application::{MadeBlock, Tip},
    solo::TimeSetting,
};
use almanac_mempool::Pool;
use std::collections::{BTreeMap, VecDeque};

/// Most blocks to hold. Beyond that the oldest are committed and snapshots at them are dropped. Reads and roots
/// go through every held block, so their number bounds the cost of a block.
pub const HELD_BLOCKS_MAX: usize = 1_024;

/// Most snapshots to keep: a test suite takes one per test and nests a few.
pub const SNAPSHOTS_MAX: usize = 1_024;

/// The held blocks, and the points to revert to.
pub(crate) struct Snapshots<B> {
    held: VecDeque<MadeBlock<B>>,
    points: BTreeMap<u64, Point<B>>,
    next_id: u64,
}

/// The sequencer's state when a snapshot was taken.
pub(crate) struct Point<B> {
    pub(crate) tip: Tip<B>,
    pub(crate) pool: Pool,
    pub(crate) time: TimeSetting,
}

impl<B> Default for Snapshots<B> {
    fn default() -> Self {
        // Ids count from 1, as tools expect.
        Self { held: VecDeque::new(), points: BTreeMap::new(), next_id: 1 }
    }
}

impl<B> Snapshots<B> {
    /// Whether the next block must be held.
    pub(crate) fn is_holding(&self) -> bool {
        !self.points.is_empty()
    }

    /// Stores a point, and drops the oldest if there are too many.
    pub(crate) fn take(&mut self, point: Point<B>) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.points.insert(id, point);
        if self.points.len() > SNAPSHOTS_MAX {
            self.points.pop_first();
        }
        id
    }

    /// The height of the point with this id.
    pub(crate) fn height(&self, id: u64) -> Option<u64> {
        self.points.get(&id).map(|point| point.tip.header.number)
    }

    /// Reverts to a point: removes it and all later ones, and the blocks held above it.
    pub(crate) fn go_back(&mut self, id: u64) -> Option<Point<B>> {
        let mut later = self.points.split_off(&id);
        let Some(point) = later.remove(&id) else {
            self.points.append(&mut later);
            return None;
        };
        let height = point.tip.header.number;
        self.held.retain(|made| made.tip.header.number <= height);
        Some(point)
    }

    /// Holds a block.
    pub(crate) fn hold(&mut self, made: MadeBlock<B>) {
        self.held.push_back(made);
    }

    /// The oldest held block that need not be held any longer.
    pub(crate) fn release(&mut self) -> Option<MadeBlock<B>> {
        let oldest = self.held.front()?.tip.header.number;
        let is_full = self.held.len() > HELD_BLOCKS_MAX;
        if is_full {
            self.points.retain(|_, point| point.tip.header.number >= oldest);
        }
        let is_needed = self.points.values().any(|point| point.tip.header.number < oldest);
        if is_needed { None } else { self.held.pop_front() }
    }

    /// All held blocks, oldest first, for shutdown.
    pub(crate) fn release_all(&mut self) -> impl Iterator<Item = MadeBlock<B>> {
        self.points.clear();
        self.held.drain(..)
    }
}
