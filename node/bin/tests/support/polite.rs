//! A client that behaves, from an address of its own, and how long it waits for its answers.

use serde_json::Value;
use std::{
    io::{Error, Read as _, Result, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::{Duration, Instant},
};

/// A connection from another address of this machine.
pub fn connect_from(last: u8, address: &str) -> Result<TcpStream> {
    let address: SocketAddr = address.parse().map_err(Error::other)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind((Ipv4Addr::new(127, 0, 0, last), 0).into())?;
        socket.connect(address).await?.into_std()
    })?;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    Ok(stream)
}

/// One question on a connection of its own.
pub fn ask_from(last: u8, address: &str) -> Result<Value> {
    let mut stream = connect_from(last, address)?;
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}"#;
    let length = body.len();
    write!(
        stream,
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    serde_json::from_str(body).map_err(|error| Error::other(format!("{error}: {answer:?}")))
}

/// Asks again and again for a while, and answers with the slowest of a hundred. Every question must be answered.
pub fn p99_from(last: u8, address: &str, time: Duration) -> Duration {
    let begin = Instant::now();
    let mut waits = Vec::new();
    while begin.elapsed() < time {
        let asked = Instant::now();
        let answer = ask_from(last, address);
        assert!(answer.as_ref().is_ok_and(|answer| answer["result"].is_string()), "{answer:?}");
        waits.push(asked.elapsed());
        std::thread::sleep(Duration::from_millis(10));
    }
    waits.sort();
    waits[waits.len() * 99 / 100]
}
