//! The parts of a node above its transport, shared by production over TCP and by simulations.

use crate::{
    block::{BlockContext, ConsensusBlock},
    engine::{self, CHANNEL_QUOTA, Channels, Entry, RECENT_BLOCKS, Ticket, Timeouts, Validator},
    evidence::{self, VoteWatch},
    fair::{FairReceiver, Gate, Share},
    finality::FinalityReader,
    finalizer::{Deliveries, Finalizer},
    gossip::{self, Gossip},
    meter::{Meter, MeteredSender},
    network::{Parts, Voice},
    newest::Newest,
    punctual::Punctuality,
    questions::Questions,
    standing::{self, Leave, Registrar, Standing},
    sync::{self, Floor, Server},
    time::{RuntimeClock, TimeConfig},
    validators::Namespace,
    voter::Voter,
    votes::NotingSender,
};
use almanac_consensus::EngineError;
use almanac_schedule::block_gas;
use almanac_state::{QmdbStore, StateStore};
use commonware_consensus::{Application, Reporter, marshal::Update, simplex::scheme::ed25519::Scheme};
use commonware_cryptography::{
    Signer as _,
    ed25519::{PrivateKey, PublicKey},
};
use commonware_p2p::{Blocker, Provider, Receiver, Recipients, Sender};
use commonware_runtime::{Clock, Metrics, Quota, Spawner, Storage};
use rand_core::CryptoRng;
use std::{borrow::Borrow, num::NonZeroU64, sync::Arc, time::Duration};
use tokio::sync::watch;

/// Channels of a node: those of consensus and of transactions, then those of state sync and of standing.
pub const CHANNEL_COUNT: usize = 8;

const _: () = assert!(standing::CHANNEL + 1 == CHANNEL_COUNT as u64, "standing has the last channel");

/// Numbers of the channels, and the messages that a peer may send on each.
pub fn quotas(block_time: Duration) -> [(u64, Quota); CHANNEL_COUNT] {
    [
        (0, CHANNEL_QUOTA),
        (1, CHANNEL_QUOTA),
        (2, CHANNEL_QUOTA),
        (3, engine::BACKFILL_QUOTA),
        (4, engine::block_quota(block_time)),
        (5, gossip::QUOTA),
        (sync::CHANNEL, sync::QUOTA),
        (standing::CHANNEL, standing::QUOTA),
    ]
}

/// What carries a node's messages.
pub struct Links<S, R, P, B> {
    /// Both ends of each channel, in the order of [`quotas`].
    pub ends: [(S, R); CHANNEL_COUNT],
    /// Knows the peers.
    pub peers: P,
    /// Cuts off peers that misbehave.
    pub blocker: B,
}

/// What tells one node from another.
pub struct Identity {
    /// Its key.
    pub private: PrivateKey,
    /// How it treats time.
    pub time: TimeConfig,
    /// Nanoseconds that a gas of the dearest work takes it.
    pub ns_per_gas: u64,
    /// Prefix of its files: empty for the only one on a disk.
    pub partition: String,
    /// Final blocks that marshal keeps beside the archive. Fixed for the life of a disk.
    pub recent_blocks: NonZeroU64,
}

impl Identity {
    /// That of the only node on a disk.
    pub fn of_disk(private: PrivateKey, time: TimeConfig, ns_per_gas: u64) -> Self {
        Self { private, time, ns_per_gas, partition: String::new(), recent_blocks: RECENT_BLOCKS }
    }
}

/// What others learn of a node while it runs.
pub struct Signals {
    /// Finds what shows that blocks are final, once the node runs.
    pub finality: FinalityReader,
    /// Whether it may vote, once that is decided.
    pub leave: watch::Sender<Option<Leave>>,
}

/// Runs a node until something breaks, and answers what.
///
/// `application` may put something between consensus and the voter, `reporter` between marshal and the finalizer.
/// Production puts nothing there.
pub async fn run<E, T, S, R, P, B, A, M>(
    context: E,
    identity: Identity,
    links: Links<S, R, P, B>,
    parts: Parts<T>,
    signals: Signals,
    application: impl FnOnce(Voter<T, RuntimeClock<E>>) -> A,
    reporter: impl FnOnce(Deliveries) -> M,
) -> EngineError
where
    E: Clock + CryptoRng + Spawner + Storage + Metrics,
    T: StateStore<Batch: Send + Sync + 'static> + Borrow<QmdbStore<E>> + 'static,
    S: Sender<PublicKey = PublicKey>,
    R: Receiver<PublicKey = PublicKey>,
    P: Provider<PublicKey = PublicKey>,
    B: Blocker<PublicKey = PublicKey>,
    A: Application<E, SigningScheme = Scheme, Context = BlockContext, Block = ConsensusBlock, Input = ()>,
    M: Reporter<Activity = Update<ConsensusBlock>>,
{
    let Identity { private, time, ns_per_gas, partition, recent_blocks } = identity;
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
    let Signals { finality, leave: decision } = signals;
    let namespace = Namespace(genesis.hash());
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
    let work = match ledger.application().next_environment(&ledger.tip()).await {
        // By the parameters of now. Where governance raises them later, halved budgets keep due work within the
        // views until the node is started again.
        Ok(environment) => engine::time_of_gas(block_gas(&environment.parameters), ns_per_gas),
        Err(error) => return error.into(),
    };
    let clock = RuntimeClock::new(context.child("clock"));
    let Links { ends, peers, blocker } = links;
    let gated = |number: u64, (sender, receiver): (S, R), rules: Rules| {
        let Rules { share, message_bytes_max, questions } = rules;
        let meter = Meter::new(questions, clock.clone());
        let (asked, turned_away, answers) = (meter.clone(), meter.clone(), sender.clone());
        let admits = move |peer: &PublicKey, bytes: &[u8]| asked.admits(peer, bytes);
        // A question that is dropped without a word costs the asker its patience.
        let dropped = move |peer: &PublicKey, bytes: &[u8]| {
            if let Some(busy) = turned_away.busy(peer, bytes) {
                answers.clone().send(Recipients::One(peer.clone()), busy, false);
            }
        };
        let gate = Gate { message_bytes_max, blocker: blocker.clone(), admits, dropped };
        let context = context.child("queue").with_attribute("channel", number);
        let sender = NotingSender { sender: MeteredSender { sender, meter }, book: None };
        (sender, FairReceiver::new(context, receiver, share, gate))
    };
    let [votes, certificates, resolver, backfill, blocks, transactions, state, stand] = ends;
    let rules = Rules::of_channels(u32::try_from(validators.keys().len()).expect("VALIDATORS_MAX is small"));
    let mut channels = Channels {
        votes: gated(0, votes, rules[0]),
        certificates: gated(1, certificates, rules[1]),
        resolver: gated(2, resolver, rules[2]),
        backfill: gated(3, backfill, rules[3]),
        blocks: gated(4, blocks, rules[4]),
    };
    channels.votes.0.book = Some(book.clone());
    let (transactions_out, transactions_in) = gated(5, transactions, rules[5]);
    let (answers, questions) = gated(sync::CHANNEL, state, rules[6]);
    let (standing_out, standing_in) = gated(standing::CHANNEL, stand, rules[7]);

    let pool = admission.pool().clone();
    let voter = Voter {
        ledger: ledger.clone(),
        pool: pool.clone(),
        clock: clock.clone(),
        time,
        validators: Arc::new(validators.clone()),
    };
    let own = private.public_key();
    let (deliveries, inbox) = Deliveries::channel();
    let (vote_watch, newest_votes, conflicts) = VoteWatch::new();
    newest_votes.remember(context.child("memory"), &partition, &validators, &namespace).await;
    let timeouts = Timeouts::for_blocks(Duration::from_millis(time.block_time.0), work);
    let punctuality = Punctuality::new(clock.clone(), time.tolerance, &timeouts);
    let validator = Validator {
        public_key: own.clone(),
        scheme: scheme.clone(),
        partition,
        peers,
        blocker: blocker.clone(),
        genesis: ConsensusBlock::genesis(genesis),
        floor,
        votes_after,
        timeouts,
        punctuality,
        history,
        recent_blocks,
    };
    let mut decided = decision.subscribe();
    let entry = Entry {
        joins: {
            let (validators, namespace) = (validators.clone(), namespace);
            async move {
                let decided = decided.wait_for(Option::is_some).await.ok().and_then(|leave| leave.clone());
                let Some(Leave::Given { after }) = decided else {
                    return Ticket { scheme: verifier, after: None };
                };
                let after = after.map(|floor| floor.finalization(&validators, &namespace));
                Ticket { scheme, after: after.transpose().expect("what peers show is checked") }
            }
        },
        watch: Some(vote_watch),
    };
    let (voter, reporter) = (application(voter), reporter(deliveries));
    let starting = engine::start_when(context.child("engine"), validator, voter, channels, reporter, entry);
    let (engine, marshal) = Box::pin(starting).await;
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
        newest: Newest::new(ledger.clone(), marshal.clone()),
        votes: newest_votes,
    };
    let decide = move |leave: Leave| {
        // Before consensus goes on: its files will soon look as if this node had been there all the time.
        let noted = match &leave {
            Leave::Given { after: None } => Ok(()),
            Leave::Given { after: Some(floor) } => book.begin_after(floor),
            Leave::Denied { .. } => book.distrust(),
        };
        noted.unwrap_or_else(|error| panic!("io error: {error}"));
        decision.send_replace(Some(leave));
    };
    context.child("standing").spawn(move |_| registrar.run(standing_out, standing_in, standing, decide));
    let gossip = Gossip::new(admission, clock);
    // What peers can make long is on threads of its own: votes must not wait for it.
    context.child("gossip").dedicated().spawn(|_| gossip.run(transactions_out, transactions_in));
    let clock = context.child("server_clock");
    let server = Server { ledger: ledger.clone(), marshal: marshal.clone(), keys, clock };
    context.child("state_server").dedicated().spawn(|_| server.run(answers, questions));
    let finalizer = Finalizer { ledger, pool, sinks, recent_blocks };
    // Commits execute blocks that were not executed before: on a thread of its own, as votes do.
    let finalizer =
        context.child("finalizer").dedicated().spawn(|clock| finalizer.run(clock, marshal, inbox));
    // In a fixed order, so that a simulation can be replayed.
    let reason = tokio::select! {
        biased;
        ended = finalizer => match ended {
            Ok(Ok(())) => "no more blocks are delivered".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        },
        ended = engine => format!("consensus ended: {ended:?}"),
    };
    EngineError::Died { reason }
}

/// What may wait on a channel.
#[derive(Clone, Copy)]
struct Rules {
    share: Share,
    message_bytes_max: usize,
    questions: Questions,
}

impl Rules {
    /// Those of each channel, in a network of so many validators.
    fn of_channels(validators: u32) -> [Self; CHANNEL_COUNT] {
        let rules = |share, message_bytes_max, questions| Self { share, message_bytes_max, questions };
        let votes = rules(engine::SHARE, engine::vote_bytes_max(validators), Questions::NONE);
        let blocks_max = engine::block_bytes_max(validators);
        [
            votes,
            votes,
            votes,
            rules(engine::BACKFILL_SHARE, blocks_max, Questions::BLOCKS),
            rules(engine::SHARE, blocks_max, Questions::NONE),
            rules(gossip::SHARE, gossip::MESSAGE_BYTES_MAX, Questions::NONE),
            rules(sync::SHARE, sync::message::MESSAGE_BYTES_MAX, Questions::STATE),
            rules(standing::SHARE, standing::message_bytes_max(validators), Questions::NONE),
        ]
    }
}
