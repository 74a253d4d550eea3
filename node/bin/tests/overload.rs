//! More work than validators can do in the time of a block: blocks get smaller, and keep coming.

mod support;

use alloy_primitives::{TxKind, hex};
use almanac_primitives::{UserTransaction, testing};
use serde_json::json;
use std::time::{Duration, Instant};
use support::{
    load::account,
    network::{Network, VALIDATORS, agree_at, wait_for},
    number,
};

const BLOCK_TIME_MS: u64 = 50;

/// A block takes 30 of these; they keep a processor busy for half a second, and each of the validators does it.
const GAS: u64 = 1_000_000;

const SENDERS: usize = 10;
const EACH: u64 = 9;

/// Most of them in one block: as many as take a block's time for sure, and not what it has gas for.
const BLOCK_MAX: u64 = 10;

/// Longest time without a block. A view that fails takes over a second.
const GAP_MAX: Duration = Duration::from_secs(5);

/// Recovers the signer of the same signature until there is no gas left: what takes longest for its gas of all that
/// a contract can ask for.
fn heavy(nonce: u64, sender: usize) -> UserTransaction {
    let code = hex!(
        "60015f52 601b602052"
        "7f79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798604052 6001606052"
        "5b 6020 6080 6080 5f 6001 61ffff fa 50 6032 56"
    );
    assert_eq!(code[0x32], 0x5b, "where the loop begins");
    testing::sign(testing::eip1559(nonce, TxKind::Create, 0, code.to_vec(), GAS), account(sender).1)
}

#[test]
fn blocks_shrink_to_what_validators_can_do_in_time() {
    let net = Network::direct(BLOCK_TIME_MS);
    agree_at(&net.nodes, 5);
    for nonce in 0..EACH {
        for sender in 0..SENDERS {
            let sent = net.nodes[sender % VALIDATORS].send(&heavy(nonce, sender));
            assert!(sent["result"].is_string(), "{sent}");
        }
    }

    let first = net.nodes[0].height();
    let gap = longest_gap_until(&net, || (0..SENDERS).all(|sender| count(&net, sender) == EACH));
    let last = net.nodes[0].height();
    println!(
        "{} heavy transactions in blocks {first} to {last}, {gap:?} apart at most",
        SENDERS as u64 * EACH
    );
    assert!(gap < GAP_MAX, "{gap:?} without a block");
    for block in first..=last {
        let found =
            net.nodes[0].result("eth_getBlockTransactionCountByNumber", json!([format!("{block:#x}")]));
        assert!(number(&found) <= BLOCK_MAX, "block {block} has {found} of them");
    }
    agree_at(&net.nodes, last);
}

fn count(net: &Network, sender: usize) -> u64 {
    number(&net.nodes[0].result("eth_getTransactionCount", json!([account(sender).0, "latest"])))
}

/// The longest time in which no block came, until something holds.
fn longest_gap_until(net: &Network, holds: impl Fn() -> bool) -> Duration {
    let (mut height, mut since, mut longest) = (net.nodes[0].height(), Instant::now(), Duration::ZERO);
    while !holds() {
        let now = wait_for("block", || Some(net.nodes[0].height()).filter(|now| *now > height));
        (height, longest, since) = (now, longest.max(since.elapsed()), Instant::now());
    }
    longest
}
