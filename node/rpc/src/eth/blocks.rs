//! Blocks, transactions and receipts.

use super::Eth;
use crate::{
    answer::Answer,
    error,
    types::{RpcBlock, RpcReceipt, RpcTransaction, user_transaction},
};
use alloy_eips::{BlockId, BlockNumberOrTag};
use alloy_primitives::{Address, BlockHash, Bytes, TxHash, U64};
use almanac_index::{IndexedBlock, Location};
use jsonrpsee::{core::RpcResult, proc_macros::rpc};
use std::sync::Arc;

#[rpc(server)]
pub(crate) trait BlocksApi {
    /// Height of the last block.
    #[method(name = "eth_blockNumber")]
    fn block_number(&self) -> RpcResult<U64>;

    /// The block with a hash, or null.
    #[method(name = "eth_getBlockByHash")]
    async fn block_by_hash(
        &self,
        hash: BlockHash,
        is_full: Option<bool>,
    ) -> RpcResult<Answer<Option<RpcBlock>>>;

    /// The block at a height, or null.
    #[method(name = "eth_getBlockByNumber")]
    async fn block_by_number(
        &self,
        number: BlockNumberOrTag,
        is_full: Option<bool>,
    ) -> RpcResult<Answer<Option<RpcBlock>>>;

    /// Receipts of everything in a block, or null.
    #[method(name = "eth_getBlockReceipts")]
    async fn block_receipts(&self, block: BlockId) -> RpcResult<Answer<Option<Vec<RpcReceipt>>>>;

    /// How much ran in a block.
    #[method(name = "eth_getBlockTransactionCountByHash")]
    async fn count_by_hash(&self, hash: BlockHash) -> RpcResult<Answer<Option<U64>>>;

    /// How much ran in a block.
    #[method(name = "eth_getBlockTransactionCountByNumber")]
    async fn count_by_number(&self, number: BlockNumberOrTag) -> RpcResult<Answer<Option<U64>>>;

    /// There are no uncles.
    #[method(name = "eth_getUncleCountByBlockHash")]
    async fn uncle_count_by_hash(&self, hash: BlockHash) -> RpcResult<Answer<Option<U64>>>;

    /// There are no uncles.
    #[method(name = "eth_getUncleCountByBlockNumber")]
    async fn uncle_count_by_number(&self, number: BlockNumberOrTag) -> RpcResult<Answer<Option<U64>>>;

    /// There are no uncles.
    #[method(name = "eth_getUncleByBlockHashAndIndex")]
    fn uncle_by_hash(&self, hash: BlockHash, index: U64) -> RpcResult<Option<RpcBlock>>;

    /// There are no uncles.
    #[method(name = "eth_getUncleByBlockNumberAndIndex")]
    fn uncle_by_number(&self, number: BlockNumberOrTag, index: U64) -> RpcResult<Option<RpcBlock>>;

    /// A transaction in a block or in the pool, or null.
    #[method(name = "eth_getTransactionByHash")]
    async fn transaction(&self, hash: TxHash) -> RpcResult<Answer<Option<RpcTransaction>>>;

    /// A transaction by its place.
    #[method(name = "eth_getTransactionByBlockHashAndIndex")]
    async fn transaction_by_hash_and_index(
        &self,
        hash: BlockHash,
        index: U64,
    ) -> RpcResult<Answer<Option<RpcTransaction>>>;

    /// A transaction by its place.
    #[method(name = "eth_getTransactionByBlockNumberAndIndex")]
    async fn transaction_by_number_and_index(
        &self,
        number: BlockNumberOrTag,
        index: U64,
    ) -> RpcResult<Answer<Option<RpcTransaction>>>;

    /// The transaction that used up a sequence number, or waits with it.
    #[method(name = "eth_getTransactionBySenderAndNonce")]
    async fn transaction_by_sender(
        &self,
        sender: Address,
        nonce: U64,
    ) -> RpcResult<Answer<Option<RpcTransaction>>>;

    /// The signed encoding of a transaction, or null.
    #[method(name = "eth_getRawTransactionByHash", aliases = ["debug_getRawTransaction"])]
    async fn raw_transaction(&self, hash: TxHash) -> RpcResult<Answer<Option<Bytes>>>;

    /// The signed encoding of a transaction by its place, or null.
    #[method(name = "eth_getRawTransactionByBlockHashAndIndex")]
    async fn raw_by_hash_and_index(&self, hash: BlockHash, index: U64) -> RpcResult<Answer<Option<Bytes>>>;

    /// The signed encoding of a transaction by its place, or null.
    #[method(name = "eth_getRawTransactionByBlockNumberAndIndex")]
    async fn raw_by_number_and_index(
        &self,
        number: BlockNumberOrTag,
        index: U64,
    ) -> RpcResult<Answer<Option<Bytes>>>;

    /// What became of a transaction, or null while it is not in a block.
    #[method(name = "eth_getTransactionReceipt")]
    async fn transaction_receipt(&self, hash: TxHash) -> RpcResult<Answer<Option<RpcReceipt>>>;
}

/// How to ask for less than a block.
const LESS: &str = "ask for its transactions or receipts one by one";

impl Eth {
    /// Reads, off the threads that serve connections: a block may be megabytes.
    pub(super) async fn read<T: serde::Serialize + 'static>(
        &self,
        work: impl FnOnce(&Self) -> RpcResult<T> + Send + 'static,
    ) -> RpcResult<Answer<T>> {
        let eth = self.clone();
        self.reads.answer(LESS, move || work(&eth)).await
    }

    /// The block with this name; "pending" is the one that would come next, with nothing in it yet.
    fn named(&self, id: BlockId) -> RpcResult<Option<Arc<IndexedBlock>>> {
        if id.is_pending() { Ok(Some(Arc::new(self.upcoming_block()?))) } else { self.view.find(id) }
    }

    async fn shown(&self, id: BlockId, is_full: Option<bool>) -> RpcResult<Answer<Option<RpcBlock>>> {
        self.read(move |eth| {
            let show = if id.is_pending() { RpcBlock::pending } else { RpcBlock::new };
            let block = eth.named(id)?;
            Ok(block.map(|block| show(&block, eth.view.chain.id, is_full.unwrap_or(false))))
        })
        .await
    }

    async fn count(&self, id: BlockId) -> RpcResult<Answer<Option<U64>>> {
        self.read(move |eth| Ok(eth.named(id)?.map(|block| U64::from(block.receipts.len() - block.unseen()))))
            .await
    }

    async fn uncle_count(&self, id: BlockId) -> RpcResult<Answer<Option<U64>>> {
        self.read(move |eth| Ok(eth.view.find(id)?.map(|_| U64::ZERO))).await
    }

    /// Looks at what a block shows at an index.
    async fn at_index<T: serde::Serialize + 'static>(
        &self,
        id: BlockId,
        index: U64,
        look: impl FnOnce(&Self, &IndexedBlock, usize) -> Option<T> + Send + 'static,
    ) -> RpcResult<Answer<Option<T>>> {
        self.read(move |eth| {
            let Some(block) = eth.view.find(id)? else { return Ok(None) };
            let index = usize::try_from(index.to::<u64>()).unwrap_or(usize::MAX);
            Ok(look(eth, &block, index.saturating_add(block.unseen())))
        })
        .await
    }

    /// What is in a block, or else in the pool. Blocks come first: what has a receipt is not pending, though the pool
    /// forgets it a moment later. And last once more: what left the pool meanwhile is in a block by then.
    pub(super) fn found<T>(
        in_block: impl Fn() -> RpcResult<Option<T>>,
        in_pool: impl FnOnce() -> Option<T>,
    ) -> RpcResult<Option<T>> {
        match in_block()? {
            Some(found) => Ok(Some(found)),
            None => in_pool().map_or_else(in_block, |waiting| Ok(Some(waiting))),
        }
    }

    /// A transaction in the pool.
    pub(super) fn pending(&self, hash: TxHash) -> Option<RpcTransaction> {
        let waiting = self.admission.pool().lock().get(hash).cloned();
        waiting.map(|waiting| RpcTransaction::pending(&waiting))
    }

    async fn shown_at(&self, id: BlockId, index: U64) -> RpcResult<Answer<Option<RpcTransaction>>> {
        let show = |eth: &Self, block: &IndexedBlock, index| {
            RpcTransaction::of_block(block, index, eth.view.chain.id)
        };
        self.at_index(id, index, show).await
    }

    async fn raw_at(&self, id: BlockId, index: U64) -> RpcResult<Answer<Option<Bytes>>> {
        self.at_index(id, index, |_, block, index| signed_encoding(block, index)).await
    }

    pub(super) fn located(&self, hash: TxHash) -> RpcResult<Option<(Location, Arc<IndexedBlock>)>> {
        self.view.index.transaction(hash).map_err(error::internal)
    }

    fn find_transaction(&self, hash: TxHash) -> RpcResult<Option<RpcTransaction>> {
        let in_block = || {
            let found = self.located(hash)?;
            Ok(found.and_then(|(location, block)| {
                RpcTransaction::of_block(&block, location.index, self.view.chain.id)
            }))
        };
        Self::found(in_block, || self.pending(hash))
    }

    fn find_by_sender(&self, sender: Address, nonce: u64) -> RpcResult<Option<RpcTransaction>> {
        let in_block = || {
            let signed = self.view.index.signed_with_nonce(sender, nonce).map_err(error::internal)?;
            signed.map_or(Ok(None), |signed| self.find_transaction(signed.hash))
        };
        let in_pool = || {
            let pool = self.admission.pool().lock();
            let mut own = pool.pending_of(sender).map(|(waiting, _)| waiting);
            own.find(|waiting| waiting.transaction().nonce() == nonce).map(RpcTransaction::pending)
        };
        Self::found(in_block, in_pool)
    }
}

#[jsonrpsee::core::async_trait]
impl BlocksApiServer for Eth {
    fn block_number(&self) -> RpcResult<U64> {
        Ok(U64::from(self.view.index.height()))
    }

    async fn block_by_hash(
        &self,
        hash: BlockHash,
        is_full: Option<bool>,
    ) -> RpcResult<Answer<Option<RpcBlock>>> {
        self.shown(hash.into(), is_full).await
    }

    async fn block_by_number(
        &self,
        number: BlockNumberOrTag,
        is_full: Option<bool>,
    ) -> RpcResult<Answer<Option<RpcBlock>>> {
        self.shown(number.into(), is_full).await
    }

    async fn block_receipts(&self, block: BlockId) -> RpcResult<Answer<Option<Vec<RpcReceipt>>>> {
        self.read(move |eth| Ok(eth.view.find(block)?.map(|block| RpcReceipt::all(&block)))).await
    }

    async fn count_by_hash(&self, hash: BlockHash) -> RpcResult<Answer<Option<U64>>> {
        self.count(hash.into()).await
    }

    async fn count_by_number(&self, number: BlockNumberOrTag) -> RpcResult<Answer<Option<U64>>> {
        self.count(number.into()).await
    }

    async fn uncle_count_by_hash(&self, hash: BlockHash) -> RpcResult<Answer<Option<U64>>> {
        self.uncle_count(hash.into()).await
    }

    async fn uncle_count_by_number(&self, number: BlockNumberOrTag) -> RpcResult<Answer<Option<U64>>> {
        self.uncle_count(number.into()).await
    }

    fn uncle_by_hash(&self, _: BlockHash, _: U64) -> RpcResult<Option<RpcBlock>> {
        Ok(None)
    }

    fn uncle_by_number(&self, _: BlockNumberOrTag, _: U64) -> RpcResult<Option<RpcBlock>> {
        Ok(None)
    }

    async fn transaction(&self, hash: TxHash) -> RpcResult<Answer<Option<RpcTransaction>>> {
        self.read(move |eth| eth.find_transaction(hash)).await
    }

    async fn transaction_by_hash_and_index(
        &self,
        hash: BlockHash,
        index: U64,
    ) -> RpcResult<Answer<Option<RpcTransaction>>> {
        self.shown_at(hash.into(), index).await
    }

    async fn transaction_by_number_and_index(
        &self,
        number: BlockNumberOrTag,
        index: U64,
    ) -> RpcResult<Answer<Option<RpcTransaction>>> {
        self.shown_at(number.into(), index).await
    }

    async fn transaction_by_sender(
        &self,
        sender: Address,
        nonce: U64,
    ) -> RpcResult<Answer<Option<RpcTransaction>>> {
        self.read(move |eth| eth.find_by_sender(sender, nonce.to())).await
    }

    async fn raw_transaction(&self, hash: TxHash) -> RpcResult<Answer<Option<Bytes>>> {
        self.read(move |eth| {
            if let Some(waiting) = eth.admission.pool().lock().get(hash) {
                return Ok(Some(waiting.transaction().encoded().clone()));
            }
            let found = eth.located(hash)?;
            Ok(found.and_then(|(location, block)| signed_encoding(&block, location.index)))
        })
        .await
    }

    async fn raw_by_hash_and_index(&self, hash: BlockHash, index: U64) -> RpcResult<Answer<Option<Bytes>>> {
        self.raw_at(hash.into(), index).await
    }

    async fn raw_by_number_and_index(
        &self,
        number: BlockNumberOrTag,
        index: U64,
    ) -> RpcResult<Answer<Option<Bytes>>> {
        self.raw_at(number.into(), index).await
    }

    async fn transaction_receipt(&self, hash: TxHash) -> RpcResult<Answer<Option<RpcReceipt>>> {
        self.read(move |eth| {
            Ok(eth.located(hash)?.and_then(|(location, block)| RpcReceipt::new(&block, location.index)))
        })
        .await
    }
}

/// The encoding of a signed transaction; nobody signed the chain's own ones.
fn signed_encoding(block: &IndexedBlock, index: usize) -> Option<Bytes> {
    user_transaction(block, index).map(|transaction| transaction.encoded().clone())
}

impl Eth {
    /// What became of a transaction that is known to be in a block.
    pub(super) async fn receipt_of(&self, hash: TxHash) -> RpcResult<Answer<RpcReceipt>> {
        self.read(move |eth| {
            let found =
                eth.located(hash)?.and_then(|(location, block)| RpcReceipt::new(&block, location.index));
            found.ok_or_else(|| error::unknown_transaction(hash))
        })
        .await
    }

    /// Whether a transaction is in a block.
    pub(super) fn is_included(&self, hash: TxHash) -> bool {
        matches!(self.view.index.location(hash), Ok(Some(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn what_has_a_receipt_is_not_pending_and_what_leaves_the_pool_is_not_lost() {
        let found = Eth::found(|| Ok(Some("block")), || Some("pool"));
        assert_eq!(found.unwrap(), Some("block"));
        assert_eq!(Eth::found(|| Ok(None), || Some("pool")).unwrap(), Some("pool"));
        let looks = Cell::new(0);
        let in_block = || {
            looks.set(looks.get() + 1);
            Ok((looks.get() > 1).then_some("block"))
        };
        assert_eq!(Eth::found(in_block, || None).unwrap(), Some("block"), "included between two looks");
        assert_eq!(Eth::found(|| Ok(None::<&str>), || None).unwrap(), None);
    }
}
