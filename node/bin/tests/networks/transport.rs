//! What a client can do to a node with its sockets alone: hold them, not read them, or call from a web page.

use crate::support::{
    network::{Network, agree_at},
    pace::Pace,
    polite::{ask_from, connect_from, p99_from},
    socket::Socket,
    *,
};
use serde_json::{Value, json};
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

/// How long each attack lasts.
const ATTACK: Duration = Duration::from_secs(5);

/// Most memory that a node may take in an attack, in kB. The budget is 256 MiB; calls that are worked on come on top.
const MEMORY_MAX: u64 = 700_000;

/// Longest that a client with manners may wait for one of a hundred answers in an attack, on a busy machine.
const POLITE_MAX: Duration = Duration::from_secs(2);

/// A call whose answer has 7.6 MB: `return(0, 3,800,000)` in place of an account's code.
fn large_call() -> Vec<u8> {
    let over = json!({ BOB: { "code": "0x6239fbc05ff3" } });
    let params = json!([{ "to": BOB }, "latest", over]);
    json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": params }).to_string().into_bytes()
}

/// WebSockets that ask for large answers and never read one.
fn never_read(node: &Node, sockets: usize) -> Vec<Socket> {
    let call = large_call();
    let open = |_| {
        let mut socket = Socket::open(&node.address);
        (0..760).for_each(|_| socket.send(&call).unwrap());
        socket
    };
    (0..sockets).map(open).collect()
}

/// How many sockets the process has open now.
fn sockets_of(node: &Node) -> usize {
    let files = std::fs::read_dir(format!("/proc/{}/fd", node.child.id())).unwrap();
    let links = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
}

/// All that an attack took is given back: sockets, and the time of others.
fn is_over(node: &Node, sockets: usize) {
    let begin = Instant::now();
    while sockets_of(node) > sockets + 2 {
        let open = sockets_of(node);
        assert!(begin.elapsed() < Duration::from_secs(5), "{open} sockets are open, {sockets} were before");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(node.result("eth_chainId", json!([])).is_string());
}

#[test]
fn websockets_that_never_read_take_bounded_memory() {
    let node = Node::start(&[]);
    let before = sockets_of(&node);
    let sockets = never_read(&node, 3);
    let p99 = p99_from(2, &node.address, ATTACK);
    let peak = node.memory_peak_kilobytes();
    println!("peak {peak} kB; a polite client's p99 is {p99:?}");
    assert!(peak < MEMORY_MAX, "{peak} kB");
    assert!(p99 < POLITE_MAX, "{p99:?}");
    drop(sockets);
    is_over(&node, before);
}

#[test]
fn silent_and_slow_sockets_shut_nobody_out() {
    let node = Node::start(&[]);
    let before = sockets_of(&node);
    let open = |n: usize| {
        let mut stream = TcpStream::connect(&node.address).unwrap();
        // A third says nothing, a third begins a head, a third begins a body.
        let begin: &[u8] = match n % 3 {
            0 => b"",
            1 => b"POST / HTTP/1.1\r\nHost: lo",
            _ => b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{",
        };
        let _ = stream.write_all(begin);
        stream
    };
    let sockets: Vec<TcpStream> = (0..300).map(open).collect();
    let p99 = p99_from(2, &node.address, Duration::from_secs(2));
    println!("a polite client's p99 is {p99:?}");
    assert!(p99 < POLITE_MAX, "{p99:?}");
    drop(sockets);
    is_over(&node, before);

    // WebSockets are never silent: their address has a share, and others have the rest.
    let mut held = Vec::new();
    let mut refused = 0;
    for _ in 0..200 {
        let mut stream = TcpStream::connect(&node.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let _ = write!(
            stream,
            "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        let mut head = [0; 12];
        match stream.read(&mut head) {
            Ok(12) if head == *b"HTTP/1.1 101" => held.push(stream),
            _ => refused += 1,
        }
    }
    assert_eq!((held.len(), refused), (192, 8));
    assert!(ask_from(2, &node.address).unwrap()["result"].is_string());
    drop(held);
    is_over(&node, before);
}

#[test]
fn http_2_is_not_spoken() {
    let node = Node::start(&[]);
    let answer = exchange(&node.address, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer:?}");
    assert_eq!(node.result("eth_chainId", json!([])), "0x7a69");
}

/// What comes back for a request with these headers.
fn call_with(node: &Node, headers: &str, method: &str, params: &Value) -> String {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let length = body.len();
    let head = format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    exchange(&node.address, &[head.as_bytes(), body.as_bytes()].concat())
}

fn upgrade_with(node: &Node, origin: &str) -> String {
    let head = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: {origin}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    let mut stream = TcpStream::connect(&node.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = vec![0; 1_024];
    let read = stream.read(&mut answer).unwrap();
    String::from_utf8_lossy(&answer[..read]).into_owned()
}

#[test]
fn a_foreign_page_cannot_use_a_developers_chain() {
    let node = Node::start(&["--allow-origin", "https://app.example"]);
    let (json_kind, text_kind) = ("Content-Type: application/json\r\n", "Content-Type: text/plain\r\n");
    let rich = json!([BOB, "0x1"]);
    let coins = node.balance(BOB);
    for origin in ["https://evil.example", "null", "http://localhost.evil.example"] {
        for kind in [json_kind, text_kind, ""] {
            let answer = call_with(&node, &format!("Origin: {origin}\r\n{kind}"), "anvil_setBalance", &rich);
            assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("--allow-origin"), "{answer}");
            assert!(!answer.contains("access-control-allow-origin"), "{answer}");
        }
        let answer = upgrade_with(&node, origin);
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    }
    let preflight = b"OPTIONS / HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\nAccess-Control-Request-Method: POST\r\nConnection: close\r\n\r\n";
    assert!(exchange(&node.address, preflight).starts_with("HTTP/1.1 403"));
    assert!(call_with(&node, text_kind, "anvil_setBalance", &rich).starts_with("HTTP/1.1 415"));
    assert_eq!(node.balance(BOB), coins, "nothing was executed");

    for origin in
        ["http://localhost:3000", "https://127.0.0.1", "chrome-extension://abc", "https://app.example"]
    {
        let answer = call_with(&node, &format!("Origin: {origin}\r\n{json_kind}"), "eth_chainId", &json!([]));
        assert!(answer.contains("0x7a69"), "{answer}");
        assert!(answer.contains(&format!("access-control-allow-origin: {origin}")), "{answer}");
        assert!(upgrade_with(&node, origin).starts_with("HTTP/1.1 101"), "{origin}");
    }
    let preflight = b"OPTIONS / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost:3000\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type\r\nConnection: close\r\n\r\n";
    let allowed = exchange(&node.address, preflight);
    assert!(
        allowed.starts_with("HTTP/1.1 204") && allowed.contains("access-control-allow-headers: content-type")
    );
    assert!(!node.banner.contains("WARNING"));
    let open = Node::start(&["--allow-origin", "*", "--allow-host", "node.example"]);
    let answer =
        call_with(&open, &format!("Origin: https://evil.example\r\n{json_kind}"), "eth_chainId", &json!([]));
    assert!(answer.contains("0x7a69") && open.banner.contains("WARNING"), "{answer}");
    let named = |host: &str| {
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#;
        exchange(&open.address, &with_body(host, call.as_bytes()))
    };
    assert!(named("node.example").contains("0x7a69") && named("10.0.0.7").contains("0x7a69"));
    let refused = named("rebound.example");
    assert!(refused.starts_with("HTTP/1.1 403") && refused.contains("--allow-host"), "{refused}");
}

/// Transactions of 100 KB, told in full to 32 subscriptions of a client that does not read.
#[test]
fn a_slow_subscriber_takes_bounded_memory_and_is_told_why_it_ended() {
    // No block takes them out of the pool before they are told.
    let node = Node::start(&["--block-time", "10m"]);
    let before = sockets_of(&node);
    let mut slow = Socket::open(&node.address);
    let mut ids = Vec::new();
    for _ in 0..32 {
        let id = slow.call("eth_subscribe", json!(["newPendingTransactions", true]))["result"].clone();
        assert!(id.is_string(), "{id}");
        ids.push(id);
    }
    let lean = node.memory_peak_kilobytes();
    let data = format!("0x{}", "11".repeat(100_000));
    let large = json!([{ "from": ALICE, "to": BOB, "data": data, "gas": "0x989680" }]);
    for _ in 0..24 {
        assert!(node.result("eth_sendTransaction", large.clone()).is_string());
    }
    // A notification waits for 5 s before its subscription ends.
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(7) {
        assert!(ask_from(2, &node.address).unwrap()["result"].is_string());
        std::thread::sleep(Duration::from_millis(200));
    }
    let grown = node.memory_peak_kilobytes() - lean;
    println!("24 transactions of 100 kB to 32 subscriptions: {grown} kB more");
    assert!(grown < 100_000, "{grown} kB");
    let reason = (0..2_000).find_map(|_| {
        let message: Value = serde_json::from_slice(&slow.receive().unwrap()).unwrap();
        message["params"]["error"].as_str().map(str::to_owned)
    });
    let reason = reason.unwrap();
    assert!(reason.contains("too slow"), "{reason}");
    drop(slow);
    is_over(&node, before);
}

/// A block of tens of thousands of logs, and many who want all of them and read none. What is found must not be in
/// memory once for each.
#[test]
fn a_block_full_of_logs_takes_bounded_memory_for_subscriptions() {
    let node = Node::start(&["--block-time", "1s"]);
    let before = sockets_of(&node);
    let subscribe = json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": ["logs", {}] });
    let open = |_| {
        let mut socket = Socket::open(&node.address);
        socket.send(json!(vec![subscribe.clone(); 32]).to_string().as_bytes()).unwrap();
        let answers: Value = serde_json::from_slice(&socket.receive().unwrap()).unwrap();
        assert!(answers.as_array().unwrap().iter().all(|answer| answer["result"].is_string()), "{answers}");
        socket
    };
    let sockets: Vec<Socket> = (0..2).map(open).collect();
    let lean = node.memory_peak_kilobytes();
    // Logs nothing, as long as there is gas.
    let request = json!([{ "from": ALICE, "data": "0x5b60006000a05a6120001060005700", "gas": "0x1b00000" }]);
    let hash = node.result("eth_sendTransaction", request);
    let begin = Instant::now();
    while node.result("eth_getTransactionByHash", json!([hash]))["blockNumber"].is_null() {
        assert!(begin.elapsed() < Duration::from_secs(30), "it is in no block");
        std::thread::sleep(Duration::from_millis(200));
    }
    let p99 = p99_from(2, &node.address, ATTACK);
    let grown = node.memory_peak_kilobytes() - lean;
    println!("a block full of logs to 64 subscriptions: {grown} kB more; a polite client's p99 is {p99:?}");
    assert!(grown < 300_000, "{grown} kB");
    assert!(p99 < POLITE_MAX, "{p99:?}");
    drop(sockets);
    is_over(&node, before);
}

#[test]
fn a_subscription_ends_as_soon_as_its_id_is_known() {
    let node = Node::start(&["--block-time", "20ms"]);
    let missed: usize = std::thread::scope(|scope| {
        let client = || {
            let mut socket = Socket::open(&node.address);
            let mut missed = 0;
            for _ in 0..25 {
                let id = socket.call("eth_subscribe", json!(["newHeads"]))["result"].clone();
                let request =
                    json!({ "jsonrpc": "2.0", "id": 2, "method": "eth_unsubscribe", "params": [id] });
                socket.send(request.to_string().as_bytes()).unwrap();
                let answer = loop {
                    let message: Value = serde_json::from_slice(&socket.receive().unwrap()).unwrap();
                    if message["id"] == 2 {
                        break message;
                    }
                };
                missed += usize::from(answer["result"] != true);
            }
            // Nothing of any of them comes any more: the next message is this answer.
            std::thread::sleep(Duration::from_millis(100));
            assert_eq!(socket.call("eth_chainId", json!([]))["result"], "0x7a69");
            missed
        };
        let clients: Vec<_> = (0..32).map(|_| scope.spawn(client)).collect();
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    assert_eq!(missed, 0, "of 800 subscriptions so many were not found");
}

#[test]
fn another_client_can_neither_guess_nor_end_what_is_not_its_own() {
    let node = Node::start(&["--block-time", "50ms"]);
    let (mut owner, mut other) = (Socket::open(&node.address), Socket::open(&node.address));
    let id = owner.call("eth_subscribe", json!(["newHeads"]))["result"].clone();
    assert_eq!(other.call("eth_unsubscribe", json!([id]))["result"], false);
    assert!(owner.news()["number"].is_string(), "it lives");
    let made = |method: &str| number_of(&node.result(method, json!([])));
    let ids: Vec<u128> = (0..8).map(|_| made("eth_newBlockFilter")).collect();
    for (n, id) in ids.iter().enumerate() {
        assert!(ids[..n].iter().all(|before| id.abs_diff(*before) > 1 << 64), "{ids:x?}");
        for near in [id - 1, id + 1] {
            let answer = node.call("eth_uninstallFilter", json!([format!("{near:#x}")]));
            assert_eq!(answer["result"], false, "{answer}");
        }
        assert!(node.result("eth_getFilterChanges", json!([format!("{id:#x}")])).is_array());
    }
}

fn number_of(value: &Value) -> u128 {
    u128::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

/// Connections that come and go leave nothing behind.
#[test]
fn closed_connections_cost_nothing() {
    let node = Node::start(&[]);
    let churn = |count: usize| {
        for _ in 0..count {
            let mut stream = TcpStream::connect(&node.address).unwrap();
            let _ = stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
            let _ = stream.read_to_end(&mut Vec::new());
        }
    };
    churn(1_000);
    let before = sockets_of(&node);
    let lean = node.memory_kilobytes();
    churn(8_000);
    let grown = node.memory_kilobytes().saturating_sub(lean);
    println!("8000 connections: {grown} kB more");
    assert!(grown < 3_500, "{grown} kB");
    is_over(&node, before);
}

/// The same on one of four validators: it goes on voting, and its neighbours do not notice.
#[test]
fn a_validator_bears_sockets_that_are_held_and_not_read() {
    let net = Network::direct(200);
    let victim = &net.nodes[0];
    let page = "Origin: http://localhost:3000\r\nContent-Type: application/json\r\n";
    let refused = call_with(victim, page, "eth_chainId", &json!([]));
    assert!(refused.starts_with("HTTP/1.1 403"), "a validator serves no page: {refused}");
    assert!(upgrade_with(victim, "http://localhost:3000").starts_with("HTTP/1.1 403"));
    let preface = exchange(&victim.address, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    assert!(preface.is_empty() || preface.starts_with("HTTP/1.1 4"), "{preface:?}");

    // Finding each other takes seconds, which are no interval between blocks.
    agree_at(&net.nodes, 3);
    let neighbour = &net.nodes[1].address;
    let (idle, ()) = Pace::during(neighbour, || std::thread::sleep(ATTACK));
    // By now the validators have found each other.
    let before = sockets_of(victim);
    let sockets = never_read(victim, 2);
    let silent: Vec<TcpStream> = (0..250).map(|_| TcpStream::connect(&victim.address).unwrap()).collect();
    let (attacked, p99) = Pace::during(neighbour, || p99_from(2, &victim.address, ATTACK));
    let peak = victim.memory_peak_kilobytes();
    println!("idle: {idle}; attacked: {attacked}; peak {peak} kB; a polite client's p99 is {p99:?}");
    assert!(peak < MEMORY_MAX, "{peak} kB");
    assert!(p99 < POLITE_MAX, "{p99:?}");
    attacked.check_against(&idle);
    drop((sockets, silent));
    is_over(victim, before);
    assert!(connect_from(3, &victim.address).is_ok());
}
