//! Every number that consensus depends on, with its unit and its reason.
//!
//! Constants are fixed for the life of the chain. [`Parameter`]s may be changed at run time by governance
//! through the params contract, within the bounds given here; a change takes effect at the next block.

use crate::units::{Gas, GasPrice, Wei};
use alloy_primitives::{B256, U256};
use std::collections::BTreeMap;

/// Milliseconds in a second.
pub const SECOND_MS: u64 = 1_000;

/// Seconds in a year of 365.25 days.
pub const YEAR_SECONDS: u64 = 31_557_600;

// ---- Blocks ----

/// Version of the rules in this build. A block states the version it was made under.
pub const PROTOCOL_VERSION: u32 = 1;

/// Gas shared by cron, market and signature-triggered runs and user transactions in one block.
pub const BLOCK_GAS_DEFAULT: u64 = 30_000_000;

/// Largest encoded block body. Bounds what a proposer can make every other node download.
pub const BLOCK_BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Most user transactions in one body: what the default gas could hold of the cheapest ones, with room for
/// governance to raise the limit fourfold.
pub const BLOCK_TRANSACTIONS_MAX: usize = 8_192;

/// Hashes of this many blocks are kept in state (EIP-2935).
pub const BLOCK_HASH_HISTORY_LEN: u64 = 8_191;

// ---- Transactions ----

/// Largest encoded transaction. Matches the limit of Ethereum's public pools.
pub const TRANSACTION_BYTES_MAX: usize = 128 * 1024;

/// Largest contract code in bytes (EIP-170).
pub const CODE_BYTES_MAX: usize = 24_576;

/// Largest init code in bytes (EIP-3860).
pub const INIT_CODE_BYTES_MAX: usize = 2 * CODE_BYTES_MAX;

/// Revert data kept in a receipt: enough for a custom error with seven words, and a bound on what a failing
/// call can write into every node's archive.
pub const RECEIPT_REASON_BYTES_MAX: usize = 256;

// ---- Native transactions ----

/// How far ahead an orderless transaction may expire (ORDERLESS-03).
pub const ORDERLESS_AHEAD_MS_MAX: u64 = 60 * SECOND_MS;

/// Seconds after its expiration for which a pair of sender and nonce stays taken (ORDERLESS-04).
pub const NONCE_KEPT_SECONDS: u64 = 130;

/// Entries of the nonce history that a block collects beside those for its own inserts (ORDERLESS-05). Lets the history
/// shrink while no inserts come.
pub const NONCE_SWEEPS_BASE: u64 = 256;

/// Entries that a block collects for each of its orderless transactions, as in the source (ORDERLESS-05).
pub const NONCE_SWEEPS_PER_INSERT: u64 = 5;

/// Seconds without entries that a block passes over while it collects.
pub const NONCE_SWEEP_SKIPS_MAX: u64 = 64;

/// Entries in one value of the nonce history's log.
pub const NONCE_LOG_PART_ENTRIES_MAX: usize = 2_000;

/// Gas of each signature of a native transaction after the first, which the transaction's base price contains: as much
/// as of the ecrecover precompile.
pub const SIGNATURE_GAS: u64 = 3_000;

/// Gas of reading another account that takes part: a fee payer, a key record, the target of a further call (EIP-2929).
pub const PARTY_GAS: u64 = 2_600;

/// Gas of each leaf of a key record: it is read and walked.
pub const KEY_LEAF_GAS: u64 = 50;

/// Gas of an entry in the nonce history (ORDERLESS-22): no more than a slot's update, and little enough that orderless
/// transactions keep nine tenths of the throughput of others.
pub const ORDERLESS_GAS: u64 = 2_000;

/// Gas of value in a further call of a batch, as in CALL.
pub const CALL_VALUE_GAS: u64 = 9_000;

/// Gas of value to an account that does not exist, in a further call of a batch, as in CALL.
pub const NEW_ACCOUNT_GAS: u64 = 25_000;

/// Gas per byte of a stored key, as of deployed code.
pub const KEY_BYTE_GAS: u64 = 200;

const _: () =
    assert!(NONCE_LOG_PART_ENTRIES_MAX * 28 < STATE_VALUE_BYTES_MAX, "a part of the log is one value");

// ---- Fees (EIP-1559) ----

/// Base fee of the first block.
pub const BASE_FEE_INITIAL: GasPrice = GasPrice(1_000_000_000);

/// Highest base fee: the EVM's BASEFEE of the block environment has 64 bits.
pub const BASE_FEE_MAX: GasPrice = GasPrice(u64::MAX as u128);

/// The base fee moves by at most one part in this many per block.
pub const BASE_FEE_CHANGE_DENOMINATOR: u128 = 8;

/// The base fee holds still when a block uses this part of its gas.
pub const GAS_TARGET_DIVISOR: u64 = 2;

// ---- Lanes ----

/// Gas in one unit of FLIP-330 execution effort: the source prices an empty transaction, 21,000 gas, at 10.
pub const EFFORT_GAS: u64 = 2_100;

/// ARC-21 cron runs may use this much gas of a block: half, so that user transactions keep the other half.
pub const CRON_BLOCK_GAS_DEFAULT: u64 = 15_000_000;

/// Reserved runs of one block: one full second of booked effort. After a halt the rest carries over.
pub const RESERVED_BLOCK_GAS_DEFAULT: u64 = 35_000 * EFFORT_GAS;

/// Low-priority callbacks of one block, less the reserved gas that ran in it.
pub const SPARE_BLOCK_GAS_DEFAULT: u64 = 5_000 * EFFORT_GAS;

/// Least gas that a cron run may ask for (ARC21-05): what an empty transaction costs.
pub const CRON_RUN_GAS_MIN: u64 = 21_000;

/// Most gas that a cron run may ever ask for (ARC21-05).
pub const CRON_RUN_GAS_LARGEST: u64 = 5_000_000;

/// Most effort that one callback may ever ask for (FLIP330-04).
pub const CALLBACK_EFFORT_LARGEST: u64 = 9_999;

/// Least effort that one callback may ask for: more than an empty transaction (FLIP330-04).
pub const CALLBACK_EFFORT_LEAST: u64 = 11;

/// Most effort that one Low callback may ever ask for: every block without booked runs has room for it (FLIP330-13).
pub const CALLBACK_LOW_EFFORT_LARGEST: u64 = 5_000;

/// A booked callback that runs later than this after its second has its fee returned (FLIP330-18).
pub const CALLBACK_LATE_MS: u64 = 60 * SECOND_MS;

/// Low callbacks that a block looks at: the oldest (FLIP330-13).
pub const SPARE_BLOCK_LOOKS_MAX: u64 = 100;

/// Effort of one second that only High callbacks may book (FLIP330-06).
pub const SECOND_EFFORT_HIGH: u16 = 20_000;

/// Effort of one second that only Medium callbacks may book (FLIP330-06).
pub const SECOND_EFFORT_MEDIUM: u16 = 5_000;

/// Effort of one second that both share (FLIP330-06).
pub const SECOND_EFFORT_SHARED: u16 = 10_000;

/// Most that High's own part of a second and the shared one may be together: bookings are stored with 16 bits.
pub const SECOND_EFFORT_HIGH_MAX: u16 = u16::MAX;

/// Most that Medium's own part of a second and the shared one may be together: hints of what Medium finds taken are
/// stored with 15 bits.
pub const SECOND_EFFORT_MEDIUM_MAX: u16 = u16::MAX >> 1;

const _: () = assert!(
    (SECOND_EFFORT_HIGH as u64 + SECOND_EFFORT_MEDIUM as u64 + SECOND_EFFORT_SHARED as u64) * EFFORT_GAS
        <= RESERVED_BLOCK_GAS_DEFAULT,
    "one block can run all that one second can book"
);

/// How far ahead a Medium callback is moved at most to find room (FLIP330-07): a day.
pub const CAPACITY_SEARCH_SECONDS_MAX: u64 = 24 * 60 * 60;

/// Most slots that a search for room reads. One with exact hints needs 10; the others are for the time after governance
/// changed High's part of a second.
pub const CAPACITY_SEARCH_READS_MAX: u64 = 64;

/// Most runs that one lane collects for one block, where its gas does not allow more. With the gas budgets it bounds
/// the prologue's work.
pub const LANE_BLOCK_RUNS_MAX: usize = 1_000;
/// Most ended schedules that one block takes away. The others wait: with it, a flood of ends costs no block much.
pub const BLOCK_SWEEPS_MAX: u64 = 4_096;

/// Most due schedules that one block looks at in a lane, whether they run or not, where its gas does not allow more.
/// An attacker who puts jobs that will not run in front of others has paid for the creation of so many per block:
/// docs/denial-prices.md has the price.
pub const LANE_BLOCK_LOOKS_MAX: usize = 6_000;

/// Gas of the lane for each due schedule that a block looks at: the read of a slot, and the schedule's share of the
/// calendar.
pub const LANE_LOOK_GAS: u64 = 2_500;

/// Gas of the end of a schedule, paid when it is made, since the block in which it ends may charge nobody: two
/// slots, the body, a change of the calendar, a payment that may make an account, and an event.
pub const SCHEDULE_ENDING_GAS: u64 = 60_000;

const _: () = assert!(COLD_READ_GAS <= LANE_LOOK_GAS, "looking costs less than the lane's runs");

const _: () = assert!(
    LANE_BLOCK_LOOKS_MAX as u64 * LANE_LOOK_GAS == CRON_BLOCK_GAS_DEFAULT,
    "a lane of the default size looks at as many as its gas allows"
);

/// What Ethereum asks for reading a slot that nobody has read yet (EIP-2929).
const COLD_READ_GAS: u64 = 2_100;

/// What Ethereum asks for reading such a slot and then changing it, where it was not empty (EIP-2929).
pub const SLOT_CHANGE_GAS: u64 = 5_000;

/// Most gas that a market run may ever ask for: a block without user transactions holds it beside a full cron lane,
/// whatever governance sets (AIP125-08).
pub const MARKET_RUN_GAS_LARGEST: u64 = 5_000_000;

/// Least gas that a market run may ask for, calldata aside: what an empty transaction costs (AIP125-08).
pub const MARKET_RUN_GAS_LEAST: u64 = 21_000;

/// Most blocks that a scheduled transaction may wait for a price: its deposit is locked as long (AIP125-11).
pub const MARKET_EXPIRY_BLOCKS_LARGEST: u64 = 1_000;

/// Times of scheduled transactions are multiples of this (AIP125-03).
pub const MARKET_STEP_MS: u64 = 100;

/// Least gas that a schedule of the schedule service may ask for: what an empty transaction costs.
pub const SIGNED_RUN_GAS_LEAST: u64 = 21_000;

/// Most gas that a schedule of the schedule service may ever ask for: the transaction that triggers it must fit a block
/// with it.
pub const SIGNED_RUN_GAS_LARGEST: u64 = 15_000_000;

/// Longest body of a scheduled transaction, in its ABI encoding.
pub const SIGNED_BODY_BYTES_MAX: usize = 16 * 1024;

/// Most calls of a scheduled transaction.
pub const SIGNED_CALLS_MAX: usize = 16;

/// Most accounts that the calls of a scheduled transaction come from.
pub const SIGNED_SENDERS_MAX: usize = 8;

/// Most leaves that the keys of all required accounts may have when a schedule is created.
pub const SIGNED_LEAVES_MAX: usize = 64;

/// Longest memo of a scheduled transaction, as in Hedera.
pub const SIGNED_MEMO_BYTES_MAX: usize = 100;

/// Most signatures that one call brings.
pub const SIGNED_ENTRIES_MAX: usize = 32;

/// Most signatures that are recorded for one schedule. Above [`SIGNED_LEAVES_MAX`], since keys may be rotated meanwhile.
pub const SIGNED_SIGNERS_MAX: usize = 128;

/// Most schedules that one transaction triggers.
pub const SIGNED_TRIGGERS_MAX: u64 = 16;

/// Most slots of signatures that one block removes beside the records that it removes anyway.
pub const SIGNED_SWEPT_SLOTS_MAX: u64 = 4_000;

/// Largest calldata of a run. Bounds what a pending schedule occupies.
pub const RUN_INPUT_BYTES_MAX: usize = 16 * 1024;

// ---- State ----

/// Largest state value: above the code limit, so that code is an ordinary value.
pub const STATE_VALUE_BYTES_MAX: usize = 64 * 1024;

/// Most items in one node of the calendar. Measured in decision 0012: fewer make the tree deeper, more make every
/// change write more bytes.
pub const CALENDAR_NODE_ITEMS_MAX: usize = 32;

/// Most validators in a genesis file. Bounds a finality certificate.
pub const VALIDATORS_MAX: usize = 256;

// ---- Developer's chains ----

/// What the developer account starts with, in wei: 2^192, far above what any test asks for and far below what
/// would keep a sum of balances from fitting 256 bits.
pub const DEVELOPER_TREASURY: Wei = Wei(U256::from_limbs([0, 0, 0, 1]));

/// What an edit leaves the developer account, so that it can always pay for the next one: 2^128 wei is more
/// than any gas limit costs at any price.
pub const DEVELOPER_RESERVE: Wei = Wei(U256::from_limbs([0, 0, 1, 0]));

const _: () = assert!(CRON_BLOCK_GAS_DEFAULT <= BLOCK_GAS_DEFAULT / 2, "user transactions keep half a block");
const _: () = assert!(CODE_BYTES_MAX < STATE_VALUE_BYTES_MAX, "code is stored as one state value");
const _: () = assert!(INIT_CODE_BYTES_MAX < TRANSACTION_BYTES_MAX, "the largest contract can be deployed");
const _: () =
    assert!(TRANSACTION_BYTES_MAX <= BLOCK_BODY_BYTES_MAX / 8, "a block holds several of the largest");
const _: () =
    assert!(SPARE_BLOCK_GAS_DEFAULT <= RESERVED_BLOCK_GAS_DEFAULT, "spare work is what reserved left");
const _: () = assert!(RUN_INPUT_BYTES_MAX < STATE_VALUE_BYTES_MAX, "a body is stored as one state value");

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

/// Why a parameter cannot take a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// No parameter has this name.
    #[error("there is no parameter named {given:?}; known: {}", known_names())]
    Unknown {
        /// The name that was given.
        given: String,
    },
    /// The value is outside the parameter's bounds.
    #[error("{name} = {given} is outside {min}..={max}")]
    OutOfBounds {
        /// The parameter.
        name: &'static str,
        /// The refused value.
        given: u64,
        /// Smallest allowed.
        min: u64,
        /// Largest allowed.
        max: u64,
    },
    /// The value would break a relation with another parameter.
    #[error("cron_block_gas_max = {cron} is above half of block_gas_max = {block}")]
    CronAboveHalfBlock {
        /// The cron lane's gas.
        cron: u64,
        /// The block's gas.
        block: u64,
    },
    /// One class could book more of a second than a slot can count.
    #[error("{own_name} = {own} and second_effort_shared = {shared} are more than {max} together")]
    SecondTooLarge {
        /// The class's own part.
        own_name: &'static str,
        /// Its effort.
        own: u64,
        /// The shared part.
        shared: u64,
        /// Most that both may be.
        max: u64,
    },
    /// One block could not run all that one second can book.
    #[error("{booked} gas of one second is more than reserved_block_gas_max = {block}")]
    SecondAboveBlock {
        /// What one second can book.
        booked: u64,
        /// What one block can run of it.
        block: u64,
    },
    /// What is booked could no longer run in one block.
    #[error(
        "reserved_block_gas_max = {given} is below {current}, and it never falls: seconds may be booked up to it"
    )]
    ReservedFalls {
        /// The refused value.
        given: u64,
        /// The value in force.
        current: u64,
    },
}

fn known_names() -> String {
    PARAMETERS.map(|p| p.name).join(", ")
}

/// The values in force in one block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters(BTreeMap<u64, u64>);

impl Parameters {
    /// The value of a parameter.
    pub fn get(&self, parameter: Parameter) -> u64 {
        self.0.get(&parameter.slot).copied().unwrap_or(parameter.default)
    }

    /// Takes a value as stored, without checks: what is in state was checked when it was written.
    pub fn load(&mut self, parameter: Parameter, value: u64) {
        self.0.insert(parameter.slot, value);
    }

    /// Changes a value, or says why not. Nothing changes on an error.
    pub fn set(&mut self, parameter: Parameter, given: u64) -> Result<(), ParameterError> {
        let Parameter { name, min, max, .. } = parameter;
        if !(min..=max).contains(&given) {
            return Err(ParameterError::OutOfBounds { name, given, min, max });
        }
        let current = self.get(parameter);
        if parameter == RESERVED_BLOCK_GAS_MAX && given < current {
            return Err(ParameterError::ReservedFalls { given, current });
        }
        let mut changed = self.clone();
        changed.load(parameter, given);
        changed.check_relations()?;
        *self = changed;
        Ok(())
    }

    /// Checks what must hold between parameters.
    pub fn check_relations(&self) -> Result<(), ParameterError> {
        let (cron, block) = (self.get(CRON_BLOCK_GAS_MAX), self.get(BLOCK_GAS_MAX));
        if cron > block / 2 {
            return Err(ParameterError::CronAboveHalfBlock { cron, block });
        }
        self.check_second()
    }

    /// What one second can book fits its place in the state, and one block.
    fn check_second(&self) -> Result<(), ParameterError> {
        let shared = self.get(SECOND_SHARED_EFFORT);
        let sums =
            [(SECOND_HIGH_EFFORT, SECOND_EFFORT_HIGH_MAX), (SECOND_MEDIUM_EFFORT, SECOND_EFFORT_MEDIUM_MAX)];
        for (own, max) in sums {
            let (own_name, own, max) = (own.name, self.get(own), u64::from(max));
            if own.saturating_add(shared) > max {
                return Err(ParameterError::SecondTooLarge { own_name, own, shared, max });
            }
        }
        let effort = self.get(SECOND_HIGH_EFFORT) + self.get(SECOND_MEDIUM_EFFORT) + shared;
        let (booked, block) = (effort * EFFORT_GAS, self.get(RESERVED_BLOCK_GAS_MAX));
        if booked > block {
            return Err(ParameterError::SecondAboveBlock { booked, block });
        }
        Ok(())
    }

    /// Gas shared by user transactions and the lanes that compete with them.
    pub fn block_gas_max(&self) -> Gas {
        Gas(self.get(BLOCK_GAS_MAX))
    }

    /// The lowest base fee.
    pub fn base_fee_floor(&self) -> GasPrice {
        GasPrice(self.get(BASE_FEE_FLOOR_WEI).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_of_every_bound() {
        for p in PARAMETERS {
            // The widest neighbours, so that only the bound under test decides.
            let mut values = Parameters::default();
            values.load(BLOCK_GAS_MAX, BLOCK_GAS_MAX.max);
            values.load(CRON_BLOCK_GAS_MAX, CRON_BLOCK_GAS_MAX.min);
            for part in [SECOND_HIGH_EFFORT, SECOND_MEDIUM_EFFORT, SECOND_SHARED_EFFORT] {
                values.load(part, 0);
            }
            // It never falls, so it is tried from its least value.
            if p != RESERVED_BLOCK_GAS_MAX {
                values.load(RESERVED_BLOCK_GAS_MAX, RESERVED_BLOCK_GAS_MAX.max);
            }
            assert_eq!(values.clone().set(p, p.min), Ok(()), "{}", p.name);
            assert_eq!(values.clone().set(p, p.max), Ok(()), "{}", p.name);
            let too_much = values.clone().set(p, p.max + 1);
            assert!(matches!(too_much, Err(ParameterError::OutOfBounds { .. })), "{}", p.name);
            if let Some(below) = p.min.checked_sub(1) {
                let too_little = values.clone().set(p, below);
                assert!(matches!(too_little, Err(ParameterError::OutOfBounds { .. })), "{}", p.name);
            }
        }
    }

    #[test]
    fn cron_never_takes_more_than_half_a_block() {
        let mut values = Parameters::default();
        assert_eq!(values.set(CRON_BLOCK_GAS_MAX, 15_000_000), Ok(()));
        assert_eq!(
            values.set(CRON_BLOCK_GAS_MAX, 15_000_001),
            Err(ParameterError::CronAboveHalfBlock { cron: 15_000_001, block: 30_000_000 })
        );
        assert_eq!(
            values.set(BLOCK_GAS_MAX, 29_999_999),
            Err(ParameterError::CronAboveHalfBlock { cron: 15_000_000, block: 29_999_999 })
        );
        assert_eq!(values.get(BLOCK_GAS_MAX), 30_000_000, "a refused change leaves the value");
    }

    #[test]
    fn zero_can_be_stored() {
        assert_eq!(SECOND_SHARED_EFFORT.from_slot_value(U256::ZERO), SECOND_SHARED_EFFORT.default);
        assert_eq!(SECOND_SHARED_EFFORT.from_slot_value(Parameter::slot_value(0)), 0);
        assert_eq!(SECOND_SHARED_EFFORT.from_slot_value(Parameter::slot_value(u64::MAX)), u64::MAX);
    }

    #[test]
    fn names_find_their_parameter() {
        for p in PARAMETERS {
            assert_eq!(Parameter::by_name(p.name), Some(p));
            assert_eq!(Parameter::by_name_word(p.name_word()), Some(p));
        }
        assert_eq!(Parameter::by_name_word(B256::ZERO), None);
    }
}
