//! A single HTTP request to a node, for commands.
//!
//! HTTP/1.0: the answer is in one piece and ends with the connection.

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream, ToSocketAddrs as _},
    time::Duration,
};

/// Largest answer that is read: above what a node sends.
const ANSWER_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Where a node answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    host: String,
    path: String,
}

impl Endpoint {
    /// Reads `http://HOST:PORT/PATH`; the path may be left out.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let rest = url.strip_prefix("http://");
        let rest = rest.ok_or_else(|| format!("invalid URL {url:?}: expected http://HOST:PORT"))?;
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let has_port =
            host.rsplit_once(':').is_some_and(|(name, port)| !name.is_empty() && port.parse::<u16>().is_ok());
        if !has_port || rest.contains(|c: char| c.is_ascii_control() || c == ' ') {
            return Err(format!(
                "{url:?} names no port: write http://HOST:PORT, for example http://127.0.0.1:8545"
            ));
        }
        Ok(Self { host: host.to_owned(), path: if path.is_empty() { "/" } else { path }.to_owned() })
    }

    /// The root of a node at an address.
    pub(crate) fn at(address: SocketAddr) -> Self {
        Self { host: address.to_string(), path: "/".to_owned() }
    }

    /// The page at `path`.
    pub(crate) fn page(&self, path: &str, patience: Duration) -> anyhow::Result<String> {
        self.exchange(&format!("GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.host), patience)
    }

    /// The result of a JSON-RPC call.
    pub(crate) fn call(&self, method: &str, params: &Value, patience: Duration) -> Result<Value, CallError> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let request = format!(
            "POST {} HTTP/1.0\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.path,
            self.host,
            body.len()
        );
        let answer = self.exchange(&request, patience)?;
        let mut answer: Value = serde_json::from_str(&answer).context("the node's answer is not JSON")?;
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

    fn exchange(&self, request: &str, patience: Duration) -> anyhow::Result<String> {
        let host = &self.host;
        let mut addresses = host.to_socket_addrs().with_context(|| format!("cannot find {host}"))?;
        let address = addresses.next().with_context(|| format!("cannot find {host}"))?;
        let mut stream = TcpStream::connect_timeout(&address, patience)
            .with_context(|| format!("no node answers at {host}"))?;
        stream.set_read_timeout(Some(patience))?;
        stream.write_all(request.as_bytes()).with_context(|| format!("{host} closed the connection"))?;
        let mut answer = String::new();
        let read = stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer);
        read.with_context(|| format!("{host} did not answer within {patience:?}"))?;
        ensure!(
            (answer.len() as u64) < ANSWER_BYTES_MAX,
            "{host} answers with more than {ANSWER_BYTES_MAX} bytes"
        );
        let Some((head, body)) = answer.split_once("\r\n\r\n") else { bail!("{host} does not speak HTTP") };
        let status = head.lines().next().unwrap_or_default();
        ensure!(status.split(' ').nth(1) == Some("200"), "{host} answers with {status:?}: {body:?}");
        Ok(body.to_owned())
    }
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
        ] {
            assert!(Endpoint::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn nobody_there_is_said() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = Endpoint::at(free).page("/health", Duration::from_secs(1)).unwrap_err();
        assert!(error.to_string().contains("no node answers"), "{error:#}");
    }
}
