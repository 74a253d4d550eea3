//! Limits of one call.

use super::{Row, bytes, count, row, time};
use almanac_index::IndexConfig;
use almanac_rpc::{bounds, heavy::HeavyLimits};
use almanac_trace::Limits as TraceLimits;

const TOO_MUCH: &str = "error -32005 with what was given and the limit";
const OUT_OF_RANGE: &str = "error -32602 with the range";
const LOGS: &str = "error -32005, \"query returned too much\", with the block at which to end the range";
const NOT_EXACT: &str = "what is due first is counted, `isExact` is false";
const ENDS_EARLY: &str = "error -32005 with how to ask for less";
const MISSED: &str = "the subscription ends with \"events came faster than they were read\"";

/// What any method may answer with.
pub(super) fn answers() -> Vec<Row> {
    vec![
        row(
            "answer of a method: `--rpc-answer` less the JSON-RPC envelope",
            bytes(bounds::ANSWER_BYTES_MAX),
            ENDS_EARLY,
        ),
        row("JSON-RPC envelope of a response", bytes(bounds::ENVELOPE_BYTES), "nothing"),
        row(
            "bytes of blocks read for `eth_feeHistory` with percentiles, an Otterscan page or a page of runs",
            bytes(bounds::READ_BYTES_MAX),
            ENDS_EARLY,
        ),
        row("blocks of `eth_feeHistory`", count(bounds::FEE_BLOCKS_MAX), "the newest ones, up to the limit"),
        row("percentiles of `eth_feeHistory`", count(bounds::FEE_PERCENTILES_MAX), TOO_MUCH),
        row(
            "wait of `eth_sendRawTransactionSync`",
            time(bounds::RECEIPT_WAIT_MAX),
            "error 4 with the hash; longer waits are cut to this",
        ),
    ]
}

/// Searches for logs, also those of the index, and filters.
pub(super) fn logs() -> Vec<Row> {
    let IndexConfig { search_rows_max, search_bytes_max, .. } = IndexConfig::default();
    vec![
        row("logs of an answer", count(bounds::LOGS_MAX), LOGS),
        row("blocks of a search for logs", count(bounds::LOG_RANGE_MAX), TOO_MUCH),
        row("contracts, or topics at one position", count(bounds::LOG_CHOICES_MAX), TOO_MUCH),
        row(
            "rows read by a search for logs or schedules",
            count(search_rows_max),
            "logs: error -32005 as above; schedules: a short page with a cursor",
        ),
        row("bytes read by a search for logs", bytes(search_bytes_max), LOGS),
        row(
            "filters of one client",
            count(bounds::CLIENT_FILTERS_MAX),
            "error -32005: remove some, or subscribe",
        ),
        row("filters of all clients", count(bounds::FILTERS_MAX), "error -32005: remove some, or subscribe"),
        row(
            "time that a filter is kept without being polled",
            time(bounds::FILTER_IDLE_MAX),
            "\"filter not found\"",
        ),
        row("blocks that a subscription may be behind", count(bounds::NEWS_MAX), MISSED),
        row("bytes of such blocks, for all subscriptions together", bytes(bounds::NEWS_BYTES_MAX), MISSED),
    ]
}

/// Calls that are tried out.
pub(super) fn tries() -> Vec<Row> {
    vec![
        row("accounts that a request overrides", count(bounds::OVERRIDE_ACCOUNTS_MAX), TOO_MUCH),
        row("slots that a request overrides", count(bounds::OVERRIDE_SLOTS_MAX), TOO_MUCH),
        row("blocks of `eth_simulateV1`", count(bounds::SIMULATE_BLOCKS_MAX), TOO_MUCH),
        row("calls of `eth_simulateV1`", count(bounds::SIMULATE_CALLS_MAX), TOO_MUCH),
    ]
}

/// Traces, and what Otterscan asks.
pub(super) fn traces() -> Vec<Row> {
    let TraceLimits { time_max, bytes_max } = TraceLimits::BLOCK;
    assert_eq!(TraceLimits::CALL.bytes_max, bytes_max, "calls have a row of their own otherwise");
    let bytes_max = usize::try_from(bytes_max).expect("limits fit 64 bits");
    vec![
        row("time of a trace of a transaction or block", time(time_max), ENDS_EARLY),
        row(
            "memory of a trace",
            bytes(bytes_max),
            "error -32005: leave out memory and stack, or use callTracer",
        ),
        row("blocks of `trace_filter`", count(bounds::TRACE_FILTER_BLOCKS_MAX), TOO_MUCH),
        row(
            "addresses on either side of `trace_filter`",
            count(bounds::TRACE_FILTER_ADDRESSES_MAX),
            TOO_MUCH,
        ),
        row("transactions of an Otterscan page", count(bounds::OTTERSCAN_PAGE_MAX), OUT_OF_RANGE),
        row("time of an Otterscan page", time(bounds::OTTERSCAN_TIME_MAX), ENDS_EARLY),
    ]
}

/// What is scheduled.
pub(super) fn schedules() -> Vec<Row> {
    vec![
        row(
            "entries of a page of schedules, runs or the agenda",
            count(bounds::ALMANAC_PAGE_MAX),
            OUT_OF_RANGE,
        ),
        row("runs of a preview", count(bounds::PREVIEW_RUNS_MAX), OUT_OF_RANGE),
        row("time of a preview", time(bounds::PREVIEW_TIME_MAX), ENDS_EARLY),
        row("seconds of `almanac_capacity`", count(bounds::CAPACITY_SECONDS_MAX), TOO_MUCH),
        row("schedules read by `almanac_capacity`", count(bounds::CAPACITY_SCHEDULES_MAX), NOT_EXACT),
        row("runs counted by `almanac_capacity`", count(bounds::CAPACITY_RUNS_MAX), NOT_EXACT),
        row(
            "blocks that `almanac_estimateSchedule` looks back",
            count(bounds::ESTIMATE_BLOCKS_MAX),
            "older blocks do not count",
        ),
        row(
            "scheduled transactions that it reads",
            count(bounds::ESTIMATE_SCHEDULES_MAX),
            "no block is expected behind more",
        ),
        row("intervals of `almanac_agendaBuckets`", count(bounds::BUCKETS_MAX), OUT_OF_RANGE),
        row(
            "schedules that `almanac_agendaBuckets` counts exactly",
            count(bounds::BUCKETS_SCHEDULES_MAX),
            "counts are estimates, `isExact` is false",
        ),
        row(
            "calendar nodes of a level that `almanac_agendaBuckets` reads for estimates",
            count(bounds::BUCKETS_NODES_MAX),
            "coarser estimates",
        ),
        row("leaves of the calendar in the proof of a span", count(bounds::PROOF_LEAVES_MAX), ENDS_EARLY),
    ]
}

/// Typed data to be signed.
pub(super) fn typed_data() -> Vec<Row> {
    vec![
        row("EIP-712 data", bytes(bounds::TYPED_DATA_BYTES_MAX), TOO_MUCH),
        row("struct types of EIP-712 data", count(bounds::TYPED_DATA_TYPES_MAX), TOO_MUCH),
        row("fields of all its struct types", count(bounds::TYPED_DATA_FIELDS_MAX), TOO_MUCH),
        row("name of a type", bytes(bounds::TYPED_DATA_NAME_BYTES_MAX), TOO_MUCH),
        row("depth of types and arrays", count(bounds::TYPED_DATA_DEPTH_MAX), TOO_MUCH),
        row(
            "types, each expanded with all types it contains",
            count(bounds::TYPED_DATA_EXPANDED_MAX),
            TOO_MUCH,
        ),
        row("steps of hashing EIP-712 data", count(bounds::TYPED_DATA_STEPS_MAX), TOO_MUCH),
    ]
}

/// How many calls of a kind are worked on.
pub(super) fn queues() -> Vec<Row> {
    let queue = |name, limits: HeavyLimits| {
        let HeavyLimits { running_max, waiting_max } = limits;
        let shown = format!("{running_max} run, {} wait", count(waiting_max));
        row(name, shown, "error -32005: ask again later")
    };
    vec![
        queue("traces and Otterscan methods", HeavyLimits::default()),
        queue("calls, simulations, searches for logs, fees, the pool", HeavyLimits::QUESTIONS),
        queue("queries about schedules", HeavyLimits::QUESTIONS),
        queue("blocks, transactions, receipts", HeavyLimits::READS),
        queue("sent transactions", HeavyLimits::SENDING),
        Row { seen: "HTTP 503: ask again later", ..queue("pages such as `/metrics`", HeavyLimits::PAGES) },
    ]
}
