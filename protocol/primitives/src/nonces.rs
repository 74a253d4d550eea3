//! What the state keeps about orderless transactions that were committed (ORDERLESS-02 to -06).
//!
//! ```text
//! Nonce(sender, nonce)      expiration                   refuses the pair until 130 s after that
//! NonceLog(second, 0)       number of parts              all that expires in a second …
//! NonceLog(second, 1 … n)   (sender, nonce) …            … in parts that no later block changes
//! NonceSweep                second, part, offset, seconds left
//! ```
//!
//! The log gives the order in which entries are collected. An entry goes only if its expiration is still the log's
//! second: a later transaction may have taken the pair again.

use crate::{
    codec::{DecodeError, Reader, Writer},
    params::NONCE_LOG_PART_ENTRIES_MAX,
};
use alloy_primitives::{Address, Bytes};

const VERSION: u8 = 1;
const ENTRY_BYTES: usize = 28;

/// The name of an orderless transaction while it can be replayed.
pub type Pair = (Address, u64);

/// How far the log was collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NonceSweep {
    /// The second to go on with.
    pub second: u64,
    /// The part of its log, from 1.
    pub part: u64,
    /// Entries of the part that were looked at.
    pub offset: u32,
    /// Seconds with a log, this one included. At 0 there is nothing to collect, and no value.
    pub seconds_left: u64,
}

impl NonceSweep {
    /// Stored form.
    pub fn encode(&self) -> Bytes {
        let mut out = Writer::versioned(VERSION, 29);
        out.u64(self.second);
        out.u64(self.part);
        out.u32(self.offset);
        out.u64(self.seconds_left);
        out.finish().into()
    }

    /// Reads the stored form.
    pub fn decode(encoded: &[u8]) -> Result<Self, DecodeError> {
        let mut input = Reader::versioned(encoded, "nonce sweep", VERSION)?;
        let sweep = Self {
            second: input.u64("second")?,
            part: input.u64("part")?,
            offset: input.u32("offset")?,
            seconds_left: input.u64("seconds left")?,
        };
        input.finish("nonce sweep")?;
        Ok(sweep)
    }
}

/// Stored form of an expiration, and of a number of parts.
pub fn encode_number(number: u64) -> Bytes {
    Bytes::copy_from_slice(&number.to_be_bytes())
}

/// Reads an expiration, or a number of parts.
pub fn decode_number(encoded: &[u8]) -> Result<u64, DecodeError> {
    let mut input = Reader::new(encoded);
    let number = input.u64("number")?;
    input.finish("number")?;
    Ok(number)
}

/// Stored form of a part of the log.
pub fn encode_log(entries: &[Pair]) -> Bytes {
    let mut out = Writer::versioned(VERSION, 1 + ENTRY_BYTES * entries.len());
    for (sender, nonce) in entries {
        out.address(*sender);
        out.u64(*nonce);
    }
    out.finish().into()
}

/// Reads a part of the log.
pub fn decode_log(encoded: &[u8]) -> Result<Vec<Pair>, DecodeError> {
    let mut input = Reader::versioned(encoded, "nonce log", VERSION)?;
    let count = (encoded.len() - 1).div_ceil(ENTRY_BYTES);
    if count > NONCE_LOG_PART_ENTRIES_MAX {
        return Err(DecodeError::TooLong {
            what: "nonce log",
            given: count,
            max: NONCE_LOG_PART_ENTRIES_MAX,
        });
    }
    let entries = (0..count).map(|_| Ok((input.address("sender")?, input.u64("nonce")?)));
    let entries = entries.collect::<Result<_, DecodeError>>()?;
    input.finish("nonce log")?;
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_survive_storage_and_have_one_encoding(
            entries in prop::collection::vec((any::<[u8; 20]>().prop_map(Address::from), any::<u64>()), 0..20),
            (second, part, offset, seconds_left) in any::<(u64, u64, u32, u64)>(),
            bytes in prop::collection::vec(any::<u8>(), 0..90),
        ) {
            prop_assert_eq!(decode_log(&encode_log(&entries)), Ok(entries));
            let sweep = NonceSweep { second, part, offset, seconds_left };
            prop_assert_eq!(NonceSweep::decode(&sweep.encode()), Ok(sweep));
            prop_assert_eq!(decode_number(&encode_number(second)), Ok(second));
            if let Ok(entries) = decode_log(&bytes) {
                prop_assert_eq!(encode_log(&entries), bytes);
            }
        }
    }
}
