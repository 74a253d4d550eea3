//! The HTTP and WebSocket server: where it listens, and what it refuses before looking at it.

use jsonrpsee::{
    Methods,
    server::{BatchRequestConfig, PingConfig, ServerBuilder, ServerConfig, ServerHandle},
};
use std::net::SocketAddr;
use tower_http::cors::CorsLayer;

/// What one client may ask for.
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
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_bytes_max: 2 * 1024 * 1024,
            response_bytes_max: 10 * 1024 * 1024,
            batch_max: 100,
            connections_max: 200,
            subscriptions_max: 32,
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

impl Server {
    /// Listens on `address` and answers with `methods`.
    pub async fn start(
        address: SocketAddr,
        limits: Limits,
        methods: impl Into<Methods>,
    ) -> Result<Self, ServerError> {
        let config = ServerConfig::builder()
            .max_request_body_size(limits.request_bytes_max)
            .max_response_body_size(limits.response_bytes_max)
            .max_connections(limits.connections_max)
            .max_subscriptions_per_connection(limits.subscriptions_max)
            .set_batch_request_config(BatchRequestConfig::Limit(limits.batch_max))
            .enable_ws_ping(PingConfig::default())
            .build();
        let fail = |source| ServerError { address, source };
        // Pages in a browser may use a developer's chain.
        let middleware = tower::ServiceBuilder::new().layer(CorsLayer::permissive());
        let server = ServerBuilder::with_config(config).set_http_middleware(middleware);
        let server = server.build(address).await.map_err(fail)?;
        let address = server.local_addr().map_err(fail)?;
        Ok(Self { handle: server.start(methods), address })
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
