//! The state after some block, for readers that can wait for a disk.

use alloy_primitives::Bytes;
use almanac_primitives::{StateKey, StateReadError};
use std::future::Future;

/// One fixed state. Reading it twice gives the same answer, or an error; never another answer.
pub trait StateView: Send + Sync {
    /// The values under `keys`, in the order of the keys; `None` where there is no value.
    ///
    /// One call with many keys is much cheaper than many calls: a store can look them up side by side.
    fn get_many(
        &self,
        keys: &[StateKey],
    ) -> impl Future<Output = Result<Vec<Option<Bytes>>, StateReadError>> + Send;
}
