//! The `ots_` methods of the explorer Otterscan.

use crate::{
    answer::Answer,
    creator, error, pages,
    retrace::Retrace,
    types::{Height, Number, OtsBlockDetails, OtsBlockTransactions, OtsContractCreator, OtsPage, RpcHeader},
    view::View,
};
use alloy_eips::{BlockId, BlockNumberOrTag};
use alloy_primitives::{Address, BlockHash, Bytes, KECCAK256_EMPTY, TxHash};
use alloy_rpc_types_trace::otterscan::InternalOperation;
use almanac_index::{Direction, IndexedBlock};
use almanac_trace::{InternalOperations, OtterscanEntries, OtterscanEntry, RevertData};
use jsonrpsee::{core::RpcResult, proc_macros::rpc};
use std::sync::Arc;

/// The version of the API that this is.
const API_LEVEL: u64 = 8;

/// What Otterscan asks.
#[rpc(server)]
pub trait OtterscanApi {
    /// The version of the API; Otterscan refuses to work with one that is too old.
    #[method(name = "ots_getApiLevel")]
    fn api_level(&self) -> RpcResult<u64>;

    /// A header. Otterscan finds out by it whether the methods are there.
    #[method(name = "erigon_getHeaderByNumber")]
    async fn header_by_number(&self, number: Height) -> RpcResult<Answer<Option<RpcHeader>>>;

    /// Whether an account is a contract.
    #[method(name = "ots_hasCode")]
    fn has_code(&self, address: Address, block: Option<BlockId>) -> RpcResult<bool>;

    /// A block without its transactions, and what it earned.
    #[method(name = "ots_getBlockDetails")]
    async fn block_details(&self, number: Height) -> RpcResult<Answer<Option<OtsBlockDetails>>>;

    /// The same by the block's hash.
    #[method(name = "ots_getBlockDetailsByHash")]
    async fn block_details_by_hash(&self, hash: BlockHash) -> RpcResult<Answer<Option<OtsBlockDetails>>>;

    /// A page of a block's transactions, from the end.
    #[method(name = "ots_getBlockTransactions")]
    async fn block_transactions(
        &self,
        number: Height,
        page: Number,
        size: Number,
    ) -> RpcResult<Answer<Option<OtsBlockTransactions>>>;

    /// Value that moved inside a transaction, and contracts that came or went.
    #[method(name = "ots_getInternalOperations")]
    async fn internal_operations(&self, hash: TxHash) -> RpcResult<Answer<Option<Vec<InternalOperation>>>>;

    /// All of what a transaction reverted with; empty where it did not.
    #[method(name = "ots_getTransactionError")]
    async fn transaction_error(&self, hash: TxHash) -> RpcResult<Answer<Option<Bytes>>>;

    /// Every call of a transaction.
    #[method(name = "ots_traceTransaction")]
    async fn trace_transaction(&self, hash: TxHash) -> RpcResult<Answer<Option<Vec<OtterscanEntry>>>>;

    /// Who made a contract, and in which transaction; null if the account has no code, or has it since genesis.
    #[method(name = "ots_getContractCreator")]
    async fn contract_creator(&self, address: Address) -> RpcResult<Answer<Option<OtsContractCreator>>>;

    /// A page of somebody's transactions before a block, or the last ones for block 0.
    #[method(name = "ots_searchTransactionsBefore")]
    async fn search_before(
        &self,
        address: Address,
        block: Number,
        size: Number,
    ) -> RpcResult<Answer<OtsPage>>;

    /// A page of somebody's transactions after a block, or the first ones for block 0.
    #[method(name = "ots_searchTransactionsAfter")]
    async fn search_after(&self, address: Address, block: Number, size: Number)
    -> RpcResult<Answer<OtsPage>>;

    /// The transaction that somebody signed with a nonce.
    #[method(name = "ots_getTransactionBySenderAndNonce")]
    async fn transaction_by_nonce(&self, sender: Address, nonce: Number)
    -> RpcResult<Answer<Option<TxHash>>>;
}

#[jsonrpsee::core::async_trait]
impl OtterscanApiServer for Retrace {
    fn api_level(&self) -> RpcResult<u64> {
        Ok(API_LEVEL)
    }

    async fn header_by_number(&self, number: Height) -> RpcResult<Answer<Option<RpcHeader>>> {
        self.read(move |view| Ok(at(view, number)?.map(|block| RpcHeader::new(&block)))).await
    }

    fn has_code(&self, address: Address, block: Option<BlockId>) -> RpcResult<bool> {
        Ok(self.view.account(address, block)?.code_hash != KECCAK256_EMPTY)
    }

    async fn block_details(&self, number: Height) -> RpcResult<Answer<Option<OtsBlockDetails>>> {
        self.details(BlockId::Number(number.into())).await
    }

    async fn block_details_by_hash(&self, hash: BlockHash) -> RpcResult<Answer<Option<OtsBlockDetails>>> {
        self.details(hash.into()).await
    }

    async fn block_transactions(
        &self,
        number: Height,
        page: Number,
        size: Number,
    ) -> RpcResult<Answer<Option<OtsBlockTransactions>>> {
        let size = pages::checked_size(size.get())?;
        self.read(move |view| {
            let block = at(view, number)?;
            Ok(block.map(|block| OtsBlockTransactions::new(&block, view.chain.id, page.get(), size)))
        })
        .await
    }

    async fn internal_operations(&self, hash: TxHash) -> RpcResult<Answer<Option<Vec<InternalOperation>>>> {
        self.transaction(hash, InternalOperations, Ok).await
    }

    async fn transaction_error(&self, hash: TxHash) -> RpcResult<Answer<Option<Bytes>>> {
        self.transaction(hash, RevertData, Ok).await
    }

    async fn trace_transaction(&self, hash: TxHash) -> RpcResult<Answer<Option<Vec<OtterscanEntry>>>> {
        self.transaction(hash, OtterscanEntries, Ok).await
    }

    async fn contract_creator(&self, address: Address) -> RpcResult<Answer<Option<OtsContractCreator>>> {
        let view = self.view.clone();
        self.heavy.answer(pages::LESS, move || creator::find(&view, address)).await
    }

    async fn search_before(
        &self,
        address: Address,
        block: Number,
        size: Number,
    ) -> RpcResult<Answer<OtsPage>> {
        self.page(address, block, size, Direction::Descending).await
    }

    async fn search_after(
        &self,
        address: Address,
        block: Number,
        size: Number,
    ) -> RpcResult<Answer<OtsPage>> {
        self.page(address, block, size, Direction::Ascending).await
    }

    async fn transaction_by_nonce(
        &self,
        sender: Address,
        nonce: Number,
    ) -> RpcResult<Answer<Option<TxHash>>> {
        let view = self.view.clone();
        let find = move || {
            let sent = view.index.signed_with_nonce(sender, nonce.get()).map_err(error::internal)?;
            Ok(sent.map(|sent| sent.hash))
        };
        self.heavy.answer(pages::LESS, find).await
    }
}

impl Retrace {
    async fn details(&self, id: BlockId) -> RpcResult<Answer<Option<OtsBlockDetails>>> {
        self.read(move |view| Ok(view.find(id)?.map(|block| OtsBlockDetails::new(&block, view.chain.id))))
            .await
    }

    async fn page(
        &self,
        address: Address,
        block: Number,
        size: Number,
        order: Direction,
    ) -> RpcResult<Answer<OtsPage>> {
        let view = self.view.clone();
        self.heavy
            .answer(pages::LESS, move || pages::page(&view, address, block.get(), size.get(), order))
            .await
    }
}

fn at(view: &View, height: Height) -> RpcResult<Option<Arc<IndexedBlock>>> {
    view.find(BlockId::Number(BlockNumberOrTag::from(height)))
}
