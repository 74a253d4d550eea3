//! Capacity's slots as they are for good: they are under the state root, so a change of their format forks the chain
//! and must be meant.
//!
//! `specs/vectors/capacity.json` holds the slots after a few bookings. To change them on purpose, run
//! `UPDATE_VECTORS=1 cargo test -p almanac-schedule golden` and review the difference like code.

use almanac_schedule::{
    capacity::{self, Class, Shares},
    ledger::MemoryLedger,
};
use std::{collections::BTreeMap, fs, path::PathBuf};

/// The first second of one of the longest stretches.
const START: u64 = 1_700_003_840;

type Vectors = BTreeMap<String, BTreeMap<String, String>>;

#[test]
fn golden_capacity() {
    assert_eq!(START % 32_768, 0);
    let vectors: Vectors = [
        ("one_second", after(0, [(START + 5, Class::High, 0x1234), (START + 5, Class::Medium, 0x0abc)])),
        ("eight_seconds", after(0, (0..8).map(|n| (START + n, Class::Medium, 0x0100 + n)))),
        ("rank_1_full", after(1, (0..128).map(|n| (START + 128 + n, Class::Medium, 0x2000 + n)))),
        ("rank_2_full", after(1, (0..2_048).map(|n| (START + 4_096 + n, Class::High, 0x5000 + n)))),
        ("rank_3_full", after(2, (0..32_768).map(|n| (START + n, Class::Medium, 1 + n / 8)))),
    ]
    .into_iter()
    .map(|(name, slots)| (name.to_owned(), slots))
    .collect();
    if is_update() {
        fs::write(path(), serde_json::to_string_pretty(&vectors).unwrap() + "\n").unwrap();
        return;
    }
    let recorded = fs::read_to_string(path()).expect("specs/vectors/capacity.json is part of the repository");
    let recorded: Vectors = serde_json::from_str(&recorded).unwrap();
    assert_eq!(
        vectors, recorded,
        "this is not what the chain was built on. A change of capacity's slots forks the chain. If it is meant, \
         run\nUPDATE_VECTORS=1 cargo test -p almanac-schedule golden\nand review the difference of \
         specs/vectors/capacity.json."
    );
}

fn path() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../specs/vectors/capacity.json").into()
}

#[allow(clippy::disallowed_methods, reason = "decides whether a file is rewritten, never what it says")]
fn is_update() -> bool {
    std::env::var("UPDATE_VECTORS").is_ok_and(|value| value == "1")
}

/// The slots of this rank and above after these bookings.
fn after(rank_min: u64, bookings: impl IntoIterator<Item = (u64, Class, u64)>) -> BTreeMap<String, String> {
    let mut ledger = MemoryLedger::default();
    for (second, class, effort) in bookings {
        capacity::book(&mut ledger, Shares::DEFAULT, second, class, effort).unwrap();
    }
    let shown = ledger.slots.iter().filter(|(slot, _)| slot.into_limbs()[1] >= rank_min);
    shown.map(|(slot, word)| (format!("{slot:#066x}"), format!("{word:#066x}"))).collect()
}
