//! Networks of validators and followers: their keys, their files, and running them.

mod behind;
mod card;
mod config;
mod copy;
mod evidence;
mod gather;
mod keys;
mod mark;
mod new;
mod node;
mod ports;
mod serve;
mod stalled;
mod start;
mod up;
mod vote_again;
mod votes;
mod watch;

use crate::{logging::LogFlags, rpc_flags::RpcFlags, services::MetricsFlags};
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[cfg(test)]
pub(crate) use config::{POOL_MAX, is_key as is_config_key};
pub(crate) use keys::{KeysCommand, run as keys};
pub(crate) use node::run as node;

/// Makes and runs networks.
#[derive(Debug, Subcommand)]
pub(crate) enum NetworkCommand {
    /// Create keys, a genesis and configs for a new network on this machine.
    #[command(after_help = "Examples:
  almanac network new --dir net                                     four validators
  almanac network new --validators 7 --followers 1 --dir net        seven, and a follower
  almanac network new --block-time-ms 100 --rpc-port 9545 --dir net faster, on other ports")]
    New(new::NewNetwork),
    /// Gather the public cards of independent operators into a genesis and configs.
    #[command(after_help = "Example:
  almanac keys new --out validator.key                              each operator, on its own machine
  almanac keys card --file validator.key --name acme --address v.acme.example:30300 \\
      --fee-recipient 0x7099…79C8 --out acme.json
  almanac network gather acme.json beta.json gamma.json delta.json --dir net --chain-id 7001 \\
      --governance 0xf39F…2266 --allocate 0xf39F…2266=1000000coins")]
    Gather(gather::GatherNetwork),
    /// Run all nodes that `network new` created.
    #[command(after_help = "Example:
  almanac network new --dir net && almanac network up --dir net     Ctrl-C stops it, the next start continues")]
    Up(up::NetworkUp),
    /// Check and print the conflicting votes that a node has received.
    #[command(after_help = "Example:
  almanac network evidence --config net/v0/config.json              also while the node runs")]
    Evidence(evidence::ShowEvidence),
}

/// Runs one node: a validator, or a follower if the genesis does not name its key.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  almanac network new --validators 4 --followers 1 --dir net    create keys, genesis and configs
  almanac node --config net/v0/config.json                      run the first validator
  almanac node --config net/f0/config.json                      run the follower
  almanac node --config net/v0/config.json --log-format json    log one JSON object per line
  almanac node --config net/v0/config.json --metrics-addr 10.0.0.5:9100    /health and /metrics apart from JSON-RPC

A follower serves the same JSON-RPC as a validator and has no vote. Validators accept it if their
configs list its public key (almanac keys show) under \"followers\".

With \"sync\": \"state\" a node with an empty directory copies the state after a recent final block, checks it
against the validators' signatures, and has no older blocks. A node that starts more than syncBehindBlocks
behind does the same and removes its old blocks. With \"blocks\" it fetches and executes all blocks.")]
pub(crate) struct NodeCommand {
    /// Its config file, as `almanac network new` writes it.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// Vote at once, although this node's files may lack votes that its key has signed. Use it only if the network has
    /// stopped because too many validators are silent, and no other node uses the key: otherwise two chains may result.
    #[arg(long)]
    pub(crate) vote_now: bool,
    #[command(flatten)]
    pub(crate) log: LogFlags,
    #[command(flatten)]
    pub(crate) metrics: MetricsFlags,
    /// Who may call, and how much.
    #[command(flatten)]
    pub(crate) rpc: RpcFlags,
}

/// Does what the command says.
pub(crate) async fn run(command: &NetworkCommand) -> anyhow::Result<()> {
    match command {
        NetworkCommand::New(network) => new::run(network),
        NetworkCommand::Gather(network) => gather::run(network),
        NetworkCommand::Up(network) => up::run(network).await,
        NetworkCommand::Evidence(shown) => evidence::run(shown),
    }
}
