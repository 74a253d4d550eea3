//! Flags for access to JSON-RPC and for its limits, shared by `dev` and `node`.

use crate::cli::parse_duration;
use almanac_primitives::DurationMs;
use almanac_rpc::{Access, Limits, ServerConfig};
use anyhow::Context as _;
use clap::Args;
use std::time::Duration;

/// Where the flags stand in the help.
pub(crate) const HEADING: &str = "JSON-RPC";

/// Flags of everything that serves JSON-RPC. docs/limits.md tells what callers see.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct RpcFlags {
    /// Accept requests from web pages of this origin, such as https://app.example; * accepts all. May be repeated.
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,

    /// Serve requests for this host name, such as node.example; IP addresses and localhost need no flag. May be
    /// repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,

    /// Calls per second from one address; every HTTP request and WebSocket message counts [default: no limit].
    #[arg(long, value_name = "CALLS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate_limit: Option<u32>,

    /// EVM time for one request that simulates calls, such as eth_call or eth_estimateGas.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = parse_duration)]
    pub(crate) call_time: DurationMs,

    /// Most connections at once. An eighth of them is reserved for addresses that have none.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(8..=65_536))]
    pub(crate) rpc_connections: u32,

    /// Most connections from one address at once.
    #[arg(long, value_name = "N", default_value_t = 192, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rpc_connections_per_address: u32,

    /// Most calls in flight on one WebSocket.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1_024))]
    pub(crate) rpc_calls_per_connection: u32,

    /// Most calls from one address at work at once.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) rpc_calls_per_address: u32,

    /// Memory for requests and answers of all connections, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(16..=65_536))]
    pub(crate) rpc_memory: u32,

    /// Memory for requests and answers of one address, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(16..=65_536))]
    pub(crate) rpc_memory_per_address: u32,

    /// Largest answer, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_024))]
    pub(crate) rpc_answer: u32,

    /// Most calls in one batch.
    #[arg(long, value_name = "CALLS", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) rpc_batch: u32,

    /// Most subscriptions on one WebSocket.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1_024))]
    pub(crate) rpc_subscriptions: u32,

    /// Disconnect a client that takes longer than this to read an answer.
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = parse_duration)]
    pub(crate) rpc_send_time: DurationMs,

    /// Close a connection after this time without a request.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_duration)]
    pub(crate) rpc_idle_time: DurationMs,
}

impl RpcFlags {
    /// Who may call a developer's chain, and how much.
    pub(crate) fn developer(&self) -> anyhow::Result<ServerConfig> {
        self.config(Access::developer())
    }

    /// Who may call a node of a network, and how much.
    pub(crate) fn node(&self) -> anyhow::Result<ServerConfig> {
        self.config(Access::node())
    }

    fn config(&self, access: Access) -> anyhow::Result<ServerConfig> {
        let access = access.with_origins(&self.allow_origin).context("--allow-origin")?;
        let access = access.with_hosts(&self.allow_host).context("--allow-host")?;
        let limits = self.limits();
        limits.check().context("the limits of JSON-RPC contradict each other")?;
        Ok(ServerConfig { limits, access })
    }

    /// A limit for one connection or one address is no larger than what there is for all.
    pub(crate) fn limits(&self) -> Limits {
        let usual = Limits::default();
        let count = |flag: u32| usize::try_from(flag).unwrap_or(usize::MAX);
        let mebibytes = |flag: u32| count(flag).saturating_mul(1024 * 1024);
        let time = |DurationMs(ms)| Duration::from_millis(ms);
        let (connections_max, total_bytes_max) = (count(self.rpc_connections), mebibytes(self.rpc_memory));
        let address_calls_max = count(self.rpc_calls_per_address);
        let address_bytes_max = mebibytes(self.rpc_memory_per_address).min(total_bytes_max);
        let response_bytes_max = mebibytes(self.rpc_answer);
        Limits {
            connections_max,
            address_connections_max: count(self.rpc_connections_per_address).min(connections_max),
            connections_kept: connections_max / 8,
            connection_calls_max: count(self.rpc_calls_per_connection).min(address_calls_max),
            address_calls_max,
            connection_bytes_max: usual.connection_bytes_max.max(response_bytes_max).min(address_bytes_max),
            address_bytes_max,
            total_bytes_max,
            response_bytes_max,
            batch_max: count(self.rpc_batch),
            subscriptions_max: count(self.rpc_subscriptions),
            call_time_max: time(self.call_time),
            calls_per_second_max: self.rate_limit,
            send_time_max: time(self.rpc_send_time),
            idle_time_max: time(self.rpc_idle_time),
            ..usual
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser as _;

    fn flags(given: &[&str]) -> RpcFlags {
        let cli = Cli::try_parse_from([&["almanac", "dev"], given].concat()).unwrap();
        let Command::Dev(config) = cli.command else { unreachable!("dev was asked for") };
        config.rpc
    }

    #[test]
    fn without_flags_the_limits_are_the_usual_ones() {
        assert_eq!(flags(&[]).limits(), Limits::default());
    }

    #[test]
    fn a_smaller_whole_makes_its_parts_smaller() {
        let small = flags(&["--rpc-connections", "8", "--rpc-memory", "16"]).developer().unwrap().limits;
        assert_eq!((small.connections_max, small.address_connections_max, small.connections_kept), (8, 8, 1));
        assert_eq!(small.connection_bytes_max, 16 << 20);
        let few = flags(&["--rpc-calls-per-address", "4"]).node().unwrap().limits;
        assert_eq!((few.address_calls_max, few.connection_calls_max), (4, 4));
        let large = flags(&["--rpc-answer", "100"]).developer();
        assert!(format!("{:#}", large.unwrap_err()).contains("bytes per answer is 104857600"));
    }

    #[test]
    fn what_is_no_origin_or_host_is_refused() {
        assert!(flags(&["--allow-origin", "https://a.example", "--allow-origin", "*"]).developer().is_ok());
        let wrong = format!("{:#}", flags(&["--allow-origin", "a.example"]).developer().unwrap_err());
        assert!(wrong.starts_with("--allow-origin") && wrong.contains("https://app.example"), "{wrong}");
        assert!(flags(&["--allow-host", "a.example:80"]).node().is_err());
    }
}
