//! Assembles a developer chain, runs it, and shuts it down.

use crate::{
    accounts::DevAccounts,
    banner::Banner,
    chain::{self, Chain},
    cli::DevConfig,
    clock_note::ClockNote,
    console::ConsoleLines,
    control::{BackupSource, Control},
    datadir::Datadir,
    fork::ForkOrigin,
    http::Endpoint,
    index_command,
    log_switch::LogSwitch,
    private_file,
    regular_file::{self, GENESIS_BYTES_MAX},
    services::{Face, Places, Services},
    shutdown::Shutdown,
    waiting::Waiting,
};
use alloy_primitives::{Address, Bytes, U256, hex};
use almanac_consensus::{
    Clock as _, Controls, Engine as _, Mode, Solo, SoloConfig, SystemClock, solo::TimeSetting,
};
use almanac_exec::Edit;
use almanac_index::IndexConfig;
use almanac_mempool::{Pool, PoolConfig};
use almanac_primitives::{Genesis, Origin, TimestampMs};
use almanac_rpc::{served::NodeKind, wallet::Wallet};
use almanac_schedule::CalendarAgenda;
use almanac_state::StateStore;
use anyhow::Context as _;
use commonware_runtime::Runner as _;
use serde_json::{Value, json};
use std::{
    io::Write as _,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    thread::JoinHandle,
    time::Duration,
};
use tokio::sync::oneshot;

/// Runs a developer's chain until a signal or a failure ends it.
pub(crate) async fn dev(config: DevConfig) -> anyhow::Result<()> {
    let server_config = config.rpc.developer()?;
    let grpc = config.grpc.place(config.chain.host)?;
    let is_open = server_config.access.is_open();
    let mut shutdown = Shutdown::listen()?;
    let datadir = config.datadir.as_deref().map(Datadir::take).transpose()?;
    let now = SystemClock.now();
    let accounts = config.chain.accounts()?;
    let Ground { genesis, origin, start } = ground(&config, datadir.as_ref(), &accounts, now)?;
    let mode = match config.block_time {
        Some(interval) => Mode::Interval(interval),
        None if config.chain.is_manual => Mode::Manual,
        None => Mode::OnDemand,
    };
    let directory = datadir.as_ref().map(|datadir| datadir.path().to_owned());
    let log = LogSwitch::default();
    let clock = datadir.as_ref().map(|datadir| ClockNote::new(datadir.path()));
    // A snapshot may be as old as the chain.
    let keeping = IndexConfig { nonce_depth: u64::MAX, ..index_command::keeping(config.history) };
    let noted = clock.as_ref().map(ClockNote::read).transpose()?.flatten();
    let solo = SoloConfig {
        time: noted.unwrap_or_else(|| first_time(start, now)),
        keep_time: clock.map(ClockNote::into_keep),
        ..SoloConfig::new(mode, Address::ZERO)
    };
    let below = origin.as_ref().map(ForkOrigin::origin);
    let setup = Setup { keeping, solo, log: log.clone(), below };
    let (thread, started) = spawn_sequencer(genesis.clone(), datadir, setup)?;
    let Started { mut solo, services, height, source } =
        started.await.context("the sequencer's thread ended before it began")??;

    let _control = match (directory, source) {
        (Some(path), Some(source)) => Some(Control::serve(&path, genesis.clone(), source)?),
        _ => None,
    };
    let waiting = Waiting::read(&services.index)?;
    let rpc = (config.chain.host, config.port).into();
    let places = Places { rpc, grpc, metrics: config.metrics.metrics_addr };
    let face = face(&config.client_version, &accounts, solo.controls(), log);
    let serving = services.start(places, server_config, face).await?;
    prepare(&config, serving.address(), solo.controls(), height).await?;
    let banner = Banner {
        rpc: serving.address(),
        grpc: serving.grpc(),
        metrics: serving.metrics(),
        chain_id: genesis.chain_id,
        height,
        blocks: describe(mode),
        waiting,
        datadir: config.datadir.as_deref(),
        fork: origin.as_ref().map(ForkOrigin::describe),
        accounts: &accounts,
        is_own_name: config.client_version == almanac_rpc::CLIENT_VERSION,
        is_open,
    };
    if let Some(file) = &config.chain.config_out {
        private_file::replace(file, (banner.json() + "\n").as_bytes()).context("--config-out")?;
    }
    // The process that started us may have closed the pipe, which is no reason to stop.
    let _ = writeln!(std::io::stdout(), "{}", show(&banner, &config));

    tokio::select! {
        signal = shutdown.requested() => tracing::info!("{signal}: stopping"),
        ended = solo.ended() => {
            ended.context("the sequencer ended")?;
            anyhow::bail!("the sequencer ended without a reason");
        }
    }
    let dumped = dump(&config, serving.address()).await;
    serving.stop().await;
    stop(solo, thread).await.and(dumped)
}

/// What a chain stands on.
struct Ground {
    genesis: Genesis,
    origin: Option<ForkOrigin>,
    /// The time at which a new chain starts.
    start: TimestampMs,
}

/// The chain of the data directory, or what the flags say of a new one.
fn ground(
    config: &DevConfig,
    datadir: Option<&Datadir>,
    accounts: &DevAccounts,
    now: TimestampMs,
) -> anyhow::Result<Ground> {
    if let Some(datadir) = datadir.filter(|datadir| datadir.has_genesis()) {
        let genesis = datadir.developers_genesis(config.chain_id)?;
        let origin = config.fork.resume(genesis.fork, datadir)?;
        return Ok(Ground { genesis, origin, start: config.chain.start(now)? });
    }
    let begun = config.fork.begin(datadir)?;
    let start = config.chain.start(begun.as_ref().map_or(now, |begun| begun.block.time))?;
    let genesis = config.chain.genesis(config.chain_id, start, accounts, begun.as_ref())?;
    if let Some(datadir) = datadir {
        datadir.write_genesis(&genesis)?;
    }
    Ok(Ground { genesis, origin: begun.map(|begun| begun.origin), start })
}

/// How the clock of a new chain is set: it goes on from the time of block 0.
fn first_time(start: TimestampMs, now: TimestampMs) -> TimeSetting {
    // Times are far below 2^63, so the difference fits.
    TimeSetting { offset_ms: start.0.wrapping_sub(now.0).cast_signed(), ..TimeSetting::default() }
}

/// Time for a request of ours to the node itself.
const OWN_PATIENCE: Duration = Duration::from_secs(60);

/// Carries out the flags that are requests to a running chain.
async fn prepare(
    config: &DevConfig,
    rpc: SocketAddr,
    controls: &Controls,
    height: u64,
) -> anyhow::Result<()> {
    if let Some(file) = config.chain.loaded() {
        let dump = regular_file::read(file, GENESIS_BYTES_MAX).context("--load-state")?;
        let dump = json!([hex::encode_prefixed(dump)]);
        ask(rpc, "anvil_loadState", dump).await.with_context(|| format!("cannot load {}", file.display()))?;
    }
    if config.chain.is_impersonating {
        ask(rpc, "anvil_autoImpersonateAccount", json!([true])).await?;
    }
    if let Some(base_fee) = config.chain.base_fee.filter(|_| height == 0) {
        let edit = Edit::NextBaseFee { base_fee: U256::from(base_fee) };
        controls.edit(vec![edit]).await.context("--base-fee")?;
    }
    Ok(())
}

/// Writes all accounts to the file that a flag names.
async fn dump(config: &DevConfig, rpc: SocketAddr) -> anyhow::Result<()> {
    let Some(file) = config.chain.dumped() else { return Ok(()) };
    let dump: Bytes = serde_json::from_value(ask(rpc, "anvil_dumpState", json!([])).await?)?;
    private_file::replace(file, &dump).context("cannot write the accounts")
}

/// A request to the node itself.
async fn ask(rpc: SocketAddr, method: &'static str, params: Value) -> anyhow::Result<Value> {
    // On all addresses means on this one too.
    let ip = if rpc.ip().is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { rpc.ip() };
    let node = Endpoint::at((ip, rpc.port()).into());
    Ok(tokio::task::spawn_blocking(move || node.call(method, &params, OWN_PATIENCE)).await??)
}

/// What only a developer chain serves.
fn face<'a>(
    client_version: &'a str,
    accounts: &DevAccounts,
    controls: &Controls,
    log: LogSwitch,
) -> Face<'a> {
    let (controls, clock) = (controls.clone(), controls.clone());
    Face {
        kind: NodeKind::Developer {
            wallet: Wallet::new(accounts.accounts.iter().map(|account| account.secret)),
            controls,
            set_logging: Arc::new(move |is_on| log.set(is_on)),
        },
        client_version,
        next_time: Arc::new(move || clock.next_time()),
        role: Box::new(|| "developer"),
        counters: Box::new(String::new),
    }
}

/// The banner as the flags ask for it.
fn show(banner: &Banner<'_>, config: &DevConfig) -> String {
    match (config.is_json, config.is_silent) {
        (true, _) => banner.json(),
        (false, true) => format!("http://{}", banner.rpc),
        (false, false) => banner.text(),
    }
}

async fn stop(solo: Solo, thread: JoinHandle<()>) -> anyhow::Result<()> {
    let stopped = solo.stop().await.context("the sequencer did not stop cleanly");
    // The thread ends with its future; joining shows a panic that would otherwise be lost.
    thread.join().map_err(|_| anyhow::anyhow!("the sequencer's thread panicked"))?;
    stopped
}

/// What the rest of the node needs of a running sequencer.
struct Started {
    solo: Solo,
    services: Services,
    height: u64,
    /// What a backup is made from, where the chain is on disk.
    source: Option<BackupSource>,
}

/// How the sequencer is to run.
struct Setup {
    keeping: IndexConfig,
    solo: SoloConfig,
    log: LogSwitch,
    /// What lies below a fork.
    below: Option<Origin>,
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
        let keeping = setup.keeping.clone();
        match setup.below.clone() {
            None => sequence(chain::in_memory(genesis, keeping), setup, ready).await,
            Some(below) => {
                sequence(chain::forked_in_memory(genesis, keeping, below), setup, ready).await;
            }
        }
    });
}

/// The directory stays locked until the sequencer has ended.
fn sequence_on_disk(genesis: &Genesis, datadir: &Datadir, setup: Setup, ready: Ready) {
    let place = datadir.index();
    datadir.runner().start(|context| async move {
        let keeping = setup.keeping.clone().into();
        match setup.below.clone() {
            None => {
                let chain = chain::on_disk(&context, genesis, &place, keeping, None).await;
                sequence(chain, setup, ready).await;
            }
            Some(below) => {
                let chain = chain::forked_on_disk(&context, genesis, &place, keeping, below).await;
                sequence(chain, setup, ready).await;
            }
        }
    });
}

async fn sequence<S>(chain: anyhow::Result<Chain<S>>, setup: Setup, ready: Ready)
where
    S: StateStore<Batch: Send + 'static> + 'static,
{
    let chain = match chain {
        Ok(chain) => chain,
        Err(error) => return tell(ready, Err(error)),
    };
    let Chain { application, tip, index, disk } = chain;
    let base_fee = match application.next_environment(&tip).await {
        Ok(environment) => environment.base_fee,
        Err(error) => return tell(ready, Err(error.into())),
    };
    let height = tip.header.number;
    let Setup { solo: config, log, .. } = setup;
    let (chain, agenda) = (application.chain(), Arc::new(CalendarAgenda));
    let console = match ConsoleLines::start(index.clone(), agenda, chain, log.clone()) {
        Ok(console) => console,
        Err(error) => return tell(ready, Err(error.into())),
    };
    let source = disk.as_ref().map(|disk| BackupSource::new(index.clone(), disk.archive.clone()));
    let services = Services::new(chain, index, Pool::new(PoolConfig::developer(), base_fee));
    let mut sinks = services.sinks(log);
    sinks.push(Arc::new(console));
    sinks.extend(disk.map(|disk| disk.pruning));
    let (application, pool) = (Arc::new(application), services.pool.clone());
    let (solo, sequencer) = Solo::start(application, tip, pool, sinks, SystemClock, config);
    tell(ready, Ok(Started { solo, services, height, source }));
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
