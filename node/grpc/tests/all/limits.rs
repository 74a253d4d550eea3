//! Both sides of every limit, and clients that do not behave.

use crate::support::*;
use almanac_grpc::{
    limits::{MALFORMED_PER_SECOND_MAX, REQUEST_BYTES_MAX},
    proto::{ScheduleSignTransactionBody, Transaction, TransactionGetRecordQuery, transaction::Body},
};
use almanac_rpc::Limits;
use bytes::Bytes;
use prost::Message as _;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::{io::AsyncReadExt as _, net::TcpStream};

const GET: &str = "/almanac.RecordService/getRecord";
const SIGN: &str = "/almanac.ScheduleService/signSchedule";
const CHECK: &str = "/grpc.health.v1.Health/Check";

fn slow() -> TransactionGetRecordQuery {
    TransactionGetRecordQuery { header: None, transaction_hash: vec![0x55; 32] }
}

async fn serve(limits: Limits) -> Served {
    start(limits, Value::Null, Ok("0x".to_owned())).await
}

/// A request of exactly so many bytes, with gRPC's five.
fn of_bytes(bytes: usize) -> Bytes {
    let with = |filler: usize| {
        let body = Some(Body::ScheduleSign(ScheduleSignTransactionBody::default()));
        let message = Transaction { body, signed_transaction_bytes: vec![0; filler], deadline: 0 };
        frame(&message.encode_to_vec())
    };
    let excess = with(bytes).len() - bytes;
    let framed = with(bytes - excess);
    assert_eq!(framed.len(), bytes);
    framed
}

#[tokio::test(flavor = "multi_thread")]
async fn both_sides_of_the_size_of_a_request() {
    let served = serve(Limits::default()).await;
    let (client, _) = Client::connect(served.grpc.address()).await;
    // It is read whole, and then found to have no schedule.
    client.send(SIGN, &[], of_bytes(REQUEST_BYTES_MAX)).await.failed(3, "no ScheduleID");
    let above = client.send(SIGN, &[], of_bytes(REQUEST_BYTES_MAX + 1)).await;
    above.failed(8, "above the limit of 524288 bytes");
    // One that only claims to be large is refused before it comes.
    let claims = Bytes::from_static(&[0, 0xff, 0xff, 0xff, 0xff]);
    let claimed = client.send(SIGN, &[], claims).await;
    assert!(matches!(claimed.status, Some(8 | 11)), "{claimed:?}");
    client.send(CHECK, &[], frame(&[])).await.failed(0, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn both_sides_of_the_size_of_headers() {
    let served = serve(Limits::default()).await;
    let (client, _) = Client::connect(served.grpc.address()).await;
    let with = |bytes: usize| "x".repeat(bytes);
    client.send(CHECK, &[("filler", &with(15 << 10))], frame(&[])).await.failed(0, "");
    assert_eq!(client.send(CHECK, &[("filler", &with(17 << 10))], frame(&[])).await.http, 431);
    client.send(CHECK, &[], frame(&[])).await.failed(0, "");
}

/// The budget is that of all connections: what does not fit is refused by name.
#[tokio::test(flavor = "multi_thread")]
async fn requests_count_in_the_budget() {
    let limits = Limits {
        connection_bytes_max: 100 << 10,
        request_bytes_max: 100 << 10,
        response_bytes_max: 100 << 10,
        ..Limits::default()
    };
    let served = serve(limits).await;
    let (client, _) = Client::connect(served.grpc.address()).await;
    client.send(SIGN, &[], of_bytes(90 << 10)).await.failed(3, "no ScheduleID");
    client.send(SIGN, &[], of_bytes(120 << 10)).await.failed(8, "one connection may have in flight");
    client.send(SIGN, &[], of_bytes(90 << 10)).await.failed(3, "no ScheduleID");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_waits_no_longer_than_its_client() {
    let served = serve(Limits::default()).await;
    let (client, _) = Client::connect(served.grpc.address()).await;
    let begin = Instant::now();
    let body = frame(&slow().encode_to_vec());
    client.send(GET, &[("grpc-timeout", "100m")], body.clone()).await.failed(4, "within 100 ms");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    client.send(GET, &[("grpc-timeout", "soon")], body).await.failed(3, "grpc-timeout");
    // A request whose body does not come.
    let request = http::Request::post(format!("http://node{CHECK}"));
    let request = request.header("content-type", "application/grpc").header("grpc-timeout", "100m");
    let mut sending = client.0.clone().ready().await.unwrap();
    let (response, _stream) = sending.send_request(request.body(()).unwrap(), false).unwrap();
    let status = response.await.unwrap().headers()["grpc-status"].clone();
    assert_eq!(status, "4");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_has_a_rate() {
    let served = serve(Limits { calls_per_second_max: Some(2), ..Limits::default() }).await;
    let (client, _) = Client::connect(served.grpc.address()).await;
    for _ in 0..2 {
        client.send(CHECK, &[], frame(&[])).await.failed(0, "");
    }
    // On a slow machine the bucket fills again between two requests.
    let mut answers = Vec::new();
    for _ in 0..20 {
        answers.push(client.send(CHECK, &[], frame(&[])).await);
    }
    let refused = answers.iter().find(|answer| answer.status != Some(0)).expect("one is too many");
    refused.failed(8, "too many requests");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_has_so_many_streams() {
    let served = serve(Limits { connection_calls_max: 3, ..Limits::default() }).await;
    let (client, _) = Client::connect(served.grpc.address()).await;
    client.send(CHECK, &[], frame(&[])).await.failed(0, "");
    assert_eq!(client.0.current_max_send_streams(), 3, "as the node announces");
}

/// Places are shared with JSON-RPC: a busy connection keeps its own, a silent one gives it to the next.
#[tokio::test(flavor = "multi_thread")]
async fn so_many_connections_and_no_more() {
    let served = serve(Limits { address_connections_max: 1, ..Limits::default() }).await;
    let (first, ended) = Client::connect(served.grpc.address()).await;
    first.send(CHECK, &[], frame(&[])).await.failed(0, "");
    // The node lets go of an answer a moment after it is read.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let (second, _) = Client::connect(served.grpc.address()).await;
    second.send(CHECK, &[], frame(&[])).await.failed(0, "");
    tokio::time::timeout(Duration::from_secs(10), ended).await.expect("the first is closed").unwrap();
    let waiting = second.clone();
    let busy = tokio::spawn(async move { waiting.call(GET, &slow()).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut third = TcpStream::connect(served.grpc.address()).await.unwrap();
    let read = tokio::time::timeout(Duration::from_secs(10), third.read(&mut [0; 64])).await.unwrap();
    assert!(matches!(read, Ok(0) | Err(_)), "it is turned away: {read:?}");
    // JSON-RPC has no place for this address either.
    let mut rpc = TcpStream::connect(served.rpc.address()).await.unwrap();
    let mut text = String::new();
    let _ = rpc.read_to_string(&mut text).await;
    assert!(text.contains("503"), "{text}");
    busy.abort();
}

/// Its windows stay closed, so nothing of the answer can be sent; the socket itself is never blocked.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_never_reads_loses_its_connection() {
    let limits = Limits { send_time_max: Duration::from_millis(200), ..Limits::default() };
    let record = json!({ "transactionHash": "0x" });
    let served = start(limits, record, Ok("0x".to_owned())).await;
    let mut builder = h2::client::Builder::new();
    builder.initial_window_size(0);
    let (client, ended) = Client::connect_with(served.grpc.address(), builder).await;
    let begin = Instant::now();
    let silent = client.clone();
    let asking = tokio::spawn(async move { silent.send(CHECK, &[], frame(&[])).await });
    tokio::time::timeout(Duration::from_secs(10), ended).await.expect("the connection is closed").unwrap();
    assert!(begin.elapsed() >= Duration::from_millis(400), "{:?}", begin.elapsed());
    asking.abort();
    let (other, _) = Client::connect(served.grpc.address()).await;
    other.send(CHECK, &[], frame(&[])).await.failed(0, "");
}

/// A stream that stays open without a word ends; its connection stays.
#[tokio::test(flavor = "multi_thread")]
async fn an_open_stream_ends_in_time() {
    let limits = Limits { send_time_max: Duration::from_millis(200), ..Limits::default() };
    let served = serve(limits).await;
    let (client, _) = Client::connect(served.grpc.address()).await;
    let path = "http://node/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    let request = http::Request::post(path).header("content-type", "application/grpc").body(()).unwrap();
    let mut sending = client.0.clone().ready().await.unwrap();
    let (response, mut stream) = sending.send_request(request, false).unwrap();
    stream.send_data(frame(&[0x3a, 1, b'*']), false).unwrap();
    let mut answer = response.await.unwrap().into_body();
    while let Some(part) = answer.data().await {
        let part = part.unwrap();
        answer.flow_control().release_capacity(part.len()).unwrap();
    }
    let trailers = answer.trailers().await.unwrap().unwrap();
    assert_eq!(trailers["grpc-status"], "4");
    drop(stream);
    client.send(CHECK, &[], frame(&[])).await.failed(0, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_http2_is_dropped() {
    use tokio::io::AsyncWriteExt as _;
    let served = serve(Limits::default()).await;
    let mut socket = TcpStream::connect(served.grpc.address()).await.unwrap();
    socket.write_all(b"GET / HTTP/1.1\r\nHost: node\r\n\r\n").await.unwrap();
    let mut rest = Vec::new();
    let closed = tokio::time::timeout(Duration::from_secs(10), socket.read_to_end(&mut rest)).await;
    assert!(closed.is_ok(), "the connection is closed");
    let (client, _) = Client::connect(served.grpc.address()).await;
    client.send(CHECK, &[], frame(&[])).await.failed(0, "");
}

/// Stopping answers what is under way, closes what is idle, and frees the port.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_stops() {
    let served = serve(Limits::default()).await;
    let address = served.grpc.address();
    let (client, ended) = Client::connect(address).await;
    client.send(CHECK, &[], frame(&[])).await.failed(0, "");
    let begin = Instant::now();
    served.grpc.stop().await;
    served.rpc.stop().await;
    assert!(begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
    drop(client);
    ended.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

/// A body that was no message was answered as a fault of the server, and no limit of a service counted it.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_no_message_is_the_clients_fault() {
    let served = serve(Limits { calls_per_second_max: None, ..Limits::default() }).await;
    let (client, _) = Client::connect(served.grpc.address()).await;
    for path in ["/almanac.RecordService/getRecord", "/almanac.ScheduleService/createSchedule", CHECK] {
        // A field without an end.
        let answer = client.send(path, &[], frame(&[0x0a, 0xff])).await;
        answer.failed(3, "the body is not the message of this method");
    }
    let mut last = Vec::new();
    for _ in 0..4 * MALFORMED_PER_SECOND_MAX {
        last.push(client.send(CHECK, &[], frame(&[0x0a, 0xff])).await.status);
    }
    assert!(last.contains(&Some(8)), "one is too many");
}
