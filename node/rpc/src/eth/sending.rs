//! Submits signed transactions.

use super::{Eth, fill::unsigned};
use crate::{
    answer::Answer,
    bounds::RECEIPT_WAIT_MAX,
    error,
    heads::ChainEvent,
    types::{RpcReceipt, RpcTransaction},
    wallet::encode_signed,
};
use alloy_consensus::{Transaction as _, TypedTransaction, transaction::Recovered};
use alloy_primitives::{Address, Bytes, Signature, TxHash, U64, U256};
use alloy_rpc_types_eth::{Transaction, TransactionRequest};
use almanac_consensus::{Admission, SubmitError};
use almanac_primitives::UserTransaction;
use jsonrpsee::{core::RpcResult, proc_macros::rpc};
use serde::Serialize;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;

/// How long a client waits for a receipt, unless it says otherwise.
const WAIT: Duration = Duration::from_secs(2);
/// With more than this many ready, clients send in bulk: waiting for each would only slow them down.
const CROWD: usize = 8;
/// How long a transaction that goes into a block at once is waited for.
const PROMPT_WAIT: Duration = Duration::from_secs(1);

#[rpc(server)]
pub(crate) trait SendingApi {
    /// Takes a signed transaction into the pool.
    #[method(name = "eth_sendRawTransaction")]
    async fn send_raw(&self, encoded: Bytes) -> RpcResult<TxHash>;

    /// Takes a signed transaction and answers with its receipt.
    #[method(name = "eth_sendRawTransactionSync")]
    async fn send_raw_sync(&self, encoded: Bytes, timeout_ms: Option<U64>) -> RpcResult<Answer<RpcReceipt>>;

    /// Completes a transaction without sending it.
    #[method(name = "eth_fillTransaction")]
    async fn fill_transaction(&self, request: TransactionRequest) -> RpcResult<Filled>;
}

/// A completed transaction: its encoding, and its fields. The signature is empty where nobody was asked to sign.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Filled {
    pub(super) raw: Bytes,
    tx: RpcTransaction,
}

impl Filled {
    pub(super) fn new(from: Address, transaction: TypedTransaction, signature: Signature) -> Self {
        let raw = encode_signed(transaction.clone(), signature);
        let price = transaction.max_fee_per_gas();
        let envelope = transaction.into_envelope(signature).map_eip4844(alloy_consensus::TxEip4844::from);
        let tx = RpcTransaction::User(Box::new(Transaction {
            inner: Recovered::new_unchecked(envelope, from),
            block_hash: None,
            block_number: None,
            transaction_index: None,
            effective_gas_price: Some(price),
            block_timestamp: None,
        }));
        Self { raw, tx }
    }
}

#[jsonrpsee::core::async_trait]
impl SendingApiServer for Eth {
    async fn send_raw(&self, encoded: Bytes) -> RpcResult<TxHash> {
        self.submit(encoded).await
    }

    async fn send_raw_sync(&self, encoded: Bytes, timeout_ms: Option<U64>) -> RpcResult<Answer<RpcReceipt>> {
        self.wait_for(self.submit(encoded), timeout_ms).await
    }

    async fn fill_transaction(&self, request: TransactionRequest) -> RpcResult<Filled> {
        let (from, request) = self.fill(request).await?;
        let empty = Signature::new(U256::ZERO, U256::ZERO, false);
        Ok(Filled::new(from, unsigned(request)?, empty))
    }
}

impl Eth {
    pub(super) async fn admit(&self, transaction: UserTransaction) -> RpcResult<TxHash> {
        self.take(move |admission| admission.admit(transaction)).await
    }

    async fn submit(&self, encoded: Bytes) -> RpcResult<TxHash> {
        self.take(move |admission| admission.submit(&encoded)).await
    }

    /// Takes a transaction in. Where blocks come at once, the answer waits for this one's: tools that look for the
    /// receipt right away find it, instead of asking again after seconds.
    async fn take(
        &self,
        work: impl FnOnce(&Admission) -> Result<TxHash, SubmitError> + Send + 'static,
    ) -> RpcResult<TxHash> {
        let mut news = self.heads.listen();
        let admission = self.admission.clone();
        // Recovering signatures is pure computing, and a transaction may have a thousand of them.
        let work = move || work(&admission).map_err(|error| error::submit(&error));
        let hash = self.sending.run_anywhere(work).await?;
        let included = async {
            // The index hears of a block before the pool does.
            while self.is_coming(hash) {
                match news.recv().await {
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return,
                }
            }
        };
        // It is in the pool either way.
        let _ = tokio::time::timeout(PROMPT_WAIT, included).await;
        Ok(hash)
    }

    /// Whether a transaction will be in a block any moment, is in none yet, and is worth waiting for.
    fn is_coming(&self, hash: TxHash) -> bool {
        let pool = self.admission.pool();
        if !pool.is_prompt() || self.is_included(hash) {
            return false;
        }
        let pool = pool.lock();
        pool.ready_count() <= CROWD && pool.is_ready(hash)
    }

    pub(super) async fn wait_for(
        &self,
        sending: impl Future<Output = RpcResult<TxHash>>,
        timeout_ms: Option<U64>,
    ) -> RpcResult<Answer<RpcReceipt>> {
        let wait = timeout_ms.map_or(WAIT, |ms| Duration::from_millis(ms.to())).min(RECEIPT_WAIT_MAX);
        let mut news = self.heads.listen();
        let hash = sending.await?;
        let included = async {
            loop {
                if self.is_included(hash) {
                    return self.receipt_of(hash).await;
                }
                match news.recv().await {
                    Ok(ChainEvent::New(_) | ChainEvent::Reverted(_)) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return Err(error::internal("the node is stopping")),
                }
            }
        };
        let answer = tokio::time::timeout(wait, included).await;
        answer.unwrap_or_else(|_| Err(error::not_included_in_time(hash, wait)))
    }
}
