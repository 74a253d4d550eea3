//! Signs and sends for the accounts of a developer chain. A node without keys does not serve this.

use super::{Eth, fill::unsigned, sending::Filled};
use crate::{
    answer::Answer, error, impersonation::in_the_name_of, typed_data, types::RpcReceipt,
    wallet::encode_signed,
};
use alloy_primitives::{Address, Bytes, TxHash, U64};
use alloy_rpc_types_eth::TransactionRequest;
use almanac_primitives::UserTransaction;
use jsonrpsee::{core::RpcResult, proc_macros::rpc};
use serde::Serialize;
use serde_json::value::RawValue;

#[rpc(server)]
pub(crate) trait SigningApi {
    /// Completes, signs and takes a transaction of one of the node's accounts.
    #[method(name = "eth_sendTransaction")]
    async fn send(&self, request: TransactionRequest) -> RpcResult<TxHash>;

    /// Fills in what a transaction lacks and sends it for any sender, without a signature.
    #[method(name = "eth_sendUnsignedTransaction")]
    async fn send_unsigned(&self, request: TransactionRequest) -> RpcResult<TxHash>;

    /// The same as `eth_sendTransaction`, and answers with its receipt.
    #[method(name = "eth_sendTransactionSync")]
    async fn send_sync(
        &self,
        request: TransactionRequest,
        timeout_ms: Option<U64>,
    ) -> RpcResult<Answer<RpcReceipt>>;

    /// Completes and signs a transaction without sending it: its encoding and its fields, as go-ethereum answers.
    #[method(name = "eth_signTransaction")]
    async fn sign_transaction(&self, request: TransactionRequest) -> RpcResult<Signed>;

    /// Signs a message (EIP-191).
    #[method(name = "eth_sign")]
    fn sign(&self, address: Address, message: Bytes) -> RpcResult<Bytes>;

    /// Signs a message (EIP-191), with the parameters the other way round.
    #[method(name = "personal_sign")]
    fn personal_sign(&self, message: Bytes, address: Address) -> RpcResult<Bytes>;

    /// Signs typed data (EIP-712).
    #[method(name = "eth_signTypedData_v4", aliases = ["eth_signTypedData", "eth_signTypedData_v3"])]
    async fn sign_typed_data(&self, address: Address, data: Box<RawValue>) -> RpcResult<Bytes>;
}

/// How the name of a node starts that answers as anvil does: tools that ask for that name expect its answers too.
const ANVIL: &str = "anvil/";

/// A signed transaction that was not sent.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Signed {
    /// Its encoding and its fields.
    AsGeth(Filled),
    /// Its encoding alone.
    AsAnvil(Bytes),
}

#[jsonrpsee::core::async_trait]
impl SigningApiServer for Eth {
    async fn send(&self, request: TransactionRequest) -> RpcResult<TxHash> {
        let transaction = self.made(request).await?;
        self.admit(transaction).await
    }

    async fn send_unsigned(&self, request: TransactionRequest) -> RpcResult<TxHash> {
        if self.impersonation.is_none() {
            return Err(error::unsupported(
                "eth_sendUnsignedTransaction",
                "only a developer's chain takes it",
            ));
        }
        let (from, request) = self.fill(request).await?;
        let transaction = in_the_name_of(from, unsigned(request)?).map_err(error::invalid)?;
        self.admit(transaction).await
    }

    async fn send_sync(
        &self,
        request: TransactionRequest,
        timeout_ms: Option<U64>,
    ) -> RpcResult<Answer<RpcReceipt>> {
        let transaction = self.made(request).await?;
        self.wait_for(self.admit(transaction), timeout_ms).await
    }

    async fn sign_transaction(&self, request: TransactionRequest) -> RpcResult<Signed> {
        let (from, request) = self.fill(request).await?;
        let transaction = unsigned(request)?;
        let signature = self.wallet.sign_transaction(from, &transaction).map_err(error::refused)?;
        let signed = Filled::new(from, transaction, signature);
        let is_anvil = self.client_version.starts_with(ANVIL);
        Ok(if is_anvil { Signed::AsAnvil(signed.raw) } else { Signed::AsGeth(signed) })
    }

    fn sign(&self, address: Address, message: Bytes) -> RpcResult<Bytes> {
        self.wallet.sign_message(address, &message).map_err(error::refused)
    }

    fn personal_sign(&self, message: Bytes, address: Address) -> RpcResult<Bytes> {
        self.sign(address, message)
    }

    async fn sign_typed_data(&self, address: Address, data: Box<RawValue>) -> RpcResult<Bytes> {
        // Before anything is done with the data: nobody makes a node work for a key that it does not have.
        self.wallet.check(address).map_err(error::refused)?;
        let wallet = self.wallet.clone();
        let sign = move || {
            let data = typed_data::read(data.get()).map_err(|reason| {
                if reason.is_limit() { error::limit(reason) } else { error::invalid(reason) }
            })?;
            wallet.sign_typed_data(address, &data).map_err(error::refused)
        };
        self.heavy.run(sign).await
    }
}

impl Eth {
    /// The transaction that a request asks for, signed, or in the name of an impersonated sender.
    async fn made(&self, request: TransactionRequest) -> RpcResult<UserTransaction> {
        let (from, request) = self.fill(request).await?;
        let transaction = unsigned(request)?;
        let made = if self.is_impersonated(from) {
            in_the_name_of(from, transaction)
        } else {
            let signature = self.wallet.sign_transaction(from, &transaction).map_err(error::refused)?;
            UserTransaction::decode(&encode_signed(transaction, signature))
        };
        made.map_err(error::invalid)
    }
}
