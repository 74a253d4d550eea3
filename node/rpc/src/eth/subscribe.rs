//! Subscriptions over WebSocket to heads, logs and pending transactions.

use super::Eth;
use crate::{
    error,
    heads::ChainEvent,
    session::{Ended, Session, Sink, missed, next},
    types::{RpcHeader, RpcLog, RpcTransaction},
};
use alloy_rpc_types_eth::pubsub::{Params, SubscriptionKind};
use almanac_consensus::Arrival;
use almanac_index::{IndexedBlock, LogEntry, LogFilter};
use jsonrpsee::{Extensions, core::RpcResult, proc_macros::rpc};
use tokio::{sync::broadcast, task::consume_budget};

#[rpc(server)]
pub(crate) trait SubscribeApi {
    /// Tells what happens, as it happens. Answers with the subscription's id.
    #[method(name = "eth_subscribe", with_extensions)]
    fn subscribe(&self, kind: SubscriptionKind, params: Option<Params>) -> RpcResult<String>;

    /// Ends a subscription of the same connection; whether there was one.
    #[method(name = "eth_unsubscribe", with_extensions)]
    fn unsubscribe(&self, id: String) -> RpcResult<bool>;
}

/// What messages of these subscriptions are called.
const MESSAGE: &str = "eth_subscription";

impl SubscribeApiServer for Eth {
    fn subscribe(
        &self,
        call: &Extensions,
        kind: SubscriptionKind,
        params: Option<Params>,
    ) -> RpcResult<String> {
        let session = Session::of(call)?;
        // News is listened to before the client is answered: whatever it causes after that, it hears of.
        match (kind, params.unwrap_or_default()) {
            (SubscriptionKind::NewHeads, _) => {
                let news = self.heads.listen();
                session.subscribe(MESSAGE, |sink| heads(sink, news))
            }
            (SubscriptionKind::Logs, params) => {
                let filter = match params {
                    Params::Logs(filter) => self.log_filter(&filter)?,
                    _ => LogFilter::default(),
                };
                let news = self.heads.listen();
                session.subscribe(MESSAGE, |sink| logs(sink, news, filter))
            }
            (SubscriptionKind::NewPendingTransactions, params) => {
                let news = self.admission.pool().listen();
                let is_full = matches!(params, Params::Bool(true));
                let eth = self.clone();
                session.subscribe(MESSAGE, move |sink| async move { eth.arrivals(sink, news, is_full).await })
            }
            (kind, _) => {
                let known = "newHeads, logs and newPendingTransactions";
                Err(error::invalid(format!("there is no subscription to {kind:?}; there are {known}")))
            }
        }
    }

    fn unsubscribe(&self, call: &Extensions, id: String) -> RpcResult<bool> {
        Ok(Session::of(call)?.unsubscribe(&id))
    }
}

async fn heads(sink: Sink, mut news: broadcast::Receiver<ChainEvent>) -> Result<(), Ended> {
    while let Some(head) = next(&mut news).await? {
        if let ChainEvent::New(block) = head {
            let header = block.look(RpcHeader::new).map_err(|_| missed(&news))?;
            sink.send(&header).await?;
        }
    }
    Ok(())
}

async fn logs(sink: Sink, mut news: broadcast::Receiver<ChainEvent>, filter: LogFilter) -> Result<(), Ended> {
    while let Some(head) = next(&mut news).await? {
        let ChainEvent::New(block) = head else { continue };
        // One at a time: a block may have tens of thousands, and there may be thousands of subscriptions.
        let mut logs = block.logs();
        let look =
            |_: &IndexedBlock, entry: LogEntry| filter.matches(&entry.log).then(|| RpcLog::new(&entry));
        while let Some(log) = logs.next(look).map_err(|_| missed(&news))? {
            if let Some(log) = log {
                sink.send(&log).await?;
            }
            // Others have their turn between those that do not match.
            consume_budget().await;
        }
    }
    Ok(())
}

impl Eth {
    async fn arrivals(
        &self,
        sink: Sink,
        mut news: broadcast::Receiver<Arrival>,
        is_full: bool,
    ) -> Result<(), Ended> {
        while let Some(Arrival { hash, .. }) = next(&mut news).await? {
            if !is_full {
                sink.send(&hash).await?;
                continue;
            }
            let found = self.admission.pool().lock().get(hash).map(RpcTransaction::pending);
            // It may have left the pool before we could look.
            if let Some(transaction) = found {
                sink.send(&transaction).await?;
            }
        }
        Ok(())
    }
}
