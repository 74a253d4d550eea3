#![doc = include_str!("../README.md")]

mod account_command;
mod accounts;
mod agenda_command;
mod backup;
mod banner;
mod block_log;
mod catch_up;
mod chain;
mod chain_flags;
mod cli;
mod client;
mod clock_note;
mod completions;
mod console;
mod control;
mod datadir;
mod db;
mod doctor;
mod explorer;
mod figures;
mod fork;
mod grpc;
mod helpers;
mod http;
mod index_command;
mod keystore;
#[cfg(test)]
mod limits_page;
mod log_switch;
mod logging;
mod network;
mod private_file;
mod progress;
mod proof;
mod prune;
mod regular_file;
mod rpc_flags;
mod run;
mod schedule;
mod secret_file;
mod send;
mod services;
mod shutdown;
mod signed_backup;
mod span;
mod subscribe;
mod top;
mod waiting;

use clap::Parser as _;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{io::Write as _, process::ExitCode};

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match &cli.command {
        cli::Command::Dev(config) => {
            let level = match (config.is_silent, config.is_logging_calls) {
                (true, _) => "off",
                // The libraries below warn of an empty disk, and of much else that a developer cannot change.
                (false, true) => "error,almanac=info,rpc=debug",
                (false, false) => "error,almanac=info,rpc=info",
            };
            logging::start(config.log.log_format, level);
        }
        // The libraries below report every connection and every vote.
        cli::Command::Node(command) => {
            logging::start(command.log.log_format, "warn,almanac=info,almanac_bft=info");
        }
        // What the store says of an empty disk is of no use to whoever checks a proof.
        cli::Command::Proof(_)
        | cli::Command::Send(_)
        | cli::Command::Schedule(_)
        | cli::Command::Subscribe(_)
        | cli::Command::Agenda(_)
        | cli::Command::Account(_)
        | cli::Command::Key(_)
        | cli::Command::Top(_)
        | cli::Command::Doctor(_)
        | cli::Command::Completions(_) => logging::start(logging::LogFormat::Text, "error"),
        _ => logging::start(logging::LogFormat::Text, "info"),
    }
    allow_many_files();
    private_file::restrict_process();
    // Started here, its threads are as urgent as blocks; started by a request, they would not be.
    rayon::current_num_threads();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .on_thread_start(almanac_priority::lower_thread)
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&anyhow::Error::new(error).context("cannot start the runtime")),
    };
    let result = match cli.command {
        cli::Command::Dev(config) => runtime.block_on(run::dev(*config)),
        cli::Command::Node(command) => runtime.block_on(network::node(&command)),
        cli::Command::Network(command) => runtime.block_on(network::run(&command)),
        cli::Command::Keys(command) => network::keys(&command),
        cli::Command::Db(command) => db::run(&command),
        cli::Command::Index(command) => index_command::run(&command),
        cli::Command::Proof(command) => proof::run(&command),
        cli::Command::Send(command) => send::run(&command),
        cli::Command::Schedule(command) => schedule::run(&command),
        cli::Command::Subscribe(args) => subscribe::run(&args),
        cli::Command::Agenda(args) => agenda_command::run(&args),
        cli::Command::Account(args) => account_command::run(&args),
        cli::Command::Key(command) => keystore::run(&command),
        cli::Command::Top(args) => top::run(&args),
        cli::Command::Doctor(args) => doctor::run(&args),
        cli::Command::Completions(args) => completions::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// A chain keeps its files open. Systems allow far more than they grant without being asked.
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    // Where it is refused, the limit is what it was.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn fail(error: &anyhow::Error) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "almanac: {}", causes(error));
    ExitCode::FAILURE
}

/// An error and its causes, each once: many of them repeat theirs.
fn causes(error: &anyhow::Error) -> String {
    let mut told = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if told.is_empty() {
            told = cause;
        } else if !told.contains(&cause) {
            told = format!("{told}: {cause}");
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let inner = anyhow::anyhow!("address in use");
        assert_eq!(
            causes(&inner.context("cannot listen: address in use; choose another")),
            "cannot listen: address in use; choose another"
        );
        assert_eq!(
            causes(&anyhow::anyhow!("no such file").context("cannot read x")),
            "cannot read x: no such file"
        );
    }
}
