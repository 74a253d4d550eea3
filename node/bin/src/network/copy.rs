//! Fills an empty data directory with a copy of the state after a recent final block, or replaces a chain that is far
//! behind.

use super::{behind::Need, watch};
use crate::{
    chain::{self, PARTITION},
    datadir::Datadir,
};
use alloy_primitives::{BlockHash, Bytes};
use almanac_bft::{
    BlockNumbers, Namespace, NetworkConfig, ValidatorSet,
    sync::{self, Floor, KnownKeys, Phase, Progress, SyncError, ValueSink},
};
use almanac_index::{CopiedIndex, Index, IndexConfig};
use almanac_primitives::{Genesis, StateKey, codec::Reader};
use almanac_state::{BlockJournal, QmdbConfig, proof::key};
use commonware_runtime::{Runner as _, Spawner as _, Supervisor as _, tokio::Context};
use std::{path::Path, sync::Arc};

/// Attempts, each with a newer block, before the node gives up: peers may have pruned what the last one needed.
const ATTEMPTS: usize = 3;

/// Copies the state if the node needs it. Blocks the thread until it is done.
pub(super) fn run(
    need: Need,
    genesis: &Genesis,
    datadir: &Datadir,
    network: &NetworkConfig,
    progress: &Arc<Progress>,
) -> anyhow::Result<()> {
    match need {
        Need::Nothing => Ok(()),
        Need::Fill => fill(genesis, datadir, network, progress),
        Need::Replace => replace(genesis, datadir, network, progress),
    }
}

/// Replaces a chain that is far behind by a copy of the state. Where that fails, the node goes on with what it has.
fn replace(
    genesis: &Genesis,
    datadir: &Datadir,
    network: &NetworkConfig,
    progress: &Arc<Progress>,
) -> anyhow::Result<()> {
    let fresh = datadir.fresh()?;
    // A crash between the end of the copy and the replacement may have left a whole one.
    let filled = match fresh.is_usable()? {
        true => Ok(()),
        false => fill(genesis, &fresh, network, progress),
    };
    match filled {
        Ok(()) => datadir.replace_by_fresh(),
        Err(error) => {
            tracing::warn!("{error:#}; the node fetches the blocks instead");
            datadir.remove_fresh()
        }
    }
}

/// Copies the state into a directory that has no chain, or part of a copy.
fn fill(
    genesis: &Genesis,
    datadir: &Datadir,
    network: &NetworkConfig,
    progress: &Arc<Progress>,
) -> anyhow::Result<()> {
    let place = datadir.index();
    let log = QmdbConfig::new(PARTITION).log_prefix();
    let mut kept = Some(log.as_str());
    let mut attempt = 1;
    let floor = loop {
        datadir.begin_copy(kept)?;
        // A runtime of its own: when it ends, so do its files and connections.
        let copied = datadir.runner().start(|context| copy(context, genesis, &place, network, progress));
        match copied {
            Ok(floor) => break floor,
            Err(error) if attempt < ATTEMPTS => {
                let is_wanting =
                    error.downcast_ref::<SyncError>().is_some_and(SyncError::is_for_want_of_answers);
                kept = Some(log.as_str()).filter(|_| is_wanting);
                let next = if is_wanting { "continues with the data on disk" } else { "starts from scratch" };
                tracing::warn!("attempt {attempt} to copy the state failed: {error:#}; the next one {next}");
            }
            Err(error) => return Err(error.context("the state cannot be copied")),
        }
        attempt += 1;
    };
    datadir.finish_copy(&floor)
}

async fn copy(
    context: Context,
    genesis: &Genesis,
    place: &Path,
    network: &NetworkConfig,
    progress: &Arc<Progress>,
) -> anyhow::Result<Floor> {
    let watched = progress.clone();
    context.child("watch").spawn(|context| watch::log(context, watched));
    let origin = chain::genesis_header(&context, genesis).await?;
    let (validators, namespace) = (ValidatorSet::new(genesis)?, Namespace(origin.hash()));
    let session = sync::connect(&context, network, validators, namespace, progress.clone())?;
    let floor = session.find_floor(&mut context.child("weights")).await?;
    let number = floor.header.number;
    tracing::info!("copying the state after block {number}");
    let config = QmdbConfig::new(PARTITION);
    let store = session.fetch_state(context.child("state"), &config, &genesis.state()?, &floor).await?;
    let mut index = CopiedIndex::begin(place, &IndexConfig::default(), origin)?;
    let mut rng = context.child("names");
    let values = session.fetch_values(&store, &floor, &mut IndexSink(&mut index), &mut rng).await?;
    progress.begin(Phase::Opening, 0);
    index.finish(floor.header.clone())?;
    BlockJournal::begin_after(context.child("blocks"), &config, number).await?;
    tracing::info!("copied the state after block {number}: {values} values");
    Ok(floor)
}

/// The index as a copy fills it.
struct IndexSink<'a>(&'a mut CopiedIndex);

impl ValueSink for IndexSink<'_> {
    fn add(&mut self, values: Vec<(StateKey, Bytes)>) -> Result<u64, String> {
        self.0.add(values).map_err(|error| error.to_string())
    }
}

/// The names of values as the index knows them.
pub(super) struct IndexKeys(pub(super) Arc<Index>);

impl KnownKeys for IndexKeys {
    fn after(&self, after: Option<&StateKey>, limit: usize) -> Result<Vec<StateKey>, String> {
        let names = self.0.names_after(after, limit).map_err(|error| error.to_string())?;
        names.iter().map(|name| read(name)).collect()
    }

    fn changed_in(&self, height: u64) -> Result<Option<Vec<StateKey>>, String> {
        let names = self.0.changed_in(height).map_err(|error| error.to_string())?;
        names.map(|names| names.iter().map(|name| read(name)).collect()).transpose()
    }
}

/// The heights of blocks as the index knows them.
pub(super) struct IndexNumbers(pub(super) Arc<Index>);

impl BlockNumbers for IndexNumbers {
    fn number_of(&self, hash: BlockHash) -> Result<Option<u64>, String> {
        self.0.number_of(hash).map_err(|error| error.to_string())
    }
}

fn read(name: &[u8]) -> Result<StateKey, String> {
    key::read(&mut Reader::new(name)).map_err(|error| error.to_string())
}
