//! `almanac index`: rebuilds the index, and prints its digest.

use crate::{chain, datadir::Datadir, fork::ForkOrigin};
use almanac_index::IndexConfig;
use anyhow::{Context as _, ensure};
use clap::{Args, Subcommand};
use commonware_runtime::Runner as _;
use std::{fs, path::PathBuf};

#[derive(Debug, Subcommand)]
pub(crate) enum IndexCommand {
    /// Rebuild the index from the blocks: after damage, for a new format, or to keep more history.
    Rebuild(IndexArguments),
    /// Print a hash of the whole index.
    Digest(IndexArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  almanac index rebuild --datadir ./chain
  almanac index digest --datadir ./chain

The node must be stopped. Blocks and state are not touched.")]
pub(crate) struct IndexArguments {
    /// The directory of the chain.
    #[arg(long, value_name = "DIR")]
    datadir: PathBuf,
    /// Keep the state of this many blocks before the last one [default: all].
    #[arg(long, value_name = "BLOCKS")]
    history: Option<u64>,
}

/// Runs one of the commands.
pub(crate) fn run(command: &IndexCommand) -> anyhow::Result<()> {
    match command {
        IndexCommand::Rebuild(arguments) => rebuild(arguments),
        IndexCommand::Digest(arguments) => digest(arguments),
    }
}

/// How much history an index keeps.
pub(crate) fn keeping(history: Option<u64>) -> IndexConfig {
    history.map_or_else(IndexConfig::archive, |history_depth| IndexConfig {
        history_depth,
        ..IndexConfig::default()
    })
}

fn rebuild(arguments: &IndexArguments) -> anyhow::Result<()> {
    let datadir = take(arguments)?;
    datadir.check_whole()?;
    let genesis = datadir.kept_genesis()?;
    // Beside and renamed, so that an interrupted rebuild leaves the old index or none, never half of one.
    let (place, draft) = (datadir.index(), datadir.path().join("index.unfinished"));
    remove(&draft)?;
    let below = genesis.fork.map(|fork| ForkOrigin::kept(fork, datadir.path())).transpose()?;
    let below = below.map(|below| below.origin());
    let built = datadir.runner().start(|context| async move {
        chain::index_from_blocks(&context, &genesis, &draft, keeping(arguments.history), below)
            .await
            .map(|built| (built, draft))
    });
    let ((height, digest), draft) = built?;
    remove(&place)?;
    fs::rename(&draft, &place).with_context(|| format!("cannot write {}", place.display()))?;
    println!("{} is indexed up to block {height}\ndigest {digest}", arguments.datadir.display());
    Ok(())
}

fn digest(arguments: &IndexArguments) -> anyhow::Result<()> {
    let datadir = take(arguments)?;
    let genesis = datadir.kept_genesis()?;
    let place = datadir.index();
    ensure!(place.is_dir(), "{} has no index: run `almanac index rebuild`", arguments.datadir.display());
    let (height, digest) = datadir.runner().start(|context| async move {
        chain::index_as_it_is(&context, &genesis, &place, keeping(arguments.history)).await
    })?;
    println!("block {height}\ndigest {digest}");
    Ok(())
}

fn take(arguments: &IndexArguments) -> anyhow::Result<Datadir> {
    let has_genesis = arguments.datadir.join("genesis.json").exists();
    ensure!(has_genesis, "{} holds no chain", arguments.datadir.display());
    Datadir::take(&arguments.datadir)
}

fn remove(directory: &std::path::Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", directory.display()))
        }
        _ => Ok(()),
    }
}
