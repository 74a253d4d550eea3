//! A node on a real network: a validator, or a follower, which does the same without a vote.
//!
//! Everything here has its final types, so that the engine is compiled in this crate and not again in those above.

use crate::{
    block::ConsensusBlock,
    engine::{self, CHANNEL_QUOTA, Channels, Entry, RECENT_BLOCKS, Timeouts, Validator},
    evidence::{self, EvidenceStore, VoteWatch},
    fair::{FairReceiver, Gate},
    finality::FinalityReader,
    finalizer::{Deliveries, Finalizer},
    gossip::{self, Gossip},
    ledger::Ledger,
    meter::{Meter, MeteredSender},
    questions::Questions,
    recent::History,
    standing::{self, Leave, Registrar, Standing},
    sync::{self, Floor, KnownKeys, Server},
    time::RuntimeClock,
    transport::{self, NetworkConfig, NetworkError, Peers},
    validators::{Namespace, ValidatorSet},
    voter::Voter,
    votes::{NotingSender, VoteBook},
};
use almanac_consensus::{Admission, Engine, EngineError, Sink};
use almanac_primitives::Header;
use almanac_schedule::block_gas;
use almanac_state::QmdbStore;
use commonware_cryptography::{Signer as _, ed25519::PublicKey};
use commonware_p2p::{Recipients, Sender as _};
use commonware_runtime::{Spawner as _, Supervisor as _, tokio::Context};
use std::{future::Future, sync::Arc, time::Duration};
use tokio::sync::{oneshot, watch};

/// The ledger of a node on disk.
pub type DiskLedger = Ledger<QmdbStore<Context>>;

/// What a node works on.
pub struct Parts {
    /// The chain.
    pub ledger: Arc<DiskLedger>,
    /// The blocks that it has committed.
    pub history: History,
    /// The header of block 0.
    pub genesis: Header,
    /// Where the chain starts, if its beginning is not here.
    pub floor: Option<Floor>,
    /// What it may sign.
    pub voice: Voice,
    /// What it knows of its own votes.
    pub standing: Standing,
    /// Keeps what it signs.
    pub book: Arc<dyn VoteBook>,
    /// Keeps what others should not have signed.
    pub evidence: Arc<dyn EvidenceStore>,
    /// Who may propose and vote.
    pub validators: ValidatorSet,
    /// The way into the pool.
    pub admission: Admission,
    /// The names of the values in the state, for nodes that copy it.
    pub keys: Arc<dyn KnownKeys>,
    /// Hear of every final block, in this order.
    pub sinks: Vec<Arc<dyn Sink>>,
}

/// What a node may sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Voice {
    /// Nothing: it follows, whatever its key is.
    None,
    /// Votes and proposals, if its key is a validator's.
    Votes {
        /// After the view of this block only. Without one: in every view, as what it signed before is on its disk.
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
    /// A node, which votes if its key is a validator's. The future is the node itself and must be run by the
    /// caller, as the root of a runtime that ends with it: what was durable by then stays.
    pub fn start(
        context: Context,
        config: NetworkConfig,
        parts: Parts,
    ) -> Result<(Self, impl Future<Output = ()> + Send), NetworkError> {
        let namespace = Namespace(parts.genesis.hash());
        let peers = Peers::new(&config, &parts.validators)?;
        let (stop, stopped) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let finality = FinalityReader::default();
        let reader = finality.clone();
        let (decision, leave) = watch::channel(None);
        let node = async move {
            let result = tokio::select! {
                error = run(context, config, peers, parts, namespace, reader, decision) => Err(error),
                _ = stopped => Ok(()),
            };
            // Where nobody listens any more, there is nobody to tell.
            let _ = end.send(result);
        };
        Ok((Self { stop: Some(stop), ended, finality, leave }, node))
    }

    /// Finds what shows that blocks are final.
    pub fn finality(&self) -> &FinalityReader {
        &self.finality
    }

    /// Whether the node may vote, once that is known.
    pub fn leave(&self) -> &watch::Receiver<Option<Leave>> {
        &self.leave
    }

    /// Waits until the node ends by itself, which it does only when something broke.
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
    peers: Peers,
    parts: Parts,
    namespace: Namespace,
    finality: FinalityReader,
    decision: watch::Sender<Option<Leave>>,
) -> EngineError {
    let Parts {
        ledger,
        history,
        genesis,
        floor,
        voice,
        standing,
        book,
        evidence,
        validators,
        admission,
        keys,
        sinks,
    } = parts;
    let private = config.key.private().clone();
    // A verifier takes part in everything and signs nothing.
    let signer = match &voice {
        Voice::None => None,
        Voice::Votes { .. } => validators.signer(&namespace, &private).ok(),
    };
    let verifier = validators.verifier(&namespace);
    // Who cannot vote has nothing to ask.
    let standing = if signer.is_some() { standing } else { Standing::Sure };
    let scheme = signer.unwrap_or_else(|| verifier.clone());
    let signed_about =
        |floor: Option<Floor>| floor.map(|floor| floor.finalization(&validators, &namespace)).transpose();
    let votes_after = match voice {
        Voice::None => None,
        Voice::Votes { after } => after.map(|floor| *floor),
    };
    let (floor, votes_after) = match (signed_about(floor), signed_about(votes_after)) {
        (Ok(floor), Ok(votes_after)) => (floor, votes_after),
        (Err(error), _) | (_, Err(error)) => return EngineError::Died { reason: error.to_string() },
    };
    let count = u32::try_from(validators.keys().len()).expect("VALIDATORS_MAX is small");
    let block_time = Duration::from_millis(config.time.block_time.0);
    let work = match ledger.application().next_environment(&ledger.tip()).await {
        // By the parameters of now. Where governance raises them later, halved budgets keep due work within the
        // views until the node is started again.
        Ok(environment) => engine::time_of_gas(block_gas(&environment.parameters), config.ns_per_gas),
        Err(error) => return error.into(),
    };
    let (mut network, oracle) = transport::open(&context, &config, &namespace, peers);
    let clock = RuntimeClock::new(context.child("clock"));
    let mut channel = |number, quota, share, message_bytes_max, questions: Questions| {
        let (sender, receiver) = network.register(number, quota);
        let meter = Meter::new(questions, clock.clone());
        let (asked, turned_away, answers) = (meter.clone(), meter.clone(), sender.clone());
        let admits = move |peer: &PublicKey, bytes: &[u8]| asked.admits(peer, bytes);
        // A question that is dropped without a word costs the asker its patience.
        let dropped = move |peer: &PublicKey, bytes: &[u8]| {
            if let Some(busy) = turned_away.busy(peer, bytes) {
                answers.clone().send(Recipients::One(peer.clone()), busy, false);
            }
        };
        let gate = Gate { message_bytes_max, blocker: oracle.clone(), admits, dropped };
        let context = context.child("queue").with_attribute("channel", number);
        let sender = NotingSender { sender: MeteredSender { sender, meter }, book: None };
        (sender, FairReceiver::new(context, receiver, share, gate))
    };
    let votes_max = engine::vote_bytes_max(count);
    let blocks_max = engine::block_bytes_max(count);
    let mut channels = Channels {
        votes: channel(0, CHANNEL_QUOTA, engine::SHARE, votes_max, Questions::NONE),
        certificates: channel(1, CHANNEL_QUOTA, engine::SHARE, votes_max, Questions::NONE),
        resolver: channel(2, CHANNEL_QUOTA, engine::SHARE, votes_max, Questions::NONE),
        backfill: channel(3, engine::BACKFILL_QUOTA, engine::BACKFILL_SHARE, blocks_max, Questions::BLOCKS),
        blocks: channel(4, engine::block_quota(block_time), engine::SHARE, blocks_max, Questions::NONE),
    };
    channels.votes.0.book = Some(book.clone());
    let (transactions_out, transactions_in) =
        channel(5, gossip::QUOTA, gossip::SHARE, gossip::MESSAGE_BYTES_MAX, Questions::NONE);
    let (answers, questions) =
        channel(sync::CHANNEL, sync::QUOTA, sync::SHARE, sync::message::MESSAGE_BYTES_MAX, Questions::STATE);
    let standing_max = standing::message_bytes_max(count);
    let (standing_out, standing_in) =
        channel(standing::CHANNEL, standing::QUOTA, standing::SHARE, standing_max, Questions::NONE);
    network.start();

    let pool = admission.pool().clone();
    let voter = Voter {
        ledger: ledger.clone(),
        pool: pool.clone(),
        clock: clock.clone(),
        time: config.time,
        validators: Arc::new(validators.clone()),
    };
    let own = private.public_key();
    let validator = Validator {
        public_key: own.clone(),
        scheme: scheme.clone(),
        partition: String::new(),
        peers: oracle.clone(),
        blocker: oracle,
        genesis: ConsensusBlock::genesis(genesis),
        floor,
        votes_after,
        timeouts: Timeouts::for_blocks(block_time, work),
        history,
        recent_blocks: RECENT_BLOCKS,
    };
    let (deliveries, inbox) = Deliveries::channel();
    let (vote_watch, newest_votes, conflicts) = VoteWatch::new();
    let mut decided = decision.subscribe();
    let entry = Entry {
        scheme: async move {
            match decided.wait_for(Option::is_some).await.as_deref() {
                Ok(Some(Leave::Given)) => scheme,
                _ => verifier,
            }
        },
        watch: Some(vote_watch),
    };
    let (engine, marshal) =
        engine::start_when(context.child("engine"), validator, voter, channels, deliveries, entry).await;
    finality.connect(&marshal);
    let keep_evidence = {
        let rng = context.child("weights");
        evidence::keep(conflicts, validators.clone(), namespace, rng, evidence)
    };
    context.child("evidence").spawn(|_| keep_evidence);
    let registrar = Registrar {
        clock: context.child("standing_clock"),
        own,
        validators,
        namespace,
        ledger: ledger.clone(),
        marshal: marshal.clone(),
        votes: newest_votes,
    };
    let decide = move |leave: Leave| {
        if matches!(leave, Leave::Denied { .. }) {
            // Before consensus goes on: its files will soon look as if this node had been there all the time.
            book.distrust().unwrap_or_else(|error| panic!("io error: {error}"));
        }
        decision.send_replace(Some(leave));
    };
    context.child("standing").spawn(move |_| registrar.run(standing_out, standing_in, standing, decide));
    let gossip = Gossip::new(admission, clock);
    // What peers can make long is on threads of its own: votes must not wait for it.
    context.child("gossip").dedicated().spawn(|_| gossip.run(transactions_out, transactions_in));
    let clock = context.child("server_clock");
    let server = Server { ledger: ledger.clone(), marshal: marshal.clone(), keys, clock };
    context.child("state_server").dedicated().spawn(|_| server.run(answers, questions));
    let finalizer = Finalizer { ledger, pool, sinks, recent_blocks: RECENT_BLOCKS };
    // Commits execute blocks that were not executed before: on a thread of its own, as votes do.
    let finalizer =
        context.child("finalizer").dedicated().spawn(|clock| finalizer.run(clock, marshal, inbox));
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
