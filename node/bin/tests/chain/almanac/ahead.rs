//! What is to come: the agenda, previews, parameters and pauses.

use crate::almanac::{IParameters, block, refused, wei};
use crate::support::{
    ALICE, Node,
    cron::{COUNTER, Job, TARGET, TIRES, cancel, mine_at, set_code, top_up},
    number,
};
use alloy_primitives::{U256, hex};
use alloy_sol_types::SolCall;
use serde_json::{Value, json};

/// A timeline gets numbers, not entries; every run of a series counts.
#[test]
fn the_agenda_in_intervals() {
    let node = Node::start(&[]);
    set_code(&node, COUNTER);
    let empty = node.result("almanac_agendaBuckets", json!([]));
    assert_eq!((&empty["isExact"], &empty["nextDue"]), (&json!(true), &json!(null)));
    assert_eq!(number(&empty["to"]["ms"]) - number(&empty["from"]["ms"]), 3_600_000);
    let job = Job::once(&node, 100);
    job.make(&node);
    job.clone().every(60, 3).make(&node);
    Job { at: job.at + 600, ..job.clone() }.make(&node);

    let span = json!([{ "from": job.at * 1_000, "to": (job.at + 300) * 1_000, "buckets": 10 }]);
    let asked = node.result("almanac_agendaBuckets", span);
    assert_eq!((&asked["bucketMs"], &asked["isExact"]), (&json!("0x7530"), &json!(true)));
    assert_eq!(number(&asked["nextDue"]["ms"]), job.at * 1_000);
    let names: Vec<_> = asked["lanes"].as_array().unwrap().iter().map(|lane| lane["lane"].clone()).collect();
    assert_eq!(names, ["reserved", "cron", "market", "spare"]);
    let cron = &asked["lanes"][1];
    assert_eq!((&cron["door"], number(&cron["pending"]), number(&cron["overdue"])), (&json!("cron"), 3, 0));
    let buckets: Vec<_> = cron["buckets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bucket| ["index", "runs", "gas"].map(|field| number(&bucket[field])))
        .collect();
    assert_eq!(buckets, [[0, 2, 2 * job.gas], [2, 1, job.gas], [4, 1, job.gas]]);
    assert_eq!(asked["lanes"][0]["buckets"], json!([]));

    let later = json!([{ "from": (job.at + 1) * 1_000, "to": (job.at + 2) * 1_000, "buckets": 1 }]);
    let later = node.result("almanac_agendaBuckets", later);
    assert_eq!(number(&later["lanes"][1]["overdue"]), 2, "due before the span and not run yet");
    for (wrong, says) in [
        (json!([{ "buckets": 0 }]), "buckets 0 is not in 1..=240"),
        (json!([{ "buckets": 241 }]), "buckets 241 is not in 1..=240"),
        (json!([{ "from": 5, "to": 5 }]), "the span ends at 5, not after it begins at 5"),
        (json!([{ "until": 5 }]), "unknown field `until`"),
    ] {
        refused(&node, "almanac_agendaBuckets", wrong, -32_602, says);
    }
}

#[test]
fn the_agenda_and_what_it_asks_for() {
    let node = Node::start(&[]);
    set_code(&node, COUNTER);
    let job = Job::once(&node, 100);
    let (late, _) = Job { at: job.at + 7, ..job.clone() }.make(&node);
    let (early, _) = job.clone().every(60, 2).make(&node);
    let (same, _) = Job { gas: 5_000_000, value: job.value * U256::from(100), ..job.clone() }.make(&node);
    let ids = |page: &Value| -> Value {
        page["entries"].as_array().unwrap().iter().map(|entry| entry["idNumber"].clone()).collect()
    };
    let page = node.result("almanac_agenda", json!([{ "limit": 2 }]));
    assert_eq!(ids(&page), json!([early, same]), "by time, then by birth");
    assert_eq!(
        (&page["entries"][0]["owner"], &page["entries"][1]["gasLimit"]),
        (&json!(ALICE), &json!("0x4c4b40"))
    );
    assert_eq!(
        (&page["heldLanes"], &page["blockNumber"]),
        (&json!([]), &json!(format!("{:#x}", node.height())))
    );
    let rest = node.result("almanac_agenda", json!([{ "limit": 2, "cursor": page["cursor"] }]));
    assert_eq!((ids(&rest), &rest["cursor"]), (json!([late]), &json!(null)));
    let from = node.result("almanac_agenda", json!([{ "from": (job.at + 1) * 1_000 }]));
    assert_eq!(ids(&from), json!([late]));
    let to = node.result("almanac_agenda", json!([{ "to": job.at * 1_000 }]));
    assert_eq!((ids(&to), &to["cursor"]), (json!([early, same]), &json!(null)));
    assert_eq!(ids(&node.result("almanac_agenda", json!([{ "lanes": ["spare"] }]))), json!([]));
    refused(&node, "almanac_agenda", json!([{ "cursor": "0x01" }]), -32_602, "this is no cursor");
    refused(
        &node,
        "almanac_agenda",
        json!([{ "cursor": page["cursor"], "from": 1 }]),
        -32_602,
        "both cursor and from",
    );
    refused(&node, "almanac_agenda", json!([{ "lanes": ["fast"] }]), -32_602, "unknown variant `fast`");

    let span = json!([{ "from": job.at * 1_000, "to": (job.at + 60) * 1_000 }]);
    let capacity = node.result("almanac_capacity", span);
    let cron = &capacity["lanes"][1];
    assert_eq!(capacity["isExact"], true);
    assert_eq!(
        (&cron["lane"], &cron["blockGasMax"], &cron["isHeld"]),
        (&json!("cron"), &json!("0xe4e1c0"), &json!(false))
    );
    let seconds: Vec<_> = cron["seconds"]
        .as_array()
        .unwrap()
        .iter()
        .map(|second| {
            (
                number(&second["time"]["ms"]) / 1_000 - job.at,
                number(&second["runs"]),
                number(&second["gas"]),
                number(&second["blocksNeeded"]),
            )
        })
        .collect();
    assert_eq!(seconds, [(0, 2, 5_100_000, 1), (7, 1, 100_000, 1), (60, 1, 100_000, 1)]);
    // The series has two runs: nothing is due after that.
    let later = node
        .result("almanac_capacity", json!([{ "from": (job.at + 61) * 1_000, "to": (job.at + 200) * 1_000 }]));
    assert_eq!(later["lanes"][1]["seconds"], json!([]));
    assert_eq!(later["lanes"].as_array().unwrap().len(), 4);
    refused(&node, "almanac_capacity", json!([{ "from": 2_000, "to": 1_000 }]), -32_602, "before it begins");
    refused(
        &node,
        "almanac_capacity",
        json!([{ "from": 0, "to": 3_600_000 }]),
        -32_005,
        "3601 seconds is above the limit of 3600",
    );
    node.result("almanac_capacity", json!([{ "from": 0, "to": 3_599_999 }]));
}

/// What a preview says is what then happens.
#[test]
fn a_preview_says_what_will_happen() {
    let node = Node::start(&[]);
    set_code(&node, TIRES);
    let job = Job { options: 1, ..Job::once(&node, 100) }.every(60, 4);
    let (id, _) = job.make(&node);
    let preview = node.result("almanac_preview", json!([id, 10]));
    let runs = preview["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 4);
    assert_eq!(
        (&preview["escrowSuffices"], &preview["end"]["reason"]),
        (&json!(true), &json!("max runs reached"))
    );
    let successes: Vec<_> = runs.iter().map(|run| run["success"].as_bool().unwrap()).collect();
    assert_eq!(successes, [true, true, false, false], "each on what the ones before left");
    assert_eq!(node.result("eth_getStorageAt", json!([TARGET, "0x0", "latest"])), format!("{:#066x}", 0));
    for (nth, run) in (0u64..).zip(runs) {
        node.result("anvil_setNextBlockBaseFeePerGas", json!([preview["baseFee"]]));
        let at = job.at + 60 * nth;
        assert_eq!(number(&run["time"]["ms"]), at * 1_000);
        // At most half of the charge returns.
        let paid = wei(&run["gasUsed"]).max(U256::from(job.gas / 2));
        assert_eq!(wei(&run["fee"]), paid * wei(&preview["baseFee"]));
        mine_at(&node, at);
        let page = node.result("almanac_getRuns", json!([id, { "order": "newest", "limit": 1 }]));
        let real = &page["runs"][0];
        assert_eq!(
            (&real["run"], &real["success"], &real["error"]),
            (&run["run"], &run["success"], &run["error"])
        );
        assert_eq!(real["receipt"]["gasUsed"], run["gasUsed"]);
        assert_eq!(node.result("almanac_getSchedule", json!([id]))["escrow"], run["escrowAfter"]);
        let logs: Vec<_> =
            real["receipt"]["logs"].as_array().unwrap().iter().map(|log| log["data"].clone()).collect();
        let previewed: Vec<_> =
            run["logs"].as_array().unwrap().iter().map(|log| log["data"].clone()).collect();
        assert_eq!(logs, previewed);
    }
    let preview = node.result("almanac_preview", json!([id]));
    assert_eq!((&preview["runs"], &preview["end"]["status"]), (&json!([]), &json!("exhausted")));
    refused(&node, "almanac_preview", json!([id, 0]), -32_602, "0 runs are not in 1..=10");
    refused(&node, "almanac_preview", json!([id, 11]), -32_602, "11 runs are not in 1..=10");
    refused(&node, "almanac_preview", json!(["7-7-7"]), -32_000, "there never was");
}

#[test]
fn money_that_does_not_suffice_is_foreseen() {
    let node = Node::start(&[]);
    set_code(&node, COUNTER);
    let base_fee = wei(&block(&node, false)["baseFeePerGas"]);
    let charge = U256::from(100_000) * base_fee;
    let job = Job { value: charge * U256::from(2), ..Job::once(&node, 100) }.every(60, 0);
    let (id, _) = job.make(&node);
    let runway = node.result("almanac_runway", json!([id]));
    let now_fee = wei(&runway["baseFee"]);
    let paid = job.value / (U256::from(100_000) * now_fee);
    assert_eq!(wei(&runway["runs"]), paid);
    assert_eq!((&runway["limitedBy"], &runway["isLeast"]), (&json!("escrow"), &json!(false)));
    let last = job.at + 60 * (paid.to::<u64>() - 1);
    assert_eq!(number(&runway["lastRun"]["ms"]), last * 1_000);
    assert_eq!(number(&runway["runsDry"]["ms"]), (last + 60) * 1_000);
    let preview = node.result("almanac_preview", json!([id, 10]));
    assert_eq!(preview["runs"].as_array().unwrap().len() as u64, paid.to::<u64>(), "as the runway says");
    assert_eq!(
        (&preview["escrowSuffices"], &preview["end"]["reason"]),
        (&json!(false), &json!("insufficient escrow"))
    );
    top_up(&node, &id, 1_000_000_000_000_000);
    assert_eq!(node.result("almanac_preview", json!([id, 10]))["escrowSuffices"], true);

    let (counted, _) = Job::once(&node, 100).make(&node);
    let runway = node.result("almanac_runway", json!([counted]));
    assert_eq!(
        (&runway["runs"], &runway["limitedBy"], &runway["runsDry"]),
        (&json!("0x1"), &json!("runs"), &json!(null))
    );
    cancel(&node, &counted);
    refused(&node, "almanac_runway", json!([counted]), -32_000, "does not run any more: it is Cancelled");
    refused(&node, "almanac_runway", json!(["7-7-7"]), -32_000, "there never was");
}

#[test]
fn parameters_with_value_bounds_and_reason() {
    let node = Node::start(&[]);
    let parameters = node.result("almanac_getParameters", json!([]));
    let named =
        |name: &str| parameters.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap().clone();
    let cron = named("cron_block_gas_max");
    assert_eq!((&cron["value"], &cron["default"]), (&json!("0xe4e1c0"), &json!("0xe4e1c0")));
    assert!(number(&cron["min"]) < number(&cron["value"]) && number(&cron["value"]) < number(&cron["max"]));
    assert!(!cron["reason"].as_str().unwrap().is_empty());
    assert_eq!(named("cron_paused")["value"], "0x0");
    assert_eq!(node.result("rpc_modules", json!([]))["almanac"], "1.0");
    assert_eq!(node.call("almanac_nothing", json!([]))["error"]["code"], -32_601);
}

/// What governance holds back is on the agenda still, and a preview says why nothing runs.
#[test]
fn a_pause_is_seen() {
    let node = Node::start(&[]);
    set_code(&node, COUNTER);
    let job = Job::once(&node, 100);
    let (id, _) = job.make(&node);
    let mut name = [0; 32];
    name[..11].copy_from_slice(b"cron_paused");
    let call = IParameters::setCall { name: name.into(), value: U256::ONE }.abi_encode();
    let request = json!({ "from": ALICE, "to": "0x000000000000000000000000000000000000a105",
        "data": hex::encode_prefixed(call) });
    assert_eq!(node.receipt(&node.result("eth_sendTransaction", json!([request])))["status"], "0x1");
    let agenda = node.result("almanac_agenda", json!([]));
    assert_eq!((&agenda["heldLanes"], &agenda["entries"][0]["idNumber"]), (&json!(["cron"]), &id));
    assert_eq!(node.result("almanac_capacity", json!([]))["lanes"][1]["isHeld"], true);
    let preview = node.result("almanac_preview", json!([id]));
    assert_eq!((&preview["runs"], &preview["end"]), (&json!([]), &json!(null)));
    assert!(preview["waits"].as_str().unwrap().contains("paused"), "{preview}");
    let parameters = node.result("almanac_getParameters", json!([]));
    let paused = parameters.as_array().unwrap().iter().find(|one| one["name"] == "cron_paused").unwrap();
    assert_eq!(paused["value"], "0x1");
    mine_at(&node, job.at);
    assert_eq!(node.result("almanac_getSchedule", json!([id]))["status"], "pending");
}
