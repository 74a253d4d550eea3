//! Subscriptions.

use crate::almanac::refused;
use crate::support::{
    ALICE, BOB, Node,
    cron::{COUNTER, Job, TARGET, cancel, mine_at, now, set_code, top_up},
    number,
    socket::Socket,
};
use serde_json::{Value, json};

#[test]
fn subscriptions_tell_what_happens_in_order() {
    let node = Node::start(&[]);
    set_code(&node, COUNTER);
    let mut everything = Socket::open(&node.address);
    let subscribed = everything.call("almanac_subscribe", json!(["schedules"]));
    assert!(!subscribed["result"].is_null(), "{subscribed}");
    let mut nobody = Socket::open(&node.address);
    nobody.call("almanac_subscribe", json!(["schedules", { "owner": BOB }]));
    let job = Job::once(&node, 100);
    let (single, _) = job.make(&node);
    let (series, _) = job.clone().every(60, 2).make(&node);
    let mut runs = Socket::open(&node.address);
    runs.call("almanac_subscribe", json!(["runs", { "id": series, "target": TARGET, "owner": ALICE }]));
    top_up(&node, &single, 7);
    mine_at(&node, job.at);
    mine_at(&node, job.at + 60);
    let (cancelled, made) = Job { at: job.at + 600, ..job.clone() }.make(&node);
    cancel(&node, &cancelled);
    let told: Vec<(Value, Value)> = (0..7)
        .map(|_| {
            let news = everything.news();
            (news["event"].clone(), news["idNumber"].clone())
        })
        .collect();
    let expected = [
        ("created", &single),
        ("created", &series),
        ("toppedUp", &single),
        ("succeeded", &single),
        ("exhausted", &series),
        ("created", &cancelled),
        ("cancelled", &cancelled),
    ];
    let expected: Vec<_> = expected.into_iter().map(|(event, id)| (json!(event), id.clone())).collect();
    assert_eq!(told, expected);
    for run in ["0x0", "0x1"] {
        let news = runs.news();
        assert_eq!(
            (&news["event"], &news["run"], &news["success"]),
            (&json!("run"), &json!(run), &json!(true))
        );
        assert_eq!((&news["owner"], &news["idNumber"]), (&json!(ALICE), &series));
        assert!(number(&news["gasUsed"]) > 21_000);
        let receipt = node.result("eth_getTransactionReceipt", json!([news["transactionHash"]]));
        assert_eq!(receipt["scheduleRef"]["run"], run);
        assert_eq!(receipt["blockHash"], news["blockHash"]);
    }
    // Bob's subscription heard nothing of all that: the next thing it says is its own answer.
    let answer = nobody.call("eth_blockNumber", json!([]));
    assert_eq!(answer["result"], format!("{:#x}", node.height()));
    let answer = everything.call("almanac_unsubscribe", json!([subscribed["result"]]));
    assert_eq!(answer["result"], true);
    assert_eq!(made["status"], "0x1");
    assert!(now(&node) >= job.at);

    refused(&node, "almanac_subscribe", json!(["runs"]), -32_601, "subscribe over WebSocket");
    let refusal = everything.call("almanac_subscribe", json!(["everything"]));
    assert!(
        refusal["error"]["message"].as_str().unwrap().contains("there are schedules and runs"),
        "{refusal}"
    );
    let refusal = everything.call("almanac_subscribe", json!(["runs", { "who": 1 }]));
    assert!(refusal["error"]["message"].as_str().unwrap().contains("unknown field `who`"), "{refusal}");
}
