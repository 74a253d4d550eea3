//! Limits of gRPC, beside those of all connections.

use super::{Row, bytes, count, row, time};
use almanac_grpc::limits::{
    CREATES_PER_SECOND_MAX, DELETES_PER_SECOND_MAX, HEADER_BYTES_MAX, MALFORMED_PER_SECOND_MAX,
    QUERIES_PER_SECOND_MAX, RECORDS_PER_SECOND_MAX, REQUEST_BYTES_MAX, REQUEST_TIME_MAX,
    SIGNS_PER_SECOND_MAX, WINDOW_BYTES_MAX,
};
use almanac_rpc::Limits;

/// Every number of `node/grpc/src/limits.rs`.
pub(super) fn grpc() -> Vec<Row> {
    let size = |bytes_max: u32| bytes(usize::try_from(bytes_max).expect("limits fit memory"));
    let streams = Limits::default().connection_calls_max;
    let busy = "code BUSY";
    let too_long = "RESOURCE_EXHAUSTED, or OUT_OF_RANGE if it announces them";
    vec![
        row("requests in flight of a connection", streams, "the client waits to send the next")
            .flag("rpc-calls-per-connection"),
        row("request, all its messages together", bytes(REQUEST_BYTES_MAX), too_long),
        row("headers of a request", size(HEADER_BYTES_MAX), "HTTP 431"),
        row("unread bytes of a connection", size(WINDOW_BYTES_MAX), "the client waits to send more"),
        row("time to send a request, and to work on it", time(REQUEST_TIME_MAX), "DEADLINE_EXCEEDED"),
        row("createSchedule per second of one address", count(CREATES_PER_SECOND_MAX), busy),
        row("signSchedule per second of one address", count(SIGNS_PER_SECOND_MAX), busy),
        row("deleteSchedule per second of one address", count(DELETES_PER_SECOND_MAX), busy),
        row("getScheduleInfo per second of one address", count(QUERIES_PER_SECOND_MAX), busy),
        row("getRecord per second of one address", count(RECORDS_PER_SECOND_MAX), "RESOURCE_EXHAUSTED"),
        row(
            "malformed requests per second of one address",
            count(MALFORMED_PER_SECOND_MAX),
            "RESOURCE_EXHAUSTED",
        ),
    ]
}
