//! What readers of the index cost the chain, how far the index is behind it, and how long a revert takes.
//!
//! `cargo bench -p almanac-feed --bench readers`: a chain on disk with 100,000 accounts and blocks of 300 transfers.
//! Rounds with and without eight busy readers alternate, so that both see the same machine.

use alloy_primitives::Address;
use almanac_consensus::{
    Application, SharedPool, Sink, SinkError, Solo, SoloConfig, SystemClock, engine::Engine as _,
};
use almanac_consensus::{Clock as _, Mode};
use almanac_exec::BlockOutput;
use almanac_feed::IndexFeed;
use almanac_index::{Index, IndexConfig};
use almanac_mempool::{Pool, PoolConfig, SenderState};
use almanac_primitives::{
    Block, Genesis, StateKey, StateRead as _, Wei,
    genesis::Allocation,
    testing::{Person, genesis, person, recovered, transfer},
};
use almanac_priority::{lower_thread, off_first_processor};
use almanac_schedule::CalendarAgenda;
use almanac_state::{QmdbConfig, QmdbStore, SealedBatch as _, StateStore as _};
use commonware_runtime::{
    Runner as _, Supervisor as _,
    tokio::{Config, Runner},
};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

const ACCOUNTS: u64 = 100_000;
const SENDERS: u64 = 30;
const TRANSFERS: u64 = 300;
const BLOCKS_PER_ROUND: u64 = 20;
const ROUNDS: usize = 5;
const READERS: usize = 8;
const REVERTED: u64 = 10;

fn main() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let config = Config::new().with_storage_directory(directory.path().join("chain")).with_worker_threads(1);
    let place = directory.path().join("index");
    Runner::new(config).start(|context| async move {
        let genesis = large_genesis();
        let state = genesis.state().expect("a good genesis");
        let config = QmdbConfig::new("state");
        let store = QmdbStore::open(context.child("state"), &config, &state).await.expect("a new store");
        let header = genesis.header(store.tip().commitment()).expect("a good genesis");
        let (application, tip) =
            Application::new(&genesis, store, Arc::new(CalendarAgenda)).expect("a good genesis");
        let index =
            Arc::new(Index::open(&place, IndexConfig::archive(), header, state).expect("a new index"));
        let feed = Arc::new(Feed { feed: IndexFeed(index.clone()), lags: Mutex::default() });
        let base_fee = application.next_environment(&tip).await.expect("a tip").base_fee;
        let pool = SharedPool::new(Pool::new(PoolConfig::default(), base_fee));
        let solo = SoloConfig::new(Mode::Manual, Address::ZERO);
        let sinks: Vec<Arc<dyn Sink>> = vec![feed.clone()];
        let (solo, sequencer) =
            Solo::start(Arc::new(application), tip, pool.clone(), sinks, SystemClock, solo);
        let driver = async move {
            let mut load = Load { pool, nonce: 0 };
            readers(&solo, &mut load, &index, &feed).await;
            revert(&solo, &mut load).await;
            solo.stop().await.expect("it stops");
        };
        futures::join!(sequencer, driver);
    });
}

async fn readers(solo: &Solo, load: &mut Load, index: &Arc<Index>, feed: &Feed) {
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    let reads = Arc::new(AtomicU64::new(0));
    let mut reading = Duration::ZERO;
    load.round(solo, &mut Vec::new()).await;
    feed.lags.lock().expect("one thread at a time").clear();
    for _ in 0..ROUNDS {
        load.round(solo, &mut alone).await;
        let busy = Busy::start(index, &reads);
        let started = Instant::now();
        load.round(solo, &mut together).await;
        reading += started.elapsed();
        busy.stop();
    }
    let (alone, together) = (median(&mut alone), median(&mut together));
    let mut lags = feed.lags.lock().expect("one thread at a time").clone();
    println!("block of {TRANSFERS} transfers, {ACCOUNTS} accounts, state and index on disk");
    println!("  alone                       {alone:8.2} ms");
    println!(
        "  with {READERS} busy readers         {together:8.2} ms   {:.2} x (goal 1.10)",
        together / alone
    );
    println!(
        "  reads in that time          {:8.0} per second",
        reads.load(Ordering::Relaxed) as f64 / reading.as_secs_f64()
    );
    println!("  index behind the chain by   {:8.2} ms", median(&mut lags));
}

async fn revert(solo: &Solo, load: &mut Load) {
    let mut times = Vec::new();
    for _ in 0..10 {
        let id = solo.controls().snapshot().await.expect("it runs");
        let before = load.nonce;
        for _ in 0..REVERTED {
            load.fill(TRANSFERS);
            solo.controls().mine(None).await.expect("it runs");
        }
        let started = Instant::now();
        solo.controls().revert(id).await.expect("it runs");
        times.push(milliseconds(started));
        load.nonce = before;
    }
    println!("revert of {REVERTED} such blocks        {:8.2} ms   (goal 50)", median(&mut times));
}

/// The index as a node feeds it, with the time that it takes.
struct Feed {
    feed: IndexFeed,
    lags: Mutex<Vec<f64>>,
}

impl Sink for Feed {
    fn finalized(&self, block: &Arc<Block>, output: &Arc<BlockOutput>) -> Result<(), SinkError> {
        let started = Instant::now();
        self.feed.finalized(block, output)?;
        self.lags.lock().expect("one thread at a time").push(milliseconds(started));
        Ok(())
    }

    fn can_revert(&self, height: u64) -> bool {
        self.feed.can_revert(height)
    }

    fn reverted(&self, height: u64) -> Result<(), SinkError> {
        self.feed.reverted(height)
    }
}

/// Transfers that always follow each other.
struct Load {
    pool: Arc<SharedPool>,
    nonce: u64,
}

impl Load {
    async fn round(&mut self, solo: &Solo, times: &mut Vec<f64>) {
        for _ in 0..BLOCKS_PER_ROUND {
            self.fill(TRANSFERS);
            let started = Instant::now();
            solo.controls().mine(None).await.expect("it runs");
            times.push(milliseconds(started));
        }
    }

    fn fill(&mut self, count: u64) {
        let per_sender = count / SENDERS;
        let first = self.nonce;
        let transactions = (0..SENDERS).flat_map(|sender| {
            (first..first + per_sender)
                .map(move |nonce| transfer(person(sender), nonce, account(nonce * 7 + sender), 1))
        });
        let transactions: Vec<_> = transactions.map(recovered).collect();
        let mut pool = self.pool.lock();
        for transaction in transactions {
            let state = SenderState { nonce: first, balance: Wei(MONEY), is_delegated: false };
            pool.insert(transaction, state).expect("the pool has room");
        }
        self.nonce += per_sender;
    }
}

/// Threads that read as fast as they can, as requests would.
struct Busy {
    is_over: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Busy {
    fn start(index: &Arc<Index>, reads: &Arc<AtomicU64>) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let threads = (0..READERS as u64).map(|seed| {
            let (index, reads, is_over) = (index.clone(), reads.clone(), is_over.clone());
            thread::spawn(move || {
                lower_thread();
                off_first_processor(|| {
                    let mut n = seed;
                    while !is_over.load(Ordering::Relaxed) {
                        let state = index.tip_state();
                        for _ in 0..50 {
                            n = n
                                .wrapping_mul(6_364_136_223_846_793_005)
                                .wrapping_add(1_442_695_040_888_963_407);
                            state.read(StateKey::Account(account(n % ACCOUNTS))).expect("it is kept");
                            reads.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            })
        });
        let threads = threads.collect();
        Self { is_over, threads }
    }

    fn stop(self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().expect("readers do not panic"));
    }
}

const MONEY: alloy_primitives::U256 = alloy_primitives::U256::from_limbs([0, 1 << 40, 0, 0]);

fn large_genesis() -> Genesis {
    let mut genesis = genesis();
    genesis.timestamp_ms = SystemClock.now();
    let rich = |Person { address, .. }: Person| {
        (address, Allocation { balance: Wei(MONEY), ..Allocation::default() })
    };
    genesis.allocations.extend((0..SENDERS).map(person).map(rich));
    let poor =
        |n| (account(n), Allocation { balance: Wei(alloy_primitives::U256::ONE), ..Allocation::default() });
    genesis.allocations.extend((0..ACCOUNTS).map(poor));
    genesis
}

fn account(n: u64) -> Address {
    Address::from_word(alloy_primitives::keccak256(n.to_be_bytes()))
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
