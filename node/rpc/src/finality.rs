//! `almanac_getFinality`: proves that a block is final.

use alloy_primitives::{BlockHash, Bytes, U64};
use jsonrpsee::{
    RpcModule,
    core::{RpcResult, async_trait},
    proc_macros::rpc,
};
use serde::{Deserialize, Serialize};
use std::{future::Future, pin::Pin, sync::Arc};

/// Where certificates are found. Only a network has any.
pub trait FinalitySource: Send + Sync + 'static {
    /// For the block at `height`; `None` where it is not final yet.
    fn find(&self, height: u64) -> Pin<Box<dyn Future<Output = Option<BlockFinality>> + Send + '_>>;
}

/// Shows that a block is final, to whoever has the genesis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BlockFinality {
    /// The block.
    pub number: U64,
    /// Its hash.
    pub hash: BlockHash,
    /// Canonical encodings of its header and of those above it, each the parent of the next. The last is of the
    /// block that was certified: most often the block itself.
    pub headers: Vec<Bytes>,
    /// What a quorum of the validators signed about the last.
    pub certificate: Bytes,
}

/// Methods about finality.
#[rpc(server)]
pub(crate) trait FinalityApi {
    /// What shows that the block at this height is final, or null where it is not.
    #[method(name = "almanac_getFinality")]
    async fn get_finality(&self, number: U64) -> RpcResult<Option<BlockFinality>>;
}

struct Answers(Arc<dyn FinalitySource>);

#[async_trait]
impl FinalityApiServer for Answers {
    async fn get_finality(&self, number: U64) -> RpcResult<Option<BlockFinality>> {
        Ok(self.0.find(number.to()).await)
    }
}

/// The methods, answered from `source`.
pub fn module(source: Arc<dyn FinalitySource>) -> RpcModule<()> {
    Answers(source).into_rpc().remove_context()
}
