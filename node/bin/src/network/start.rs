//! Starts chain and consensus of a node, on threads of their own.

use super::{
    behind::Need,
    copy::{self, IndexKeys, IndexNumbers},
    evidence::EvidenceFiles,
    mark::Moment,
    votes::{self, Role, Signer},
};
use crate::{
    chain::{self, Keeping},
    control::BackupSource,
    datadir::Datadir,
    log_switch::LogSwitch,
    services::Services,
};
use almanac_bft::{
    Bft, History, Namespace, NetworkConfig, Parts, Prover as ReplicaProver, Replica, ValidatorSet,
    sync::Progress,
};
use almanac_mempool::{Pool, PoolConfig};
use almanac_primitives::Genesis;
use anyhow::{Context as _, ensure};
use commonware_runtime::{Runner as _, Spawner as _, Supervisor as _, tokio::Context};
use std::{future::Future, path::PathBuf, sync::Arc, thread::JoinHandle};
use tokio::sync::oneshot;

/// What a node is to be.
pub(super) struct Plan {
    pub(super) genesis: Genesis,
    pub(super) network: NetworkConfig,
    pub(super) need: Need,
    pub(super) key_file: PathBuf,
    pub(super) vote_now: bool,
    pub(super) keeping: Keeping,
    pub(super) pool: PoolConfig,
    /// When the process began.
    pub(super) moment: Option<Moment>,
}

/// What the rest of the node needs of its part in the network.
pub(super) struct Started {
    pub(super) role: Role,
    pub(super) bft: Bft,
    pub(super) prover: ReplicaProver,
    pub(super) services: Services,
    /// What a backup is made from.
    pub(super) source: BackupSource,
    /// Counts what goes over the network and to the disk.
    pub(super) counters: Context,
}

type Ready = oneshot::Sender<anyhow::Result<Started>>;

/// Runs chain and consensus on threads of their own: no request that is served can delay a vote.
pub(super) fn spawn(
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
    let services = Services::new(application.chain(), index.clone(), Pool::new(*pool, base_fee));
    application.know_senders(services.pool.clone());
    let mut sinks = services.sinks(LogSwitch::default());
    sinks.push(pruning);
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
        admission: services.admission.clone(),
        keys: Arc::new(IndexKeys(index)),
        sinks,
    };
    let counters = context.child("counters");
    let (bft, node) = Bft::start(context, network.clone(), parts)?;
    Ok((Started { role, bft, prover, services, source, counters }, node))
}
