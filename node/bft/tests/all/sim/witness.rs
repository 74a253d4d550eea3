//! Writes down when each validator made which block final.

use crate::sim::{machine::Machine, run::milliseconds};
use almanac_consensus::{Sink, SinkError};
use almanac_exec::BlockOutput;
use almanac_primitives::{Block, TimestampMs};
use std::{
    sync::{Arc, Mutex},
    time::UNIX_EPOCH,
};

/// A block that a validator made final.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub validator: usize,
    pub number: u64,
    /// The block's own time.
    pub block_time: TimestampMs,
    /// The simulated time.
    pub at: TimestampMs,
}

pub type Log = Arc<Mutex<Vec<Seen>>>;

pub struct Witness {
    pub validator: usize,
    pub machine: Machine,
    pub log: Log,
}

impl Sink for Witness {
    fn finalized(&self, block: &Arc<Block>, _: &Arc<BlockOutput>) -> Result<(), SinkError> {
        let header = &block.header;
        let seen = Seen {
            validator: self.validator,
            number: header.number,
            block_time: header.timestamp,
            at: milliseconds(self.machine.true_time().duration_since(UNIX_EPOCH).unwrap()),
        };
        self.log.lock().unwrap().push(seen);
        Ok(())
    }

    fn reverted(&self, _: u64) -> Result<(), SinkError> {
        unreachable!("final blocks stay")
    }
}
