//! The store on disk: what it keeps, what it refuses, and where it goes on.

use crate::support::*;
use alloy_primitives::Bytes;
use almanac_primitives::{
    StateChange, StateCommitment, StateDiff, StateKey, params::STATE_VALUE_BYTES_MAX, state::Meta,
};
use almanac_state::{
    CommitError, OpenError, QmdbBatch, QmdbConfig, QmdbStore, SealError, SealedBatch as _, StaleBatch,
    StateStore as _, StateView as _, with_reader,
};
use commonware_runtime::{
    Clock as _, Runner as _, Spawner as _, Supervisor as _,
    deterministic::{self, Context, FaultConfig, PartialWriteMode, WriteConfig},
};
use commonware_utils::probability;
use std::time::Duration;

type Store = QmdbStore<Context>;

fn run<T>(test: impl AsyncFnOnce(Context) -> T) -> T {
    deterministic::Runner::default().start(async |context| test(context).await)
}

fn one(number: u64, new: Option<&'static str>) -> Writes {
    Writes::from([(number, new.map(Bytes::from))])
}

/// A change that is not checked against anything.
fn change(number: u64, old: Option<&'static str>, new: Option<Bytes>) -> StateDiff {
    StateDiff::new(vec![StateChange { key: key(number), old: old.map(Bytes::from), new }])
}

/// A second store with the genesis of a first.
async fn twin(context: &Context, first: &str, second: &str) -> Store {
    QmdbStore::open(context.child("twin"), &config(second), &genesis(30, first)).await.unwrap()
}

/// Plays blocks up to a height and answers with the state after each, genesis first.
async fn play(store: &Store, height: u64) -> Vec<(StateCommitment, Vec<Option<Bytes>>)> {
    let tip = store.tip();
    let mut states = vec![(tip.commitment(), read::<Store>(&tip, 40).await)];
    for height in store.height() + 1..=height {
        let batch = advance(store, height).await;
        states.push((batch.commitment(), read::<Store>(&batch, 40).await));
    }
    states
}

#[test]
fn genesis_is_at_height_zero_and_has_all_its_values() {
    run(async |context| {
        let store = open(&context, "a").await.unwrap();
        assert_eq!(store.height(), 0);
        let expected: Vec<_> = (0..30).map(|n| Some(text(format_args!("genesis {n}")))).collect();
        assert_eq!(read::<Store>(&store.tip(), 30).await, expected);
        assert_eq!(read::<Store>(&store.tip(), 31).await[30], None);
        let commitment = store.tip().commitment();
        // QMDB's own first commit, 30 values and a name, the oldest value moved up, and the commit.
        assert_eq!((commitment.ops_start, commitment.ops_end), (0, 34));
        assert_ne!(commitment.state_root, commitment.ops_root);
    });
}

#[test]
fn a_store_reopens_at_the_last_durable_block_with_the_same_root() {
    run(async |context| {
        let mut expected = None;
        for height in [0, 1, 2, 30, 31] {
            let store = open(&context, "a").await.unwrap();
            if let Some((height, commitment, values)) = expected.take() {
                assert_eq!((store.height(), store.tip().commitment()), (height, commitment));
                assert_eq!(read::<Store>(&store.tip(), 40).await, values);
            }
            let (commitment, values) = play(&store, height).await.pop().unwrap();
            assert_eq!(store.height(), height);
            expected = Some((height, commitment, values));
        }
    });
}

#[test]
fn what_was_sealed_and_not_committed_is_gone() {
    run(async |context| {
        let store = open(&context, "a").await.unwrap();
        let committed = advance(&store, 1).await.commitment();
        let sealed = seal(&store, &store.tip(), &writes(2)).await;
        seal(&store, &sealed, &writes(3)).await;
        drop((store, sealed));
        let store = open(&context, "a").await.unwrap();
        assert_eq!((store.height(), store.tip().commitment()), (1, committed));
    });
}

#[test]
fn another_genesis_is_refused() {
    run(async |context| {
        let mine = genesis(30, "mine");
        drop(QmdbStore::open(context.child("a"), &config("a"), &mine).await.unwrap());
        let mut others = vec![genesis(30, "other"), genesis(29, "mine"), genesis(31, "mine"), Values::new()];
        let mut richer = mine.clone();
        richer.insert(key(0), Bytes::from("more"));
        others.push(richer);
        for other in others {
            let refused = QmdbStore::open(context.child("b"), &config("a"), &other).await;
            assert_eq!(refused.err(), Some(OpenError::OtherChain { partition: "a".to_owned() }));
        }
        let opened = QmdbStore::open(context.child("c"), &config("a"), &mine).await;
        assert_eq!(opened.unwrap().height(), 0, "being refused changed nothing");
    });
}

#[test]
fn a_genesis_of_nothing_is_a_genesis() {
    run(async |context| {
        let store = QmdbStore::open(context.child("a"), &config("a"), &Values::new()).await.unwrap();
        let commitment = store.tip().commitment();
        drop(store);
        let store = QmdbStore::open(context.child("b"), &config("a"), &Values::new()).await.unwrap();
        assert_eq!((store.height(), store.tip().commitment()), (0, commitment));
        advance(&store, 1).await;
        // A state without values is not a state without a genesis.
        let changes = read::<Store>(&store.tip(), 40).await.into_iter().zip(0..);
        let changes = changes.map(|(old, number)| StateChange { key: key(number), old, new: None });
        let emptied = store.seal(&store.tip(), &StateDiff::new(changes.collect())).await.unwrap();
        store.commit(&emptied).await.unwrap();
        let commitment = emptied.commitment();
        drop((store, emptied));
        let store = QmdbStore::open(context.child("c"), &config("a"), &Values::new()).await.unwrap();
        assert_eq!((store.height(), store.tip().commitment()), (2, commitment));
        assert!(read::<Store>(&store.tip(), 40).await.iter().all(Option::is_none));
    });
}

/// Opens the store at the end of a block.
async fn open_at(context: &Context, end: u64) -> Result<Store, OpenError> {
    QmdbStore::open_at(context.child("again"), &config("a"), &genesis(30, "a"), Some(end)).await
}

#[test]
fn a_store_can_be_opened_at_any_earlier_block_and_goes_on_from_there() {
    run(async |context| {
        const BLOCKS: u64 = 24;
        let store = open(&context, "a").await.unwrap();
        let states = play(&store, BLOCKS).await;
        drop(store);
        for height in (0..=BLOCKS).rev() {
            let (commitment, values) = &states[height as usize];
            let store = open_at(&context, commitment.ops_end).await.unwrap();
            assert_eq!((store.height(), store.tip().commitment()), (height, *commitment));
            assert_eq!(read::<Store>(&store.tip(), 40).await, *values);
            drop(store);
            let store = open(&context, "a").await.unwrap();
            assert_eq!(store.height(), height, "what came after is forgotten for good");
            assert_eq!(play(&store, BLOCKS).await, states[height as usize..]);
        }
    });
}

#[test]
fn opening_where_no_block_ends_is_refused_and_forgets_nothing() {
    run(async |context| {
        let store = open(&context, "a").await.unwrap();
        let ends: Vec<_> = play(&store, 8).await.iter().map(|(commitment, _)| commitment.ops_end).collect();
        drop(store);
        let newest = *ends.last().unwrap();
        let wrong = (0..=newest + 3).chain([u64::MAX]).filter(|end| !ends.contains(end));
        for asked in wrong {
            let partition = "a".to_owned();
            let expected = OpenError::NoSuchCommit { partition, asked, newest };
            assert_eq!(open_at(&context, asked).await.err(), Some(expected), "{asked}");
        }
        assert_eq!(open(&context, "a").await.unwrap().height(), 8);
    });
}

#[test]
fn pruning_keeps_the_state_and_refuses_what_it_removed() {
    run(async |context| {
        const BLOCKS: u64 = 120;
        let (pruned, whole) = (open(&context, "a").await.unwrap(), twin(&context, "a", "b").await);
        let states = play(&pruned, BLOCKS).await;
        assert_eq!(play(&whole, BLOCKS).await, states);
        // A batch that is held over the pruning must not notice it.
        let held = seal(&pruned, &pruned.tip(), &writes(BLOCKS + 1)).await;

        let oldest = states[80].0;
        assert!(oldest.ops_start >= 1_000, "there is something to prune: {oldest:?}");
        while pruned.prune(&oldest).await.unwrap() {}

        assert_eq!(pruned.tip().commitment(), states[120].0);
        assert_eq!(read::<Store>(&pruned.tip(), 40).await, states[120].1);
        pruned.commit(&held).await.unwrap();
        drop(held);
        assert_eq!(play(&pruned, BLOCKS + 20).await[1..], play(&whole, BLOCKS + 20).await[2..]);
        drop(pruned);

        for height in [0, 1, 20, 60] {
            let asked = states[height].0.ops_end;
            let expected = OpenError::Pruned { partition: "a".to_owned(), asked };
            assert_eq!(open_at(&context, asked).await.err(), Some(expected), "block {height}");
        }
        assert_eq!(open(&context, "a").await.unwrap().height(), BLOCKS + 20, "nothing was forgotten");
        for height in [120, 100, 80] {
            let store = open_at(&context, states[height].0.ops_end).await.unwrap();
            assert_eq!(store.tip().commitment(), states[height].0);
            assert_eq!(read::<Store>(&store.tip(), 40).await, states[height].1);
        }
    });
}

#[test]
fn pruning_does_not_go_further_than_the_tip_allows() {
    run(async |context| {
        let store = open(&context, "a").await.unwrap();
        let states = play(&store, 60).await;
        let newer = StateCommitment { ops_start: u64::MAX, ..states[60].0 };
        while store.prune(&newer).await.unwrap() {}
        assert_eq!(store.prune(&states[60].0).await, Ok(false), "nothing is left to prune");
        drop(store);
        let store = open(&context, "a").await.unwrap();
        assert_eq!(store.tip().commitment(), states[60].0);
        assert_eq!(read::<Store>(&store.tip(), 40).await, states[60].1);
    });
}

#[test]
fn a_value_may_have_the_largest_size_and_no_more() {
    run(async |context| {
        let sized = |bytes: usize| Bytes::from(vec![7; bytes]);
        let (largest, larger) = (sized(STATE_VALUE_BYTES_MAX), sized(STATE_VALUE_BYTES_MAX + 1));
        let genesis = |value: &Bytes| Values::from([(StateKey::Meta(Meta::Genesis), value.clone())]);
        let refused = QmdbStore::open(context.child("a"), &config("a"), &genesis(&larger)).await;
        let expected = OpenError::GenesisValueTooLarge {
            key: StateKey::Meta(Meta::Genesis),
            given: STATE_VALUE_BYTES_MAX + 1,
        };
        assert_eq!(refused.err(), Some(expected));

        let store = QmdbStore::open(context.child("b"), &config("a"), &genesis(&largest)).await.unwrap();
        let refused = store.seal(&store.tip(), &change(1, None, Some(larger))).await;
        let (given, max) = (STATE_VALUE_BYTES_MAX + 1, STATE_VALUE_BYTES_MAX);
        assert_eq!(refused.unwrap_err(), SealError::ValueTooLarge { key: key(1), given, max });
        let sealed = store.seal(&store.tip(), &change(1, None, Some(largest.clone()))).await.unwrap();
        store.commit(&sealed).await.unwrap();
        drop((store, sealed));
        let store = QmdbStore::open(context.child("c"), &config("a"), &genesis(&largest)).await.unwrap();
        let found = store.tip().get_many(&[key(1), StateKey::Meta(Meta::Genesis)]).await.unwrap();
        assert_eq!(found, [Some(largest.clone()), Some(largest)]);
    });
}

#[test]
fn a_removed_value_is_gone_and_an_empty_one_is_there() {
    run(async |context| {
        let store = open(&context, "a").await.unwrap();
        let removed = seal(&store, &store.tip(), &one(3, None)).await;
        let emptied = seal(&store, &removed, &one(4, Some(""))).await;
        let again = seal(&store, &emptied, &one(3, Some("again"))).await;
        let expect = async |batch: &QmdbBatch<Context>, third: Option<&'static str>, fourth: &'static str| {
            let values = batch.get_many(&[key(3), key(4)]).await.unwrap();
            assert_eq!(values, [third.map(Bytes::from), Some(Bytes::from(fourth))]);
        };
        expect(&removed, None, "genesis 4").await;
        expect(&emptied, None, "").await;
        expect(&again, Some("again"), "").await;
        store.commit(&removed).await.unwrap();
        expect(&removed, None, "genesis 4").await;
        store.commit(&emptied).await.unwrap();
        drop((store, removed, emptied, again));
        let store = open(&context, "a").await.unwrap();
        expect(&store.tip(), None, "").await;
        let wrong = store.seal(&store.tip(), &change(3, Some("genesis 3"), None)).await.unwrap_err();
        let (given, found) = (Some(Bytes::from("genesis 3")), None);
        assert_eq!(wrong, SealError::OldValueDiffers { key: key(3), given, found });
        let wrong = store.seal(&store.tip(), &change(4, None, Some("x".into()))).await.unwrap_err();
        let (given, found) = (None, Some(Bytes::new()));
        assert_eq!(wrong, SealError::OldValueDiffers { key: key(4), given, found });
    });
}

#[test]
fn a_block_without_changes_has_a_root_of_its_own() {
    run(async |context| {
        let store = open(&context, "a").await.unwrap();
        let values = read::<Store>(&store.tip(), 40).await;
        let mut roots = vec![store.tip().commitment().state_root];
        for _ in 0..3 {
            let batch = store.seal(&store.tip(), &StateDiff::default()).await.unwrap();
            store.commit(&batch).await.unwrap();
            assert_eq!(read::<Store>(&batch, 40).await, values);
            roots.push(batch.commitment().state_root);
        }
        let distinct: std::collections::BTreeSet<_> = roots.iter().collect();
        assert_eq!(distinct.len(), roots.len());
        drop(store);
        let store = open(&context, "a").await.unwrap();
        assert_eq!((store.height(), store.tip().commitment().state_root), (3, roots[3]));
    });
}

/// 50,000 entries are written as one batch. The border is part of the root.
#[test]
fn a_genesis_above_one_batch_is_complete() {
    run(async |context| {
        let value = |number: u64| Bytes::from(number.to_be_bytes().to_vec());
        let entries = |count| (0..count).map(|number| (StateKey::Calendar(number), value(number)));
        let mut ends = Vec::new();
        for (partition, count) in [("a", 49_999), ("b", 50_000), ("c", 50_001)] {
            let (config, genesis) = (QmdbConfig::new(partition), entries(count).collect());
            let store = QmdbStore::open(context.child("new"), &config, &genesis).await.unwrap();
            let commitment = store.tip().commitment();
            ends.push(commitment.ops_end);
            drop(store);
            let store = QmdbStore::open(context.child("again"), &config, &genesis).await.unwrap();
            assert_eq!((store.height(), store.tip().commitment()), (0, commitment));
            let (keys, values): (Vec<_>, Vec<_>) =
                entries(count).map(|(key, value)| (key, Some(value))).unzip();
            assert_eq!(store.tip().get_many(&keys).await.unwrap(), values);
        }
        assert_eq!(ends[1] - ends[0], 1, "one value more: {ends:?}");
        assert!(ends[2] - ends[1] > 1, "one value and one batch more: {ends:?}");
    });
}

// ---- Batches that the chain went on without ----

#[test]
fn siblings_and_their_descendants_go_stale_by_name() {
    run(async |context| {
        let store = open(&context, "a").await.unwrap();
        let genesis = store.tip();
        let left = seal(&store, &genesis, &one(1, Some("left"))).await;
        let right = seal(&store, &genesis, &one(1, Some("right"))).await;
        let above_left = seal(&store, &left, &one(2, Some("above left"))).await;
        let above_right = seal(&store, &right, &one(2, Some("above right"))).await;
        let top_right = seal(&store, &above_right, &Writes::new()).await;
        store.commit(&left).await.unwrap();

        for (batch, height) in [(&genesis, 0), (&right, 1), (&above_right, 2), (&top_right, 3)] {
            let stale = StaleBatch { height, tip_height: 1 };
            let error = batch.get_many(&[key(7), key(1)]).await.unwrap_err();
            assert_eq!((error.key, error.reason), (key(7), stale.to_string()));
            let error = store.seal(batch, &StateDiff::default()).await.unwrap_err();
            assert_eq!(error, SealError::StaleParent(stale));
            let refused = store.commit(batch).await.unwrap_err();
            let expected = CommitError::NotOnTip {
                height,
                root: batch.commitment().state_root,
                tip_height: 1,
                tip_root: left.commitment().state_root,
            };
            assert_eq!(refused, expected);
        }
        assert_eq!(left.get_many(&[key(1)]).await.unwrap(), [Some(Bytes::from("left"))], "it is the tip now");
        assert_eq!(above_left.get_many(&[key(1)]).await.unwrap(), [Some(Bytes::from("left"))]);
        assert!(store.commit(&left).await.is_err(), "twice");
        store.commit(&above_left).await.unwrap();
        assert!(left.get_many(&[key(1)]).await.is_err(), "the tip has moved on");
        assert_eq!(store.height(), 2);
    });
}

#[test]
fn a_twin_of_a_committed_batch_is_stale() {
    run(async |context| {
        let store = open(&context, "a").await.unwrap();
        let (batch, twin) =
            (seal(&store, &store.tip(), &writes(1)).await, seal(&store, &store.tip(), &writes(1)).await);
        assert_eq!(batch.commitment(), twin.commitment());
        let child = seal(&store, &twin, &writes(2)).await;
        store.commit(&batch).await.unwrap();
        let stale = StaleBatch { height: 1, tip_height: 1 };
        assert_eq!(twin.get_many(&[key(1)]).await.unwrap_err().reason, stale.to_string());
        assert!(store.commit(&child).await.is_err());
        assert!(store.commit(&twin).await.is_err());
        assert_eq!(store.tip().commitment(), batch.commitment());
    });
}

#[test]
fn only_a_child_of_the_tip_can_be_committed() {
    run(async |context| {
        let store = open(&context, "a").await.unwrap();
        let genesis = store.tip();
        let child = seal(&store, &genesis, &writes(1)).await;
        let grandchild = seal(&store, &child, &writes(2)).await;
        assert!(store.commit(&genesis).await.is_err(), "the tip itself");
        let error = store.commit(&grandchild).await.unwrap_err();
        assert!(matches!(error, CommitError::NotOnTip { height: 2, tip_height: 0, .. }), "{error}");
        assert_eq!((store.height(), store.tip().commitment()), (0, genesis.commitment()), "nothing changed");
        store.commit(&child).await.unwrap();
        store.commit(&grandchild).await.unwrap();
    });
}

#[test]
#[should_panic(expected = "a batch is used with the store that sealed it")]
fn a_batch_of_another_store_is_refused() {
    run(async |context| {
        let (mine, other) = (open(&context, "a").await.unwrap(), open(&context, "b").await.unwrap());
        drop(mine.seal(&other.tip(), &StateDiff::default()).await);
    });
}

/// QMDB holds parents by weak pointers: a child of a batch whose handle was dropped could not be sealed on.
#[test]
fn a_batch_keeps_what_it_is_built_on() {
    run(async |context| {
        let (store, dull) = (open(&context, "a").await.unwrap(), twin(&context, "a", "b").await);
        let mut tip = store.tip();
        for height in 1..=20 {
            // The handle of the parent is dropped here.
            tip = seal(&store, &tip, &writes(height)).await;
            assert_eq!(tip.commitment(), advance(&dull, height).await.commitment());
        }
        assert_eq!(read::<Store>(&tip, 40).await, read::<Store>(&dull.tip(), 40).await);
        assert_eq!(store.height(), 0);
    });
}

#[test]
fn a_deep_chain_of_unapplied_batches_reads_seals_and_commits_one_by_one() {
    const DEPTH: u64 = 200;
    run(async |context| {
        let (store, dull) = (open(&context, "a").await.unwrap(), twin(&context, "a", "b").await);
        let mut chain = vec![store.tip()];
        for height in 1..=DEPTH {
            chain.push(seal(&store, chain.last().unwrap(), &writes(height)).await);
        }
        let states = play(&dull, DEPTH + 10).await;
        let mut values = Vec::new();
        for batch in &chain {
            values.push((batch.commitment(), read::<Store>(batch, 40).await));
        }
        assert_eq!(values, states[..=DEPTH as usize], "before any is applied");
        let mut tip = chain.last().unwrap().clone();
        for height in 1..=DEPTH {
            let batch = &chain[height as usize];
            store.commit(batch).await.unwrap();
            assert_eq!(read::<Store>(batch, 40).await, states[height as usize].1);
            if height % 20 == 0 {
                // The tip goes on, over batches that are applied by now and others that are not.
                let next = DEPTH + height / 20;
                tip = seal(&store, &tip, &writes(next)).await;
                let state = (tip.commitment(), read::<Store>(&tip, 40).await);
                assert_eq!(state, states[next as usize]);
            }
        }
        drop((store, chain, tip));
        let store = open(&context, "a").await.unwrap();
        assert_eq!((store.height(), store.tip().commitment()), (DEPTH, states[DEPTH as usize].0));
    });
}

#[test]
fn a_long_chain_is_dropped_on_the_stack_of_a_worker() {
    let test = || {
        run(async |context| {
            let store = open(&context, "a").await.unwrap();
            let mut tip = store.tip();
            for height in 1..=600 {
                tip = seal(&store, &tip, &one(height % 40, None)).await;
            }
            drop(tip);
        });
    };
    let small = std::thread::Builder::new().stack_size(2 << 20).spawn(test).unwrap();
    small.join().unwrap();
}

// ---- Failures ----

fn every_write_fails() -> FaultConfig {
    let write = WriteConfig {
        failure_rate: probability!(1.0),
        retention_rate: probability!(0.0),
        mode: PartialWriteMode::Prefix,
    };
    FaultConfig::default().write(write)
}

#[test]
fn a_store_that_failed_answers_closed_and_is_whole_when_it_is_opened_again() {
    run(async |context| {
        let failures = [every_write_fails(), FaultConfig::default().sync(probability!(1.0))];
        for (attempt, faults) in failures.into_iter().enumerate() {
            let store = open(&context, "a").await.unwrap();
            let before = advance(&store, store.height() + 1).await.commitment();
            let height = store.height();
            let next = seal(&store, &store.tip(), &writes(height + 1)).await;

            *context.storage_fault_config().write() = faults;
            let error = store.commit(&next).await.unwrap_err();
            assert!(matches!(error, CommitError::Store { .. }), "{attempt}: {error}");
            let text = error.to_string();
            assert!(
                text.contains("injected") && text.contains("(in a-") && text.contains("make room"),
                "{text}"
            );
            *context.storage_fault_config().write() = FaultConfig::default();

            assert_eq!(store.commit(&next).await, Err(CommitError::Closed));
            assert_eq!(store.seal(&next, &StateDiff::default()).await.unwrap_err(), SealError::Closed);
            assert_eq!(store.prune(&before).await, Err(CommitError::Closed));
            let error = store.tip().get_many(&[key(1)]).await.unwrap_err();
            assert_eq!((error.is_closed, error.reason), (true, CommitError::Closed.to_string()));
            assert_eq!((store.height(), store.tip().commitment()), (height, before));
            let sealed = next.commitment();
            drop((store, next));

            let store = open(&context, "a").await.unwrap();
            assert_eq!((store.height(), store.tip().commitment()), (height, before));
            assert_eq!(advance(&store, height + 1).await.commitment(), sealed);
        }
    });
}

#[test]
fn a_refusal_does_not_close_the_store() {
    run(async |context| {
        let store = open(&context, "a").await.unwrap();
        let genesis = store.tip();
        store.commit(&genesis).await.unwrap_err();
        store.seal(&genesis, &change(1, None, Some("x".into()))).await.unwrap_err();
        advance(&store, 1).await;
    });
}

/// The largest work that sees any mixture of two blocks sees it here: every block writes its height everywhere.
#[test]
fn readers_never_see_two_blocks_and_never_wait_for_ever() {
    const KEYS: u64 = 20;
    const BLOCKS: u64 = 150;
    let everywhere = |height: u64| (0..KEYS).map(|n| (n, Some(text(height)))).collect();
    let directory = tempfile::tempdir().unwrap();
    let config = commonware_runtime::tokio::Config::default().with_storage_directory(directory.path());
    commonware_runtime::tokio::Runner::new(config).start(|context| async move {
        let store = open(&context, "a").await.unwrap();
        let first = seal(&store, &store.tip(), &everywhere(1)).await;
        store.commit(&first).await.unwrap();
        let readers: Vec<_> = (0..4)
            .map(|reader| {
                let store = store.clone();
                context.child("reader").spawn(move |_| async move {
                    let (mut seen, mut stale) = (0u64, 0u64);
                    while store.height() < BLOCKS {
                        let tip = store.tip();
                        let prefetched = if reader % 2 == 0 { vec![] } else { keys(KEYS / 2) };
                        let work = with_reader(&tip, &prefetched, |state| {
                            keys(KEYS).into_iter().map(|key| state.read(key)).collect::<Result<Vec<_>, _>>()
                        });
                        match work.await.and_then(|values| values) {
                            Ok(values) => {
                                assert!(values.windows(2).all(|pair| pair[0] == pair[1]), "{values:?}");
                                seen += 1;
                            }
                            Err(error) => {
                                assert!(error.reason.contains("is stale"), "{error}");
                                stale += 1;
                            }
                        }
                    }
                    (seen, stale)
                })
            })
            .collect();
        let writer = async {
            for height in 2..=BLOCKS {
                let batch = seal(&store, &store.tip(), &everywhere(height)).await;
                store.commit(&batch).await.unwrap();
            }
            futures::future::join_all(readers).await
        };
        let timeout = context.sleep(Duration::from_secs(60));
        let counts = futures::future::select(Box::pin(writer), Box::pin(timeout)).await;
        let futures::future::Either::Left((counts, _)) = counts else {
            panic!("readers and writer wait for ever")
        };
        for count in counts {
            let (seen, stale) = count.unwrap();
            println!("a reader saw {seen} states and was too late for {stale}");
            assert!(seen > 0);
        }
    });
}

#[test]
fn on_real_files_it_reopens_and_a_dropped_commit_closes_it() {
    let directory = tempfile::tempdir().unwrap();
    let runner = || {
        let config = commonware_runtime::tokio::Config::default().with_storage_directory(directory.path());
        commonware_runtime::tokio::Runner::new(config)
    };
    let expected = run(async |context| play(&open(&context, "a").await.unwrap(), 12).await);
    runner().start(|context| async move {
        let store = open(&context, "a").await.unwrap();
        for height in 1..=10 {
            advance(&store, height).await;
        }
    });
    let commitment = runner().start(|context| async move {
        let store = open(&context, "a").await.unwrap();
        assert_eq!(store.height(), 10);
        let batch = seal(&store, &store.tip(), &writes(11)).await;
        let mut commit = Box::pin(store.commit(&batch));
        assert!(futures::poll!(&mut commit).is_pending(), "a real disk makes it wait");
        drop(commit);
        assert_eq!(store.commit(&batch).await, Err(CommitError::Closed));
        batch.commitment()
    });
    let expected: Vec<_> = expected.into_iter().map(|(commitment, _)| commitment).collect();
    assert_eq!(commitment, expected[11]);
    runner().start(|context| async move {
        let store = open(&context, "a").await.unwrap();
        let height = store.height();
        assert!(height == 10 || height == 11, "the dropped commit is there or not, {height}");
        assert_eq!(store.tip().commitment(), expected[height as usize]);
        for height in height + 1..=12 {
            assert_eq!(advance(&store, height).await.commitment(), expected[height as usize]);
        }
        // Back, on files that were open a moment ago.
        drop(store);
        for height in [12, 9, 3, 0] {
            let (config, genesis, end) = (config("a"), genesis(30, "a"), expected[height].ops_end);
            let store =
                QmdbStore::open_at(context.child("back"), &config, &genesis, Some(end)).await.unwrap();
            assert_eq!(store.tip().commitment(), expected[height]);
        }
    });
}
