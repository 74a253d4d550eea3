//! AIP-125's scheduled transactions as the `almanac_` methods show them, from insertion to their end.

use crate::almanac::{IParameters, refused, wei};
use crate::support::{
    ALICE, BOB, Node,
    cron::{COUNTER, REVERTER, TARGET, set_code},
    market::{GWEI, ScheduledTransaction, cancel, cancel_all, deposit, insert, insertion, now_ms, txn},
    number,
    socket::Socket,
};
use alloy_primitives::{U256, hex};
use alloy_sol_types::SolCall;
use serde_json::{Value, json};

fn start(target: &str) -> Node {
    let node = Node::start(&[]);
    set_code(&node, target);
    node
}

fn schedule(node: &Node, id: &Value) -> Value {
    node.result("almanac_getSchedule", json!([id]))
}

fn agenda(node: &Node, options: Value) -> Value {
    node.result("almanac_agenda", options)
}

fn ids(page: &Value) -> Vec<Value> {
    page["entries"].as_array().unwrap().iter().map(|entry| entry["idNumber"].clone()).collect()
}

/// A block so many milliseconds after the last one, at a base fee.
fn mine(node: &Node, after_ms: u64, base_fee: u64) {
    let at = (now_ms(node) + after_ms).div_ceil(1_000);
    node.result("evm_setNextBlockTimestamp", json!([at]));
    node.result("anvil_setNextBlockBaseFeePerGas", json!([format!("{base_fee:#x}")]));
    node.result("evm_mine", json!([]));
}

fn market_of<'a>(page: &'a Value, id: &Value) -> &'a Value {
    let entries = page["entries"].as_array().unwrap();
    &entries.iter().find(|entry| entry["idNumber"] == *id).unwrap()["market"]
}

#[test]
fn a_scheduled_transaction_is_shown_until_it_has_run() {
    let node = start(COUNTER);
    let mut news = Socket::open(&node.address);
    news.call("almanac_subscribe", json!(["schedules"]));
    let mut runs = Socket::open(&node.address);
    runs.call("almanac_subscribe", json!(["runs"]));
    let order = txn(&node, 100_050, 5 * GWEI);
    let dear = ScheduledTransaction { maxGasUnitPrice: 9 * GWEI, ..order.clone() };
    let (id, key) = insert(&node, &order);
    let (dear_id, _) = insert(&node, &dear);

    let due = order.scheduledTimeMs.div_ceil(100) * 100;
    let shown = schedule(&node, &id);
    assert_eq!((&shown["status"], &shown["lane"]), (&json!("pending"), &json!("market")));
    assert_eq!((&shown["owner"], &shown["target"]), (&json!(ALICE), &json!(TARGET)));
    let terms = &shown["terms"];
    assert_eq!((&terms["door"], number(&terms["maxGasUnitPrice"])), (&json!("market"), 5 * GWEI));
    assert_eq!(
        (number(&terms["scheduledTimeMs"]), number(&terms["expiryBlocks"])),
        (order.scheduledTimeMs, 100)
    );
    assert_eq!((wei(&shown["escrow"]), &shown["runsLeft"]), (deposit(&order), &json!("0x1")));
    assert_eq!(number(&shown["nextRun"]["ms"]), due);
    let market = &shown["market"];
    assert_eq!(market["key"]["txnId"], json!(key.txnId));
    assert_eq!(
        (number(&market["key"]["time"]), number(&market["key"]["gasPriority"])),
        (key.time, key.gasPriority)
    );
    assert_eq!((number(&market["bid"]), &market["isWaiting"]), (5 * GWEI, &json!(false)));
    assert_eq!((&market["isClaimable"], &market["blocksLeft"]), (&json!(false), &json!(null)));

    let page = agenda(&node, json!([]));
    assert_eq!(ids(&page), [dear_id.clone(), id.clone()], "the higher bid first");
    assert_eq!(
        (&page["entries"][1]["door"], number(&page["entries"][1]["priority"])),
        (&json!("market"), 5 * GWEI)
    );
    assert!(number(&market_of(&page, &id)["expectedBlock"]) > node.height());
    let listed = node.result(
        "almanac_listSchedules",
        json!([{ "lane": "market", "status": "pending",
        "dueFrom": due, "dueTo": due }]),
    );
    assert_eq!(listed["schedules"].as_array().unwrap().len(), 2);

    let preview = node.result("almanac_preview", json!([id, 3]));
    let run = &preview["runs"][0];
    assert_eq!((&run["success"], &preview["end"]["status"]), (&json!(true), &json!("succeeded")));
    let base_fee = wei(&preview["baseFee"]);
    assert_eq!(wei(&run["fee"]), base_fee * U256::from(number(&run["gasUsed"])), "alone, at the base fee");
    assert_eq!(wei(&run["escrowBefore"]), deposit(&order));
    let runway = node.result("almanac_runway", json!([id]));
    assert_eq!((&runway["runs"], &runway["limitedBy"]), (&json!("0x1"), &json!("runs")));

    mine(&node, due + 1_000 - now_ms(&node), GWEI);
    let shown = schedule(&node, &id);
    assert_eq!((&shown["status"], &shown["lastRun"]), (&json!("succeeded"), &json!("succeeded")));
    let fee = wei(&shown["feesTotal"]);
    let past = node.result("almanac_getRuns", json!([id]));
    let gas_used = number(&past["runs"][0]["receipt"]["gasUsed"]);
    assert_eq!(fee, U256::from(gas_used) * U256::from(GWEI));
    assert_eq!(wei(&shown["end"]["refunded"]), deposit(&order) - fee, "the rest of the deposit");
    assert_eq!((&shown["escrow"], &shown["market"]), (&json!("0x0"), &json!(null)));
    assert_eq!((&past["runs"][0]["success"], wei(&past["runs"][0]["fee"])), (&json!(true), fee));
    assert_eq!(number(&past["runs"][0]["receipt"]["effectiveGasPrice"]), GWEI);
    let told: Vec<_> =
        (0..4).map(|_| news.news()).map(|one| (one["event"].clone(), one["idNumber"].clone())).collect();
    let happened = |event: &str, id: &Value| (json!(event), id.clone());
    assert_eq!(
        told,
        [
            happened("created", &id),
            happened("created", &dear_id),
            happened("succeeded", &dear_id),
            happened("succeeded", &id)
        ]
    );
    let (first, second) = (runs.news(), runs.news());
    assert_eq!((&first["idNumber"], &second["idNumber"]), (&dear_id, &id), "by bid");
    assert_eq!((&second["event"], wei(&second["fee"])), (&json!("run"), fee));
}

/// What waits for a price is still to come: it is first on the agenda, counts as overdue, and expires.
#[test]
fn one_that_waits_for_a_price_is_shown_until_it_expires() {
    let node = start(COUNTER);
    let mut news = Socket::open(&node.address);
    news.call("almanac_subscribe", json!(["schedules"]));
    let order = ScheduledTransaction { expiryBlocks: 2, ..txn(&node, 100_000, 5 * GWEI) };
    let (id, key) = insert(&node, &order);
    let better = ScheduledTransaction { expiryBlocks: 0, maxGasUnitPrice: 6 * GWEI, ..order.clone() };
    let (better, _) = insert(&node, &better);
    let later = insert(&node, &txn(&node, 3_600_000, 5 * GWEI)).0;
    mine(&node, 102_000, 100 * GWEI);

    let shown = schedule(&node, &id);
    assert_eq!((&shown["status"], number(&shown["market"]["blocksLeft"])), (&json!("pending"), 2));
    assert_eq!(
        (&shown["market"]["isWaiting"], &shown["market"]["expectedBlock"]),
        (&json!(true), &json!(null))
    );
    assert_eq!(number(&shown["nextRun"]["ms"]), order.scheduledTimeMs.div_ceil(100) * 100);
    let page = agenda(&node, json!([]));
    assert_eq!(ids(&page), [better.clone(), id.clone(), later.clone()]);
    assert_eq!(number(&page["entries"][1]["due"]["ms"]), order.scheduledTimeMs.div_ceil(100) * 100);
    assert_eq!(
        (&page["entries"][1]["lane"], number(&page["entries"][1]["priority"])),
        (&json!("market"), 5 * GWEI)
    );
    let mut walked = Vec::new();
    let mut cursor = json!(null);
    for _ in 0..3 {
        let options = if cursor.is_null() {
            json!([{ "limit": 1 }])
        } else {
            json!([{ "limit": 1, "cursor": cursor }])
        };
        let page = agenda(&node, options);
        walked.extend(ids(&page));
        cursor = page["cursor"].clone();
    }
    assert_eq!((walked, &cursor), (vec![better, id.clone(), later], &json!(null)), "page by page");
    assert_eq!(ids(&agenda(&node, json!([{ "lanes": ["cron"] }]))).len(), 0);
    assert_eq!(ids(&agenda(&node, json!([{ "from": now_ms(&node) }]))).len(), 1, "only what has a time");
    let lane = node.result("almanac_agendaBuckets", json!([]))["lanes"][2].clone();
    assert_eq!((number(&lane["pending"]), number(&lane["overdue"])), (3, 2));

    let preview = node.result("almanac_preview", json!([id]));
    let waits = preview["waits"].as_str().unwrap();
    assert!(
        waits.starts_with(&format!("its bid of {} wei per gas is below the base fee of", 5 * GWEI)),
        "{waits}"
    );
    let listed = node.result("almanac_listSchedules", json!([{ "dueTo": now_ms(&node) }]));
    assert_eq!(listed["schedules"].as_array().unwrap().len(), 2, "they are due");

    // A developer's edits are in blocks of their own, so there is more than one for each.
    let mut left = 2;
    let shown = loop {
        mine(&node, 1_000, 100 * GWEI);
        let shown = schedule(&node, &id);
        if shown["status"] != "pending" {
            break shown;
        }
        let now = number(&shown["market"]["blocksLeft"]);
        assert!(now < left, "{now} blocks left after {left}");
        left = now;
    };
    assert_eq!((&shown["status"], &shown["end"]["reason"]), (&json!("exhausted"), &json!("waited too long")));
    assert_eq!(wei(&shown["end"]["refunded"]), deposit(&order));
    let told: Vec<_> = (0..4).map(|_| news.news()).collect();
    assert_eq!((&told[3]["idNumber"], &told[3]["event"]), (&id, &json!("exhausted")), "{told:?}");
    assert_eq!(cancel(&node, &key)["status"], "0x0", "it has ended");
}

#[test]
fn a_run_that_fails_and_one_that_is_cancelled_show_their_refunds() {
    let node = start(REVERTER);
    let failing = txn(&node, 100_000, 3 * GWEI);
    let (id, _) = insert(&node, &failing);
    let cancelled = txn(&node, 200_000, 3 * GWEI);
    let (other, key) = insert(&node, &cancelled);
    assert_eq!(cancel(&node, &key)["status"], "0x1");
    let shown = schedule(&node, &other);
    assert_eq!(
        (&shown["status"], wei(&shown["end"]["refunded"])),
        (&json!("cancelled"), deposit(&cancelled))
    );
    mine(&node, 102_000, GWEI);
    let shown = schedule(&node, &id);
    assert_eq!((&shown["status"], &shown["lastRun"]), (&json!("failed"), &json!("reverted")));
    assert_eq!(wei(&shown["end"]["refunded"]), deposit(&failing) - wei(&shown["feesTotal"]));

    let (all, _) = insert(&node, &txn(&node, 60_000, 3 * GWEI));
    assert_eq!(cancel_all(&node)["status"], "0x1");
    let shown = schedule(&node, &all);
    let market = &shown["market"];
    assert_eq!(
        (&shown["status"], &market["isClaimable"]),
        (&json!("pending"), &json!(true)),
        "until it is met"
    );
    assert_eq!(market["expectedBlock"], json!(null));
    mine(&node, 61_000, GWEI);
    assert_eq!(schedule(&node, &all)["status"], "cancelled");
}

/// What is refused says why in words, in calls and in previews.
#[test]
fn errors_of_the_door_are_told_in_words() {
    let node = start(COUNTER);
    let order = txn(&node, 60_000, 5 * GWEI);
    let preview = node.result("almanac_preview", json!([insertion(&order, deposit(&order)), 2]));
    assert_eq!(
        (wei(&preview["order"]["costs"]), &preview["order"]["error"]),
        (deposit(&order), &json!(null))
    );
    assert_eq!(preview["runs"][0]["success"], json!(true));
    let told = |order: &Value| node.result("almanac_preview", json!([order]))["order"]["error"].clone();
    let needed = deposit(&order);
    assert_eq!(
        told(&insertion(&order, needed - U256::ONE)),
        json!(format!("needs a deposit of {needed} wei, and {} were sent", needed - U256::ONE))
    );
    let mut stranger = order.clone();
    stranger.senderAddr = BOB.parse().unwrap();
    assert!(
        told(&insertion(&stranger, needed)).as_str().unwrap().contains("only the sender itself"),
        "NotSender"
    );
    let answer = node.call("eth_call", json!([insertion(&order, U256::ZERO), "latest"]));
    assert!(answer["error"]["message"].as_str().unwrap().contains("DepositTooLow"), "{answer}");

    let mut name = [0; 32];
    name[..13].copy_from_slice(b"market_paused");
    let call = IParameters::setCall { name: name.into(), value: U256::ONE }.abi_encode();
    let request = json!({ "from": ALICE, "to": "0x000000000000000000000000000000000000a105",
        "data": hex::encode_prefixed(call) });
    assert_eq!(node.receipt(&node.result("eth_sendTransaction", json!([request])))["status"], "0x1");
    assert_eq!(told(&insertion(&order, needed)), json!("governance has paused scheduled transactions"));
    assert_eq!(agenda(&node, json!([]))["heldLanes"], json!(["market"]));
    let estimate =
        node.result("almanac_estimateSchedule", json!([{ "time": now_ms(&node) + 60_000, "gas": 100_000 }]));
    assert!(estimate["waits"].as_str().unwrap().contains("paused"), "{estimate}");
}

#[test]
fn an_estimate_follows_from_recent_blocks_and_from_what_waits() {
    let node = start(COUNTER);
    mine(&node, 1_000, GWEI);
    let ask = |extra: Value| {
        let mut order = json!({ "time": now_ms(&node) + 10_000, "gas": 100_000 });
        for (name, value) in extra.as_object().unwrap() {
            order[name] = value.clone();
        }
        node.result("almanac_estimateSchedule", json!([order]))
    };
    let idle = ask(json!({ "bid": 5 * GWEI, "value": "0x7" }));
    assert_eq!(wei(&idle["deposit"]), U256::from(500_000u64) * U256::from(GWEI) + U256::from(7));
    assert_eq!(idle["price"]["likely"], idle["baseFee"], "nobody pays more");
    assert_eq!((&idle["waits"], number(&idle["waitBlocks"])), (&json!(null), 0));
    assert_eq!(idle["expectedBlock"], idle["firstBlock"]);
    assert!(number(&idle["expectedBlock"]) > node.height());
    // A user that pays a tip of 3 gwei in every block.
    for _ in 0..20 {
        let request = json!({ "from": ALICE, "to": BOB, "maxPriorityFeePerGas": format!("{:#x}", 3 * GWEI),
            "maxFeePerGas": format!("{:#x}", 100 * GWEI) });
        node.receipt(&node.result("eth_sendTransaction", json!([request])));
    }
    let busy = ask(json!({ "bid": 50 * GWEI }));
    assert_eq!(wei(&busy["price"]["likely"]), wei(&busy["baseFee"]) + U256::from(3 * GWEI));
    assert_eq!(wei(&busy["likelyCost"]), wei(&busy["price"]["likely"]) * U256::from(100_000));
    let suggested = ask(json!({}));
    assert!(wei(&suggested["bid"]) > wei(&suggested["price"]["most"]), "{suggested}");
    let bounded = ask(json!({ "bid": number(&busy["baseFee"]) + 7 }));
    assert_eq!(
        wei(&bounded["price"]["most"]),
        wei(&bounded["baseFee"]) + U256::from(7),
        "never above the bid"
    );
    assert_eq!(number(&busy["blocksSeen"]), 20);

    // Seven of five million gas that bid more fill a block of thirty million.
    let due = now_ms(&node) + 100_000;
    for _ in 0..7 {
        let mut order = txn(&node, 0, 60 * GWEI);
        (order.scheduledTimeMs, order.maxGasAmount) = (due, 5_000_000);
        insert(&node, &order);
    }
    let estimate = |bid: u64| {
        node.result("almanac_estimateSchedule", json!([{ "time": due, "gas": 100_000, "bid": bid }]))
    };
    assert_eq!(number(&estimate(61 * GWEI)["waitBlocks"]), 0);
    assert_eq!(number(&estimate(50 * GWEI)["waitBlocks"]), 1);
    for (wrong, says) in [
        (json!({ "gas": 100_000 }), "missing field `time`"),
        (json!({ "time": 5, "gas": 100_000 }), "time 5 ms is not after the block's"),
        (json!({ "time": due, "gas": 20_999 }), "20999 gas is outside 21000..=5000000"),
        (json!({ "time": due, "gas": 100_000, "bid": 1 }), "1 wei per gas is below the base fee"),
        (json!({ "time": due, "gas": 100_000, "price": 1 }), "unknown field `price`"),
    ] {
        refused(&node, "almanac_estimateSchedule", json!([wrong]), -32_602, says);
    }
}
