//! Proofs from a data directory to words and back, and everything a forger might try with the files.

mod span;

use super::*;
use crate::{accounts, datadir::Datadir};
use alloy_primitives::{Bytes, hex, keccak256};
use almanac_primitives::{
    Account, Block, Header, StateChange, StateDiff, StateKey,
    params::{GOVERNANCE_SLOT, PROTOCOL_VERSION},
    state::{Meta, encode_slot},
};
use almanac_proof::{ClaimJson, ProofJson};
use almanac_state::{
    BlockArchive as _, BlockJournal, QmdbConfig, QmdbStore, SealedBatch as _, StateStore as _,
};
use clap::Parser;
use commonware_runtime::{Runner as _, Supervisor as _};
use serde_json::{Value, json};
use std::{fs, path::Path};
use tempfile::TempDir;

const CODE: &[u8] = &[0x60, 0x01, 0x60, 0x00, 0x55];
const BODY: ScheduleId = ScheduleId(0xb0);

/// A directory as a node leaves it, after as many blocks.
fn directory(blocks: u64) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let genesis = accounts::genesis(accounts::CHAIN_ID, TimestampMs(1_000));
    let datadir = Datadir::take(directory.path()).unwrap();
    datadir.write_genesis(&genesis).unwrap();
    datadir.runner().start(|context| async move {
        let config = QmdbConfig::new(crate::chain::PARTITION);
        let store =
            QmdbStore::open(context.child("state"), &config, &genesis.state().unwrap()).await.unwrap();
        let archive = BlockJournal::open(context.child("blocks"), &config).await.unwrap();
        for number in 1..=blocks {
            let batch = store.seal(&store.tip(), &writes(number)).await.unwrap();
            let header = Header {
                number,
                timestamp: TimestampMs(1_000 + number),
                protocol_version: PROTOCOL_VERSION,
                commitment: batch.commitment(),
                ..Header::default()
            };
            let block = Block { header, transactions: Vec::new() };
            archive.append(&block, &[], None).await.unwrap();
            store.commit(&batch).await.unwrap();
        }
    });
    directory
}

/// A value of each kind in the first block, a slot in every one.
fn writes(number: u64) -> StateDiff {
    let code_hash = keccak256(CODE);
    let stored = |n: u64| encode_slot(U256::from(n));
    let mut changes = vec![StateChange {
        key: StateKey::Slot(Address::ZERO, U256::from(7)),
        old: stored(number - 1),
        new: stored(number),
    }];
    if number == 1 {
        let account = Account { nonce: 1, balance: U256::from(5), code_hash, is_keyed: false }.encode();
        let new = [
            (StateKey::Account(Address::ZERO), account),
            (StateKey::Code(code_hash), Bytes::from_static(CODE)),
            (StateKey::Body(BODY), Bytes::from_static(&[0xbb; 100])),
            (StateKey::Calendar(3), Bytes::from_static(b"due")),
        ];
        changes.extend(new.into_iter().map(|(key, new)| StateChange { key, old: None, new: Some(new) }));
    }
    StateDiff::new(changes)
}

#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: ProofCommand,
}

fn parse(words: &[&str]) -> Result<ProofCommand, clap::Error> {
    Cli::try_parse_from(["almanac"].iter().chain(words)).map(|cli| cli.command)
}

fn get_args(words: &[&str]) -> Result<GetArgs, clap::Error> {
    parse(&[&["get", "--datadir", "x"], words].concat()).map(|command| match command {
        ProofCommand::Get(args) => *args,
        ProofCommand::Verify(_) => panic!("get was asked for"),
    })
}

fn prove_in(directory: &Path, key: StateKey) -> anyhow::Result<ProofJson> {
    datadir::prove(directory, Subject::State(StateSubject::Value(key)))
}

/// Proves, writes, reads and judges.
fn words_for(directory: &TempDir, key: StateKey) -> String {
    judge(&written(directory, &prove_in(directory.path(), key).unwrap().to_json())).unwrap()
}

fn written(directory: &TempDir, json: &str) -> VerifyArgs {
    let proof = directory.path().join("proof.json");
    fs::write(&proof, json).unwrap();
    VerifyArgs { proof, genesis: None, header: None, block_hash: None }
}

#[test]
fn every_kind_of_value_from_the_directory_to_words() {
    let directory = directory(3);
    let zero = Address::ZERO;
    let rich = accounts::ACCOUNTS[0].address;
    let code_hash = keccak256(CODE);
    for (key, expected) in [
        (StateKey::Account(rich), format!("account {rich} after block 3")),
        (StateKey::Account(rich), "balance     10000 coins (10000000000000000000000 wei)".into()),
        (StateKey::Account(rich), "code        none".into()),
        (StateKey::Account(zero), "balance     0.000000000000000005 coins (5 wei)".into()),
        (StateKey::Account(zero), format!("code        {code_hash}")),
        (StateKey::Account(zero), "nonce       1".into()),
        (StateKey::Slot(zero, U256::from(7)), format!("slot 7 of {zero} after block 3")),
        (StateKey::Slot(zero, U256::from(7)), "value       3 (0x3)".into()),
        (StateKey::Code(code_hash), format!("code {code_hash} after block 3")),
        (StateKey::Code(code_hash), "bytes       0x6001600055 (5 in all)".into()),
        (StateKey::Body(BODY), format!("body of schedule {BODY}")),
        (StateKey::Body(BODY), format!("0x{}… (100 in all)", "bb".repeat(64))),
        (StateKey::Calendar(3), "calendar node 3".into()),
        (StateKey::Meta(Meta::Genesis), "start of the chain".into()),
        (StateKey::Calendar(3), "block time  1970-01-01T00:00:01.003Z (1003 ms)".into()),
        (StateKey::Calendar(3), "--block-hash".into()),
    ] {
        let words = words_for(&directory, key);
        assert!(words.contains(&expected), "{expected:?} is not in:\n{words}");
    }
}

#[test]
fn genesis_is_proven_without_a_block() {
    let directory = directory(0);
    let words = words_for(&directory, StateKey::Account(accounts::ACCOUNTS[9].address));
    assert!(words.contains("after block 0") && words.contains("10000 coins"), "{words}");
    let governance = StateKey::Slot(almanac_primitives::addresses::PARAMETERS, U256::from(GOVERNANCE_SLOT));
    assert!(words_for(&directory, governance).contains("after block 0"));
}

#[test]
fn what_is_not_there_is_said_to_be_unprovable() {
    let directory = directory(1);
    let error = prove_in(directory.path(), StateKey::Calendar(4)).unwrap_err().to_string();
    assert!(error.contains("Calendar(4) is not in the state after block 1"), "{error}");
    assert!(error.contains("cannot be proven"), "{error}");
}

#[test]
fn a_directory_in_use_and_one_without_a_chain_are_refused() {
    let directory = directory(1);
    let key = StateKey::Calendar(3);
    let taken = Datadir::take(directory.path()).unwrap();
    let error = prove_in(directory.path(), key).unwrap_err().to_string();
    assert!(error.contains("in use by another process: stop it"), "{error}");
    drop(taken);
    prove_in(directory.path(), key).unwrap();

    let empty = tempfile::tempdir().unwrap();
    let missing = empty.path().join("nothing");
    for path in [empty.path(), &missing] {
        let error = prove_in(path, key).unwrap_err().to_string();
        assert!(error.contains("holds no chain"), "{error}");
    }
    assert_eq!(fs::read_dir(empty.path()).unwrap().count(), 0, "nothing was made");
    fs::copy(directory.path().join("genesis.json"), empty.path().join("genesis.json")).unwrap();
    let error = prove_in(empty.path(), key).unwrap_err().to_string();
    assert!(error.contains("holds no state"), "{error}");
}

#[test]
fn a_trusted_hash_settles_which_block() {
    let directory = directory(2);
    let file = prove_in(directory.path(), StateKey::Calendar(3)).unwrap();
    let hash = file.decode_header().unwrap().hash();
    let args = written(&directory, &file.to_json());
    let trusting = |block_hash| judge(&VerifyArgs { block_hash: Some(block_hash), ..args.clone() });
    assert!(trusting(hash).unwrap().contains("whose hash you gave"));
    let error = trusting(B256::repeat_byte(1)).unwrap_err().to_string();
    assert!(error.contains(&format!("that of block {hash}, not of the trusted")), "{error}");
}

#[test]
fn a_header_from_elsewhere_is_what_counts() {
    let directory = directory(2);
    let key = StateKey::Calendar(3);
    let file = prove_in(directory.path(), key).unwrap();
    let args = written(&directory, &file.to_json());
    let header = directory.path().join("header.json");
    let with_header = |json: &Value| {
        fs::write(&header, json.to_string()).unwrap();
        judge(&VerifyArgs { header: Some(header.clone()), ..args.clone() })
    };
    let own: Value = serde_json::from_str(&file.to_json()).unwrap();
    assert!(with_header(&own).is_ok(), "a proof file holds a header");
    assert!(with_header(&json!({ "header": own["header"], "other": 1 })).is_ok());
    let error = with_header(&json!({ "values": own["values"] })).unwrap_err();
    assert!(format!("{error:#}").contains("missing field `header`"), "{error:#}");

    let mut other = file.decode_header().unwrap();
    other.timestamp.0 += 1;
    let other = ProofJson::of_values(ClaimJson::Value {}, &other, &file.decode_values().unwrap());
    let other: Value = serde_json::from_str(&other.to_json()).unwrap();
    let error = with_header(&other).unwrap_err().to_string();
    assert!(error.contains("the proof is for block 2 with hash"), "{error}");
}

#[test]
fn files_that_say_two_things_are_refused() {
    let directory = directory(2);
    let key = StateKey::Slot(Address::ZERO, U256::from(7));
    let file = prove_in(directory.path(), key).unwrap();
    let own: Value = serde_json::from_str(&file.to_json()).unwrap();
    let flipped = |field: &Value| {
        let mut bytes = hex::decode(field.as_str().unwrap()).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        json!(hex::encode_prefixed(bytes))
    };
    let cases = [
        ("/header/number", json!("0x3"), "contradicts its encoded header"),
        ("/header/hash", flipped(&own["header"]["hash"]), "contradicts its encoded header"),
        ("/header/stateRoot", flipped(&own["header"]["stateRoot"]), "contradicts its encoded header"),
        ("/header/encoded", flipped(&own["header"]["encoded"]), "contradicts its encoded header"),
        ("/header/encoded", json!("0x01"), "not a block header"),
        ("/header/receiptsRoot", flipped(&own["header"]["receiptsRoot"]), "contradicts its encoded header"),
        ("/values/0/key/slot", json!("0x8"), "contradicts the key of its proof"),
        ("/values/0/key/kind", json!("account"), "not a proof file"),
        ("/values/0/value", json!("0x03"), "contradicts the value of its proof"),
        ("/values/0/encoded", flipped(&own["values"][0]["encoded"]), "does not lead from"),
        ("/values/0/encoded", json!("0x"), "not a proof"),
        ("/values", json!([]), "which 0 values and 0 receipts do not prove"),
        ("/values", json!([own["values"][0], own["values"][0]]), "2 values"),
        ("/claim", json!({ "kind": "schedule", "schedule": "1-0-0" }), "1 values do not prove a schedule"),
        ("/claim", json!({ "kind": "schedule", "schedule": "x" }), "names no schedule"),
        (
            "/claim",
            json!({ "kind": "span", "lane": "cron", "from": "0x1", "to": "0x2" }),
            "not a leaf of the calendar",
        ),
        ("/claim", json!({ "kind": "run", "hash": B256::ZERO }), "receipts do not prove"),
        ("/claim", json!({ "kind": "value", "more": 1 }), "not a proof file"),
        ("/entries", json!([]), "its claim is not a span"),
        ("/format", json!("almanac-proof-1"), "has another version: its format is"),
        ("/format", json!("almanac-proof-3"), "this build reads \"almanac-proof-2\""),
    ];
    for (pointer, value, expected) in cases {
        let mut forged = own.clone();
        *forged.pointer_mut(pointer).unwrap() = value;
        let error = judge(&written(&directory, &forged.to_string())).unwrap_err();
        assert!(format!("{error:#}").contains(expected), "{pointer}: {error:#}");
    }
    for json in ["", "{}", "[]", "\u{0}", &" ".repeat(1 << 20)] {
        assert!(judge(&written(&directory, json)).is_err());
    }
    let missing = VerifyArgs { proof: directory.path().join("no.json"), ..written(&directory, "") };
    assert!(format!("{:#}", judge(&missing).unwrap_err()).contains("cannot read"));
}

#[test]
fn one_value_is_asked_for_at_a_time() {
    let address = Address::repeat_byte(1);
    let key = |words: &[&str]| match get_args(words)?.subject().unwrap() {
        Subject::State(StateSubject::Value(key)) => Ok::<_, clap::Error>(key),
        other => panic!("a value was asked for, not {other:?}"),
    };
    let account = &["--account", "0x0101010101010101010101010101010101010101"][..];
    assert_eq!(key(account).unwrap(), StateKey::Account(address));
    let with_slot = |slot: &str| key(&[account, &["--slot", slot]].concat());
    assert_eq!(with_slot("10").unwrap(), StateKey::Slot(address, U256::from(10)));
    assert_eq!(with_slot("0x10").unwrap(), StateKey::Slot(address, U256::from(16)));
    for bad in ["", "0x", "-1", "1_0", "ten", &U256::MAX.to_string().replace('1', "9")] {
        assert!(with_slot(bad).is_err(), "{bad}");
    }
    let hash = B256::repeat_byte(2);
    assert_eq!(key(&["--code", &hash.to_string()]).unwrap(), StateKey::Code(hash));
    assert_eq!(key(&["--body", "1042-3-0"]).unwrap(), StateKey::Body(ScheduleId::new(1042, 3, 0).unwrap()));
    assert_eq!(key(&["--calendar-node", "4"]).unwrap(), StateKey::Calendar(4));
    assert_eq!(key(&["--genesis"]).unwrap(), StateKey::Meta(Meta::Genesis));

    let subject = |words: &[&str]| get_args(words).unwrap().subject().unwrap();
    let schedule = StateSubject::Schedule(ScheduleId::new(1042, 3, 0).unwrap());
    assert_eq!(subject(&["--schedule", "1042-3-0"]), Subject::State(schedule));
    let span = StateSubject::Span { lane: LaneName::Spare, from: TimestampMs(5), to: TimestampMs(7) };
    assert_eq!(subject(&["--span", "spare,5,7"]), Subject::State(span));
    assert_eq!(subject(&["--run", &hash.to_string()]), Subject::Ran { hash, is_run: true });
    assert_eq!(subject(&["--transaction", &hash.to_string()]), Subject::Ran { hash, is_run: false });

    assert!(get_args(&[]).is_err(), "nothing was asked for");
    assert!(get_args(&["--slot", "1"]).is_err(), "a slot of what?");
    assert!(get_args(&[account, &["--genesis"]].concat()).is_err());
    assert!(parse(&["verify"]).is_err());
    assert!(parse(&["verify", "--proof", "p.json"]).is_ok());
}

#[test]
fn a_node_is_asked_for_the_same_in_its_words() {
    let wanted = |words: &[&str]| {
        parse(&[&["get", "--rpc", "http://127.0.0.1:8545"], words].concat()).map(|command| match command {
            ProofCommand::Get(args) => args.wanted().unwrap(),
            ProofCommand::Verify(_) => panic!("get was asked for"),
        })
    };
    let (address, hash) = (Address::repeat_byte(1), B256::repeat_byte(2));
    let (account, named) = (address.to_string(), hash.to_string());
    assert_eq!(wanted(&["--account", &account]).unwrap(), json!({ "account": address }));
    let slot = wanted(&["--account", &account, "--slot", "16"]).unwrap();
    assert_eq!(slot, json!({ "account": address, "slot": "0x10" }));
    assert_eq!(wanted(&["--schedule", "1042-3-0"]).unwrap(), json!({ "schedule": "1042-3-0" }));
    assert_eq!(wanted(&["--run", &named]).unwrap(), json!({ "run": hash }));
    assert_eq!(wanted(&["--transaction", &named]).unwrap(), json!({ "transaction": hash }));
    let span = wanted(&["--span", "cron,5,1794769260000"]).unwrap();
    assert_eq!(span, json!({ "lane": "cron", "from": 5, "to": 1_794_769_260_000_u64 }));
    for bad in ["", "cron", "cron,1", "cron,1,2,3", "corn,1,2", "cron,-1,2", "cron,1,x"] {
        assert!(wanted(&["--span", bad]).is_err(), "{bad}");
    }
    assert!(wanted(&["--code", &named]).is_err(), "from a directory only");
    assert!(wanted(&["--account", &account, "--datadir", "x"]).is_err(), "one source");
    assert!(parse(&["get", "--account", &account]).is_err(), "no source");
}

/// The start of a chain needs no signatures; anything after it does.
#[test]
fn without_signatures_only_genesis_is_final() {
    let start = directory(0);
    let rich = StateKey::Account(accounts::ACCOUNTS[0].address);
    let genesis = start.path().join("genesis.json");
    let judged = |directory: &TempDir| {
        let json = prove_in(directory.path(), rich).unwrap().to_json();
        judge(&VerifyArgs { genesis: Some(genesis.clone()), ..written(directory, &json) })
    };
    let words = judged(&start).unwrap();
    assert!(words.contains("Final: block 0 (0x") && words.contains("is the start of chain 31337"), "{words}");
    let error = format!("{:#}", judged(&directory(1)).unwrap_err());
    assert!(error.contains("nobody signs the blocks of chain 31337"), "{error}");
}
