//! `almanac_getFinality`: proves that a block is final.

use alloy_primitives::U64;
pub use almanac_proof::BlockFinality;
use jsonrpsee::{
    RpcModule,
    core::{RpcResult, async_trait},
    proc_macros::rpc,
};
use std::{future::Future, pin::Pin, sync::Arc};

/// Where certificates are found. Only a network has any.
pub trait FinalitySource: Send + Sync + 'static {
    /// For the block at `height`; `None` where it is not final yet.
    fn find(&self, height: u64) -> Pin<Box<dyn Future<Output = Option<BlockFinality>> + Send + '_>>;
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
