//! A network with one validator down, so that every vote is needed, and another whose disk gives no answer for a moment.
//! That costs the moment, and no more.

use alloy_primitives::{Address, BlockHash};
use almanac_bft::{
    BlockNumbers, CHANNEL_QUOTA, Channels, ConsensusBlock, Finalizer, History, Namespace, RECENT_BLOCKS,
    Replica, RuntimeClock, TimeConfig, Timeouts, Validator, ValidatorSet, Voter, block::key_bytes, engine,
    finalizer::Deliveries, punctual::Punctuality,
};
use almanac_consensus::{Application, SharedPool};
use almanac_mempool::{Pool, PoolConfig};
use almanac_primitives::{Block, DurationMs, Genesis, Receipt, StateDiff, TimestampMs, genesis, testing};
use almanac_schedule::CalendarAgenda;
use almanac_state::{
    ArchiveError, BlockArchive, CommitError, MemoryBatch, MemoryStore, SealError, SignedBlock, StateStore,
};
use commonware_cryptography::{
    Signer as _,
    ed25519::{PrivateKey, PublicKey},
};
use commonware_p2p::simulated::{Config, Link, Network, Oracle};
use commonware_runtime::{
    Clock as _, Runner as _, Spawner as _, Supervisor as _,
    deterministic::{self, Context},
};
use commonware_utils::{NZUsize, probability};
use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

const VALIDATORS: u64 = 4;

/// What goes wrong with a disk.
#[derive(Clone, Default)]
struct Disk {
    is_failing: Arc<AtomicBool>,
    failures: Arc<AtomicU32>,
}

struct Flaky {
    store: MemoryStore,
    disk: Disk,
}

impl StateStore for Flaky {
    type Batch = MemoryBatch;

    fn tip(&self) -> MemoryBatch {
        self.store.tip()
    }

    async fn seal(&self, parent: &MemoryBatch, diff: &StateDiff) -> Result<MemoryBatch, SealError> {
        if self.disk.is_failing.load(Relaxed) {
            self.disk.failures.fetch_add(1, Relaxed);
            return Err(SealError::Store { reason: "the disk gave no answer".to_owned() });
        }
        self.store.seal(parent, diff).await
    }

    async fn commit(&self, batch: &MemoryBatch) -> Result<(), CommitError> {
        self.store.commit(batch).await
    }
}

fn keys() -> Vec<PrivateKey> {
    let mut keys: Vec<_> = (0..VALIDATORS).map(PrivateKey::from_seed).collect();
    keys.sort_by_key(PrivateKey::public_key);
    keys
}

fn chain() -> Genesis {
    let validator = |(index, key): (usize, &PrivateKey)| genesis::Validator {
        name: format!("v{index}"),
        public_key: key_bytes(&key.public_key()),
        fee_recipient: Address::repeat_byte(1),
    };
    let validators = keys().iter().enumerate().map(validator).collect();
    // The simulated clock starts at 0.
    Genesis { validators, timestamp_ms: TimestampMs(0), ..testing::genesis() }
}

async fn connect(context: &Context) -> Oracle<PublicKey, Context> {
    let config = Config {
        max_size: almanac_bft::message_bytes_max(4),
        max_peers_per_set: NZUsize!(8),
        disconnect_on_block: true,
        tracked_peer_sets: NZUsize!(1),
    };
    let keys: Vec<_> = keys().iter().map(PrivateKey::public_key).collect();
    let context = context.child("network");
    let (network, oracle) = Network::new_with_split_peers(context, config, keys.clone(), Vec::new()).await;
    network.start();
    let success_rate = probability!(1.0);
    let link = Link { latency: Duration::from_millis(10), jitter: Duration::from_millis(2), success_rate };
    for from in &keys {
        for to in keys.iter().filter(|to| *to != from) {
            oracle.add_link(from.clone(), to.clone(), link.clone()).await.unwrap();
        }
    }
    oracle
}

/// Nothing is asked for: the chain stays shorter than what marshal keeps itself.
struct NoHistory;

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, ArchiveError>> + Send + 'a>>;

impl BlockArchive for NoHistory {
    fn append<'a>(&'a self, _: &'a Block, _: &'a [Receipt], _: Option<&'a [u8]>) -> Answer<'a, ()> {
        unreachable!("the application keeps no archive")
    }

    fn signed(&self, _: u64) -> Answer<'_, Option<SignedBlock>> {
        Box::pin(async { Ok(None) })
    }
}

impl BlockNumbers for NoHistory {
    fn number_of(&self, _: BlockHash) -> Result<Option<u64>, String> {
        Ok(None)
    }
}

async fn start(
    context: Context,
    oracle: &Oracle<PublicKey, Context>,
    index: usize,
    disk: Disk,
) -> Arc<Replica<Flaky>> {
    let (genesis, key) = (chain(), keys().remove(index));
    let store = Flaky { store: MemoryStore::from_genesis(genesis.state().unwrap()), disk };
    let (application, tip) = Application::new(&genesis, store, Arc::new(CalendarAgenda)).unwrap();
    let pool = SharedPool::new(Pool::new(PoolConfig::developer(), tip.header.base_fee));
    let (header, namespace) = (tip.header.clone(), Namespace(tip.hash));
    let replica = Replica::new(application, tip);
    let validators = ValidatorSet::new(&genesis).unwrap();
    let time = TimeConfig { block_time: DurationMs(100), ..TimeConfig::default() };
    let control = oracle.control(key.public_key());
    let clock = RuntimeClock::new(context.child("clock"));
    let timeouts = Timeouts::for_blocks(Duration::from_millis(time.block_time.0), Duration::ZERO);
    let validator = Validator {
        public_key: key.public_key(),
        scheme: validators.signer(&namespace, &key).unwrap(),
        partition: format!("v{index}-"),
        peers: oracle.manager(),
        blocker: control.clone(),
        genesis: ConsensusBlock::genesis(header),
        floor: None,
        votes_after: None,
        timeouts,
        punctuality: Punctuality::new(clock.clone(), time.tolerance, &timeouts),
        history: History { archive: Arc::new(NoHistory), numbers: Arc::new(NoHistory) },
        recent_blocks: RECENT_BLOCKS,
    };
    let voter =
        Voter { replica: replica.clone(), pool: pool.clone(), clock, time, validators: Arc::new(validators) };
    let channel = |number| control.register(number, CHANNEL_QUOTA);
    let channels = Channels {
        votes: channel(0).await.unwrap(),
        certificates: channel(1).await.unwrap(),
        resolver: channel(2).await.unwrap(),
        backfill: channel(3).await.unwrap(),
        blocks: channel(4).await.unwrap(),
    };
    let (deliveries, inbox) = Deliveries::channel();
    let (engine, marshal) =
        engine::start(context.child("engine"), validator, voter, channels, deliveries).await;
    let finalizer =
        Finalizer { replica: replica.clone(), pool, sinks: Vec::new(), recent_blocks: RECENT_BLOCKS };
    context.child("finalizer").spawn(|clock| async move {
        finalizer.run(clock, marshal, inbox).await.expect("final blocks can be committed");
    });
    context.child("running").spawn(|_| async move { drop(engine.await) });
    replica
}

/// A failure for so long, at many moments of a view: every vote of the failing one is needed.
fn survives(failing: Duration) {
    deterministic::Runner::timed(Duration::from_secs(600)).start(|context| async move {
        let oracle = connect(&context).await;
        let disk = Disk::default();
        let mut replicas = Vec::new();
        for index in 0..3 {
            let disk = if index == 0 { disk.clone() } else { Disk::default() };
            replicas.push(start(context.child("validator"), &oracle, index, disk).await);
        }
        replicas[0].wait_for(3).await;
        for round in 0..20 {
            context.sleep(Duration::from_millis(13 * round)).await;
            disk.is_failing.store(true, Relaxed);
            context.sleep(failing).await;
            disk.is_failing.store(false, Relaxed);
            let height = replicas[1].tip().header.number;
            for replica in &replicas {
                tokio::select! {
                    () = replica.wait_for(height + 5) => {}
                    () = context.sleep(Duration::from_secs(60)) => panic!(
                        "the network stands still at block {height} after failure {round}: heights {:?}",
                        replicas.iter().map(|replica| replica.tip().header.number).collect::<Vec<_>>()
                    ),
                }
            }
        }
        assert!(disk.failures.load(Relaxed) > 10, "{} failures", disk.failures.load(Relaxed));
    });
}

#[test]
fn a_disk_that_fails_for_a_moment_costs_no_verdict() {
    survives(Duration::from_millis(150));
}

#[test]
fn a_disk_that_fails_for_longer_than_a_view_costs_no_verdict() {
    survives(Duration::from_secs(2));
}
