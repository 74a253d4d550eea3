//! How blocks reach a validator and are put in order: broadcast, backfill and marshal.

use super::{BUFFER_BYTES, CACHE_FILE_ITEMS, MAILBOX, Marshal, PARTITION, VIEW_RETENTION, Validator};
use crate::{
    block::ConsensusBlock,
    digest::BlockDigest,
    recent::{self, WindowConfig},
};
use commonware_broadcast::buffered;
use commonware_consensus::{
    marshal::{
        self, Start,
        core::Actor,
        resolver::{handler::Receiver as Fetched, p2p as backfill},
        standard::Standard,
    },
    simplex::scheme::ed25519::Scheme,
    types::{Epoch, FixedEpocher},
};
use commonware_cryptography::{certificate::ConstantProvider, ed25519::PublicKey};
use commonware_p2p::{Blocker, Provider, Receiver, Sender};
use commonware_parallel::Sequential;
use commonware_runtime::{Clock, Metrics, Spawner, Storage, buffer::paged::CacheRef};
use commonware_utils::{NZDuration, NZUsize};
use rand_core::CryptoRng;

/// Where marshal gets blocks from.
pub(super) struct Sources {
    /// New ones, as their proposers send them.
    pub(super) buffer: buffered::Mailbox<PublicKey, ConsensusBlock>,
    /// Missing ones, as peers answer.
    pub(super) resolver: (Fetched<BlockDigest>, backfill::Mailbox<BlockDigest, PublicKey>),
}

/// The actor behind the mailbox of marshal.
pub(super) type MarshalActor<E> = Actor<
    E,
    Standard<ConsensusBlock>,
    ConstantProvider<Scheme, Epoch>,
    recent::Certificates<E>,
    recent::Blocks<E>,
    FixedEpocher,
    Sequential,
>;

/// Starts to receive new blocks and to ask for missing ones.
pub(super) fn start_sources<E, P, B, S, R>(
    context: &E,
    validator: &Validator<P, B>,
    missing: (S, R),
    new: (S, R),
) -> Sources
where
    E: Clock + CryptoRng + Spawner + Storage + Metrics,
    P: Provider<PublicKey = PublicKey>,
    B: Blocker<PublicKey = PublicKey>,
    S: Sender<PublicKey = PublicKey>,
    R: Receiver<PublicKey = PublicKey>,
{
    let resolver = backfill::init(
        context.child("backfill"),
        backfill::Config {
            public_key: validator.public_key.clone(),
            peer_provider: validator.peers.clone(),
            blocker: validator.blocker.clone(),
            mailbox_size: MAILBOX,
            fetch_timeout: NZDuration!(validator.timeouts.fetch),
            fetch_retry_delay: validator.timeouts.fetch_retry_delay(),
            priority_requests: false,
            priority_responses: false,
        },
        missing,
    );
    let (broadcast, buffer) = buffered::Engine::new(
        // On a thread of its own: reading a large block takes long, and votes must not wait for it.
        context.child("broadcast").dedicated(),
        buffered::Config {
            public_key: validator.public_key.clone(),
            mailbox_size: MAILBOX,
            deque_size: 16,
            priority: true,
            codec_config: (),
            peer_provider: validator.peers.clone(),
            strategy: Sequential,
        },
    );
    broadcast.start(new);
    Sources { buffer, resolver }
}

/// Opens the files of marshal, which is yet to be started.
pub(super) async fn open_marshal<E, P, B>(
    context: &E,
    validator: &Validator<P, B>,
    epocher: FixedEpocher,
    cache: &CacheRef,
) -> (MarshalActor<E>, Marshal)
where
    E: Clock + CryptoRng + Spawner + Storage + Metrics,
{
    let Validator { genesis, history, recent_blocks, .. } = validator;
    let partition = format!("{}{PARTITION}", validator.partition);
    let start = match &validator.floor {
        None => Start::Genesis(genesis.clone().digested()),
        Some(signed) => Start::Floor(signed.clone()),
    };
    let window = WindowConfig { partition: &partition, recent_blocks: *recent_blocks, cache };
    let certificates = recent::Certificates::open(context, &window, history.clone()).await;
    let blocks = recent::Blocks::open(context, &window, genesis.clone(), history.clone()).await;
    let (actor, marshal, _) = MarshalActor::init(
        context.child("marshal"),
        certificates,
        blocks,
        marshal::Config {
            provider: ConstantProvider::new(validator.scheme.clone()),
            epocher,
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
    (actor, marshal)
}
