//! FLIP-330 callbacks as the `almanac_` methods show them, from booking to their end.

use crate::almanac::{IParameters, refused, wei};
use crate::support::{
    ALICE, Node,
    callbacks::{ICallbackScheduler, Priority, SCHEDULER, book, cancel, let_alice_book, order},
    cron::{COUNTER, Job, REGISTRY, REVERTER, TARGET, mine_at, now, set_code},
    number,
    socket::Socket,
};
use alloy_primitives::{U256, hex};
use alloy_sol_types::{SolCall, SolError};
use serde_json::{Value, json};

/// A chain whose handler Alice may book.
fn start(handler: &str) -> Node {
    let node = Node::start(&[]);
    let_alice_book(&node);
    set_code(&node, handler);
    node
}

/// FLIP330-05 at the floor of a gwei per gas, below which the base fee of an idle chain is.
fn fee(effort: u64, multiplier: u64) -> U256 {
    U256::from(effort * 2_100 * multiplier) * U256::from(1_000_000_000)
}

fn schedule(node: &Node, id: &Value) -> Value {
    node.result("almanac_getSchedule", json!([id]))
}

fn booked(node: &Node, second: u64) -> Value {
    let span = json!([{ "from": second * 1_000, "to": second * 1_000 }]);
    node.result("almanac_capacity", span)
}

#[test]
fn what_is_booked_is_shown_until_it_has_run() {
    let node = start(COUNTER);
    let mut news = Socket::open(&node.address);
    news.call("almanac_subscribe", json!(["schedules"]));
    let at = now(&node) + 100;
    let low = book(&node, at, Priority::Low, 50);
    let medium = book(&node, at, Priority::Medium, 200);
    let high = book(&node, at, Priority::High, 100);

    let shown = schedule(&node, &high);
    assert_eq!((&shown["status"], &shown["lane"]), (&json!("pending"), &json!("reserved")));
    assert_eq!((&shown["owner"], &shown["target"]), (&json!(ALICE), &json!(TARGET)));
    let terms = &shown["terms"];
    assert_eq!((&terms["door"], &terms["priority"]), (&json!("callback"), &json!("high")));
    assert_eq!((number(&terms["effort"]), number(&terms["gasLimit"])), (100, 210_000));
    assert_eq!((wei(&shown["escrow"]), &shown["runsLeft"]), (fee(100, 10), &json!("0x1")));
    assert_eq!(number(&shown["nextRun"]["ms"]), at * 1_000);
    assert_eq!(schedule(&node, &low)["lane"], "spare");

    let agenda = node.result("almanac_agenda", json!([]));
    let entries: Vec<_> = agenda["entries"].as_array().unwrap().iter().collect();
    let named: Vec<_> = entries.iter().map(|entry| (&entry["idNumber"], &entry["priorityName"])).collect();
    let (h, m, l) = (json!("high"), json!("medium"), json!("low"));
    assert_eq!(named, [(&high, &h), (&medium, &m), (&low, &l)], "as a block runs them");
    assert!(entries.iter().all(|entry| entry["door"] == "callback"));

    let capacity = booked(&node, at);
    let of_lane = |lane: usize| {
        let second = &capacity["lanes"][lane]["seconds"][0];
        (number(&second["runs"]), number(&second["gas"]))
    };
    assert_eq!((of_lane(0), of_lane(3)), ((2, 300 * 2_100), (1, 50 * 2_100)));
    assert_eq!(
        (number(&capacity["booked"]["highMax"]), number(&capacity["booked"]["mediumMax"])),
        (30_000, 15_000)
    );
    let second = &capacity["booked"]["seconds"][0];
    let room = |class: &str| (number(&second[class]["booked"]), number(&second[class]["available"]));
    assert_eq!((room("high"), room("medium")), ((100, 29_900), (200, 14_800)));

    // Paid in full: no base fee changes that.
    node.result("anvil_setNextBlockBaseFeePerGas", json!(["0x174876e800"]));
    node.result("evm_mine", json!([]));
    let runway = node.result("almanac_runway", json!([high]));
    assert!(number(&runway["baseFee"]) > 50_000_000_000, "{runway}");
    assert_eq!((&runway["runs"], &runway["limitedBy"]), (&json!("0x1"), &json!("runs")));
    assert_eq!((wei(&runway["chargePerRun"]), &runway["runsDry"]), (fee(100, 10), &json!(null)));
    for (id, fee) in [(&high, fee(100, 10)), (&medium, fee(200, 5)), (&low, fee(50, 2))] {
        let preview = node.result("almanac_preview", json!([id, 3]));
        let runs = preview["runs"].as_array().unwrap();
        assert_eq!(
            (runs.len(), &runs[0]["success"], wei(&runs[0]["fee"])),
            (1, &json!(true), fee),
            "{preview}"
        );
        assert_eq!(
            (&preview["escrowSuffices"], &preview["end"]["status"]),
            (&json!(true), &json!("succeeded"))
        );
        assert_eq!(number(&runs[0]["time"]["ms"]), at * 1_000);
    }

    mine_at(&node, at);
    for id in [&high, &medium, &low] {
        let shown = schedule(&node, id);
        assert_eq!((&shown["status"], &shown["lastRun"]), (&json!("succeeded"), &json!("succeeded")));
        assert_eq!(
            (&shown["runs"], &shown["runsLeft"], &shown["nextRun"]),
            (&json!("0x1"), &json!("0x0"), &json!(null))
        );
        assert_eq!((&shown["escrow"], &shown["end"]["refunded"]), (&json!("0x0"), &json!("0x0")));
        let runs = node.result("almanac_getRuns", json!([id]));
        assert_eq!((runs["runs"].as_array().unwrap().len(), &runs["runs"][0]["success"]), (1, &json!(true)));
        refused(&node, "almanac_runway", json!([id]), -32_000, "does not run any more: it is Succeeded");
        assert_eq!(node.result("almanac_preview", json!([id]))["end"]["status"], "succeeded");
    }
    assert_eq!(node.result("almanac_agenda", json!([]))["entries"], json!([]));
    assert_eq!(booked(&node, at)["booked"]["seconds"], json!([]));
    let pending = node.result("almanac_listSchedules", json!([{ "status": "pending" }]));
    assert_eq!(pending["schedules"], json!([]));
    let told: Vec<_> =
        (0..6).map(|_| news.news()).map(|one| (one["event"].clone(), one["idNumber"].clone())).collect();
    let happened = |event: &str, ids: [&Value; 3]| ids.map(|id| (json!(event), id.clone()));
    let expected =
        [happened("created", [&low, &medium, &high]), happened("succeeded", [&high, &medium, &low])];
    assert_eq!(told, expected.concat());
}

#[test]
fn a_cancelled_callback_shows_its_refund() {
    let node = start(COUNTER);
    let mut news = Socket::open(&node.address);
    news.call("almanac_subscribe", json!(["schedules"]));
    let at = now(&node) + 100;
    let id = book(&node, at, Priority::High, 101);
    assert_eq!(cancel(&node, &id)["status"], "0x1");
    let half = fee(101, 10) / U256::from(2);
    let shown = schedule(&node, &id);
    assert_eq!((&shown["status"], &shown["end"]["status"]), (&json!("cancelled"), &json!("cancelled")));
    assert_eq!((wei(&shown["end"]["refunded"]), &shown["runsLeft"]), (half, &json!("0x0")));
    assert_eq!((&shown["escrow"], &shown["nextRun"]), (&json!("0x0"), &json!(null)));
    assert_eq!(booked(&node, at)["booked"]["seconds"], json!([]));
    let preview = node.result("almanac_preview", json!([id]));
    assert_eq!((&preview["runs"], &preview["end"]["status"]), (&json!([]), &json!("cancelled")));
    assert_eq!(news.news()["event"], "created");
    let cancelled = news.news();
    assert_eq!((&cancelled["event"], wei(&cancelled["refunded"])), (&json!("cancelled"), half));
    mine_at(&node, at);
    assert_eq!(schedule(&node, &id)["status"], "cancelled");
    assert_eq!(node.result("almanac_getRuns", json!([id]))["runs"], json!([]));
}

/// FLIP330-18: the chain stood still for longer than a minute.
#[test]
fn what_was_late_costs_nothing_and_says_that() {
    let node = start(REVERTER);
    let mut news = Socket::open(&node.address);
    news.call("almanac_subscribe", json!(["schedules"]));
    let at = now(&node) + 100;
    let (high, low) = (book(&node, at, Priority::High, 100), book(&node, at, Priority::Low, 100));
    let preview = |id: &Value| node.result("almanac_preview", json!([id]))["runs"][0].clone();
    let fees = || (wei(&preview(&high)["fee"]), wei(&preview(&low)["fee"]));
    assert_eq!(fees(), (fee(100, 10), fee(100, 2)));
    assert_eq!((&preview(&high)["success"], preview(&high)["error"].is_string()), (&json!(false), true));
    // Without blocks of its own: a developer chain makes one when something is due.
    node.result("evm_setAutomine", json!([false]));
    node.result("evm_increaseTime", json!([100 + 61]));
    assert_eq!(fees(), (U256::ZERO, fee(100, 2)), "Low promises no time");
    node.result("evm_mine", json!([]));
    for (id, refunded) in [(&high, fee(100, 10)), (&low, U256::ZERO)] {
        let shown = schedule(&node, id);
        assert_eq!((&shown["status"], &shown["lastRun"]), (&json!("failed"), &json!("reverted")));
        assert_eq!((wei(&shown["end"]["refunded"]), &shown["runsFailed"]), (refunded, &json!("0x1")));
    }
    let told: Vec<_> = (0..4).map(|_| news.news()).skip(2).collect();
    assert_eq!((&told[0]["event"], wei(&told[0]["refunded"])), (&json!("failed"), fee(100, 10)));
    assert_eq!((&told[1]["event"], wei(&told[1]["refunded"])), (&json!("failed"), U256::ZERO));
}

#[test]
fn a_full_second_and_a_pause_are_seen() {
    let node = start(COUNTER);
    let at = now(&node) + 100;
    let first = book(&node, at, Priority::High, 9_999);
    book(&node, at, Priority::High, 9_999);
    book(&node, at, Priority::High, 9_999);
    let second = booked(&node, at)["booked"]["seconds"][0].clone();
    let room = |class: &str| (number(&second[class]["booked"]), number(&second[class]["available"]));
    assert_eq!((room("high"), room("medium")), ((29_997, 3), (0, 5_003)));
    let request = json!({ "from": ALICE, "to": SCHEDULER, "value": "0xde0b6b3a7640000",
        "data": hex::encode_prefixed(order(at, Priority::High, 20)) });
    let answer = node.call("eth_call", json!([request, "latest"]));
    let data = hex::decode(answer["error"]["data"].as_str().unwrap()).unwrap();
    let no_room = ICallbackScheduler::NoCapacity::abi_decode(&data).unwrap();
    assert_eq!((no_room.effort, no_room.available), (U256::from(20), U256::from(3)));

    let mut name = [0; 32];
    name[..15].copy_from_slice(b"callback_paused");
    let call = IParameters::setCall { name: name.into(), value: U256::ONE }.abi_encode();
    let request = json!({ "from": ALICE, "to": "0x000000000000000000000000000000000000a105",
        "data": hex::encode_prefixed(call) });
    assert_eq!(node.receipt(&node.result("eth_sendTransaction", json!([request])))["status"], "0x1");
    assert_eq!(node.result("almanac_agenda", json!([]))["heldLanes"], json!(["reserved", "spare"]));
    let preview = node.result("almanac_preview", json!([first]));
    assert!(preview["waits"].as_str().unwrap().contains("paused"), "{preview}");
    mine_at(&node, at);
    assert_eq!(schedule(&node, &first)["status"], "pending");
    assert_eq!(number(&booked(&node, at)["booked"]["seconds"][0]["high"]["available"]), 0, "it has passed");
}

/// What an order would come to, before it is sent: it costs, it moves, it will not fit, it would fail.
#[test]
fn an_order_is_previewed_before_it_is_booked() {
    let node = start(COUNTER);
    let at = now(&node) + 100;
    let sent = |priority, effort, value: U256| {
        json!({ "from": ALICE, "to": SCHEDULER, "value": value,
            "data": hex::encode_prefixed(order(at, priority, effort)) })
    };
    let ask = |priority, effort| {
        node.result("almanac_preview", json!([sent(priority, effort, fee(effort, 10)), 2]))
    };
    let preview = ask(Priority::High, 100);
    assert_eq!((wei(&preview["order"]["costs"]), &preview["order"]["error"]), (fee(100, 10), &json!(null)));
    assert_eq!(number(&preview["order"]["due"]["ms"]), at * 1_000);
    let runs = preview["runs"].as_array().unwrap();
    assert_eq!((runs.len(), &runs[0]["success"], wei(&runs[0]["fee"])), (1, &json!(true), fee(100, 10)));
    assert_eq!(number(&runs[0]["time"]["ms"]), at * 1_000);
    assert_eq!((&preview["end"]["status"], &preview["waits"]), (&json!("succeeded"), &json!(null)));
    assert_eq!(node.result("almanac_agenda", json!([]))["entries"], json!([]), "nothing is booked");
    assert!(node.result("almanac_getSchedule", json!([preview["id"]])).is_null());
    // Once it is booked, the preview by its id says the same of its run.
    let id = book(&node, at, Priority::High, 100);
    let booked = node.result("almanac_preview", json!([id, 2]));
    assert_eq!((&booked["runs"][0]["gasUsed"], &booked["order"]), (&runs[0]["gasUsed"], &json!(null)));
    assert_eq!(cancel(&node, &id)["status"], "0x1");

    for _ in 0..3 {
        book(&node, at, Priority::High, 9_999);
    }
    let full = ask(Priority::High, 100);
    let reason = format!("will not fit: second {at} has 3 effort left, not 100");
    assert_eq!((&full["order"]["error"], &full["order"]["costs"]), (&json!(reason), &json!(null)));
    assert_eq!((&full["runs"], &full["id"]), (&json!([]), &json!(null)));
    let moved = ask(Priority::Medium, 6_000);
    assert_eq!(wei(&moved["order"]["costs"]), fee(6_000, 5), "what is above the fee returns");
    assert_eq!(number(&moved["order"]["due"]["ms"]), (at + 1) * 1_000);
    assert_eq!(moved["runs"][0]["time"], moved["order"]["due"]);

    let cheap = node.result("almanac_preview", json!([sent(Priority::Low, 100, U256::from(7))]));
    let reason = format!("costs {} wei, and 7 were sent", fee(100, 2));
    assert_eq!(cheap["order"]["error"], json!(reason));
    let named = node.result("almanac_preview", json!([sent(Priority::Low, 1, U256::from(7))]));
    let reason = "effort 1 is below 11, which the call with its data needs at least";
    assert_eq!(named["order"]["error"], reason);

    // 12 effort is 25,200 gas: too little for a new slot.
    let runs_dry = ask(Priority::Low, 12);
    assert_eq!((&runs_dry["order"]["error"], &runs_dry["runs"][0]["success"]), (&json!(null), &json!(false)));
    assert_eq!(runs_dry["end"]["status"], "failed");
    // Every door's orders are, here a job of the cron registry.
    let job = Job::once(&node, 200);
    let data = hex::encode_prefixed(job.call());
    let order = json!({ "from": ALICE, "to": REGISTRY, "value": job.value, "data": data });
    let preview = node.result("almanac_preview", json!([order]));
    assert_eq!((wei(&preview["order"]["costs"]), &preview["runs"][0]["success"]), (job.value, &json!(true)));
    set_code(&node, REVERTER);
    let failing = ask(Priority::Low, 100);
    assert_eq!((&failing["order"]["error"], &failing["runs"][0]["success"]), (&json!(null), &json!(false)));
    assert!(failing["runs"][0]["error"].as_str().unwrap().starts_with("execution reverted"), "{failing}");

    let nothing = json!([{ "from": ALICE, "to": ALICE }]);
    refused(&node, "almanac_preview", nothing, -32_602, "it books nothing");
    let odd = json!([{ "from": 7 }]);
    refused(&node, "almanac_preview", odd, -32_602, "transaction:");
}
