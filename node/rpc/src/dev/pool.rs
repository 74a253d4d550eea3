//! Drops pending transactions.

use super::Dev;
use alloy_primitives::{Address, TxHash};
use jsonrpsee::{core::RpcResult, proc_macros::rpc};

#[rpc(server)]
pub(crate) trait PoolApi {
    /// Drops a pending transaction, and answers with its hash if it was there.
    #[method(name = "anvil_dropTransaction")]
    fn drop_transaction(&self, hash: TxHash) -> RpcResult<Option<TxHash>>;

    /// The same, and answers whether it was there: Hardhat insists on a boolean.
    #[method(name = "hardhat_dropTransaction")]
    fn drop_for_hardhat(&self, hash: TxHash) -> RpcResult<bool>;

    /// Drops all pending transactions.
    #[method(name = "anvil_dropAllTransactions", aliases = ["hardhat_dropAllTransactions"])]
    fn drop_all(&self) -> RpcResult<()>;

    /// Drops the pending transactions of one sender.
    #[method(name = "anvil_removePoolTransactions")]
    fn drop_all_of(&self, sender: Address) -> RpcResult<()>;
}

impl PoolApiServer for Dev {
    fn drop_transaction(&self, hash: TxHash) -> RpcResult<Option<TxHash>> {
        Ok(self.admission.pool().lock().remove(hash).map(|dropped| dropped.hash()))
    }

    fn drop_for_hardhat(&self, hash: TxHash) -> RpcResult<bool> {
        Ok(self.drop_transaction(hash)?.is_some())
    }

    fn drop_all(&self) -> RpcResult<()> {
        self.admission.pool().lock().clear();
        Ok(())
    }

    fn drop_all_of(&self, sender: Address) -> RpcResult<()> {
        let mut pool = self.admission.pool().lock();
        let numbered = pool.pending_of(sender).map(|(transaction, _)| transaction.hash());
        let hashes: Vec<_> =
            numbered.chain(pool.orderless_of(sender).map(|orderless| orderless.hash())).collect();
        for hash in hashes {
            pool.remove(hash);
        }
        Ok(())
    }
}
