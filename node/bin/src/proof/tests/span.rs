//! A span over many leaves: whoever leaves one out, or lies about what it has, is caught offline.

use super::*;
use alloy_primitives::U64;
use almanac_primitives::{StateRead, StateReadError};
use almanac_proof::EntryJson;
use almanac_schedule::{
    Calendar,
    calendar::{Change, Entry, Priority, Queue},
};
use almanac_state::StateProof;
use commonware_runtime::deterministic;
use std::collections::BTreeMap;

struct State(BTreeMap<StateKey, Bytes>);

impl StateRead for State {
    fn read(&self, key: StateKey) -> Result<Option<Bytes>, StateReadError> {
        Ok(self.0.get(&key).cloned())
    }
}

const FROM: TimestampMs = TimestampMs(20_000);
const TO: TimestampMs = TimestampMs(120_000);

fn entry(n: u64) -> Entry {
    Entry { queue: Queue::Cron, at: n * 1_000, priority: Priority(0), schedule: ScheduleId(n) }
}

/// A calendar with a job for every second, and the leaves of a part of it with their proofs.
fn proven() -> (Header, Vec<StateProof>) {
    let mut state = State(BTreeMap::new());
    let changes: Vec<Change> = (1..=150).map(|n| Change::Insert(entry(n))).collect();
    for change in Calendar::new(&state).apply(&changes).unwrap() {
        state.0.insert(change.key, change.new.expect("nothing is removed"));
    }
    let leaves = Calendar::new(&state).leaves(Queue::Cron, FROM, TO, usize::MAX).unwrap();
    deterministic::Runner::default().start(|context| async move {
        let store = QmdbStore::open(context, &QmdbConfig::new("calendar"), &state.0).await.unwrap();
        let header = Header { commitment: store.tip().commitment(), ..Header::default() };
        let mut proofs = Vec::new();
        for (node, _) in leaves {
            proofs.push(store.prove(&header, StateKey::Calendar(node)).await.unwrap());
        }
        (header, proofs)
    })
}

fn judged(header: &Header, proofs: &[StateProof], due: Option<Vec<Entry>>) -> Result<String, String> {
    let directory = tempfile::tempdir().unwrap();
    let lane = LaneName::Cron;
    let claim = ClaimJson::Span { lane, from: U64::from(FROM.0), to: U64::from(TO.0) };
    let entries = due.map(|due| due.iter().map(EntryJson::from).collect());
    let json = ProofJson { entries, ..ProofJson::of_values(claim, header, proofs) };
    let args = written(&directory, &json.to_json());
    judge(&args).map_err(|error| format!("{error:#}"))
}

#[test]
fn an_omitted_leaf_is_caught_wherever_it_was() {
    let (header, proofs) = proven();
    assert!(proofs.len() >= 4, "{} leaves", proofs.len());
    let all: Vec<Entry> = (20..=120).map(entry).collect();
    let words = judged(&header, &proofs, Some(all.clone())).unwrap();
    assert_eq!(words.matches("  due  ").count(), all.len(), "{words}");
    let dues = [(FROM, 20), (TO, 120)].map(|(due, n)| format!("({} ms): schedule {}", due.0, ScheduleId(n)));
    assert!(dues.iter().all(|due| words.contains(due)), "both ends are in it: {words}");
    assert_eq!(judged(&header, &proofs, None).unwrap(), words, "what is due follows from the leaves");

    for omitted in 0..proofs.len() {
        let mut rest = proofs.clone();
        rest.remove(omitted);
        let error = judged(&header, &rest, None).unwrap_err();
        let expected = match omitted {
            0 => "no leaf answers for the beginning of the span".to_owned(),
            _ if omitted == rest.len() => "no leaf answers for the end of the span".to_owned(),
            _ => format!("leaf {omitted} does not begin where the one before it ends"),
        };
        assert!(error.contains(&expected), "without leaf {omitted}: {error}");
    }
    let mut swapped = proofs.clone();
    swapped.swap(1, 2);
    assert!(judged(&header, &swapped, None).unwrap_err().contains("does not begin where"));
    let error = judged(&header, &proofs, Some(all[1..].to_vec())).unwrap_err();
    assert!(error.contains("other due entries than its leaves"), "{error}");
}

/// The tree has other values than leaves, and proofs of them hold.
#[test]
fn the_head_and_a_branch_are_no_leaves() {
    let (header, proofs) = proven();
    let other = |node: u64| StateProof { key: StateKey::Calendar(node), ..proofs[0].clone() };
    let error = judged(&header, &[other(999)], None).unwrap_err();
    assert!(error.contains("does not lead from Calendar(999)"), "{error}");
    let state = deterministic::Runner::default().start(|context| async move {
        let values = BTreeMap::from([(StateKey::Calendar(0), Bytes::from_static(&[2, 1]))]);
        let store = QmdbStore::open(context, &QmdbConfig::new("head"), &values).await.unwrap();
        let header = Header { commitment: store.tip().commitment(), ..Header::default() };
        let proof = store.prove(&header, StateKey::Calendar(0)).await.unwrap();
        (header, proof)
    });
    let error = judged(&state.0, &[state.1], None).unwrap_err();
    assert!(error.contains("node 0 of the calendar is not a leaf"), "{error}");
}
