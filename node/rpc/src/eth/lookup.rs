//! `almanac_getTransaction`: a transaction wherever it is, with what became of it (ORDERLESS-20).

use super::Eth;
use crate::{
    answer::Answer,
    types::{RpcReceipt, RpcTransaction, Version},
};
use alloy_primitives::TxHash;
use jsonrpsee::{core::RpcResult, proc_macros::rpc};
use serde::Serialize;

#[rpc(server)]
pub(crate) trait LookupApi {
    /// A transaction in the pool or in a block, as REST shows it, or null.
    #[method(name = "almanac_getTransaction")]
    async fn get_transaction(&self, hash: TxHash) -> RpcResult<Answer<Option<FoundTransaction>>>;
}

/// A transaction and where it is.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FoundTransaction {
    status: Standing,
    /// `null` while it is pending.
    version: Option<Version>,
    transaction: RpcTransaction,
    /// `null` while it is pending.
    receipt: Option<RpcReceipt>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Standing {
    Pending,
    Committed,
}

#[jsonrpsee::core::async_trait]
impl LookupApiServer for Eth {
    async fn get_transaction(&self, hash: TxHash) -> RpcResult<Answer<Option<FoundTransaction>>> {
        self.read(move |eth| eth.look_up(hash)).await
    }
}

impl Eth {
    fn look_up(&self, hash: TxHash) -> RpcResult<Option<FoundTransaction>> {
        let in_block = || {
            let Some((location, block)) = self.located(hash)? else { return Ok(None) };
            let transaction = RpcTransaction::of_block(&block, location.index, self.view.chain.id);
            Ok(transaction.map(|transaction| FoundTransaction {
                status: Standing::Committed,
                version: Some(Version::of(location)),
                transaction,
                receipt: RpcReceipt::new(&block, location.index),
            }))
        };
        let in_pool = || {
            let (status, transaction) = (Standing::Pending, self.pending(hash)?);
            Some(FoundTransaction { status, version: None, transaction, receipt: None })
        };
        Self::found(in_block, in_pool)
    }
}
