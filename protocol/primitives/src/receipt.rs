//! Receipts of everything that ran in a block.

use crate::{
    codec::{DecodeError, Reader, Writer},
    ids::ScheduleId,
    params::{BLOCK_GAS_MAX, RECEIPT_REASON_BYTES_MAX, RESERVED_BLOCK_GAS_MAX},
    run::ScheduleRef,
    units::{Gas, GasPrice},
};
use alloy_primitives::{Address, B256, Bloom, BloomInput, Bytes, Log, LogData, TxHash};

const VERSION: u8 = 1;
/// The same fields and, at the end, which call of a batch failed.
const FAILED_CALL_VERSION: u8 = 2;

/// No call can emit more logs or data than its gas buys; these bounds are for decoding only.
const LOGS_MAX: usize = 1 << 21;
const LOG_DATA_BYTES_MAX: usize = 1 << 25;

const _: () = {
    let lane_gas_max = if BLOCK_GAS_MAX.max > RESERVED_BLOCK_GAS_MAX.max {
        BLOCK_GAS_MAX.max
    } else {
        RESERVED_BLOCK_GAS_MAX.max
    };
    let data_words = LOG_DATA_BYTES_MAX as u64 / 32;
    assert!(
        LOGS_MAX as u64 > lane_gas_max / 375,
        "whatever one call can log can be read: a log costs 375 gas"
    );
    assert!(
        data_words * data_words / 512 > lane_gas_max,
        "and so can its data: memory costs words² / 512 gas"
    );
};
use std::fmt;

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It returned.
    Success,
    /// It reverted, with the first bytes of what it said.
    Reverted(Bytes),
    /// It was stopped.
    Halted(Halt),
}

/// Why a call was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Halt {
    /// The gas was used up.
    OutOfGas = 1,
    /// An opcode that does not exist, or `INVALID`.
    InvalidOpcode = 2,
    /// A jump to where no `JUMPDEST` is.
    InvalidJump = 3,
    /// The stack ran over or under.
    Stack = 4,
    /// A precompile refused its input.
    Precompile = 5,
    /// New code is too large, starts with 0xEF, or its address is taken.
    Create = 6,
    /// A static call tried to change state.
    StaticCall = 7,
    /// The sender's balance did not cover the value.
    InsufficientBalance = 8,
    /// Anything else the machine stops for.
    Other = 9,
}

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutOfGas => "out of gas",
            Self::InvalidOpcode => "invalid opcode",
            Self::InvalidJump => "invalid jump",
            Self::Stack => "stack overflow or underflow",
            Self::Precompile => "a precompile refused its input",
            Self::Create => "a contract could not be created",
            Self::StaticCall => "a static call tried to change state",
            Self::InsufficientBalance => "insufficient balance",
            Self::Other => "stopped",
        })
    }
}

impl Halt {
    /// The halt with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|halt| *halt as u8 == number)
    }

    const ALL: [Self; 9] = [
        Self::OutOfGas,
        Self::InvalidOpcode,
        Self::InvalidJump,
        Self::Stack,
        Self::Precompile,
        Self::Create,
        Self::StaticCall,
        Self::InsufficientBalance,
        Self::Other,
    ];
}

impl Outcome {
    /// A revert that keeps the first bytes of its reason.
    pub fn reverted(output: &Bytes) -> Self {
        // A copy: a slice would keep the whole of a large output alive with the receipt.
        Self::Reverted(Bytes::copy_from_slice(&output[..output.len().min(RECEIPT_REASON_BYTES_MAX)]))
    }

    /// Whether the call returned.
    pub fn is_success(&self) -> bool {
        *self == Self::Success
    }
}

/// The receipt of one transaction, system transactions included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// EIP-2718 type of the transaction.
    pub transaction_type: u8,
    /// Its hash.
    pub transaction_hash: TxHash,
    /// How it ended.
    pub outcome: Outcome,
    /// Gas it used, intrinsic gas included.
    pub gas_used: Gas,
    /// Gas used in the block up to and with it, over all lanes.
    pub cumulative_gas_used: Gas,
    /// What it paid per gas.
    pub effective_gas_price: GasPrice,
    /// The contract it created at its top level.
    pub contract_address: Option<Address>,
    /// Which call of a native transaction failed and undid the others, if one did.
    pub failed_call: Option<u8>,
    /// The run it was, if it was one.
    pub schedule_ref: Option<ScheduleRef>,
    /// What it logged.
    pub logs: Vec<Log>,
}

impl Receipt {
    /// Bloom filter over the logs.
    pub fn bloom(&self) -> Bloom {
        let mut bloom = Bloom::ZERO;
        for log in &self.logs {
            bloom.accrue(BloomInput::Raw(log.address.as_slice()));
            for topic in log.topics() {
                bloom.accrue(BloomInput::Raw(topic.as_slice()));
            }
        }
        bloom
    }

    /// Canonical encoding: the leaf of the receipts root.
    pub fn encode(&self) -> Vec<u8> {
        let version = if self.failed_call.is_some() { FAILED_CALL_VERSION } else { VERSION };
        let mut out = Writer::versioned(version, 160 + 128 * self.logs.len());
        out.u8(self.transaction_type);
        out.b256(self.transaction_hash);
        write_outcome(&mut out, &self.outcome);
        out.u64(self.gas_used.0);
        out.u64(self.cumulative_gas_used.0);
        out.u128(self.effective_gas_price.0);
        out.u8(self.contract_address.is_some().into());
        out.address(self.contract_address.unwrap_or_default());
        out.u8(self.schedule_ref.is_some().into());
        out.u64(self.schedule_ref.map_or(0, |run| run.schedule.0));
        out.u64(self.schedule_ref.map_or(0, |run| run.number));
        out.count(self.logs.len());
        for log in &self.logs {
            write_log(&mut out, log);
        }
        if let Some(index) = self.failed_call {
            out.u8(index);
        }
        out.finish()
    }

    /// Reads the canonical encoding.
    pub fn decode(encoded: &[u8]) -> Result<Self, DecodeError> {
        let has_failed_call = encoded.first() == Some(&FAILED_CALL_VERSION);
        let version = if has_failed_call { FAILED_CALL_VERSION } else { VERSION };
        let mut input = Reader::versioned(encoded, "receipt", version)?;
        let mut receipt = Self {
            transaction_type: input.u8("transaction type")?,
            transaction_hash: input.b256("transaction hash")?,
            outcome: read_outcome(&mut input)?,
            gas_used: Gas(input.u64("gas used")?),
            cumulative_gas_used: Gas(input.u64("cumulative gas used")?),
            effective_gas_price: GasPrice(input.u128("effective gas price")?),
            contract_address: {
                let is_some = read_flag(&mut input, "contract address flag")?;
                let address = input.address("contract address")?;
                absent_is_zero(is_some, address, address.is_zero(), "absent contract address")?
            },
            schedule_ref: {
                let is_some = read_flag(&mut input, "schedule reference flag")?;
                let schedule = ScheduleId(input.u64("schedule id")?);
                let number = input.u64("run number")?;
                let is_zero = schedule.0 == 0 && number == 0;
                absent_is_zero(
                    is_some,
                    ScheduleRef { schedule, number },
                    is_zero,
                    "absent schedule reference",
                )?
            },
            logs: {
                let count = input.count("logs", LOGS_MAX)?;
                (0..count).map(|_| read_log(&mut input)).collect::<Result<_, _>>()?
            },
            failed_call: None,
        };
        if has_failed_call {
            receipt.failed_call = Some(input.u8("failed call")?);
        }
        input.finish("receipt")?;
        Ok(receipt)
    }
}

fn write_outcome(out: &mut Writer, outcome: &Outcome) {
    let (code, reason): (u8, &[u8]) = match outcome {
        Outcome::Success => (0, &[]),
        Outcome::Reverted(reason) => (0x80, reason),
        Outcome::Halted(halt) => (*halt as u8, &[]),
    };
    out.u8(code);
    out.bytes(reason);
}

fn read_outcome(input: &mut Reader<'_>) -> Result<Outcome, DecodeError> {
    let code = input.u8("outcome")?;
    let is_revert = code == 0x80;
    let reason = input.bytes("revert reason", if is_revert { RECEIPT_REASON_BYTES_MAX } else { 0 })?;
    match code {
        0 => Ok(Outcome::Success),
        0x80 => Ok(Outcome::Reverted(reason)),
        code => Halt::from_number(code)
            .map(Outcome::Halted)
            .ok_or(DecodeError::UnknownValue { what: "outcome", given: code.into() }),
    }
}

fn read_flag(input: &mut Reader<'_>, what: &'static str) -> Result<bool, DecodeError> {
    match input.u8(what)? {
        0 => Ok(false),
        1 => Ok(true),
        given => Err(DecodeError::UnknownValue { what, given: given.into() }),
    }
}

/// An absent field has fixed width too; only zeroes may stand there, or one receipt had many encodings.
fn absent_is_zero<T>(
    is_some: bool,
    value: T,
    is_zero: bool,
    what: &'static str,
) -> Result<Option<T>, DecodeError> {
    match (is_some, is_zero) {
        (true, _) => Ok(Some(value)),
        (false, true) => Ok(None),
        (false, false) => Err(DecodeError::UnknownValue { what, given: 1 }),
    }
}

fn write_log(out: &mut Writer, log: &Log) {
    out.address(log.address);
    out.count(log.topics().len());
    for topic in log.topics() {
        out.b256(*topic);
    }
    out.bytes(&log.data.data);
}

fn read_log(input: &mut Reader<'_>) -> Result<Log, DecodeError> {
    let address = input.address("log address")?;
    let count = input.count("log topics", 4)?;
    let topics = (0..count).map(|_| input.b256("log topic")).collect::<Result<Vec<B256>, _>>()?;
    let data = input.bytes("log data", LOG_DATA_BYTES_MAX)?;
    Ok(Log { address, data: LogData::new_unchecked(topics, data) })
}
