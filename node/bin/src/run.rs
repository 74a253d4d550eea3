//! Puts a developer's chain together, runs it, and takes it apart again.

use crate::{
    accounts,
    banner::Banner,
    cli::DevConfig,
    datadir::{self, Kept},
    listen::{BlockLines, IndexFeed},
    shutdown::Shutdown,
};
use alloy_primitives::Address;
use almanac_consensus::{
    Admission, Application, Clock as _, Engine as _, Mode, SharedPool, Sink, Solo, SoloConfig, SystemClock,
    Tip,
};
use almanac_index::Index;
use almanac_mempool::{Pool, PoolConfig};
use almanac_primitives::Genesis;
use almanac_rpc::{Limits, Server, eth::Eth};
use almanac_schedule::EmptyAgenda;
use almanac_state::{BlockLog, MemoryBatch, MemoryStore};
use anyhow::Context as _;
use std::{io::Write as _, net::Ipv4Addr, sync::Arc, time::Duration};

/// Runs a developer's chain until a signal or a failure ends it.
pub(crate) async fn dev(config: DevConfig) -> anyhow::Result<()> {
    let mut shutdown = Shutdown::listen()?;
    let (mut chain, log) = assemble(&config).await?;
    if let Some(log) = log {
        chain.application.keep_log(log);
    }
    let Chain { genesis, application, tip, index } = chain;
    let height = tip.header.number;
    let base_fee = application.next_environment(&tip).await?.base_fee;
    let pool = SharedPool::new(Pool::new(PoolConfig::default(), base_fee));
    let feed = Arc::new(IndexFeed(index.clone()));
    let mode = config.block_time.map_or(Mode::OnDemand, Mode::Interval);
    let sinks: Vec<Arc<dyn Sink>> = vec![feed.clone(), Arc::new(BlockLines)];
    let (mut solo, sequencer) = Solo::start(
        Arc::new(application),
        tip,
        pool.clone(),
        sinks,
        SystemClock,
        SoloConfig { mode, fee_recipient: Address::ZERO },
    );
    let thread = spawn_sequencer(sequencer)?;
    let admission = Admission::new(genesis.chain_id, pool, feed);
    let server = Server::start(
        (Ipv4Addr::LOCALHOST, config.port).into(),
        Limits::default(),
        Eth::new(genesis.chain_id, index, admission),
    )
    .await?;
    let banner = Banner {
        rpc: server.address(),
        chain_id: genesis.chain_id,
        height,
        blocks: describe(mode),
        datadir: config.datadir.as_deref(),
    };
    // Whoever started us may have closed the pipe; that is no reason to stop.
    let _ = writeln!(std::io::stdout(), "{}", banner.text());

    tokio::select! {
        signal = shutdown.requested() => tracing::info!("{signal}: stopping"),
        ended = solo.ended() => {
            ended.context("the sequencer ended")?;
            anyhow::bail!("the sequencer ended without a reason");
        }
    }
    server.stop().await;
    let stopped = solo.stop().await.context("the sequencer did not stop in good order");
    // The thread ends with its future; joining shows a panic that would otherwise be lost.
    thread.join().map_err(|_| anyhow::anyhow!("the sequencer's thread panicked"))?;
    stopped
}

/// A chain at its tip, ready for an engine.
struct Chain {
    genesis: Genesis,
    application: Application<MemoryStore>,
    tip: Tip<MemoryBatch>,
    index: Arc<Index>,
}

async fn assemble(config: &DevConfig) -> anyhow::Result<(Chain, Option<BlockLog>)> {
    let now = SystemClock.now();
    let Some(directory) = &config.datadir else {
        let genesis = accounts::genesis(config.chain_id.unwrap_or(accounts::CHAIN_ID), now);
        return Ok((start(genesis)?, None));
    };
    let Kept { genesis, mut log, blocks } = datadir::open(directory, config.chain_id, now)?;
    let mut chain = start(genesis)?;
    replay(&mut chain, &mut log, blocks).await.with_context(|| {
        format!("{} cannot be replayed: move it away to start anew", directory.join("blocks.log").display())
    })?;
    Ok((chain, Some(log)))
}

fn start(genesis: Genesis) -> anyhow::Result<Chain> {
    let state = genesis.state()?;
    let store = MemoryStore::from_genesis(state.clone());
    let (application, tip) = Application::new(&genesis, store, Arc::new(EmptyAgenda))?;
    // A developer may ask about any block of the past.
    let index = Arc::new(Index::new(tip.header.clone(), state, u64::MAX));
    Ok(Chain { genesis, application, tip, index })
}

/// Executes kept blocks again, comparing every root.
async fn replay(chain: &mut Chain, log: &mut BlockLog, total: u64) -> anyhow::Result<()> {
    const PROGRESS_EVERY: Duration = Duration::from_secs(1);
    let feed = IndexFeed(chain.index.clone());
    let mut reported = tokio::time::Instant::now();
    for (block, done) in log.blocks().zip(1u64..) {
        let made = chain.application.verify(&chain.tip, block?).await?;
        chain.application.commit(&made).await?;
        feed.finalized(&made.block, &made.output)?;
        chain.tip = made.tip;
        if reported.elapsed() >= PROGRESS_EVERY {
            reported = tokio::time::Instant::now();
            tracing::info!("replayed {done} of {total} blocks");
        }
    }
    Ok(())
}

/// On a thread of its own: no request that is served can delay a block.
fn spawn_sequencer(
    sequencer: impl Future<Output = ()> + Send + 'static,
) -> anyhow::Result<std::thread::JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let thread = std::thread::Builder::new().name("sequencer".to_owned());
    thread.spawn(move || runtime.block_on(sequencer)).context("cannot start the sequencer's thread")
}

fn describe(mode: Mode) -> String {
    match mode {
        Mode::OnDemand => "as soon as there is a transaction".to_owned(),
        Mode::Interval(interval) => format!("every {interval}"),
        Mode::Manual => "by hand".to_owned(),
    }
}
