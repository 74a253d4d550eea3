//! A validator on a real network: TCP between peers that know each other's keys, authenticated and encrypted.
//!
//! Everything here has its final types, so that the engine is compiled in this crate and not again in those above.

use crate::{
    block::{ConsensusBlock, key_bytes, read_key},
    engine::{self, CHANNEL_QUOTA, Channels, Timeouts, Validator, message_bytes_max},
    finality::FinalityReader,
    finalizer::{Deliveries, Finalizer},
    gossip::Gossip,
    keys::ValidatorKey,
    ledger::Ledger,
    time::{RuntimeClock, TimeConfig},
    validators::{Namespace, ValidatorSet, ValidatorSetError},
    voter::Voter,
};
use alloy_primitives::B256;
use almanac_consensus::{Admission, Engine, EngineError, Sink};
use almanac_primitives::Header;
use almanac_state::QmdbStore;
use commonware_cryptography::{
    ChaCha20Poly1305, Signer as _,
    ed25519::{PrivateKey, PublicKey},
};
use commonware_p2p::{
    Address, AddressableManager as _,
    authenticated::lookup::{self, Network},
};
use commonware_runtime::{Quota, Spawner as _, Supervisor as _, tokio::Context};
use commonware_stream::{
    SakeCups,
    cups::{self, Cups},
    sake::{self, Sake},
};
use commonware_utils::{NZU32, NZUsize, TryCollect as _, ordered::Map};
use std::{future::Future, net::SocketAddr, num::NonZeroUsize, sync::Arc, time::Duration};
use tokio::sync::oneshot;

/// The ledger of a node on disk.
pub type DiskLedger = Ledger<QmdbStore<Context>>;

/// How a validator takes part.
#[derive(Clone, Debug)]
pub struct NetworkConfig {
    /// Its key.
    pub key: ValidatorKey,
    /// Where it listens for peers.
    pub listen: SocketAddr,
    /// Where the validators are, itself included or not.
    pub peers: Vec<Peer>,
    /// How it treats time.
    pub time: TimeConfig,
}

/// Where a validator is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its public key.
    pub public_key: B256,
    /// Where it listens.
    pub address: SocketAddr,
}

/// What a validator works on.
pub struct Parts {
    /// The chain.
    pub ledger: Arc<DiskLedger>,
    /// The header of block 0.
    pub genesis: Header,
    /// Who may propose and vote.
    pub validators: ValidatorSet,
    /// The way into the pool.
    pub admission: Admission,
    /// Hear of every final block, in this order.
    pub sinks: Vec<Arc<dyn Sink>>,
}

/// Why a validator cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// Its key is no validator's.
    #[error(transparent)]
    Key(#[from] ValidatorSetError),
    /// A peer that is no validator, or a validator without an address.
    #[error("the peers must be the other validators of the genesis, each once: {public_key} is {problem}")]
    Peer {
        /// Whose key.
        public_key: B256,
        /// What is wrong.
        problem: &'static str,
    },
}

/// The handle of a running validator.
pub struct Bft {
    stop: Option<oneshot::Sender<()>>,
    ended: oneshot::Receiver<Result<(), EngineError>>,
    finality: FinalityReader,
}

impl Bft {
    /// A validator. The future is the validator itself and must be run by the caller, as the root of a runtime
    /// that ends with it: what was durable by then stays.
    pub fn start(
        context: Context,
        config: NetworkConfig,
        parts: Parts,
    ) -> Result<(Self, impl Future<Output = ()> + Send), NetworkError> {
        let namespace = Namespace(parts.genesis.hash());
        parts.validators.signer(&namespace, config.key.private())?;
        let peers = peers(&config, &parts.validators)?;
        let (stop, stopped) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let finality = FinalityReader::default();
        let reader = finality.clone();
        let validator = async move {
            let result = tokio::select! {
                error = run(context, config, peers, parts, namespace, reader) => Err(error),
                _ = stopped => Ok(()),
            };
            // Where nobody listens any more, there is nobody to tell.
            let _ = end.send(result);
        };
        Ok((Self { stop: Some(stop), ended, finality }, validator))
    }

    /// Finds what shows that blocks are final.
    pub fn finality(&self) -> &FinalityReader {
        &self.finality
    }

    /// Waits until the validator ends by itself, which it does only when something broke.
    pub async fn ended(&mut self) -> Result<(), EngineError> {
        match (&mut self.ended).await {
            Ok(result) => result,
            Err(_) => Err(EngineError::Died { reason: "it panicked or was dropped".to_owned() }),
        }
    }
}

impl Engine for Bft {
    /// Blocks come by the clock: whoever proposes next looks into the pool.
    fn pool_changed(&self) {}

    async fn stop(mut self) -> Result<(), EngineError> {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        self.ended().await
    }
}

/// Runs until something breaks, and says what.
async fn run(
    context: Context,
    config: NetworkConfig,
    peers: Map<PublicKey, Address>,
    parts: Parts,
    namespace: Namespace,
    finality: FinalityReader,
) -> EngineError {
    let Parts { ledger, genesis, validators, admission, sinks } = parts;
    let private = config.key.private().clone();
    let scheme = validators.signer(&namespace, &private).expect("checked before the start");
    let (mut network, mut oracle) =
        Network::new(context.child("network"), network_config(&config, &namespace, peers.len()));
    oracle.track(0, peers);
    let mut channel = |number| network.register(number, CHANNEL_QUOTA);
    let channels = Channels {
        votes: channel(0),
        certificates: channel(1),
        resolver: channel(2),
        backfill: channel(3),
        blocks: channel(4),
    };
    let (transactions_out, transactions_in) = channel(5);
    network.start();

    let pool = admission.pool().clone();
    let clock = RuntimeClock::new(context.child("clock"));
    let voter = Voter {
        ledger: ledger.clone(),
        pool: pool.clone(),
        clock: clock.clone(),
        time: config.time,
        validators: Arc::new(validators),
    };
    let validator = Validator {
        public_key: private.public_key(),
        scheme,
        partition: String::new(),
        peers: oracle.clone(),
        blocker: oracle,
        genesis: ConsensusBlock::genesis(genesis),
        timeouts: Timeouts::for_block_time(Duration::from_millis(config.time.block_time.0)),
    };
    let (deliveries, inbox) = Deliveries::channel();
    let (engine, marshal) =
        engine::start(context.child("engine"), validator, voter, channels, deliveries).await;
    finality.connect(&marshal);
    let gossip = Gossip::new(admission, clock);
    context.child("gossip").spawn(|_| gossip.run(transactions_out, transactions_in));
    let finalizer = Finalizer { ledger, pool, sinks };
    // Commits execute blocks that were not executed before: on a thread of its own, as votes do.
    let finalizer = context.child("finalizer").dedicated().spawn(|_| finalizer.run(marshal, inbox));
    let reason = tokio::select! {
        ended = finalizer => match ended {
            Ok(Ok(())) => "no more blocks are delivered".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        },
        ended = engine => format!("consensus ended: {ended:?}"),
    };
    EngineError::Died { reason }
}

/// Where all validators are, by key, this one included.
fn peers(config: &NetworkConfig, validators: &ValidatorSet) -> Result<Map<PublicKey, Address>, NetworkError> {
    let own = Peer { public_key: config.key.public(), address: config.listen };
    let others = config.peers.iter().copied().filter(|peer| peer.public_key != own.public_key);
    let mut known: Vec<(PublicKey, Address)> = Vec::new();
    for Peer { public_key, address } in others.chain([own]) {
        let problem = |problem| NetworkError::Peer { public_key, problem };
        let key = read_key(public_key).filter(|key| validators.fee_recipient(key).is_some());
        let key = key.ok_or_else(|| problem("no validator's key"))?;
        if known.iter().any(|(peer, _)| *peer == key) {
            return Err(problem("there twice"));
        }
        known.push((key, address.into()));
    }
    if let Some(missing) = validators.keys().iter().find(|key| !known.iter().any(|(peer, _)| peer == *key)) {
        return Err(NetworkError::Peer { public_key: key_bytes(missing), problem: "missing" });
    }
    Ok(known.into_iter().try_collect().expect("each key was checked to be there once"))
}

fn network_config(
    config: &NetworkConfig,
    namespace: &Namespace,
    validators: usize,
) -> lookup::Config<SakeCups<PrivateKey, ChaCha20Poly1305>> {
    let handshake = Cups::<_, ChaCha20Poly1305>::new(
        Sake {
            signer: config.key.private().clone(),
            synchrony_bound: Duration::from_secs(5),
            max_handshake_age: Duration::from_secs(10),
            version: sake::Version::V1,
        },
        cups::Version::V1,
    );
    let size = message_bytes_max(u32::try_from(validators).expect("VALIDATORS_MAX is small"));
    let peers_max = NonZeroUsize::new(validators).expect("a set of validators is not empty");
    let mut network = lookup::Config::recommended(
        handshake,
        &namespace.network(),
        config.listen,
        peers_max,
        size,
        NZUsize!(1024),
    );
    // Validators may share a machine or a private network; keys, not addresses, tell who they are.
    network.allow_private_ips = true;
    network.bypass_ip_check = true;
    network.allowed_handshake_rate_per_ip = Quota::per_second(NZU32!(64));
    network.allowed_handshake_rate_per_subnet = Quota::per_second(NZU32!(256));
    // One that restarts should be back within seconds.
    network.peer_connection_cooldown = Duration::from_secs(1);
    network.dial_frequency = Duration::from_millis(200);
    network.ping_frequency = Duration::from_secs(5);
    network
}
