#![doc = include_str!("../README.md")]

use almanac_consensus::{Sink, SinkError, TipState};
use almanac_exec::BlockOutput;
use almanac_index::{Index, Parties};
use almanac_primitives::{Block, StateRead};
use std::sync::Arc;

/// The index as a consumer of committed blocks.
pub struct IndexFeed(pub Arc<Index>);

impl Sink for IndexFeed {
    fn finalized(&self, block: &Arc<Block>, output: &Arc<BlockOutput>) -> Result<(), SinkError> {
        let parties = output
            .transactions
            .iter()
            .map(|executed| Parties {
                from: executed.from(),
                to: executed.to(),
                run: executed.run().cloned(),
            })
            .collect();
        let applied = self.0.apply(block, &output.receipts, parties, &output.events, &output.diff);
        applied.map_err(|error| SinkError {
            sink: "the index",
            number: block.header.number,
            reason: error.to_string(),
        })
    }

    fn can_revert(&self, height: u64) -> bool {
        height >= self.0.oldest_state()
    }

    fn reverted(&self, height: u64) -> Result<(), SinkError> {
        self.0.revert_to(height).map_err(|error| SinkError {
            sink: "the index",
            number: height,
            reason: error.to_string(),
        })
    }
}

impl TipState for IndexFeed {
    fn tip_state(&self) -> Box<dyn StateRead + Send> {
        Box::new(self.0.tip_state())
    }
}
