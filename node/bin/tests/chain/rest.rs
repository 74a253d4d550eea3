//! REST over a real socket: what JSON-RPC answers, by path.

use crate::{
    native::{alice, now, rotation, signed},
    support::*,
};
use alloy_primitives::{Address, hex};
use almanac_primitives::{
    NativeTransaction, UserTransaction,
    testing::native::{Key, ed_person, native, native_call, orderless, threshold},
};
use serde_json::{Value, json};

/// Status and body of an answer.
fn ask(node: &Node, verb: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
    let body = body.map(Value::to_string).unwrap_or_default();
    let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
    let request = format!(
        "{verb} {path} HTTP/1.1\r\nHost: {}\r\n{kind}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        node.address,
        body.len()
    );
    let answer = exchange(&node.address, request.as_bytes());
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
    assert!(head.contains("content-type: application/json"), "{verb} {path}: {answer}");
    (head[9..12].parse().unwrap(), serde_json::from_str(body).unwrap_or_default())
}

pub(crate) fn get(node: &Node, path: &str) -> (u16, Value) {
    ask(node, "GET", path, None)
}

pub(crate) fn found(node: &Node, path: &str) -> Value {
    let (status, body) = get(node, path);
    assert_eq!(status, 200, "{path}: {body}");
    body
}

fn submit(node: &Node, transaction: &UserTransaction) -> (u16, Value) {
    let raw = json!({ "raw": hex::encode_prefixed(transaction.encoded()) });
    ask(node, "POST", "/v1/transactions", Some(&raw))
}

fn commit(node: &Node, transaction: NativeTransaction) -> String {
    let transaction = signed(node, transaction);
    let (status, body) = submit(node, &transaction);
    assert_eq!((status, &body), (202, &json!({ "hash": transaction.hash().to_string() })));
    transaction.hash().to_string()
}

fn one_call() -> Vec<almanac_primitives::NativeCall> {
    vec![native_call(Address::repeat_byte(7), 5, vec![])]
}

fn summaries(node: &Node, query: &str) -> Vec<Value> {
    let path = format!("/v1/accounts/{ALICE}/transaction_summaries{query}");
    found(node, &path).as_array().unwrap().clone()
}

fn hashes(page: &[Value]) -> Vec<&str> {
    page.iter().map(|summary| summary["transaction_hash"].as_str().unwrap()).collect()
}

/// Both kinds of replay protection, both bounds, and every page.
#[test]
fn orderless_19_summaries_ascend_and_the_latest_page_is_the_default() {
    let node = Node::start(&[]);
    assert!(summaries(&node, "").is_empty());
    let mut sent = Vec::new();
    for n in 0..3 {
        sent.push(commit(&node, native(alice().address, n, one_call())));
        sent.push(commit(&node, orderless(alice().address, u64::MAX - n, now(&node) + 30, one_call())));
    }
    let all = summaries(&node, "");
    assert_eq!(hashes(&all), sent);
    assert_eq!(all[4]["replay_protector"], json!({ "SequenceNumber": "2" }));
    assert_eq!(all[5]["replay_protector"], json!({ "Nonce": (u64::MAX - 2).to_string() }));
    assert!(all.iter().all(|summary| summary["sender"] == ALICE.to_lowercase()), "{all:?}");
    let fields: Vec<&String> = all[0].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["sender", "version", "transaction_hash", "replay_protector"]);
    let versions: Vec<u64> =
        all.iter().map(|one| one["version"].as_str().unwrap().parse().unwrap()).collect();
    assert!(versions.is_sorted_by(|a, b| a < b), "{versions:?}");
    // Bounds are included; without a start, the page ends at the end.
    let page = |query: String| {
        hashes(&summaries(&node, &query)).iter().map(|hash| hash.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(page("?limit=2".to_owned()), sent[4..]);
    assert_eq!(page(format!("?start_version={}&limit=2", versions[1])), sent[1..3]);
    assert_eq!(page(format!("?start_version={}", versions[1] + 1)), sent[2..]);
    assert_eq!(page(format!("?end_version={}&limit=2", versions[3])), sent[2..4]);
    assert_eq!(page(format!("?end_version={}", versions[3] - 1)), sent[..3]);
    assert_eq!(page(format!("?start_version={0}&end_version={0}", versions[2])), sent[2..3]);
    let path = format!("/v1/accounts/{ALICE}/transaction_summaries");
    for bad in ["?limit=0", "?limit=101", "?start_version=2&end_version=1", "?start_version=-1", "?start=1"] {
        assert_eq!(get(&node, &format!("{path}{bad}")).0, 400, "{bad}");
    }
    // A run is in nobody's summaries: nobody signed it. The same data as JSON-RPC.
    assert_eq!(json!(all), node.result("almanac_getTransactionSummaries", json!([ALICE])));
}

#[test]
fn orderless_20_pending_committed_and_unknown_are_told_apart() {
    let node = Node::start(&["--no-mining"]);
    let transaction = signed(&node, orderless(alice().address, 9, now(&node) + 30, one_call()));
    let path = format!("/v1/transactions/by_hash/{}", transaction.hash());
    let (status, unknown) = get(&node, &path);
    assert_eq!((status, &unknown["code"]), (404, &json!("not_found")), "{unknown}");
    assert_eq!(submit(&node, &transaction).0, 202);
    let pending = found(&node, &path);
    assert_eq!(
        (&pending["status"], &pending["version"], &pending["receipt"]),
        (&json!("pending"), &Value::Null, &Value::Null)
    );
    assert_eq!(pending["transaction"]["blockHash"], Value::Null);
    node.result("evm_mine", json!([]));
    let committed = found(&node, &path);
    assert_eq!(committed["status"], "committed");
    assert_eq!(committed["receipt"]["status"], "0x1");
    let hash = json!([transaction.hash().to_string()]);
    assert_eq!(committed["transaction"], node.result("eth_getTransactionByHash", hash.clone()));
    assert_eq!(committed["receipt"], node.result("eth_getTransactionReceipt", hash));
    assert_eq!(committed["version"], summaries(&node, "")[0]["version"]);
    // Refused by name, as in JSON-RPC.
    let (status, again) = submit(&node, &transaction);
    assert_eq!((status, &again["code"]), (422, &json!("unprocessable_entity")));
    assert!(again["message"].as_str().unwrap().contains("NonceAlreadyUsed"), "{again}");
    assert_eq!(ask(&node, "POST", "/v1/transactions", Some(&json!({ "raw": "0x72" }))).0, 400);
}

#[test]
fn orderless_20_an_account_shows_its_key() {
    let node = Node::start(&[]);
    let path = format!("/v1/accounts/{ALICE}");
    let own = format!("0x01{}", &ALICE.to_lowercase()[2..]);
    let account = found(&node, &path);
    assert_eq!(
        (&account["key"], &account["rotation"], &account["stateless"]),
        (&json!(own), &json!("0"), &json!(false))
    );
    assert_eq!(account["balance"], node.balance(ALICE).to_string());
    let nobody = found(&node, "/v1/accounts/0x1234567890123456789012345678901234567890");
    assert_eq!((&nobody["stateless"], &nobody["sequence_number"]), (&json!(true), &json!("0")));
    // A threshold of its own key and another one, by a real rotation.
    let key = threshold(1, &[Key::from(alice()).encoded(), Key::from(ed_person(1)).encoded()]);
    commit(&node, rotation(&node, &key, &[alice().into()]));
    let rotated = found(&node, &path);
    assert_eq!((&rotated["key"], &rotated["rotation"]), (&json!(hex::encode_prefixed(&key)), &json!("1")));
    assert_eq!(rotated["sequence_number"], "1");
    assert_eq!(rotated, node.result("almanac_getAccount", json!([ALICE])));
}

/// The same pair is committed twice, more than 130 s apart: two transactions, two versions, one nonce.
#[test]
fn orderless_21_a_nonce_that_came_again_names_two_transactions() {
    let node = Node::start(&[]);
    let first = commit(&node, orderless(alice().address, 7, now(&node) + 30, one_call()));
    node.result("evm_increaseTime", json!([200]));
    node.result("evm_mine", json!([]));
    let second = commit(&node, orderless(alice().address, 7, now(&node) + 30, one_call()));
    let both = summaries(&node, "");
    assert_eq!(hashes(&both), [first.as_str(), &second]);
    assert_eq!(both[0]["replay_protector"], json!({ "Nonce": "7" }));
    assert_eq!(both[0]["replay_protector"], both[1]["replay_protector"]);
    assert_ne!(both[0]["version"], both[1]["version"]);
    for hash in [&first, &second] {
        assert_eq!(found(&node, &format!("/v1/transactions/by_hash/{hash}"))["transaction"]["hash"], **hash);
    }
    // What JSON-RPC finds by sender and number are sequence numbers alone, also while one waits.
    node.result("evm_setAutomine", json!([false]));
    let waiting = signed(&node, orderless(alice().address, 8, now(&node) + 30, one_call()));
    assert_eq!(submit(&node, &waiting).0, 202);
    for method in ["eth_getTransactionBySenderAndNonce", "ots_getTransactionBySenderAndNonce"] {
        for nonce in ["0x0", "0x7", "0x8"] {
            assert!(node.result(method, json!([ALICE, nonce])).is_null(), "{method} {nonce}");
        }
    }
}

/// A developer's snapshot takes orderless transactions and rotations back.
#[test]
fn orderless_02_a_snapshot_takes_nonces_and_keys_back() {
    let node = Node::start(&[]);
    let snapshot = node.result("evm_snapshot", json!([]));
    let transaction = signed(&node, orderless(alice().address, 7, now(&node) + 50, one_call()));
    let before = found(&node, &format!("/v1/accounts/{ALICE}"));
    assert_eq!(submit(&node, &transaction).0, 202);
    let key = threshold(1, &[Key::from(alice()).encoded()]);
    commit(&node, rotation(&node, &key, &[alice().into()]));
    assert_eq!(node.result("evm_revert", json!([snapshot])), true);
    assert_eq!(found(&node, &format!("/v1/accounts/{ALICE}")), before);
    assert!(summaries(&node, "").is_empty());
    assert_eq!(submit(&node, &transaction).0, 202, "it is as if it had never been");
}

#[test]
fn schedules_and_the_agenda_are_those_of_json_rpc() {
    let node = Node::start(&[]);
    let (job, _) = cron::Job::once(&node, 10_000).every(60, 9).make(&node);
    let shown = node.result("almanac_getSchedule", json!([job]));
    let id = shown["id"].as_str().unwrap();
    assert_eq!(found(&node, &format!("/v1/schedules/{id}")), shown);
    assert_eq!(found(&node, &format!("/v1/schedules/{}", job.as_str().unwrap())), shown);
    assert_eq!(get(&node, "/v1/schedules/99-1-0").0, 404);
    assert_eq!(get(&node, "/v1/schedules/none").0, 400);
    let listed =
        found(&node, &format!("/v1/schedules?owner={ALICE}&status=pending&lane=cron&due_from=1&limit=5"));
    assert_eq!(listed["schedules"][0]["id"], id);
    assert_eq!(found(&node, "/v1/schedules?lane=market")["schedules"], json!([]));
    let agenda = found(&node, "/v1/agenda?lanes=cron,spare&limit=1");
    assert_eq!(agenda, node.result("almanac_agenda", json!([{ "lanes": ["cron", "spare"], "limit": 1 }])));
    assert_eq!(agenda["entries"][0]["id"], id);
}

/// REST is behind the same gate: hosts, origins, verbs, sizes and rates.
#[test]
fn rest_is_under_the_limits_of_the_server() {
    let node = Node::start(&[]);
    let (status, document) = get(&node, "/v1/openapi.json");
    assert_eq!((status, &document["openapi"]), (200, &json!("3.1.0")));
    let foreign = "GET /v1/agenda HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    let foreign = exchange(&node.address, foreign.as_bytes());
    assert!(foreign.starts_with("HTTP/1.1 403") && foreign.contains("\"code\":\"forbidden\""), "{foreign}");
    let (status, problem) = ask(&node, "POST", "/v1/agenda", Some(&json!({})));
    assert_eq!((status, &problem["code"]), (405, &json!("method_not_allowed")));
    // Refused by what it announces, before it is sent.
    let large = format!(
        "POST /v1/transactions HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 3000000\r\n\r\n",
        node.address
    );
    let large = exchange(&node.address, large.as_bytes());
    assert!(large.starts_with("HTTP/1.1 413") && large.contains("\"code\":\"payload_too_large\""), "{large}");
    let node = Node::start(&["--rate-limit", "1"]);
    let refused = (0..100).map(|_| get(&node, "/v1/agenda")).find(|(status, _)| *status == 429);
    let (_, problem) = refused.expect("the rate counts REST too");
    assert!(problem["message"].as_str().unwrap().contains("ask again in"), "{problem}");
}
