//! The numbers that governance may change, each with its slot, bounds and reason.

use super::*;
use alloy_primitives::B256;

/// Slot of the params contract that holds the governance account, its owner.
pub const GOVERNANCE_SLOT: u64 = 0;
/// Slot of the params contract that holds the account which may accept ownership.
pub const GOVERNANCE_PENDING_SLOT: u64 = 1;

/// A number that governance may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Parameter {
    /// Slot of the params contract that holds it. Never reused.
    pub slot: u64,
    /// Its name, unit last.
    pub name: &'static str,
    /// Value at genesis unless the genesis file says otherwise.
    pub default: u64,
    /// Smallest value governance may set.
    pub min: u64,
    /// Largest value governance may set.
    pub max: u64,
    /// What it is for.
    pub reason: &'static str,
}

/// Gas shared by cron, market and signature-triggered runs and user transactions in one block.
pub const BLOCK_GAS_MAX: Parameter = Parameter {
    slot: 0x100,
    name: "block_gas_max",
    default: BLOCK_GAS_DEFAULT,
    min: 10_000_000,
    max: 120_000_000,
    reason: "the header's gasLimit: what cron, market and user work of one block share",
};

/// The base fee never falls below this.
pub const BASE_FEE_FLOOR_WEI: Parameter = Parameter {
    slot: 0x101,
    name: "base_fee_floor_wei",
    default: 100_000_000,
    min: 1,
    max: 1_000_000_000_000,
    reason: "booking the future is never free, however idle the chain",
};

/// Gas that the cron lane may use in one block.
pub const CRON_BLOCK_GAS_MAX: Parameter = Parameter {
    slot: 0x102,
    name: "cron_block_gas_max",
    default: CRON_BLOCK_GAS_DEFAULT,
    min: 5_000_000,
    max: 60_000_000,
    reason: "ARC21-17: at most half a block, so that user transactions keep the other half",
};

/// Gas that the reserved lane may use in one block.
pub const RESERVED_BLOCK_GAS_MAX: Parameter = Parameter {
    slot: 0x103,
    name: "reserved_block_gas_max",
    default: RESERVED_BLOCK_GAS_DEFAULT,
    min: 35_000 * EFFORT_GAS,
    max: 350_000 * EFFORT_GAS,
    reason: "FLIP330-14: bounds one block's catch-up after a halt; never below one second's bookings",
};

/// Gas that the spare lane may use in one block.
pub const SPARE_BLOCK_GAS_MAX: Parameter = Parameter {
    slot: 0x104,
    name: "spare_block_gas_max",
    default: SPARE_BLOCK_GAS_DEFAULT,
    min: CALLBACK_LOW_EFFORT_LARGEST * EFFORT_GAS,
    max: 50_000 * EFFORT_GAS,
    reason: "FLIP330-13: low-priority callbacks get what reserved work left of this",
};

/// Furthest that a first run and the interval of a series may lie ahead.
pub const SCHEDULE_AHEAD_SECONDS_MAX: Parameter = Parameter {
    slot: 0x105,
    name: "schedule_ahead_seconds_max",
    default: 10 * YEAR_SECONDS,
    min: 24 * 60 * 60,
    max: 100 * YEAR_SECONDS,
    reason: "ARC21-03: bounds how long an unused escrow stays locked",
};

/// Effort of one second that only High runs may book.
pub const SECOND_HIGH_EFFORT: Parameter = Parameter {
    slot: 0x106,
    name: "second_effort_high",
    default: SECOND_EFFORT_HIGH as u64,
    min: 0,
    max: SECOND_EFFORT_HIGH_MAX as u64,
    reason: "FLIP330-06: what only High may book of a second; what is booked stays booked",
};

/// Effort of one second that only Medium runs may book.
pub const SECOND_MEDIUM_EFFORT: Parameter = Parameter {
    slot: 0x107,
    name: "second_effort_medium",
    default: SECOND_EFFORT_MEDIUM as u64,
    min: 0,
    max: SECOND_EFFORT_MEDIUM_MAX as u64,
    reason: "FLIP330-06: what only Medium may book of a second; what is booked stays booked",
};

/// Effort of one second that both share.
pub const SECOND_SHARED_EFFORT: Parameter = Parameter {
    slot: 0x108,
    name: "second_effort_shared",
    default: SECOND_EFFORT_SHARED as u64,
    min: 0,
    max: SECOND_EFFORT_MEDIUM_MAX as u64,
    reason: "FLIP330-06: what High and Medium share of a second; what is booked stays booked",
};

/// Blocks for which the end of a schedule stays readable, where its door keeps ends.
pub const ENDED_KEPT_BLOCKS: Parameter = Parameter {
    slot: 0x109,
    name: "ended_kept_blocks",
    default: 1_000,
    min: 1,
    max: 1_000_000,
    reason: "FLIP330-17: how long a final status can be read on the chain; RPC keeps the history",
};

/// Whether the cron registry takes and runs jobs: 1 is on, 0 off.
pub const CRON_ENABLED: Parameter = Parameter {
    slot: 0x110,
    name: "cron_enabled",
    default: 1,
    min: 0,
    max: 1,
    reason: "the feature flag of the ARC-21 door; off, jobs can be cancelled and topped up, nothing else",
};

/// Whether the cron lane is paused: 1 is paused.
pub const CRON_PAUSED: Parameter = Parameter {
    slot: 0x111,
    name: "cron_paused",
    default: 0,
    min: 0,
    max: 1,
    reason: "set by governance, or by the chain itself when the lane cannot be read; unset by governance",
};

/// Shortest interval of a series of cron jobs.
pub const CRON_INTERVAL_SECONDS_MIN: Parameter = Parameter {
    slot: 0x112,
    name: "cron_interval_seconds_min",
    default: 60,
    min: 1,
    max: 24 * 60 * 60,
    reason: "ARC21-04: a job every block would be a tax on everyone",
};

/// Most gas that one cron run may ask for.
pub const CRON_RUN_GAS_MAX: Parameter = Parameter {
    slot: 0x113,
    name: "cron_run_gas_max",
    default: CRON_RUN_GAS_LARGEST,
    min: CRON_RUN_GAS_MIN,
    max: CRON_RUN_GAS_LARGEST,
    reason: "ARC21-05: the largest job fits the smallest budget of a block, whatever governance does later",
};

/// Largest calldata of a cron job.
pub const CRON_INPUT_BYTES_MAX: Parameter = Parameter {
    slot: 0x114,
    name: "cron_input_bytes_max",
    default: RUN_INPUT_BYTES_MAX as u64,
    min: 4,
    max: RUN_INPUT_BYTES_MAX as u64,
    reason: "ARC21-03: bounds what a pending job occupies",
};

/// Most cron jobs that end for lack of money, or skip what they missed, in one block.
pub const CRON_BLOCK_EXHAUSTIONS_MAX: Parameter = Parameter {
    slot: 0x115,
    name: "cron_block_exhaustions_max",
    default: 250,
    min: 1,
    max: LANE_BLOCK_RUNS_MAX as u64,
    reason: "ARC21-19: jobs that cannot pay end, and jobs that skip move on, a bounded number in each block; \
             the others of that block wait for their end and hold up no run",
};

/// Whether the callback scheduler takes and runs callbacks: 1 is on, 0 off.
pub const CALLBACK_ENABLED: Parameter = Parameter {
    slot: 0x120,
    name: "callback_enabled",
    default: 1,
    min: 0,
    max: 1,
    reason: "the feature flag of the FLIP-330 door; off, callbacks can be cancelled, nothing else",
};

/// Whether callbacks are paused: 1 is paused.
pub const CALLBACK_PAUSED: Parameter = Parameter {
    slot: 0x121,
    name: "callback_paused",
    default: 0,
    min: 0,
    max: 1,
    reason: "set by governance, or by the chain itself when a lane cannot be read; unset by governance",
};

/// Least price per gas that a callback's fee is computed from.
pub const CALLBACK_FEE_FLOOR_WEI: Parameter = Parameter {
    slot: 0x122,
    name: "callback_fee_floor_wei",
    default: 1_000_000_000,
    min: 1,
    max: 1_000_000_000_000,
    reason: "FLIP330-05: blocking a second has a price, however idle the chain",
};

/// What a High callback pays, in percent of its gas at the base fee.
pub const CALLBACK_HIGH_PERCENT: Parameter = Parameter {
    slot: 0x123,
    name: "callback_high_percent",
    default: 1_000,
    min: 110,
    max: 100_000,
    reason: "FLIP330-05: above 100, or a proposer's own callbacks would be free",
};

/// What a Medium callback pays, in percent of its gas at the base fee.
pub const CALLBACK_MEDIUM_PERCENT: Parameter = Parameter {
    slot: 0x124,
    name: "callback_medium_percent",
    default: 500,
    min: 110,
    max: 100_000,
    reason: "FLIP330-05: above 100, or a proposer's own callbacks would be free",
};

/// What a Low callback pays, in percent of its gas at the base fee.
pub const CALLBACK_LOW_PERCENT: Parameter = Parameter {
    slot: 0x125,
    name: "callback_low_percent",
    default: 200,
    min: 110,
    max: 100_000,
    reason: "FLIP330-05: above 100, or a proposer's own callbacks would be free",
};

/// Part of the fee that returns to an owner who cancels, in hundredths of a percent.
pub const CALLBACK_REFUND_BPS: Parameter = Parameter {
    slot: 0x126,
    name: "callback_refund_bps",
    default: 5_000,
    min: 0,
    max: 9_000,
    reason: "FLIP330-18: booking a second and giving it back has a price",
};

/// Most data that a callback carries to its handler.
pub const CALLBACK_DATA_BYTES_MAX: Parameter = Parameter {
    slot: 0x127,
    name: "callback_data_bytes_max",
    default: 100,
    min: 0,
    max: 1_024,
    reason: "FLIP330-03: bounds what a pending callback occupies",
};

/// Least effort that a callback may ask for.
pub const CALLBACK_EFFORT_MIN: Parameter = Parameter {
    slot: 0x128,
    name: "callback_effort_min",
    default: CALLBACK_EFFORT_LEAST,
    min: CALLBACK_EFFORT_LEAST,
    max: 1_000,
    reason: "FLIP330-04: more than an empty transaction",
};

/// Most effort that a callback may ask for.
pub const CALLBACK_EFFORT_MAX: Parameter = Parameter {
    slot: 0x129,
    name: "callback_effort_max",
    default: CALLBACK_EFFORT_LARGEST,
    min: 1_000,
    max: CALLBACK_EFFORT_LARGEST,
    reason: "FLIP330-04: the largest callback fits the smallest budget of a block, whatever governance does later",
};

/// Most effort that a Low callback may ask for.
pub const CALLBACK_LOW_EFFORT_MAX: Parameter = Parameter {
    slot: 0x12a,
    name: "callback_low_effort_max",
    default: CALLBACK_LOW_EFFORT_LARGEST,
    min: 1_000,
    max: CALLBACK_LOW_EFFORT_LARGEST,
    reason: "FLIP330-04: what a block without booked runs always has room for",
};

/// How far ahead a Medium callback is moved to find room.
pub const CALLBACK_SEARCH_SECONDS_MAX: Parameter = Parameter {
    slot: 0x12b,
    name: "callback_search_seconds_max",
    default: CAPACITY_SEARCH_SECONDS_MAX,
    min: 1,
    max: CAPACITY_SEARCH_SECONDS_MAX,
    reason: "FLIP330-07: beyond it there is no capacity",
};

/// Most slots that a search for room reads.
pub const CALLBACK_SEARCH_READS_MAX: Parameter = Parameter {
    slot: 0x12c,
    name: "callback_search_reads_max",
    default: CAPACITY_SEARCH_READS_MAX,
    min: 16,
    max: CAPACITY_SEARCH_READS_MAX,
    reason: "FLIP330-07: bounds the work of a search after the parts of a second changed",
};

/// Whether scheduled transactions are taken and run: 1 is on, 0 off.
pub const MARKET_ENABLED: Parameter = Parameter {
    slot: 0x130,
    name: "market_enabled",
    default: 1,
    min: 0,
    max: 1,
    reason: "AIP125-24: the feature flag of the AIP-125 door; off, scheduled transactions can be cancelled, nothing else",
};

/// Whether scheduled transactions are paused: 1 is paused.
pub const MARKET_PAUSED: Parameter = Parameter {
    slot: 0x131,
    name: "market_paused",
    default: 0,
    min: 0,
    max: 1,
    reason: "AIP125-20: set by governance, or by the chain itself when the lane cannot be read; unset by governance",
};

/// Whether the door is shut down: 1 refunds everything that is pending.
pub const MARKET_SHUTDOWN: Parameter = Parameter {
    slot: 0x132,
    name: "market_shutdown",
    default: 0,
    min: 0,
    max: 1,
    reason: "AIP125-21: no inserts, and pending ones are refunded in batches; back at 0 the door opens again",
};

/// Most scheduled transactions that one block gets ready.
pub const MARKET_READY_MAX: Parameter = Parameter {
    slot: 0x133,
    name: "market_ready_max",
    default: 1_000,
    min: 1,
    max: 4_000,
    reason: "AIP125-10: the source's GET_READY_TRANSACTIONS_LIMIT; at its 100 a few refundable bids deny the lane",
};

/// Most scheduled transactions that one block meets for the first time.
pub const MARKET_LOOKS_MAX: Parameter = Parameter {
    slot: 0x134,
    name: "market_looks_max",
    default: 5_000,
    min: 1,
    max: 20_000,
    reason: "AIP125-10: bounds the work of a block before it knows who can pay; the more it meets, the dearer is a delay",
};

/// Most scheduled transactions that expire in one block.
pub const MARKET_EXPIRIES_MAX: Parameter = Parameter {
    slot: 0x135,
    name: "market_expiries_max",
    default: 100,
    min: 1,
    max: 1_000,
    reason: "AIP125-11: refunds that nobody pays for in their block are bounded; the others follow in later blocks",
};

/// Most scheduled transactions that a shutdown refunds in one block.
pub const MARKET_SHUTDOWN_BATCH: Parameter = Parameter {
    slot: 0x136,
    name: "market_shutdown_batch",
    default: 200,
    min: 1,
    max: 1_000,
    reason: "AIP125-21: no run uses these blocks, so a batch may be larger than the expiries of a block",
};

/// Blocks that a due scheduled transaction waits for a price, unless its order says otherwise.
pub const MARKET_EXPIRY_BLOCKS: Parameter = Parameter {
    slot: 0x137,
    name: "market_expiry_blocks",
    default: 100,
    min: 1,
    max: MARKET_EXPIRY_BLOCKS_LARGEST,
    reason: "AIP125-11: the source's about 100 blocks; fixed at insert, so that later changes surprise nobody",
};

/// Most gas that one market run may ask for.
pub const MARKET_RUN_GAS_MAX: Parameter = Parameter {
    slot: 0x138,
    name: "market_run_gas_max",
    default: MARKET_RUN_GAS_LARGEST,
    min: MARKET_RUN_GAS_LEAST,
    max: MARKET_RUN_GAS_LARGEST,
    reason: "AIP125-08: what does not fit waits, so no run may be larger than what a block can always hold",
};

/// Largest calldata of a scheduled transaction.
pub const MARKET_INPUT_BYTES_MAX: Parameter = Parameter {
    slot: 0x139,
    name: "market_input_bytes_max",
    default: RUN_INPUT_BYTES_MAX as u64,
    min: 0,
    max: RUN_INPUT_BYTES_MAX as u64,
    reason: "AIP125-08: bounds what a pending scheduled transaction occupies",
};

const _: () = assert!(
    MARKET_RUN_GAS_LARGEST <= BLOCK_GAS_MAX.min / 2,
    "cron takes at most half of a block, so the largest market run always fits the other half"
);

/// Whether orderless transactions are taken: 1 is on, 0 off.
pub const ORDERLESS_ENABLED: Parameter = Parameter {
    slot: 0x140,
    name: "orderless_enabled",
    default: 1,
    min: 0,
    max: 1,
    reason: "ORDERLESS-11: the feature flag; native transactions with a sequence number stay, since an account with \
             a rotated key has no other kind",
};

/// Whether the schedule service takes and runs schedules: 1 is on, 0 off.
pub const SIGNED_ENABLED: Parameter = Parameter {
    slot: 0x150,
    name: "signed_enabled",
    default: 1,
    min: 0,
    max: 1,
    reason: "the feature flag of the schedule service; off, schedules can be deleted and funds withdrawn, nothing else",
};

/// Whether the schedule service is paused: 1 is paused.
pub const SIGNED_PAUSED: Parameter = Parameter {
    slot: 0x151,
    name: "signed_paused",
    default: 0,
    min: 0,
    max: 1,
    reason: "set by governance, or by the chain itself when the calendar cannot be read; unset by governance",
};

/// Seconds after which a schedule without an execution time expires.
pub const SIGNED_EXPIRY_SECONDS: Parameter = Parameter {
    slot: 0x152,
    name: "signed_expiry_seconds",
    default: 1_800,
    min: 60,
    max: 24 * 60 * 60,
    reason: "HEDERA-17: the source's txExpiryTimeSecs; with the throttle it bounds how many are pending",
};

/// Schedules that may be created per second.
pub const SIGNED_CREATES_PER_SECOND: Parameter = Parameter {
    slot: 0x153,
    name: "signed_creates_per_second",
    default: 100,
    min: 1,
    max: 1_000,
    reason: "HEDERA-18: times signed_expiry_seconds, what can be pending",
};

/// Calls per second that may bring signatures.
pub const SIGNED_SIGNS_PER_SECOND: Parameter = Parameter {
    slot: 0x154,
    name: "signed_signs_per_second",
    default: 1_000,
    min: 1,
    max: 10_000,
    reason: "HEDERA-18: the throttle of signSchedule",
};

/// Schedules that may be deleted per second.
pub const SIGNED_DELETES_PER_SECOND: Parameter = Parameter {
    slot: 0x155,
    name: "signed_deletes_per_second",
    default: 100,
    min: 1,
    max: 1_000,
    reason: "HEDERA-18: the throttle of deleteSchedule",
};

/// Part of a second's operations that one caller may use.
pub const SIGNED_CALLER_PERCENT: Parameter = Parameter {
    slot: 0x156,
    name: "signed_caller_percent",
    default: 20,
    min: 1,
    max: 100,
    reason: "HEDERA-18: a flood by one leaves room for others",
};

/// Most schedules that expire in one block.
pub const SIGNED_EXPIRIES_MAX: Parameter = Parameter {
    slot: 0x157,
    name: "signed_expiries_max",
    default: 500,
    min: 10,
    max: 2_000,
    reason: "HEDERA-17: ends that nobody pays for in their block are bounded; the others follow in later blocks",
};

/// Most gas that one schedule may ask for.
pub const SIGNED_RUN_GAS_MAX: Parameter = Parameter {
    slot: 0x158,
    name: "signed_run_gas_max",
    default: SIGNED_RUN_GAS_LARGEST,
    min: SIGNED_RUN_GAS_LEAST,
    max: SIGNED_RUN_GAS_LARGEST,
    reason: "the transaction that triggers it has room for both",
};

const _: () = assert!(
    CRON_BLOCK_EXHAUSTIONS_MAX.default * SCHEDULE_ENDING_GAS <= CRON_BLOCK_GAS_DEFAULT,
    "what ends in a block was paid for like a full lane"
);

const _: () = assert!(
    CRON_RUN_GAS_LARGEST <= CRON_BLOCK_GAS_MAX.min,
    "no job is larger than any budget: one that is would stop its lane for ever"
);

/// All parameters, in slot order.
pub const PARAMETERS: [Parameter; 49] = [
    BLOCK_GAS_MAX,
    BASE_FEE_FLOOR_WEI,
    CRON_BLOCK_GAS_MAX,
    RESERVED_BLOCK_GAS_MAX,
    SPARE_BLOCK_GAS_MAX,
    SCHEDULE_AHEAD_SECONDS_MAX,
    SECOND_HIGH_EFFORT,
    SECOND_MEDIUM_EFFORT,
    SECOND_SHARED_EFFORT,
    ENDED_KEPT_BLOCKS,
    CRON_ENABLED,
    CRON_PAUSED,
    CRON_INTERVAL_SECONDS_MIN,
    CRON_RUN_GAS_MAX,
    CRON_INPUT_BYTES_MAX,
    CRON_BLOCK_EXHAUSTIONS_MAX,
    CALLBACK_ENABLED,
    CALLBACK_PAUSED,
    CALLBACK_FEE_FLOOR_WEI,
    CALLBACK_HIGH_PERCENT,
    CALLBACK_MEDIUM_PERCENT,
    CALLBACK_LOW_PERCENT,
    CALLBACK_REFUND_BPS,
    CALLBACK_DATA_BYTES_MAX,
    CALLBACK_EFFORT_MIN,
    CALLBACK_EFFORT_MAX,
    CALLBACK_LOW_EFFORT_MAX,
    CALLBACK_SEARCH_SECONDS_MAX,
    CALLBACK_SEARCH_READS_MAX,
    MARKET_ENABLED,
    MARKET_PAUSED,
    MARKET_SHUTDOWN,
    MARKET_READY_MAX,
    MARKET_LOOKS_MAX,
    MARKET_EXPIRIES_MAX,
    MARKET_SHUTDOWN_BATCH,
    MARKET_EXPIRY_BLOCKS,
    MARKET_RUN_GAS_MAX,
    MARKET_INPUT_BYTES_MAX,
    ORDERLESS_ENABLED,
    SIGNED_ENABLED,
    SIGNED_PAUSED,
    SIGNED_EXPIRY_SECONDS,
    SIGNED_CREATES_PER_SECOND,
    SIGNED_SIGNS_PER_SECOND,
    SIGNED_DELETES_PER_SECOND,
    SIGNED_CALLER_PERCENT,
    SIGNED_EXPIRIES_MAX,
    SIGNED_RUN_GAS_MAX,
];

const _: () = {
    let mut i = 0;
    while i < PARAMETERS.len() {
        let p = PARAMETERS[i];
        assert!(p.min <= p.default && p.default <= p.max, "every default is within its bounds");
        assert!(i == 0 || PARAMETERS[i - 1].slot < p.slot, "slots ascend, so none is used twice");
        assert!(p.name.len() <= 32, "a name fits a bytes32");
        i += 1;
    }
};

/// Marks a parameter's slot as set, so that zero can be a value.
const SET_FLAG: U256 = U256::from_limbs([0, 0, 0, 1 << 63]);

impl Parameter {
    /// The parameter with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        PARAMETERS.into_iter().find(|p| p.name == name)
    }

    /// The name as Solidity sees it: left-aligned in a bytes32.
    pub fn name_word(&self) -> B256 {
        let mut word = B256::ZERO;
        word[..self.name.len()].copy_from_slice(self.name.as_bytes());
        word
    }

    /// The parameter with this bytes32 name.
    pub fn by_name_word(word: B256) -> Option<Self> {
        PARAMETERS.into_iter().find(|p| p.name_word() == word)
    }

    /// What the params contract stores for a value.
    pub fn slot_value(value: u64) -> U256 {
        SET_FLAG | U256::from(value)
    }

    /// The value that a stored slot stands for; an empty slot is the default.
    pub fn from_slot_value(&self, stored: U256) -> u64 {
        if stored.is_zero() { self.default } else { stored.as_limbs()[0] }
    }
}
