//! Counts, times and logs every call, and holds those back that come too fast.

use crate::{
    error,
    gate::{Counted, Peer},
    rate::Rate,
};
use jsonrpsee::{
    MethodResponse, Methods,
    core::middleware::{Batch, Notification, RpcServiceT},
    types::Request,
};
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

/// Puts the meter in front of the methods.
#[derive(Clone)]
pub(crate) struct MeterLayer(pub(crate) Arc<Meter>);

/// What the meter knows.
pub(crate) struct Meter {
    /// Names that exist. Strangers choose the names they ask for, and each would be a new series.
    names: BTreeMap<&'static str, ()>,
    rate: Arc<Rate>,
}

impl Meter {
    pub(crate) fn new(methods: &Methods, rate: Arc<Rate>) -> Self {
        Self { names: methods.method_names().map(|name| (name, ())).collect(), rate }
    }

    fn known(&self, name: &str) -> &'static str {
        self.names.get_key_value(name).map_or("unknown", |(known, ())| known)
    }

    fn finished(&self, name: &str, response: &MethodResponse, took: Duration) {
        let known = self.known(name);
        let outcome = if response.is_success() { "ok" } else { "error" };
        metrics::counter!("almanac_rpc_calls_total", "method" => known, "outcome" => outcome).increment(1);
        metrics::histogram!("almanac_rpc_seconds", "method" => known).record(took.as_secs_f64());
        let milliseconds = took.as_secs_f64() * 1e3;
        match response.as_error_code() {
            None => tracing::debug!(target: "rpc", "{known} · {milliseconds:.1} ms"),
            Some(code) => tracing::info!(target: "rpc", "{known} · error {code} · {}", message(response)),
        }
    }

    fn held_back(&self, extensions: &jsonrpsee::Extensions, calls: usize) -> Option<Duration> {
        let calls = if extensions.get::<Counted>().is_some() { calls.saturating_sub(1) } else { calls };
        let peer = extensions.get::<Peer>().filter(|_| calls > 0)?;
        self.rate.take(*peer, calls).err()
    }
}

/// The words of an error, for the log.
fn message(response: &MethodResponse) -> String {
    let answer: serde_json::Value = serde_json::from_str(response.as_json().get()).unwrap_or_default();
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    message.chars().take(200).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn too_fast<'a>(request: &Request<'a>, wait: Duration) -> MethodResponse {
    let reason = format!("too many calls: ask again in {} ms", wait.as_millis());
    MethodResponse::error(request.id(), error::limit(reason))
}

impl<S> tower::Layer<S> for MeterLayer {
    type Service = Metered<S>;

    fn layer(&self, service: S) -> Self::Service {
        Metered { service, meter: self.0.clone() }
    }
}

/// Methods behind the meter.
#[derive(Clone)]
pub(crate) struct Metered<S> {
    service: S,
    meter: Arc<Meter>,
}

impl<S> Metered<S> {
    /// Counts the calls of a batch, or says how long to wait.
    fn admit(&self, batch: &Batch<'_>) -> Option<Duration> {
        let mut entries = batch.iter().filter_map(|entry| entry.as_ref().ok()).peekable();
        let first = entries.peek()?;
        let held_back = self.meter.held_back(first.extensions(), batch.len());
        if held_back.is_none() {
            for entry in entries {
                let known = self.meter.known(entry.method_name());
                metrics::counter!("almanac_rpc_calls_total", "method" => known, "outcome" => "batched")
                    .increment(1);
            }
        }
        held_back
    }
}

impl<S> RpcServiceT for Metered<S>
where
    S: RpcServiceT<
            MethodResponse = MethodResponse,
            BatchResponse = MethodResponse,
            NotificationResponse = MethodResponse,
        > + Clone
        + Send
        + Sync
        + 'static,
{
    type MethodResponse = MethodResponse;
    type NotificationResponse = MethodResponse;
    type BatchResponse = MethodResponse;

    fn call<'a>(&self, request: Request<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let (service, meter) = (self.service.clone(), self.meter.clone());
        async move {
            if let Some(wait) = meter.held_back(request.extensions(), 1) {
                return too_fast(&request, wait);
            }
            let (name, started) = (request.method_name().to_owned(), Instant::now());
            let response = service.call(request).await;
            meter.finished(&name, &response, started.elapsed());
            response
        }
    }

    fn batch<'a>(&self, batch: Batch<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let held_back = self.admit(&batch);
        let service = self.service.clone();
        async move {
            match held_back {
                Some(wait) => {
                    let reason = format!("too many calls: ask again in {} ms", wait.as_millis());
                    MethodResponse::error(jsonrpsee::types::Id::Null, error::limit(reason))
                }
                None => service.batch(batch).await,
            }
        }
    }

    fn notification<'a>(
        &self,
        notification: Notification<'a>,
    ) -> impl Future<Output = MethodResponse> + Send + 'a {
        self.service.notification(notification)
    }
}
