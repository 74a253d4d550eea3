//! Schedules from birth to end, also where the chain goes back.

use crate::almanac::{block, refused, wei};
use crate::support::{
    ALICE, BOB, Node,
    cron::{COUNTER, Job, REVERTER, TARGET, cancel, mine_at, set_code},
    number,
    socket::Socket,
};
use alloy_primitives::U256;
use serde_json::{Value, json};

const LEDGER: &str = "0x000000000000000000000000000000000000a1ff";

#[test]
fn a_schedule_from_birth_to_end() {
    let node = Node::start(&[]);
    set_code(&node, COUNTER);
    let job = Job { options: 1, ..Job::once(&node, 100) }.every(60, 3);
    let (id, made) = job.make(&node);
    let schedule = node.result("almanac_getSchedule", json!([id]));
    let text = schedule["id"].clone();
    let by_text = node.result("almanac_getSchedule", json!([text]));
    let by_number = node.result("almanac_getSchedule", json!([number(&id)]));
    assert_eq!((&by_text, &by_number), (&schedule, &schedule));
    assert_eq!(schedule["idNumber"], id);
    assert_eq!((&schedule["status"], &schedule["lane"]), (&json!("pending"), &json!("cron")));
    assert_eq!((&schedule["owner"], &schedule["target"]), (&json!(ALICE), &json!(TARGET)));
    assert_eq!(schedule["nextRun"]["ms"], format!("{:#x}", job.at * 1_000));
    assert!(schedule["nextRun"]["iso"].as_str().unwrap().ends_with(".000Z"));
    assert_eq!(wei(&schedule["escrow"]), job.value);
    assert_eq!((&schedule["runs"], &schedule["runsLeft"]), (&json!("0x0"), &json!("0x3")));
    assert_eq!(schedule["created"]["transactionHash"], made["transactionHash"]);
    assert_eq!(schedule["created"]["transactionIndex"], made["transactionIndex"]);
    let terms = &schedule["terms"];
    assert_eq!((&terms["gasLimit"], &terms["intervalMs"]), (&json!("0x186a0"), &json!("0xea60")));
    assert_eq!(
        (&terms["charge"], &terms["catchUp"], &terms["input"]),
        (&json!("gasUsed"), &json!("all"), &json!("0x01020304"))
    );
    assert_eq!((&schedule["end"], &schedule["lastRun"]), (&json!(null), &json!(null)));

    mine_at(&node, job.at);
    set_code(&node, REVERTER);
    mine_at(&node, job.at + 60);
    let schedule = node.result("almanac_getSchedule", json!([id]));
    assert_eq!((&schedule["runs"], &schedule["runsFailed"]), (&json!("0x2"), &json!("0x1")));
    assert_eq!((&schedule["lastRun"], &schedule["runsLeft"]), (&json!("reverted"), &json!("0x1")));
    let page = node.result("almanac_getRuns", json!([text, { "limit": 1 }]));
    assert_eq!(page["runs"].as_array().unwrap().len(), 1);
    assert_eq!((&page["runs"][0]["run"], &page["runs"][0]["success"]), (&json!("0x0"), &json!(true)));
    let rest = node.result("almanac_getRuns", json!([text, { "limit": 1, "cursor": page["cursor"] }]));
    assert_eq!((&rest["runs"][0]["run"], &rest["cursor"]), (&json!("0x1"), &json!(null)));
    assert_eq!(rest["runs"][0]["error"], "execution reverted: no reason given");
    let hash = &rest["runs"][0]["receipt"]["transactionHash"];
    assert_eq!(node.result("eth_getTransactionReceipt", json!([hash])), rest["runs"][0]["receipt"]);
    let newest = node.result("almanac_getRuns", json!([text, { "order": "newest", "limit": 1 }]));
    assert_eq!(newest["runs"], rest["runs"]);
    let older = node.result(
        "almanac_getRuns",
        json!([text, { "order": "newest", "limit": 1, "cursor": newest["cursor"] }]),
    );
    assert_eq!((&older["runs"], &older["cursor"]), (&page["runs"], &json!(null)));

    mine_at(&node, job.at + 120);
    let schedule = node.result("almanac_getSchedule", json!([id]));
    assert_eq!((&schedule["status"], &schedule["nextRun"]), (&json!("exhausted"), &json!(null)));
    assert_eq!(
        (&schedule["end"]["reason"], &schedule["escrow"]),
        (&json!("max runs reached"), &json!("0x0"))
    );
    assert_eq!(schedule["end"]["transactionHash"], block(&node, false)["transactions"][0]);
    assert_eq!(schedule["terms"], *terms, "kept after the end");
    assert_eq!((&schedule["runs"], &schedule["runsLeft"]), (&json!("0x3"), &json!("0x0")));
    assert_eq!(schedule["lastRun"], "reverted", "kept after the end");
    // What came in is what the runs cost and what came back.
    let all = node.result("almanac_getRuns", json!([text]));
    let fees = all["runs"].as_array().unwrap().iter().map(|run| wei(&run["fee"]));
    assert!(fees.clone().all(|fee| fee > U256::ZERO), "{all}");
    assert_eq!(fees.sum::<U256>(), wei(&schedule["feesTotal"]));
    assert_eq!(wei(&schedule["feesTotal"]) + wei(&schedule["end"]["refunded"]), job.value);
    let told = node.result("eth_getLogs", json!([{ "address": LEDGER, "fromBlock": "0x0" }]));
    assert_eq!(wei(&told[0]["topics"][1]), wei(&id));
    assert_eq!(wei(&told[0]["data"]), wei(&schedule["end"]["refunded"]));

    assert_eq!(node.result("almanac_getSchedule", json!(["7-7-7"])), Value::Null);
    refused(
        &node,
        "almanac_getSchedule",
        json!(["seven"]),
        -32_602,
        "neither of the form 1042-3-0 nor a number",
    );
    refused(&node, "almanac_getSchedule", json!([[7]]), -32_602, "is no schedule id");
    refused(&node, "almanac_getSchedule", json!(["0x10000000000000000"]), -32_602, "below 2^64");
    refused(&node, "almanac_getRuns", json!(["7-7-7"]), -32_000, "there never was a schedule 7-7-7");
    refused(&node, "almanac_getRuns", json!([id, { "limit": 0 }]), -32_602, "limit 0 is not in 1..=100");
    refused(&node, "almanac_getRuns", json!([id, { "limit": 101 }]), -32_602, "limit 101 is not in 1..=100");
    refused(&node, "almanac_getRuns", json!([id, { "cursor": "x" }]), -32_602, "is no cursor");
    refused(
        &node,
        "almanac_getRuns",
        json!([id, { "order": "best" }]),
        -32_602,
        "expected `oldest` or `newest`",
    );
}

/// ARC21-10: whose jobs there are is the node's to say, not the state's.
#[test]
fn arc21_10_every_end_has_its_status_and_lists_find_them() {
    let node = Node::start(&[]);
    set_code(&node, COUNTER);
    let job = Job::once(&node, 100);
    let (succeeded, _) = job.make(&node);
    let reverter = "0x00000000000000000000000000000000000c0de2";
    node.result("anvil_setCode", json!([reverter, REVERTER]));
    let (failed, _) = Job { target: reverter.parse().unwrap(), ..job.clone() }.make(&node);
    let (cancelled, _) = job.make(&node);
    assert_eq!(cancel(&node, &cancelled)["status"], "0x1");
    let (exhausted, _) = Job { value: U256::from(200_000_000_000_000u64), ..job.clone() }.make(&node);
    let (pending, _) = Job { at: job.at + 1_000, ..job.clone() }.make(&node);
    node.result("anvil_setNextBlockBaseFeePerGas", json!(["0x12a05f200"]));
    mine_at(&node, job.at);
    let status = |id: &Value| node.result("almanac_getSchedule", json!([id]))["status"].clone();
    for (id, expected) in [
        (&succeeded, "succeeded"),
        (&failed, "failed"),
        (&cancelled, "cancelled"),
        (&exhausted, "exhausted"),
        (&pending, "pending"),
    ] {
        assert_eq!(status(id), expected);
        let found = list(&node, json!({ "status": expected }));
        assert_eq!(found, json!([id]), "{expected}");
    }
    let end = &node.result("almanac_getSchedule", json!([exhausted]))["end"];
    assert_eq!(end["reason"], "insufficient escrow");
    assert_eq!(
        (&end["transactionHash"], &end["transactionIndex"]),
        (&block(&node, false)["transactions"][0], &json!("0x0"))
    );
    let all = json!([succeeded, failed, cancelled, exhausted, pending]);
    assert_eq!(list(&node, json!({})), all);
    assert_eq!(list(&node, json!({ "owner": ALICE, "lane": "cron" })), all);
    assert_eq!(list(&node, json!({ "owner": BOB })), json!([]));
    assert_eq!(list(&node, json!({ "lane": "spare" })), json!([]));
    assert_eq!(list(&node, json!({ "target": reverter })), json!([failed]));
    assert_eq!(list(&node, json!({ "target": TARGET, "status": "cancelled" })), json!([cancelled]));
    let (from, to) = ((job.at + 1_000) * 1_000, (job.at + 1_000) * 1_000);
    assert_eq!(list(&node, json!({ "dueFrom": from, "dueTo": to })), json!([pending]));
    assert_eq!(list(&node, json!({ "dueFrom": format!("{:#x}", from + 1) })), json!([]));
    assert_eq!(list(&node, json!({ "dueTo": to - 1 })), json!([]));
    refused(
        &node,
        "almanac_listSchedules",
        json!([{ "ownr": ALICE }]),
        -32_602,
        "unknown field `ownr`, expected one of `owner`",
    );
    refused(&node, "almanac_listSchedules", json!([{ "status": "done" }]), -32_602, "unknown variant `done`");
    refused(
        &node,
        "almanac_listSchedules",
        json!([{ "dueFrom": 2, "dueTo": 1 }]),
        -32_602,
        "dueTo 1 is before dueFrom 2",
    );
    refused(
        &node,
        "almanac_listSchedules",
        json!([{ "limit": 101 }]),
        -32_602,
        "limit 101 is not in 1..=100",
    );
    refused(&node, "almanac_listSchedules", json!([{ "cursor": "?" }]), -32_602, "neither of the form");
}

/// The numbers of all schedules that a filter asks for, two at a time.
fn list(node: &Node, filter: Value) -> Value {
    let (mut found, mut filter) = (Vec::new(), filter);
    filter["limit"] = json!(2);
    loop {
        let page = node.result("almanac_listSchedules", json!([filter]));
        found.extend(page["schedules"].as_array().unwrap().iter().map(|one| one["idNumber"].clone()));
        if page["cursor"].is_null() {
            return json!(found);
        }
        filter["cursor"] = page["cursor"].clone();
    }
}

#[test]
fn going_back_takes_schedules_and_ends_back() {
    let node = Node::start(&[]);
    set_code(&node, COUNTER);
    let job = Job::once(&node, 100);
    let (first, _) = job.make(&node);
    let before = node.result("almanac_getSchedule", json!([first]));
    let snapshot = node.result("evm_snapshot", json!([]));
    let (second, _) = job.make(&node);
    mine_at(&node, job.at);
    assert_eq!(node.result("almanac_getSchedule", json!([first]))["status"], "succeeded");
    let mut socket = Socket::open(&node.address);
    socket.call("almanac_subscribe", json!(["runs"]));
    node.result("evm_revert", json!([snapshot]));
    assert_eq!(socket.news()["event"], "reverted");
    assert_eq!(node.result("almanac_getSchedule", json!([first])), before);
    assert_eq!(node.result("almanac_getSchedule", json!([second])), Value::Null);
    assert_eq!(node.result("almanac_getRuns", json!([first]))["runs"], json!([]));
    assert_eq!(list(&node, json!({})), json!([first]));
}
