//! Every limit of the transport: what a client may have open, in flight and unread.
//!
//! `docs/limits.md` lists them; a test of the binary compares that page with these values.

use std::time::Duration;

/// What clients may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most connections at once.
    pub connections_max: usize,
    /// Most connections of one address (IPv6: one /64).
    pub address_connections_max: usize,
    /// Places, out of `connections_max`, that only an address without a connection can take.
    pub connections_kept: usize,
    /// Calls that one WebSocket has in flight; its next message is not read before one is answered and sent.
    pub connection_calls_max: usize,
    /// Calls of one address that are being worked on; further ones wait.
    pub address_calls_max: usize,
    /// Results of one address that are written down as JSON at once, off the threads that serve connections.
    pub address_writes_max: usize,
    /// Bytes of requests and answers that one connection makes the node hold.
    pub connection_bytes_max: usize,
    /// The same for all connections of one address.
    pub address_bytes_max: usize,
    /// The same for all connections.
    pub total_bytes_max: usize,
    /// Largest request in bytes.
    pub request_bytes_max: usize,
    /// Largest answer, and largest message of a subscription, in bytes.
    pub response_bytes_max: usize,
    /// Most calls in one batch.
    pub batch_max: usize,
    /// Most subscriptions of one connection.
    pub subscriptions_max: usize,
    /// Bytes of notifications that wait for one connection to read them.
    pub notification_bytes_max: usize,
    /// A subscription ends if its connection takes no notification for this long.
    pub notification_time_max: Duration,
    /// Longest that the EVM works for one request that only tries calls out.
    pub call_time_max: Duration,
    /// Calls per second of one address; `None` for no limit.
    pub calls_per_second_max: Option<u32>,
    /// A client that has not sent its whole head, or its whole body, after this long is cut off.
    pub request_time_max: Duration,
    /// A client that has not taken a whole answer after this long is cut off.
    pub send_time_max: Duration,
    /// A connection without a request, or a WebSocket that answers no ping, is closed after this long.
    pub idle_time_max: Duration,
}

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// Answers of up to this many bytes are held without asking the budget: the number of calls in flight bounds them, and
/// so small questions are answered while large answers fill the budget.
pub const FREE_BYTES: usize = 4 * KIB;

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 512,
            // A page or a script that asks a hundred things at once has a connection for each.
            address_connections_max: 192,
            connections_kept: 64,
            connection_calls_max: 16,
            address_calls_max: 64,
            address_writes_max: 2,
            connection_bytes_max: 32 * MIB,
            address_bytes_max: 64 * MIB,
            total_bytes_max: 256 * MIB,
            request_bytes_max: 2 * MIB,
            response_bytes_max: 10 * MIB,
            batch_max: 100,
            subscriptions_max: 32,
            notification_bytes_max: 256 * KIB,
            notification_time_max: Duration::from_secs(5),
            call_time_max: Duration::from_secs(2),
            calls_per_second_max: None,
            request_time_max: Duration::from_secs(10),
            send_time_max: Duration::from_secs(20),
            idle_time_max: Duration::from_secs(60),
        }
    }
}

/// Why limits do not fit each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitsError {
    /// A limit that allows nothing.
    #[error("{0} is 0: the node would serve nothing")]
    Zero(&'static str),
    /// A smaller scope allows more than a larger one.
    #[error("{inner} is {inner_value}, above {outer}, which is {outer_value}")]
    AboveOuter {
        /// The limit of the smaller scope.
        inner: &'static str,
        /// Its value.
        inner_value: usize,
        /// The limit of the larger scope.
        outer: &'static str,
        /// Its value.
        outer_value: usize,
    },
}

impl Limits {
    /// Checks that every scope fits into the next larger one, so that each limit can be reached.
    pub fn check(&self) -> Result<(), LimitsError> {
        let Self {
            connections_max,
            address_connections_max,
            connections_kept,
            connection_calls_max,
            address_calls_max,
            connection_bytes_max,
            address_bytes_max,
            total_bytes_max,
            request_bytes_max,
            response_bytes_max,
            ..
        } = *self;
        let nested = [
            ("connections per address", address_connections_max, "connections", connections_max),
            ("connections kept", connections_kept.saturating_add(1), "connections", connections_max),
            ("calls per connection", connection_calls_max, "calls per address", address_calls_max),
            ("bytes per request", request_bytes_max, "bytes per connection", connection_bytes_max),
            ("bytes per answer", response_bytes_max, "bytes per connection", connection_bytes_max),
            ("bytes per connection", connection_bytes_max, "bytes per address", address_bytes_max),
            ("bytes per address", address_bytes_max, "bytes in all", total_bytes_max),
        ];
        for (inner, inner_value, outer, outer_value) in nested {
            if inner_value == 0 {
                return Err(LimitsError::Zero(inner));
            }
            if inner_value > outer_value {
                return Err(LimitsError::AboveOuter { inner, inner_value, outer, outer_value });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_fit_each_other() {
        assert_eq!(Limits::default().check(), Ok(()));
    }

    #[test]
    fn a_scope_is_no_larger_than_the_one_around_it() {
        let limits = Limits::default();
        let equal = Limits { address_connections_max: limits.connections_max, ..limits };
        assert_eq!(equal.check(), Ok(()));
        let above = Limits { address_connections_max: limits.connections_max + 1, ..limits };
        assert_eq!(
            above.check().unwrap_err().to_string(),
            "connections per address is 513, above connections, which is 512"
        );
        let kept = |connections_kept| Limits { connections_kept, ..limits }.check();
        assert!(kept(limits.connections_max - 1).is_ok() && kept(limits.connections_max).is_err());
        let none = Limits { connection_calls_max: 0, ..limits };
        assert_eq!(none.check(), Err(LimitsError::Zero("calls per connection")));
    }
}
