//! Nobody can be told of anything over HTTP, where only answers go back: who subscribes there hears so.

use crate::{error, gate::Client};
use jsonrpsee::{
    Extensions, MethodResponse,
    core::middleware::{Batch, BatchEntry, BatchEntryErr, Notification, RpcServiceT},
    types::Request,
};

/// Puts the refusal in front of the methods.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotificationsLayer;

impl<S> tower::Layer<S> for NotificationsLayer {
    type Service = Notifications<S>;

    fn layer(&self, service: S) -> Self::Service {
        Notifications(service)
    }
}

/// Methods behind it.
#[derive(Clone)]
pub(crate) struct Notifications<S>(S);

fn is_refused(method: &str, extensions: &Extensions) -> bool {
    let is_http = matches!(extensions.get::<Client>(), Some(Client::Address(_)));
    const NAMES: [&str; 4] = ["eth_subscribe", "eth_unsubscribe", "almanac_subscribe", "almanac_unsubscribe"];
    is_http && NAMES.contains(&method)
}

impl<S> RpcServiceT for Notifications<S>
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
        let service = self.0.clone();
        async move {
            if is_refused(request.method_name(), request.extensions()) {
                return MethodResponse::error(request.id(), error::no_notifications());
            }
            service.call(request).await
        }
    }

    fn batch<'a>(&self, mut batch: Batch<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        for entry in batch.iter_mut() {
            if let Ok(BatchEntry::Call(request)) = entry
                && is_refused(request.method_name(), request.extensions())
            {
                *entry = Err(BatchEntryErr::new(request.id().into_owned(), error::no_notifications()));
            }
        }
        self.0.batch(batch)
    }

    fn notification<'a>(
        &self,
        notification: Notification<'a>,
    ) -> impl Future<Output = MethodResponse> + Send + 'a {
        self.0.notification(notification)
    }
}
