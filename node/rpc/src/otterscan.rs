//! The `ots_` methods: what the explorer Otterscan asks beyond Ethereum's own.

use crate::{
    creator, error, pages,
    retrace::Retrace,
    types::{Height, Number, OtsBlockDetails, OtsBlockTransactions, OtsContractCreator, OtsPage, RpcHeader},
};
use alloy_eips::{BlockId, BlockNumberOrTag};
use alloy_primitives::{Address, BlockHash, Bytes, KECCAK256_EMPTY, TxHash};
use alloy_rpc_types_trace::otterscan::InternalOperation;
use almanac_index::{IndexedBlock, Order};
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
    fn header_by_number(&self, number: Height) -> RpcResult<Option<RpcHeader>>;

    /// Whether an account is a contract.
    #[method(name = "ots_hasCode")]
    fn has_code(&self, address: Address, block: Option<BlockId>) -> RpcResult<bool>;

    /// A block without its transactions, and what it earned.
    #[method(name = "ots_getBlockDetails")]
    fn block_details(&self, number: Height) -> RpcResult<Option<OtsBlockDetails>>;

    /// The same by the block's hash.
    #[method(name = "ots_getBlockDetailsByHash")]
    fn block_details_by_hash(&self, hash: BlockHash) -> RpcResult<Option<OtsBlockDetails>>;

    /// A page of a block's transactions, from the end.
    #[method(name = "ots_getBlockTransactions")]
    fn block_transactions(
        &self,
        number: Height,
        page: Number,
        size: Number,
    ) -> RpcResult<Option<OtsBlockTransactions>>;

    /// Value that moved inside a transaction, and contracts that came or went.
    #[method(name = "ots_getInternalOperations")]
    async fn internal_operations(&self, hash: TxHash) -> RpcResult<Option<Vec<InternalOperation>>>;

    /// All of what a transaction reverted with; empty where it did not.
    #[method(name = "ots_getTransactionError")]
    async fn transaction_error(&self, hash: TxHash) -> RpcResult<Option<Bytes>>;

    /// Every call of a transaction.
    #[method(name = "ots_traceTransaction")]
    async fn trace_transaction(&self, hash: TxHash) -> RpcResult<Option<Vec<OtterscanEntry>>>;

    /// Who made a contract, and in which transaction; null where it is no contract, or one of genesis.
    #[method(name = "ots_getContractCreator")]
    async fn contract_creator(&self, address: Address) -> RpcResult<Option<OtsContractCreator>>;

    /// A page of somebody's transactions before a block, or the last ones for block 0.
    #[method(name = "ots_searchTransactionsBefore")]
    async fn search_before(&self, address: Address, block: Number, size: Number) -> RpcResult<OtsPage>;

    /// A page of somebody's transactions after a block, or the first ones for block 0.
    #[method(name = "ots_searchTransactionsAfter")]
    async fn search_after(&self, address: Address, block: Number, size: Number) -> RpcResult<OtsPage>;

    /// The transaction that somebody signed with a nonce.
    #[method(name = "ots_getTransactionBySenderAndNonce")]
    async fn transaction_by_nonce(&self, sender: Address, nonce: Number) -> RpcResult<Option<TxHash>>;
}

#[jsonrpsee::core::async_trait]
impl OtterscanApiServer for Retrace {
    fn api_level(&self) -> RpcResult<u64> {
        Ok(API_LEVEL)
    }

    fn header_by_number(&self, number: Height) -> RpcResult<Option<RpcHeader>> {
        Ok(self.at(number)?.map(|block| RpcHeader::new(&block)))
    }

    fn has_code(&self, address: Address, block: Option<BlockId>) -> RpcResult<bool> {
        Ok(self.view.account(address, block)?.code_hash != KECCAK256_EMPTY)
    }

    fn block_details(&self, number: Height) -> RpcResult<Option<OtsBlockDetails>> {
        Ok(self.at(number)?.map(|block| OtsBlockDetails::new(&block, self.view.chain_id)))
    }

    fn block_details_by_hash(&self, hash: BlockHash) -> RpcResult<Option<OtsBlockDetails>> {
        let block = self.view.find_by_hash(hash)?;
        Ok(block.map(|block| OtsBlockDetails::new(&block, self.view.chain_id)))
    }

    fn block_transactions(
        &self,
        number: Height,
        page: Number,
        size: Number,
    ) -> RpcResult<Option<OtsBlockTransactions>> {
        let size = pages::checked_size(size.get())?;
        let block = self.at(number)?;
        Ok(block.map(|block| OtsBlockTransactions::new(&block, self.view.chain_id, page.get(), size)))
    }

    async fn internal_operations(&self, hash: TxHash) -> RpcResult<Option<Vec<InternalOperation>>> {
        self.transaction(hash, InternalOperations).await
    }

    async fn transaction_error(&self, hash: TxHash) -> RpcResult<Option<Bytes>> {
        self.transaction(hash, RevertData).await
    }

    async fn trace_transaction(&self, hash: TxHash) -> RpcResult<Option<Vec<OtterscanEntry>>> {
        self.transaction(hash, OtterscanEntries).await
    }

    async fn contract_creator(&self, address: Address) -> RpcResult<Option<OtsContractCreator>> {
        let view = self.view.clone();
        self.heavy.run(move || creator::find(&view, address)).await
    }

    async fn search_before(&self, address: Address, block: Number, size: Number) -> RpcResult<OtsPage> {
        self.page(address, block, size, Order::Descending).await
    }

    async fn search_after(&self, address: Address, block: Number, size: Number) -> RpcResult<OtsPage> {
        self.page(address, block, size, Order::Ascending).await
    }

    async fn transaction_by_nonce(&self, sender: Address, nonce: Number) -> RpcResult<Option<TxHash>> {
        let view = self.view.clone();
        let find = move || view.index.signed_with_nonce(sender, nonce.get()).map_err(error::internal);
        Ok(self.heavy.run(find).await?.map(|sent| sent.hash))
    }
}

impl Retrace {
    fn at(&self, height: Height) -> RpcResult<Option<Arc<IndexedBlock>>> {
        self.view.find(BlockId::Number(BlockNumberOrTag::from(height)))
    }

    async fn page(&self, address: Address, block: Number, size: Number, order: Order) -> RpcResult<OtsPage> {
        let view = self.view.clone();
        self.heavy.run(move || pages::page(&view, address, block.get(), size.get(), order)).await
    }
}
