//! The store against raw QMDB, in one run: `make bench-state`.
//!
//! `ALMANAC_BENCH_KEYS=100000,1000000` sets the sizes, `ALMANAC_BENCH_BLOCKS` the number of blocks of 5,000
//! updates. Rounds alternate between the two, and ratios are of medians, since machines are noisy.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a benchmark looks at the clock")]
#![allow(clippy::float_arithmetic, clippy::cast_possible_truncation, reason = "figures for people")]
#![allow(missing_docs, reason = "not a library")]

use alloy_primitives::{Address, Bytes, U256, keccak256};
use almanac_primitives::{Account, StateChange, StateDiff, StateKey, state::Meta};
use almanac_state::{QmdbConfig, QmdbStore, StateStore as _, qmdb::Value};
use commonware_cryptography::Sha256;
use commonware_parallel::Sequential;
use commonware_runtime::{Runner as _, Spawner, Supervisor as _, buffer::paged::CacheRef, tokio};
use commonware_storage::{
    Context,
    journal::contiguous::variable::Config as Log,
    mmr::{self, full::Config as Merkle},
    qmdb::{
        current::{VariableConfig, unordered::variable},
        floor::Proportional,
    },
    translator::EightCap,
};
use commonware_utils::{NZU16, NZUsize, sequence::FixedBytes};
use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    sync::Arc,
    time::{Duration, Instant},
};

const UPDATES: u64 = 5_000;

type Raw<E> = variable::Db<mmr::Family, E, FixedBytes<32>, Value, Sha256, EightCap, 32, Sequential>;

fn main() {
    let keys = std::env::var("ALMANAC_BENCH_KEYS").unwrap_or_else(|_| "100000,1000000".to_owned());
    for keys in keys.split(',').map(|text| text.parse().expect("a number of keys")) {
        let blocks =
            std::env::var("ALMANAC_BENCH_BLOCKS").map_or(keys / UPDATES, |text| text.parse().unwrap());
        run(keys, blocks);
    }
}

fn run(keys: u64, blocks: u64) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let start = || tokio::Runner::new(tokio::Config::new().with_storage_directory(directory.path()));
    let genesis = Arc::new(genesis(keys));
    println!("{keys} accounts, {blocks} blocks of {UPDATES} updates, durable after each");
    println!("  resident before opening: {} MB", resident_mb());

    let start_state = genesis.clone();
    start().start(|context| async move {
        let genesis = start_state;
        let config = QmdbConfig::new("ours");
        let begin = Instant::now();
        let store = QmdbStore::open(context.child("ours"), &config, &genesis).await.unwrap();
        println!(
            "  load genesis, ours: {:.1} s; resident {} MB",
            begin.elapsed().as_secs_f64(),
            resident_mb()
        );
        let mut raw = open_raw(context.child("raw"), &config).await;
        raw = load_raw(raw, &genesis).await;

        let mut nonces: BTreeMap<u64, u64> = BTreeMap::new();
        let (mut seal, mut commit, mut raw_root, mut raw_commit) = (vec![], vec![], vec![], vec![]);
        for block in 0..blocks {
            let diff = diff(block, keys, &mut nonces);
            let begin = Instant::now();
            let batch = store.seal(&store.tip(), &diff).await.unwrap();
            seal.push(begin.elapsed());
            let begin = Instant::now();
            store.commit(&batch).await.unwrap();
            commit.push(begin.elapsed());

            let begin = Instant::now();
            let mut batch = raw.new_batch();
            for change in diff.changes() {
                let key = FixedBytes::new(change.key.hashed().0);
                batch = batch.write(key, change.new.clone().map(Value));
            }
            let sealed = batch.merkleize(&raw, None, &mut Proportional).await.unwrap();
            raw_root.push(begin.elapsed());
            let begin = Instant::now();
            raw = raw.apply_batch(sealed).await.unwrap().commit().await.unwrap();
            raw_commit.push(begin.elapsed());
        }
        let (ours, theirs) = (median(&seal) + median(&commit), median(&raw_root) + median(&raw_commit));
        println!(
            "  block, ours: root {:.2} ms (old values checked), apply + durable {:.2} ms",
            ms(median(&seal)),
            ms(median(&commit))
        );
        println!(
            "  block, raw QMDB: root {:.2} ms, apply + durable {:.2} ms",
            ms(median(&raw_root)),
            ms(median(&raw_commit))
        );
        println!("  ratio ours / raw: {:.2} (goal 1.3)", ours.as_secs_f64() / theirs.as_secs_f64());
    });
    reopen(keys, &genesis, &start);
    println!("  on disk: ours {} MB, raw {} MB", disk_mb(&directory, "ours"), disk_mb(&directory, "raw"));
}

/// Opens both again, in turn, each in a runtime of its own.
fn reopen(keys: u64, genesis: &Arc<BTreeMap<StateKey, Bytes>>, start: &dyn Fn() -> tokio::Runner) {
    let (mut ours, mut raw) = (vec![], vec![]);
    for _ in 0..3 {
        let (genesis, times) = (genesis.clone(), (&mut ours, &mut raw));
        start().start(|context| async move {
            let config = QmdbConfig { open_cache_keys: (keys as usize) * 2, ..QmdbConfig::new("ours") };
            let begin = Instant::now();
            let store = QmdbStore::open(context.child("ours"), &config, &genesis).await.unwrap();
            times.0.push(begin.elapsed());
            drop(store);
            let begin = Instant::now();
            let raw = open_raw(context.child("raw"), &config).await;
            times.1.push(begin.elapsed());
            drop(raw);
        });
    }
    println!(
        "  reopen: ours {:.2} s, raw QMDB {:.2} s, ratio {:.2} (goal 1.5); resident {} MB",
        median(&ours).as_secs_f64(),
        median(&raw).as_secs_f64(),
        median(&ours).as_secs_f64() / median(&raw).as_secs_f64(),
        resident_mb()
    );
}

fn address(n: u64) -> Address {
    Address::from_slice(&keccak256(n.to_be_bytes())[12..])
}

fn account(nonce: u64) -> Bytes {
    Account { nonce, balance: U256::from(1_000_000_000_000_000_000u64), ..Account::default() }.encode()
}

fn genesis(keys: u64) -> BTreeMap<StateKey, Bytes> {
    let mut state: BTreeMap<_, _> = (0..keys).map(|n| (StateKey::Account(address(n)), account(0))).collect();
    state.insert(StateKey::Meta(Meta::Genesis), Bytes::from_static(b"bench"));
    state
}

/// A block of updates to accounts that its number chooses.
fn diff(block: u64, keys: u64, nonces: &mut BTreeMap<u64, u64>) -> StateDiff {
    let mut chosen = std::collections::BTreeSet::new();
    let mut n = 0u64;
    while (chosen.len() as u64) < UPDATES.min(keys) {
        let hash = keccak256([block.to_be_bytes(), n.to_be_bytes()].concat());
        chosen.insert(U256::from_be_bytes(hash.0).as_limbs()[0] % keys);
        n += 1;
    }
    let changes = chosen.into_iter().map(|n| {
        let nonce = nonces.entry(n).or_default();
        let old = Some(account(*nonce));
        *nonce += 1;
        StateChange { key: StateKey::Account(address(n)), old, new: Some(account(*nonce)) }
    });
    StateDiff::new(changes.collect())
}

async fn open_raw<E: Context + Spawner>(context: E, config: &QmdbConfig) -> Raw<E> {
    let pages = NonZeroUsize::new(config.page_cache_bytes / 4096).unwrap();
    let cache = CacheRef::new(NZU16!(4096), pages);
    let settings = VariableConfig {
        merkle_config: Merkle {
            journal_partition: "raw-merkle".to_owned(),
            metadata_partition: "raw-merkle-pins".to_owned(),
            items_per_blob: config.file_operations,
            write_buffer: config.write_buffer_bytes,
            replay_buffer: NZUsize!(1 << 20),
            strategy: Sequential,
            page_cache: cache.clone(),
        },
        journal_config: Log {
            partition: "raw-log".to_owned(),
            items_per_section: config.file_operations,
            compression: None,
            codec_config: ((), ()),
            page_cache: cache,
            write_buffer: config.write_buffer_bytes,
            replay_buffer: NZUsize!(1 << 20),
        },
        grafted_metadata_partition: "raw-grafted".to_owned(),
        translator: EightCap,
        init_cache: NonZeroUsize::new(config.open_cache_keys),
        init_buffer: NZUsize!(1 << 20),
        init_concurrency: (),
    };
    Raw::init(context, settings, None).await.unwrap()
}

async fn load_raw<E: Context + Spawner>(mut raw: Raw<E>, genesis: &BTreeMap<StateKey, Bytes>) -> Raw<E> {
    let entries: Vec<_> = genesis.iter().collect();
    for chunk in entries.chunks(50_000) {
        let mut batch = raw.new_batch();
        for (key, value) in chunk {
            batch = batch.write(FixedBytes::new(key.hashed().0), Some(Value((*value).clone())));
        }
        let sealed = batch.merkleize(&raw, None, &mut Proportional).await.unwrap();
        raw = raw.apply_batch(sealed).await.unwrap();
    }
    raw.commit().await.unwrap()
}

fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

fn resident_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default() / 1_024
}

fn disk_mb(directory: &tempfile::TempDir, prefix: &str) -> u64 {
    let partitions = std::fs::read_dir(directory.path()).unwrap().flatten();
    let matching = partitions.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    let files = matching.flat_map(|entry| std::fs::read_dir(entry.path()).unwrap().flatten());
    files.map(|file| file.metadata().map_or(0, |metadata| metadata.len())).sum::<u64>() >> 20
}
