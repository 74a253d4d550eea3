//! `almanac db`: backup and restore of a data directory.

use crate::{
    backup::{self, Backup},
    chain, control,
    datadir::Datadir,
    private_file::Draft,
};
use anyhow::ensure;
use clap::{Args, Subcommand};
use commonware_runtime::Runner as _;
use std::{
    fs::{self, File},
    path::PathBuf,
};

#[derive(Debug, Subcommand)]
pub(crate) enum DbCommand {
    /// Write genesis and blocks to one file; works while a node runs.
    Export(ExportConfig),
    /// Make a data directory from such a file, executing every block again.
    Import(ImportConfig),
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  almanac db export --datadir ./chain --out chain.backup")]
pub(crate) struct ExportConfig {
    /// The directory to back up.
    #[arg(long, value_name = "DIR")]
    datadir: PathBuf,
    /// The file to write; it must not exist.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  almanac db import --file chain.backup --datadir ./restored")]
pub(crate) struct ImportConfig {
    /// The file that `almanac db export` wrote.
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// The directory to make; it must be empty or not exist.
    #[arg(long, value_name = "DIR")]
    datadir: PathBuf,
}

/// Runs one of the commands.
pub(crate) fn run(command: &DbCommand) -> anyhow::Result<()> {
    match command {
        DbCommand::Export(config) => export(config),
        DbCommand::Import(config) => import(config),
    }
}

fn export(config: &ExportConfig) -> anyhow::Result<()> {
    let name = config.out.display();
    ensure!(config.datadir.join("genesis.json").exists(), "{} holds no chain", config.datadir.display());
    // Beside and renamed, so that a file with this name is always a whole backup.
    let mut draft = Draft::begin(&config.out)?;
    match Datadir::try_take(&config.datadir)? {
        Some(datadir) => export_stopped(&datadir, draft.file())?,
        None => drop(control::request_export(&config.datadir, draft.file())?),
    }
    let backup = Backup::read(draft.file().try_clone()?, &config.out)?;
    draft.publish()?;
    println!("{name} holds the chain with id {} up to block {}", backup.genesis.chain_id, backup.count);
    Ok(())
}

fn export_stopped(datadir: &Datadir, file: &File) -> anyhow::Result<()> {
    datadir.check_whole()?;
    let genesis = datadir.kept_genesis()?;
    datadir.runner().start(|context| async move {
        let blocks = chain::archived_blocks(&context).await?;
        backup::write(file, &genesis, blocks.into_iter().map(Ok))
    })
}

fn import(config: &ImportConfig) -> anyhow::Result<()> {
    let mut backup = Backup::open(&config.file)?;
    let directory = config.datadir.display();
    let is_empty = fs::read_dir(&config.datadir).map_or(true, |mut entries| entries.next().is_none());
    ensure!(is_empty, "{directory} is not empty: choose a new directory");
    let datadir = Datadir::take(&config.datadir)?;
    datadir.write_genesis(&backup.genesis)?;
    let (genesis, count) = (backup.genesis.clone(), backup.count);
    let place = datadir.index();
    datadir.runner().start(|context| async move {
        let blocks = (0..count).map(|_| backup.next_block());
        chain::import(&context, &genesis, &place, blocks, count).await
    })?;
    println!("{directory} holds the chain up to block {count}");
    Ok(())
}
