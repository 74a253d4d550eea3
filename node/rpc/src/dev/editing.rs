//! Edits of balances, code, nonces and storage, and impersonation.

use super::Dev;
use crate::error;
use alloy_primitives::{Address, Bytes, U256};
use almanac_exec::Edit;
use jsonrpsee::{core::RpcResult, proc_macros::rpc};

#[rpc(server)]
pub(crate) trait EditingApi {
    /// Gives an account this balance.
    #[method(name = "anvil_setBalance", aliases = ["hardhat_setBalance", "tenderly_setBalance"])]
    async fn set_balance(&self, account: Address, balance: U256) -> RpcResult<()>;

    /// Gives an account this much more.
    #[method(name = "anvil_addBalance", aliases = ["hardhat_addBalance", "tenderly_addBalance"])]
    async fn add_balance(&self, account: Address, amount: U256) -> RpcResult<()>;

    /// Gives an account this code.
    #[method(name = "anvil_setCode", aliases = ["hardhat_setCode"])]
    async fn set_code(&self, account: Address, code: Bytes) -> RpcResult<()>;

    /// Gives an account this nonce.
    #[method(name = "anvil_setNonce", aliases = ["hardhat_setNonce", "evm_setAccountNonce"])]
    async fn set_nonce(&self, account: Address, nonce: U256) -> RpcResult<()>;

    /// Writes one slot of an account's storage.
    #[method(name = "anvil_setStorageAt", aliases = ["hardhat_setStorageAt"])]
    async fn set_storage_at(&self, account: Address, slot: U256, value: U256) -> RpcResult<bool>;

    /// Gives the next block this base fee.
    #[method(name = "anvil_setNextBlockBaseFeePerGas", aliases = ["hardhat_setNextBlockBaseFeePerGas"])]
    async fn set_next_base_fee(&self, base_fee: U256) -> RpcResult<()>;

    /// Lets everybody send in the name of this account.
    #[method(name = "anvil_impersonateAccount", aliases = ["hardhat_impersonateAccount"])]
    fn impersonate(&self, account: Address) -> RpcResult<()>;

    /// Ends that.
    #[method(name = "anvil_stopImpersonatingAccount", aliases = ["hardhat_stopImpersonatingAccount"])]
    fn stop_impersonating(&self, account: Address) -> RpcResult<()>;

    /// Lets everybody send in everybody's name, or ends that.
    #[method(name = "anvil_autoImpersonateAccount", aliases = ["hardhat_autoImpersonateAccount"])]
    fn auto_impersonate(&self, is_everyone: bool) -> RpcResult<()>;
}

#[jsonrpsee::core::async_trait]
impl EditingApiServer for Dev {
    async fn set_balance(&self, account: Address, balance: U256) -> RpcResult<()> {
        self.edit(vec![Edit::Balance { account, balance }]).await.map(drop)
    }

    async fn add_balance(&self, account: Address, amount: U256) -> RpcResult<()> {
        let had = self.view.account(account, None)?.balance;
        let balance = had.checked_add(amount).ok_or_else(|| {
            error::invalid(format!("{amount} wei on top of {had} wei are more than 256 bits hold"))
        })?;
        self.set_balance(account, balance).await
    }

    async fn set_code(&self, account: Address, code: Bytes) -> RpcResult<()> {
        self.edit(vec![Edit::Code { account, code }]).await.map(drop)
    }

    async fn set_nonce(&self, account: Address, nonce: U256) -> RpcResult<()> {
        let nonce = u64::try_from(nonce)
            .map_err(|_| error::invalid(format!("nonce {nonce} is above the largest, {}", u64::MAX)))?;
        self.edit(vec![Edit::Nonce { account, nonce }]).await.map(drop)
    }

    async fn set_storage_at(&self, account: Address, slot: U256, value: U256) -> RpcResult<bool> {
        self.edit(vec![Edit::Storage { account, slot, value }]).await.map(|_| true)
    }

    async fn set_next_base_fee(&self, base_fee: U256) -> RpcResult<()> {
        self.edit(vec![Edit::NextBaseFee { base_fee }]).await.map(drop)
    }

    fn impersonate(&self, account: Address) -> RpcResult<()> {
        self.impersonation.start(account);
        Ok(())
    }

    fn stop_impersonating(&self, account: Address) -> RpcResult<()> {
        self.impersonation.stop(account);
        Ok(())
    }

    fn auto_impersonate(&self, is_everyone: bool) -> RpcResult<()> {
        self.impersonation.set_everyone(is_everyone);
        Ok(())
    }
}
