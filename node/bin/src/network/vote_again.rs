//! A validator that does not know what it signed: it follows until it may vote, then restarts as a voter.

use super::votes;
use crate::datadir::Datadir;
use alloy_primitives::B256;
use almanac_bft::{FinalityReader, Leave, Silence, sync::Floor};
use almanac_index::Index;
use almanac_primitives::TimestampMs;
use almanac_rpc::types::time::iso;
use anyhow::Context as _;
use std::{
    future::pending, os::unix::process::CommandExt as _, path::Path, process::Command, time::Duration,
};
use tokio::sync::watch;

/// Time between two looks at the last block.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Returns with the block that ends the silence, and what was signed about it; never where there is none to end.
/// The validator started at `start`, and `leave` says whether it has to be silent.
pub(super) async fn end(
    start: TimestampMs,
    mut leave: watch::Receiver<Option<Leave>>,
    index: &Index,
    finality: &FinalityReader,
) -> Floor {
    let decided = leave.wait_for(Option::is_some).await.ok().and_then(|decided| decided.clone());
    let Some(Leave::Denied { reason, newest }) = decided else { return pending().await };
    let tip = newest.map_or_else(|| index.tip().block.header.clone(), |newest| *newest);
    let silence = Silence::new(start, &tip);
    tracing::warn!(
        "this validator does not know what it has signed ({reason}): it is silent until a block later than {} is \
         final, and votes after that block; the last final one is block {} of {}",
        iso(silence.until),
        tip.number,
        iso(tip.timestamp)
    );
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
pub(super) fn speak(datadir: &Datadir, key: B256, key_file: &Path, floor: Floor) -> anyhow::Result<()> {
    tracing::warn!("this validator votes after block {}", floor.header.number);
    votes::begin_again(datadir, key, key_file, floor)?;
    let program = std::env::current_exe().context("cannot find this program")?;
    let error = Command::new(program).args(std::env::args_os().skip(1)).exec();
    Err(error).context("the node may vote again, but cannot restart itself: start it by hand")
}
