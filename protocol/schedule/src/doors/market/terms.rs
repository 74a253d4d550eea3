//! What a scheduled transaction is bound to, beside its call: its time, its bid, and the names under which it is found.

use alloy_primitives::{Address, B256};
use almanac_primitives::{
    Gas, ScheduleId, TimestampMs, Wei,
    codec::{DecodeError, Reader, Writer},
    params::MARKET_STEP_MS,
};
use sha3::{Digest as _, Sha3_256};

/// First byte of what a transaction's id is the hash of.
const NAME_VERSION: u8 = 1;

/// The terms of a scheduled transaction, fixed when it is inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BidTerms {
    /// The time that its sender asked for.
    pub scheduled_ms: u64,
    /// The most that it pays per gas.
    pub bid: u64,
    /// Blocks that it waits for a price.
    pub expiry_blocks: u32,
    /// Its sender's epoch at insert: a later one has cancelled it (AIP125-22).
    pub epoch: u64,
    /// Its id by content (AIP125-03).
    pub txn_id: B256,
}

/// The key of a scheduled transaction, in AIP-125's order (AIP125-03).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// When it is due, in units of 100 ms.
    pub time: u64,
    /// The distance of its bid from the highest possible one.
    pub gas_priority: u64,
    /// Its id by content.
    pub txn_id: B256,
}

/// A scheduled transaction as its id names it.
#[derive(Clone, Copy, Debug)]
pub struct Named<'t> {
    /// The schedule's id, which makes two equal transactions two (AIP125-07).
    pub id: ScheduleId,
    /// Who inserts it.
    pub sender: Address,
    /// The time that was asked for.
    pub scheduled_ms: u64,
    /// Gas that its run may use.
    pub gas_limit: Gas,
    /// The most that it pays per gas.
    pub bid: u64,
    /// Whether the call comes from the sender.
    pub passes_signer: bool,
    /// The contract that is called.
    pub to: Address,
    /// Value that goes with the call.
    pub value: Wei,
    /// Calldata.
    pub input: &'t [u8],
    /// Blocks that it waits for a price.
    pub expiry_blocks: u32,
}

impl Named<'_> {
    /// SHA3-256 (FIPS 202) of the canonical encoding: version, schedule id, then the fields in order.
    pub fn txn_id(&self) -> B256 {
        let mut out = Writer::versioned(NAME_VERSION, 128 + self.input.len());
        out.u64(self.id.0);
        out.address(self.sender);
        out.u64(self.scheduled_ms);
        out.u64(self.gas_limit.0);
        out.u64(self.bid);
        out.u8(self.passes_signer.into());
        out.address(self.to);
        out.u256(self.value.0);
        out.bytes(self.input);
        out.u32(self.expiry_blocks);
        B256::from_slice(&Sha3_256::digest(out.finish()))
    }
}

impl BidTerms {
    /// Its key.
    pub fn key(&self) -> Key {
        Key {
            time: self.scheduled_ms.div_ceil(MARKET_STEP_MS),
            gas_priority: u64::MAX - self.bid,
            txn_id: self.txn_id,
        }
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            scheduled_ms: input.u64("scheduled time")?,
            bid: input.u64("bid")?,
            expiry_blocks: input.u32("expiry")?,
            epoch: input.u64("epoch")?,
            txn_id: input.b256("transaction id")?,
        })
    }
}

/// When something that was scheduled for a time is due: never before it, less than 100 ms after it (AIP125-04).
pub(super) fn due(scheduled_ms: u64) -> TimestampMs {
    TimestampMs(scheduled_ms.div_ceil(MARKET_STEP_MS).saturating_mul(MARKET_STEP_MS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::{U256, b256};

    fn named(input: &[u8]) -> Named<'_> {
        Named {
            id: ScheduleId(0x0102_0304_0506_0708),
            sender: Address::repeat_byte(0xaa),
            scheduled_ms: 1_700_000_000_001,
            gas_limit: Gas(100_000),
            bid: 1_000_000_000,
            passes_signer: true,
            to: Address::repeat_byte(0xbb),
            value: Wei(U256::from(7)),
            input,
            expiry_blocks: 100,
        }
    }

    /// The hash is FIPS 202's SHA3, not Ethereum's Keccak.
    #[test]
    fn aip125_03_the_hash_is_sha3_256() {
        let empty = b256!("a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a");
        assert_eq!(B256::from_slice(&Sha3_256::digest([])), empty, "FIPS 202's own vector");
    }

    #[test]
    fn aip125_03_every_field_is_in_the_id() {
        let base = named(b"abc");
        let others = [
            Named { id: ScheduleId(1), ..base },
            Named { sender: Address::ZERO, ..base },
            Named { scheduled_ms: 0, ..base },
            Named { gas_limit: Gas(0), ..base },
            Named { bid: 0, ..base },
            Named { passes_signer: false, ..base },
            Named { to: Address::ZERO, ..base },
            Named { value: Wei::ZERO, ..base },
            Named { input: b"abd", ..base },
            Named { expiry_blocks: 0, ..base },
        ];
        for other in others {
            assert_ne!(other.txn_id(), base.txn_id());
        }
        assert_eq!(named(b"abc").txn_id(), base.txn_id());
    }

    #[test]
    fn aip125_04_due_times_are_rounded_up() {
        let cases = [(0, 0), (1, 100), (99, 100), (100, 100), (101, 200), (u64::MAX, u64::MAX)];
        assert!(cases.iter().all(|(given, expected)| due(*given) == TimestampMs(*expected)));
    }
}
