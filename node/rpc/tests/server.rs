//! The server's hold on its connections, over real sockets.

use almanac_rpc::{
    Access, Limits, Server, ServerConfig,
    files::{CONTENT_POLICY, StaticFile},
    server::{HEAD_BYTES_MAX, Page},
};
use jsonrpsee::RpcModule;
use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

const IDLE: Duration = Duration::from_millis(600);

/// What the methods of the test count.
#[derive(Default)]
struct Counts {
    running: AtomicUsize,
    most: AtomicUsize,
    done: AtomicUsize,
}

async fn start(limits: Limits) -> (Server, Arc<Counts>) {
    let counts = Arc::new(Counts::default());
    let config = ServerConfig { limits, access: Access::node() };
    let mut methods = RpcModule::from_arc(counts.clone());
    methods.register_method("ping", |_, _, _| "pong").unwrap();
    methods
        .register_async_method("slow", |_, counts, _| async move {
            counts.most.fetch_max(counts.running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(300)).await;
            counts.running.fetch_sub(1, Ordering::SeqCst);
            counts.done.fetch_add(1, Ordering::SeqCst);
            "slow"
        })
        .unwrap();
    methods
        .register_method("large", |_, counts, _| {
            counts.done.fetch_add(1, Ordering::SeqCst);
            "x".repeat(4 * 1024 * 1024)
        })
        .unwrap();
    let pages: Vec<(&str, Page)> = vec![
        ("/short", Arc::new(|| "short\n".to_owned())),
        (
            "/long",
            Arc::new(|| {
                std::thread::sleep(LONG);
                "long\n".to_owned()
            }),
        ),
    ];
    let server = Server::start((Ipv4Addr::LOCALHOST, 0).into(), config, methods, pages, FILES).await.unwrap();
    (server, counts)
}

/// What stands for the explorer.
const FILES: &[StaticFile] = &[
    StaticFile {
        path: "/",
        kind: "text/html; charset=utf-8",
        bytes: b"<!doctype html>",
        gzip: None,
        tag: "\"1\"",
        is_immutable: false,
    },
    StaticFile {
        path: "/assets/app-1.js",
        kind: "text/javascript; charset=utf-8",
        bytes: &[b'x'; 300_000],
        gzip: Some(b"zipped"),
        tag: "\"2\"",
        is_immutable: true,
    },
];

/// How long it takes to make a page that lists much.
const LONG: Duration = Duration::from_millis(1_500);

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream
}

/// A connection from another address of this machine.
async fn connect_from(last: u8, address: SocketAddr) -> TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::new(127, 0, 0, last), 0).into()).unwrap();
    let stream = socket.connect(address).await.unwrap().into_std().unwrap();
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream
}

fn post(stream: &mut TcpStream, method: &str) {
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#);
    let length = body.len();
    write!(stream, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
}

fn read(stream: &mut TcpStream) -> String {
    let mut answer = [0; 1_024];
    match stream.read(&mut answer) {
        Ok(read) => String::from_utf8_lossy(&answer[..read]).into_owned(),
        Err(error) if error.kind() == ErrorKind::ConnectionReset => String::new(),
        Err(error) => panic!("{error}"),
    }
}

fn ask(stream: &mut TcpStream) -> String {
    post(stream, "ping");
    read(stream)
}

/// Turns a connection into a WebSocket.
fn upgrade(stream: &mut TcpStream) {
    write!(stream, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n").unwrap();
    assert!(read(stream).starts_with("HTTP/1.1 101"));
}

/// A call in a frame of its own.
fn frame(method: &str) -> Vec<u8> {
    text_frame(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#))
}

fn text_frame(body: &str) -> Vec<u8> {
    [&[0x81, 0x80 | u8::try_from(body.len()).unwrap(), 0, 0, 0, 0], body.as_bytes()].concat()
}

/// Whether the server ends a connection in this time.
fn is_cut_off(stream: &mut TcpStream, time: Duration) -> bool {
    let begin = Instant::now();
    let mut buffer = vec![0; 1 << 16];
    stream.set_read_timeout(Some(time)).unwrap();
    while begin.elapsed() < time {
        match stream.read(&mut buffer) {
            Ok(0) => return true,
            Err(error) => return error.kind() == ErrorKind::ConnectionReset,
            Ok(_) => {}
        }
    }
    false
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_nobody_uses_is_closed() {
    let (server, _) = start(Limits { idle_time_max: IDLE, ..Limits::default() }).await;
    let address = server.address();
    tokio::task::spawn_blocking(move || {
        let (mut silent, mut used, mut quiet) = (connect(address), connect(address), connect(address));
        assert!(ask(&mut quiet).contains("pong"));
        // Longer than the limit in all, but never that long without a request.
        for _ in 0..6 {
            assert!(ask(&mut used).contains("pong"));
            std::thread::sleep(IDLE / 3);
        }
        assert_eq!(quiet.read(&mut [0; 10]).unwrap(), 0, "closed after its request");
        assert_eq!(silent.read(&mut [0; 10]).unwrap(), 0, "closed without one");
        assert!(ask(&mut used).contains("pong"));
    })
    .await
    .unwrap();
    server.stop().await;
}

/// Heads and bodies that do not end are cut off, and a byte now and then does not help.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_has_so_much_time() {
    let (server, _) = start(Limits { request_time_max: IDLE, ..Limits::default() }).await;
    let address = server.address();
    tokio::task::spawn_blocking(move || {
        for begin in ["POST / HTTP/1.1\r\nHost: lo", "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"] {
            let mut stream = connect(address);
            stream.write_all(begin.as_bytes()).unwrap();
            let begun = Instant::now();
            stream.set_read_timeout(Some(IDLE / 4)).unwrap();
            loop {
                assert!(begun.elapsed() < Duration::from_secs(8), "{begin:?} is not cut off");
                let _ = stream.write_all(b"a");
                match stream.read(&mut [0; 1_024]) {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(_) => break,
                }
            }
        }
    })
    .await
    .unwrap();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_connection_gives_way_and_a_busy_one_does_not() {
    let limits =
        Limits { connections_max: 8, address_connections_max: 3, connections_kept: 1, ..Limits::default() };
    let (server, _) = start(limits).await;
    let address = server.address();
    tokio::task::spawn_blocking(move || {
        let mut silent: Vec<TcpStream> = (0..3).map(|_| connect(address)).collect();
        let mut served: Vec<TcpStream> = (0..3).map(|_| connect(address)).collect();
        for stream in &mut served {
            upgrade(stream);
        }
        assert!(silent.iter_mut().all(|stream| read(stream).is_empty()), "they lost their places");
        let refused = read(&mut connect(address));
        assert!(
            refused.starts_with("HTTP/1.1 503") && refused.contains("has 3 connections in use"),
            "{refused}"
        );
        served.pop();
        std::thread::sleep(Duration::from_millis(500));
        assert!(ask(&mut connect(address)).contains("pong"), "there is room again");
    })
    .await
    .unwrap();
    let mut others = Vec::new();
    for last in [2, 3, 4, 5] {
        let mut stream = connect_from(last, address).await;
        assert!(ask(&mut stream).contains("pong"), "127.0.0.{last}");
        others.push(stream);
    }
    server.stop().await;
}

/// Sends a request without a body and reads the whole answer.
fn fetch(address: SocketAddr, line: &str, headers: &str) -> (String, Vec<u8>) {
    let mut stream = connect(address);
    write!(stream, "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let body = answer.split_off(end + 4);
    (String::from_utf8(answer).unwrap().to_ascii_lowercase(), body)
}

/// The explorer comes with its policy, in the encoding that was asked for, beside JSON-RPC on the same path.
#[tokio::test(flavor = "multi_thread")]
async fn files_are_served_beside_json_rpc() {
    let (server, _) = start(Limits::default()).await;
    let address = server.address();
    tokio::task::spawn_blocking(move || {
        let (head, body) = fetch(address, "GET /", "Accept: text/html\r\n");
        assert!(head.starts_with("http/1.1 200") && body == b"<!doctype html>", "{head}");
        assert!(head.contains(&format!("content-security-policy: {CONTENT_POLICY}").to_ascii_lowercase()));
        for header in [
            "content-type: text/html; charset=utf-8",
            "cache-control: no-cache",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
        ] {
            assert!(head.contains(header), "{header}: {head}");
        }
        let script = "/assets/app-1.js";
        let (head, body) = fetch(address, &format!("GET {script}"), "");
        assert!(head.contains("immutable") && body.len() == 300_000, "{head}");
        let (head, body) = fetch(address, &format!("GET {script}"), "Accept-Encoding: gzip\r\n");
        assert!(head.contains("content-encoding: gzip") && body == b"zipped", "{head}");
        let (head, body) = fetch(address, &format!("HEAD {script}"), "");
        assert!(head.contains("content-length: 300000") && body.is_empty(), "{head}");
        let (head, body) = fetch(address, "GET /", "If-None-Match: \"1\"\r\n");
        assert!(head.starts_with("http/1.1 304") && body.is_empty(), "{head}");
        let (head, body) = fetch(address, "GET /assets/none.js", "");
        let body = String::from_utf8(body).unwrap();
        assert!(head.starts_with("http/1.1 404") && body.contains("pages: / /short /long"), "{head}{body}");
        for method in ["PUT", "DELETE", "PATCH"] {
            assert!(fetch(address, &format!("{method} /"), "").0.starts_with("http/1.1 405"), "{method}");
        }
        let mut stream = connect(address);
        assert!(ask(&mut stream).contains("pong"), "POST / is JSON-RPC as before");
        upgrade(&mut connect(address));
    })
    .await
    .unwrap();
    server.stop().await;
}

/// Only the explorer's files said so: JSON, pages and errors were left to the browser's guess.
#[tokio::test(flavor = "multi_thread")]
async fn no_answer_is_left_to_guess_what_it_is() {
    let (server, _) = start(Limits::default()).await;
    let address = server.address();
    tokio::task::spawn_blocking(move || {
        for (line, headers, status) in [
            ("GET /", "", "200"),
            ("GET /short", "", "200"),
            ("GET /none", "", "404"),
            ("GET /v1/none", "", "404"),
            ("PUT /", "", "405"),
            ("POST /", "Content-Length: 0\r\n", "415"),
            ("GET /", "Origin: https://example.org\r\n", "403"),
        ] {
            let (head, _) = fetch(address, line, headers);
            assert!(head.starts_with(&format!("http/1.1 {status}")), "{line}: {head}");
            assert_eq!(head.matches("x-content-type-options: nosniff").count(), 1, "{line}: {head}");
        }
    })
    .await
    .unwrap();
    server.stop().await;
}

/// A page of the node may call it; a page of another node on the same machine may not.
#[tokio::test(flavor = "multi_thread")]
async fn the_explorer_may_call_its_node() {
    let (server, _) = start(Limits::default()).await;
    let address = server.address();
    tokio::task::spawn_blocking(move || {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let length = body.len();
        for (port, status) in [(address.port(), 200), (address.port() ^ 1, 403)] {
            let mut stream = connect(address);
            write!(stream, "POST / HTTP/1.1\r\nHost: {address}\r\nOrigin: http://127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
            let answer = read(&mut stream);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{port}: {answer}");
        }
    })
    .await
    .unwrap();
    server.stop().await;
}

/// Pages, preflights and requests for nothing used to be free.
#[tokio::test(flavor = "multi_thread")]
async fn every_request_counts_against_the_rate() {
    let requests = ["GET /short", "GET /nothing", "OPTIONS /", "HEAD /short", "DELETE /", "GET /"];
    for request in requests {
        let (server, _) = start(Limits { calls_per_second_max: Some(1), ..Limits::default() }).await;
        let mut stream = connect(server.address());
        tokio::task::spawn_blocking(move || {
            let mut send = || {
                write!(stream, "{request} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
                read(&mut stream)
            };
            let first = send();
            assert!(!first.is_empty() && !first.starts_with("HTTP/1.1 429"), "{request}: {first}");
            let second = send();
            assert!(second.starts_with("HTTP/1.1 429"), "{request}: {second}");
        })
        .await
        .unwrap();
        server.stop().await;
    }
}

/// So were notifications and what is no request, over a WebSocket.
#[tokio::test(flavor = "multi_thread")]
async fn every_message_of_a_websocket_counts_against_the_rate() {
    for message in [r#"{"jsonrpc":"2.0","method":"ping"}"#, "{"] {
        let (server, _) = start(Limits { calls_per_second_max: Some(1), ..Limits::default() }).await;
        let mut stream = connect(server.address());
        tokio::task::spawn_blocking(move || {
            upgrade(&mut stream);
            std::thread::sleep(Duration::from_millis(1_100));
            stream.write_all(&text_frame(message)).unwrap();
            // Messages are worked on at the same time.
            std::thread::sleep(Duration::from_millis(200));
            stream.write_all(&frame("ping")).unwrap();
            let mut answers = String::new();
            while !answers.contains("-32005") {
                answers += &read(&mut stream);
                assert!(!answers.contains("pong") && !answers.is_empty(), "{message}: {answers}");
            }
        })
        .await
        .unwrap();
        server.stop().await;
    }
}

/// Pages used to be made on the threads that serve connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn pages_that_take_long_hold_nobody_up() {
    let (server, _) = start(Limits::default()).await;
    let address = server.address();
    tokio::task::spawn_blocking(move || {
        let mut pages: Vec<TcpStream> = (0..2).map(|_| connect(address)).collect();
        for page in &mut pages {
            write!(page, "GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        }
        std::thread::sleep(Duration::from_millis(100));
        let begin = Instant::now();
        assert!(ask(&mut connect(address)).contains("pong"));
        assert!(begin.elapsed() < LONG / 2, "{:?}", begin.elapsed());
        assert!(pages.iter_mut().all(|page| read(page).contains("long")));
    })
    .await
    .unwrap();
    server.stop().await;
}

/// Both sides of what a head may have. The parser alone takes heads of twice as many bytes.
#[tokio::test(flavor = "multi_thread")]
async fn a_head_has_a_size() {
    let (server, _) = start(Limits::default()).await;
    let address = server.address();
    tokio::task::spawn_blocking(move || {
        let send = |bytes: usize, in_target: bool| {
            let padded = |pad: usize| {
                let (query, header) = if in_target { (pad, 0) } else { (0, pad) };
                let (query, header) = ("q".repeat(query), "h".repeat(header));
                format!("GET /short?{query} HTTP/1.1\r\nHost: localhost\r\nPadding: {header}\r\n\r\n")
            };
            let head = padded(bytes - padded(0).len());
            assert_eq!(head.len(), bytes);
            let mut stream = connect(address);
            // The server may answer, and hang up, before it has read all of it.
            let _ = stream.write_all(head.as_bytes());
            read(&mut stream)
        };
        for (bytes, status) in [(HEAD_BYTES_MAX, 200), (HEAD_BYTES_MAX + 1, 431), (70_000, 431)] {
            let answer = send(bytes, false);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{bytes} bytes: {answer:?}");
        }
        // The parser has a limit of its own for the target, a little below.
        assert!(send(60_000, true).starts_with("HTTP/1.1 200"));
        assert!(send(HEAD_BYTES_MAX + 1, true).starts_with("HTTP/1.1 4"));
    })
    .await
    .unwrap();
    server.stop().await;
}

/// With HTTP/2 one connection would have many requests.
#[tokio::test(flavor = "multi_thread")]
async fn http_2_is_not_spoken() {
    let (server, _) = start(Limits::default()).await;
    let address = server.address();
    tokio::task::spawn_blocking(move || {
        let mut stream = connect(address);
        // The preface, and an empty SETTINGS frame.
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 4") || answer.starts_with("HTTP/1.1 5"),
            "{answer:?}"
        );
        assert!(ask(&mut connect(address)).contains("pong"));
    })
    .await
    .unwrap();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_has_so_many_calls_in_flight() {
    let limits = Limits { connection_calls_max: 4, ..Limits::default() };
    let (server, counts) = start(limits).await;
    let address = server.address();
    let mut stream = connect(address);
    tokio::task::spawn_blocking(move || {
        upgrade(&mut stream);
        stream.write_all(&frame("slow").repeat(10)).unwrap();
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":"slow"}"#;
        let mut all = vec![0; 10 * (2 + answer.len())];
        stream.read_exact(&mut all).unwrap();
    })
    .await
    .unwrap();
    assert_eq!((counts.done.load(Ordering::SeqCst), counts.most.load(Ordering::SeqCst)), (10, 4));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_has_so_many_calls_worked_on() {
    let limits = Limits { connection_calls_max: 4, address_calls_max: 6, ..Limits::default() };
    let (server, counts) = start(limits).await;
    let address = server.address();
    tokio::task::spawn_blocking(move || {
        let mut sockets: Vec<TcpStream> = (0..3).map(|_| connect(address)).collect();
        for socket in &mut sockets {
            upgrade(socket);
            socket.write_all(&frame("slow").repeat(4)).unwrap();
        }
        for socket in &mut sockets {
            socket.read_exact(&mut [0; 4 * 40]).unwrap();
        }
    })
    .await
    .unwrap();
    assert_eq!((counts.done.load(Ordering::SeqCst), counts.most.load(Ordering::SeqCst)), (12, 6));
    server.stop().await;
}

/// A client that asks and does not read gets no further than its places, and is cut off.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_cut_off() {
    let limits = Limits { connection_calls_max: 4, send_time_max: IDLE, ..Limits::default() };
    let (server, counts) = start(limits).await;
    let address = server.address();
    let checked = counts.clone();
    tokio::task::spawn_blocking(move || {
        let mut socket = connect(address);
        upgrade(&mut socket);
        let _ = socket.write_all(&frame("large").repeat(200));
        let mut http = connect(address);
        for _ in 0..8 {
            post(&mut http, "large");
        }
        std::thread::sleep(4 * IDLE);
        let done = checked.done.load(Ordering::SeqCst);
        // Some answers fit into the buffers of the system.
        assert!((2..20).contains(&done), "{done} answers were made");
        assert!(is_cut_off(&mut socket, Duration::from_secs(5)), "the WebSocket");
        assert!(is_cut_off(&mut http, Duration::from_secs(5)), "HTTP");
        assert!(checked.done.load(Ordering::SeqCst) < 20);
        assert!(ask(&mut connect(address)).contains("pong"));
    })
    .await
    .unwrap();
    server.stop().await;
}

/// Answers that are not read do not keep others from small ones, even where they take the whole budget.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_budget_leaves_room_for_small_answers() {
    const MIB: usize = 1024 * 1024;
    let limits = Limits {
        response_bytes_max: 5 * MIB,
        connection_bytes_max: 6 * MIB,
        address_bytes_max: 6 * MIB,
        total_bytes_max: 12 * MIB,
        ..Limits::default()
    };
    let (server, _) = start(limits).await;
    let address = server.address();
    tokio::task::spawn_blocking(move || {
        let mut greedy = connect(address);
        upgrade(&mut greedy);
        greedy.write_all(&frame("large").repeat(16)).unwrap();
        std::thread::sleep(Duration::from_secs(1));
        let mut polite = connect(address);
        assert!(ask(&mut polite).contains("pong"));
        post(&mut polite, "large");
        let answer = read(&mut polite);
        assert!(answer.contains("-32005") && answer.contains("may have in flight"), "{answer}");
        drop(greedy);
        std::thread::sleep(Duration::from_millis(500));
        let mut polite = connect(address);
        post(&mut polite, "large");
        assert!(read(&mut polite).contains("xxxx"), "what was held is free again");
    })
    .await
    .unwrap();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_stops_although_clients_stay() {
    let (server, _) = start(Limits::default()).await;
    let address = server.address();
    let clients = tokio::task::spawn_blocking(move || {
        let (mut idle, mut socket, mut slow) = (connect(address), connect(address), connect(address));
        assert!(ask(&mut idle).contains("pong"));
        upgrade(&mut socket);
        post(&mut slow, "slow");
        std::thread::sleep(Duration::from_millis(100));
        (idle, socket, slow)
    });
    let (mut idle, mut socket, mut slow) = clients.await.unwrap();
    let begin = Instant::now();
    server.stop().await;
    assert!(begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
    assert!(read(&mut slow).contains("slow"), "what was under way is answered");
    assert!(is_cut_off(&mut idle, IDLE) && is_cut_off(&mut socket, IDLE));
    assert!(TcpStream::connect(address).is_err(), "the port is free");
}

/// A node that copies the state serves pages until it is done, and then its chain on the same port.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_has_stopped_leaves_its_port_to_the_next() {
    let config = || ServerConfig { limits: Limits::default(), access: Access::node() };
    let mut address = (Ipv4Addr::LOCALHOST, 0).into();
    for round in 0..500 {
        let started = Server::start_pages(address, config(), Vec::new()).await;
        let server = started.unwrap_or_else(|error| panic!("in round {round}: {error}"));
        address = server.address();
        server.stop().await;
    }
}
