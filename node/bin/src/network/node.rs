//! Assembles a node of a network, runs it, and shuts it down.

use super::{
    NodeCommand,
    behind::{self, Need},
    config::NodeConfig,
    keys,
    mark::Moment,
    ports, serve, stalled,
    start::{Plan, Started, spawn},
    vote_again, watch,
};
use crate::{
    control::Control,
    datadir::{self, Datadir},
    grpc::{GrpcPlace, GrpcSettings},
    services::Places,
    shutdown::Shutdown,
};
use almanac_bft::{Bft, NetworkConfig};
use almanac_consensus::{Clock as _, Engine as _, SystemClock};
use almanac_index::Index;
use almanac_primitives::{Genesis, TimestampMs};
use almanac_rpc::{Server, ServerConfig};
use anyhow::Context as _;
use std::{
    any::Any, fs::File, future::Future, io::Write as _, net::SocketAddr, sync::Arc, thread::JoinHandle,
    time::Duration,
};

/// Runs a node until a signal or a failure ends it.
pub(crate) async fn run(command: &NodeCommand) -> anyhow::Result<()> {
    let mut shutdown = Shutdown::listen()?;
    let (start, moment) = (SystemClock.now(), Moment::now());
    let server_config = command.rpc.node()?;
    let home = Home::open(command)?;
    let need = find_need(&home, start);
    let Some(need) = unless_stopped(&mut shutdown, "the node was up", need).await else { return Ok(()) };
    let need = need?;
    let progress = Arc::new(watch::progress());
    let waiting = match need {
        Need::Fill | Need::Replace => {
            let pages = watch::pages(&progress);
            let address = home.metrics.unwrap_or(home.config.rpc);
            Some(Server::start_pages(address, server_config.clone(), pages).await?)
        }
        Need::Nothing => None,
    };
    let (thread, started) = spawn(home.plan(need, command.vote_now, moment), home.datadir.clone(), progress)?;
    // What a signal interrupts here begins again at the next start.
    let started = unless_stopped(&mut shutdown, "the node was up", started).await;
    let Some(started) = started else { return Ok(()) };
    let mut started = started.context("the node's thread ended before it began")??;
    let first = async {
        tokio::select! {
            () = first_block(&started.services.index) => None,
            ended = started.bft.ended() => Some(ended),
        }
    };
    match unless_stopped(&mut shutdown, "the first block", first).await {
        None => return stop(started.bft, thread).await,
        Some(Some(ended)) => {
            join(thread)?;
            return ended.context("the node ended before the first block");
        }
        Some(None) => {}
    }
    if let Some(waiting) = waiting {
        waiting.stop().await;
    }
    serve_until_end(&home, server_config, started, thread, start, &mut shutdown).await
}

/// What belongs to one node, held as long as it runs.
struct Home {
    config: NodeConfig,
    network: NetworkConfig,
    genesis: Genesis,
    datadir: Arc<Datadir>,
    /// Where gRPC is served; its certificate is read before anything starts.
    grpc: Option<GrpcPlace>,
    /// Where /health and /metrics are, if not with JSON-RPC.
    metrics: Option<SocketAddr>,
    /// Locked, like the directory: the same key started twice would sign two votes.
    _key: File,
}

impl Home {
    fn open(command: &NodeCommand) -> anyhow::Result<Self> {
        let (path, metrics) = (&command.config, command.metrics.metrics_addr);
        let config = NodeConfig::read(path)?;
        let network = config.network()?;
        let grpc = config.grpc.as_ref().map(GrpcSettings::place).transpose().context("\"grpc\"")?;
        let genesis = datadir::read_genesis(&config.genesis)?;
        let key = keys::hold(&config.key)?;
        let datadir = Arc::new(Datadir::take(&config.datadir)?);
        datadir.adopt_genesis(&genesis)?;
        ports::check_free(&config, metrics)?;
        tracing::info!("{}: {}", path.display(), describe(&network, &genesis));
        Ok(Self { config, network, genesis, datadir, grpc, metrics, _key: key })
    }

    fn plan(&self, need: Need, vote_now: bool, moment: Option<Moment>) -> Plan {
        Plan {
            genesis: self.genesis.clone(),
            network: self.network.clone(),
            need,
            key_file: self.config.key.clone(),
            vote_now,
            keeping: self.config.keeping(),
            pool: self.config.pool(),
            moment,
        }
    }
}

/// The outcome of `work`, or none if a signal comes first.
async fn unless_stopped<T>(
    shutdown: &mut Shutdown,
    before: &str,
    work: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        done = work => Some(done),
        signal = shutdown.requested() => {
            tracing::info!("{signal}: stopping before {before}");
            None
        }
    }
}

/// Serves requests until a signal, a failure, or the time to vote again.
async fn serve_until_end(
    home: &Home,
    server_config: ServerConfig,
    mut started: Started,
    thread: JoinHandle<()>,
    start: TimestampMs,
    shutdown: &mut Shutdown,
) -> anyhow::Result<()> {
    let Home { config, genesis, datadir, .. } = home;
    let _control = Control::serve(datadir.path(), genesis.clone(), started.source.clone())?;
    let places = Places { rpc: config.rpc, grpc: home.grpc.clone(), metrics: home.metrics };
    let serving = serve::serve(places, server_config, &started).await?;
    let grpc = serving.grpc().map(|address| format!("grpc {address}\n")).unwrap_or_default();
    let metrics = home.metrics.map(|_| format!("metrics http://{}/metrics\n", serving.metrics()));
    // The process that started us may have closed the pipe, which is no reason to stop.
    let _ = writeln!(
        std::io::stdout(),
        "rpc http://{}\n{grpc}{}peers {}\nCtrl-C stops it.",
        serving.address(),
        metrics.unwrap_or_default(),
        config.listen
    );
    let (finality, leave) = (started.bft.finality().clone(), started.bft.leave().clone());
    let index = &started.services.index;
    let votes_after = tokio::select! {
        signal = shutdown.requested() => {
            tracing::info!("{signal}: stopping");
            None
        }
        ended = started.bft.ended() => {
            // The libraries below panic where a disk fails; what they said is the reason.
            join(thread)?;
            ended.context("the node ended")?;
            anyhow::bail!("the node ended without a reason");
        }
        floor = vote_again::end(start, leave, index, &finality) => Some(floor),
        never = stalled::watch(index, config.block_time_ms, genesis) => match never {},
    };
    serving.stop().await;
    stop(started.bft, thread).await?;
    match votes_after {
        None => Ok(()),
        Some(floor) => vote_again::speak(datadir, home.network.key.public(), &config.key, floor),
    }
}

/// Finds out what the node has to copy, on a thread of its own: it reads the disk and may ask peers.
async fn find_need(home: &Home, now: TimestampMs) -> anyhow::Result<Need> {
    let (config, genesis, network) = (home.config.clone(), home.genesis.clone(), home.network.clone());
    let datadir = home.datadir.clone();
    let found = tokio::task::spawn_blocking(move || behind::need(&config, &genesis, &datadir, &network, now));
    found.await.context("cannot inspect the node's directory")?
}

/// Returns when there is a block to show: of the one whose state was copied, only the header is here.
async fn first_block(index: &Index) {
    while index.floor() > 0 && index.height() == index.floor() {
        tokio::time::sleep(FIRST_BLOCK_PAUSE).await;
    }
}

/// Time between two looks for the first block.
const FIRST_BLOCK_PAUSE: Duration = Duration::from_millis(20);

async fn stop(bft: Bft, thread: JoinHandle<()>) -> anyhow::Result<()> {
    let stopped = bft.stop().await.context("the node did not stop cleanly");
    join(thread)?;
    stopped
}

/// Waits for the thread, which ends with its future. A panic that would otherwise be lost is an error.
fn join(thread: JoinHandle<()>) -> anyhow::Result<()> {
    let said = |panic: Box<dyn Any + Send>| match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => {
            panic.downcast::<&str>().map_or_else(|_| "no message".to_owned(), |text| text.to_string())
        }
    };
    thread.join().map_err(|panic| anyhow::anyhow!(explain(&said(panic))))
}

/// What an operator can do about a panic. The library of consensus panics where it cannot write, rather than go on.
fn explain(said: &str) -> String {
    if said.contains("io error") {
        format!(
            "the disk refused what has to be kept, so the node stopped: {said}. Make room or mend the disk, then \
             start it again: it goes on from what was written"
        )
    } else {
        format!("the node panicked: {said}")
    }
}

/// What the node is in its network.
fn describe(network: &NetworkConfig, genesis: &Genesis) -> String {
    let (key, count) = (network.key.public(), genesis.validators.len());
    match genesis.validators.iter().find(|validator| validator.public_key == key) {
        Some(validator) => format!("validator {} ({key}) of {count}", validator.name),
        None => format!("follower {key} of {count} validators, which must list this key under followers"),
    }
}

#[cfg(test)]
mod tests {
    use super::explain;

    #[test]
    fn a_full_disk_is_not_called_a_panic() {
        let full =
            explain("failed to persist: journal error: io error: No space left on device (os error 28)");
        assert!(full.contains("No space left") && full.contains("start it again"), "{full}");
        assert!(!full.contains("panicked"), "{full}");
        assert!(explain("index out of bounds").starts_with("the node panicked: index out of bounds"));
    }
}
