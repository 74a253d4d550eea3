//! The metadata of a commit: its block, and the genesis.

use super::value::Value;
use alloy_primitives::{B256, Bytes, Keccak256};
use almanac_primitives::{
    StateKey,
    codec::{DecodeError, Reader, Writer},
};
use std::collections::BTreeMap;

/// Version of a store's files. Unknown versions are rejected.
const VERSION: u8 = 1;

/// The metadata of every commit, which is part of the root.
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

/// keccak-256 over each key's bytes, the value's length (u32) and the value, in key order. Uses plain instead
/// of hashed keys: every start computes this, and hashing a million keys first took as long as the rest.
pub(super) fn digest(genesis: &BTreeMap<StateKey, Bytes>) -> B256 {
    let mut hasher = Keccak256::new();
    for (key, value) in genesis {
        key.with_bytes(|bytes| hasher.update(bytes));
        hasher.update(u32::try_from(value.len()).expect("values are bounded far below 2^32").to_be_bytes());
        hasher.update(value);
    }
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_back_and_any_other_is_refused() {
        let stamp = Stamp { height: 0x0102, genesis: B256::repeat_byte(7) };
        let value = stamp.encode();
        let expected = [&[1, 0, 0, 0, 0, 0, 0, 1, 2][..], &[7; 32]].concat();
        assert_eq!(value.0, expected);
        assert_eq!(Stamp::decode(&value), Ok(stamp));
        for length in 0..expected.len() {
            assert!(Stamp::decode(&Value(expected[..length].to_vec().into())).is_err(), "{length} bytes");
        }
        assert!(Stamp::decode(&Value([&expected[..], &[0]].concat().into())).is_err());
        let newer = [&[2], &expected[1..]].concat();
        let error = DecodeError::UnknownVersion { what: "state", given: 2, known: 1 };
        assert_eq!(Stamp::decode(&Value(newer.into())), Err(error));
    }

    #[test]
    fn every_difference_between_geneses_shows_in_the_digest() {
        let of = |entries: &[(u64, &'static str)]| {
            digest(&entries.iter().map(|(n, text)| (StateKey::Calendar(*n), Bytes::from(*text))).collect())
        };
        let digests = [
            of(&[]),
            of(&[(1, "")]),
            of(&[(2, "")]),
            of(&[(1, "a")]),
            of(&[(1, "a"), (2, "")]),
            of(&[(1, ""), (2, "a")]),
            of(&[(1, "a"), (2, "a")]),
        ];
        let distinct: std::collections::BTreeSet<_> = digests.iter().collect();
        assert_eq!(distinct.len(), digests.len());
    }
}
