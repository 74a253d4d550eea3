//! Wires one validator: broadcast of blocks, marshal, simplex, and the application between them.

use crate::{
    block::{BlockContext, ConsensusBlock},
    digest::BlockDigest,
    evidence::VoteWatch,
    fair::Share,
    gossip,
    punctual::{Punctual, Punctuality},
    recent::{self, History, WindowConfig},
    sync,
};
use almanac_primitives::Gas;
use commonware_broadcast::buffered;
use commonware_consensus::{
    Application, Reporter, Reporters, Viewable as _,
    marshal::{
        self, Start, Update,
        core::{Actor as MarshalActor, Mailbox},
        resolver::p2p as backfill,
        standard::{Deferred, Standard},
    },
    simplex::{
        self,
        config::{Floor, ForwardPolicy, SkipBudget, SkipPolicy},
        elector::RoundRobin,
        scheme::ed25519::Scheme,
        types::Finalization,
    },
    types::{Epoch, FixedEpocher, ViewDelta},
};
use commonware_cryptography::{
    Digestible as _, Sha256,
    certificate::{ConstantProvider, Scheme as _},
    ed25519::PublicKey,
};
use commonware_p2p::{Blocker, Provider, Receiver, Sender, max_message_size};
use commonware_parallel::Sequential;
use commonware_runtime::{Clock, Handle, Metrics, Quota, Spawner, Storage, buffer::paged::CacheRef};
use commonware_utils::{NZDuration, NZU16, NZU32, NZU64, NZUsize};
use rand_core::CryptoRng;
use std::{
    future::{Future, ready},
    num::{NonZeroU32, NonZeroU64, NonZeroUsize},
    time::Duration,
};

/// Orders final blocks, and stores them with their certificates.
pub type Marshal = Mailbox<Scheme, Standard<ConsensusBlock>>;

/// Number of channels between validators: votes, certificates, requests for certificates, requests for blocks,
/// new blocks, transactions. State sync has a separate channel after them.
pub const CHANNELS: u64 = 6;

/// Messages that a peer may send on each channel: several times what a network at ten blocks a second needs.
pub const CHANNEL_QUOTA: Quota = Quota::per_second(NZU32!(512)).allow_burst(NZU32!(64));

/// Queue of a peer's messages on each channel: two of the largest blocks.
pub(crate) const SHARE: Share = Share { messages: NZUsize!(64), bytes: 9 << 20 };

/// The same for requests for blocks, many of which a node that is behind sends at once.
pub(crate) const BACKFILL_SHARE: Share = Share { messages: NZUsize!(64), bytes: 64 << 20 };

/// Requests for blocks that a peer may send, and answers that it may give. Small blocks are cheap; `meter.rs`
/// counts the bytes of large ones.
pub const BACKFILL_QUOTA: Quota = Quota::per_second(NZU32!(1_024)).allow_burst(NZU32!(128));

/// New blocks that a peer may send: twice as many as all validators together produce. Decoding the largest
/// takes long.
pub fn block_quota(block_time: Duration) -> Quota {
    let per_second = 2_000 / u32::try_from(block_time.as_millis().max(1)).unwrap_or(u32::MAX);
    let per_second = NonZeroU32::new(per_second.clamp(2, 512)).expect("2 at least");
    Quota::per_second(per_second).allow_burst(NZU32!(8))
}

/// Prefix of the files of consensus.
const PARTITION: &str = "consensus";

/// Messages that may wait for one part of the engine before senders block.
const MAILBOX: NonZeroUsize = NZUsize!(1024);

/// Write buffer and read-ahead, in bytes.
pub(crate) const BUFFER_BYTES: NonZeroUsize = NZUsize!(64 << 10);

/// Final blocks that marshal keeps in addition to the archive, and blocks in one of its files: at most three
/// files of blocks and three of certificates are open. Equal to the number of views that late votes and
/// requests may refer to.
pub const RECENT_BLOCKS: NonZeroU64 = NZU64!(256);

/// Blocks in one file of those that are not final yet. A file is removed when all its blocks are final.
const CACHE_FILE_ITEMS: NonZeroU64 = NZU64!(1024);

/// Views below the last final one that late votes and requests may refer to.
const VIEW_RETENTION: ViewDelta = ViewDelta::new(256);

/// Largest message that a network of this many validators has to carry.
pub fn message_bytes_max(validators: u32) -> u32 {
    max_message_size(&[
        vote_bytes_max(validators),
        block_bytes_max(validators),
        gossip::MESSAGE_BYTES_MAX,
        sync::message::MESSAGE_BYTES_MAX,
    ])
}

/// Largest message on the channels of votes, certificates and requests for certificates.
pub(crate) fn vote_bytes_max(validators: u32) -> usize {
    simplex::max_payload_size::<Scheme, BlockDigest>(validators)
}

/// Largest message on the channels of new blocks and of requests for blocks.
pub(crate) fn block_bytes_max(validators: u32) -> usize {
    marshal::max_payload_size::<Standard<ConsensusBlock>, Scheme>(validators, &())
}

/// The configuration of one validator.
pub struct Validator<P, B> {
    /// Its key.
    pub public_key: PublicKey,
    /// Signs its votes.
    pub scheme: Scheme,
    /// Prefix of its files: empty if it is the only one on a disk.
    pub partition: String,
    /// Provides the peers.
    pub peers: P,
    /// Disconnects peers that misbehave.
    pub blocker: B,
    /// Block 0.
    pub genesis: ConsensusBlock,
    /// The certificate of the block that it starts from, if it does not have earlier blocks.
    pub floor: Option<Finalization<Scheme, BlockDigest>>,
    /// The certificate of the block after whose view it votes, if it no longer knows its earlier votes.
    pub votes_after: Option<Finalization<Scheme, BlockDigest>>,
    /// How long it waits for others.
    pub timeouts: Timeouts,
    /// How far ahead of its clock a block may be to get its vote.
    pub punctuality: Punctuality,
    /// The blocks that it has committed.
    pub history: History,
    /// Final blocks that marshal keeps in addition, and blocks in one of its files. Fixed for the life of a
    /// disk.
    pub recent_blocks: NonZeroU64,
}

/// How long a validator waits for others.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For a leader's proposal.
    pub leader: Duration,
    /// For a proposal to be certified.
    pub certification: Duration,
    /// Before it repeats that a view has failed.
    pub retry: Duration,
    /// For a leader that was not heard from, before its turn is skipped at once.
    pub skip: Duration,
    /// For an answer to a request for missing data.
    pub fetch: Duration,
}

/// Nanoseconds per gas of the dearest work there is, rounded up. By `dearest_precompile` in `exec/tests/all/precompiles.rs`
/// that is P256VERIFY: 1.3 times ecAdd in the same run, which took 14 ns on two shared cores; the rest is margin.
pub const DEAREST_NS_PER_GAS: u64 = 30;

/// The time that executing this much gas takes.
pub fn time_of_gas(gas: Gas, ns_per_gas: u64) -> Duration {
    Duration::from_nanos(gas.0.saturating_mul(ns_per_gas))
}

impl Timeouts {
    /// Timeouts that go with a block time: short enough to get over a dead leader soon, long enough for a slow
    /// network.
    pub fn for_block_time(block_time: Duration) -> Self {
        Self::for_blocks(block_time, Duration::ZERO)
    }

    /// Timeouts if executing the largest block takes `work`. A leader waits for its block time and then
    /// executes; the others execute its block in the second half of the certification timeout.
    pub fn for_blocks(block_time: Duration, work: Duration) -> Self {
        let leader = block_time + block_time.max(work) + Duration::from_millis(500);
        Self {
            leader,
            // More than two seconds with the tolerance, so that a validator whose clock is that far behind
            // still votes.
            certification: leader * 2 + Duration::from_millis(300),
            retry: leader * 2,
            skip: leader * 5,
            fetch: Duration::from_secs(1),
        }
    }
}

/// The two ends of each channel.
pub struct Channels<S, R> {
    /// Votes.
    pub votes: (S, R),
    /// Certificates.
    pub certificates: (S, R),
    /// Requests for certificates.
    pub resolver: (S, R),
    /// Requests for blocks.
    pub backfill: (S, R),
    /// New blocks.
    pub blocks: (S, R),
}

/// Partition of a validator's votes.
pub(crate) fn votes_partition(prefix: &str) -> String {
    format!("{prefix}{PARTITION}-votes")
}

/// Partition of a validator that does not vote: what it receives.
pub(crate) fn heard_partition(prefix: &str) -> String {
    format!("{}-heard", votes_partition(prefix))
}

/// Pages of the files of consensus that are kept in memory.
pub(crate) fn page_cache() -> CacheRef {
    CacheRef::new(NZU16!(4096), NZUsize!(1024))
}

/// Starts a validator: `application` proposes and judges, `reporter` hears of final blocks.
///
/// Answers with the task that everything else hangs on, and the mailbox of marshal.
pub async fn start<E, P, B, S, R, A, M>(
    context: E,
    validator: Validator<P, B>,
    application: A,
    channels: Channels<S, R>,
    reporter: M,
) -> (Handle<()>, Marshal)
where
    E: Clock + CryptoRng + Spawner + Storage + Metrics,
    P: Provider<PublicKey = PublicKey>,
    B: Blocker<PublicKey = PublicKey>,
    S: Sender<PublicKey = PublicKey>,
    R: Receiver<PublicKey = PublicKey>,
    A: Application<E, SigningScheme = Scheme, Context = BlockContext, Block = ConsensusBlock, Input = ()>,
    M: Reporter<Activity = Update<ConsensusBlock>>,
{
    let joins = ready(Ticket { scheme: validator.scheme.clone(), after: None });
    let entry = Entry { joins, watch: None };
    start_when(context, validator, application, channels, reporter, entry).await
}

/// How a validator joins consensus.
pub(crate) struct Entry<F> {
    /// Answers when it joins, and how.
    pub(crate) joins: F,
    /// Hears of votes.
    pub(crate) watch: Option<VoteWatch>,
}

/// What a validator may do in consensus.
pub(crate) struct Ticket {
    /// What it signs by.
    pub(crate) scheme: Scheme,
    /// What was signed about a block that was found since it started, after whose view it votes.
    pub(crate) after: Option<Finalization<Scheme, BlockDigest>>,
}

/// The same, where it is not known yet what the validator may sign: it orders and serves blocks at once, and joins
/// consensus later.
pub(crate) async fn start_when<E, P, B, S, R, A, M>(
    context: E,
    validator: Validator<P, B>,
    application: A,
    channels: Channels<S, R>,
    reporter: M,
    entry: Entry<impl Future<Output = Ticket> + Send + 'static>,
) -> (Handle<()>, Marshal)
where
    E: Clock + CryptoRng + Spawner + Storage + Metrics,
    P: Provider<PublicKey = PublicKey>,
    B: Blocker<PublicKey = PublicKey>,
    S: Sender<PublicKey = PublicKey>,
    R: Receiver<PublicKey = PublicKey>,
    A: Application<E, SigningScheme = Scheme, Context = BlockContext, Block = ConsensusBlock, Input = ()>,
    M: Reporter<Activity = Update<ConsensusBlock>>,
{
    let Validator {
        public_key,
        scheme,
        partition,
        peers,
        blocker,
        genesis,
        floor,
        votes_after,
        timeouts,
        ..
    } = validator;
    let (history, recent_blocks) = (validator.history, validator.recent_blocks);
    let (votes, heard) = (votes_partition(&partition), heard_partition(&partition));
    let partition = format!("{partition}{PARTITION}");
    let cache = page_cache();
    let fetch_timeout = NZDuration!(timeouts.fetch);
    let fetch_retry_delay = timeouts.fetch / 10;
    let (origin, begin) = (genesis.digest(), floor.clone());
    let start = match floor {
        None => Start::Genesis(genesis.clone().digested()),
        Some(signed) => Start::Floor(signed),
    };

    let resolver = backfill::init(
        context.child("backfill"),
        backfill::Config {
            public_key: public_key.clone(),
            peer_provider: peers.clone(),
            blocker: blocker.clone(),
            mailbox_size: MAILBOX,
            fetch_timeout,
            fetch_retry_delay,
            priority_requests: false,
            priority_responses: false,
        },
        channels.backfill,
    );
    let (broadcast, buffer) = buffered::Engine::new(
        // On a thread of its own: reading a large block takes long, and votes must not wait for it.
        context.child("broadcast").dedicated(),
        buffered::Config {
            public_key,
            mailbox_size: MAILBOX,
            deque_size: 16,
            priority: true,
            codec_config: (),
            peer_provider: peers,
            strategy: Sequential,
        },
    );
    broadcast.start(channels.blocks);

    let window = WindowConfig { partition: &partition, recent_blocks, cache: &cache };
    let certificates = recent::Certificates::open(&context, &window, history.clone()).await;
    let blocks = recent::Blocks::open(&context, &window, genesis, history).await;
    // One epoch for ever: the validators of the genesis.
    let epocher = FixedEpocher::new(NZU64!(u64::MAX));
    let (actor, marshal, _) = MarshalActor::<_, Standard<ConsensusBlock>, _, _, _, _, _>::init(
        context.child("marshal"),
        certificates,
        blocks,
        marshal::Config {
            provider: ConstantProvider::new(scheme.clone()),
            epocher: epocher.clone(),
            start,
            partition_prefix: partition.clone(),
            mailbox_size: MAILBOX,
            view_retention: VIEW_RETENTION,
            prunable_items_per_section: CACHE_FILE_ITEMS,
            page_cache: cache.clone(),
            replay_buffer: BUFFER_BYTES,
            key_write_buffer: BUFFER_BYTES,
            value_write_buffer: BUFFER_BYTES,
            block_codec_config: (),
            max_repair: NZUsize!(32),
            max_pending_acks: NZUsize!(16),
            strategy: Sequential,
        },
    )
    .await;
    let wrapped = Deferred::new(context.child("application"), application, marshal.clone(), epocher);
    let punctual =
        Punctual::new(context.child("votes"), wrapped.clone(), marshal.clone(), validator.punctuality);
    actor.start(reporter, buffer, resolver);

    let context = context.child("simplex");
    let joined = context.child("entry").spawn(move |_| async move {
        let Ticket { scheme, after } = entry.joins.await;
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
                automaton: punctual,
                relay: wrapped.clone(),
                reporter: and_watch(wrapped, entry.watch),
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
                fetch_timeout,
                fetch_retry_delay,
                forward: ForwardPolicy::Disabled,
            },
        );
        let ended = engine.start(channels.votes, channels.certificates, channels.resolver).await;
        tracing::debug!("consensus ended: {ended:?}");
    });
    (joined, marshal)
}

/// Both hear of everything, the second if it is there.
fn and_watch<R, W>(reporter: R, watch: Option<W>) -> Reporters<R, W> {
    Reporters::from((reporter, watch))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both sides: work that fits the block time changes nothing, and what is longer is waited for.
    #[test]
    fn timeouts_have_room_for_the_work_of_a_full_block() {
        let times = |work_ms| {
            let milliseconds = Duration::from_millis;
            let timeouts = Timeouts::for_blocks(milliseconds(100), milliseconds(work_ms));
            [timeouts.leader, timeouts.certification].map(|time| time.as_millis())
        };
        let plain = Timeouts::for_block_time(Duration::from_millis(100));
        assert_eq!(times(0), [plain.leader, plain.certification].map(|time| time.as_millis()));
        assert_eq!(times(100), [700, 1_700]);
        assert_eq!(times(101), [701, 1_702]);
        assert_eq!(times(2_400), [3_000, 6_300], "made and judged");
    }

    #[test]
    fn the_time_of_gas_does_not_wrap() {
        assert_eq!(time_of_gas(Gas(120_000_000), 30), Duration::from_millis(3_600));
        assert_eq!(time_of_gas(Gas(120_000_000), 0), Duration::ZERO, "switched off");
        assert_eq!(time_of_gas(Gas(u64::MAX), 20), Duration::from_nanos(u64::MAX));
    }
}
