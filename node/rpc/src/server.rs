//! The HTTP and WebSocket server: where it listens, and for how many.

use crate::{
    gate::{Gate, Peer},
    idle::Activity,
    meter::{Meter, MeterLayer},
    notifications::NotificationsLayer,
    rate::Rate,
};
use jsonrpsee::{
    Methods,
    core::{middleware::RpcServiceBuilder, traits::IdProvider},
    server::{
        BatchRequestConfig, PingConfig, ServerBuilder, ServerConfig, ServerHandle, StopHandle,
        serve_with_graceful_shutdown, stop_channel,
    },
    types::SubscriptionId,
};
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{net::TcpListener, sync::Semaphore};
use tower_http::cors::CorsLayer;

/// What clients may ask for.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Largest request in bytes.
    pub request_bytes_max: u32,
    /// Largest answer in bytes.
    pub response_bytes_max: u32,
    /// Most calls in one batch.
    pub batch_max: u32,
    /// Most connections at once.
    pub connections_max: u32,
    /// Most subscriptions of one connection.
    pub subscriptions_max: u32,
    /// Longest that the EVM works for one request that only tries calls out.
    pub call_time_max: Duration,
    /// Calls per second of one client; `None` for no limit.
    pub calls_per_second_max: Option<u32>,
    /// A client that has not sent its whole request after this long is cut off.
    pub request_time_max: Duration,
    /// A connection without a request for this long is closed.
    pub idle_time_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_bytes_max: 2 * 1024 * 1024,
            response_bytes_max: 10 * 1024 * 1024,
            batch_max: 100,
            connections_max: 200,
            subscriptions_max: 32,
            call_time_max: Duration::from_secs(2),
            calls_per_second_max: None,
            request_time_max: Duration::from_secs(10),
            idle_time_max: Duration::from_secs(60),
        }
    }
}

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct Server {
    handle: ServerHandle,
    address: SocketAddr,
}

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}; choose another port with --port")]
pub struct ServerError {
    /// Where it should have listened.
    pub address: SocketAddr,
    /// What the system said.
    #[source]
    pub source: std::io::Error,
}

/// Pages for people and machines beside JSON-RPC, by path.
pub type Page = Arc<dyn Fn() -> String + Send + Sync>;

impl Server {
    /// Listens on `address`, answers calls with `methods`, and GET requests with `pages`.
    pub async fn start(
        address: SocketAddr,
        limits: Limits,
        methods: impl Into<Methods>,
        pages: Vec<(&'static str, Page)>,
    ) -> Result<Self, ServerError> {
        let fail = |source| ServerError { address, source };
        let listener = TcpListener::bind(address).await.map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        let (stop, handle) = stop_channel();
        let rate = Rate::new(limits.calls_per_second_max);
        let gate = Gate::new(limits, rate.clone(), pages);
        tokio::spawn(accept(listener, stop, limits, methods.into(), gate, rate));
        Ok(Self { handle, address })
    }

    /// Serves pages alone: there is no chain to ask about yet, and no method is known.
    pub async fn start_pages(
        address: SocketAddr,
        limits: Limits,
        pages: Vec<(&'static str, Page)>,
    ) -> Result<Self, ServerError> {
        Self::start(address, limits, Methods::new(), pages).await
    }

    /// Where it listens; the port is the real one if 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers what is under way, then stops.
    pub async fn stop(self) {
        // An error means that it has stopped already.
        let _ = self.handle.stop();
        self.handle.stopped().await;
    }
}

async fn accept(
    listener: TcpListener,
    stop: StopHandle,
    limits: Limits,
    methods: Methods,
    gate: Gate,
    rate: Arc<Rate>,
) {
    let meter = Arc::new(Meter::new(&methods, rate));
    let services = ServerBuilder::with_config(config(limits))
        .set_rpc_middleware(RpcServiceBuilder::new().layer(MeterLayer(meter)).layer(NotificationsLayer))
        // Pages in a browser may use a developer's chain.
        .set_http_middleware(tower::ServiceBuilder::new().layer(CorsLayer::permissive()))
        .to_service_builder();
    let places = Arc::new(Semaphore::new(usize::try_from(limits.connections_max).unwrap_or(usize::MAX)));
    loop {
        let (socket, from) = tokio::select! {
            () = stop.clone().shutdown() => {
                // Before the handle, which says that all is over: the next server may want the same port.
                drop(listener);
                return;
            }
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of files, most likely: others must close before we can go on.
                    tracing::warn!("a connection could not be taken: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        let Ok(place) = places.clone().try_acquire_owned() else {
            tracing::debug!("{from} was turned away: {} connections are open", limits.connections_max);
            continue;
        };
        // An answer must not wait for a packet to fill up; a socket that refuses is only slower.
        let _ = socket.set_nodelay(true);
        let service = services.clone().build(methods.clone(), stop.clone());
        let (gate, activity) = (gate.clone(), Activity::new());
        let used = activity.clone();
        let service = tower::service_fn(move |request| {
            gate.clone().serve(request, Peer(from.ip()), service.clone(), used.begin())
        });
        let stopped = stop.clone().shutdown();
        let serving = tokio::spawn(async move {
            // A client that breaks off is the client's business.
            let _ = serve_with_graceful_shutdown(socket, service, stopped).await;
            drop(place);
        });
        let serving = serving.abort_handle();
        tokio::spawn(async move {
            activity.idle(limits.idle_time_max).await;
            serving.abort();
        });
    }
}

/// Names subscriptions as Ethereum's clients expect it: by a hexadecimal string. A name counts on its own
/// connection only, so it need not be a secret.
#[derive(Debug, Default)]
struct HexIds(AtomicU64);

impl IdProvider for HexIds {
    fn next_id(&self) -> SubscriptionId<'static> {
        let count = self.0.fetch_add(1, Ordering::Relaxed);
        SubscriptionId::Str(format!("{count:#034x}").into())
    }
}

fn config(limits: Limits) -> ServerConfig {
    ServerConfig::builder()
        .max_request_body_size(limits.request_bytes_max)
        .max_response_body_size(limits.response_bytes_max)
        .max_connections(limits.connections_max)
        .max_subscriptions_per_connection(limits.subscriptions_max)
        .set_batch_request_config(BatchRequestConfig::Limit(limits.batch_max))
        .set_id_provider(HexIds::default())
        .enable_ws_ping(PingConfig::default())
        .build()
}
