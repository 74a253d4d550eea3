//! A single HTTP request to a node, for commands. The time for it and the size of the answer are limited.

use anyhow::{Context as _, anyhow, ensure};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::{
    Request, StatusCode, Uri,
    body::Bytes,
    client::conn::http1,
    header::{CONNECTION, CONTENT_TYPE, HOST},
    http::request::Builder,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::{net::SocketAddr, time::Duration};
use tokio::net::{TcpStream, lookup_host};

/// Largest answer that is read: above what a node sends.
const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Where a node answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    host: String,
    path: String,
}

impl Endpoint {
    /// Reads `http://HOST:PORT/PATH`; the path may be left out.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let invalid = || format!("invalid URL {url:?}: expected http://HOST:PORT");
        let uri: Uri = url.parse().map_err(|_| invalid())?;
        if uri.scheme_str() == Some("https") {
            return Err(
                "https:// is not supported: use http://HOST:PORT, through a local proxy that adds TLS if \
                        need be"
                    .to_owned(),
            );
        }
        let authority = uri.authority().filter(|_| uri.scheme_str() == Some("http")).ok_or_else(invalid)?;
        if authority.host().is_empty() || authority.as_str().contains('@') {
            return Err(invalid());
        }
        if authority.port_u16().is_none() {
            return Err(format!(
                "{url:?} names no port: write http://HOST:PORT, for example http://127.0.0.1:8545"
            ));
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self { host: authority.as_str().to_owned(), path: path.to_owned() })
    }

    /// The root of a node at an address.
    pub(crate) fn at(address: SocketAddr) -> Self {
        Self { host: address.to_string(), path: "/".to_owned() }
    }

    /// The page at `path`.
    pub(crate) fn page(&self, path: &str, patience: Duration) -> anyhow::Result<String> {
        self.exchange(Request::get(path), String::new(), patience)
    }

    /// The result of a JSON-RPC call.
    pub(crate) fn call(&self, method: &str, params: &Value, patience: Duration) -> Result<Value, CallError> {
        let (request, body) = self.question(method, params);
        read_result(method, &self.exchange(request, body, patience)?)
    }

    /// The same for code that does not block.
    pub(crate) async fn call_later(
        &self,
        method: &str,
        params: &Value,
        patience: Duration,
    ) -> Result<Value, CallError> {
        let (request, body) = self.question(method, params);
        let exchange = exchange(&self.host, self.request(request, body)?);
        let answer = tokio::time::timeout(patience, exchange).await;
        read_result(method, &answer.map_err(|_| self.is_late(patience))??)
    }

    /// Its host and port. The path may hold a secret.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    fn question(&self, method: &str, params: &Value) -> (Builder, String) {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        (Request::post(&self.path).header(CONTENT_TYPE, "application/json"), body)
    }

    fn request(&self, request: Builder, body: String) -> anyhow::Result<Request<Full<Bytes>>> {
        let request = request.header(HOST, &self.host).header(CONNECTION, "close");
        request.body(Full::from(body)).context("cannot write the request")
    }

    fn is_late(&self, patience: Duration) -> anyhow::Error {
        anyhow!("{} did not answer within {patience:?}", self.host)
    }

    /// Sends a request and waits for the answer, on a runtime of its own: commands are not asynchronous.
    fn exchange(&self, request: Builder, body: String, patience: Duration) -> anyhow::Result<String> {
        let request = self.request(request, body)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot start the runtime")?;
        let answer =
            runtime.block_on(async { tokio::time::timeout(patience, exchange(&self.host, request)).await });
        // A name server that does not answer either is not waited for.
        runtime.shutdown_background();
        answer.map_err(|_| self.is_late(patience))?
    }
}

/// The result in an answer.
fn read_result(method: &str, answer: &str) -> Result<Value, CallError> {
    let mut answer: Value = serde_json::from_str(answer).context("the node's answer is not JSON")?;
    if !answer.is_object() {
        return Err(anyhow!("the node's answer is not a JSON-RPC answer").into());
    }
    match answer["error"].take() {
        Value::Null => Ok(answer["result"].take()),
        error => {
            let reason = error["message"].as_str().unwrap_or("the node gives no reason");
            // Whoever runs the node chose the words: none of them may steer a terminal.
            let message = format!("{method}: {}", reason.escape_debug());
            Err(CallError::Refused { code: error["code"].as_i64().unwrap_or_default(), message })
        }
    }
}

async fn exchange(host: &str, request: Request<Full<Bytes>>) -> anyhow::Result<String> {
    let addresses: Vec<SocketAddr> =
        lookup_host(host).await.with_context(|| format!("cannot find {host}"))?.collect();
    let stream =
        TcpStream::connect(&*addresses).await.with_context(|| format!("no node answers at {host}"))?;
    let failed = || format!("{host} broke off, or does not speak HTTP");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.with_context(failed)?;
    // Ends with the answer; what is wrong with it is an error of the request, too.
    tokio::spawn(connection);
    let response = sender.send_request(request).await.with_context(failed)?;
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(|error| match error.is::<LengthLimitError>() {
        true => anyhow!("{host} answers with more than {ANSWER_BYTES_MAX} bytes"),
        false => anyhow::Error::from_boxed(error).context(failed()),
    })?;
    let text = String::from_utf8(body.to_bytes().into())
        .map_err(|_| anyhow!("{host} answers with what is not UTF-8"))?;
    ensure!(status == StatusCode::OK, "{host} answers with {status}: {text:?}");
    Ok(text)
}

/// Why a call has no result.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The node refuses it.
    Refused { code: i64, message: String },
    /// There is no node, or it does not answer.
    Failed(anyhow::Error),
}

impl From<anyhow::Error> for CallError {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<CallError> for anyhow::Error {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused { message, .. } => Self::msg(message),
            CallError::Failed(error) => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io::{Read as _, Write as _},
        net::TcpListener,
        time::Instant,
    };

    #[test]
    fn addresses_as_people_write_them() {
        let endpoint = |host: &str, path: &str| Endpoint { host: host.to_owned(), path: path.to_owned() };
        for (url, expected) in [
            ("http://127.0.0.1:8545", endpoint("127.0.0.1:8545", "/")),
            ("http://localhost:1/", endpoint("localhost:1", "/")),
            ("http://[::1]:80/v1/key", endpoint("[::1]:80", "/v1/key")),
        ] {
            assert_eq!(Endpoint::parse(url), Ok(expected), "{url}");
        }
        for bad in [
            "",
            "127.0.0.1:8545",
            "https://a:1",
            "http://",
            "http://a",
            "http://:1",
            "http://a:x",
            "http://a:70000",
            "http://a:1/\r\nX: y",
            "http://a:1/ b",
            "http://user@a:1",
        ] {
            assert!(Endpoint::parse(bad).is_err(), "{bad}");
        }
    }

    /// Answers one connection with `head`, and then with `body` as often as the client takes it.
    fn server(head: String, body: Vec<u8>, times: usize, pause: Duration) -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let _ = socket.read(&mut [0; 4096]);
            let mut sent = socket.write_all(head.as_bytes());
            for _ in 0..times {
                std::thread::sleep(pause);
                sent = sent.and_then(|()| socket.write_all(&body));
            }
        });
        Endpoint::at(address)
    }

    fn get(endpoint: &Endpoint, patience: Duration) -> Result<String, String> {
        endpoint.page("/", patience).map_err(|error| format!("{error:#}"))
    }

    const OK: &str = "HTTP/1.1 200 OK\r\n\r\n";

    #[test]
    fn a_closed_port_is_named() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = get(&Endpoint::at(free), Duration::from_secs(5)).unwrap_err();
        assert!(error.contains(&format!("no node answers at {free}")), "{error}");
    }

    #[test]
    fn an_answer_ends_at_its_size() {
        let (piece, patience) = (vec![b'a'; 1 << 20], Duration::from_secs(60));
        let answer = |head: &str| get(&server(head.to_owned(), piece.clone(), 32, Duration::ZERO), patience);
        assert_eq!(answer(OK).unwrap().len(), ANSWER_BYTES_MAX);
        let error = answer(&format!("{OK}b")).unwrap_err();
        assert!(error.contains("more than 33554432 bytes"), "{error}");
    }

    #[test]
    fn an_answer_ends_at_its_time() {
        let slow = || server(OK.to_owned(), b"a".to_vec(), 20, Duration::from_millis(50));
        assert_eq!(get(&slow(), Duration::from_secs(60)).unwrap(), "a".repeat(20));
        let begin = Instant::now();
        let error = get(&slow(), Duration::from_millis(300)).unwrap_err();
        assert!(error.contains("did not answer within 300ms"), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(30));
        let silent = server(String::new(), Vec::new(), 1, Duration::from_secs(2));
        assert!(get(&silent, Duration::from_millis(100)).unwrap_err().contains("within 100ms"));
    }

    #[test]
    fn other_answers_are_errors() {
        let answer = |head: &str| {
            let server = server(head.to_owned(), Vec::new(), 0, Duration::ZERO);
            get(&server, Duration::from_secs(60)).unwrap_err()
        };
        let busy = answer("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 5\r\n\r\nfull\x1b");
        assert!(busy.contains("503 Service Unavailable: \"full\\u{1b}\""), "{busy}");
        for other in ["220 mail.example ESMTP\r\n", "", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfour"] {
            assert!(answer(other).contains("does not speak HTTP"), "{other:?}");
        }
    }
}
