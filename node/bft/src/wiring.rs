//! The parts of a node above its transport, shared by production over TCP and by simulations.

mod channels;
mod rights;
mod services;

pub use channels::{CHANNEL_COUNT, quotas};

use self::{channels::Guard, rights::Rights, services::Services};
use crate::{
    block::{BlockContext, ConsensusBlock},
    engine::{self, Entry, RECENT_BLOCKS, Timeouts, Validator},
    evidence::VoteWatch,
    finality::FinalityReader,
    finalizer::{Deliveries, FinalizeError},
    network::Parts,
    punctual::Punctuality,
    replica::Replica,
    standing::Leave,
    time::{RuntimeClock, TimeConfig},
    validators::Namespace,
    voter::Voter,
};
use almanac_consensus::EngineError;
use almanac_schedule::block_gas;
use almanac_state::{QmdbStore, StateStore};
use commonware_consensus::{Application, Reporter, marshal::Update, simplex::scheme::ed25519::Scheme};
use commonware_cryptography::{
    Signer as _,
    ed25519::{PrivateKey, PublicKey},
};
use commonware_p2p::{Blocker, Provider, Receiver, Sender};
use commonware_runtime::{Clock, Handle, Metrics, Spawner, Storage};
use rand_core::CryptoRng;
use std::{borrow::Borrow, num::NonZeroU64, sync::Arc, time::Duration};
use tokio::sync::watch;

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
    match start(&context, identity, links, parts, signals, application, reporter).await {
        Ok((engine, finalizer)) => until_broken(engine, finalizer).await,
        Err(error) => error,
    }
}

/// Starts consensus and what runs beside it. Answers with the two tasks that everything else hangs on.
async fn start<E, T, S, R, P, B, A, M>(
    context: &E,
    identity: Identity,
    links: Links<S, R, P, B>,
    parts: Parts<T>,
    signals: Signals,
    application: impl FnOnce(Voter<T, RuntimeClock<E>>) -> A,
    reporter: impl FnOnce(Deliveries) -> M,
) -> Result<(Handle<()>, Handle<Result<(), FinalizeError>>), EngineError>
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
    let namespace = Namespace(parts.genesis.hash());
    let rights = Rights::new(&parts, &private, &namespace)
        .map_err(|error| EngineError::Died { reason: error.to_string() })?;
    let work = work_of_full_block(&parts.replica, ns_per_gas).await?;
    let timeouts = Timeouts::for_blocks(Duration::from_millis(time.block_time.0), work);
    let clock = RuntimeClock::new(context.child("clock"));
    let Links { ends, peers, blocker } = links;
    let validators = &parts.validators;
    let guard = Guard { context, blocker: &blocker, clock: &clock };
    let channels = guard.all(ends, validators.keys().len(), parts.book.clone());
    let (deliveries, inbox) = Deliveries::channel();
    let (vote_watch, newest_votes, conflicts) = VoteWatch::new();
    newest_votes.remember(context.child("memory"), &partition, validators, &namespace).await;
    let joins = rights.ticket(signals.leave.subscribe(), validators.clone(), namespace);
    let entry = Entry { joins, watch: Some(vote_watch) };
    let voter = application(Voter {
        replica: parts.replica.clone(),
        pool: parts.admission.pool().clone(),
        clock: clock.clone(),
        time,
        validators: Arc::new(validators.clone()),
    });
    let validator = Validator {
        public_key: private.public_key(),
        scheme: rights.scheme,
        partition,
        peers,
        blocker,
        genesis: ConsensusBlock::genesis(parts.genesis.clone()),
        floor: rights.floor,
        votes_after: rights.votes_after,
        timeouts,
        punctuality: Punctuality::new(clock.clone(), time.tolerance, &timeouts),
        history: parts.history.clone(),
        recent_blocks,
    };
    let (consensus, deliveries) = (channels.consensus, reporter(deliveries));
    let starting =
        engine::start_when(context.child("engine"), validator, voter, consensus, deliveries, entry);
    let (engine, marshal) = Box::pin(starting).await;
    signals.finality.connect(&marshal);
    let services = Services { context, parts, namespace, marshal, own: private.public_key() };
    services.keep_evidence(conflicts);
    services.agree_on_standing(channels.standing, newest_votes, rights.standing, signals.leave);
    services.spread_transactions(channels.transactions, clock);
    services.serve_state(channels.state);
    Ok((engine, services.finalize(inbox, recent_blocks)))
}

/// The time that executing the largest block takes.
async fn work_of_full_block<T>(replica: &Replica<T>, ns_per_gas: u64) -> Result<Duration, EngineError>
where
    T: StateStore<Batch: Send + Sync + 'static>,
{
    // By the parameters of now. Where governance raises them later, halved budgets keep due work within the
    // views until the node is started again.
    let environment = replica.application().next_environment(&replica.tip()).await?;
    Ok(engine::time_of_gas(block_gas(&environment.parameters), ns_per_gas))
}

async fn until_broken(engine: Handle<()>, finalizer: Handle<Result<(), FinalizeError>>) -> EngineError {
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
