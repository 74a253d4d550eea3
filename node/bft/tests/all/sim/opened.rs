//! What a node has on its disk, and the state that it answers from.

use crate::sim::{
    machine::Machine,
    marks::Mark,
    names::{CopiedNames, IndexNames},
    network::Network,
    numbers::Numbers,
    tamper::Tampered,
    twins::Half,
    work::WorkingStore,
};
use alloy_primitives::Bytes;
use almanac_bft::{
    Replica,
    sync::{Floor, KnownKeys},
};
use almanac_consensus::{Application, SharedPool, Sink, TipState};
use almanac_feed::IndexFeed;
use almanac_index::{Index, IndexConfig};
use almanac_mempool::{Pool, PoolConfig};
use almanac_primitives::{Genesis, Header, StateKey, StateRead, StateReadError};
use almanac_schedule::CalendarAgenda;
use almanac_state::{BlockJournal, QmdbBatch, QmdbConfig, QmdbStore, StateView as _};
use commonware_runtime::Supervisor as _;
use commonware_utils::{NZU64, NZUsize};
use futures::FutureExt as _;
use std::sync::{Arc, Mutex};

pub type Store = WorkingStore;

/// Whose files are opened.
#[derive(Clone)]
pub struct Place {
    pub index: usize,
    pub half: Half,
    /// The block that the chain starts from and the names of its values, where the state was copied.
    pub copied: Option<(Floor, Arc<CopiedNames>)>,
    /// How often copies were begun: each has files of its own.
    pub copies: u64,
}

impl Place {
    pub fn new(index: usize, half: Half) -> Self {
        Self { index, half, copied: None, copies: 0 }
    }

    /// Prefix of its files.
    pub fn files(&self) -> String {
        match self.half {
            Half::First => format!("v{}-{}", self.index, self.copies),
            Half::Second => format!("w{}-{}", self.index, self.copies),
        }
    }

    pub fn config(&self) -> QmdbConfig {
        config(format!("{}-state", self.files()))
    }
}

pub struct Opened {
    pub replica: Arc<Replica<Store>>,
    pub archive: Arc<BlockJournal<Machine>>,
    pub numbers: Arc<Numbers>,
    pub pool: Arc<SharedPool>,
    /// The same chain by another agenda, for who cheats with due runs.
    pub tampered: Option<Arc<Application<Store>>>,
    pub names: Arc<dyn KnownKeys>,
    /// Keeps what is derived from final blocks.
    pub feed: Arc<dyn Sink>,
    pub tip: Arc<dyn TipState>,
}

impl Opened {
    /// Opens what is on disk, and executes again what the archive has and state or index lack.
    pub async fn open(context: &Machine, network: &Network, place: &Place) -> Self {
        let (index, config) = (place.index, place.config());
        let first = place.copied.as_ref().map_or(&network.genesis_header, |(floor, _)| &floor.header);
        let archive = BlockJournal::open_after(context.child("blocks"), &config, first.number).await.unwrap();
        let archive = Arc::new(archive);
        let (height, indexed) = (archive.height().await.unwrap(), network.index(index, place.half));
        if place.copied.is_none() && indexed.height() > height {
            indexed.revert_to(height).unwrap();
        }
        let mut store = QmdbStore::open(context.child("state"), &config, &network.state).await.unwrap();
        for (what, height) in [("archive", height), ("state", store.height())] {
            network.check_acknowledged((index, place.half), what, height);
        }
        if place.copied.is_none() && indexed.height() < store.height() {
            // The last life ended between the two. Blocks are executed again for the index from where it is.
            drop(store);
            let header = header_at(&archive, first, indexed.height()).await;
            let ops_end = Some(header.commitment.ops_end);
            let context = context.child("earlier_state");
            store = QmdbStore::open_at(context, &config, &network.state, ops_end).await.unwrap();
        }
        let header = header_at(&archive, first, store.height()).await;
        let store = WorkingStore::new(store, context.child("work"), network, index);
        let lie = network.lies[index];
        let tampered = lie.is_about_runs().then(|| {
            let agenda = Arc::new(Tampered(lie));
            let resumed = Application::resume(
                &network.genesis,
                network.chain().genesis,
                store.clone(),
                agenda,
                header.clone(),
            );
            Arc::new(resumed.unwrap().0)
        });
        let (mut application, mut tip) = Application::resume(
            &network.genesis,
            network.chain().genesis,
            store,
            Arc::new(CalendarAgenda),
            header,
        )
        .unwrap();
        let feed: Arc<dyn Sink> = match &place.copied {
            Some((_, names)) => names.clone(),
            None => Arc::new(IndexFeed(indexed.clone())),
        };
        for number in tip.header.number + 1..=height {
            let archived = archive.get(number).await.unwrap().expect("an archived block");
            let made = application.verify(&tip, archived.block).await.unwrap();
            application.commit(&made).await.unwrap();
            if place.copied.is_some() || number > indexed.height() {
                feed.finalized(&made.block, &made.output).unwrap();
            }
            tip = made.tip;
            network.marks.add(Mark::Replay);
        }
        let numbers = Numbers::read(&archive, first.number).await;
        application.keep_archive(archive.clone());
        let base_fee = application.next_environment(&tip).await.unwrap().base_fee;
        let pool = SharedPool::new(Pool::new(PoolConfig::default(), base_fee));
        application.know_senders(pool.clone());
        let replica = Replica::new(application, tip);
        let (names, tip): (Arc<dyn KnownKeys>, Arc<dyn TipState>) = match &place.copied {
            Some((_, names)) => (names.clone(), Arc::new(SimTip(replica.clone()))),
            None => (Arc::new(IndexNames(indexed.clone())), Arc::new(IndexFeed(indexed))),
        };
        Self { replica, archive, numbers, pool, tampered, names, feed, tip }
    }
}

/// The header of a block of a chain whose blocks follow the one with the header `first`.
async fn header_at(archive: &BlockJournal<Machine>, first: &Header, height: u64) -> Header {
    if height == first.number {
        return first.clone();
    }
    archive.get(height).await.unwrap().expect("an archived block").block.header
}

/// An index with nothing but the genesis. It is in memory, and as durable as what it is told of: the real one is on
/// a real disk, which the simulation cannot take away.
pub fn new_index(network: &Network) -> Arc<Index> {
    let (header, state) = (network.genesis_header.clone(), network.state.clone());
    Arc::new(Index::in_memory(IndexConfig::archive(), header, state).unwrap())
}

/// Small files and caches, so that a run of a hundred blocks crosses their borders.
fn config(partition: String) -> QmdbConfig {
    QmdbConfig {
        page_cache_bytes: 256 << 10,
        open_cache_keys: 1_000,
        write_buffer_bytes: NZUsize!(4 << 10),
        file_operations: NZU64!(256),
        file_blocks: NZU64!(16),
        ..QmdbConfig::new(partition)
    }
}

/// The state after the last final block, of a node without an index. Reads never have to wait in the simulator,
/// except while a block is being committed; then admission fails.
struct SimTip(Arc<Replica<Store>>);

impl TipState for SimTip {
    fn tip_state(&self) -> Box<dyn StateRead + Send> {
        Box::new(SimState(Mutex::new(self.0.tip().state)))
    }
}

struct SimState(Mutex<QmdbBatch<Machine>>);

impl StateRead for SimState {
    fn read(&self, key: StateKey) -> Result<Option<Bytes>, StateReadError> {
        let batch = self.0.lock().unwrap().clone();
        let answer = batch.get_many(&[key]).now_or_never();
        let busy = || StateReadError::failed(key, "a block is being committed");
        Ok(answer.ok_or_else(busy)??.remove(0))
    }
}

/// The header of block 0, whose commitment only a store can tell.
pub async fn genesis_header(context: Machine, genesis: &Genesis) -> Header {
    use almanac_state::{SealedBatch as _, StateStore as _};
    let store =
        QmdbStore::open(context, &config("genesis".to_owned()), &genesis.state().unwrap()).await.unwrap();
    genesis.header(store.tip().commitment()).unwrap()
}
