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
    post_from(last, address, r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}"#)
}

/// The answer to a request on a connection of its own.
pub fn post_from(last: u8, address: &str, body: &str) -> Result<Value> {
    let length = body.len();
    let head = format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    let answer = exchange_from(last, address, &(head + body))?;
    serde_json::from_str(&answer).map_err(|error| Error::other(format!("{error}: {answer:?}")))
}

/// A page.
pub fn get_from(last: u8, address: &str, path: &str) -> Result<String> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    exchange_from(last, address, &request)
}

/// The body of what comes back.
fn exchange_from(last: u8, address: &str, request: &str) -> Result<String> {
    let mut stream = connect_from(last, address)?;
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.split_once("\r\n\r\n").map_or(answer.as_str(), |(_, body)| body).to_owned())
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
