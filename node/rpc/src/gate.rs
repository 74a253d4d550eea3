//! What every request passes before anybody reads it: whose page it comes from, how fast, how large.

use crate::{
    idle::Busy,
    rate::Rate,
    server::{Limits, Page},
};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use jsonrpsee::{core::BoxError, server::HttpBody};
use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// Names under which a browser may reach a node on its own machine. A page that resolves its own name to this
/// machine (DNS rebinding) comes with another.
const HOSTS: [&str; 4] = ["localhost", "127.0.0.1", "[::1]", "0.0.0.0"];

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Who asks, for what a client keeps at the node. A WebSocket is a client. HTTP clients use several connections for
/// one conversation and can open more at will, so all from one address are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// By HTTP.
    Address(IpAddr),
    /// By WebSocket.
    Connection(u64),
}

/// Marks a call whose place in the rate was taken before it was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted;

/// The gate of a server.
#[derive(Clone)]
pub(crate) struct Gate {
    limits: Limits,
    rate: Arc<Rate>,
    pages: Arc<[(&'static str, Page)]>,
    upgrades: Arc<AtomicU64>,
}

impl Gate {
    pub(crate) fn new(limits: Limits, rate: Arc<Rate>, pages: Vec<(&'static str, Page)>) -> Self {
        Self { limits, rate, pages: pages.into(), upgrades: Arc::default() }
    }

    /// Answers a request, with `service` if it is one for JSON-RPC. Its connection is in use as long.
    pub(crate) async fn serve<S, B>(
        self,
        mut request: Request<B>,
        peer: Peer,
        mut service: S,
        _busy: Busy,
    ) -> Result<Response<HttpBody>, BoxError>
    where
        B: http_body::Body<Data = bytes::Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
        S: tower::Service<Request<B>, Response = Response<HttpBody>, Error = BoxError, Future: Send>
            + tower::Service<
                Request<Full<bytes::Bytes>>,
                Response = Response<HttpBody>,
                Error = BoxError,
                Future: Send,
            >,
    {
        if !is_known_host(&request) {
            return Ok(plain(
                StatusCode::FORBIDDEN,
                "this host name is not served; use localhost or 127.0.0.1\n",
            ));
        }
        let is_upgrade = request.headers().contains_key(header::UPGRADE);
        if request.method() == Method::GET && !is_upgrade {
            return Ok(self.page(request.uri().path()));
        }
        if let Err(wait) = self.rate.take(peer, 1) {
            let text = format!("too many requests: ask again in {} ms\n", wait.as_millis());
            return Ok(plain(StatusCode::TOO_MANY_REQUESTS, &text));
        }
        request.extensions_mut().insert(peer);
        if is_upgrade {
            let number = self.upgrades.fetch_add(1, Ordering::Relaxed);
            request.extensions_mut().insert(Client::Connection(number));
            return tower::Service::<Request<B>>::call(&mut service, request).await;
        }
        request.extensions_mut().insert(Client::Address(peer.0));
        request.extensions_mut().insert(Counted);
        let (parts, body) = request.into_parts();
        let limit = usize::try_from(self.limits.request_bytes_max).unwrap_or(usize::MAX);
        let read = tokio::time::timeout(self.limits.request_time_max, Limited::new(body, limit).collect());
        let body = match read.await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
                let text = format!("the request is above the limit of {limit} bytes\n");
                return Ok(plain(StatusCode::PAYLOAD_TOO_LARGE, &text));
            }
            Ok(Err(error)) => return Err(error),
            Err(_) => return Ok(plain(StatusCode::REQUEST_TIMEOUT, "the request did not come to its end\n")),
        };
        let request = Request::from_parts(parts, Full::new(body));
        tower::Service::<Request<Full<bytes::Bytes>>>::call(&mut service, request).await
    }

    fn page(&self, path: &str) -> Response<HttpBody> {
        match self.pages.iter().find(|(known, _)| *known == path) {
            Some((_, page)) => plain(StatusCode::OK, &page()),
            None => {
                let known: Vec<_> = self.pages.iter().map(|(path, _)| *path).collect();
                let text = format!("JSON-RPC is served to POST and WebSocket; pages: {}\n", known.join(" "));
                plain(StatusCode::NOT_FOUND, &text)
            }
        }
    }
}

/// Requests without a host are from programs; a browser always names one.
fn is_known_host<B>(request: &Request<B>) -> bool {
    let named = request.headers().get(header::HOST).map(|host| host.to_str().unwrap_or_default());
    let Some(host) = named.or_else(|| request.uri().authority().map(http::uri::Authority::as_str)) else {
        return true;
    };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|c| c.is_ascii_digit()) => name,
        _ => host,
    };
    HOSTS.iter().any(|known| known.eq_ignore_ascii_case(name))
}

fn plain(status: StatusCode, text: &str) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::from(text.to_owned()));
    *response.status_mut() = status;
    let text = header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_served() {
        let is_known = |host: &str| {
            let request = Request::builder().header(header::HOST, host).body(()).unwrap();
            is_known_host(&request)
        };
        for host in ["localhost", "LOCALHOST:8545", "127.0.0.1:1", "[::1]:8545", "[::1]", "0.0.0.0:8545"] {
            assert!(is_known(host), "{host}");
        }
        for host in
            ["evil.example", "evil.example:8545", "localhost.evil.example", "127.0.0.1.evil.example", ""]
        {
            assert!(!is_known(host), "{host}");
        }
        assert!(is_known_host(&Request::new(())), "no browser, no name");
    }
}
