//! Finds the newest final block with its own certificate, to answer peers.

use crate::{engine::Marshal, replica::Replica, sync::Floor};
use almanac_state::StateStore;
use commonware_codec::Encode as _;
use commonware_consensus::{marshal::Identifier, types::Height};
use std::{ops::RangeInclusive, sync::Arc};

/// Blocks below the last one that are searched for a certificate. Without faults each block has its own.
const LOOK_BACK: u64 = 256;

/// Blocks to search again, because their certificates may have arrived later.
const LOOK_AGAIN: u64 = 4;

/// Remembers how far it has searched: a node that catches up has many blocks without a certificate, and
/// requests must not cause it to search all of them each time.
pub(crate) struct Newest<S: StateStore> {
    replica: Arc<Replica<S>>,
    marshal: Marshal,
    looked_up_to: u64,
    found: Option<Floor>,
}

impl<S: StateStore<Batch: Send + 'static>> Newest<S> {
    pub(crate) fn new(replica: Arc<Replica<S>>, marshal: Marshal) -> Self {
        Self { replica, marshal, looked_up_to: 0, found: None }
    }

    /// The height of the chain.
    pub(crate) fn height(&self) -> u64 {
        self.replica.tip().header.number
    }

    /// The newest one committed here, or `None` if none is known.
    pub(crate) async fn find(&mut self) -> Option<&Floor> {
        let height = self.height();
        let known = self.found.as_ref().map_or(0, |floor| floor.header.number);
        for number in to_look_at(height, self.looked_up_to, known).rev().map(Height::new) {
            let Some(signed) = self.marshal.get_finalization(number).await else { continue };
            let block = self.marshal.get_block(Identifier::Height(number)).await?;
            let header = block.inner().block().header.clone();
            self.found = Some(Floor { header, certificate: signed.encode().into() });
            break;
        }
        self.looked_up_to = height;
        self.found.as_ref()
    }
}

/// The blocks that may have a newer certificate than the known one.
fn to_look_at(height: u64, looked_up_to: u64, known: u64) -> RangeInclusive<u64> {
    let new = looked_up_to.min(height.saturating_sub(LOOK_AGAIN));
    height.saturating_sub(LOOK_BACK).max(known).max(new) + 1..=height
}

#[cfg(test)]
mod tests {
    use super::to_look_at;

    /// Both sides of each bound.
    #[test]
    fn no_block_is_looked_at_twice_but_the_last() {
        assert!(to_look_at(0, 0, 0).is_empty(), "block 0 needs none");
        assert_eq!(to_look_at(10, 0, 0), 1..=10);
        assert_eq!(to_look_at(1_000, 0, 0), 745..=1_000, "at most so many");
        assert_eq!(to_look_at(1_000, 990, 0), 991..=1_000, "those that are new");
        assert_eq!(to_look_at(1_000, 1_000, 0), 997..=1_000, "and the last four again");
        assert_eq!(to_look_at(1_000, 1_000, 998), 999..=1_000);
        assert!(to_look_at(1_000, 1_000, 1_000).is_empty(), "none where the last has one");
    }
}
