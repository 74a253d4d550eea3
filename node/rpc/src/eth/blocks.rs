//! Blocks, transactions and receipts.

use super::Eth;
use crate::{
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
    fn block_by_hash(&self, hash: BlockHash, is_full: Option<bool>) -> RpcResult<Option<RpcBlock>>;

    /// The block at a height, or null.
    #[method(name = "eth_getBlockByNumber")]
    fn block_by_number(&self, number: BlockNumberOrTag, is_full: Option<bool>)
    -> RpcResult<Option<RpcBlock>>;

    /// Receipts of everything in a block, or null.
    #[method(name = "eth_getBlockReceipts")]
    fn block_receipts(&self, block: BlockId) -> RpcResult<Option<Vec<RpcReceipt>>>;

    /// How much ran in a block.
    #[method(name = "eth_getBlockTransactionCountByHash")]
    fn count_by_hash(&self, hash: BlockHash) -> RpcResult<Option<U64>>;

    /// How much ran in a block.
    #[method(name = "eth_getBlockTransactionCountByNumber")]
    fn count_by_number(&self, number: BlockNumberOrTag) -> RpcResult<Option<U64>>;

    /// There are no uncles.
    #[method(name = "eth_getUncleCountByBlockHash")]
    fn uncle_count_by_hash(&self, hash: BlockHash) -> RpcResult<Option<U64>>;

    /// There are no uncles.
    #[method(name = "eth_getUncleCountByBlockNumber")]
    fn uncle_count_by_number(&self, number: BlockNumberOrTag) -> RpcResult<Option<U64>>;

    /// There are no uncles.
    #[method(name = "eth_getUncleByBlockHashAndIndex")]
    fn uncle_by_hash(&self, hash: BlockHash, index: U64) -> RpcResult<Option<RpcBlock>>;

    /// There are no uncles.
    #[method(name = "eth_getUncleByBlockNumberAndIndex")]
    fn uncle_by_number(&self, number: BlockNumberOrTag, index: U64) -> RpcResult<Option<RpcBlock>>;

    /// A transaction in a block or in the pool, or null.
    #[method(name = "eth_getTransactionByHash")]
    fn transaction(&self, hash: TxHash) -> RpcResult<Option<RpcTransaction>>;

    /// A transaction by its place.
    #[method(name = "eth_getTransactionByBlockHashAndIndex")]
    fn transaction_by_hash_and_index(&self, hash: BlockHash, index: U64)
    -> RpcResult<Option<RpcTransaction>>;

    /// A transaction by its place.
    #[method(name = "eth_getTransactionByBlockNumberAndIndex")]
    fn transaction_by_number_and_index(
        &self,
        number: BlockNumberOrTag,
        index: U64,
    ) -> RpcResult<Option<RpcTransaction>>;

    /// The transaction that used up a sequence number, or waits with it.
    #[method(name = "eth_getTransactionBySenderAndNonce")]
    fn transaction_by_sender(&self, sender: Address, nonce: U64) -> RpcResult<Option<RpcTransaction>>;

    /// The signed encoding of a transaction, or null.
    #[method(name = "eth_getRawTransactionByHash", aliases = ["debug_getRawTransaction"])]
    fn raw_transaction(&self, hash: TxHash) -> RpcResult<Option<Bytes>>;

    /// What became of a transaction, or null while it is not in a block.
    #[method(name = "eth_getTransactionReceipt")]
    fn transaction_receipt(&self, hash: TxHash) -> RpcResult<Option<RpcReceipt>>;
}

impl Eth {
    /// The block with this name; "pending" is the one that would come next.
    fn named(&self, id: BlockId) -> RpcResult<Option<Arc<IndexedBlock>>> {
        if id.is_pending() { Ok(Some(Arc::new(self.upcoming_block()?))) } else { self.view.find(id) }
    }

    fn shown(&self, id: BlockId, is_full: Option<bool>) -> RpcResult<Option<RpcBlock>> {
        let block = self.named(id)?;
        let show =
            |block: Arc<IndexedBlock>| RpcBlock::new(&block, self.view.chain_id, is_full.unwrap_or(false));
        Ok(block.map(show))
    }

    fn count(&self, id: BlockId) -> RpcResult<Option<U64>> {
        Ok(self.named(id)?.map(|block| U64::from(block.receipts.len() - block.unseen())))
    }

    fn at_index(&self, id: BlockId, index: U64) -> RpcResult<Option<RpcTransaction>> {
        let Some(block) = self.view.find(id)? else { return Ok(None) };
        let index = usize::try_from(index.to::<u64>()).unwrap_or(usize::MAX).saturating_add(block.unseen());
        Ok(RpcTransaction::of_block(&block, index, self.view.chain_id))
    }

    fn located(&self, hash: TxHash) -> RpcResult<Option<(Location, Arc<IndexedBlock>)>> {
        self.view.index.transaction(hash).map_err(error::internal)
    }
}

impl BlocksApiServer for Eth {
    fn block_number(&self) -> RpcResult<U64> {
        Ok(U64::from(self.view.index.height()))
    }

    fn block_by_hash(&self, hash: BlockHash, is_full: Option<bool>) -> RpcResult<Option<RpcBlock>> {
        self.shown(hash.into(), is_full)
    }

    fn block_by_number(
        &self,
        number: BlockNumberOrTag,
        is_full: Option<bool>,
    ) -> RpcResult<Option<RpcBlock>> {
        self.shown(number.into(), is_full)
    }

    fn block_receipts(&self, block: BlockId) -> RpcResult<Option<Vec<RpcReceipt>>> {
        Ok(self.view.find(block)?.map(|block| RpcReceipt::all(&block)))
    }

    fn count_by_hash(&self, hash: BlockHash) -> RpcResult<Option<U64>> {
        self.count(hash.into())
    }

    fn count_by_number(&self, number: BlockNumberOrTag) -> RpcResult<Option<U64>> {
        self.count(number.into())
    }

    fn uncle_count_by_hash(&self, hash: BlockHash) -> RpcResult<Option<U64>> {
        Ok(self.view.find(hash.into())?.map(|_| U64::ZERO))
    }

    fn uncle_count_by_number(&self, number: BlockNumberOrTag) -> RpcResult<Option<U64>> {
        Ok(self.view.find(number.into())?.map(|_| U64::ZERO))
    }

    fn uncle_by_hash(&self, _: BlockHash, _: U64) -> RpcResult<Option<RpcBlock>> {
        Ok(None)
    }

    fn uncle_by_number(&self, _: BlockNumberOrTag, _: U64) -> RpcResult<Option<RpcBlock>> {
        Ok(None)
    }

    fn transaction(&self, hash: TxHash) -> RpcResult<Option<RpcTransaction>> {
        // The pool first: what leaves it is in the index by then, never the other way round.
        if let Some(waiting) = self.admission.pool().lock().get(hash) {
            return Ok(Some(RpcTransaction::pending(waiting)));
        }
        let found = self.located(hash)?;
        Ok(found.and_then(|(location, block)| {
            RpcTransaction::of_block(&block, location.index, self.view.chain_id)
        }))
    }

    fn transaction_by_hash_and_index(
        &self,
        hash: BlockHash,
        index: U64,
    ) -> RpcResult<Option<RpcTransaction>> {
        self.at_index(hash.into(), index)
    }

    fn transaction_by_number_and_index(
        &self,
        number: BlockNumberOrTag,
        index: U64,
    ) -> RpcResult<Option<RpcTransaction>> {
        self.at_index(number.into(), index)
    }

    fn transaction_by_sender(&self, sender: Address, nonce: U64) -> RpcResult<Option<RpcTransaction>> {
        let nonce = nonce.to::<u64>();
        let waiting = self.admission.pool().lock().pending_of(sender).find_map(|(waiting, _)| {
            (waiting.transaction().nonce() == nonce).then(|| RpcTransaction::pending(waiting))
        });
        if waiting.is_some() {
            return Ok(waiting);
        }
        let signed = self.view.index.signed_with_nonce(sender, nonce).map_err(error::internal)?;
        signed.map_or(Ok(None), |signed| self.transaction(signed.hash))
    }

    fn raw_transaction(&self, hash: TxHash) -> RpcResult<Option<Bytes>> {
        if let Some(waiting) = self.admission.pool().lock().get(hash) {
            return Ok(Some(waiting.transaction().encoded().clone()));
        }
        let found = self.located(hash)?;
        Ok(found.and_then(|(location, block)| {
            user_transaction(&block, location.index).map(|transaction| transaction.encoded().clone())
        }))
    }

    fn transaction_receipt(&self, hash: TxHash) -> RpcResult<Option<RpcReceipt>> {
        Ok(self.located(hash)?.and_then(|(location, block)| RpcReceipt::new(&block, location.index)))
    }
}
