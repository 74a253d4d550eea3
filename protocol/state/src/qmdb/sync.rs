//! Copies the state after a final block from peers: operations of the log, each proven against the root in the
//! block's header.

use super::{
    CHUNK_BYTES, Database, Family, Layer, QmdbConfig, QmdbError, QmdbStore, Shared,
    open::uncopied,
    serve::{ANSWER_OPERATIONS_MAX, ServeError},
    stamp::{self, Stamp},
    value::{Key, Value},
};
use crate::store::SealedBatch as _;
use alloy_primitives::{B256, Bytes};
use almanac_primitives::{Header, StateCommitment, StateKey};
use commonware_codec::Encode as _;
use commonware_cryptography::{Sha256, sha256};
use commonware_runtime::Spawner;
use commonware_storage::{
    Context,
    mmr::Location,
    qmdb::{
        self,
        any::unordered::variable,
        sync::{self, Target},
    },
};
use commonware_utils::{NZU64, NZUsize, range::NonEmptyRange, sync::AsyncRwLock};
use std::{
    collections::BTreeMap,
    num::{NonZeroU64, NonZeroUsize},
    sync::{Arc, atomic::AtomicBool},
};

/// A digest of the log's tree.
pub type Digest = sha256::Digest;

/// One entry of the log.
pub type Operation = variable::Operation<Family, Key, Value>;

/// A request for operations.
pub type SyncRequest = sync::Request<Family>;

/// Operations with their proof.
pub type SyncResponse = sync::Response<Family, Operation, Digest>;

/// Concurrent requests.
const QUESTIONS_MAX: NonZeroUsize = NZUsize!(8);

/// Operations to read at once when live values are counted.
const COUNTED_AT_ONCE: NonZeroU64 = NZU64!(4_096);

/// Why a state could not be copied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SyncError {
    /// A header with an invalid range of operations.
    #[error("the header of block {number} has an invalid range of operations, {start} to {end}")]
    Range {
        /// Height of the block.
        number: u64,
        /// First operation.
        start: u64,
        /// One past the last.
        end: u64,
    },
    /// Peers did not provide the operations.
    #[error("cannot fetch the state of block {number}: {reason}")]
    Source {
        /// Height of the block.
        number: u64,
        /// The source's error.
        reason: String,
    },
    /// Proven operations do not add up to the state: those of an earlier attempt on disk are damaged.
    #[error("the operations on disk do not lead to the state of block {number}: {reason}")]
    Damaged {
        /// Height of the block.
        number: u64,
        /// The library's error.
        reason: String,
    },
    /// The files cannot be written or read back.
    #[error("the state of block {number} cannot be stored: {reason}")]
    Store {
        /// Height of the block.
        number: u64,
        /// The database's error, its files, and what to do.
        reason: String,
    },
    /// The operations are proven, but give another state than the header's.
    #[error("the operations of block {number} give the state {found:?}, but its header has {expected:?}")]
    OtherState {
        /// Height of the block.
        number: u64,
        /// The header's commitment.
        expected: Box<StateCommitment>,
        /// The resulting commitment.
        found: Box<StateCommitment>,
    },
    /// The state is stamped for another block or another chain.
    #[error("the state of block {number} is stamped for another block or genesis: {found}")]
    OtherStamp {
        /// Height of the block.
        number: u64,
        /// Its stamp.
        found: String,
    },
}

/// Whether a response matches its request and is proven against a header's root of the log.
pub fn is_proven(request: &SyncRequest, ops_root: B256, response: &SyncResponse) -> bool {
    let (hasher, root) = (qmdb::hasher::<Sha256>(), Digest::from(ops_root.0));
    if response.proof().leaves != request.size() {
        return false;
    }
    match (request, response) {
        (SyncRequest::Operations { start, max_ops, .. }, SyncResponse::Operations { proof, operations }) => {
            let elements: Vec<_> = operations.iter().map(|operation| operation.encode()).collect();
            let count = u64::try_from(elements.len()).expect("a length fits 64 bits");
            (1..=max_ops.get()).contains(&count)
                && proof.verify_range_inclusion(&hasher, &elements, *start, &root)
        }
        (SyncRequest::Boundary { start, .. }, SyncResponse::Boundary { proof, op, pinned_nodes }) => {
            proof.verify_proof_and_pinned_nodes(&hasher, &[op.encode()], *start, pinned_nodes, &root)
        }
        _ => false,
    }
}

impl<E: Context + Spawner> QmdbStore<E> {
    /// Fills a store with the state after the block with this header, from an untrusted source. The caller must
    /// have checked that the header is final.
    ///
    /// After a failure or a crash, the files on disk are not a valid state. The log may stay for the next
    /// attempt, which then fetches only the rest ([`QmdbConfig::log_prefix`]); remove everything else first.
    pub async fn sync<S>(
        context: E,
        config: &QmdbConfig,
        genesis: &BTreeMap<StateKey, Bytes>,
        header: &Header,
        source: S,
    ) -> Result<Self, SyncError>
    where
        S: sync::Source<Family = Family, Op = Operation, Digest = Digest> + 'static,
    {
        let number = header.number;
        let reason =
            |error: &QmdbError| SyncError::Store { number, reason: uncopied(&config.partition, error) };
        let fetched = sync::sync(sync::engine::Config {
            context,
            source,
            target: target(header)?,
            max_outstanding_requests: QUESTIONS_MAX,
            fetch_batch_size: ANSWER_OPERATIONS_MAX,
            apply_batch_size: ANSWER_OPERATIONS_MAX,
            db_config: config.database(),
            update_rx: None,
            finish_rx: None,
            reached_target_tx: None,
        })
        .await;
        let database: Database<E> = fetched.map_err(|error| match error {
            sync::Error::Database(error) => reason(&error),
            sync::Error::Source(error) => SyncError::Source { number, reason: error.to_string() },
            sync::Error::Engine(error @ sync::EngineError::RootMismatch { .. }) => {
                SyncError::Damaged { number, reason: error.to_string() }
            }
            sync::Error::Engine(error) => SyncError::Source { number, reason: error.to_string() },
        })?;
        let database = database.sync().await.map_err(|error| reason(&error))?;
        let metadata = database.get_metadata().await.map_err(|error| reason(&error))?;
        let expected = Stamp { height: number, genesis: stamp::digest(genesis) };
        let stamp = metadata.as_ref().map(Stamp::decode);
        if stamp != Some(Ok(expected)) {
            return Err(SyncError::OtherStamp { number, found: format!("{stamp:?}") });
        }
        let store = Self::opened(database, expected, config);
        let found = crate::store::StateStore::tip(&store).commitment();
        if found != header.commitment {
            let (expected, found) = (Box::new(header.commitment), Box::new(found));
            return Err(SyncError::OtherState { number, expected, found });
        }
        Ok(store)
    }

    /// How many values the last committed state has. Reads the whole log.
    pub async fn live_values(&self) -> Result<u64, ServeError> {
        let guard = self.shared.database.read().await;
        let database = self.shared.opened(&guard).ok_or(ServeError::Closed)?;
        let failed = |error: QmdbError| ServeError::Store { reason: self.shared.unread(&error) };
        let (mut next, end) = (*database.sync_boundary(), *database.bounds().end);
        let mut live = 0;
        while next < end {
            let proven = database.range_proof(Location::new(next), COUNTED_AT_ONCE).await;
            let (_, operations, chunks) = proven.map_err(failed)?;
            let first_chunk = next / CHUNK_BITS;
            for operation in operations {
                let position = usize::try_from(next / CHUNK_BITS - first_chunk).expect("few chunks at once");
                let is_update = matches!(operation, Operation::Update(_));
                live += u64::from(is_update && is_set(&chunks[position], next % CHUNK_BITS));
                next += 1;
            }
        }
        Ok(live)
    }

    pub(super) fn opened(database: Database<E>, stamp: Stamp, config: &QmdbConfig) -> Self {
        let tip = Layer::committed(database.to_batch(), stamp.height);
        let shared = Shared {
            database: AsyncRwLock::new(Some(database)),
            is_closed: AtomicBool::new(false),
            tip: std::sync::Mutex::new(tip),
            partition: config.partition.clone(),
            genesis: stamp.genesis,
            file_operations: config.file_operations,
        };
        Self { shared: Arc::new(shared) }
    }
}

/// Operations that one chunk of the activity bitmap covers.
const CHUNK_BITS: u64 = CHUNK_BYTES as u64 * 8;

fn is_set(chunk: &[u8; CHUNK_BYTES], bit: u64) -> bool {
    let bit = usize::try_from(bit).expect("a bit of a chunk");
    chunk[bit / 8] & (1 << (bit % 8)) != 0
}

fn target(header: &Header) -> Result<Target<Family, Digest>, SyncError> {
    let StateCommitment { ops_root, ops_start: start, ops_end: end, .. } = header.commitment;
    let range = NonEmptyRange::new(Location::new(start)..Location::new(end));
    let range = range.map_err(|_| SyncError::Range { number: header.number, start, end })?;
    Ok(Target::new(Digest::from(ops_root.0), range))
}
