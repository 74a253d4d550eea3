//! What a validator has on its disk, and the state that it answers from.

use crate::{
    machine::Machine, marks::Mark, network::Network, numbers::Numbers, tamper::Tampered, twins::Half,
    work::WorkingStore,
};
use alloy_primitives::Bytes;
use almanac_bft::Ledger;
use almanac_consensus::{Application, SharedPool, TipState};
use almanac_mempool::{Pool, PoolConfig};
use almanac_primitives::{Genesis, Header, StateKey, StateRead, StateReadError};
use almanac_schedule::CalendarAgenda;
use almanac_state::{BlockJournal, QmdbBatch, QmdbConfig, QmdbStore, StateView as _};
use commonware_runtime::Supervisor as _;
use commonware_utils::{NZU64, NZUsize};
use futures::FutureExt as _;
use std::sync::{Arc, Mutex};

pub type Store = WorkingStore;

/// Prefix of a validator's files.
pub fn files(index: usize, half: Half) -> String {
    match half {
        Half::First => format!("v{index}"),
        Half::Second => format!("w{index}"),
    }
}

pub struct Opened {
    pub ledger: Arc<Ledger<Store>>,
    pub archive: Arc<BlockJournal<Machine>>,
    pub numbers: Arc<Numbers>,
    pub pool: Arc<SharedPool>,
    /// The same chain by another agenda, for who cheats with due runs.
    pub tampered: Option<Arc<Application<Store>>>,
}

impl Opened {
    /// Opens what is on disk, and executes again what the archive has and the state lacks.
    pub async fn open(context: &Machine, network: &Network, index: usize, half: Half) -> Self {
        let config = config(format!("{}-state", files(index, half)));
        let archive = Arc::new(BlockJournal::open(context.child("blocks"), &config).await.unwrap());
        let store = QmdbStore::open(context.child("state"), &config, &network.state).await.unwrap();
        let store = WorkingStore::new(store, context.child("work"), network.run_time);
        let header = match store.height() {
            0 => network.genesis_header.clone(),
            height => archive.get(height).await.unwrap().expect("an archived block").block.header,
        };
        let lie = network.lies[index];
        let tampered = lie.is_about_runs().then(|| {
            let agenda = Arc::new(Tampered(lie));
            let resumed = Application::resume(&network.genesis, store.clone(), agenda, header.clone());
            Arc::new(resumed.unwrap().0)
        });
        let (mut application, mut tip) =
            Application::resume(&network.genesis, store, Arc::new(CalendarAgenda), header).unwrap();
        for number in tip.header.number + 1..=archive.height().await.unwrap() {
            let archived = archive.get(number).await.unwrap().expect("an archived block");
            let made = application.verify(&tip, archived.block).await.unwrap();
            application.commit(&made).await.unwrap();
            tip = made.tip;
            network.marks.add(Mark::Replay);
        }
        let numbers = Numbers::read(&archive).await;
        application.keep_archive(archive.clone());
        let base_fee = application.next_environment(&tip).await.unwrap().base_fee;
        let pool = SharedPool::new(Pool::new(PoolConfig::developer(), base_fee));
        Self { ledger: Ledger::new(application, tip), archive, numbers, pool, tampered }
    }
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

/// The state after the last final block. Reads never have to wait in the simulator, except while a block is being
/// committed; then admission fails, and the client tries again.
pub struct SimTip(pub Arc<Ledger<Store>>);

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
    genesis.header(store.head().commitment()).unwrap()
}
