//! The command line.

use crate::{
    account_command::AccountArgs,
    agenda_command::AgendaArgs,
    chain_flags::ChainFlags,
    completions::CompletionsArgs,
    db::DbCommand,
    doctor::DoctorArgs,
    fork::ForkFlags,
    grpc::GrpcFlags,
    index_command::IndexCommand,
    keystore::KeyCommand,
    logging::LogFlags,
    network::{KeysCommand, NetworkCommand, NodeCommand},
    proof::ProofCommand,
    rpc_flags::RpcFlags,
    schedule::ScheduleCommand,
    send::SendCommand,
    services::MetricsFlags,
    subscribe::SubscribeArgs,
    top::TopArgs,
};
use almanac_primitives::DurationMs;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// An EVM chain with a calendar in the protocol.
#[derive(Debug, Parser)]
#[command(
    name = "almanac",
    version,
    after_help = "Examples:\n  almanac dev                                        a chain on http://127.0.0.1:8545\n  almanac dev --help                                 all flags of dev\n  almanac schedule every \"day at 09:00 UTC\" …       schedule a call, in words\n  almanac top                                        watch the chain\n  almanac network new --validators 4 --dir net       a network of validators\n  almanac db export --datadir DIR --out FILE         back up a chain"
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a developer chain with ten funded accounts.
    Dev(Box<DevConfig>),
    /// Run one node of a network: a validator or a follower.
    Node(NodeCommand),
    /// Create a network of validators and followers, or run one on this machine.
    #[command(subcommand)]
    Network(NetworkCommand),
    /// Create and show keys of nodes.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Back up a data directory, or restore one.
    #[command(subcommand)]
    Db(DbCommand),
    /// Rebuild the index, or print its digest.
    #[command(subcommand)]
    Index(IndexCommand),
    /// Get and verify proofs of accounts, schedules and runs.
    #[command(subcommand)]
    Proof(ProofCommand),
    /// Sign and send a native transaction: orderless, a batch, with a fee payer, or offline.
    Send(Box<SendCommand>),
    /// Make, sign, show, watch, cancel and top up schedules.
    #[command(subcommand)]
    Schedule(ScheduleCommand),
    /// Subscribe to a merchant, who is paid in a token every interval.
    Subscribe(Box<SubscribeArgs>),
    /// Show what is due next.
    Agenda(AgendaArgs),
    /// Show an account: balance, key, schedules.
    Account(AccountArgs),
    /// Make, list, import and export encrypted keys of accounts.
    #[command(subcommand)]
    Key(KeyCommand),
    /// Watch the chain on a dashboard.
    Top(TopArgs),
    /// Check node, clock, balance, ports and data directory, and say what to do.
    Doctor(DoctorArgs),
    /// Print completions for a shell.
    Completions(CompletionsArgs),
}

/// How a developer's chain runs.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  almanac dev                              a block per transaction, in memory
  almanac dev --block-time 200ms           a block every 200 ms
  almanac dev --datadir ./chain            keep the chain on disk, and continue it
  almanac dev --port 0                     any free port; the banner shows it
  almanac dev --grpc-port 50211            serve gRPC too
  almanac dev --fork-url http://127.0.0.1:9545     start from the state of the chain there
  almanac dev --json --log-format json     output for programs
  almanac dev --allow-origin https://app.example   also accept web pages of this site

Logs go to standard error; RUST_LOG=debug shows more, RUST_LOG=off none.")]
pub(crate) struct DevConfig {
    /// Port for JSON-RPC; 0 picks a free port.
    #[arg(long, short = 'p', default_value_t = 8545)]
    pub(crate) port: u16,

    /// Chain id [default: 31337, or that of the data directory or of the forked chain].
    #[arg(long)]
    pub(crate) chain_id: Option<u64>,

    /// Make a block at this interval (200ms, 1s, 2m) instead of one per transaction.
    #[arg(long, short = 'b', value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) block_time: Option<DurationMs>,

    /// Keep the chain in this directory, which is created if it does not exist.
    #[arg(long, value_name = "DIR")]
    pub(crate) datadir: Option<PathBuf>,

    /// Answer of `web3_clientVersion`; some tools accept only names that they know, such as anvil/v1.0.0.
    #[arg(long, value_name = "TEXT", default_value = almanac_rpc::CLIENT_VERSION)]
    pub(crate) client_version: String,

    /// Print the banner as one JSON object.
    #[arg(long = "json")]
    pub(crate) is_json: bool,

    /// Print only the address, and log nothing.
    #[arg(long = "silent")]
    pub(crate) is_silent: bool,

    /// Log every JSON-RPC call with its duration.
    #[arg(long = "log-calls", conflicts_with = "is_silent")]
    pub(crate) is_logging_calls: bool,

    #[command(flatten)]
    pub(crate) log: LogFlags,

    /// Keep the state of this many blocks before the last one [default: all].
    #[arg(long, value_name = "BLOCKS")]
    pub(crate) history: Option<u64>,

    /// What the chain starts with.
    #[command(flatten)]
    pub(crate) chain: ChainFlags,

    /// What lies below it.
    #[command(flatten)]
    pub(crate) fork: ForkFlags,

    /// Who may call, and how much.
    #[command(flatten)]
    pub(crate) rpc: RpcFlags,

    /// Where gRPC is served.
    #[command(flatten)]
    pub(crate) grpc: GrpcFlags,

    /// Where it is watched.
    #[command(flatten)]
    pub(crate) metrics: MetricsFlags,
}

/// Longest time that makes sense to ask for.
const DURATION_MAX: DurationMs = DurationMs(24 * 60 * 60 * 1_000);

/// Reads `200ms`, `1s`, `2m`, or a bare number of seconds.
pub(crate) fn parse_duration(text: &str) -> Result<DurationMs, String> {
    let malformed = || format!("{text:?} is not a duration: write 200ms, 1s or 2m");
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| malformed())?;
    let scale = match unit {
        "ms" => 1,
        "s" | "" => 1_000,
        "m" => 60_000,
        _ => return Err(malformed()),
    };
    let duration = number.checked_mul(scale).map(DurationMs).ok_or_else(malformed)?;
    if !(DurationMs(1)..=DURATION_MAX).contains(&duration) {
        return Err(format!("{text} is not between 1ms and 24 hours"));
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    /// Every command that does something shows how it is called, with its own name.
    #[test]
    fn the_help_of_every_command_has_an_example() {
        fn check(command: &clap::Command, called: &str) {
            if command.has_subcommands() {
                let inner = command.get_subcommands().filter(|inner| inner.get_name() != "help");
                inner.for_each(|inner| check(inner, &format!("{called} {}", inner.get_name())));
            } else {
                let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.contains("Example") && help.contains(called), "{called} --help: {help}");
            }
        }
        check(&Cli::command(), "almanac");
    }

    #[test]
    fn durations_as_people_write_them() {
        for (text, ms) in [("200ms", 200), ("1s", 1_000), ("2m", 120_000), ("3", 3_000), ("1ms", 1)] {
            assert_eq!(parse_duration(text), Ok(DurationMs(ms)), "{text}");
        }
        assert_eq!(parse_duration("1440m"), Ok(DURATION_MAX));
        for bad in ["", "0", "0ms", "-1s", "1.5s", "1h", "ms", "1441m", "99999999999999999999s", "5 s"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }
}
