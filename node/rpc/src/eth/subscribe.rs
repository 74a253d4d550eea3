//! Subscriptions over WebSocket: heads, logs and pending transactions as they come.

use super::Eth;
use crate::{
    error,
    heads::Head,
    types::{RpcHeader, RpcLog, RpcTransaction},
};
use alloy_primitives::TxHash;
use alloy_rpc_types_eth::pubsub::{Params, SubscriptionKind};
use almanac_index::{IndexedBlock, LogFilter};
use jsonrpsee::{
    PendingSubscriptionSink, SubscriptionMessage, SubscriptionSink,
    core::{SubscriptionError, SubscriptionResult},
    proc_macros::rpc,
};
use serde::Serialize;
use tokio::sync::broadcast::{self, error::RecvError};

#[rpc(server)]
pub(crate) trait SubscribeApi {
    /// Tells what happens, as it happens.
    #[subscription(name = "eth_subscribe" => "eth_subscription", unsubscribe = "eth_unsubscribe", item = serde_json::Value)]
    async fn subscribe(&self, kind: SubscriptionKind, params: Option<Params>) -> SubscriptionResult;
}

#[jsonrpsee::core::async_trait]
impl SubscribeApiServer for Eth {
    async fn subscribe(
        &self,
        pending: PendingSubscriptionSink,
        kind: SubscriptionKind,
        params: Option<Params>,
    ) -> SubscriptionResult {
        // News is listened to before the client is answered: whatever it causes after that, it hears of.
        match (kind, params.unwrap_or_default()) {
            (SubscriptionKind::NewHeads, _) => {
                let news = self.heads.listen();
                heads(pending.accept().await?, news).await
            }
            (SubscriptionKind::Logs, params) => {
                let filter = match params {
                    Params::Logs(filter) => self.log_filter(&filter),
                    _ => Ok(LogFilter::default()),
                };
                let filter = match filter {
                    Ok(filter) => filter,
                    Err(reason) => {
                        pending.reject(reason).await;
                        return Ok(());
                    }
                };
                let news = self.heads.listen();
                logs(pending.accept().await?, news, filter).await
            }
            (SubscriptionKind::NewPendingTransactions, params) => {
                let news = self.admission.pool().listen();
                let is_full = matches!(params, Params::Bool(true));
                self.arrivals(pending.accept().await?, news, is_full).await
            }
            (kind, _) => {
                let known = "newHeads, logs and newPendingTransactions";
                let reason =
                    error::invalid(format!("there is no subscription to {kind:?}; there are {known}"));
                pending.reject(reason).await;
                Ok(())
            }
        }
    }
}

/// Why a subscription ends, unless the client ends it.
fn missed(count: u64) -> SubscriptionError {
    format!("{count} events came faster than they were read: subscribe again, and read what was missed")
        .into()
}

/// The next event, or `None` where nobody wants one any more.
pub(crate) async fn next<T: Clone>(
    sink: &SubscriptionSink,
    news: &mut broadcast::Receiver<T>,
) -> Result<Option<T>, SubscriptionError> {
    tokio::select! {
        () = sink.closed() => Ok(None),
        event = news.recv() => match event {
            Ok(event) => Ok(Some(event)),
            Err(RecvError::Lagged(count)) => Err(missed(count)),
            Err(RecvError::Closed) => Ok(None),
        },
    }
}

/// Tells the client; whether it is still there.
pub(crate) async fn send(sink: &SubscriptionSink, item: &impl Serialize) -> Result<bool, SubscriptionError> {
    let message = serde_json::value::to_raw_value(item).map_err(|error| error.to_string())?;
    Ok(sink.send(SubscriptionMessage::from(message)).await.is_ok())
}

async fn heads(sink: SubscriptionSink, mut news: broadcast::Receiver<Head>) -> SubscriptionResult {
    while let Some(head) = next(&sink, &mut news).await? {
        if let Head::New(block) = head
            && !send(&sink, &RpcHeader::new(&block)).await?
        {
            break;
        }
    }
    Ok(())
}

async fn logs(
    sink: SubscriptionSink,
    mut news: broadcast::Receiver<Head>,
    filter: LogFilter,
) -> SubscriptionResult {
    while let Some(head) = next(&sink, &mut news).await? {
        let Head::New(block) = head else { continue };
        for log in matching(&block, &filter) {
            if !send(&sink, &log).await? {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn matching(block: &IndexedBlock, filter: &LogFilter) -> Vec<RpcLog> {
    let entries = (0..block.receipts.len()).flat_map(|index| block.logs_of(index));
    entries.filter(|entry| filter.matches(&entry.log)).map(|entry| RpcLog::new(&entry)).collect()
}

impl Eth {
    async fn arrivals(
        &self,
        sink: SubscriptionSink,
        mut news: broadcast::Receiver<TxHash>,
        is_full: bool,
    ) -> SubscriptionResult {
        while let Some(hash) = next(&sink, &mut news).await? {
            let full = is_full.then(|| self.admission.pool().lock().get(hash).map(RpcTransaction::pending));
            let is_open = match full {
                Some(Some(transaction)) => send(&sink, &transaction).await?,
                // It left the pool before we could look.
                Some(None) => true,
                None => send(&sink, &hash).await?,
            };
            if !is_open {
                break;
            }
        }
        Ok(())
    }
}
