//! Assembles a developer chain, runs it, and shuts it down.

use crate::{
    accounts,
    banner::Banner,
    chain::{self, Chain},
    cli::DevConfig,
    console::ConsoleLines,
    control::{BackupSource, Control},
    datadir::Datadir,
    figures::{self, BlockFigures},
    index_command,
    listen::BlockLines,
    shutdown::Shutdown,
    waiting::Waiting,
};
use alloy_primitives::Address;
use almanac_consensus::{
    Admission, Clock as _, Engine as _, Mode, SharedPool, Sink, Solo, SoloConfig, SystemClock,
};
use almanac_index::{Index, IndexConfig};
use almanac_mempool::{Pool, PoolConfig};
use almanac_primitives::Genesis;
use almanac_rpc::{
    Server,
    feed::IndexFeed,
    heads::Heads,
    heavy::{Heavy, HeavyLimits},
    log_switch::LogSwitch,
    served::Served,
    server::Page,
    view::View,
    wallet::Wallet,
};
use almanac_schedule::CalendarAgenda;
use almanac_state::StateStore;
use anyhow::Context as _;
use commonware_runtime::Runner as _;
use std::{io::Write as _, net::Ipv4Addr, sync::Arc, thread::JoinHandle};
use tokio::sync::oneshot;

/// Runs a developer's chain until a signal or a failure ends it.
pub(crate) async fn dev(config: DevConfig) -> anyhow::Result<()> {
    let serving = config.rpc.developer()?;
    let is_open = serving.access.is_open();
    let mut shutdown = Shutdown::listen()?;
    let datadir = config.datadir.as_deref().map(Datadir::take).transpose()?;
    let now = SystemClock.now();
    let genesis = match &datadir {
        Some(datadir) => datadir.genesis(config.chain_id, now)?,
        None => accounts::genesis(config.chain_id.unwrap_or(accounts::CHAIN_ID), now),
    };
    let mode = config.block_time.map_or(Mode::OnDemand, Mode::Interval);
    let directory = datadir.as_ref().map(|datadir| datadir.path().to_owned());
    let keeping = index_command::keeping(config.history);
    let lines = LogSwitch::default();
    let setup = Setup { keeping, mode, lines: lines.clone() };
    let (thread, started) = spawn_sequencer(genesis.clone(), datadir, setup)?;
    let Started { mut solo, pool, index, heads, height, source } =
        started.await.context("the sequencer's thread ended before it began")??;

    let _control = match (directory, source) {
        (Some(path), Some(source)) => Some(Control::serve(&path, genesis.clone(), source)?),
        _ => None,
    };
    let feed = Arc::new(IndexFeed(index.clone()));
    let admission = Admission::new(genesis.chain_id, pool, feed);
    let (version, controls) = (&config.client_version, solo.controls().clone());
    let view = View {
        chain_id: genesis.chain_id,
        index,
        agenda: Arc::new(CalendarAgenda),
        next_time: Arc::new({
            let controls = controls.clone();
            move || controls.next_time()
        }),
    };
    let figures = figures::start()?;
    let waiting = Waiting::read(&view.index)?;
    figures::count_waiting(waiting);
    let call_time_max = serving.limits.call_time_max;
    let pages: Vec<(&str, Page)> = vec![
        ("/health", health(view.index.clone(), || "developer")),
        ("/metrics", Arc::new(move || figures.render())),
    ];
    let heavy = Heavy::new(HeavyLimits::default());
    let served =
        Served { view, admission, heads, heavy: heavy.clone(), client_version: version, call_time_max };
    let wallet = Wallet::new(accounts::ACCOUNTS.map(|account| account.secret));
    let methods = served.developer(wallet, controls, lines);
    let server = Server::start((Ipv4Addr::LOCALHOST, config.port).into(), serving, methods, pages).await?;
    let banner = Banner {
        rpc: server.address(),
        chain_id: genesis.chain_id,
        height,
        blocks: describe(mode),
        waiting,
        datadir: config.datadir.as_deref(),
        is_open,
    };
    let banner = match (config.is_json, config.is_silent) {
        (true, _) => banner.json(),
        (false, true) => format!("http://{}", server.address()),
        (false, false) => banner.text(),
    };
    // Whoever started us may have closed the pipe; that is no reason to stop.
    let _ = writeln!(std::io::stdout(), "{banner}");

    tokio::select! {
        signal = shutdown.requested() => tracing::info!("{signal}: stopping"),
        ended = solo.ended() => {
            ended.context("the sequencer ended")?;
            anyhow::bail!("the sequencer ended without a reason");
        }
    }
    heavy.close();
    server.stop().await;
    let stopped = solo.stop().await.context("the sequencer did not stop cleanly");
    // The thread ends with its future; joining shows a panic that would otherwise be lost.
    thread.join().map_err(|_| anyhow::anyhow!("the sequencer's thread panicked"))?;
    stopped
}

/// Says that the node answers, what it is, and how far it is.
pub(crate) fn health(index: Arc<Index>, role: impl Fn() -> &'static str + Send + Sync + 'static) -> Page {
    Arc::new(move || {
        let role = role();
        let tip = index.tip();
        let (number, time) = (tip.number(), tip.block.header.timestamp.0);
        format!("{{\"status\":\"ok\",\"block\":{number},\"timestampMs\":{time},\"role\":\"{role}\"}}\n")
    })
}

/// What the rest of the node needs of a running sequencer.
struct Started {
    solo: Solo,
    pool: Arc<SharedPool>,
    index: Arc<Index>,
    heads: Arc<Heads>,
    height: u64,
    /// What a backup is made from, where the chain is on disk.
    source: Option<BackupSource>,
}

/// How the sequencer is to run.
struct Setup {
    keeping: IndexConfig,
    mode: Mode,
    lines: LogSwitch,
}

type Ready = oneshot::Sender<anyhow::Result<Started>>;

/// Runs chain and sequencer on a thread of their own: no request that is served can delay a block.
fn spawn_sequencer(
    genesis: Genesis,
    datadir: Option<Datadir>,
    setup: Setup,
) -> anyhow::Result<(JoinHandle<()>, oneshot::Receiver<anyhow::Result<Started>>)> {
    let (ready, started) = oneshot::channel();
    let thread = std::thread::Builder::new().name("sequencer".to_owned());
    let thread = thread
        .spawn(move || match datadir {
            Some(datadir) => sequence_on_disk(&genesis, &datadir, setup, ready),
            None => sequence_in_memory(&genesis, setup, ready),
        })
        .context("cannot start the sequencer's thread")?;
    Ok((thread, started))
}

fn sequence_in_memory(genesis: &Genesis, setup: Setup, ready: Ready) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_time().build() {
        Ok(runtime) => runtime,
        Err(error) => return tell(ready, Err(error.into())),
    };
    runtime.block_on(async {
        match chain::in_memory(genesis, setup.keeping.clone()) {
            Ok(chain) => sequence(chain, setup, ready).await,
            Err(error) => tell(ready, Err(error)),
        }
    });
}

/// The directory stays locked until the sequencer has ended.
fn sequence_on_disk(genesis: &Genesis, datadir: &Datadir, setup: Setup, ready: Ready) {
    let place = datadir.index();
    datadir.runner().start(|context| async move {
        match chain::on_disk(&context, genesis, &place, setup.keeping.clone().into(), None).await {
            Ok(chain) => sequence(chain, setup, ready).await,
            Err(error) => tell(ready, Err(error)),
        }
    });
}

async fn sequence<S>(chain: Chain<S>, setup: Setup, ready: Ready)
where
    S: StateStore<Batch: Send + 'static> + 'static,
{
    let Chain { application, tip, index, disk } = chain;
    let base_fee = match application.next_environment(&tip).await {
        Ok(environment) => environment.base_fee,
        Err(error) => return tell(ready, Err(error.into())),
    };
    let height = tip.header.number;
    let pool = SharedPool::new(Pool::new(PoolConfig::developer(), base_fee));
    let heads = Heads::new(index.clone());
    let Setup { mode, lines, .. } = setup;
    let agenda = Arc::new(CalendarAgenda);
    let console = match ConsoleLines::start(index.clone(), agenda, application.chain_id(), lines.clone()) {
        Ok(console) => console,
        Err(error) => return tell(ready, Err(error.into())),
    };
    // In this order: whoever hears of a block finds it in the index.
    let feed = Arc::new(IndexFeed(index.clone()));
    let mut sinks: Vec<Arc<dyn Sink>> = vec![
        feed,
        heads.clone(),
        Arc::new(BlockFigures { pool: pool.clone(), index: index.clone() }),
        Arc::new(BlockLines { lines, index: index.clone() }),
        Arc::new(console),
    ];
    let source = disk.as_ref().map(|disk| BackupSource::new(index.clone(), disk.archive.clone()));
    sinks.extend(disk.map(|disk| disk.pruning));
    let config = SoloConfig { mode, fee_recipient: Address::ZERO };
    let (solo, sequencer) = Solo::start(Arc::new(application), tip, pool.clone(), sinks, SystemClock, config);
    tell(ready, Ok(Started { solo, pool, index, heads, height, source }));
    sequencer.await;
}

fn tell(ready: Ready, started: anyhow::Result<Started>) {
    // Where nobody waits any more, the process is on its way out.
    let _ = ready.send(started);
}

fn describe(mode: Mode) -> String {
    match mode {
        Mode::OnDemand => "as soon as there is a transaction".to_owned(),
        Mode::Interval(interval) => format!("every {interval}"),
        Mode::Manual => "by hand".to_owned(),
    }
}
