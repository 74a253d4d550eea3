//! Requests to a developer's chain in memory, method by method, with arguments of the right kinds and wrong values.
//!
//! An input is a few requests. Each names one of the good requests in `corpus.rs`, which the tests over sockets spoil
//! too, and says byte by byte which of its values become others (`arguments.rs`). Afterwards the chain goes back to
//! where it was.

#[path = "rpc/arguments.rs"]
mod arguments;
#[path = "rpc/chain.rs"]
pub(crate) mod chain;
#[path = "../../node/bin/tests/chain/fuzz/corpus.rs"]
#[allow(dead_code, reason = "shared with the tests over sockets")]
mod corpus;

use almanac_consensus::solo::REQUEST_BLOCKS_MAX;
use almanac_primitives::{UserTransaction, testing};
use arguments::Choices;
use chain::{BOB, Node};
use corpus::Request;
use serde_json::{Value, json};
use std::{
    ops::RangeInclusive,
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
        ask(node, method, &patient(method, choices.spoil(params)));
    }
    node.call("evm_revert", &json!([before]));
    // Neither is part of a snapshot, and an input must not depend on those before it.
    node.call("evm_setAutomine", &json!([true]));
    node.call("anvil_dropAllTransactions", &json!([]));
}

/// Most blocks that a developer's order makes here.
const BLOCKS_MAX: u64 = 20;

/// What may take longer than a request may here, because a client asked for that: to wait for a receipt, and to make
/// many blocks.
fn patient(method: &str, mut params: Value) -> Value {
    if method.ends_with("Sync") {
        params.get_mut(1).into_iter().for_each(|wait| lower(wait, 0..=u64::MAX, 16));
    }
    if method.contains("mine") {
        lower(&mut params, BLOCKS_MAX..=REQUEST_BLOCKS_MAX, BLOCKS_MAX);
    }
    params
}

/// Replaces every number in this range.
fn lower(value: &mut Value, range: RangeInclusive<u64>, number: u64) {
    let text = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| lower(item, range.clone(), number)),
        Value::Object(fields) => fields.values_mut().for_each(|field| lower(field, range.clone(), number)),
        other => {
            let given = other.as_u64().or_else(|| other.as_str().and_then(text));
            if given.is_some_and(|given| range.contains(&given)) {
                *other = json!(format!("{number:#x}"));
            }
        }
    }
}

fn ask(node: &Node, method: &str, params: &Value) {
    if std::env::var_os("ALMANAC_FUZZ_SHOW").is_some() {
        eprintln!("{method} {params}");
    }
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
