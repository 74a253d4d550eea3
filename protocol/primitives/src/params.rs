//! Every number that consensus depends on, with its unit and its reason.
//!
//! Constants, here, are fixed for the life of the chain. [`Parameter`]s (`params/governed.rs`) may be changed at run
//! time by governance through the params contract, within their bounds; a change takes effect at the next block.
//! [`Parameters`] (`params/values.rs`) are those in force.

mod governed;
mod values;

pub use governed::*;
pub use values::{ParameterError, Parameters};

use crate::units::{GasPrice, Wei};
use alloy_primitives::U256;

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

/// Gas of each signature of a native transaction after the first, which the transaction's base price contains. More than
/// the 3,000 of the ecrecover precompile: for the same gas, a signature of Ed25519 takes no longer than that.
pub const SIGNATURE_GAS: u64 = 5_000;

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
