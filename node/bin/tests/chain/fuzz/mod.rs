//! Thousands of bad requests over real sockets: each gets the answer that it deserves, and the node lives on.
//!
//! A failure prints the seed; `ALMANAC_FUZZ_SEED=n` runs that one, `ALMANAC_FUZZ_MESSAGES=n` sends more.

mod corpus;
mod spoil;
use crate::support::{socket::Socket, *};
use corpus::{Request, corpus, missing, subscriptions};
use serde_json::{Value, json};
use spoil::{Dice, Message, message};
use std::time::{Duration, Instant};

/// Clients of each kind at once.
const CLIENTS: u64 = 3;

#[test]
fn no_request_hurts_the_node() {
    let seed = from_environment("ALMANAC_FUZZ_SEED").unwrap_or(1);
    let count = from_environment("ALMANAC_FUZZ_MESSAGES").unwrap_or(600);
    println!("ALMANAC_FUZZ_SEED={seed} runs this again");
    let log = tempfile::NamedTempFile::new().unwrap();
    let (mut node, _) = Node::start_for_programs(&[], log.as_file());
    let mut corpus = corpus(&node);
    for (method, params) in &corpus {
        let answer = node.call(method, params.clone());
        assert_ne!(answer["error"]["code"], -32_602, "{method} takes what is to be spoilt: {answer}");
        assert_ne!(answer["error"]["code"], -32_601, "{method} is served: {answer}");
    }
    corpus.extend(subscriptions());
    assert_eq!(missing(&corpus), Vec::<String>::new(), "every method has a request here");
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (address, corpus) = (&node.address, &corpus);
            let dice = move |kind: u64| Dice(seed.wrapping_mul(1_000).wrapping_add(client * 2 + kind));
            scope.spawn(move || by_http(address, dice(0), corpus, count));
            scope.spawn(move || by_socket(address, dice(1), corpus, count));
        }
    });
    assert!(node.child.try_wait().unwrap().is_none(), "it runs");
    still_works(&node);
    let peak = node.memory_peak_kilobytes();
    println!("the node took {peak} kB at most");
    assert!(peak < 1_000_000, "memory stays bounded: {peak} kB");
    node.signal("-TERM");
    assert!(node.wait().success(), "it ends in good order");
    let log = std::fs::read_to_string(log.path()).unwrap();
    assert!(!log.contains("panicked"), "{}", log.lines().find(|line| line.contains("panicked")).unwrap());
}

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// One message per connection; some are cut off in the middle.
fn by_http(address: &str, mut dice: Dice, corpus: &[Request], count: u64) {
    for _ in 0..count {
        let message = message(&mut dice, corpus);
        if dice.below(50) == 0 {
            let mut whole = with_body("localhost", &message.text);
            whole.truncate(dice.below(whole.len()));
            drop(std::io::Write::write_all(&mut std::net::TcpStream::connect(address).unwrap(), &whole));
            continue;
        }
        let answer = exchange(address, &with_body("localhost", &message.text));
        let (head, body) =
            answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{}: {answer:?}", show(&message)));
        // What cannot be read at all is a bad request to HTTP too.
        let is_read = head.starts_with("HTTP/1.1 200");
        let is_refused = message.ids.is_none() && head.starts_with("HTTP/1.1 400");
        assert!(is_read || is_refused, "{}: {head}", show(&message));
        check(&message, body.as_bytes());
    }
}

/// All messages on one connection, which stays open; another is broken off in the middle of a frame now and then.
fn by_socket(address: &str, mut dice: Dice, corpus: &[Request], count: u64) {
    let mut socket = Socket::open(address);
    // Messages that may or may not get an answer.
    let mut odd = 0;
    for n in 0..count {
        let message = message(&mut dice, corpus);
        if dice.below(50) == 0 {
            Socket::open(address).break_off(&message.text, dice.below(message.text.len() + 4));
            continue;
        }
        let sentinel = format!("sentinel-{n}");
        let known = json!({ "jsonrpc": "2.0", "id": sentinel, "method": "eth_chainId" }).to_string();
        let closed = |error| panic!("{}: {error}", show(&message));
        socket.send(&message.text).and_then(|()| socket.send(known.as_bytes())).unwrap_or_else(closed);
        // Answers come in any order, and news of subscriptions between them.
        odd += u64::from(message.ids.is_none());
        let (mut is_answered, mut is_alive) = (message.ids.is_none(), false);
        while !(is_answered && is_alive) {
            let text = socket.receive().unwrap_or_else(|error| panic!("{}: {error}", show(&message)));
            let answer: Value = serde_json::from_slice(&text).unwrap();
            if answer["id"] == sentinel {
                is_alive = true;
            } else if answer["method"] != "eth_subscription" && answer["method"] != "almanac_subscription" {
                let is_late = odd > 0 && !message.is_for(&answer);
                // A subscription in a batch is answered on its own, and once more with the batch.
                let is_extra = message.is_batch() && answer.is_object();
                check(if is_late || is_extra { &ANY } else { &message }, &text);
                odd -= u64::from(is_late);
                is_answered |= !(is_late || is_extra);
            }
        }
    }
}

/// What an answer is for that came later than was waited for it.
static ANY: Message = Message { text: Vec::new(), ids: None };

/// An answer is one of JSON-RPC, to this request, and never a fault of the node's own.
fn check(message: &Message, text: &[u8]) {
    let shown = || {
        let answer: String = String::from_utf8_lossy(text).chars().take(600).collect();
        format!("{}\n-> {answer}", show(message))
    };
    let Some(ids) = &message.ids else {
        // A request without an id wants no answer.
        if !matches!(text, b"" | b"null") {
            let answer: Value = serde_json::from_slice(text).unwrap_or_else(|_| panic!("{}", shown()));
            answer.as_array().unwrap_or(&vec![answer.clone()]).iter().for_each(|one| check_one(one, &shown));
        }
        return;
    };
    let answer: Value = serde_json::from_slice(text).unwrap_or_else(|_| panic!("{}", shown()));
    let answers = match answer {
        Value::Array(answers) => answers,
        one => vec![one],
    };
    answers.iter().for_each(|one| check_one(one, &shown));
    let mut given: Vec<String> = answers.iter().map(|one| one["id"].to_string()).collect();
    let expected: Vec<String> = ids.iter().map(Value::to_string).collect();
    // What is no request has no id, but the server may take something in it for one.
    let junk = expected.iter().filter(|id| *id == "null").count();
    given.retain(|id| !expected.contains(id) || id == "null");
    assert_eq!(given.len(), junk, "{}", shown());
    assert_eq!(answers.len(), expected.len(), "{}", shown());
}

fn check_one(answer: &Value, shown: &impl Fn() -> String) {
    assert_eq!(answer["jsonrpc"], "2.0", "{}", shown());
    let fields = answer.as_object().unwrap();
    assert!(fields.contains_key("id"), "{}", shown());
    match (fields.get("result"), fields.get("error")) {
        (Some(_), None) => {}
        (None, Some(error)) => {
            let message = error["message"].as_str().unwrap_or_default();
            assert!(error["code"].is_i64() && !message.is_empty(), "{}", shown());
            assert_ne!(error["code"], -32_603, "a fault of the node's own: {}", shown());
            assert!(message.len() < 2_000, "an error repeats no flood: {}", shown());
        }
        _ => panic!("neither result nor error, or both: {}", shown()),
    }
}

/// A message, for people.
fn show(message: &Message) -> String {
    String::from_utf8_lossy(&message.text).chars().take(600).collect()
}

/// After all that, the chain takes transactions and makes blocks.
fn still_works(node: &Node) {
    node.result("anvil_dropAllTransactions", json!([]));
    node.result("evm_setAutomine", json!([true]));
    // The last of them may have made gas as dear as it can be.
    node.result("anvil_setNextBlockBaseFeePerGas", json!(["0x3b9aca00"]));
    node.result("anvil_setBalance", json!([ALICE, "0xde0b6b3a7640000"]));
    let before = node.height();
    let hash = node.result("eth_sendTransaction", json!([{ "from": ALICE, "to": ALICE, "gas": "0x5208" }]));
    assert_eq!(node.receipt(&hash)["status"], "0x1");
    node.result("evm_setIntervalMining", json!([1]));
    let begin = Instant::now();
    while node.height() < before + 2 {
        assert!(begin.elapsed() < Duration::from_secs(10), "blocks keep coming");
        std::thread::sleep(Duration::from_millis(50));
    }
}
