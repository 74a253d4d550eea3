//! How a validator takes part in simplex, from the moment that it may.

use super::{BUFFER_BYTES, Entry, MAILBOX, Ticket, Timeouts, VIEW_RETENTION, Validator};
use super::{heard_partition, votes_partition};
use crate::{
    block::{BlockContext, ConsensusBlock},
    digest::BlockDigest,
    evidence::VoteWatch,
    punctual::Punctual,
};
use commonware_consensus::{
    Application, Reporters, Viewable as _,
    marshal::standard::Deferred,
    simplex::{
        self,
        config::{Floor, ForwardPolicy, SkipBudget, SkipPolicy},
        elector::RoundRobin,
        scheme::ed25519::Scheme,
        types::Finalization,
    },
    types::{Epoch, FixedEpocher},
};
use commonware_cryptography::{Digestible as _, Sha256, certificate::Scheme as _, ed25519::PublicKey};
use commonware_p2p::{Blocker, Receiver, Sender};
use commonware_parallel::Sequential;
use commonware_runtime::{Clock, Metrics, Spawner, Storage, buffer::paged::CacheRef};
use commonware_utils::NZDuration;
use rand_core::CryptoRng;
use std::future::Future;

/// The application as consensus sees it, behind marshal.
pub(super) type Automaton<E, A> = Deferred<E, Scheme, A, ConsensusBlock, FixedEpocher>;

/// The channels of simplex.
pub(super) struct VoteChannels<S, R> {
    pub(super) votes: (S, R),
    pub(super) certificates: (S, R),
    pub(super) resolver: (S, R),
}

/// What simplex needs of a validator.
pub(super) struct Agreement<B> {
    blocker: B,
    timeouts: Timeouts,
    cache: CacheRef,
    /// The digest of block 0.
    origin: BlockDigest,
    /// What was signed about the block that it starts from.
    begin: Option<Finalization<Scheme, BlockDigest>>,
    votes_after: Option<Finalization<Scheme, BlockDigest>>,
    /// Its files, with a key and without.
    votes: String,
    heard: String,
}

impl<B: Blocker<PublicKey = PublicKey>> Agreement<B> {
    pub(super) fn new<P>(validator: &Validator<P, B>, cache: CacheRef) -> Self {
        Self {
            blocker: validator.blocker.clone(),
            timeouts: validator.timeouts,
            cache,
            origin: validator.genesis.digest(),
            begin: validator.floor.clone(),
            votes_after: validator.votes_after.clone(),
            votes: votes_partition(&validator.partition),
            heard: heard_partition(&validator.partition),
        }
    }

    /// Waits until the validator may join, and runs until consensus ends.
    pub(super) async fn run<E, A, S, R>(
        self,
        context: E,
        automaton: Punctual<E, Automaton<E, A>>,
        relay: Automaton<E, A>,
        channels: VoteChannels<S, R>,
        entry: Entry<impl Future<Output = Ticket>>,
    ) where
        E: Clock + CryptoRng + Spawner + Storage + Metrics,
        A: Application<E, SigningScheme = Scheme, Context = BlockContext, Block = ConsensusBlock, Input = ()>,
        S: Sender<PublicKey = PublicKey>,
        R: Receiver<PublicKey = PublicKey>,
    {
        let Ticket { scheme, after } = entry.joins.await;
        let Self { blocker, timeouts, cache, origin, begin, votes_after, votes, heard } = self;
        // Without a key, what it signed before cannot be replayed: files of their own for what it only hears.
        let partition = if scheme.me().is_some() { votes } else { heard };
        // Simplex takes part in no view up to that of its floor, whatever its files say.
        let floors = [begin, votes_after, after].into_iter().flatten();
        let floor =
            floors.max_by_key(|signed| signed.view()).map_or(Floor::Genesis(origin), Floor::Finalized);
        let engine = simplex::Engine::new(
            context,
            simplex::Config {
                scheme,
                elector: RoundRobin::<Sha256>::default(),
                blocker,
                automaton,
                relay: relay.clone(),
                // Every activity goes to both; the watch is optional.
                reporter: Reporters::<_, VoteWatch>::from((relay, entry.watch)),
                track_historical_votes: false,
                strategy: Sequential,
                partition,
                mailbox_size: MAILBOX,
                epoch: Epoch::zero(),
                floor,
                replay_buffer: BUFFER_BYTES,
                write_buffer: BUFFER_BYTES,
                page_cache: cache,
                leader_timeout: timeouts.leader,
                certification_timeout: timeouts.certification,
                timeout_retry: timeouts.retry,
                view_retention: VIEW_RETENTION,
                skip: SkipPolicy::Enabled { timeout: timeouts.skip, budget: SkipBudget::Participants },
                fetch_timeout: NZDuration!(timeouts.fetch),
                fetch_retry_delay: timeouts.fetch_retry_delay(),
                forward: ForwardPolicy::Disabled,
            },
        );
        let ended = engine.start(channels.votes, channels.certificates, channels.resolver).await;
        tracing::debug!("consensus ended: {ended:?}");
    }
}
