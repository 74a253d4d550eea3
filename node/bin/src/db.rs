//! `almanac db`: backup and restore of a data directory.

use crate::{
    backup::{Backup, BackupWriter},
    chain, control,
    datadir::{self, Datadir},
    private_file::Draft,
    regular_file,
    signed_backup::{self, Checked},
};
use alloy_primitives::BlockHash;
use anyhow::{Context as _, ensure};
use clap::{Args, Subcommand};
use commonware_runtime::Runner as _;
use std::{
    fs::{self, File},
    iter,
    path::PathBuf,
};

#[derive(Debug, Subcommand)]
pub(crate) enum DbCommand {
    /// Write genesis, blocks and certificates to one file; works while a node runs.
    Export(ExportConfig),
    /// Create a data directory from a backup, executing every block again.
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
#[command(after_help = "Examples:
  almanac db import --file chain.backup --datadir ./restored --genesis net/genesis.json
  almanac db import --file chain.backup --datadir ./restored --block-hash 0x…

Import executes every block again and compares every header field. On a chain with validators, a quorum must have
signed the last block. A backup does not prove its own genesis: pass the genesis that you trust.")]
pub(crate) struct ImportConfig {
    /// The file that `almanac db export` wrote.
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// The directory to create; it must be empty or not exist.
    #[arg(long, value_name = "DIR")]
    datadir: PathBuf,
    /// The genesis that the backup must begin with.
    #[arg(long, value_name = "FILE")]
    genesis: Option<PathBuf>,
    /// The hash that the last block must have, from a source that you trust.
    #[arg(long, value_name = "HASH")]
    block_hash: Option<BlockHash>,
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
    let mut backup = Backup::read(draft.file().try_clone()?, &config.out)?;
    let checked = signed_backup::check(&mut backup).with_context(|| format!("{name} cannot be used"))?;
    draft.publish()?;
    let (id, count) = (backup.genesis.chain_id, backup.count);
    println!("{name} holds the chain with id {id} up to block {count} ({})", checked.last);
    Ok(())
}

fn export_stopped(datadir: &Datadir, file: &File) -> anyhow::Result<()> {
    datadir.check_whole()?;
    let genesis = datadir.kept_genesis()?;
    datadir.runner().start(|context| async move {
        let archive = chain::archive(&context).await?;
        let count = chain::last_signed(&archive, &genesis, archive.height().await?).await?;
        let mut out = BackupWriter::begin(file, &genesis, count)?;
        for number in 1..=count {
            out.block(&chain::archived(&archive, number).await?)?;
        }
        out.finish()
    })
}

fn import(config: &ImportConfig) -> anyhow::Result<()> {
    let mut backup = Backup::read(regular_file::open(&config.file)?, &config.file)?;
    let checked =
        judge(config, &mut backup).with_context(|| format!("{} is refused", config.file.display()))?;
    ensure!(
        backup.genesis.fork.is_none(),
        "{} is of a forked chain, whose blocks cannot be executed without its origin: copy its data directory instead",
        config.file.display()
    );
    let directory = config.datadir.display();
    let is_empty = fs::read_dir(&config.datadir).map_or(true, |mut entries| entries.next().is_none());
    ensure!(is_empty, "{directory} is not empty: choose a new directory");
    let datadir = Datadir::take(&config.datadir)?;
    datadir.write_genesis(&backup.genesis)?;
    let (genesis, count) = (backup.genesis.clone(), backup.count);
    let place = datadir.index();
    datadir.runner().start(|context| async move {
        let blocks = iter::from_fn(|| backup.next_block().transpose());
        chain::import(&context, &genesis, &place, blocks, count).await
    })?;
    println!("{directory} holds the chain up to block {count}\n{}", explain(config, &checked));
    Ok(())
}

/// Checks a backup against what its user trusts.
fn judge(config: &ImportConfig, backup: &mut Backup<File>) -> anyhow::Result<Checked> {
    if let Some(path) = &config.genesis {
        let trusted = datadir::read_genesis(path)?;
        ensure!(backup.genesis == trusted, "its genesis is not that of {}", path.display());
    }
    let checked = signed_backup::check(backup)?;
    if let Some(trusted) = config.block_hash {
        let (last, count) = (checked.last, backup.count);
        ensure!(last == trusted, "its last block {count} is {last}, not the trusted {trusted}");
    }
    Ok(checked)
}

/// What was checked, and what its user has to know from elsewhere.
fn explain(config: &ImportConfig, checked: &Checked) -> String {
    let Checked { origin, last, signers } = checked;
    match signers {
        Some((signers, validators)) if config.genesis.is_some() => {
            format!("block {last} was signed by {signers} of the {validators} validators of the genesis")
        }
        Some((signers, validators)) => format!(
            "block {last} was signed by {signers} of {validators} validators, whom the backup names itself: \
             see that your genesis makes block 0 {origin}, or give it with --genesis"
        ),
        None if config.block_hash.is_some() => format!("block {last} is the one that you trust"),
        None => format!(
            "nobody signed block {last}: compare its hash with that of the chain, or give it with --block-hash"
        ),
    }
}
