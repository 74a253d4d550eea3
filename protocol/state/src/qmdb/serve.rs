//! Serves nodes that copy the state: operations of the log with their proof, bounded in size and work.

use super::{
    QmdbError, QmdbStore,
    open::is_pruned,
    sync::{SyncRequest, SyncResponse},
};
use almanac_primitives::params::STATE_VALUE_BYTES_MAX;
use commonware_codec::EncodeSize as _;
use commonware_runtime::Spawner;
use commonware_storage::{Context, qmdb::sync::Source as _};
use commonware_utils::NZU64;
use std::num::NonZeroU64;

/// Most operations in one answer.
pub const ANSWER_OPERATIONS_MAX: NonZeroU64 = NZU64!(1_024);

/// Largest answer; a single operation is always returned, whatever its size.
pub const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Operations to read first: so few that they fit an answer with their proof, whatever their size.
const STEP_OPERATIONS_FIRST: NonZeroU64 = NZU64!(8);

/// Most growth from one step to the next.
const STEP_GROWTH_MAX: u64 = 4;

const _: () =
    assert!(STEP_OPERATIONS_FIRST.get() * STATE_VALUE_BYTES_MAX as u64 <= ANSWER_BYTES_MAX as u64 / 2);

/// Why a request is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServeError {
    /// The log is shorter.
    #[error("the log has {newest} operations, not {asked}")]
    Ahead {
        /// The requested size.
        asked: u64,
        /// The size of the log.
        newest: u64,
    },
    /// The requested operations were pruned.
    #[error("the log was pruned beyond operation {start} of the state with {size}: ask for a newer state")]
    Pruned {
        /// The first requested operation.
        start: u64,
        /// The requested size.
        size: u64,
    },
    /// The store failed.
    #[error("the operations cannot be read: {reason}")]
    Store {
        /// The database's error.
        reason: String,
    },
    /// An earlier mutation failed.
    #[error("the store is closed after an earlier failure: start again")]
    Closed,
}

impl<E: Context + Spawner> QmdbStore<E> {
    /// Serves a peer that copies the state. Returns at least one operation, but perhaps fewer than requested.
    ///
    /// Commits wait while operations are read. So operations are read in steps, few at a time while they are
    /// large, and a commit may run between two steps.
    pub async fn serve(&self, request: SyncRequest) -> Result<SyncResponse, ServeError> {
        let asked = request.max_ops();
        let mut count = asked.min(STEP_OPERATIONS_FIRST);
        let mut best = self.serve_step(at_most(request, count)).await?;
        loop {
            let next = next_step(count, best.encode_size()).min(asked);
            if next <= count {
                return Ok(best);
            }
            let response = self.serve_step(at_most(request, next)).await?;
            if response.encode_size() > ANSWER_BYTES_MAX {
                return Ok(best);
            }
            (count, best) = (next, response);
        }
    }

    async fn serve_step(&self, request: SyncRequest) -> Result<SyncResponse, ServeError> {
        let guard = self.shared.database.read().await;
        let database = self.shared.opened(&guard).ok_or(ServeError::Closed)?;
        let (asked, newest) = (*request.size(), *database.bounds().end);
        if asked > newest {
            return Err(ServeError::Ahead { asked, newest });
        }
        let served = database.serve(request).await;
        served.map(|(response, _)| response).map_err(|error| self.refusal(&request, &error))
    }

    fn refusal(&self, request: &SyncRequest, error: &QmdbError) -> ServeError {
        if is_pruned(error) {
            return ServeError::Pruned { start: *request.start(), size: *request.size() };
        }
        ServeError::Store { reason: self.shared.unread(error) }
    }
}

/// How many operations to read next, given the number and size of the last step: as many as fit an answer at
/// the same average size.
fn next_step(count: NonZeroU64, bytes: usize) -> NonZeroU64 {
    let fit = u64::try_from(ANSWER_BYTES_MAX / bytes.max(1)).expect("a number of answers fits 64 bits");
    let next = count.saturating_mul(NonZeroU64::new(fit.min(STEP_GROWTH_MAX)).unwrap_or(NonZeroU64::MIN));
    next.min(ANSWER_OPERATIONS_MAX)
}

fn at_most(request: SyncRequest, count: NonZeroU64) -> SyncRequest {
    match request {
        SyncRequest::Operations { size, start, max_ops } => {
            SyncRequest::Operations { size, start, max_ops: max_ops.min(count) }
        }
        boundary @ SyncRequest::Boundary { .. } => boundary,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(count: u64, bytes: usize) -> u64 {
        next_step(NonZeroU64::new(count).unwrap(), bytes).get()
    }

    #[test]
    fn small_operations_are_read_in_ever_larger_steps_up_to_a_whole_answer() {
        assert_eq!(next(8, 800), 32);
        assert_eq!(next(8, 0), 32);
        assert_eq!(next(512, 50_000), 1_024);
        assert_eq!(next(1_024, 100_000), 1_024);
    }

    #[test]
    fn a_step_that_would_not_fit_is_not_taken() {
        assert_eq!(next(8, ANSWER_BYTES_MAX / 4), 32);
        assert_eq!(next(8, ANSWER_BYTES_MAX / 4 + 1), 24);
        assert_eq!(next(8, ANSWER_BYTES_MAX / 2), 16);
        assert_eq!(next(8, ANSWER_BYTES_MAX / 2 + 1), 8);
        assert_eq!(next(8, ANSWER_BYTES_MAX + 1), 8);
    }
}
