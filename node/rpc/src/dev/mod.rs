//! Developer controls, under the names that tools know: `evm_`, `anvil_` and `hardhat_`.
//!
//! They are a separate module that only `almanac dev` serves. The chain itself refuses edits and impersonation unless
//! its genesis allows them.

mod editing;
mod info;
mod mining;
mod pool;
mod rules;
mod snapshots;
mod state;
mod time;

use crate::{
    error,
    heavy::{Heavy, HeavyLimits},
    impersonation::Impersonation,
    served::SetLogging,
    view::View,
};
use almanac_consensus::{Admission, BlockId, ControlError, Controls};
use almanac_exec::Edit;
use jsonrpsee::{RpcModule, core::RpcResult, types::ErrorObjectOwned};
use std::sync::Arc;

/// Follows a developer's requests.
#[derive(Clone)]
pub(crate) struct Dev {
    view: View,
    admission: Admission,
    controls: Controls,
    impersonation: Arc<Impersonation>,
    set_logging: SetLogging,
    client_version: Arc<str>,
    /// Dumps and many blocks at once wait here.
    heavy: Heavy,
}

impl Dev {
    /// Controls of the sequencer behind `controls`, whose chain `view` shows and whose pool `admission` has, and
    /// of the lines that are logged about it.
    pub(crate) fn new(
        view: View,
        admission: Admission,
        controls: Controls,
        impersonation: Arc<Impersonation>,
        set_logging: SetLogging,
        client_version: &str,
    ) -> Self {
        let heavy = Heavy::new(HeavyLimits::default());
        Self {
            view,
            admission,
            controls,
            impersonation,
            set_logging,
            client_version: client_version.into(),
            heavy,
        }
    }

    /// All of its methods.
    pub(crate) fn into_module(self) -> RpcModule<()> {
        let mut all = RpcModule::new(());
        let parts: [jsonrpsee::Methods; 8] = [
            mining::MiningApiServer::into_rpc(self.clone()).into(),
            time::TimeApiServer::into_rpc(self.clone()).into(),
            snapshots::SnapshotsApiServer::into_rpc(self.clone()).into(),
            editing::EditingApiServer::into_rpc(self.clone()).into(),
            pool::PoolApiServer::into_rpc(self.clone()).into(),
            rules::RulesApiServer::into_rpc(self.clone()).into(),
            info::InfoApiServer::into_rpc(self.clone()).into(),
            state::StateApiServer::into_rpc(self).into(),
        ];
        for part in parts {
            all.merge(part).expect("no two parts have a method of the same name");
        }
        all
    }

    async fn edit(&self, edits: Vec<Edit>) -> RpcResult<BlockId> {
        self.controls.edit(edits).await.map_err(|error| refused(&error))
    }
}

/// A request that is not followed.
fn refused(problem: &ControlError) -> ErrorObjectOwned {
    match problem {
        ControlError::Stopped | ControlError::Unread(_) => error::internal(problem),
        ControlError::NotAfterTip { .. } | ControlError::TooLate => error::invalid(problem),
        ControlError::TooManyBlocks { .. } | ControlError::TravelTooLong { .. } => error::limit(problem),
        ControlError::UnknownSnapshot { .. }
        | ControlError::HistoryGone { .. }
        | ControlError::KeptForGood
        | ControlError::NotATransaction(_)
        | ControlError::NotIncluded(_)
        | ControlError::Edit(_)
        | ControlError::Prove(_) => error::refused(problem),
    }
}
