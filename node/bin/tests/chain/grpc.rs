//! gRPC of a developer chain: served where it is asked for. `tests/clients/grpc_services.py` uses it.

use crate::support::*;
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

/// What a client of HTTP/2 begins with: the preface, and settings without any.
const HELLO: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// The type of a frame with settings.
const SETTINGS: u8 = 4;

fn address(node: &Node) -> Option<&str> {
    node.banner.lines().find_map(|line| line.trim().strip_prefix("grpc ")).map(str::trim)
}

#[test]
fn hedera_23_grpc_is_served_where_it_is_asked_for() {
    let plain = Node::start(&[]);
    assert_eq!(address(&plain), None, "{}", plain.banner);
    let mut node = Node::start(&["--grpc-port", "0"]);
    let address = address(&node).expect("the banner has the address").to_owned();
    let mut client = TcpStream::connect(&address).unwrap();
    client.write_all(HELLO).unwrap();
    let mut head = [0; 9];
    client.read_exact(&mut head).unwrap();
    assert_eq!(head[3], SETTINGS);
    let port = address.rsplit(':').next().unwrap();
    let second = run(&["dev", "--port", "0", "--grpc-port", port]);
    let error = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success() && error.contains("for gRPC"), "{error}");
    // A client that stays does not hold the node up.
    node.signal("-TERM");
    assert!(node.wait().success());
}
