//! Assembles a node of a network, runs it, and shuts it down.

use super::{
    NodeCommand,
    behind::{self, Need},
    config::NodeConfig,
    copy::{self, IndexKeys, IndexNumbers},
    evidence::EvidenceFiles,
    keys,
    mark::Moment,
    ports, serve, stalled, vote_again,
    votes::{self, Role, Signer},
    watch,
};
use crate::{
    chain::{self, Keeping},
    control::{BackupSource, Control},
    datadir::{self, Datadir},
    figures::BlockFigures,
    listen::BlockLines,
    shutdown::Shutdown,
};
use almanac_bft::{
    Bft, History, Namespace, NetworkConfig, Parts, Prover as ReplicaProver, Replica, ValidatorSet,
    sync::Progress,
};
use almanac_consensus::{Admission, Clock as _, Engine as _, SharedPool, Sink, SystemClock};
use almanac_index::Index;
use almanac_mempool::{Pool, PoolConfig};
use almanac_primitives::{Genesis, TimestampMs};
use almanac_rpc::{
    Server,
    feed::IndexFeed,
    heads::Heads,
    heavy::{Heavy, HeavyLimits},
    log_switch::LogSwitch,
};
use anyhow::{Context as _, ensure};
use commonware_runtime::{Runner as _, Spawner as _, Supervisor as _, tokio::Context};
use std::{
    any::Any, future::Future, io::Write as _, path::PathBuf, sync::Arc, thread::JoinHandle, time::Duration,
};
use tokio::sync::oneshot;

/// Runs a node until a signal or a failure ends it.
pub(crate) async fn run(command: &NodeCommand) -> anyhow::Result<()> {
    let mut shutdown = Shutdown::listen()?;
    let (start, moment) = (SystemClock.now(), Moment::now());
    let serving = command.rpc.node()?;
    let config = NodeConfig::read(&command.config)?;
    let network = config.network()?;
    let genesis = datadir::read_genesis(&config.genesis)?;
    // Both are held as long as the node runs: the same key started twice would sign two votes.
    let _key = keys::hold(&config.key)?;
    let datadir = Arc::new(Datadir::take(&config.datadir)?);
    datadir.adopt_genesis(&genesis)?;
    ports::check_free(&config)?;
    tracing::info!("{}: {}", command.config.display(), describe(&network, &genesis));
    let progress = Arc::new(Progress::default());
    let need = tokio::select! {
        need = find_need(&config, &genesis, &datadir, &network, start) => need?,
        signal = shutdown.requested() => {
            tracing::info!("{signal}: stopping before the node was up");
            return Ok(());
        }
    };
    let waiting = match need {
        Need::Fill | Need::Replace => {
            Some(Server::start_pages(config.rpc, serving.clone(), watch::pages(&progress)).await?)
        }
        Need::Nothing => None,
    };
    let key = network.key.public();
    let plan = Plan {
        genesis: genesis.clone(),
        network,
        need,
        key_file: config.key.clone(),
        vote_now: command.vote_now,
        keeping: config.keeping(),
        pool: config.pool(),
        moment,
    };
    let (thread, started) = spawn(plan, datadir.clone(), progress)?;
    let mut started = tokio::select! {
        started = started => started.context("the node's thread ended before it began")??,
        // Whatever was being done is begun again at the next start.
        signal = shutdown.requested() => {
            tracing::info!("{signal}: stopping before the node was up");
            return Ok(());
        }
    };
    tokio::select! {
        () = first_block(&started.index) => {}
        signal = shutdown.requested() => {
            tracing::info!("{signal}: stopping before the first block");
            return stop(started.bft, thread).await;
        }
        ended = started.bft.ended() => {
            join(thread)?;
            return ended.context("the node ended before the first block");
        }
    }

    if let Some(waiting) = waiting {
        waiting.stop().await;
    }
    let _control = Control::serve(datadir.path(), genesis.clone(), started.source.clone())?;
    let heavy = Heavy::new(HeavyLimits::default());
    let server = serve::serve(&config, serving, genesis.chain_id, &started, &heavy).await?;
    // Whoever started us may have closed the pipe; that is no reason to stop.
    let _ = writeln!(
        std::io::stdout(),
        "rpc http://{}\npeers {}\nCtrl-C stops it.",
        server.address(),
        config.listen
    );

    let (finality, leave) = (started.bft.finality().clone(), started.bft.leave().clone());
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
        floor = vote_again::end(start, leave, &started.index, &finality) => Some(floor),
        never = stalled::watch(&started.index, config.block_time_ms, &genesis) => match never {},
    };
    heavy.close();
    server.stop().await;
    stop(started.bft, thread).await?;
    match votes_after {
        None => Ok(()),
        Some(floor) => vote_again::speak(&datadir, key, &config.key, floor),
    }
}

/// Finds out what the node has to copy, on a thread of its own: it reads the disk and may ask peers.
async fn find_need(
    config: &NodeConfig,
    genesis: &Genesis,
    datadir: &Arc<Datadir>,
    network: &NetworkConfig,
    now: TimestampMs,
) -> anyhow::Result<Need> {
    let (config, genesis, network) = (config.clone(), genesis.clone(), network.clone());
    let datadir = datadir.clone();
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

/// What a node is to be.
struct Plan {
    genesis: Genesis,
    network: NetworkConfig,
    need: Need,
    key_file: PathBuf,
    vote_now: bool,
    keeping: Keeping,
    pool: PoolConfig,
    /// When the process began.
    moment: Option<Moment>,
}

/// What the rest of the node needs of its part in the network.
pub(super) struct Started {
    pub(super) role: Role,
    pub(super) bft: Bft,
    pub(super) prover: ReplicaProver,
    pub(super) admission: Admission,
    pub(super) index: Arc<Index>,
    pub(super) heads: Arc<Heads>,
    /// What a backup is made from.
    pub(super) source: BackupSource,
    /// Counts what goes over the network and to the disk.
    pub(super) counters: Context,
}

type Ready = oneshot::Sender<anyhow::Result<Started>>;

/// Runs chain and consensus on threads of their own: no request that is served can delay a vote.
fn spawn(
    plan: Plan,
    datadir: Arc<Datadir>,
    progress: Arc<Progress>,
) -> anyhow::Result<(JoinHandle<()>, oneshot::Receiver<anyhow::Result<Started>>)> {
    let (ready, started) = oneshot::channel();
    let thread = std::thread::Builder::new().name("node".to_owned());
    let thread = thread
        .spawn(move || {
            let (role, moment) = match prepare(&plan, &datadir, &progress) {
                Ok(prepared) => prepared,
                Err(error) => return tell(ready, Err(error)),
            };
            datadir.runner().start(|context| async {
                match start(context, plan, &datadir, role, moment).await {
                    Ok((started, node)) => {
                        tell(ready, Ok(started));
                        node.await;
                    }
                    Err(error) => tell(ready, Err(error)),
                }
            });
        })
        .context("cannot start the node's thread")?;
    Ok((thread, started))
}

/// Fills the directory if that has to be, and finds out what the node may sign, and since when.
fn prepare(
    plan: &Plan,
    datadir: &Datadir,
    progress: &Arc<Progress>,
) -> anyhow::Result<(Role, Option<Moment>)> {
    copy::run(plan.need, &plan.genesis, datadir, &plan.network, progress)?;
    let key = plan.network.key.public();
    let mut moment = plan.moment.clone();
    if plan.vote_now {
        let is_validator = plan.genesis.validators.iter().any(|validator| validator.public_key == key);
        ensure!(is_validator, "--vote-now: {key} is not the key of a validator");
        // What was decided by hand was decided after the start.
        moment = votes::begin_by_hand(datadir, key, &plan.key_file)?;
    }
    Ok((votes::role(datadir, &plan.genesis, key, &plan.key_file)?, moment))
}

fn tell(ready: Ready, started: anyhow::Result<Started>) {
    // Where nobody waits any more, the process is on its way out.
    let _ = ready.send(started);
}

async fn start(
    context: Context,
    plan: Plan,
    datadir: &Datadir,
    role: Role,
    moment: Option<Moment>,
) -> anyhow::Result<(Started, impl Future<Output = ()> + Send)> {
    let Plan { genesis, network, key_file, keeping, pool, .. } = &plan;
    let floor = datadir.floor()?;
    let header = floor.as_ref().map(|floor| &floor.header);
    let chain = chain::on_disk(&context, genesis, &datadir.index(), keeping.clone(), header).await?;
    let chain::Chain { mut application, tip, index, disk } = chain;
    let chain::Disk { archive, pruning } = disk.context("a node of a network keeps its chain on disk")?;
    let base_fee = application.next_environment(&tip).await?.base_fee;
    let pool = SharedPool::new(Pool::new(*pool, base_fee));
    application.know_senders(pool.clone());
    let heads = Heads::new(index.clone());
    let feed = Arc::new(IndexFeed(index.clone()));
    let admission = Admission::new(genesis.chain_id, pool.clone(), feed.clone());
    // In this order: whoever hears of a block finds it in the index.
    let sinks: Vec<Arc<dyn Sink>> = vec![
        feed,
        heads.clone(),
        Arc::new(BlockFigures { pool, index: index.clone() }),
        Arc::new(BlockLines { lines: LogSwitch::default(), index: index.clone() }),
        pruning,
    ];
    let origin = index.block(0)?.context("block 0 is missing from the index")?;
    let replica = Replica::new(application, tip);
    let (prover, proving) = ReplicaProver::new(replica.clone());
    context.child("prover").spawn(|_| proving);
    let source = BackupSource::new(index.clone(), archive.clone());
    let history = History { archive, numbers: Arc::new(IndexNumbers(index.clone())) };
    let validators = ValidatorSet::new(genesis)?;
    let signer = Signer { key: network.key.public(), file: key_file, start: moment };
    let namespace = Namespace(origin.block.hash());
    let (standing, book) =
        votes::standing(&context, datadir, &role, &signer, &validators, &namespace).await?;
    let parts = Parts {
        replica,
        history,
        genesis: origin.block.header.clone(),
        floor,
        voice: role.voice(),
        standing,
        book: Arc::new(book),
        evidence: Arc::new(EvidenceFiles::new(datadir.path(), genesis)),
        validators,
        admission: admission.clone(),
        keys: Arc::new(IndexKeys(index.clone())),
        sinks,
    };
    let counters = context.child("counters");
    let (bft, node) = Bft::start(context, network.clone(), parts)?;
    Ok((Started { role, bft, prover, admission, index, heads, source, counters }, node))
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
