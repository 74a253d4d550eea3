//! One validator of the simulation: the real application, state, archive, pool, gossip and engine.

use crate::{client, clock::SimClock, durable::Durable, liar::Liar, network::Network, witness::Witness};
use alloy_primitives::Bytes;
use almanac_bft::{
    Channels, ConsensusBlock, Finalizer, Ledger, RuntimeClock, Timeouts, Validator, ValidatorSet, Voter,
    engine, finalizer::Deliveries, gossip::Gossip,
};
use almanac_consensus::{Admission, Application, SharedPool, Sink, TipState};
use almanac_mempool::{Pool, PoolConfig};
use almanac_primitives::{Header, StateKey, StateRead, StateReadError};
use almanac_schedule::CalendarAgenda;
use almanac_state::{BlockJournal, QmdbBatch, QmdbConfig, QmdbStore, StateView as _};
use commonware_consensus::simplex::mocks::conflicter::{self, Conflicter};
use commonware_cryptography::{Sha256, Signer as _, ed25519::PublicKey};
use commonware_glue::simulate::{engine::InitContext, processed::ProcessedHeight, reporter::MonitorReporter};
use commonware_runtime::{Handle, Spawner as _, Supervisor as _, deterministic::Context};
use commonware_utils::{NZU64, NZUsize};
use futures::FutureExt as _;
use std::sync::{Arc, Mutex, Weak};
use tokio::sync::oneshot;

pub type Store = QmdbStore<Context>;

/// What properties can see of a validator. It does not keep files open after a crash.
#[derive(Clone)]
pub struct Node {
    pub index: usize,
    ledger: Weak<Ledger<Store>>,
    archive: Weak<BlockJournal<Context>>,
}

impl Node {
    pub fn ledger(&self) -> Arc<Ledger<Store>> {
        self.ledger.upgrade().expect("the validator runs")
    }

    pub fn archive(&self) -> Arc<BlockJournal<Context>> {
        self.archive.upgrade().expect("the validator runs")
    }
}

impl ProcessedHeight for Node {
    async fn processed_height(&self) -> u64 {
        self.ledger().tip().header.number
    }
}

/// Starts a validator under one task: a crash ends that task, and everything that hangs on it.
pub async fn start(network: Network, init: InitContext<'_, PublicKey>) -> (Handle<()>, Node) {
    let (ready, started) = oneshot::channel();
    let InitContext { context, index, oracle, channels, monitor, .. } = init;
    let (peers, blocker) = (oracle.manager(), oracle.control(network.keys[index].public_key()));
    let root = context.spawn(move |context| async move {
        let (ledger, archive, pool) = open(&context, &network, index).await;
        let key = network.keys[index].public_key();
        let node = Node { index, ledger: Arc::downgrade(&ledger), archive: Arc::downgrade(&archive) };
        let _ = ready.send(node);
        let [votes, certificates, resolver, backfill, blocks, transactions] =
            <[_; 6]>::try_from(channels).expect("six channels");
        let scheme = network.validators.signer(&network.namespace, &network.keys[index]).unwrap();
        if !network.has_application(index) {
            // A digest is a digest on the wire, whatever made it.
            let context = context.child("conflicter");
            let conflicter = Conflicter::<_, _, Sha256>::new(context, conflicter::Config { scheme });
            let _ = conflicter.start(votes).await;
            return;
        }
        let clock = RuntimeClock::new(context.child("clock"));
        let voter = |skew, validators: Arc<ValidatorSet>| Voter {
            ledger: ledger.clone(),
            pool: pool.clone(),
            clock: SimClock::new(clock.clone(), skew),
            time: network.time,
            validators,
        };
        let voter = Liar {
            voter: voter(network.clocks[index], network.validators.clone()),
            proposer: voter(network.proposer_clocks[index], network.validators_for_proposals(index)),
            lie: network.lies[index],
            told: network.told.clone(),
        };
        let validator = Validator {
            scheme,
            public_key: key.clone(),
            partition: format!("v{index}-"),
            peers,
            blocker,
            genesis: ConsensusBlock::genesis(network.genesis_header.clone()),
            timeouts: Timeouts::for_block_time(std::time::Duration::from_millis(network.time.block_time.0)),
        };
        let (deliveries, inbox) = Deliveries::channel();
        let durable = Durable::new(&context, &ledger, &archive, deliveries);
        let reporter = MonitorReporter::new(key, monitor, durable);
        let channels = Channels { votes, certificates, resolver, backfill, blocks };
        let (engine, marshal) =
            engine::start(context.child("engine"), validator, voter, channels, reporter).await;
        let witness = Witness { validator: index, clock, log: network.log.clone() };
        let sinks: Vec<Arc<dyn Sink>> = vec![Arc::new(witness)];
        let finalizer = Finalizer { ledger: ledger.clone(), pool: pool.clone(), sinks };
        context.child("finalizer").spawn(|_| async move {
            finalizer.run(marshal, inbox).await.expect("final blocks can be committed");
        });
        let admission = Admission::new(network.genesis.chain_id, pool, Arc::new(SimTip(ledger.clone())));
        let gossip = Gossip::new(admission.clone(), RuntimeClock::new(context.child("gossip_clock")));
        context
            .child("client")
            .spawn(move |context| client::run(context, index, admission, ledger, network.transactions));
        let (sender, receiver) = transactions;
        context.child("gossip").spawn(|_| gossip.run(sender, receiver));
        let _ = engine.await;
    });
    (root, started.await.expect("the validator starts"))
}

/// Opens what is on disk, and executes again what the archive has and the state lacks.
async fn open(
    context: &Context,
    network: &Network,
    index: usize,
) -> (Arc<Ledger<Store>>, Arc<BlockJournal<Context>>, Arc<SharedPool>) {
    let config = config(format!("v{index}-state"));
    let archive = Arc::new(BlockJournal::open(context.child("blocks"), &config).await.unwrap());
    let store = QmdbStore::open(context.child("state"), &config, &network.state).await.unwrap();
    let header = match store.height() {
        0 => network.genesis_header.clone(),
        height => archive.get(height).await.unwrap().expect("an archived block").block.header,
    };
    let (mut application, mut tip) =
        Application::resume(&network.genesis, store, Arc::new(CalendarAgenda), header).unwrap();
    for number in tip.header.number + 1..=archive.height().await.unwrap() {
        let archived = archive.get(number).await.unwrap().expect("an archived block");
        let made = application.verify(&tip, archived.block).await.unwrap();
        application.commit(&made).await.unwrap();
        tip = made.tip;
        *network.replayed.lock().unwrap() += 1;
    }
    application.keep_archive(archive.clone());
    let base_fee = application.next_environment(&tip).await.unwrap().base_fee;
    let pool = SharedPool::new(Pool::new(PoolConfig::developer(), base_fee));
    (Ledger::new(application, tip), archive, pool)
}

/// Small files and caches, so that a run of a hundred blocks crosses their borders.
pub fn config(partition: String) -> QmdbConfig {
    QmdbConfig {
        page_cache_bytes: 256 << 10,
        open_cache_keys: 1_000,
        write_buffer_bytes: NZUsize!(4 << 10),
        file_operations: NZU64!(256),
        file_blocks: NZU64!(16),
        ..QmdbConfig::new(partition)
    }
}

/// The state after the last final block. Reads never have to wait in the simulator, except while a block is being
/// committed; then admission fails, and the client tries again.
struct SimTip(Arc<Ledger<Store>>);

impl TipState for SimTip {
    fn tip_state(&self) -> Box<dyn StateRead + Send> {
        Box::new(SimState(Mutex::new(self.0.tip().state)))
    }
}

struct SimState(Mutex<QmdbBatch<Context>>);

impl StateRead for SimState {
    fn read(&self, key: StateKey) -> Result<Option<Bytes>, StateReadError> {
        let batch = self.0.lock().unwrap().clone();
        let answer = batch.get_many(&[key]).now_or_never();
        let busy = || StateReadError { key, reason: "a block is being committed".to_owned() };
        Ok(answer.ok_or_else(busy)??.remove(0))
    }
}

/// The header of block 0, whose commitment only a store can tell.
pub async fn genesis_header(context: Context, genesis: &almanac_primitives::Genesis) -> Header {
    use almanac_state::{SealedBatch as _, StateStore as _};
    let store =
        QmdbStore::open(context, &config("genesis".to_owned()), &genesis.state().unwrap()).await.unwrap();
    genesis.header(store.head().commitment()).unwrap()
}
