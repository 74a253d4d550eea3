//! The clock of a developer chain, over restarts and with clients that ask again.

use crate::support::{
    cron::{COUNTER, Job, now, set_code},
    *,
};
use alloy_primitives::U256;
use serde_json::{Value, json};
use std::{
    io::Write as _,
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

const DAY: u64 = 86_400;

fn runs(node: &Node, id: &Value) -> u64 {
    number(&node.result("almanac_getSchedule", json!([id]))["runs"])
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The bug: after a restart, the clock was the machine's again. Until that had caught up, new blocks came a millisecond
/// after each other, and nothing ran.
#[test]
fn a_moved_clock_goes_on_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["--datadir", directory.path().to_str().unwrap()];
    let mut node = Node::start(&arguments);
    set_code(&node, COUNTER);
    let start = now(&node);
    node.result("evm_increaseTime", json!([DAY]));
    node.result("evm_mine", json!([]));
    let (id, _) = Job::once(&node, 2).make(&node);
    node.signal("-TERM");
    node.wait();

    let mut node = Node::start(&arguments);
    wait_until("it runs when the moved clock is there", || runs(&node, &id) == 1);
    // No block has the time that was set last; it is not lost with the process.
    node.result("evm_increaseTime", json!([DAY]));
    node.signal("-KILL");
    node.wait();

    let node = Node::start(&arguments);
    node.result("evm_mine", json!([]));
    assert!((start + 2 * DAY..start + 2 * DAY + 300).contains(&now(&node)), "{}", now(&node) - start);
    assert_eq!(node.result("evm_increaseTime", json!([0])), 2 * DAY, "all that it was moved");
}

/// The bug: a client that gives up waiting asks again, and each time the whole span was added.
#[test]
fn a_request_that_was_given_up_and_repeated_moves_the_clock_once() {
    let node = Node::start(&[]);
    set_code(&node, COUNTER);
    let job = Job { value: U256::from(10u64.pow(18)), ..Job::once(&node, 60).every(60, 0) };
    let (id, receipt) = job.make(&node);
    let start = now(&node);
    let span = 3 * DAY;
    let body =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "evm_increaseTime", "params": [span] }).to_string();
    let request = with_body(&node.address, body.as_bytes());
    let before = number(&receipt["blockNumber"]);
    for _ in 0..2 {
        let mut stream = TcpStream::connect(&node.address).unwrap();
        stream.write_all(&request).unwrap();
        // Blocks are being made for it.
        wait_until("the travel begins", || node.height() > before);
        // Long enough to be read: one that is read after its client has gone is answered before that is noticed.
        thread::sleep(Duration::from_millis(500));
        drop(stream);
    }
    let answer: Value =
        serde_json::from_str(&post_within(Duration::from_secs(120), &node.address, &body).unwrap()).unwrap();
    assert_eq!(answer["result"], span, "{answer}");
    node.result("evm_mine", json!([]));
    let passed = now(&node) - start;
    assert!((span..span + 120).contains(&passed), "{passed} s instead of {span}");
    let expected = passed / 60;
    assert!((expected - 2..=expected).contains(&runs(&node, &id)), "{} runs", runs(&node, &id));
}
