//! The HTTP and WebSocket server: listens, and accepts connections.

use crate::{
    access::Access,
    connection::Paced,
    dispatch::Dispatcher,
    files::StaticFile,
    gate::Gate,
    guest::Guests,
    heavy::{Heavy, HeavyLimits},
    limits::Limits,
    peer::Peer,
    places::{Place, Places, Refused},
    rate::Rate,
    websocket::Stopping,
};
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use jsonrpsee::Methods;
use std::{
    io::Write as _,
    net::SocketAddr,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
};

/// Who may call, and how much.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// How much.
    pub limits: Limits,
    /// Who.
    pub access: Access,
}

/// A running server. Dropping it stops it.
pub struct Server {
    address: SocketAddr,
    /// Not held: its end says that every connection has ended.
    gate: Weak<Gate>,
    stop: watch::Sender<bool>,
    /// Ends when every connection has.
    ended: mpsc::Receiver<()>,
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

/// Makes a page for people and machines beside JSON-RPC. Not on a thread that serves connections, so it may take a while.
pub type Page = Arc<dyn Fn() -> String + Send + Sync>;

/// Most bytes of a request's head.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Longest that a server waits for its connections when it stops.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// Most headers of a request.
pub const HEADERS_MAX: usize = 64;

impl Server {
    /// Listens on `address`, answers calls with `methods`, and GET requests with `files` and `pages`.
    pub async fn start(
        address: SocketAddr,
        config: ServerConfig,
        methods: impl Into<Methods>,
        pages: Vec<(&'static str, Page)>,
        files: &'static [StaticFile],
    ) -> Result<Self, ServerError> {
        let fail = |source| ServerError { address, source };
        let listener = TcpListener::bind(address).await.map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        let (stop, is_stopping) = watch::channel(false);
        let (alive, ended) = mpsc::channel(1);
        let stopping = Stopping { is_stopping, _alive: alive };
        let ServerConfig { limits, access } = config;
        let rate = Rate::new(limits.calls_per_second_max);
        let dispatcher = Arc::new(Dispatcher::new(methods.into(), limits, rate.clone()));
        let page_queue = Heavy::new(HeavyLimits::PAGES);
        let places = Places::new(limits);
        let gate =
            Arc::new(Gate { limits, access, rate, places, pages, page_queue, files, dispatcher, stopping });
        let held = Arc::downgrade(&gate);
        tokio::spawn(accept(listener, gate));
        Ok(Self { address, gate: held, stop, ended })
    }

    /// Serves pages alone: there is no chain to ask about yet, and no method is known.
    pub async fn start_pages(
        address: SocketAddr,
        config: ServerConfig,
        pages: Vec<(&'static str, Page)>,
    ) -> Result<Self, ServerError> {
        Self::start(address, config, Methods::new(), pages, &[]).await
    }

    /// Where it listens; the port is the real one if 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes in connections of another protocol; `None` once it stops. It waits for them when it stops, so they end
    /// first.
    pub fn guests(&self) -> Option<Guests> {
        self.gate.upgrade().map(Guests::new)
    }

    /// Answers what is under way, then stops.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        // A client that does not take its answer in time does not hold the node up.
        let _ = tokio::time::timeout(STOP_PATIENCE, self.ended.recv()).await;
    }
}

async fn accept(listener: TcpListener, gate: Arc<Gate>) {
    let mut stopping = gate.stopping.clone();
    loop {
        let (socket, from) = tokio::select! {
            () = stopping.wait() => {
                // Before the gate, whose end says that all is over: the next server may want the same port.
                drop(listener);
                return;
            }
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of files, most likely: others must close before we can go on.
                    tracing::warn!("cannot accept a connection: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        match gate.places.take(Peer::new(from.ip())) {
            Ok(place) => {
                tokio::spawn(serve(socket, Arc::new(place), gate.clone()));
            }
            Err(refused) => turn_away(socket, &refused),
        }
    }
}

/// Serves one connection until it ends, is idle for too long, or loses its place. All that it costs ends with it.
async fn serve(socket: TcpStream, place: Arc<Place>, gate: Arc<Gate>) {
    // An answer must not wait for a packet to fill up; a socket that refuses is only slower.
    let _ = socket.set_nodelay(true);
    let connection = place.connection().clone();
    let (limits, mut stopping) = (gate.limits, gate.stopping.clone());
    let socket = TokioIo::new(Paced::new(socket, connection.clone(), &limits));
    let service = service_fn(move |request| gate.clone().serve(request, place.clone()));
    // HTTP/1 alone: with HTTP/2 one connection has many requests, and every limit would count for each.
    let mut http = http1::Builder::new();
    http.max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX).header_read_timeout(None);
    let serving = http.serve_connection(socket, service).with_upgrades();
    tokio::pin!(serving);
    tokio::select! {
        // A client that breaks off is the client's business.
        _ = serving.as_mut() => return,
        () = connection.expired(&limits) => return,
        () = stopping.wait() => serving.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        _ = serving => {}
        () = connection.expired(&limits) => {}
    }
}

/// Tells a client why it is not served, if that takes no waiting.
fn turn_away(socket: TcpStream, refused: &Refused) {
    tracing::debug!("a connection was turned away: {refused}");
    let text = format!("{refused}: try again later\n");
    let length = text.len();
    let head =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close";
    if let Ok(mut socket) = socket.into_std() {
        // In one piece: the socket is closed behind it.
        let _ = socket.write_all(format!("{head}\r\nContent-Length: {length}\r\n\r\n{text}").as_bytes());
    }
}
