//! The server's hold on its connections.

use almanac_rpc::{Limits, Server};
use jsonrpsee::RpcModule;
use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::Duration,
};

const IDLE: Duration = Duration::from_millis(600);

async fn start(limits: Limits) -> Server {
    let mut methods = RpcModule::new(());
    methods.register_method("ping", |_, _, _| "pong").unwrap();
    Server::start((Ipv4Addr::LOCALHOST, 0).into(), limits, methods, Vec::new()).await.unwrap()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream
}

fn ask(stream: &mut TcpStream) -> String {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let length = body.len();
    write!(stream, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
    let mut answer = [0; 1_024];
    let read = stream.read(&mut answer).unwrap();
    String::from_utf8_lossy(&answer[..read]).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_nobody_uses_is_closed() {
    let server = start(Limits { idle_time_max: IDLE, ..Limits::default() }).await;
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

#[tokio::test(flavor = "multi_thread")]
async fn so_many_connections_and_one_more_is_turned_away() {
    let server = start(Limits { connections_max: 3, ..Limits::default() }).await;
    let address = server.address();
    tokio::task::spawn_blocking(move || {
        let mut served: Vec<TcpStream> = (0..3).map(|_| connect(address)).collect();
        assert!(served.iter_mut().all(|stream| ask(stream).contains("pong")));
        let mut turned_away = connect(address);
        match turned_away.read(&mut [0; 10]) {
            Ok(read) => assert_eq!(read, 0),
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
        served.pop();
        std::thread::sleep(Duration::from_millis(200));
        assert!(ask(&mut connect(address)).contains("pong"), "there is room again");
    })
    .await
    .unwrap();
    server.stop().await;
}
