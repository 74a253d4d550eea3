//! The store in memory and the store on disk say the same, and the root on disk depends on the history alone.

use crate::support::*;
use alloy_primitives::{B256, Bytes};
use almanac_primitives::{StateChange, StateCommitment, StateDiff, params::STATE_VALUE_BYTES_MAX};
use almanac_state::{
    CommitError, MemoryBatch, MemoryStore, QmdbBatch, QmdbConfig, QmdbStore, SealError, SealedBatch as _,
    StateStore as _, StateView as _,
};
use commonware_runtime::{
    Runner as _, Supervisor as _,
    deterministic::{self, Context},
};
use commonware_utils::{NZU64, NZUsize};
use proptest::{collection::vec, option, prelude::*};
use std::{collections::BTreeMap, fmt::Write as _, fs, path::PathBuf};

/// Few keys, so that histories collide.
const KEYS: u64 = 10;

fn some_writes() -> impl Strategy<Value = Writes> {
    let value = option::weighted(0.7, vec(any::<u8>(), 0..4).prop_map(Bytes::from));
    vec((0..KEYS, value), 0..5).prop_map(|writes| writes.into_iter().collect())
}

// ---- Memory and disk ----

#[derive(Clone, Debug)]
enum Action {
    /// Seal on the n-th batch there is (modulo their number).
    Seal { parent: usize, writes: Writes },
    /// Seal a diff with one thing wrong on the n-th batch.
    SealWrong { parent: usize, number: u64, is_too_large: bool },
    /// Try to commit the n-th batch, whatever it is.
    Commit { batch: usize },
    /// Commit a batch that can be.
    Advance { child: usize },
    /// Forget the handle of the n-th batch.
    Forget { batch: usize },
    /// Stop and open again: what was not committed is gone.
    Reopen,
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let action = prop_oneof![
        8 => (any::<usize>(), some_writes()).prop_map(|(parent, writes)| Action::Seal { parent, writes }),
        1 => (any::<usize>(), 0..KEYS, any::<bool>()).prop_map(|(parent, number, is_too_large)| {
            Action::SealWrong { parent, number, is_too_large }
        }),
        2 => any::<usize>().prop_map(|batch| Action::Commit { batch }),
        3 => any::<usize>().prop_map(|child| Action::Advance { child }),
        1 => any::<usize>().prop_map(|batch| Action::Forget { batch }),
        1 => Just(Action::Reopen),
    ];
    vec(action, 0..50)
}

/// One state, as both stores have it. A forgotten one has no handles, and may still be what others are built on.
struct Pair {
    parent: Option<usize>,
    height: u64,
    handles: Option<(MemoryBatch, QmdbBatch<Context>)>,
}

struct Both {
    context: Context,
    memory: MemoryStore,
    /// `None` only while it is opened again.
    qmdb: Option<QmdbStore<Context>>,
    pairs: Vec<Pair>,
    tip: usize,
    /// What the disk says for each root in memory: the same history, the same answer.
    commitments: BTreeMap<B256, StateCommitment>,
}

fn start() -> Values {
    genesis(5, "agree")
}

async fn open_qmdb(context: &Context) -> QmdbStore<Context> {
    QmdbStore::open(context.child("qmdb"), &config("a"), &start()).await.unwrap()
}

impl Both {
    async fn new(context: Context) -> Self {
        let memory = MemoryStore::from_genesis(start());
        let qmdb = open_qmdb(&context).await;
        let handles = Some((memory.tip(), qmdb.tip()));
        let pairs = vec![Pair { parent: None, height: 0, handles }];
        Self { context, memory, qmdb: Some(qmdb), pairs, tip: 0, commitments: BTreeMap::new() }
    }

    fn qmdb(&self) -> &QmdbStore<Context> {
        self.qmdb.as_ref().expect("it is open")
    }

    async fn apply(&mut self, action: Action) {
        let count = self.pairs.len();
        match action {
            Action::Seal { parent, writes } => self.seal(parent % count, &writes).await,
            Action::SealWrong { parent, number, is_too_large } => {
                self.seal_wrong(parent % count, number, is_too_large).await;
            }
            Action::Commit { batch } => self.commit(batch % count).await,
            Action::Advance { child } => {
                let children: Vec<_> =
                    (0..count).filter(|batch| self.pairs[*batch].parent == Some(self.tip)).collect();
                if !children.is_empty() {
                    self.commit(children[child % children.len()]).await;
                }
            }
            Action::Forget { batch } => self.pairs[batch % count].handles = None,
            Action::Reopen => self.reopen().await,
        }
    }

    async fn seal(&mut self, parent: usize, writes: &Writes) {
        let Some((memory, qmdb)) = self.pairs[parent].handles.clone() else { return };
        // A stale parent cannot be read. Any diff will do: that it is stale is said before anything else.
        let keys: Vec<_> = writes.keys().map(|number| key(*number)).collect();
        let old = memory.get_many(&keys).await.unwrap_or_else(|_| vec![None; keys.len()]);
        let changes = keys.into_iter().zip(old).zip(writes.values().cloned());
        let changes = changes.map(|((key, old), new)| StateChange { key, old, new });
        let diff = StateDiff::new(changes.collect());
        match (self.memory.seal(&memory, &diff).await, self.qmdb().seal(&qmdb, &diff).await) {
            (Ok(memory), Ok(qmdb)) => {
                let height = self.pairs[parent].height + 1;
                let handles = Some((memory, qmdb));
                self.pairs.push(Pair { parent: Some(parent), height, handles });
            }
            (memory, qmdb) => assert_eq!(memory.unwrap_err(), qmdb.unwrap_err()),
        }
    }

    /// The second of three changes is wrong: both stores must name it, and for the same reason.
    async fn seal_wrong(&self, parent: usize, number: u64, is_too_large: bool) {
        let Some((memory, qmdb)) = self.pairs[parent].handles.clone() else { return };
        let numbers = [number, (number + 1) % KEYS, (number + 2) % KEYS];
        let keys = numbers.map(key);
        let old = memory.get_many(&keys).await.unwrap_or_else(|_| vec![None; 3]);
        let mut changes: Vec<_> = keys
            .into_iter()
            .zip(old)
            .map(|(key, old)| StateChange { key, old, new: Some(Bytes::from("a new value")) })
            .collect();
        if is_too_large {
            changes[1].new = Some(vec![0; STATE_VALUE_BYTES_MAX + 1].into());
        } else {
            changes[1].old = Some(Bytes::from("never written"));
        }
        let diff = StateDiff::new(changes);
        let errors = (
            self.memory.seal(&memory, &diff).await.unwrap_err(),
            self.qmdb().seal(&qmdb, &diff).await.unwrap_err(),
        );
        assert_eq!(errors.0, errors.1);
        let is_expected = match errors.0 {
            SealError::ValueTooLarge { key, .. } => is_too_large && key == keys[1],
            SealError::OldValueDiffers { key, .. } => !is_too_large && key == keys[1],
            SealError::StaleParent(_) => !self.is_live(parent),
            _ => false,
        };
        assert!(is_expected, "{}", errors.0);
    }

    async fn commit(&mut self, batch: usize) {
        let Some((memory, qmdb)) = &self.pairs[batch].handles else { return };
        let answers = (self.memory.commit(memory).await, self.qmdb().commit(qmdb).await);
        assert_eq!(without_roots(answers.0.clone()), without_roots(answers.1));
        assert_eq!(answers.0.is_ok(), self.pairs[batch].parent == Some(self.tip));
        if answers.0.is_ok() {
            self.tip = batch;
        }
    }

    async fn reopen(&mut self) {
        // Only the tip is kept; in memory, that is what is left when everything above it is dropped.
        self.pairs = vec![Pair { parent: None, height: self.pairs[self.tip].height, handles: None }];
        self.tip = 0;
        self.qmdb = None;
        self.qmdb = Some(open_qmdb(&self.context).await);
        self.pairs[0].handles = Some((self.memory.tip(), self.qmdb().tip()));
    }

    fn is_live(&self, batch: usize) -> bool {
        batch == self.tip || self.pairs[batch].parent.is_some_and(|parent| self.is_live(parent))
    }

    /// Every batch says the same in both, value by value or error by error.
    async fn check(&mut self) {
        let keys = keys(KEYS);
        for batch in 0..self.pairs.len() {
            let Some((memory, qmdb)) = &self.pairs[batch].handles else { continue };
            let answers = (memory.get_many(&keys).await, qmdb.get_many(&keys).await);
            assert_eq!(answers.0, answers.1, "batch {batch}");
            assert_eq!(answers.0.is_ok(), self.is_live(batch), "batch {batch}");
            let root = memory.commitment().state_root;
            let first = *self.commitments.entry(root).or_insert(qmdb.commitment());
            assert_eq!(first, qmdb.commitment(), "one history, one commitment");
        }
        let distinct: std::collections::BTreeSet<_> =
            self.commitments.values().map(|commitment| commitment.state_root).collect();
        assert_eq!(distinct.len(), self.commitments.len(), "two histories, two roots");
        assert_eq!(self.qmdb().height(), self.pairs[self.tip].height);
        let tips = (self.memory.tip().commitment().state_root, self.qmdb().tip().commitment());
        assert_eq!(self.commitments.get(&tips.0).copied().unwrap_or(tips.1), tips.1);
    }
}

/// The roots of the two stores are of different kinds.
fn without_roots(answer: Result<(), CommitError>) -> Result<(), CommitError> {
    answer.map_err(|error| match error {
        CommitError::NotOnTip { height, tip_height, .. } => {
            CommitError::NotOnTip { height, root: B256::ZERO, tip_height, tip_root: B256::ZERO }
        }
        other => other,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn memory_and_disk_agree(actions in actions()) {
        deterministic::Runner::default().start(|context| async move {
            let mut both = Both::new(context).await;
            both.check().await;
            for action in actions {
                both.apply(action).await;
                both.check().await;
            }
        });
    }
}

// ---- The root and what must not change it ----

/// What happens besides the history.
#[derive(Clone, Debug)]
enum Aside {
    Nothing,
    /// Stop and open again.
    Reopen,
    /// Seal a branch that is never committed, before or after the block.
    Abandon(Writes, Writes),
    /// Commit another block, and go back.
    Rewind(Writes),
    /// Prune up to here.
    Prune,
    /// Read everything.
    Read,
}

fn asides() -> impl Strategy<Value = Aside> {
    prop_oneof![
        3 => Just(Aside::Nothing),
        2 => Just(Aside::Reopen),
        2 => (some_writes(), some_writes()).prop_map(|(first, second)| Aside::Abandon(first, second)),
        1 => some_writes().prop_map(Aside::Rewind),
        1 => Just(Aside::Prune),
        1 => Just(Aside::Read),
    ]
}

fn other_config() -> impl Strategy<Value = QmdbConfig> {
    let sizes = (0usize..3, 0usize..3, 0usize..3, 0usize..3);
    sizes.prop_map(|(pages, cached, buffer, files)| QmdbConfig {
        page_cache_bytes: [0, 8 << 10, 1 << 20][pages],
        open_cache_keys: [0, 1, 1 << 10][cached],
        write_buffer_bytes: [NZUsize!(1), NZUsize!(5_000), NZUsize!(1 << 16)][buffer],
        file_operations: [NZU64!(8), NZU64!(33), NZU64!(1 << 16)][files],
        ..QmdbConfig::new("b")
    })
}

/// A store that can be dropped and opened again in the middle of a history.
struct Eventful {
    context: Context,
    config: QmdbConfig,
    store: Option<QmdbStore<Context>>,
}

impl Eventful {
    fn store(&self) -> &QmdbStore<Context> {
        self.store.as_ref().expect("it is open")
    }

    async fn open(&mut self, ops_end: Option<u64>) {
        self.store = None;
        let opened = QmdbStore::open_at(self.context.child("b"), &self.config, &start(), ops_end).await;
        self.store = Some(opened.unwrap());
    }

    async fn go_aside(&mut self, aside: &Aside) {
        let store = self.store().clone();
        match aside {
            Aside::Nothing => {}
            Aside::Reopen => {
                drop(store);
                self.open(None).await;
            }
            Aside::Abandon(first, second) => {
                let branch = seal(&store, &store.tip(), first).await;
                seal(&store, &branch, second).await;
            }
            Aside::Rewind(writes) => {
                let tip = store.tip().commitment();
                let mistake = seal(&store, &store.tip(), writes).await;
                store.commit(&mistake).await.unwrap();
                drop((store, mistake));
                self.open(Some(tip.ops_end)).await;
                assert_eq!(self.store().tip().commitment(), tip);
            }
            Aside::Prune => while store.prune(&store.tip().commitment()).await.unwrap() {},
            Aside::Read => drop(read::<QmdbStore<Context>>(&store.tip(), 100).await),
        }
    }

    /// Makes a block, with the aside before it, or between sealing it and committing it.
    async fn step(&mut self, writes: &Writes, aside: &Aside, is_between: bool) -> StateCommitment {
        let keeps_batches = matches!(aside, Aside::Abandon(..) | Aside::Prune | Aside::Read);
        if !(is_between && keeps_batches) {
            self.go_aside(aside).await;
        }
        let store = self.store().clone();
        let batch = seal(&store, &store.tip(), writes).await;
        if is_between && keeps_batches {
            self.go_aside(aside).await;
        }
        store.commit(&batch).await.unwrap();
        batch.commitment()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn the_root_depends_on_the_history_alone(
        history in vec((some_writes(), asides(), any::<bool>()), 0..40),
        config in other_config(),
    ) {
        deterministic::Runner::default().start(|context| async move {
            let plain = QmdbStore::open(context.child("a"), &crate::support::config("a"), &start()).await.unwrap();
            let mut other = Eventful { context: context.child("other"), config, store: None };
            other.open(None).await;
            assert_eq!(plain.tip().commitment(), other.store().tip().commitment());
            // A whole branch in the air, committed in the end.
            let mut floating = Vec::new();
            let air = QmdbStore::open(context.child("c"), &crate::support::config("c"), &start()).await.unwrap();
            for (height, (writes, aside, is_between)) in history.iter().enumerate() {
                let batch = seal(&plain, &plain.tip(), writes).await;
                plain.commit(&batch).await.unwrap();
                let commitment = other.step(writes, aside, *is_between).await;
                assert_eq!(batch.commitment(), commitment, "block {}", height + 1);
                let parent = floating.last().cloned().unwrap_or(air.tip());
                floating.push(seal(&air, &parent, writes).await);
                assert_eq!(floating[height].commitment(), commitment, "block {} in the air", height + 1);
            }
            for batch in &floating {
                air.commit(batch).await.unwrap();
            }
            let stores = [&plain, other.store(), &air];
            let commitments = stores.map(|store| store.tip().commitment());
            assert!(commitments.iter().all(|commitment| *commitment == commitments[0]));
        });
    }
}

// ---- Roots that are for good ----

#[test]
fn golden_commitments() {
    let vectors = deterministic::Runner::default().start(vectors);
    if is_update() {
        fs::write(path(), serde_json::to_string_pretty(&vectors).unwrap() + "\n").unwrap();
        return;
    }
    let recorded = fs::read_to_string(path()).expect("specs/vectors/state.json is part of the repository");
    let recorded: BTreeMap<String, String> = serde_json::from_str(&recorded).unwrap();
    let mut differences = String::new();
    for (name, now) in &vectors {
        let before = recorded.get(name).map_or("nothing", |text| text.as_str());
        if before != now {
            writeln!(differences, "  {name}\n    recorded {before}\n    now      {now}").unwrap();
        }
    }
    assert!(
        differences.is_empty() && recorded.len() == vectors.len(),
        "these commitments are not what the chain was built on:\n{differences}\
         A change forks the chain. If it is meant, run\n\
         UPDATE_VECTORS=1 cargo test -p almanac-state golden\n\
         and review the difference of specs/vectors/state.json."
    );
}

/// Commitments after some blocks of the common history: the first ones, and later ones with more than one chunk
/// of operations below them, and a floor that has moved.
async fn vectors(context: Context) -> BTreeMap<String, String> {
    let (config, genesis) = (QmdbConfig::new("golden"), genesis(30, "golden"));
    let store = QmdbStore::open(context.child("golden"), &config, &genesis).await.unwrap();
    let mut vectors = BTreeMap::from([("block 000".to_owned(), shown(store.tip().commitment()))]);
    for height in 1..=100 {
        let commitment = advance(&store, height).await.commitment();
        if [1, 2, 3, 10, 50, 100].contains(&height) {
            vectors.insert(format!("block {height:03}"), shown(commitment));
        }
    }
    vectors
}

fn shown(commitment: StateCommitment) -> String {
    let StateCommitment { state_root, ops_root, ops_start, ops_end } = commitment;
    format!("state root {state_root}, operations root {ops_root}, operations {ops_start}..{ops_end}")
}

fn path() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../specs/vectors/state.json").into()
}

#[allow(clippy::disallowed_methods, reason = "decides whether a file is rewritten, never what it says")]
fn is_update() -> bool {
    std::env::var("UPDATE_VECTORS").is_ok_and(|value| value == "1")
}
