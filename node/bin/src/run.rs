//! Assembles a developer chain, runs it, and shuts it down.

use crate::{
    accounts,
    banner::Banner,
    chain::{self, Chain},
    cli::DevConfig,
    clock_note::ClockNote,
    console::ConsoleLines,
    control::{BackupSource, Control},
    datadir::Datadir,
    index_command,
    log_switch::LogSwitch,
    services::{Face, Services},
    shutdown::Shutdown,
    waiting::Waiting,
};
use alloy_primitives::Address;
use almanac_consensus::{Clock as _, Controls, Engine as _, Mode, Solo, SoloConfig, SystemClock};
use almanac_index::IndexConfig;
use almanac_mempool::{Pool, PoolConfig};
use almanac_primitives::Genesis;
use almanac_rpc::{served::NodeKind, wallet::Wallet};
use almanac_schedule::CalendarAgenda;
use almanac_state::StateStore;
use anyhow::Context as _;
use commonware_runtime::Runner as _;
use std::{io::Write as _, net::Ipv4Addr, sync::Arc, thread::JoinHandle};
use tokio::sync::oneshot;

/// Runs a developer's chain until a signal or a failure ends it.
pub(crate) async fn dev(config: DevConfig) -> anyhow::Result<()> {
    let server_config = config.rpc.developer()?;
    let is_open = server_config.access.is_open();
    let mut shutdown = Shutdown::listen()?;
    let datadir = config.datadir.as_deref().map(Datadir::take).transpose()?;
    let now = SystemClock.now();
    let genesis = match &datadir {
        Some(datadir) => datadir.genesis(config.chain_id, now)?,
        None => accounts::genesis(config.chain_id.unwrap_or(accounts::CHAIN_ID), now),
    };
    let mode = config.block_time.map_or(Mode::OnDemand, Mode::Interval);
    let directory = datadir.as_ref().map(|datadir| datadir.path().to_owned());
    let log = LogSwitch::default();
    let clock = datadir.as_ref().map(|datadir| ClockNote::new(datadir.path()));
    let keeping = index_command::keeping(config.history);
    let solo = SoloConfig {
        time: clock.as_ref().map(ClockNote::read).transpose()?.unwrap_or_default(),
        keep_time: clock.map(ClockNote::into_keep),
        ..SoloConfig::new(mode, Address::ZERO)
    };
    let setup = Setup { keeping, solo, log: log.clone() };
    let (thread, started) = spawn_sequencer(genesis.clone(), datadir, setup)?;
    let Started { mut solo, services, height, source } =
        started.await.context("the sequencer's thread ended before it began")??;

    let _control = match (directory, source) {
        (Some(path), Some(source)) => Some(Control::serve(&path, genesis.clone(), source)?),
        _ => None,
    };
    let waiting = Waiting::read(&services.index)?;
    let address = (Ipv4Addr::LOCALHOST, config.port).into();
    let face = face(&config.client_version, solo.controls(), log);
    let serving = services.start(address, server_config, face).await?;
    let banner = Banner {
        rpc: serving.address(),
        chain_id: genesis.chain_id,
        height,
        blocks: describe(mode),
        waiting,
        datadir: config.datadir.as_deref(),
        is_open,
    };
    // The process that started us may have closed the pipe, which is no reason to stop.
    let _ = writeln!(std::io::stdout(), "{}", show(&banner, &config));

    tokio::select! {
        signal = shutdown.requested() => tracing::info!("{signal}: stopping"),
        ended = solo.ended() => {
            ended.context("the sequencer ended")?;
            anyhow::bail!("the sequencer ended without a reason");
        }
    }
    serving.stop().await;
    stop(solo, thread).await
}

/// What only a developer chain serves.
fn face<'a>(client_version: &'a str, controls: &Controls, log: LogSwitch) -> Face<'a> {
    let (controls, clock) = (controls.clone(), controls.clone());
    Face {
        kind: NodeKind::Developer {
            wallet: Wallet::new(accounts::ACCOUNTS.map(|account| account.secret)),
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
    let Setup { solo: config, log, .. } = setup;
    let (chain_id, agenda) = (application.chain_id(), Arc::new(CalendarAgenda));
    let console = match ConsoleLines::start(index.clone(), agenda, chain_id, log.clone()) {
        Ok(console) => console,
        Err(error) => return tell(ready, Err(error.into())),
    };
    let source = disk.as_ref().map(|disk| BackupSource::new(index.clone(), disk.archive.clone()));
    let services = Services::new(chain_id, index, Pool::new(PoolConfig::developer(), base_fee));
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
