//! Brings the index up to the chain: executes archived blocks on the index's own state.
//!
//! This does not touch the state store, so the index may be missing, behind, or rebuilt beside a chain of any length.

use crate::progress::Progress;
use almanac_consensus::Sink as _;
use almanac_exec::{BlockBody, BlockInput, Rules, check_header, execute, recover_all};
use almanac_feed::IndexFeed;
use almanac_index::Index;
use almanac_primitives::{Block, Chain};
use almanac_schedule::Agenda;
use almanac_state::BlockJournal;
use anyhow::{Context as _, ensure};
use commonware_storage::Context;
use std::sync::Arc;

/// Feeds the blocks up to `height` that the index does not have.
pub(crate) async fn catch_up<E: Context>(
    index: &Arc<Index>,
    archive: &BlockJournal<E>,
    agenda: &dyn Agenda,
    chain: Chain,
    height: u64,
) -> anyhow::Result<()> {
    check_same_chain(index, archive).await?;
    let mut progress = Progress::new("indexed", height);
    for number in index.height() + 1..=height {
        let archived = archive.get(number).await?.with_context(|| format!("block {number} is missing"))?;
        feed(index, archived.block, agenda, chain)
            .with_context(|| format!("block {number} cannot be indexed"))?;
        progress.report(number);
    }
    Ok(())
}

/// Drops blocks that the archive does not have: a process that died while it held blocks above a snapshot had
/// shown them, and never made them durable.
pub(crate) fn drop_above(index: &Index, height: u64) -> anyhow::Result<()> {
    if index.height() > height {
        tracing::info!(
            "the index had blocks that were never final: back from {} to {height}",
            index.height()
        );
        index.revert_to(height)?;
    }
    Ok(())
}

async fn check_same_chain<E: Context>(index: &Index, archive: &BlockJournal<E>) -> anyhow::Result<()> {
    let tip = index.tip();
    if tip.number() == index.floor() {
        return Ok(());
    }
    let archived = archive.get(tip.number()).await?;
    let expected = archived.with_context(|| format!("block {} is missing", tip.number()))?.block.hash();
    ensure!(
        tip.hash == expected,
        "the index has {} at block {}, the chain has {expected}: run `almanac index rebuild`",
        tip.hash,
        tip.number()
    );
    Ok(())
}

fn feed(index: &Arc<Index>, block: Block, agenda: &dyn Agenda, chain: Chain) -> anyhow::Result<()> {
    let (parent, state) = (index.tip(), index.tip_state());
    let input = BlockInput::of_block(&block, parent.block.header.clone(), chain)?;
    let rules = Rules::read(chain, &state)?;
    let senders = recover_all(&block.transactions, &rules)
        .map_err(|(at, error)| anyhow::Error::new(error).context(format!("transaction {at}")))?;
    let output = execute(&state, agenda, &input, &mut BlockBody::new(senders))?;
    // The root over the state is the store's business; all else must be as the header says.
    check_header(&block.header, &output.header(block.header.commitment))?;
    Ok(IndexFeed(index.clone()).finalized(&Arc::new(block), &Arc::new(output))?)
}
