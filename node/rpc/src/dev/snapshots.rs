//! Snapshot and revert.

use super::{Dev, refused};
use crate::error;
use alloy_primitives::U256;
use almanac_consensus::ControlError;
use jsonrpsee::{core::RpcResult, proc_macros::rpc};
use serde::Deserialize;

#[rpc(server)]
pub(crate) trait SnapshotsApi {
    /// Remembers everything, and answers with a number to come back by.
    #[method(name = "evm_snapshot", aliases = ["anvil_snapshot"])]
    async fn snapshot(&self) -> RpcResult<U256>;

    /// Goes back to a snapshot, if it is still there. It is used up, with all later ones.
    #[method(name = "evm_revert", aliases = ["anvil_revert"])]
    async fn revert(&self, id: U256) -> RpcResult<bool>;

    /// Starts anew from block 0. There is nothing that this chain could fork from.
    #[method(name = "anvil_reset", aliases = ["hardhat_reset"])]
    async fn reset(&self, options: Option<ResetOptions>) -> RpcResult<()>;
}

/// What tools ask of a chain that starts anew.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct ResetOptions {
    forking: Option<serde_json::Value>,
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

    async fn reset(&self, options: Option<ResetOptions>) -> RpcResult<()> {
        if options.unwrap_or_default().forking.is_some() {
            return Err(error::unsupported("forking", "this chain starts from its own genesis only"));
        }
        self.controls.reset().await.map_err(|error| refused(&error))?;
        self.impersonation.clear();
        Ok(())
    }
}
