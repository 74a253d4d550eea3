//! State sync: an empty node copies the state after a recent final block, and continues from there.
//!
//! ```text
//! tip          header + certificate        checked with the validators of the genesis
//! operations   of the log that the header  each answer proven against the header's root of the log; the whole
//!              names                       must give the header's state root
//! keys         names of the values         a name counts if its hash is in the copied state; done when there are
//!                                          as many as live values
//! ```
//!
//! No peer is trusted: every answer is checked, and a peer with a wrong one is disconnected.

pub mod ask;
mod connect;
mod floor;
pub mod message;
mod names;
mod progress;
mod serve;
mod source;
mod tip;
mod walk;

pub use connect::connect;
pub use floor::Floor;
pub use names::ValueSink;
pub use progress::{Phase, Progress, Stage};
pub use serve::{KnownKeys, Server};

use crate::{
    fair::Share,
    validators::{Namespace, ValidatorSet},
};
use alloy_primitives::Bytes;
use almanac_primitives::{StateKey, StateReadError};
use almanac_state::{
    QmdbConfig, QmdbStore,
    qmdb::{serve::ServeError, sync::SyncError as StateSyncError},
};
use ask::Asker;
use commonware_cryptography::ed25519::PublicKey;
use commonware_p2p::{Blocker, Sender};
use commonware_runtime::{Clock, Quota, Spawner};
use commonware_storage::Context;
use commonware_utils::{NZU32, NZUsize};
use source::PeerSource;
use std::{collections::BTreeMap, num::NonZeroU32, sync::Arc, time::Duration};

/// The channel of questions and answers, after those of consensus and of transactions.
pub const CHANNEL: u64 = crate::engine::CHANNELS;

/// Questions that a peer may ask per second, and at once. `meter.rs` limits the bytes of answers; the server
/// limits their time by resting after each.
pub const QUOTA: Quota = Quota::per_second(NZU32!(256)).allow_burst(NZU32!(64));

/// Keys to request at a time: as many as peers return.
pub const NAMES_PER_PAGE: NonZeroU32 = NZU32!(4_096);

const _: () = assert!(NAMES_PER_PAGE.get() as usize == message::KEYS_MAX, "a shorter page is the last one");

/// Queue of a peer's questions.
pub(crate) const SHARE: Share = Share { messages: NZUsize!(32), bytes: 32 * message::QUESTION_BYTES_MAX };

/// Why a node could not copy the state.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// No peer named a final block.
    #[error(
        "no peer named a final block within {patience:?}: do the validators run, and do their configurations list \
         this node's key under followers?"
    )]
    NoTip {
        /// How long it searched.
        patience: Duration,
    },
    /// The state could not be fetched.
    #[error(transparent)]
    State(#[from] StateSyncError),
    /// The copied state could not be read.
    #[error(transparent)]
    Read(#[from] StateReadError),
    /// The values of the copied state could not be counted.
    #[error("the copied state cannot be read: {0}")]
    Count(#[from] ServeError),
    /// Keys are missing.
    #[error("the state of block {number} has {live} values, but peers knew the keys of only {found}")]
    KeysMissing {
        /// Height of the block.
        number: u64,
        /// Number of values.
        live: u64,
        /// Number of values with a known key.
        found: u64,
    },
    /// The sink of the values failed.
    #[error("the copied values cannot be kept: {reason}")]
    Sink {
        /// The sink's error.
        reason: String,
    },
}

impl SyncError {
    /// Whether the copy so far is worth keeping: peers stopped answering, but what they sent is valid.
    pub fn is_for_want_of_answers(&self) -> bool {
        matches!(
            self,
            Self::NoTip { .. } | Self::KeysMissing { .. } | Self::State(StateSyncError::Source { .. })
        )
    }
}

/// A node that copies the state from its peers.
pub struct Session<E, S, B> {
    /// Asks the peers.
    pub asker: Arc<Asker<E, S, B>>,
    /// Who signs certificates.
    pub validators: ValidatorSet,
    /// Separates the chain's signatures from those of other chains.
    pub namespace: Namespace,
    /// Reports the progress.
    pub progress: Arc<Progress>,
    /// Keys to request at a time.
    pub names_per_page: NonZeroU32,
}

impl<E, S, B> Session<E, S, B>
where
    E: Clock,
    S: Sender<PublicKey = PublicKey>,
    B: Blocker<PublicKey = PublicKey> + Sync,
{
    /// Copies the state after a block into a store that is empty, or that has the beginning of the same log
    /// from an earlier attempt.
    pub async fn fetch_state<C: Context + Spawner>(
        &self,
        context: C,
        config: &QmdbConfig,
        genesis: &BTreeMap<StateKey, Bytes>,
        floor: &Floor,
    ) -> Result<QmdbStore<C>, SyncError> {
        let (asker, progress) = (self.asker.clone(), self.progress.clone());
        let source = PeerSource::new(asker, floor.header.commitment, progress);
        Ok(QmdbStore::sync(context, config, genesis, &floor.header, source).await?)
    }
}
