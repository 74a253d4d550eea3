//! Transactions that nobody signs: the prologue of a block, and runs of schedules.

use crate::{
    codec::{DecodeError, Reader, Writer},
    ids::ScheduleId,
    params::RUN_INPUT_BYTES_MAX,
    units::{Gas, GasPrice, TimestampMs, Wei},
};
use alloy_primitives::{Address, B256, Bytes, TxHash, keccak256};

/// EIP-2718 type of the prologue. Far from the types that Ethereum hands out in order.
pub const PROLOGUE_TYPE: u8 = 0x70;
/// EIP-2718 type of a run.
pub const RUN_TYPE: u8 = 0x71;

const VERSION: u8 = 1;

/// How a due run gets into a block, in the order in which lanes are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Lane {
    /// Booked capacity: FLIP-330 High and Medium, timed Hedera schedules. Before user transactions.
    Reserved = 0,
    /// ARC-21 cron. Before user transactions, out of the shared gas.
    Cron = 1,
    /// AIP-125: merged into the user transactions by price.
    Market = 2,
    /// FLIP-330 Low: after user transactions, with what reserved work left.
    Spare = 3,
    /// The schedule service: directly after the transaction that brings the last signature, in its gas.
    Signed = 4,
}

impl Lane {
    /// All lanes.
    pub const ALL: [Self; 5] = [Self::Reserved, Self::Cron, Self::Market, Self::Spare, Self::Signed];

    /// The lanes whose runs a block selects by time, in the order in which it serves them.
    pub const SERVED: [Self; 4] = [Self::Reserved, Self::Cron, Self::Market, Self::Spare];

    /// The lane with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|lane| *lane as u8 == number)
    }
}

/// Links a run to the schedule that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScheduleRef {
    /// The schedule.
    pub schedule: ScheduleId,
    /// Which of its runs, from 0. (schedule, number) happens at most once, ever.
    pub number: u64,
}

/// One execution of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunTransaction {
    /// The schedule and which of its runs this is.
    pub schedule_ref: ScheduleRef,
    /// The lane that it came through.
    pub lane: Lane,
    /// `msg.sender` and `tx.origin` of the call: the owner, or the door.
    pub from: Address,
    /// The contract that is called.
    pub to: Address,
    /// Value that goes with the call.
    pub value: Wei,
    /// Calldata.
    pub input: Bytes,
    /// Gas that the run may use, intrinsic gas included.
    pub gas_limit: Gas,
    /// Price per gas, as the receipt shows it.
    pub gas_price: GasPrice,
}

/// The system transaction that opens a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrologueTransaction {
    /// The block it opens.
    pub number: u64,
    /// That block's time.
    pub timestamp: TimestampMs,
    /// That block's parent.
    pub parent_hash: B256,
}

impl RunTransaction {
    /// Canonical encoding: type byte, version, fixed-width fields, calldata.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::versioned(RUN_TYPE, 160 + self.input.len());
        out.u8(VERSION);
        out.u64(self.schedule_ref.schedule.0);
        out.u64(self.schedule_ref.number);
        out.u8(self.lane as u8);
        out.address(self.from);
        out.address(self.to);
        out.u256(self.value.0);
        out.u64(self.gas_limit.0);
        out.u128(self.gas_price.0);
        out.bytes(&self.input);
        out.finish()
    }

    /// Reads the canonical encoding.
    pub fn decode(encoded: &[u8]) -> Result<Self, DecodeError> {
        let mut input = Reader::versioned(encoded, "run type", RUN_TYPE)?;
        input = Reader::versioned(input.raw("run", encoded.len() - 1)?, "run", VERSION)?;
        let run = Self {
            schedule_ref: ScheduleRef {
                schedule: ScheduleId(input.u64("schedule id")?),
                number: input.u64("run number")?,
            },
            lane: {
                let given = input.u8("lane")?;
                Lane::from_number(given)
                    .ok_or(DecodeError::UnknownValue { what: "lane", given: given.into() })?
            },
            from: input.address("from")?,
            to: input.address("to")?,
            value: Wei(input.u256("value")?),
            gas_limit: Gas(input.u64("gas limit")?),
            gas_price: GasPrice(input.u128("gas price")?),
            input: input.bytes("input", RUN_INPUT_BYTES_MAX)?,
        };
        input.finish("run")?;
        Ok(run)
    }

    /// Its name: no two runs share schedule and number, so no two share a hash.
    pub fn hash(&self) -> TxHash {
        keccak256(self.encode())
    }
}

impl PrologueTransaction {
    /// Canonical encoding.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::versioned(PROLOGUE_TYPE, 50);
        out.u8(VERSION);
        out.u64(self.number);
        out.u64(self.timestamp.0);
        out.b256(self.parent_hash);
        out.finish()
    }

    /// Reads the canonical encoding.
    pub fn decode(encoded: &[u8]) -> Result<Self, DecodeError> {
        let mut input = Reader::versioned(encoded, "prologue type", PROLOGUE_TYPE)?;
        input = Reader::versioned(input.raw("prologue", encoded.len() - 1)?, "prologue", VERSION)?;
        let prologue = Self {
            number: input.u64("number")?,
            timestamp: TimestampMs(input.u64("timestamp")?),
            parent_hash: input.b256("parent hash")?,
        };
        input.finish("prologue")?;
        Ok(prologue)
    }

    /// Its name. The parent hash makes it unique across chains and forks.
    pub fn hash(&self) -> TxHash {
        keccak256(self.encode())
    }
}
