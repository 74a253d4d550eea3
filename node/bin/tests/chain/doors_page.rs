//! `docs/doors.md` says what orders cost: compared with a running chain.

use crate::support::{
    ALICE, Node,
    callbacks::{Priority, SCHEDULER, let_alice_book, order},
    cron::{COUNTER, Job, now, set_code},
    market::{GWEI, deposit, insertion, txn},
    number,
};
use alloy_primitives::hex;
use serde_json::{Value, json};

const PAGE: &str = include_str!("../../../../docs/doors.md");
/// How far, in percent, the page may be off: it has round figures.
const OFF_MAX: u64 = 3;

/// The gas that the page gives for a door's order.
fn told(door: &str) -> u64 {
    let row = PAGE.lines().find(|line| {
        line.starts_with(&format!("| {door} |")) && line.split('|').nth(2).unwrap().contains("000")
    });
    let cell = row.unwrap_or_else(|| panic!("no row for {door}")).split('|').nth(2).unwrap();
    cell.trim().replace(',', "").parse().unwrap()
}

fn gas_of(node: &Node, request: &Value) -> u64 {
    let receipt = node.receipt(&node.result("eth_sendTransaction", json!([request])));
    assert_eq!(receipt["status"], "0x1", "{receipt}");
    number(&receipt["gasUsed"])
}

fn assert_told(door: &str, gas: u64) {
    let told = told(door);
    assert!(told.abs_diff(gas) * 100 <= told * OFF_MAX, "{door}: the page says {told}, it is {gas}");
}

#[test]
fn the_page_of_doors_says_what_orders_cost() {
    let node = Node::start(&[]);
    let_alice_book(&node);
    set_code(&node, COUNTER);
    // The first of each kind writes what later ones find.
    let cron = || number(&Job::once(&node, 600).every(3_600, 3).make(&node).1["gasUsed"]);
    cron();
    assert_told("cron job", cron());
    let at = now(&node) + 600;
    for (door, priority) in [
        ("callback, High", Priority::High),
        ("callback, Medium", Priority::Medium),
        ("callback, Low", Priority::Low),
    ] {
        let request = json!({ "from": ALICE, "to": SCHEDULER, "value": "0x2386f26fc10000",
            "data": hex::encode_prefixed(order(at, priority, 48)), "gas": "0x200000" });
        gas_of(&node, &request);
        assert_told(door, gas_of(&node, &request));
    }
    let txn = txn(&node, 600_000, 5 * GWEI);
    let insertion = insertion(&txn, deposit(&txn));
    gas_of(&node, &insertion);
    assert_told("scheduled transaction", gas_of(&node, &insertion));
}
