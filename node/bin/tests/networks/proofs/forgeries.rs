//! Everything that a forger might try with the files, each with the reason that it is refused for.

use crate::proofs::{FIXTURE, judge, read};
use crate::support::network::new_network;
use alloy_primitives::{B256, hex};
use serde_json::{Value, json};
use std::fs;

/// A later certificate covers the blocks below it, as long as the headers lead down to them without a gap.
fn certified_two_above() -> Value {
    let mut later = read(&FIXTURE.run);
    let (own, above) = (later["finality"]["headers"][0].clone(), &FIXTURE.above_run);
    later["finality"]["headers"] = json!([own, above[0]["headers"][0], above[1]["headers"][0]]);
    later["finality"]["certificate"] = above[1]["certificate"].clone();
    later
}

#[test]
fn a_certificate_above_covers_a_block_and_a_broken_chain_of_headers_does_not() {
    let later = certified_two_above();
    let words = judged("chain", &later).unwrap();
    assert!(words.contains("comes before block"), "{words}");
    let mut gap = later.clone();
    gap["finality"]["headers"].as_array_mut().unwrap().remove(1);
    refused("chain", &gap, "does not name the header before it as its parent");
    let mut short = later.clone();
    short["finality"]["headers"].as_array_mut().unwrap().pop();
    refused("chain", &short, "the headers end at");
    let mut empty = later;
    empty["finality"]["headers"] = json!([]);
    refused("chain", &empty, "has no header");
}

#[test]
fn a_genesis_with_other_validators_is_refused() {
    let other = FIXTURE.directory.join("other");
    new_network(&other, 200);
    let error = judge(&FIXTURE.account, &other.join("genesis.json")).unwrap_err();
    assert!(error.contains("is not shown to be final on chain 31337 of"), "{error}");
    assert!(error.contains("not by the 4 validators of this genesis"), "{error}");
}

#[test]
fn a_genesis_with_the_same_validators_and_somebody_a_little_richer_is_refused() {
    let mut richer = read(&FIXTURE.genesis);
    richer["allocations"]["0x00000000000000000000000000000000000000ff"] = json!({ "balance": "0x1" });
    let path = FIXTURE.directory.join("richer.json");
    fs::write(&path, richer.to_string()).unwrap();
    let error = judge(&FIXTURE.account, &path).unwrap_err();
    assert!(error.contains("not by the 4 validators of this genesis"), "{error}");
}

#[test]
fn a_genesis_that_is_none_is_refused() {
    let missing = judge(&FIXTURE.account, &FIXTURE.directory.join("no.json")).unwrap_err();
    assert!(missing.contains("cannot read"), "{missing}");
    let no_genesis = judge(&FIXTURE.account, &FIXTURE.account).unwrap_err();
    assert!(no_genesis.contains("is not a genesis file"), "{no_genesis}");
}

#[test]
fn an_altered_balance_is_refused_also_where_the_file_agrees_with_itself() {
    let mut richer = read(&FIXTURE.account);
    let value = text(&richer["values"][0]["value"]);
    let greedy = flipped(&value, value.len() / 2 - 2);
    richer["values"][0]["value"] = json!(greedy);
    refused("balance", &richer, "contradicts the value of its proof");
    let encoded = text(&richer["values"][0]["encoded"]);
    let consistent = encoded.replace(value.trim_start_matches("0x"), greedy.trim_start_matches("0x"));
    assert_ne!(consistent, encoded);
    richer["values"][0]["encoded"] = json!(consistent);
    refused("balance", &richer, "does not lead from Account");
}

#[test]
fn an_altered_header_is_refused() {
    let mut forged = read(&FIXTURE.account);
    let encoded = text(&forged["header"]["encoded"]);
    forged["header"]["encoded"] = json!(flipped(&encoded, 60));
    refused("header", &forged, "contradicts its encoded header");
}

#[test]
fn a_proof_of_another_final_block_is_refused() {
    let (whole, other) = (read(&FIXTURE.account), read(&FIXTURE.transfer));
    let mut mixed = whole.clone();
    mixed["header"] = other["header"].clone();
    mixed["finality"] = other["finality"].clone();
    refused("block", &mixed, "the proof is for block");
    let mut foreign = whole;
    foreign["finality"] = other["finality"].clone();
    refused("block", &foreign, "begins with another block");
}

#[test]
fn a_file_of_another_version_is_refused() {
    for format in ["almanac-proof-1", "almanac-proof-3"] {
        let mut version = read(&FIXTURE.account);
        version["format"] = json!(format);
        refused("version", &version, "has another version");
    }
}

#[test]
fn another_schedule_and_values_in_another_order_are_refused() {
    let whole = read(&FIXTURE.schedule);
    let mut other = whole.clone();
    other["claim"]["schedule"] = json!("77-0-0");
    refused("schedule", &other, "the proof is of ");
    let mut order = whole.clone();
    order["values"].as_array_mut().unwrap().swap(0, 1);
    refused("schedule", &order, "the proof is of ");
    let mut short = whole;
    short["values"].as_array_mut().unwrap().truncate(1);
    refused("schedule", &short, "1 values do not prove a schedule");
}

#[test]
fn two_of_four_signatures_are_refused() {
    let mut forged = read(&FIXTURE.account);
    let certificate = text(&forged["finality"]["certificate"]);
    forged["finality"]["certificate"] = json!(two_signatures(&certificate));
    refused("few", &forged, "has 2 signatures: 3 of the 4 validators are a quorum");
}

#[test]
fn an_altered_signature_and_a_certificate_of_another_block_are_refused() {
    let whole = read(&FIXTURE.account);
    let certificate = text(&whole["finality"]["certificate"]);
    let forge = |certificate: String, reason: &str| {
        let mut forged = whole.clone();
        forged["finality"]["certificate"] = json!(certificate);
        refused("certificate", &forged, reason);
    };
    forge(flipped(&certificate, certificate.len() / 2 - 3), "not by the 4 validators");
    forge("0x".to_owned(), "invalid certificate of 0 bytes");
    forge(text(&read(&FIXTURE.transfer)["finality"]["certificate"]), "the certificate is for");
}

#[test]
fn no_finality_or_that_of_another_height_is_refused() {
    let whole = read(&FIXTURE.account);
    let mut none = whole.clone();
    none["finality"] = Value::Null;
    refused("finality", &none, "does not prove its block final");
    let mut named = whole;
    named["finality"]["number"] = json!("0x1");
    refused("finality", &named, "the file claims that block 1");
}

#[test]
fn an_omitted_leaf_and_a_span_that_hides_something_are_refused() {
    let whole = read(&FIXTURE.span);
    let mut silent = whole.clone();
    silent["entries"] = json!([]);
    refused("span", &silent, "other due entries than its leaves");
    let mut omitted = whole.clone();
    omitted["values"] = json!([]);
    refused("span", &omitted, "no leaf answers for the beginning of the span");
    let mut twice = whole.clone();
    let leaf = twice["values"][0].clone();
    twice["values"].as_array_mut().unwrap().push(leaf);
    refused("span", &twice, "does not begin where the one before it ends");
    let mut lane = whole.clone();
    lane["claim"]["lane"] = json!("market");
    refused("span", &lane, "other due entries");
    let mut backwards = whole;
    backwards["claim"]["to"] = json!("0x0");
    refused("span", &backwards, "before it begins");
}

#[test]
fn an_altered_receipt_or_run_is_refused() {
    let whole = read(&FIXTURE.run);
    let mut result = whole.clone();
    let receipt = text(&result["receipt"]["encoded"]);
    result["receipt"]["encoded"] = json!(flipped(&receipt, receipt.len() / 2 - 3));
    refused("run", &result, "does not lead from receipt");
    let mut target = whole.clone();
    let transaction = text(&target["receipt"]["transaction"]);
    target["receipt"]["transaction"] = json!(flipped(&transaction, transaction.len() / 2 - 3));
    refused("run", &target, "the receipt is of transaction");
    let mut place = whole.clone();
    place["receipt"]["index"] = json!("0x0");
    refused("run", &place, "does not lead from receipt 0");
    let mut huge = whole.clone();
    huge["receipt"]["index"] = json!("0x100000000");
    refused("run", &huge, "not below 2^32");
    let mut hash = whole;
    hash["claim"]["hash"] = json!(B256::ZERO);
    refused("run", &hash, "its receipt is of");
}

#[test]
fn a_transfer_that_claims_to_be_a_run_is_refused() {
    let mut run = read(&FIXTURE.transfer);
    run["claim"]["kind"] = json!("run");
    refused("transfer", &run, "is no run of a schedule");
}

/// What the command says of a forged file. Each test has a name of its own for it: they run side by side.
fn judged(name: &str, proof: &Value) -> Result<String, String> {
    let path = FIXTURE.directory.join(format!("forged-{name}.json"));
    fs::write(&path, proof.to_string()).unwrap();
    judge(&path, &FIXTURE.genesis)
}

#[track_caller]
fn refused(name: &str, forged: &Value, reason: &str) {
    let error = judged(name, forged).expect_err(reason);
    assert!(error.contains(reason), "{reason:?} is not in: {error}");
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The bytes with one bit changed.
fn flipped(bytes: &str, position: usize) -> String {
    let mut bytes = hex::decode(bytes).unwrap();
    bytes[position] ^= 1;
    hex::encode_prefixed(bytes)
}

/// A certificate without its last signatures. It ends with a bitmap of those who signed, in one byte for four, their
/// number, and 64 bytes for each.
fn two_signatures(certificate: &str) -> String {
    let mut bytes = hex::decode(certificate).unwrap();
    let count = (3..=4).find(|count| bytes[bytes.len() - 64 * count - 1] == *count as u8).unwrap();
    let place = bytes.len() - 64 * count - 1;
    assert_eq!(bytes[place - 1].count_ones() as usize, count);
    while bytes[place - 1].count_ones() > 2 {
        let last = bytes[place - 1].ilog2();
        bytes[place - 1] ^= 1 << last;
    }
    bytes[place] = 2;
    bytes.truncate(place + 1 + 2 * 64);
    hex::encode_prefixed(bytes)
}
