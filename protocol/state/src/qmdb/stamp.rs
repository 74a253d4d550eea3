//! What a commit says about itself: the block that it belongs to, and the genesis that everything began with.

use super::value::Value;
use alloy_primitives::{B256, Bytes, Keccak256};
use almanac_primitives::{
    StateKey,
    codec::{DecodeError, Reader, Writer},
};
use std::collections::BTreeMap;

/// The version of a store's files. One that this build does not know is refused.
const VERSION: u8 = 1;

/// Goes with every commit as its metadata, and so into the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Height of the block.
    pub(super) height: u64,
    /// Digest of the genesis state.
    pub(super) genesis: B256,
}

impl Stamp {
    /// Version, height, genesis.
    pub(super) fn encode(self) -> Value {
        let mut out = Writer::versioned(VERSION, 41);
        out.u64(self.height);
        out.b256(self.genesis);
        Value(out.finish().into())
    }

    pub(super) fn decode(metadata: &Value) -> Result<Self, DecodeError> {
        let mut input = Reader::versioned(&metadata.0, "state", VERSION)?;
        let stamp = Self { height: input.u64("height")?, genesis: input.b256("genesis")? };
        input.finish("commit")?;
        Ok(stamp)
    }
}

/// keccak-256 of each value behind its hashed key and its length (u32), in key order.
pub(super) fn digest(genesis: &BTreeMap<StateKey, Bytes>) -> B256 {
    let mut hasher = Keccak256::new();
    for (key, value) in genesis {
        hasher.update(key.hashed());
        hasher.update(u32::try_from(value.len()).expect("values are bounded far below 2^32").to_be_bytes());
        hasher.update(value);
    }
    hasher.finalize()
}
