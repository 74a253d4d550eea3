//! The state after some block, for asynchronous readers.

use alloy_primitives::Bytes;
use almanac_primitives::{StateKey, StateReadError};
use std::future::Future;

/// One fixed state. Repeated reads return the same value, or an error.
pub trait StateView: Send + Sync {
    /// The values of `keys`, in the order of the keys; `None` for a missing value.
    ///
    /// One call with many keys is much cheaper than many calls: a store can look them up in parallel.
    fn get_many(
        &self,
        keys: &[StateKey],
    ) -> impl Future<Output = Result<Vec<Option<Bytes>>, StateReadError>> + Send;
}
