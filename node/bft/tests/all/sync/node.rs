//! A whole node in the simulator, wired as in production, without clients.

use crate::sync::chain;
use alloy_primitives::{Address, BlockHash, Bytes};
use almanac_bft::{
    BlockNumbers, Conflict, EvidenceStore, FinalityReader, History, Namespace, OwnVote, Parts, Replica,
    Standing, TimeConfig, ValidatorSet, Voice, VoteBook,
    block::key_bytes,
    sync::{Floor, KnownKeys},
    wiring::{self, Identity, Links, Signals},
};
use almanac_consensus::{Admission, Application, SharedPool, Sink, SinkError, TipState};
use almanac_exec::BlockOutput;
use almanac_mempool::{Pool, PoolConfig};
use almanac_primitives::{
    Block, DurationMs, Genesis, Header, StateKey, StateRead, TimestampMs, genesis, testing,
};
use almanac_schedule::CalendarAgenda;
use almanac_state::{BlockJournal, QmdbConfig, QmdbStore, SealedBatch as _, StateStore as _};
use commonware_cryptography::{
    Signer as _,
    ed25519::{PrivateKey, PublicKey},
};
use commonware_p2p::simulated::Oracle;
use commonware_runtime::{Handle, Spawner as _, Supervisor as _, deterministic::Context};
use commonware_utils::NZU64;
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    num::NonZeroU64,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::{oneshot, watch};

/// Blocks that marshal keeps beside the archive: so few that a short run prunes, and asks the archive.
pub const RECENT_BLOCKS: NonZeroU64 = NZU64!(8);

pub type Store = QmdbStore<Context>;

/// What all nodes of a network know.
pub struct World {
    /// Of the validators, then of the followers.
    pub keys: Vec<PrivateKey>,
    pub genesis: Genesis,
    pub header: Header,
    pub state: BTreeMap<StateKey, Bytes>,
    pub validators: ValidatorSet,
    pub namespace: Namespace,
}

impl World {
    pub async fn new(context: &Context, validators: usize, followers: usize) -> Self {
        let mut keys: Vec<_> = (0..validators as u64).map(PrivateKey::from_seed).collect();
        keys.sort_by_key(PrivateKey::public_key);
        let validator = |(index, key): (usize, &PrivateKey)| genesis::Validator {
            name: format!("v{index}"),
            public_key: key_bytes(&key.public_key()),
            fee_recipient: Address::repeat_byte(1),
        };
        let genesis = Genesis {
            validators: keys.iter().enumerate().map(validator).collect(),
            // The simulated clock starts at 0.
            timestamp_ms: TimestampMs(0),
            ..testing::genesis()
        };
        keys.extend((0..followers as u64).map(|n| PrivateKey::from_seed(100 + n)));
        let state = genesis.state().unwrap();
        let store =
            QmdbStore::open(context.child("genesis"), &chain::config("genesis"), &state).await.unwrap();
        let header = genesis.header(store.tip().commitment()).unwrap();
        let validators = ValidatorSet::new(&genesis).unwrap();
        Self { keys, namespace: Namespace(header.hash()), header, state, validators, genesis }
    }

    pub fn public(&self, index: usize) -> PublicKey {
        self.keys[index].public_key()
    }

    pub fn config(&self, index: usize) -> QmdbConfig {
        chain::config(&format!("n{index}-state"))
    }
}

/// A node that runs. Aborting its root ends everything that belongs to it.
pub struct Node {
    pub replica: Arc<Replica<Store>>,
    pub seen: Arc<Seen>,
    pub root: Handle<()>,
}

/// Which node starts, and with what.
pub struct Seat {
    /// Whose key it has.
    pub index: usize,
    /// Which disk it has: its own, with the number of its key, or another.
    pub disk: usize,
    pub floor: Option<Floor>,
    pub voice: Voice,
}

/// Starts a node on what it has on disk: all of the chain, or what follows a floor. It votes if it can.
pub async fn start(
    context: Context,
    world: &Arc<World>,
    oracle: &Oracle<PublicKey, Context>,
    index: usize,
    floor: Option<Floor>,
) -> Node {
    let seat = Seat { index, disk: index, floor, voice: Voice::Votes { after: None } };
    start_in(context, world, oracle, seat).await
}

/// Starts a node.
pub async fn start_in(
    context: Context,
    world: &Arc<World>,
    oracle: &Oracle<PublicKey, Context>,
    seat: Seat,
) -> Node {
    let (ready, started) = oneshot::channel();
    let (world, oracle) = (world.clone(), oracle.clone());
    let root = context.spawn(move |context| async move {
        let opened = open(&context, &world, &seat).await;
        let seen = Arc::new(Seen::new(&world));
        seen.read(&opened.archive).await;
        let _ = ready.send((opened.replica.clone(), seen.clone()));
        run(context, &world, &oracle, seat, opened, seen).await;
    });
    let (replica, seen) = started.await.expect("the node starts");
    Node { replica, seen, root }
}

/// What a node has on its disk.
struct Opened {
    replica: Arc<Replica<Store>>,
    archive: Arc<BlockJournal<Context>>,
    pool: Arc<SharedPool>,
}

/// Opens the chain, and executes again what the archive has and the state lacks.
async fn open(context: &Context, world: &World, seat: &Seat) -> Opened {
    let first = seat.floor.as_ref().map_or(&world.header, |floor| &floor.header);
    let config = world.config(seat.disk);
    let archive = BlockJournal::open_after(context.child("blocks"), &config, first.number).await.unwrap();
    let store = QmdbStore::open(context.child("state"), &config, &world.state).await.unwrap();
    let header = match store.height() {
        height if height == first.number => first.clone(),
        height => archive.get(height).await.unwrap().expect("an archived block").block.header,
    };
    let (mut application, mut tip) =
        Application::resume(&world.genesis, world.header.hash(), store, Arc::new(CalendarAgenda), header)
            .unwrap();
    for number in tip.header.number + 1..=archive.height().await.unwrap() {
        let archived = archive.get(number).await.unwrap().expect("an archived block");
        let made = application.verify(&tip, archived.block).await.unwrap();
        application.commit(&made).await.unwrap();
        tip = made.tip;
    }
    let archive = Arc::new(archive);
    application.keep_archive(archive.clone());
    let base_fee = application.next_environment(&tip).await.unwrap().base_fee;
    let pool = SharedPool::new(Pool::new(PoolConfig::developer(), base_fee));
    Opened { replica: Replica::new(application, tip), archive, pool }
}

async fn run(
    context: Context,
    world: &World,
    oracle: &Oracle<PublicKey, Context>,
    Seat { index, disk, floor, voice }: Seat,
    Opened { replica, archive, pool }: Opened,
    seen: Arc<Seen>,
) {
    let control = oracle.control(world.public(index));
    let time = TimeConfig { block_time: DurationMs(100), ..TimeConfig::default() };
    let mut ends = Vec::new();
    for (number, quota) in wiring::quotas(Duration::from_millis(time.block_time.0)) {
        ends.push(control.register(number, quota).await.unwrap());
    }
    let ends = ends.try_into().unwrap_or_else(|_| panic!("one for each channel"));
    let links = Links { ends, peers: oracle.manager(), blocker: control };
    let identity = Identity {
        private: world.keys[index].clone(),
        time,
        ns_per_gas: 0,
        partition: format!("n{disk}-"),
        recent_blocks: RECENT_BLOCKS,
    };
    let chain = almanac_primitives::Chain { id: world.genesis.chain_id, genesis: world.header.hash() };
    let parts = Parts {
        replica,
        history: History { archive, numbers: seen.clone() },
        genesis: world.header.clone(),
        floor,
        voice,
        // These tests say what a node may sign.
        standing: Standing::Sure,
        book: Arc::new(Unread),
        evidence: Arc::new(Unread),
        validators: world.validators.clone(),
        admission: Admission::new(chain, pool, Arc::new(NoClients)),
        keys: seen.clone(),
        sinks: vec![seen],
    };
    let signals = Signals { finality: FinalityReader::default(), leave: watch::Sender::new(None) };
    let run = wiring::run(context, identity, links, parts, signals, |voter| voter, |next| next);
    let ended = Box::pin(run).await;
    panic!("a node ended: {ended}");
}

/// Nobody reads here what was signed.
struct Unread;

impl VoteBook for Unread {
    fn sent(&self, _: OwnVote) -> io::Result<()> {
        Ok(())
    }

    fn begin_after(&self, _: &Floor) -> io::Result<()> {
        Ok(())
    }

    fn distrust(&self) -> io::Result<()> {
        Ok(())
    }
}

impl EvidenceStore for Unread {
    fn conflict(&self, _: &Conflict, _: &Bytes) {}
}

/// Nobody sends transactions here.
struct NoClients;

impl TipState for NoClients {
    fn tip_state(&self) -> Box<dyn StateRead + Send> {
        unreachable!("nobody sends transactions")
    }
}

/// What a node has seen: its blocks, and the names of values as an index knows them.
pub struct Seen {
    pub headers: Mutex<BTreeMap<u64, Header>>,
    names: Mutex<BTreeSet<StateKey>>,
    changed: Mutex<BTreeMap<u64, Vec<StateKey>>>,
}

impl Seen {
    fn new(world: &World) -> Self {
        let names = world.state.keys().copied().collect();
        Self { headers: Mutex::default(), names: Mutex::new(names), changed: Mutex::default() }
    }

    /// Takes the blocks that are on disk.
    async fn read(&self, archive: &BlockJournal<Context>) {
        for number in 1..=archive.height().await.unwrap() {
            if let Some(archived) = archive.get(number).await.unwrap() {
                self.headers.lock().unwrap().insert(number, archived.block.header);
            }
        }
    }

    /// Takes the names of a copied state.
    pub fn copied(&self, names: impl IntoIterator<Item = StateKey>) {
        *self.names.lock().unwrap() = names.into_iter().collect();
    }
}

impl Sink for Seen {
    fn finalized(&self, block: &Arc<Block>, output: &Arc<BlockOutput>) -> Result<(), SinkError> {
        let number = block.header.number;
        self.headers.lock().unwrap().insert(number, block.header.clone());
        let mut names = self.names.lock().unwrap();
        for change in output.diff.changes() {
            match change.new {
                Some(_) => names.insert(change.key),
                None => names.remove(&change.key),
            };
        }
        let changed = output.diff.changes().iter().map(|change| change.key).collect();
        self.changed.lock().unwrap().insert(number, changed);
        Ok(())
    }

    fn reverted(&self, _: u64) -> Result<(), SinkError> {
        unreachable!("final blocks stay")
    }
}

impl BlockNumbers for Seen {
    fn number_of(&self, hash: BlockHash) -> Result<Option<u64>, String> {
        let headers = self.headers.lock().unwrap();
        Ok(headers.values().find(|header| header.hash() == hash).map(|header| header.number))
    }
}

impl KnownKeys for Seen {
    fn after(&self, after: Option<&StateKey>, limit: usize) -> Result<Vec<StateKey>, String> {
        let names = self.names.lock().unwrap();
        Ok(names.iter().filter(|name| after.is_none_or(|after| *name > after)).take(limit).copied().collect())
    }

    fn changed_in(&self, height: u64) -> Result<Option<Vec<StateKey>>, String> {
        Ok(self.changed.lock().unwrap().get(&height).cloned())
    }
}
