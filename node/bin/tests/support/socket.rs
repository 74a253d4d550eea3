//! A WebSocket client that can also do what no good client does: stop in the middle of a frame.

use serde_json::{Value, json};
use std::{
    io::{Error, ErrorKind, Read as _, Result, Write as _},
    net::TcpStream,
    time::Duration,
};

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// An open connection.
pub struct Socket(TcpStream);

impl Socket {
    pub fn open(address: &str) -> Self {
        Self::upgrade(TcpStream::connect(address).unwrap(), address)
    }

    /// Turns a connection into a WebSocket.
    pub fn upgrade(mut stream: TcpStream, address: &str) -> Self {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_nodelay(true).unwrap();
        write!(stream, "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n").unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
        Self(stream)
    }

    /// The answer to a text, or an error where the connection was closed.
    pub fn exchange(&mut self, text: &[u8]) -> Result<Vec<u8>> {
        self.send(text)?;
        self.receive()
    }

    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        serde_json::from_slice(&self.exchange(request.to_string().as_bytes()).unwrap()).unwrap()
    }

    pub fn send(&mut self, text: &[u8]) -> Result<()> {
        self.0.write_all(&frame(TEXT, text))
    }

    /// Sends the first bytes of a frame and hangs up.
    pub fn break_off(mut self, text: &[u8], bytes: usize) {
        let frame = frame(TEXT, text);
        let _ = self.0.write_all(&frame[..bytes.min(frame.len())]);
    }

    /// The next text; pings are answered on the way.
    pub fn receive(&mut self) -> Result<Vec<u8>> {
        loop {
            let (kind, content) = self.read_frame()?;
            match kind {
                TEXT => return Ok(content),
                PING => self.0.write_all(&frame(PONG, &content))?,
                CLOSE => return Err(Error::new(ErrorKind::ConnectionAborted, "closed by the node")),
                other => return Err(Error::other(format!("a frame of kind {other}"))),
            }
        }
    }

    /// What the next message of a subscription is about.
    pub fn news(&mut self) -> Value {
        let message: Value = serde_json::from_slice(&self.receive().unwrap()).unwrap();
        message["params"]["result"].clone()
    }

    fn read_frame(&mut self) -> Result<(u8, Vec<u8>)> {
        let mut head = [0; 2];
        self.0.read_exact(&mut head)?;
        let length = match head[1] {
            126 => u64::from(u16::from_be_bytes(self.read_array()?)),
            127 => u64::from_be_bytes(self.read_array()?),
            short => u64::from(short),
        };
        let mut content = vec![0; usize::try_from(length).map_err(Error::other)?];
        self.0.read_exact(&mut content)?;
        Ok((head[0] & 0x0f, content))
    }

    fn read_array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes).map(|()| bytes)
    }
}

/// One whole frame. Clients must mask what they send; a mask of zeros changes nothing.
fn frame(kind: u8, content: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x80 | kind];
    match content.len() {
        length @ 0..126 => frame.push(0x80 | length as u8),
        length @ 126..0x1_0000 => {
            frame.push(0x80 | 126);
            frame.extend((length as u16).to_be_bytes());
        }
        length => {
            frame.push(0x80 | 127);
            frame.extend((length as u64).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(content);
    frame
}
