//! Proofs from a running node.

use crate::almanac::{block, refused};
use crate::support::{
    ALICE, Node,
    cron::{COUNTER, Job, TARGET, cancel, set_code},
    run,
};
use serde_json::{Value, json};

/// Proofs from a running node hold against a block hash alone, as another process sees them.
#[test]
fn proofs_of_schedules_and_of_empty_spans() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("chain");
    let node = Node::start(&["--datadir", path.to_str().unwrap()]);
    set_code(&node, COUNTER);
    let job = Job::once(&node, 10_000);
    let (id, made) = job.make(&node);
    let tip = block(&node, false);
    let verify = |proof: &Value, hash: &Value| {
        let file = directory.path().join("proof.json");
        std::fs::write(&file, proof.to_string()).unwrap();
        let output = run(&[
            "proof",
            "verify",
            "--proof",
            file.to_str().unwrap(),
            "--block-hash",
            hash.as_str().unwrap(),
        ]);
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let proof = node.result("almanac_getProof", json!([{ "schedule": id }]));
    assert_eq!((&proof["header"]["hash"], &proof["header"]["number"]), (&tip["hash"], &tip["number"]));
    let kinds: Vec<_> =
        proof["values"].as_array().unwrap().iter().map(|value| &value["key"]["kind"]).collect();
    assert_eq!(kinds, ["slot", "body", "slot"], "head, body, escrow");
    let (is_good, text) = verify(&proof, &tip["hash"]);
    assert!(is_good && text.contains("Proven: schedule"), "{text}");
    assert!(text.contains(&format!("({} wei)", job.value)), "{text}");
    assert!(!verify(&proof, &tip["parentHash"]).0, "another block is another state");
    let mut forged = proof.clone();
    forged["values"][2]["value"] = json!("0x01");
    assert!(!verify(&forged, &tip["hash"]).0);

    for (wanted, expected) in [
        (json!({ "account": ALICE }), "Proven: account 0xf39Fd6e5"),
        (json!({ "account": TARGET }), "Proven: account 0x00000000000000000000000000000000000c0dE1"),
        (
            json!({ "account": "0x000000000000000000000000000000000000a1ff", "slot": proof["values"][0]["key"]["slot"] }),
            "Proven: slot",
        ),
    ] {
        let value = node.result("almanac_getProof", json!([wanted]));
        let (is_good, text) = verify(&value, &tip["hash"]);
        assert!(is_good && text.contains(expected), "{text}");
    }

    let span = |from: u64, to: u64| json!([{ "lane": "cron", "from": from * 1_000, "to": to * 1_000 }]);
    let due = node.result("almanac_getProof", span(job.at, job.at + 60));
    assert_eq!((&due["entries"][0]["idNumber"], due["entries"].as_array().unwrap().len()), (&id, 1));
    let (is_good, text) = verify(&due, &tip["hash"]);
    assert!(is_good && text.contains("and nothing else"), "{text}");
    let nothing = node.result("almanac_getProof", span(job.at + 1, job.at + 60));
    assert_eq!(nothing["entries"], json!([]));
    let (is_good, text) = verify(&nothing, &tip["hash"]);
    assert!(is_good && text.contains("due         nothing"), "{text}");
    assert_eq!(nothing["values"][0]["key"]["kind"], "calendarNode");

    let transaction = made["transactionHash"].clone();
    let ran = node.result("almanac_getProof", json!([{ "transaction": transaction }]));
    assert_eq!(ran["header"]["hash"], made["blockHash"], "a receipt of any block");
    let (is_good, text) = verify(&ran, &made["blockHash"]);
    assert!(is_good && text.contains("Proven: a transaction is in block"), "{text}");
    refused(&node, "almanac_getProof", json!([{ "run": transaction }]), -32_000, "is no run of a schedule");
    refused(&node, "almanac_getProof", json!([{ "run": tip["hash"] }]), -32_000, "transaction not found");

    let snapshot = node.result("evm_snapshot", json!([]));
    node.result("evm_mine", json!([]));
    refused(
        &node,
        "almanac_getProof",
        json!([{ "schedule": id }]),
        -32_000,
        "only the last committed state can be proven",
    );
    node.result("evm_revert", json!([snapshot]));
    cancel(&node, &id);
    refused(&node, "almanac_getProof", json!([{ "schedule": id }]), -32_000, "is not in the state");
    refused(
        &node,
        "almanac_getProof",
        json!([{}]),
        -32_602,
        "give one of { account }, { account, slot }, { schedule }",
    );
    for mixed in [
        json!({ "schedule": id, "lane": "cron" }),
        json!({ "slot": "0x0" }),
        json!({ "run": tip["hash"], "account": ALICE }),
    ] {
        refused(&node, "almanac_getProof", json!([mixed]), -32_602, "give one of");
    }
    refused(&node, "almanac_getProof", span(2, 1), -32_602, "before it begins");

    let in_memory = Node::start(&[]);
    let (id, _) = Job::once(&in_memory, 10_000).make(&in_memory);
    refused(
        &in_memory,
        "almanac_getProof",
        json!([{ "schedule": id }]),
        -32_000,
        "start it with --datadir DIR",
    );
}
