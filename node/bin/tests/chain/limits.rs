//! What a hostile or clumsy client can do: nothing to others.

use crate::support::{pace::Pace, socket::Socket, *};
use serde_json::{Value, json};
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

fn get(node: &Node, path: &str) -> String {
    exchange(
        &node.address,
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes(),
    )
}

#[test]
fn pages_for_operators() {
    let node = Node::start(&[]);
    node.receipt(&node.send(&to_bob(0))["result"]);
    let health = get(&node, "/health");
    assert!(health.starts_with("HTTP/1.1 200") && health.contains(r#""status":"ok","block":1"#), "{health}");
    let figures = get(&node, "/metrics");
    assert!(figures.contains("almanac_block_height 1"), "{figures}");
    assert!(
        figures.contains(r#"almanac_rpc_calls_total{method="eth_sendRawTransaction",outcome="ok"} 1"#),
        "{figures}"
    );
    let nothing = get(&node, "/nothing");
    assert!(nothing.starts_with("HTTP/1.1 404") && nothing.contains("/health"), "{nothing}");
}

#[test]
fn a_page_of_another_name_is_not_served() {
    let node = Node::start(&[]);
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}"#;
    let served = exchange(&node.address, &with_body("localhost", call.as_bytes()));
    assert!(served.contains("0x7a69"), "{served}");
    let refused = exchange(&node.address, &with_body("rebound.example", call.as_bytes()));
    assert!(refused.starts_with("HTTP/1.1 403") && !refused.contains("0x7a69"), "{refused}");
}

#[test]
fn requests_and_batches_have_a_size() {
    let node = Node::start(&[]);
    let padded = |bytes: usize| {
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}"#;
        call.to_owned() + &" ".repeat(bytes - call.len())
    };
    let limit = 2 * 1024 * 1024;
    assert!(exchange(&node.address, &with_body("localhost", padded(limit).as_bytes())).contains("0x7a69"));
    let refused = exchange(&node.address, &with_body("localhost", padded(limit + 1).as_bytes()));
    assert!(refused.starts_with("HTTP/1.1 413"), "{refused}");

    let batch = |count: usize| {
        let calls: Vec<Value> =
            (0..count).map(|id| json!({ "jsonrpc": "2.0", "id": id, "method": "eth_chainId" })).collect();
        serde_json::from_str::<Value>(&post(&node.address, &json!(calls).to_string())).unwrap()
    };
    let answers = batch(100);
    assert_eq!(answers.as_array().unwrap().len(), 100);
    assert!(answers.as_array().unwrap().iter().all(|answer| answer["result"] == "0x7a69"));
    assert!(batch(101)["error"]["code"].is_i64(), "one too many");
}

#[test]
fn a_client_that_asks_too_fast_waits() {
    let node = Node::start(&["--rate-limit", "5"]);
    let call = |calls: usize| {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_chainId" });
        exchange(&node.address, &with_body("localhost", json!(vec![call; calls]).to_string().as_bytes()))
    };
    let answers: Vec<String> = (0..8).map(|_| call(1)).collect();
    assert!(answers[..5].iter().all(|answer| answer.contains("0x7a69")), "{answers:?}");
    assert!(answers[5..].iter().any(|answer| answer.starts_with("HTTP/1.1 429")), "{answers:?}");
    std::thread::sleep(Duration::from_millis(1_100));
    assert!(call(5).contains("0x7a69"));
    assert!(call(1).starts_with("HTTP/1.1 429"), "each call of a batch counts");
}

#[test]
fn nonsense_is_answered_by_its_name() {
    let node = Node::start(&[]);
    let deep = "[".repeat(100_000);
    let cases = [
        ("{", -32_700),
        ("", -32_700),
        (&deep, -32_700),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"eth_getBalance"}"#, -32_602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":[{},{}]}"#, -32_602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":["0x1","latest","x"]}"#, -32_602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"nothing"}"#, -32_601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}"#, -32_601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"eth_unsubscribe","params":["0x1"]}"#, -32_601),
    ];
    for (body, code) in cases {
        let answer: Value = serde_json::from_str(&post(&node.address, body)).unwrap_or_default();
        let shown: String = body.chars().take(60).collect();
        assert_eq!(answer["error"]["code"], code, "{shown}: {answer}");
    }
    assert_eq!(node.result("eth_blockNumber", json!([])), "0x0", "it lives");
}

/// Truncated frames and headers that never end: cut off, while others are served.
#[test]
fn slow_clients_are_cut_off() {
    let node = Node::start(&[]);
    let begin = Instant::now();
    let mut slow: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = TcpStream::connect(&node.address).unwrap();
            stream
                .write_all(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"json")
                .unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            stream
        })
        .collect();
    assert_eq!(node.result("eth_chainId", json!([])), "0x7a69", "others do not wait");
    assert!(begin.elapsed() < Duration::from_secs(5));
    for stream in &mut slow {
        let mut answer = [0; 12];
        // Not `read`: a signal to this process would end it.
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 408");
    }
    assert!(begin.elapsed() < Duration::from_secs(15), "{:?}", begin.elapsed());
}

#[test]
fn programs_can_start_it() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let arguments =
        ["--client-version", "anvil/v9.9.9", "--log-format", "json", "--metrics-addr", "127.0.0.1:0"];
    let (mut node, facts) = Node::start_for_programs(&arguments, log.as_file());
    assert_eq!((&facts["chainId"], facts["accounts"].as_array().unwrap().len()), (&json!(31_337), 10));
    assert_eq!(node.result("web3_clientVersion", json!([])), "anvil/v9.9.9");
    let signed = node.result("eth_signTransaction", json!([{ "from": ALICE, "to": BOB }]));
    assert!(signed.is_string(), "as anvil answers: {signed}");
    // What only operators should see is at an address of its own, and nowhere else.
    let metrics = facts["metrics"].as_str().unwrap();
    let own = metrics.trim_start_matches("http://").trim_end_matches("/metrics");
    assert_ne!(own, node.address);
    assert!(network::page(own, "/metrics").unwrap().contains("almanac_schedules_pending"));
    assert_eq!(network::health(own).unwrap()["role"], "developer");
    assert_eq!(network::health(&node.address), None);
    assert!(!network::page(&node.address, "/metrics").unwrap().contains("almanac_schedules_pending"));
    node.signal("-TERM");
    node.wait();
    let log = std::fs::read_to_string(log.path()).unwrap();
    let last: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert!(last["message"].as_str().unwrap().contains("stopping"), "{log}");
}

/// A way to ask: a method and its parameters in, the answer out.
type Ask<'a> = &'a mut dyn FnMut(&str, Value) -> Value;

/// All HTTP connections from one address are one client, and so is each WebSocket.
#[test]
fn a_client_has_so_many_filters() {
    let node = Node::start(&[]);
    let kinds = ["eth_newBlockFilter", "eth_newPendingTransactionFilter", "eth_newFilter"];
    let make = |n: usize, ask: Ask<'_>| match kinds[n % 3] {
        method @ "eth_newFilter" => ask(method, json!([{}])),
        method => ask(method, json!([])),
    };
    let mut sockets = [(); 2].map(|()| Socket::open(&node.address));
    let mut http = |method: &str, params: Value| node.call(method, params);
    let [mut first, mut second] =
        sockets.each_mut().map(|socket| |method: &str, params: Value| socket.call(method, params));
    let clients: [Ask<'_>; 3] = [&mut http, &mut first, &mut second];
    for ask in clients {
        let ids: Vec<Value> = (0..100).map(|n| make(n, ask)["result"].clone()).collect();
        assert!(ids.iter().all(Value::is_string), "{ids:?}");
        for n in 0..3 {
            let refused = make(n, ask);
            assert_eq!(refused["error"]["code"], -32_005, "{refused}");
            assert!(refused["error"]["message"].as_str().unwrap().contains("100 filters"), "{refused}");
        }
        assert_eq!(
            ask("eth_getFilterChanges", json!([ids[99]]))["result"],
            json!([]),
            "those there are work"
        );
        assert_eq!(ask("eth_uninstallFilter", json!([ids[0]]))["result"], true);
        assert!(make(0, ask)["result"].is_string(), "there is room for one");
        assert!(make(0, ask)["result"].is_null(), "and no more");
    }
}

/// Whatever executes on request has so much time and no more, also where few steps take long.
#[test]
fn a_call_has_so_much_time() {
    let short = Node::start(&["--call-time", "5ms"]);
    let long = Node::start(&["--call-time", "10m"]);
    // loop {}
    let endless = "0x5b5f56";
    for node in [&short, &long] {
        node.result("anvil_setCode", json!([BOB, endless]));
    }
    let call = json!({ "from": ALICE, "to": BOB });
    let requests = [
        ("eth_call", json!([call, "latest"])),
        ("eth_estimateGas", json!([call])),
        ("eth_createAccessList", json!([call])),
        ("eth_simulateV1", json!([{ "blockStateCalls": [{ "calls": [call] }] }])),
        ("eth_simulateV1", json!([{ "blockStateCalls": [{ "calls": [call] }], "traceTransfers": true }])),
        ("eth_fillTransaction", json!([call])),
        ("eth_sendTransaction", json!([call])),
        ("debug_traceCall", json!([call, "latest", { "tracer": "callTracer" }])),
    ];
    for (method, params) in requests {
        let refused = short.call(method, params.clone());
        assert_eq!(refused["error"]["code"], -32_005, "{method}: {refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains("longer than 5 ms"), "{refused}");
        let ended = long.call(method, params).to_string();
        assert!(ended.contains("OutOfGas") || ended.contains("out of gas"), "{method}: {ended}");
    }
    // Base, exponent and modulus of 256, 32 and 256 bytes: the gas of a block is used up in a few hundred steps.
    let sizes = [256, 32, 256].map(|size: u64| format!("{size:064x}")).concat();
    let powers = json!({ "to": BOB, "data": format!("0x{sizes}{}", "ff".repeat(256 + 32 + 256)) });
    // calldatacopy; loop { staticcall(5) }
    let over = json!({ BOB: { "code": "0x365f5f375b5f5f365f60055afa50600456" } });
    let refused = short.call("eth_call", json!([powers, "latest", over]));
    assert!(refused["error"]["message"].as_str().unwrap().contains("longer than 5 ms"), "{refused}");
    let ended = long.call("eth_call", json!([powers, "latest", over])).to_string();
    assert!(ended.contains("OutOfGas"), "{ended}");
    assert_eq!(short.result("eth_call", json!([{ "to": ALICE }])), "0x", "what takes less is answered");
    assert_eq!(short.result("eth_estimateGas", json!([{ "to": ALICE }])), "0x5208");
}

/// Seconds that each half of the flood test lasts.
const FLOOD: Duration = Duration::from_secs(3);

/// Everything that costs a node something, from many connections at once: blocks come as if nobody asked.
#[test]
fn a_flood_delays_no_block() {
    let node = Node::start(&["--block-time", "100ms"]);
    let (idle, ()) = Pace::during(&node.address, || std::thread::sleep(FLOOD));

    let endless = json!({ BOB: { "code": "0x5b5f56" } });
    let call = |method: &str, params: Value| {
        with_body(
            "localhost",
            json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string().as_bytes(),
        )
    };
    let batch: Vec<Value> = (0..100)
        .map(|id| json!({ "jsonrpc": "2.0", "id": id, "method": "eth_getBlockByNumber", "params": ["latest", true] }))
        .collect();
    let requests = [
        call("eth_call", json!([{ "to": BOB }, "latest", endless])),
        call("debug_traceCall", json!([{ "to": BOB }, "latest", { "stateOverrides": endless }])),
        call("eth_getLogs", json!([{ "fromBlock": "0x0", "toBlock": "latest" }])),
        call("txpool_content", json!([])),
        with_body("localhost", "[".repeat(1_000_000).as_bytes()),
        with_body("localhost", json!(batch).to_string().as_bytes()),
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999\r\n\r\n{".to_vec(),
        vec![0xff; 10_000],
    ];
    let flood = || {
        let end = Instant::now() + FLOOD;
        std::thread::scope(|scope| {
            for n in 0..32 {
                let (address, request) = (&node.address, &requests[n % requests.len()]);
                scope.spawn(move || {
                    while Instant::now() < end {
                        let Ok(mut stream) = TcpStream::connect(address) else { continue };
                        let _ = stream.set_read_timeout(Some(Duration::from_millis(500)));
                        let _ = stream.write_all(request);
                        let _ = stream.read(&mut [0; 4_096]);
                    }
                });
            }
        });
    };
    let (flooded, ()) = Pace::during(&node.address, flood);
    println!("idle: {idle}; flooded: {flooded}");
    flooded.check_against(&idle);
    assert!(flooded.blocks * 3 >= idle.blocks * 2, "{idle} while nobody asked, {flooded} in the flood");
    let peak = node.memory_peak_kilobytes();
    assert!(peak < 1_500_000, "memory stays bounded: {peak} kB");
}

/// `console.log("it is", 42)` in raw code: a static call of an address where nothing is.
#[test]
fn what_contracts_print_is_in_the_log() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let (node, _) = Node::start_for_programs(&[], log.as_file());
    // The arguments are the calldata; the code passes them on. 0xb60e72cc = log(string,uint256).
    let words = ["40", "2a", "5"].map(|word| format!("{word:0>64}")).concat();
    let arguments = format!("0xb60e72cc{words}{:0<64}", "6974206973");
    let code = "365f5f375f5f365f6a636f6e736f6c652e6c6f675afa00";
    let created = json!([{ "from": ALICE, "data": format!("0x60{:02x}600b5f3960{:02x}5ff300{code}", code.len() / 2, code.len() / 2) }]);
    let contract = node.receipt(&node.result("eth_sendTransaction", created))["contractAddress"].clone();
    let call = json!({ "from": ALICE, "to": contract, "data": arguments });
    let receipt = node.receipt(&node.result("eth_sendTransaction", json!([call])));
    assert_eq!(receipt["status"], "0x1");
    let printed = format!("  console.log · {} · it is 42", receipt["transactionHash"].as_str().unwrap());
    node.result("eth_call", json!([call, "latest"]));
    let begin = Instant::now();
    loop {
        let text = std::fs::read_to_string(log.path()).unwrap();
        if text.contains(&printed) && text.contains("eth_call · console.log · it is 42") {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(10), "{text}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
