//! A validator that does not know what it signed: it follows until it may vote, and then starts again as a voter.

use super::votes;
use crate::{chain, datadir::Datadir};
use alloy_primitives::B256;
use almanac_bft::{
    FinalityReader, Namespace, NetworkConfig, Silence, ValidatorSet,
    sync::{self, Floor},
};
use almanac_index::Index;
use almanac_primitives::{Genesis, TimestampMs};
use almanac_rpc::types::time::iso;
use anyhow::Context as _;
use commonware_runtime::{Runner as _, Supervisor as _, tokio::Context};
use std::{future::pending, os::unix::process::CommandExt as _, process::Command, sync::Arc, time::Duration};

/// Time between two looks at the last block.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Finds out how long a validator that started at `start` has to be silent. Blocks the thread.
pub(super) fn begin(
    start: TimestampMs,
    genesis: &Genesis,
    datadir: &Datadir,
    network: &NetworkConfig,
) -> anyhow::Result<Silence> {
    // A runtime of its own: when it ends, so do its connections.
    let tip = datadir.runner().start(|context| newest(context, genesis, network));
    let tip = tip.context("a validator that has lost its votes cannot tell when it may vote again")?.header;
    let silence = Silence::new(start, &tip);
    tracing::warn!(
        "this validator does not know what it has signed: it follows until a block later than {} is final, and \
         votes after that one; the last is block {} of {}",
        iso(silence.until),
        tip.number,
        iso(tip.timestamp)
    );
    Ok(silence)
}

async fn newest(context: Context, genesis: &Genesis, network: &NetworkConfig) -> anyhow::Result<Floor> {
    let namespace = Namespace(chain::genesis_header(&context, genesis).await?.hash());
    let validators = ValidatorSet::new(genesis)?;
    let session = sync::connect(&context, network, validators, namespace, Arc::default())?;
    Ok(session.find_floor(&mut context.child("weights")).await?)
}

/// Returns with the block that ends the silence, and what was signed about it; never where there is none to end.
pub(super) async fn end(silence: Option<Silence>, index: &Index, finality: &FinalityReader) -> Floor {
    let Some(silence) = silence else { return pending().await };
    loop {
        let tip = index.tip();
        if silence.ends_with(&tip.block.header)
            && let Some(found) = finality.find(tip.number()).await
            && let Some(header) = found.headers.last().cloned()
        {
            return Floor { header, certificate: found.certificate };
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Notes where the votes begin, and becomes the same program again, which then votes. Everything of this one has been
/// stopped. Returns only where that fails.
pub(super) fn speak(datadir: &Datadir, key: B256, floor: Floor) -> anyhow::Result<()> {
    tracing::warn!("this validator votes after block {}", floor.header.number);
    votes::begin(datadir, key, Some(floor))?;
    let program = std::env::current_exe().context("cannot find this program")?;
    let error = Command::new(program).args(std::env::args_os().skip(1)).exec();
    Err(error).context("the node may vote and cannot start itself again: start it")
}
