//! What every HTTP request passes before its body is read: size of its head, host, origin, rate, size and time.

use crate::{
    access::Access,
    budget::Held,
    connection::{Busy, Connection},
    dispatch::{self, Dispatcher, Origin},
    files::StaticFile,
    heavy::Heavy,
    limits::Limits,
    peer::Client,
    places::{Place, Places},
    rate::Rate,
    rest::{self, Problem, Source},
    server::{HEAD_BYTES_MAX, Page},
    turns::ASKER,
    websocket::{self, Stopping},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Incoming};
use jsonrpsee::Extensions;
use std::{convert::Infallible, sync::Arc, time::Duration};

type Answer = Response<Full<Bytes>>;

/// The gate of a server.
pub(crate) struct Gate {
    pub(crate) limits: Limits,
    pub(crate) access: Access,
    pub(crate) rate: Arc<Rate>,
    pub(crate) places: Arc<Places>,
    pub(crate) pages: Vec<(&'static str, Page)>,
    /// Pages are made here: one may list thousands of figures.
    pub(crate) page_queue: Heavy,
    /// The explorer.
    pub(crate) files: &'static [StaticFile],
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) stopping: Stopping,
}

impl Gate {
    /// Answers a request.
    pub(crate) async fn serve(
        self: Arc<Self>,
        request: Request<Incoming>,
        place: Arc<Place>,
    ) -> Result<Answer, Infallible> {
        let is_rest = rest::is_asked(request.uri().path());
        let response = self.checked(request, place).await;
        let mut response = if is_rest { rest::in_json(response).await } else { response };
        // Here, so that no answer escapes it: a browser must not take JSON or an error for a page with scripts.
        response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        Ok(response)
    }

    async fn checked(self: Arc<Self>, request: Request<Incoming>, place: Arc<Place>) -> Answer {
        let busy = place.connection().begin();
        let head_bytes = head_bytes(&request);
        if head_bytes > HEAD_BYTES_MAX {
            let text = format!("the head of {head_bytes} bytes is above the limit of {HEAD_BYTES_MAX}\n");
            return closing(plain(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, text));
        }
        // Not counted: a foreign page must not use up what the programs of this machine may ask for.
        if let Err(refused) = self.access.check(&request) {
            return closing(plain(StatusCode::FORBIDDEN, format!("{refused}\n")));
        }
        let cors = cors(request.headers());
        // Here, so that no kind of request escapes the rate.
        let mut response = match self.rate.take(place.connection().peer, 1) {
            Ok(()) => self.answer(request, place, busy).await,
            Err(wait) => too_fast(wait),
        };
        response.headers_mut().extend(cors);
        response
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>, place: Arc<Place>, busy: Busy) -> Answer {
        if soketto::handshake::http::is_upgrade_request(&request) {
            return self.upgrade(request, place, busy);
        }
        match *request.method() {
            Method::OPTIONS => preflight(request.headers()),
            _ if rest::is_asked(request.uri().path()) => self.rest(request, place.connection(), busy).await,
            Method::GET | Method::HEAD => match self.file(&request) {
                Some(file) => file.answer(request.method(), request.headers(), busy),
                None => self.page(request.uri().path(), place.connection(), busy).await,
            },
            Method::POST => self.call(request, place.connection(), busy).await,
            _ => {
                let text = "JSON-RPC is served to POST, pages to GET and HEAD\n".to_owned();
                plain(StatusCode::METHOD_NOT_ALLOWED, text)
            }
        }
    }

    fn upgrade(self: Arc<Self>, mut request: Request<Incoming>, place: Arc<Place>, busy: Busy) -> Answer {
        match soketto::handshake::http::Server::new().receive_request(&request) {
            Ok(response) => {
                let upgrade = hyper::upgrade::on(&mut request);
                let (dispatcher, limits, stopping) =
                    (self.dispatcher.clone(), self.limits, self.stopping.clone());
                tokio::spawn(async move {
                    let _busy = busy;
                    // Where the handshake breaks off there is nothing to serve.
                    if let Ok(socket) = upgrade.await {
                        websocket::run(socket, &place, dispatcher, &limits, stopping).await;
                    }
                });
                response.map(|()| Full::default())
            }
            Err(error) => plain(StatusCode::BAD_REQUEST, format!("not a WebSocket handshake: {error}\n")),
        }
    }

    async fn call(&self, request: Request<Incoming>, connection: &Arc<Connection>, busy: Busy) -> Answer {
        let mut read_bytes = connection.account.hold();
        let message = match self.read_in_time(request, &mut read_bytes).await {
            Ok(message) => message,
            Err(refused) => return closing(refused),
        };
        let answer = self.ask(&message, connection).await;
        drop((message, read_bytes));
        let (json, held) = match answer {
            Some(answer) => (answer.json, Some(answer.held)),
            None => (String::new(), None),
        };
        respond("application/json; charset=utf-8", json, held, busy)
    }

    /// Answers a request to `/v1` with what a JSON-RPC method answers.
    async fn rest(&self, request: Request<Incoming>, connection: &Arc<Connection>, busy: Busy) -> Answer {
        let uri = request.uri();
        let (route, mut params) = match rest::find(request.method(), uri.path(), uri.query()) {
            Ok(found) => found,
            Err(problem) => return problem.into_response(),
        };
        let Source::Method(method) = route.source else {
            let mut held = connection.account.hold();
            return match held.grow(rest::document().len()) {
                Ok(()) => respond("application/json", rest::document().to_owned(), Some(held), busy),
                Err(full) => plain(StatusCode::SERVICE_UNAVAILABLE, format!("{full}\n")),
            };
        };
        let mut read_bytes = connection.account.hold();
        if !route.body.is_empty() {
            let body = match self.read_in_time(request, &mut read_bytes).await {
                Ok(body) => body,
                Err(refused) => return closing(refused),
            };
            match route.read_body(&body) {
                Ok(given) => params.extend(given),
                Err(problem) => return problem.into_response(),
            }
        }
        let message = rest::message(method, &params);
        drop(params);
        if let Err(full) = read_bytes.grow(message.len()) {
            return plain(StatusCode::SERVICE_UNAVAILABLE, format!("{full}\n"));
        }
        let answer = self.ask(message.as_bytes(), connection).await;
        drop((message, read_bytes));
        let Some(answer) = answer else { return Problem::no_answer().into_response() };
        rest::respond(route, answer, busy).unwrap_or_else(Problem::into_response)
    }

    /// What the methods answer to a message.
    pub(crate) async fn ask(&self, message: &[u8], connection: &Arc<Connection>) -> Option<dispatch::Answer> {
        let mut extensions = Extensions::new();
        extensions.insert(Client { peer: connection.peer, websocket: None });
        let origin = Origin {
            peer: connection.peer,
            connection: connection.number,
            account: connection.account.clone(),
            writes: connection.writes.clone(),
            is_counted: true,
            extensions,
        };
        // The semaphore is never closed; without a turn the call would only be less orderly.
        let _turn = connection.turns.acquire().await;
        self.dispatcher.answer(message, &origin).await
    }

    /// The whole body of a request with JSON in it.
    async fn read_in_time(&self, request: Request<Incoming>, held: &mut Held) -> Result<Vec<u8>, Answer> {
        if !is_json(request.headers()) {
            let text = "POST is served to requests with Content-Type: application/json\n";
            return Err(plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, text.to_owned()));
        }
        let limit = self.limits.request_time_max;
        let Ok(read) = tokio::time::timeout(limit, self.read(request.into_body(), held)).await else {
            let text = format!("the request did not end within {} ms\n", limit.as_millis());
            return Err(plain(StatusCode::REQUEST_TIMEOUT, text));
        };
        read
    }

    /// The whole body, counted as it comes.
    async fn read(&self, mut body: Incoming, held: &mut Held) -> Result<Vec<u8>, Answer> {
        let limit = self.limits.request_bytes_max;
        let too_large = || {
            plain(StatusCode::PAYLOAD_TOO_LARGE, format!("the request is above the limit of {limit} bytes\n"))
        };
        if usize::try_from(body.size_hint().lower()).map_or(true, |announced| announced > limit) {
            return Err(too_large());
        }
        let mut message = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| {
                plain(StatusCode::BAD_REQUEST, format!("the request broke off: {error}\n"))
            })?;
            let Ok(data) = frame.into_data() else { continue };
            if message.len() + data.len() > limit {
                return Err(too_large());
            }
            held.grow(data.len())
                .map_err(|full| plain(StatusCode::SERVICE_UNAVAILABLE, format!("{full}\n")))?;
            message.extend_from_slice(&data);
        }
        Ok(message)
    }

    fn file(&self, request: &Request<Incoming>) -> Option<&'static StaticFile> {
        self.files.iter().find(|file| file.path == request.uri().path())
    }

    async fn page(&self, path: &str, connection: &Connection, busy: Busy) -> Answer {
        let Some((_, page)) = self.pages.iter().find(|(known, _)| *known == path) else {
            let front = self.files.first().map(|file| file.path);
            let known: Vec<_> = front.into_iter().chain(self.pages.iter().map(|(path, _)| *path)).collect();
            let text = format!("JSON-RPC is served to POST and WebSocket; pages: {}\n", known.join(" "));
            return plain(StatusCode::NOT_FOUND, text);
        };
        let page = page.clone();
        let made = ASKER.scope(connection.peer, self.page_queue.run(move || Ok(page())));
        let text = match made.await {
            Ok(text) => text,
            Err(refused) => {
                return plain(StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", refused.message()));
            }
        };
        let mut held = connection.account.hold();
        match held.grow(text.len()) {
            Ok(()) => respond("text/plain; charset=utf-8", text, Some(held), busy),
            Err(full) => plain(StatusCode::SERVICE_UNAVAILABLE, format!("{full}\n")),
        }
    }
}

/// Text on its way out. The bytes and the connection are in use until the socket has taken all of it.
struct Sent {
    text: String,
    _held: Option<Held>,
    _busy: Busy,
}

impl AsRef<[u8]> for Sent {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

fn respond(kind: &'static str, text: String, held: Option<Held>, busy: Busy) -> Answer {
    let sent = Sent { text, _held: held, _busy: busy };
    let mut response = Response::new(Full::new(Bytes::from_owner(sent)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// The bytes of a request's line and headers, as HTTP/1.1 writes them. The parser stops at a multiple of this limit
/// only, by what a read happened to bring.
fn head_bytes<B>(request: &Request<B>) -> usize {
    let line = request.method().as_str().len() + request.uri().to_string().len() + "  HTTP/1.1\r\n".len();
    let headers =
        request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    line + headers.sum::<usize>() + "\r\n".len()
}

fn too_fast(wait: Duration) -> Answer {
    let text = format!("too many requests: ask again in {} ms\n", wait.as_millis());
    plain(StatusCode::TOO_MANY_REQUESTS, text)
}

fn plain(status: StatusCode, text: String) -> Answer {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    response
}

/// Ends the connection after an answer: what is left of the request is not read.
fn closing(mut response: Answer) -> Answer {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Lets a page that may call read the answer.
fn cors(request: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(origin) = request.get(header::ORIGIN) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(header::VARY, HeaderValue::from_static("origin"));
    }
    headers
}

/// The answer to a browser that asks before it sends.
fn preflight(request: &HeaderMap) -> Answer {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST, GET, OPTIONS"));
    let asked = request.get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    let allowed = asked.unwrap_or(HeaderValue::from_static("content-type"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    if request.contains_key("access-control-request-private-network") {
        headers.insert("access-control-allow-private-network", HeaderValue::from_static("true"));
    }
    response
}

/// A page can send other kinds of content without asking first.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    ["application/json", "application/json-rpc"].iter().any(|json| kind.eq_ignore_ascii_case(json))
}
