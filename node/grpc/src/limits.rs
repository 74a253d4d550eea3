//! Limits of gRPC beside those of all connections, which are in `almanac_rpc::Limits`.

use almanac_primitives::params::TRANSACTION_BYTES_MAX;
use std::time::Duration;

const KIB: usize = 1 << 10;

/// Bytes of one request, all its messages together.
pub const REQUEST_BYTES_MAX: usize = 512 * KIB;
const _: () =
    assert!(2 * TRANSACTION_BYTES_MAX <= REQUEST_BYTES_MAX, "the largest transaction fits, with its body");
/// Bytes of a request's headers.
pub const HEADER_BYTES_MAX: u32 = 16 << 10;
/// Bytes that a connection may send before the node has read any of them; so much is not in the budget.
pub const WINDOW_BYTES_MAX: u32 = 64 << 10;
/// Longest that a request is read and worked on. A client that sends `grpc-timeout` waits no longer than that.
pub const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);

/// `createSchedule` per second of one address.
pub const CREATES_PER_SECOND_MAX: u32 = 100;
/// `signSchedule` per second of one address.
pub const SIGNS_PER_SECOND_MAX: u32 = 1_000;
/// `deleteSchedule` per second of one address.
pub const DELETES_PER_SECOND_MAX: u32 = 100;
/// `getScheduleInfo` per second of one address.
pub const QUERIES_PER_SECOND_MAX: u32 = 1_000;
/// `getRecord` per second of one address.
pub const RECORDS_PER_SECOND_MAX: u32 = 100;
/// Requests per second of one address whose body is not the message of their method.
pub const MALFORMED_PER_SECOND_MAX: u32 = 100;
