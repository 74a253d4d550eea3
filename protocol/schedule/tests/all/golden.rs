//! The calendar's bytes as they are for good: its nodes are under the state root, so a change of their format, or of
//! how entries are cut into nodes, forks the chain and must be meant.
//!
//! `specs/vectors/calendar.json` holds named encodings, and per block of a story one hash over what it wrote. To
//! change them on purpose, run `UPDATE_VECTORS=1 cargo test -p almanac-schedule golden` and review the difference
//! like code.

use crate::support::{Draw, Twin, cron, entry};
use alloy_primitives::{B256, hex, keccak256};
use almanac_primitives::StateChange;
use almanac_schedule::calendar::{Change, Entry, Queue};
use std::{collections::BTreeMap, fs, path::PathBuf};

const STORY_BLOCKS: u64 = 40;

#[test]
fn golden_calendar() {
    let vectors: BTreeMap<String, String> = encodings().into_iter().chain(story()).collect();
    if is_update() {
        fs::write(path(), serde_json::to_string_pretty(&vectors).unwrap() + "\n").unwrap();
        return;
    }
    let recorded = fs::read_to_string(path()).expect("specs/vectors/calendar.json is part of the repository");
    let recorded: BTreeMap<String, String> = serde_json::from_str(&recorded).unwrap();
    assert_eq!(
        vectors, recorded,
        "this is not what the chain was built on. A change of the calendar's nodes forks the chain. If it is meant, \
         run\nUPDATE_VECTORS=1 cargo test -p almanac-schedule golden\nand review the difference of \
         specs/vectors/calendar.json."
    );
}

fn path() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../specs/vectors/calendar.json").into()
}

#[allow(clippy::disallowed_methods, reason = "decides whether a file is rewritten, never what it says")]
fn is_update() -> bool {
    std::env::var("UPDATE_VECTORS").is_ok_and(|value| value == "1")
}

fn encodings() -> Vec<(String, String)> {
    let mut vectors = vec![];
    for (queue, sample) in Queue::TIMED.into_iter().map(|queue| (queue, sample(queue))) {
        assert_eq!(Entry::decode(&sample.encode()), Ok(sample));
        vectors.push((format!("entry.{queue:?}").to_lowercase(), hex::encode_prefixed(sample.encode())));
    }
    for (name, count) in [("one_leaf", 3), ("two_levels", 33)] {
        let mut twin = Twin::default();
        twin.insert((0..count).map(|n| cron(n, n)));
        for (node, value) in &twin.store.values {
            vectors.push((format!("{name}.node.{node}"), hex::encode_prefixed(value)));
        }
    }
    vectors
}

fn sample(queue: Queue) -> Entry {
    entry(queue, 1_767_225_600_123, 7, 0x0000_0041_2000_0c01)
}

/// Blocks that fill, split, thin out, join and empty a calendar, each by a hash over what it wrote.
fn story() -> Vec<(String, String)> {
    let (mut twin, mut draw) = (Twin::default(), Draw::new(12));
    (0..STORY_BLOCKS)
        .map(|block| {
            let held: Vec<_> = twin.map.values().copied().collect();
            let (leaving, coming): (Vec<_>, _) = match block {
                // Grows, changing everywhere.
                0..15 => (held.into_iter().filter(|_| draw.below(10) == 0).collect(), 400),
                // Many nodes become free at the front, some of which are taken again behind.
                15..20 => (held.into_iter().take(500).collect(), 250),
                // Thins out.
                20..30 => (held.into_iter().filter(|_| draw.below(10) < 7).collect(), 50),
                // Empties and begins again.
                _ => (held, if block % 2 == 0 { 60 } else { 0 }),
            };
            let arrivals = (0..coming).map(|n| {
                let queue = Queue::TIMED[if block < 15 { draw.below(4) as usize } else { 3 }];
                entry(queue, draw.below(5_000), draw.below(3), block << 28 | n)
            });
            let arrivals: Vec<_> = arrivals.map(Change::Insert).collect();
            let changes = [arrivals, leaving.into_iter().map(Change::Remove).collect()].concat();
            let written = twin.block(&changes);
            let census = twin.check();
            let told = format!("{} levels, {} entries: {}", census.levels, census.entries, hash(&written));
            (format!("story.block.{block:02}"), told)
        })
        .collect()
}

/// Over key and new value of each change, behind their lengths.
fn hash(written: &[StateChange]) -> B256 {
    let mut bytes = vec![];
    for change in written {
        change.key.with_bytes(|key| bytes.extend_from_slice(key));
        let value = change.new.clone().unwrap_or_default();
        bytes.extend_from_slice(&u32::try_from(value.len()).unwrap().to_be_bytes());
        bytes.extend_from_slice(&value);
    }
    keccak256(bytes)
}

/// The story is worth recording only if it goes up and down.
#[test]
fn golden_story_has_every_height() {
    let told: Vec<_> = story().into_iter().map(|(_, told)| told).collect();
    for levels in ["1 levels", "2 levels", "3 levels"] {
        assert!(told.iter().any(|block| block.starts_with(levels)), "{levels}");
    }
    assert!(told.iter().any(|block| block.contains(" 0 entries")));
}

// ---- The same bytes, put together by hand: recorded vectors alone would preserve a mistake ----

#[test]
fn golden_entry_by_hand() {
    let expected = [
        "01",               // cron
        "0000019b76daa87b", // 1767225600123 ms
        "fffffffffffffff8", // priority 7, as its distance from the highest
        "0000004120000c01", // schedule 1042-3-1
    ];
    assert_eq!(hex::encode(sample(Queue::Cron).encode()), expected.concat());
}

#[test]
fn golden_nodes_by_hand() {
    let key = |n: u64| format!("01{n:016x}ffffffffffffffff{n:016x}");
    let (first, end) = ("00".repeat(25), "ff".repeat(25));
    let mut twin = Twin::default();
    twin.insert((0..3).map(|n| cron(n, n)));
    let leaf = ["01", "00", &first, &end, "00000003", &key(0), &key(1), &key(2)].concat();
    // Entries per queue, and when the first of each is due; those without entries never.
    let never = "ff".repeat(8);
    let first_due = format!("{never}{:016x}{}", 0, never.repeat(6));
    let counts = |cron: u64| format!("{:016x}{cron:016x}{:096x}{first_due}", 0, 0);
    let head = ["04", "01", "0000000000000001", "0000000000000002", &counts(3)].concat();
    let stored = |twin: &Twin, node| hex::encode(&twin.store.values[&node]);
    assert_eq!((stored(&twin, 0), stored(&twin, 1)), (head, leaf));

    // One too many for a leaf: two of 16 and 17, and a root above them.
    twin.insert((3..33).map(|n| cron(n, n)));
    let keys = |range: std::ops::Range<u64>| range.map(key).collect::<String>();
    let left = ["01", "00", &first, &key(16), "00000010", &keys(0..16)].concat();
    let right = ["01", "00", &key(16), &end, "00000011", &keys(16..33)].concat();
    let root = ["01", "01", "00000002", &first, "0000000000000001", &key(16), "0000000000000002"].concat();
    let head = ["04", "02", "0000000000000003", "0000000000000004", &counts(33)].concat();
    let expected = [head, left, right, root];
    assert_eq!([0, 1, 2, 3].map(|node| stored(&twin, node)), expected);
}
