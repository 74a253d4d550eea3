//! Inputs to begin with: the golden encodings of `specs/vectors`, and a few values that they lack.

use crate::{TARGETS, accounts, backup::BackupWriter, rpc};
use alloy_primitives::{Address, B256, Bytes, hex};
use almanac_bft::{
    ValidatorKey,
    sync::{
        Floor,
        message::{Answer, Question},
    },
};
use almanac_primitives::{Block, Genesis, Header, TimestampMs, genesis::Validator, testing};
use almanac_state::SignedBlock;
use serde_json::Value;
use std::{collections::BTreeSet, fs, path::Path};

/// Largest golden encoding that is worth its time.
const SEED_BYTES_MAX: usize = 4 << 10;

/// Writes a folder of inputs for each target.
pub fn write(directory: &Path) {
    for target in TARGETS {
        let folder = directory.join(target.name);
        fs::create_dir_all(&folder).expect("a folder");
        for (number, input) in of(target.name).into_iter().enumerate() {
            fs::write(folder.join(format!("seed-{number:03}")), input).expect("a file");
        }
    }
}

/// Inputs for a target.
pub fn of(name: &str) -> Vec<Vec<u8>> {
    let header = || Header { number: 3, ..Header::default() };
    let floor = || Floor { header: header(), certificate: Bytes::from_static(b"signed") };
    match name {
        "rpc" => rpc::seeds(),
        "genesis" => vec![
            genesis().to_json().into_bytes(),
            accounts::genesis(31_337, TimestampMs(1)).to_json().into_bytes(),
        ],
        "backup" => vec![backup()],
        "proof-file" => vec![proof_file()],
        "floor" => vec![floor().encode()],
        "standing" => vec![
            vec![1, 0],
            [&[1, 1][..], &(floor().encode().len() as u32).to_be_bytes(), &floor().encode(), &[0; 4]]
                .concat(),
        ],
        "sync-question" => {
            let keys = Question::Keys { after: None, limit: 7 };
            let changed = Question::Changed { height: 5, skip: 1, limit: 9 };
            vec![Question::Tip.encode(1), keys.encode(2), changed.encode(3)]
        }
        "sync-answer" => vec![Answer::Busy { wait_ms: 5 }.encode(1)],
        "block" | "header" | "consensus-block" => {
            let transactions = vec![testing::transfer(testing::person(1), 0, testing::person(2).address, 5)];
            let block = Block { header: header(), transactions };
            let mut inputs = golden();
            inputs.extend([header().encode(), block.encode()]);
            inputs
        }
        _ => golden(),
    }
}

/// Four validators.
pub fn genesis() -> Genesis {
    let validator = |number: u8| Validator {
        name: format!("v{number}"),
        public_key: ValidatorKey::from_secret(&B256::repeat_byte(number)).public(),
        fee_recipient: Address::repeat_byte(number),
    };
    Genesis {
        validators: (1..5).map(validator).collect(),
        allocations: Default::default(),
        ..testing::genesis()
    }
}

/// Without its checksum, which the target adds.
fn backup() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut out = BackupWriter::begin(&mut bytes, &genesis(), 2).expect("it fits");
    for number in 1..=2 {
        let block = Block { header: Header { number, ..Header::default() }, transactions: Vec::new() };
        out.block(&SignedBlock { block, certificate: Some(Bytes::from_static(b"signed")) }).expect("it fits");
    }
    out.finish().expect("both are there");
    bytes.truncate(bytes.len() - 32);
    bytes
}

fn proof_file() -> Vec<u8> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../specs/vectors/proofs.json");
    let vectors: Value = serde_json::from_str(&fs::read_to_string(file).expect("vectors")).expect("JSON");
    let good = vectors.as_object().expect("an object").values().find(|found| found.get("error").is_none());
    good.unwrap_or(&Value::Null).to_string().into_bytes()
}

/// Every short golden encoding.
fn golden() -> Vec<Vec<u8>> {
    let mut found = BTreeSet::new();
    for name in ["encodings", "calendar", "proofs"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../specs/vectors/{name}.json"));
        let vectors = serde_json::from_str(&fs::read_to_string(file).expect("vectors")).expect("JSON");
        collect(&vectors, &mut found);
    }
    found.into_iter().collect()
}

fn collect(value: &Value, found: &mut BTreeSet<Vec<u8>>) {
    match value {
        Value::String(text) => {
            let bytes = text.strip_prefix("0x").and_then(|digits| hex::decode(digits).ok());
            found.extend(bytes.filter(|bytes| (1..=SEED_BYTES_MAX).contains(&bytes.len())));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, found)),
        _ => {}
    }
}
