//! The state on disk: one QMDB, whose batches fork from any parent and know their roots before they are applied.
//!
//! Keys are hashes, values are bytes, and every commit carries the height of its block, so that a reopened
//! store knows its height. A mutation takes the database and returns it on success. If it fails or is dropped
//! before its end, the store is closed: every later call fails, and the node must be restarted. Durable data is
//! safe.

mod config;
mod layer;
mod open;
mod prove;
pub mod serve;
mod stamp;
pub mod sync;
mod value;

pub use config::QmdbConfig;
pub use open::OpenError;
pub use value::Value;
pub(crate) use value::key;

use crate::{
    proof::{ProveError, StateProof},
    store::{CommitError, SealError, SealedBatch, StateStore},
    view::StateView,
};
use alloy_primitives::{B256, Bytes};
use almanac_primitives::{
    Header, StateChange, StateCommitment, StateDiff, StateKey, StateReadError, params::STATE_VALUE_BYTES_MAX,
};
use commonware_cryptography::{Sha256, sha256};
use commonware_parallel::Sequential;
use commonware_runtime::{Handle, Spawner};
use commonware_storage::{
    Context,
    mmr::{self, Location},
    qmdb::{
        self,
        any::{unordered::Update, value::VariableEncoding},
        current::{
            batch::{MerkleizedBatch, Slot},
            unordered::variable,
        },
        floor::Proportional,
    },
    translator::EightCap,
};
use commonware_utils::sync::AsyncRwLock;
use layer::Layer;
use stamp::Stamp;
use std::{
    collections::BTreeMap,
    fmt,
    num::NonZeroU64,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use value::Key;

/// Bytes of one chunk of QMDB's activity bitmap. Part of the format of roots and proofs.
pub(crate) const CHUNK_BYTES: usize = 32;

/// The tree over the log of operations.
pub type Family = mmr::Family;
pub(crate) type Database<E> = variable::Db<Family, E, Key, Value, Sha256, EightCap, CHUNK_BYTES, Sequential>;
type Sealed = Arc<
    MerkleizedBatch<Family, sha256::Digest, Update<Key, VariableEncoding<Value>>, CHUNK_BYTES, Sequential>,
>;
type QmdbError = qmdb::Error<Family>;

/// The state of the last committed block on disk, and sealed batches above it. Clones share it.
pub struct QmdbStore<E: Context + Spawner> {
    shared: Arc<Shared<E>>,
}

struct Shared<E: Context + Spawner> {
    /// `None` once a mutation has failed. The lock prefers writers: a task that holds it for reading must not
    /// lock it again, or it deadlocks with a waiting writer.
    database: AsyncRwLock<Option<Database<E>>>,
    /// Set if an applied batch did not become durable: nothing may be built on it.
    is_closed: AtomicBool,
    /// Moves only while the database is locked for writing, or when the store closes.
    tip: std::sync::Mutex<Arc<Layer>>,
    partition: String,
    genesis: B256,
    /// Operations in one file.
    file_operations: NonZeroU64,
}

/// The state after a block of a [`QmdbStore`].
pub struct QmdbBatch<E: Context + Spawner> {
    shared: Arc<Shared<E>>,
    layer: Arc<Layer>,
}

impl<E: Context + Spawner> QmdbStore<E> {
    /// Opens the store at its last durable block. Writes the genesis first if the store is empty.
    ///
    /// Callers that know the header of that block must compare its commitment with the head's: tampered files
    /// can be consistent and still hold another state.
    pub async fn open(
        context: E,
        config: &QmdbConfig,
        genesis: &BTreeMap<StateKey, Bytes>,
    ) -> Result<Self, OpenError> {
        Self::open_at(context, config, genesis, None).await
    }

    /// Opens the store at the block that ends at operation `ops_end`, as its header states, and discards later
    /// blocks. Discards nothing if there is no such block.
    pub async fn open_at(
        context: E,
        config: &QmdbConfig,
        genesis: &BTreeMap<StateKey, Bytes>,
        ops_end: Option<u64>,
    ) -> Result<Self, OpenError> {
        let (database, stamp) = open::open(context, config, genesis, ops_end).await?;
        Ok(Self::opened(database, stamp, config))
    }

    /// Height of the last committed block.
    pub fn height(&self) -> u64 {
        self.shared.tip().height
    }

    async fn seal_diff(&self, parent: &QmdbBatch<E>, diff: &StateDiff) -> Result<Arc<Layer>, SealError> {
        let changes = diff.changes();
        let failed = |error| SealError::Store { reason: self.shared.unread(&error) };
        let guard = self.shared.database.read().await;
        let tip = self.shared.tip();
        let database = self.shared.opened(&guard).ok_or(SealError::Closed)?;
        parent.layer.check_live(&tip)?;
        let keys: Vec<Key> = changes.iter().map(|change| key(&change.key)).collect();
        let keys: Vec<&Key> = keys.iter().collect();
        // One read serves two purposes: it checks the old values, and QMDB need not look the keys up again.
        let batch = parent.layer.sealed.new_batch::<Sha256>();
        let (found, staged) = batch.stage(&keys, database).await.map_err(failed)?;
        for (change, found) in changes.iter().zip(found) {
            check_change(change, found.map(|value| value.0))?;
        }
        let slots = changes.iter().map(slot).collect();
        let height = parent.layer.height.checked_add(1).expect("2^64 blocks take for ever");
        let metadata = Stamp { height, genesis: self.shared.genesis }.encode();
        let sealed = staged
            .merkleize(slots, Vec::new(), Some(metadata), database, &mut Proportional)
            .await
            .map_err(failed)?;
        Ok(Layer::on(&parent.layer, sealed))
    }

    async fn commit_layer(&self, layer: &Arc<Layer>) -> Result<(), CommitError> {
        let failed = |error| CommitError::Store { reason: self.shared.unwritten(&error) };
        let (durable, before) = self.apply_layer(layer).await?;
        // Sync without the lock: reads for the next block do not wait for the disk. The block is not announced
        // before it is durable, and later commits become durable after it.
        let mut unless_durable = Closing { shared: &self.shared, before: Some(before) };
        durable.await.map_err(|error| failed(error.into()))?;
        unless_durable.before = None;
        Ok(())
    }

    /// Makes a batch the tip, and begins to make it durable. Answers with what ends when it is, and the tip before.
    async fn apply_layer(&self, layer: &Arc<Layer>) -> Result<(Handle<()>, Arc<Layer>), CommitError> {
        let mut guard = self.shared.database.write().await;
        self.shared.opened(&guard).ok_or(CommitError::Closed)?;
        let before = self.shared.tip();
        // Checked before anything is taken: a refusal must not cost us the database.
        layer.check_next(&before)?;
        let database = self.shared.take(&mut guard).ok_or(CommitError::Closed)?;
        let (database, durable) = apply(database, &layer.sealed)
            .await
            .map_err(|error| CommitError::Store { reason: self.shared.unwritten(&error) })?;
        self.shared.set_tip(Arc::clone(layer));
        layer.release_parent();
        *guard = Some(database);
        Ok((durable, before))
    }

    /// Removes the oldest file of operations, if neither the state after the block with this commitment nor any
    /// later one needs it. Older blocks can then not be reopened, nor synced from. Returns whether there was
    /// such a file. Call it again for the next one, so that commits can run in between.
    pub async fn prune(&self, oldest: &StateCommitment) -> Result<bool, CommitError> {
        if self.prunable_to(oldest, &*self.shared.database.read().await)?.is_none() {
            return Ok(false);
        }
        let mut guard = self.shared.database.write().await;
        let Some(boundary) = self.prunable_to(oldest, &guard)? else { return Ok(false) };
        let database = self.shared.take(&mut guard).ok_or(CommitError::Closed)?;
        let failed = |error| CommitError::Store { reason: self.shared.unwritten(&error) };
        *guard = Some(database.prune(boundary).await.map_err(failed)?);
        Ok(true)
    }

    /// Where the second file begins, if the first can be removed.
    fn prunable_to(
        &self,
        oldest: &StateCommitment,
        database: &Option<Database<E>>,
    ) -> Result<Option<Location>, CommitError> {
        let database = self.shared.opened(database).ok_or(CommitError::Closed)?;
        let needed_from = oldest.ops_start.min(*database.sync_boundary());
        let file = self.shared.file_operations.get();
        let second = (*database.bounds().start / file).saturating_add(1).saturating_mul(file);
        Ok((second <= needed_from).then(|| Location::new(second)))
    }

    fn assert_owns(&self, batch: &QmdbBatch<E>) {
        assert!(Arc::ptr_eq(&self.shared, &batch.shared), "a batch is used with the store that sealed it");
    }
}

impl<E: Context + Spawner> StateStore for QmdbStore<E> {
    type Batch = QmdbBatch<E>;

    fn tip(&self) -> QmdbBatch<E> {
        QmdbBatch { shared: self.shared.clone(), layer: self.shared.tip() }
    }

    async fn seal(&self, parent: &QmdbBatch<E>, diff: &StateDiff) -> Result<QmdbBatch<E>, SealError> {
        self.assert_owns(parent);
        let layer = self.seal_diff(parent, diff).await?;
        Ok(QmdbBatch { shared: self.shared.clone(), layer })
    }

    /// The batch is durable when this returns. Dropping the future earlier closes the store.
    async fn commit(&self, batch: &QmdbBatch<E>) -> Result<(), CommitError> {
        self.assert_owns(batch);
        self.commit_layer(&batch.layer).await
    }

    async fn prove(&self, header: &Header, key: StateKey) -> Result<StateProof, ProveError> {
        // Calls the inherent method of the same name.
        Self::prove(self, header, key).await
    }
}

impl<E: Context + Spawner> Shared<E> {
    /// The database, unless the store is closed. Call it after reading the head: a store closes before its head
    /// goes back, so a caller that saw the previous head finds the store closed and never reads values that are
    /// not durable.
    fn opened<'g>(&self, database: &'g Option<Database<E>>) -> Option<&'g Database<E>> {
        database.as_ref().filter(|_| !self.is_closed.load(Ordering::Acquire))
    }

    /// Takes the database for a mutation, unless an earlier one has failed.
    fn take(&self, database: &mut Option<Database<E>>) -> Option<Database<E>> {
        database.take_if(|_| !self.is_closed.load(Ordering::Acquire))
    }

    fn tip(&self) -> Arc<Layer> {
        Arc::clone(&self.tip.lock().expect("nothing panics while it holds the tip"))
    }

    fn set_tip(&self, tip: Arc<Layer>) {
        *self.tip.lock().expect("nothing panics while it holds the tip") = tip;
    }

    fn unread(&self, error: &QmdbError) -> String {
        open::unread(&self.partition, error)
    }

    fn unwritten(&self, error: &QmdbError) -> String {
        open::unwritten(&self.partition, error)
    }
}

/// Closes the store on drop unless disarmed: the applied batch may not be on disk.
struct Closing<'s, E: Context + Spawner> {
    shared: &'s Shared<E>,
    /// The last head known to be on disk; `None` disarms.
    before: Option<Arc<Layer>>,
}

impl<E: Context + Spawner> Drop for Closing<'_, E> {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            self.shared.is_closed.store(true, Ordering::Release);
            self.shared.set_tip(before);
        }
    }
}

/// Checks in the same order as the memory store, so that both reject the same diff for the same reason.
fn check_change(change: &StateChange, found: Option<Bytes>) -> Result<(), SealError> {
    let StateChange { key, old, new } = change;
    if *old != found {
        return Err(SealError::OldValueDiffers { key: *key, given: old.clone(), found });
    }
    let given = new.as_ref().map_or(0, |value| value.len());
    if given > STATE_VALUE_BYTES_MAX {
        return Err(SealError::ValueTooLarge { key: *key, given, max: STATE_VALUE_BYTES_MAX });
    }
    Ok(())
}

fn slot(change: &StateChange) -> Slot<Value> {
    change.new.clone().map_or(Slot::Delete, |new| Slot::Put(Value(new)))
}

/// Applies a batch and starts to make it durable. Unlike QMDB's `commit`, this also records how much is
/// durable: opening then has little to check, and damage below that point is an error, not a shorter log.
async fn apply<E: Context + Spawner>(
    database: Database<E>,
    sealed: &Sealed,
) -> Result<(Database<E>, Handle<()>), QmdbError> {
    database.apply_batch(Arc::clone(sealed)).await?.start_sync().await
}

fn root(sealed: &Sealed) -> B256 {
    B256::from_slice(sealed.root().as_ref())
}

impl<E: Context + Spawner> StateView for QmdbBatch<E> {
    async fn get_many(&self, keys: &[StateKey]) -> Result<Vec<Option<Bytes>>, StateReadError> {
        let Some(&first) = keys.first() else {
            return Ok(Vec::new());
        };
        let failed = |reason: String| StateReadError::failed(first, reason);
        let guard = self.shared.database.read().await;
        let tip = self.shared.tip();
        let closed = || StateReadError::closed(first, CommitError::Closed.to_string());
        let database = self.shared.opened(&guard).ok_or_else(closed)?;
        self.layer.check_live(&tip).map_err(|stale| failed(stale.to_string()))?;
        let hashed: Vec<Key> = keys.iter().map(key).collect();
        let hashed: Vec<&Key> = hashed.iter().collect();
        let found = self.layer.sealed.get_many(&hashed, database).await;
        let found = found.map_err(|error| failed(self.shared.unread(&error)))?;
        Ok(found.into_iter().map(|value| value.map(|value| value.0)).collect())
    }
}

impl<E: Context + Spawner> SealedBatch for QmdbBatch<E> {
    fn commitment(&self) -> StateCommitment {
        let sealed = &self.layer.sealed;
        StateCommitment {
            state_root: root(sealed),
            ops_root: B256::from_slice(sealed.ops_root().as_ref()),
            ops_start: *sealed.sync_boundary(),
            ops_end: *sealed.bounds().tip.size,
        }
    }
}

impl<E: Context + Spawner> Clone for QmdbStore<E> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<E: Context + Spawner> Clone for QmdbBatch<E> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), layer: self.layer.clone() }
    }
}

impl<E: Context + Spawner> fmt::Debug for QmdbBatch<E> {
    // Only the layer itself: a chain of parents can be too long to print.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QmdbBatch")
            .field("height", &self.layer.height)
            .field("commitment", &self.commitment())
            .finish_non_exhaustive()
    }
}
