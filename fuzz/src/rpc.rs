//! Requests to a developer's chain in memory, method by method, with arguments of the right kinds and wrong values.
//!
//! An input is a few requests. Each names one of the good requests in `corpus.rs`, which the tests over sockets spoil
//! too, and says byte by byte which of its values become others (`arguments.rs`). Afterwards the chain goes back to
//! where it was.

#[path = "rpc/arguments.rs"]
mod arguments;
#[path = "rpc/chain.rs"]
pub(crate) mod chain;
#[path = "../../node/bin/tests/fuzz/corpus.rs"]
#[allow(dead_code, reason = "shared with the tests over sockets")]
mod corpus;

use almanac_primitives::{UserTransaction, testing};
use arguments::Choices;
use chain::{BOB, Node};
use corpus::Request;
use serde_json::{Value, json};
use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

/// Most requests in an input.
const REQUESTS_MAX: usize = 4;

/// Longest time for a request. Calls are stopped after a tenth of a second; the rest is for a crowded machine.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(5);

/// JSON-RPC's code for a fault of the server's own.
const INTERNAL_ERROR: i64 = -32_603;

struct Harness {
    node: Node,
    corpus: Vec<Request>,
}

/// Made by the first input.
static HARNESS: LazyLock<Harness> = LazyLock::new(|| {
    let node = Node::start();
    let corpus = corpus::corpus(&node);
    Harness { node, corpus }
});

/// Runs an input.
pub fn run(input: &[u8]) {
    let Harness { node, corpus } = &*HARNESS;
    let before = node.result("evm_snapshot", json!([]));
    let mut choices = Choices::new(input);
    for _ in 0..REQUESTS_MAX {
        if choices.is_empty() {
            break;
        }
        let (method, params) = &corpus[choices.below(corpus.len())];
        ask(node, method, &choices.spoil(params));
    }
    node.call("evm_revert", &json!([before]));
}

fn ask(node: &Node, method: &str, params: &Value) {
    let begin = Instant::now();
    let answer = node.call(method, params);
    let taken = begin.elapsed();
    assert!(taken < REQUEST_TIME_MAX, "{method} takes {taken:?} for {params}");
    let code = answer["error"]["code"].as_i64();
    assert_ne!(code, Some(INTERNAL_ERROR), "{method} fails by itself for {params}: {answer}");
    assert!(answer.get("result").is_some() != code.is_some(), "{method} answers {answer}");
}

/// Every good request, as it is and with its first values spoilt.
pub fn seeds() -> Vec<Vec<u8>> {
    let count = HARNESS.corpus.len();
    assert!(count <= 256, "a byte names a request: {count}");
    (0..=255u8)
        .take(count)
        .flat_map(|number| [vec![number], vec![number, 200, 3, 210, 40, 220, 77]])
        .collect()
}

/// A transfer that Alice signs.
pub(crate) fn to_bob(nonce: u64) -> UserTransaction {
    let secret = crate::accounts::ACCOUNTS[0].secret;
    testing::sign(testing::legacy(nonce, BOB.parse().expect("an address"), 1), secret)
}
