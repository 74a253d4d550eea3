//! A node on a real network: a validator, or a follower, which does not vote.
//!
//! All types are concrete here, so that the engine is compiled in this crate and not again in those above.
//! `wiring.rs` holds everything that does not depend on the transport.

use crate::{
    evidence::EvidenceStore,
    finality::FinalityReader,
    recent::History,
    replica::Replica,
    standing::{Leave, Standing},
    sync::{Floor, KnownKeys},
    transport::{self, NetworkConfig, NetworkError, Peers},
    validators::{Namespace, ValidatorSet},
    votes::VoteBook,
    wiring::{self, Identity, Links, Signals},
};
use almanac_consensus::{Admission, Engine, EngineError, Sink};
use almanac_primitives::Header;
use almanac_state::{QmdbStore, StateStore};
use commonware_runtime::tokio::Context;
use std::{future::Future, sync::Arc, time::Duration};
use tokio::sync::{oneshot, watch};

/// What a node works on.
pub struct Parts<S: StateStore = QmdbStore<Context>> {
    /// The chain.
    pub replica: Arc<Replica<S>>,
    /// The blocks that it has committed.
    pub history: History,
    /// The header of block 0.
    pub genesis: Header,
    /// The block from which the chain starts, if earlier blocks are missing.
    pub floor: Option<Floor>,
    /// What it may sign.
    pub voice: Voice,
    /// What it knows of its own votes.
    pub standing: Standing,
    /// Records what it signs.
    pub book: Arc<dyn VoteBook>,
    /// Stores evidence of conflicting votes.
    pub evidence: Arc<dyn EvidenceStore>,
    /// Who may propose and vote.
    pub validators: ValidatorSet,
    /// The way into the pool.
    pub admission: Admission,
    /// The keys of the values in the state, for nodes that copy it.
    pub keys: Arc<dyn KnownKeys>,
    /// Receive every final block, in this order.
    pub sinks: Vec<Arc<dyn Sink>>,
}

/// What a node may sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Voice {
    /// Nothing: it is a follower, whatever its key is.
    None,
    /// Votes and proposals, if its key is a validator's.
    Votes {
        /// Only after the view of this block. `None` allows every view, because its past votes are on its disk.
        after: Option<Box<Floor>>,
    },
}

/// The handle of a running node.
pub struct Bft {
    stop: Option<oneshot::Sender<()>>,
    ended: oneshot::Receiver<Result<(), EngineError>>,
    finality: FinalityReader,
    leave: watch::Receiver<Option<Leave>>,
}

impl Bft {
    /// Creates a node, which votes if its key is a validator's. The caller must run the returned future as the
    /// root of a runtime that ends with it; data that was durable by then stays.
    pub fn start(
        context: Context,
        config: NetworkConfig,
        parts: Parts,
    ) -> Result<(Self, impl Future<Output = ()> + Send), NetworkError> {
        let peers = Peers::new(&config, &parts.validators)?;
        let (stop, stopped) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let finality = FinalityReader::default();
        let (leave, left) = watch::channel(None);
        let signals = Signals { finality: finality.clone(), leave };
        let node = async move {
            let result = tokio::select! {
                error = run(context, config, peers, parts, signals) => Err(error),
                _ = stopped => Ok(()),
            };
            // Ignore the error: nobody listens any more.
            let _ = end.send(result);
        };
        Ok((Self { stop: Some(stop), ended, finality, leave: left }, node))
    }

    /// Finds proofs of finality.
    pub fn finality(&self) -> &FinalityReader {
        &self.finality
    }

    /// Whether the node may vote, once that is known.
    pub fn leave(&self) -> &watch::Receiver<Option<Leave>> {
        &self.leave
    }

    /// Waits until the node ends by itself, which happens only after a failure.
    pub async fn ended(&mut self) -> Result<(), EngineError> {
        match (&mut self.ended).await {
            Ok(result) => result,
            Err(_) => Err(EngineError::Died { reason: "it panicked or was dropped".to_owned() }),
        }
    }
}

impl Engine for Bft {
    /// Does nothing: blocks are proposed by the clock, and the proposer reads the pool then.
    fn pool_changed(&self) {}

    async fn stop(mut self) -> Result<(), EngineError> {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        self.ended().await
    }
}

/// Runs until something fails, and returns the error.
async fn run(
    context: Context,
    config: NetworkConfig,
    peers: Peers,
    parts: Parts,
    signals: Signals,
) -> EngineError {
    let namespace = Namespace(parts.genesis.hash());
    let block_time = Duration::from_millis(config.time.block_time.0);
    let (mut network, oracle) = transport::open(&context, &config, &namespace, peers);
    let ends = wiring::quotas(block_time).map(|(number, quota)| network.register(number, quota));
    network.start();
    let links = Links { ends, peers: oracle.clone(), blocker: oracle };
    let identity = Identity::of_disk(config.key.private().clone(), config.time, config.ns_per_gas);
    // Boxed: the future is larger than a thread's stack should hold.
    Box::pin(wiring::run(context, identity, links, parts, signals, |voter| voter, |next| next)).await
}
