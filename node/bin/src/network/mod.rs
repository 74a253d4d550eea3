//! Chains with many validators: their keys, their files, and running them.

mod config;
mod keys;
mod new;
mod up;
mod validator;

use clap::{Args, Subcommand};
use std::path::PathBuf;

pub(crate) use keys::{KeysCommand, run as keys};
pub(crate) use validator::run as node;

/// Makes and runs networks.
#[derive(Debug, Subcommand)]
pub(crate) enum NetworkCommand {
    /// Write keys, a genesis and a configuration for each validator of a new network on this machine.
    New(new::NewNetwork),
    /// Run all validators of a directory that `network new` wrote.
    Up(up::NetworkUp),
}

/// Runs one validator.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  almanac network new --validators 4 --dir net    write keys, genesis and configurations
  almanac node --config net/v0/config.json        run the first validator")]
pub(crate) struct NodeCommand {
    /// Its configuration, as `almanac network new` writes it.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
}

/// Does what the command says.
pub(crate) async fn run(command: &NetworkCommand) -> anyhow::Result<()> {
    match command {
        NetworkCommand::New(network) => new::run(network),
        NetworkCommand::Up(network) => up::run(network).await,
    }
}
