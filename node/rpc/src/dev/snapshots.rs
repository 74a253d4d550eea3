//! Everything as it was.

use super::{Dev, refused};
use alloy_primitives::U256;
use almanac_consensus::ControlError;
use jsonrpsee::{core::RpcResult, proc_macros::rpc};

#[rpc(server)]
pub(crate) trait SnapshotsApi {
    /// Remembers everything, and answers with a number to come back by.
    #[method(name = "evm_snapshot", aliases = ["anvil_snapshot"])]
    async fn snapshot(&self) -> RpcResult<U256>;

    /// Goes back to a snapshot, if it is still there. It is used up, with all later ones.
    #[method(name = "evm_revert", aliases = ["anvil_revert"])]
    async fn revert(&self, id: U256) -> RpcResult<bool>;
}

#[jsonrpsee::core::async_trait]
impl SnapshotsApiServer for Dev {
    async fn snapshot(&self) -> RpcResult<U256> {
        Ok(U256::from(self.controls.snapshot().await.map_err(|error| refused(&error))?))
    }

    async fn revert(&self, id: U256) -> RpcResult<bool> {
        // Numbers that were never given out are unknown, like those that were used up.
        match self.controls.revert(id.saturating_to()).await {
            Ok(_) => Ok(true),
            Err(ControlError::UnknownSnapshot { .. }) => Ok(false),
            Err(error) => Err(refused(&error)),
        }
    }
}
