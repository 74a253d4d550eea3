//! Validators over a simulated network, wired by hand: each with a store and an archive of the test's choice.

use alloy_primitives::{Address, BlockHash};
use almanac_bft::{
    BlockNumbers, CHANNEL_QUOTA, Channels, ConsensusBlock, FinalizeError, Finalizer, History, Namespace,
    RECENT_BLOCKS, Replica, RuntimeClock, TimeConfig, Timeouts, Validator, ValidatorSet, Voter,
    block::key_bytes, engine, finalizer::Deliveries, punctual::Punctuality,
};
use almanac_consensus::{Application, SharedPool};
use almanac_mempool::{Pool, PoolConfig};
use almanac_primitives::{Block, DurationMs, Genesis, Receipt, TimestampMs, genesis, testing};
use almanac_schedule::CalendarAgenda;
use almanac_state::{ArchiveError, BlockArchive, SignedBlock, StateStore};
use commonware_cryptography::{
    Signer as _,
    ed25519::{PrivateKey, PublicKey},
};
use commonware_p2p::simulated::{Config, Link, Network, Oracle};
use commonware_runtime::{Handle, Spawner as _, Supervisor as _, deterministic::Context};
use commonware_utils::{NZUsize, probability};
use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

const VALIDATORS: u64 = 4;

fn keys() -> Vec<PrivateKey> {
    let mut keys: Vec<_> = (0..VALIDATORS).map(PrivateKey::from_seed).collect();
    keys.sort_by_key(PrivateKey::public_key);
    keys
}

pub fn chain() -> Genesis {
    let validator = |(index, key): (usize, &PrivateKey)| genesis::Validator {
        name: format!("v{index}"),
        public_key: key_bytes(&key.public_key()),
        fee_recipient: Address::repeat_byte(1),
    };
    let validators = keys().iter().enumerate().map(validator).collect();
    // The simulated clock starts at 0.
    Genesis { validators, timestamp_ms: TimestampMs(0), ..testing::genesis() }
}

pub async fn connect(context: &Context) -> Oracle<PublicKey, Context> {
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

pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, ArchiveError>> + Send + 'a>>;

impl BlockArchive for NoHistory {
    fn append<'a>(&'a self, _: &'a Block, _: &'a [Receipt], _: Option<&'a [u8]>) -> Answer<'a, ()> {
        unreachable!("marshal only reads")
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

/// A validator that runs.
pub struct Running<S: StateStore> {
    pub replica: Arc<Replica<S>>,
    pub pool: Arc<SharedPool>,
    pub finalizer: Handle<Result<(), FinalizeError>>,
}

/// Starts a validator on a store with the genesis state. It keeps final blocks in `archive`, if there is one.
pub async fn start<S: StateStore<Batch: Send + Sync + 'static> + 'static>(
    context: Context,
    oracle: &Oracle<PublicKey, Context>,
    index: usize,
    store: S,
    archive: Option<Arc<dyn BlockArchive>>,
) -> Running<S> {
    let (genesis, key) = (chain(), keys().remove(index));
    let (mut application, tip) = Application::new(&genesis, store, Arc::new(CalendarAgenda)).unwrap();
    if let Some(archive) = archive {
        application.keep_archive(archive);
    }
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
    let finalizer = Finalizer {
        replica: replica.clone(),
        pool: pool.clone(),
        sinks: Vec::new(),
        recent_blocks: RECENT_BLOCKS,
    };
    let finalizer = context.child("finalizer").spawn(|clock| finalizer.run(clock, marshal, inbox));
    context.child("running").spawn(|_| async move { drop(engine.await) });
    Running { replica, pool, finalizer }
}
