//! Accounts: balance, nonce, code and storage, now and at any kept block.

use super::Eth;
use crate::{
    error,
    view::{self, account},
};
use alloy_eips::BlockId;
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U64, U256};
use alloy_rpc_types_eth::AccountInfo;
use almanac_index::HistoricalState;
use almanac_primitives::{StateKey, StateRead as _};
use jsonrpsee::{core::RpcResult, proc_macros::rpc};

#[rpc(server)]
pub(crate) trait AccountsApi {
    /// Accounts that the node signs or, for a developer, sends for.
    #[method(name = "eth_accounts", aliases = ["eth_requestAccounts"])]
    fn accounts(&self) -> RpcResult<Vec<Address>>;

    /// Money of an account after a block.
    #[method(name = "eth_getBalance")]
    fn balance(&self, address: Address, block: Option<BlockId>) -> RpcResult<U256>;

    /// Next sequence number of an account; "pending" counts what waits in the pool.
    #[method(name = "eth_getTransactionCount")]
    fn transaction_count(&self, address: Address, block: Option<BlockId>) -> RpcResult<U64>;

    /// Code of an account after a block.
    #[method(name = "eth_getCode")]
    fn code(&self, address: Address, block: Option<BlockId>) -> RpcResult<Bytes>;

    /// One slot of an account's storage after a block.
    #[method(name = "eth_getStorageAt")]
    fn storage_at(&self, address: Address, slot: U256, block: Option<BlockId>) -> RpcResult<B256>;

    /// Money, number and code at once.
    #[method(name = "eth_getAccountInfo")]
    fn account_info(&self, address: Address, block: Option<BlockId>) -> RpcResult<AccountInfo>;
}

impl AccountsApiServer for Eth {
    fn accounts(&self) -> RpcResult<Vec<Address>> {
        let mut accounts = self.wallet.addresses().to_vec();
        // Clients hand out a signer only for what is in this list.
        let named = self.impersonation.as_ref().map(|names| names.accounts()).unwrap_or_default();
        accounts.extend(named.into_iter().filter(|account| !self.wallet.has(*account)));
        Ok(accounts)
    }

    fn balance(&self, address: Address, block: Option<BlockId>) -> RpcResult<U256> {
        Ok(self.view.account(address, block)?.balance)
    }

    fn transaction_count(&self, address: Address, block: Option<BlockId>) -> RpcResult<U64> {
        if block.is_some_and(|id| id.is_pending()) {
            return Ok(U64::from(self.next_nonce(address)?));
        }
        Ok(U64::from(self.view.account(address, block)?.nonce))
    }

    fn code(&self, address: Address, block: Option<BlockId>) -> RpcResult<Bytes> {
        let state = self.view.state_only(block)?;
        code(&state, account(&state, address)?.code_hash)
    }

    fn storage_at(&self, address: Address, slot: U256, block: Option<BlockId>) -> RpcResult<B256> {
        let state = self.view.state_only(block)?;
        Ok(view::slot(&state, address, slot)?.into())
    }

    fn account_info(&self, address: Address, block: Option<BlockId>) -> RpcResult<AccountInfo> {
        let state = self.view.state_only(block)?;
        let account = account(&state, address)?;
        let code = code(&state, account.code_hash)?;
        Ok(AccountInfo { balance: account.balance, nonce: account.nonce, code })
    }
}

impl Eth {
    /// The number that the next transaction of `address` needs, after all that wait.
    pub(super) fn next_nonce(&self, address: Address) -> RpcResult<u64> {
        // What must come from elsewhere comes before the lock is taken.
        self.view.index.tip_state().announce(&[StateKey::Account(address)]);
        // The account is read under the pool's lock, as the pool follows the chain under it.
        let pool = self.admission.pool().lock();
        let nonce = self.view.account(address, None)?.nonce;
        Ok(pool.next_nonce(address, nonce))
    }
}

fn code(state: &HistoricalState, hash: B256) -> RpcResult<Bytes> {
    if hash == KECCAK256_EMPTY {
        return Ok(Bytes::new());
    }
    let stored = state.read(StateKey::Code(hash)).map_err(error::internal)?;
    stored.ok_or_else(|| error::internal(format!("code {hash} is missing")))
}
