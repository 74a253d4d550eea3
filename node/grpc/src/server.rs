//! The server: listens, and accepts connections. Each has a place among those of JSON-RPC.

use crate::{
    front::Front,
    limits::{HEADER_BYTES_MAX, WINDOW_BYTES_MAX},
    tls::Tls,
};
use almanac_primitives::Chain;
use almanac_rpc::guest::{Guest, Guests};
use hyper::{server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{Notify, mpsc, watch},
};

/// Where it listens, and for which chain.
#[derive(Clone, Debug)]
pub struct GrpcConfig {
    /// The address; port 0 picks a free one.
    pub address: SocketAddr,
    /// What signatures are bound to.
    pub chain: Chain,
    /// Certificate and key; `None` for plain TCP.
    pub tls: Option<Tls>,
}

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct GrpcServer {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    /// Ends when every connection has.
    ended: mpsc::Receiver<()>,
}

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} for gRPC: {source}; choose another port")]
pub struct GrpcError {
    /// Where it should have listened.
    pub address: SocketAddr,
    /// What the system said.
    #[source]
    pub source: std::io::Error,
}

/// Longest that a server waits for its connections when it stops.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// Longest that a connection without a place lasts.
const GOODBYE_PATIENCE: Duration = Duration::from_secs(1);

/// Bytes of an answer that wait in the connection, of one stream.
const SEND_BYTES_MAX: usize = 64 << 10;

/// What every connection needs.
struct Hall {
    front: Arc<Front>,
    guests: Guests,
    tls: Option<Tls>,
    is_stopping: watch::Receiver<bool>,
    /// Dropped with the last connection.
    _alive: mpsc::Sender<()>,
}

impl GrpcServer {
    /// Listens, and answers with the methods and within the limits of the server of `guests`.
    pub async fn start(config: GrpcConfig, guests: Guests) -> Result<Self, GrpcError> {
        let GrpcConfig { address, chain, tls } = config;
        let fail = |source| GrpcError { address, source };
        let listener = TcpListener::bind(address).await.map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        let (stop, is_stopping) = watch::channel(false);
        let (alive, ended) = mpsc::channel(1);
        let limits = guests.limits();
        let front = Front::new(chain, limits.response_bytes_max, limits.send_time_max);
        let hall = Hall { front: Arc::new(front), guests, tls, is_stopping, _alive: alive };
        tokio::spawn(accept(listener, Arc::new(hall)));
        Ok(Self { address, stop, ended })
    }

    /// Where it listens; the port is the real one if 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers what is under way, then stops.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        // A client that does not take its answer in time does not hold the node up.
        let _ = tokio::time::timeout(STOP_PATIENCE, self.ended.recv()).await;
    }
}

/// Waits until the server stops, or is dropped.
async fn stopped(mut is_stopping: watch::Receiver<bool>) {
    let _ = is_stopping.wait_for(|is_stopping| *is_stopping).await;
}

async fn accept(listener: TcpListener, hall: Arc<Hall>) {
    loop {
        let accepted = tokio::select! {
            () = stopped(hall.is_stopping.clone()) => return,
            accepted = listener.accept() => accepted,
        };
        let (socket, from) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of files, most likely: others must close before we can go on.
                tracing::warn!("cannot accept a gRPC connection: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        match hall.guests.admit(from.ip()) {
            Ok(guest) => {
                tokio::spawn(secure(socket, guest, hall.clone()));
            }
            Err(refused) => tracing::debug!("a gRPC connection was turned away: {refused}"),
        }
    }
}

/// Agrees on TLS, if there is a certificate, and serves the connection.
async fn secure(socket: TcpStream, guest: Guest, hall: Arc<Hall>) {
    // An answer must not wait for a packet to fill up; a socket that refuses is only slower.
    let _ = socket.set_nodelay(true);
    let socket = guest.paced(socket);
    let Some(tls) = &hall.tls else { return serve(socket, guest, &hall).await };
    let handshake = tokio::select! {
        handshake = tls.accept(socket) => handshake,
        () = guest.expired() => return,
        () = stopped(hall.is_stopping.clone()) => return,
    };
    match handshake {
        Ok(socket) => serve(socket, guest, &hall).await,
        Err(error) => tracing::debug!("a TLS handshake failed: {error}"),
    }
}

/// Serves one connection until it ends, is idle for too long, loses its place, or does not read.
async fn serve(socket: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, guest: Guest, hall: &Hall) {
    let close = Arc::new(Notify::new());
    let service = {
        let (front, guest, close) = (hall.front.clone(), guest.clone(), close.clone());
        service_fn(move |request| front.clone().serve(request, guest.clone(), close.clone()))
    };
    let limits = hall.guests.limits();
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .max_concurrent_streams(u32::try_from(limits.connection_calls_max).unwrap_or(u32::MAX))
        .max_header_list_size(HEADER_BYTES_MAX)
        .initial_stream_window_size(WINDOW_BYTES_MAX)
        .initial_connection_window_size(WINDOW_BYTES_MAX)
        .max_send_buf_size(SEND_BYTES_MAX);
    let serving = http.serve_connection(TokioIo::new(socket), service);
    tokio::pin!(serving);
    let patience = tokio::select! {
        // A client that breaks off is the client's business.
        _ = serving.as_mut() => return,
        () = close.notified() => return,
        () = guest.expired() => GOODBYE_PATIENCE,
        () = stopped(hall.is_stopping.clone()) => STOP_PATIENCE,
    };
    // A client that is told does not send another request on its way out.
    serving.as_mut().graceful_shutdown();
    tokio::select! {
        _ = serving => {}
        () = close.notified() => {}
        () = tokio::time::sleep(patience) => {}
    }
}
