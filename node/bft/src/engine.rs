//! Wires one validator: broadcast of blocks, marshal, simplex, and the application between them.

mod agreement;
mod blocks;

use self::agreement::{Agreement, VoteChannels};
use crate::{
    block::{BlockContext, ConsensusBlock},
    digest::BlockDigest,
    evidence::VoteWatch,
    fair::Share,
    gossip,
    punctual::{Punctual, Punctuality},
    recent::History,
    sync,
};
use almanac_primitives::Gas;
use commonware_consensus::{
    Application, Reporter,
    marshal::{
        self, Update,
        core::Mailbox,
        standard::{Deferred, Standard},
    },
    simplex::{self, scheme::ed25519::Scheme, types::Finalization},
    types::{FixedEpocher, ViewDelta},
};
use commonware_cryptography::ed25519::PublicKey;
use commonware_p2p::{Blocker, Provider, Receiver, Sender, max_message_size};
use commonware_runtime::{Clock, Handle, Metrics, Quota, Spawner, Storage, buffer::paged::CacheRef};
use commonware_utils::{NZU16, NZU32, NZU64, NZUsize};
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

/// Nanoseconds per gas that the timeouts have room for. By `dearest_precompile` in `exec/tests/all/precompiles.rs` the
/// dearest work is ecAdd and the point evaluation of KZG, 13 ns on two cores with much else to do. A full second of
/// booked runs of it fits with the rest of each timeout. What is slower makes views fail, and budgets halve; a larger
/// figure would make every failure of a leader longer.
pub const TIMEOUT_NS_PER_GAS: u64 = 15;

/// Before a validator repeats that a view has failed. One that comes back has missed what was said before: where its vote
/// is needed, all wait for the next repetition.
const RETRY: Duration = Duration::from_secs(1);

/// The time that executing this much gas takes.
pub fn time_of_gas(gas: Gas, ns_per_gas: u64) -> Duration {
    Duration::from_nanos(gas.0.saturating_mul(ns_per_gas))
}

impl Timeouts {
    /// Before a question for missing data is asked again.
    fn fetch_retry_delay(&self) -> Duration {
        self.fetch / 10
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
            retry: RETRY,
            // The least that consensus allows, and a view more: one that is down costs two or three views.
            skip: leader * 3 + Duration::from_millis(300),
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
    let cache = page_cache();
    let sources = blocks::start_sources(&context, &validator, channels.backfill, channels.blocks);
    // One epoch for ever: the validators of the genesis.
    let epocher = FixedEpocher::new(NZU64!(u64::MAX));
    let (actor, marshal) = blocks::open_marshal(&context, &validator, epocher.clone(), &cache).await;
    let wrapped = Deferred::new(context.child("application"), application, marshal.clone(), epocher);
    let agreement = Agreement::new(&validator, cache);
    let punctual =
        Punctual::new(context.child("votes"), wrapped.clone(), marshal.clone(), validator.punctuality);
    actor.start(reporter, sources.buffer, sources.resolver);

    let Channels { votes, certificates, resolver, .. } = channels;
    let channels = VoteChannels { votes, certificates, resolver };
    let context = context.child("simplex");
    let joined = context.child("entry").spawn(|_| agreement.run(context, punctual, wrapped, channels, entry));
    (joined, marshal)
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
        assert_eq!(times(0), [700, 1_700]);
        assert_eq!(times(100), [700, 1_700]);
        assert_eq!(times(101), [701, 1_702]);
        assert_eq!(times(2_400), [3_000, 6_300], "made and judged");
    }

    /// Consensus refuses to start with others.
    #[test]
    fn a_leader_is_skipped_later_than_a_view_ends() {
        for block_time in [Duration::ZERO, Duration::from_millis(1), Duration::from_secs(60)] {
            let timeouts = Timeouts::for_blocks(block_time, Duration::ZERO);
            assert!(timeouts.skip > timeouts.certification.max(timeouts.retry), "{timeouts:?}");
        }
    }

    #[test]
    fn the_time_of_gas_does_not_wrap() {
        assert_eq!(time_of_gas(Gas(120_000_000), 30), Duration::from_millis(3_600));
        assert_eq!(time_of_gas(Gas(120_000_000), 0), Duration::ZERO, "switched off");
        assert_eq!(time_of_gas(Gas(u64::MAX), 20), Duration::from_nanos(u64::MAX));
    }
}
