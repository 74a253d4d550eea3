//! The `almanac_` methods, and runs as Ethereum's methods show them: real requests to a real process.
#![allow(unreachable_pub, reason = "parts of one test")]

mod ahead;
mod callbacks;
mod eth;
mod figures;
mod life;
mod market;
mod news;
mod proofs;
use crate::support::*;
use alloy_primitives::U256;
use alloy_sol_types::sol;
use serde_json::{Value, json};

sol!("../../contracts/IParameters.sol");

#[track_caller]
fn refused(node: &Node, method: &str, params: Value, code: i64, expected: &str) {
    let answer = node.call(method, params);
    let message = answer["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(answer["error"]["code"] == code && message.contains(expected), "{method}: {answer}");
}

fn wei(value: &Value) -> U256 {
    value.as_str().unwrap().parse().unwrap()
}

fn block(node: &Node, is_full: bool) -> Value {
    node.result("eth_getBlockByNumber", json!(["latest", is_full]))
}
