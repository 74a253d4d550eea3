//! Chains with many validators, and nodes that follow them: their keys, their files, and running them.

mod behind;
mod config;
mod copy;
mod evidence;
mod keys;
mod mark;
mod new;
mod node;
mod ports;
mod quiet;
mod serve;
mod silent;
mod up;
mod votes;
mod watch;

use crate::rpc_flags::RpcFlags;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[cfg(test)]
pub(crate) use config::{POOL_MAX, is_key as is_config_key};
pub(crate) use keys::{KeysCommand, run as keys};
pub(crate) use node::run as node;

/// Makes and runs networks.
#[derive(Debug, Subcommand)]
pub(crate) enum NetworkCommand {
    /// Write keys, a genesis and a configuration for each node of a new network on this machine.
    #[command(after_help = "Examples:
  almanac network new --dir net                                     four validators
  almanac network new --validators 7 --followers 1 --dir net        seven, and a node without a vote
  almanac network new --block-time-ms 100 --rpc-port 9545 --dir net faster, on other ports")]
    New(new::NewNetwork),
    /// Run all nodes of a directory that `network new` wrote.
    #[command(after_help = "Example:
  almanac network new --dir net && almanac network up --dir net     ends with Ctrl-C, goes on where it stopped")]
    Up(up::NetworkUp),
    /// Show validators that signed two votes which conflict, as a node has seen it. Checks the signatures.
    #[command(after_help = "Example:
  almanac network evidence --config net/v0/config.json              the node may run meanwhile")]
    Evidence(evidence::ShowEvidence),
}

/// Runs one node: a validator, or a follower if the genesis does not name its key.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  almanac network new --validators 4 --followers 1 --dir net    write keys, genesis and configurations
  almanac node --config net/v0/config.json                      run the first validator
  almanac node --config net/f0/config.json                      run the follower

A follower serves the same JSON-RPC as a validator and has no vote. The validators let it in if their
configurations list its public key (almanac keys show) under \"followers\".

With \"sync\": \"state\" a node whose directory is empty copies the state after a recent final block, checked
against what the validators signed, and has no blocks before it. A node that is more than syncBehindBlocks
behind when it starts does the same and removes its old blocks. With \"blocks\" it fetches and executes all.")]
pub(crate) struct NodeCommand {
    /// Its configuration, as `almanac network new` writes it.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// Vote at once, although this node's files do not show all that its key has signed. For a network that stands
    /// still because too many validators are silent, and only if no other node uses the key: two chains may come of it.
    #[arg(long)]
    pub(crate) vote_now: bool,
    /// Who may call, and how much.
    #[command(flatten)]
    pub(crate) rpc: RpcFlags,
}

/// Does what the command says.
pub(crate) async fn run(command: &NetworkCommand) -> anyhow::Result<()> {
    match command {
        NetworkCommand::New(network) => new::run(network),
        NetworkCommand::Up(network) => up::run(network).await,
        NetworkCommand::Evidence(shown) => evidence::run(shown),
    }
}
