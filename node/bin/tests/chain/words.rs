//! What the chain's own contracts say, in words: in errors, in traces and in the log.

use crate::support::{
    cron::{COUNTER, Job, REGISTRY, now, set_code},
    *,
};
use alloy_primitives::{U256, hex};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const CALLBACKS: &str = "0x000000000000000000000000000000000000a102";
const PARAMETERS: &str = "0x000000000000000000000000000000000000a105";

fn message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_default()
}

fn order(job: &Job) -> Value {
    json!({ "from": ALICE, "to": REGISTRY, "value": job.value, "data": hex::encode_prefixed(job.call()) })
}

#[test]
fn errors_of_the_chains_own_contracts_are_told_in_words() {
    let node = Node::start(&[]);
    node.result("evm_mine", json!([]));
    let at = now(&node);
    let late = order(&Job { at, ..Job::once(&node, 0) });
    let expected = format!("execution reverted: TimeNotInFuture: {at} is not after the block's ");
    for (method, params) in [
        ("eth_call", json!([late, "latest"])),
        ("eth_estimateGas", json!([late])),
        ("eth_sendTransaction", json!([late])),
    ] {
        let answer = node.call(method, params);
        assert!(message(&answer).starts_with(&expected), "{method}: {answer}");
    }
    let answer = node.call("eth_call", json!([late, "latest"]));
    assert_eq!(
        (&answer["error"]["code"], &answer["error"]["data"].as_str().unwrap()[..10]),
        (&json!(3), "0xcf3a58ee")
    );
    let poor = order(&Job { value: U256::from(1), ..Job::once(&node, 100) });
    let answer = node.call("eth_call", json!([poor, "latest"]));
    assert!(message(&answer).contains("EscrowTooLow: 1 wei were sent, and one run"), "{answer}");
    let simulated = json!([{ "blockStateCalls": [{ "calls": [late] }] }, "latest"]);
    let call = node.result("eth_simulateV1", simulated)[0]["calls"][0].clone();
    assert!(call["error"]["message"].as_str().unwrap().contains("TimeNotInFuture"), "{call}");
    let traced = node.result("debug_traceCall", json!([late, "latest", { "tracer": "callTracer" }]));
    assert!(traced["revertReason"].as_str().unwrap().starts_with("TimeNotInFuture: "), "{traced}");
}

/// A selector that no method has names the contract that was asked, at the registry's address too.
#[test]
fn an_unknown_selector_names_the_contract() {
    let node = Node::start(&[]);
    let data = format!("0x12345678{:064x}", 7);
    for (to, name) in [
        (CALLBACKS, "ICallbackScheduler.sol"),
        (PARAMETERS, "IParameters.sol"),
        (REGISTRY, "ICronRegistry.sol"),
    ] {
        for method in ["eth_call", "eth_estimateGas"] {
            let answer = node.call(method, json!([{ "to": to, "data": data }]));
            let said = message(&answer);
            assert!(said.contains("0x12345678") && said.contains(name), "{to}: {answer}");
        }
    }
}

#[test]
fn the_log_tells_what_happens_to_schedules_with_both_forms_of_their_ids() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let (node, _) = Node::start_for_programs(&["--log-calls"], log.as_file());
    set_code(&node, COUNTER);
    let job = Job::once(&node, 3_600).every(60, 2);
    let (id, _) = job.make(&node);
    node.result("evm_increaseTime", json!([10_000]));
    node.call("eth_noSuchMethod", json!([]));
    let schedule = node.result("almanac_getSchedule", json!([id]));
    let named = format!("schedule {} ({})", schedule["id"].as_str().unwrap(), number(&id));
    let expected = [
        format!("{named} created · due in "),
        format!("{named} ran for 0.0"),
        format!("{named} ended, max runs reached · 0.0"),
        "next due in ".to_owned(),
        "eth_noSuchMethod · error -32601".to_owned(),
        "evm_increaseTime · ".to_owned(),
    ];
    let begin = Instant::now();
    loop {
        let text = std::fs::read_to_string(log.path()).unwrap();
        let missing: Vec<_> = expected.iter().filter(|line| !text.contains(*line)).collect();
        if missing.is_empty() {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(10), "{missing:?} in {text}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
