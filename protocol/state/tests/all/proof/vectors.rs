//! `specs/vectors/proofs.json`: proofs for other implementations to check, as they are for good.
//!
//! A change to any of them forks the chain, or makes proofs worthless that people keep. To change the format
//! on purpose, run `UPDATE_VECTORS=1 cargo test -p almanac-state --test proof vectors` and review the
//! difference like code.

use crate::proof::{
    chain::{ALICE, BODY, Chain, GENESIS, NODE, fill, genesis, run, slot, stored_slot, token},
    outcome, rebased, value,
};
use alloy_primitives::{B256, hex, keccak256};
use almanac_primitives::{Header, StateKey};
use almanac_state::StateProof;
use std::{collections::BTreeMap, fs, path::PathBuf};

/// One case: header, its hash and proof; then key and value, or the name of what is wrong.
type Case = BTreeMap<String, String>;
type Cases = BTreeMap<String, Case>;

#[test]
fn vectors_are_accepted_and_refused_as_they_say() {
    let made = run(make);
    if is_update() {
        fs::write(path(), serde_json::to_string_pretty(&made).unwrap() + "\n").unwrap();
        return;
    }
    let recorded = fs::read_to_string(path()).expect("specs/vectors/proofs.json is part of the repository");
    let recorded: Cases = serde_json::from_str(&recorded).unwrap();
    for (name, case) in &recorded {
        check(name, case);
    }
    let names = |cases: &Cases| cases.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&recorded), names(&made));
    for (name, case) in &made {
        assert_eq!(
            recorded[name], *case,
            "{name} is not what was recorded. If the change is meant, run\n\
             UPDATE_VECTORS=1 cargo test -p almanac-state --test proof vectors\n\
             and review the difference of specs/vectors/proofs.json."
        );
    }
}

fn path() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../specs/vectors/proofs.json").into()
}

#[allow(clippy::disallowed_methods, reason = "decides whether a file is rewritten, never what it says")]
fn is_update() -> bool {
    std::env::var("UPDATE_VECTORS").is_ok_and(|value| value == "1")
}

/// Judges a recorded case by what is in the file alone.
fn check(name: &str, case: &Case) {
    let bytes = |field: &str| hex::decode(&case[field]).unwrap();
    let header = Header::decode(&bytes("header")).unwrap();
    assert_eq!(header.hash().to_string(), case["headerHash"], "{name}");
    match (outcome(&header, &bytes("proof")), case.get("error")) {
        (Ok(proven), None) => {
            assert_eq!(keccak256(bytes("key")), proven.key().hashed(), "{name}");
            assert_eq!(&bytes("value"), value(&proven), "{name}");
        }
        (Err(found), Some(error)) => assert_eq!(found, error, "{name}"),
        (found, expected) => panic!("{name}: {found:?}, expected error {expected:?}"),
    }
}

async fn make(context: commonware_runtime::deterministic::Context) -> Cases {
    let mut cases = Cases::new();
    let mut chain = Chain::start(context, genesis()).await;
    let code = StateKey::Code(token().code_hash);
    for (name, key) in [
        ("account", StateKey::Account(ALICE)),
        ("slot", slot(5)),
        ("code", code),
        ("body", BODY),
        ("calendar node", NODE),
        ("genesis", GENESIS),
    ] {
        cases.accept(&format!("{name} at block 0, no full chunk"), &chain, key).await;
    }

    chain.commit(fill(700)).await;
    let before = chain.header.clone();
    let old = chain.prove(slot(1_001)).await;
    cases.accept("slot in a full chunk", &chain, slot(1_001)).await;
    cases.accept("slot in the last chunk, which is not full", &chain, slot(1_699)).await;

    chain.commit([(slot(1_001), Some(stored_slot(9))), (slot(1_002), None)]).await;
    cases.accept("slot after it was overwritten", &chain, slot(1_001)).await;
    let now = chain.header.clone();
    let proof = chain.prove(slot(1_001)).await;
    cases.refuse("OtherBlock", "proof of the parent", &now, &old.encode());
    cases.refuse("WrongRoot", "proof of the parent, renamed", &now, &rebased(&old, &now).encode());
    cases.refuse("WrongRoot", "proof of the child, renamed", &before, &rebased(&proof, &before).encode());
    let other = StateProof { key: slot(1_003), ..proof.clone() };
    cases.refuse("WrongRoot", "path of another key", &now, &other.encode());
    let other = StateProof { value: stored_slot(10), ..proof.clone() };
    cases.refuse("WrongRoot", "another value", &now, &other.encode());
    let mut other = proof.clone();
    other.path.chunk[0] ^= 1;
    cases.refuse("WrongRoot", "another chunk", &now, &other.encode());
    let mut header = now.clone();
    header.commitment.state_root = B256::repeat_byte(7);
    cases.refuse("WrongRoot", "another state root", &header, &rebased(&proof, &header).encode());
    let encoded = proof.encode();
    cases.refuse("Malformed", "a byte is missing", &now, &encoded[..encoded.len() - 1]);
    cases.refuse("Malformed", "a byte too many", &now, &[&encoded[..], &[0]].concat());
    cases.refuse("Malformed", "unknown version", &now, &[&[2], &encoded[1..]].concat());
    cases.refuse("Malformed", "nothing", &now, &[]);

    whole_chunks(&mut chain).await;
    cases.accept("slot, all chunks full", &chain, slot(1_001)).await;
    cases
}

/// Goes on until the log ends with a chunk: then there is no partial chunk digest.
async fn whole_chunks(chain: &mut Chain) {
    for n in 0..1_000 {
        // Blocks of different sizes: the log would grow by the same even number every time.
        chain.commit((0..=n % 3).map(|key| (slot(10 + key), Some(stored_slot(n + 1))))).await;
        if chain.header.commitment.ops_end.is_multiple_of(256) {
            return;
        }
    }
    panic!("one block in a few hundred ends with a chunk");
}

trait Record {
    async fn accept(&mut self, name: &str, chain: &Chain, key: StateKey);
    fn refuse(&mut self, error: &str, name: &str, header: &Header, proof: &[u8]);
}

impl Record for Cases {
    async fn accept(&mut self, name: &str, chain: &Chain, key: StateKey) {
        let proof = chain.prove(key).await;
        let encoded = proof.encode();
        // A proof is: version, number and hash of the block, the key, the value.
        let key_length = encoded.len() - 41 - (8 + proof.value.len() + path_length(&proof));
        let case = [
            ("header", hex::encode_prefixed(chain.header.encode())),
            ("headerHash", chain.header.hash().to_string()),
            ("key", hex::encode_prefixed(&encoded[41..41 + key_length])),
            ("proof", hex::encode_prefixed(&encoded)),
            ("value", proof.value.to_string()),
        ];
        self.insert(name.into(), case.map(|(field, value)| (field.into(), value)).into());
    }

    fn refuse(&mut self, error: &str, name: &str, header: &Header, proof: &[u8]) {
        let case = [
            ("error", error.into()),
            ("header", hex::encode_prefixed(header.encode())),
            ("headerHash", header.hash().to_string()),
            ("proof", hex::encode_prefixed(proof)),
        ];
        self.insert(name.into(), case.map(|(field, value)| (field.into(), value)).into());
    }
}

fn path_length(proof: &StateProof) -> usize {
    commonware_codec::EncodeSize::encode_size(&proof.path)
}
