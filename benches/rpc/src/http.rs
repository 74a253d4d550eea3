//! One HTTP connection that is kept open, with as little work per request as there can be.

use std::{io, net::SocketAddr};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// A connection to a node.
pub(crate) struct Connection {
    address: SocketAddr,
    stream: TcpStream,
    request: Vec<u8>,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { address, stream, request: Vec::new(), buffer: Vec::new() })
    }

    /// Posts a body and gives the body of the answer.
    pub(crate) async fn post(&mut self, body: &str) -> io::Result<&[u8]> {
        self.request.clear();
        self.request.extend_from_slice(
            format!(
                "POST / HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                self.address,
                body.len()
            )
            .as_bytes(),
        );
        self.request.extend_from_slice(body.as_bytes());
        self.stream.write_all(&self.request).await?;
        self.read_answer().await
    }

    async fn read_answer(&mut self) -> io::Result<&[u8]> {
        self.buffer.clear();
        let head = loop {
            if let Some(at) = find(&self.buffer, b"\r\n\r\n") {
                break at + 4;
            }
            self.read_more().await?;
        };
        let length = content_length(&self.buffer[..head])?;
        while self.buffer.len() < head + length {
            self.read_more().await?;
        }
        Ok(&self.buffer[head..head + length])
    }

    async fn read_more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// One request of JSON-RPC.
pub(crate) fn request(id: usize, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

fn content_length(head: &[u8]) -> io::Result<usize> {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let value = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    value.and_then(|value| value.trim().parse().ok()).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, format!("an answer without its length: {head:?}"))
    })
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}
