//! Limits of one call. Every limit that a method enforces is here, so that there is one list of them.
//!
//! Limits of connections, requests and batches are in [`crate::Limits`], of traces in [`almanac_trace::Limits`], of
//! searches in [`almanac_index::IndexConfig`], of concurrent work in [`crate::heavy::HeavyLimits`].

use std::time::Duration;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// What a response has beside the answer: the id, and JSON-RPC's own words.
pub const ENVELOPE_BYTES: usize = 4 * KIB;
/// Bytes of one answer, as JSON, unless the server was told another number.
pub const ANSWER_BYTES_MAX: usize = 10 * MIB - ENVELOPE_BYTES;
/// Bytes of blocks that one call reads, as they are stored.
pub const READ_BYTES_MAX: usize = 256 * MIB;

/// Logs of one answer.
pub const LOGS_MAX: usize = 10_000;
/// Blocks that a search for logs may ask about.
pub const LOG_RANGE_MAX: u64 = 10_000;
/// Contracts of a filter, and topics at one position.
pub const LOG_CHOICES_MAX: usize = 100;

/// Filters at once, of all clients.
pub const FILTERS_MAX: usize = 1_000;
/// Filters of one client. Where there is no room for all, the address that has most loses one.
pub const CLIENT_FILTERS_MAX: usize = 100;
/// A filter that nobody asked for this long is gone.
pub const FILTER_IDLE_MAX: Duration = Duration::from_secs(300);

/// Blocks, and going back, that a subscription may be behind.
pub const NEWS_MAX: usize = 1_024;
/// Bytes of the blocks that subscriptions are behind, all together.
pub const NEWS_BYTES_MAX: usize = 64 * MIB;

/// How long a client may wait for the receipt of what it sends.
pub const RECEIPT_WAIT_MAX: Duration = Duration::from_secs(30);

/// Blocks that one fee history tells of.
pub const FEE_BLOCKS_MAX: u64 = 1_024;
/// Percentiles that one fee history computes.
pub const FEE_PERCENTILES_MAX: usize = 100;

/// Accounts that one request may override, in all its blocks together.
pub const OVERRIDE_ACCOUNTS_MAX: usize = 1_000;
/// Slots that one request may override, in all its blocks together.
pub const OVERRIDE_SLOTS_MAX: usize = 10_000;

/// Blocks of one `eth_simulateV1`; other nodes allow as many.
pub const SIMULATE_BLOCKS_MAX: usize = 256;
/// Calls of one `eth_simulateV1`.
pub const SIMULATE_CALLS_MAX: usize = 1_000;

/// Blocks that one `trace_filter` may look through. Each is run again.
pub const TRACE_FILTER_BLOCKS_MAX: u64 = 1_000;
/// Addresses on either side of a `trace_filter`.
pub const TRACE_FILTER_ADDRESSES_MAX: usize = 1_000;

/// Transactions that a page of Otterscan's may be asked for.
pub const OTTERSCAN_PAGE_MAX: u64 = 500;
/// How long the blocks of one such page may be run again.
pub const OTTERSCAN_TIME_MAX: Duration = Duration::from_secs(10);

/// Entries of a page of schedules, runs or the agenda.
pub const ALMANAC_PAGE_MAX: u64 = 100;
/// Runs of one preview.
pub const PREVIEW_RUNS_MAX: u64 = 10;
/// How long the runs of one preview may take.
pub const PREVIEW_TIME_MAX: Duration = Duration::from_secs(2);
/// Seconds that one question about capacity spans.
pub const CAPACITY_SECONDS_MAX: u64 = 3_600;
/// Schedules that one question about capacity looks at.
pub const CAPACITY_SCHEDULES_MAX: usize = 10_000;
/// Runs that one question about capacity counts.
pub const CAPACITY_RUNS_MAX: u64 = 1_000_000;
/// Blocks that `almanac_estimateSchedule` looks back.
pub const ESTIMATE_BLOCKS_MAX: u64 = 20;
/// Scheduled transactions that it looks at: those that wait, and those that become due with the given one.
pub const ESTIMATE_SCHEDULES_MAX: usize = 1_000;
/// Intervals of one `almanac_agendaBuckets`.
pub const BUCKETS_MAX: u64 = 240;
/// Schedules whose runs `almanac_agendaBuckets` counts one by one.
pub const BUCKETS_SCHEDULES_MAX: usize = 2_000;
/// Nodes of the calendar that `almanac_agendaBuckets` reads of one level and lane when there are more.
pub const BUCKETS_NODES_MAX: usize = 1_000;

pub use almanac_proof::PROOF_LEAVES_MAX;

/// Bytes of EIP-712 typed data.
pub const TYPED_DATA_BYTES_MAX: usize = 256 * KIB;
/// Struct types of typed data.
pub const TYPED_DATA_TYPES_MAX: usize = 64;
/// Fields of all struct types of typed data together.
pub const TYPED_DATA_FIELDS_MAX: usize = 512;
/// Bytes of the name of one type of typed data.
pub const TYPED_DATA_NAME_BYTES_MAX: usize = 256;
/// How deep the types of typed data hold each other; an array counts as much as a struct.
pub const TYPED_DATA_DEPTH_MAX: usize = 32;
/// Types of typed data when each field is written out with all that its type holds. Types that hold the next one
/// twice double this number each.
pub const TYPED_DATA_EXPANDED_MAX: u64 = 4_096;
/// Steps that hashing typed data may take: for each struct in the message, all bytes of the types, and each field
/// compared with each type.
pub const TYPED_DATA_STEPS_MAX: u64 = 32 << 20;
