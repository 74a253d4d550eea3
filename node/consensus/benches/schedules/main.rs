//! What schedules cost a chain on disk, through whole blocks with root and durable commit: `make bench-calendar`.
//!
//! Every schedule is created by a transaction. `ALMANAC_BENCH_PENDING=1000,1000000,10000000` sets the sizes. With the
//! argument `market`, it measures AIP-125's lane instead (`make bench-market`), with `orderless` the history of orderless
//! nonces (`make bench-orderless`), with `signatures` transactions that wait for them (`make bench-signatures`).
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a benchmark looks at the clock")]
#![allow(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "figures for people")]
#![allow(missing_docs, reason = "not a library")]

mod chain;
mod lateness;
mod market;
mod orderless;
mod orders;
mod overhead;
mod signatures;

use almanac_primitives::TimestampMs;
use almanac_state::{QmdbConfig, QmdbStore};
use chain::{Chain, LARGE};
use commonware_runtime::{Runner as _, Supervisor as _, tokio};
use std::{
    path::Path,
    time::{Duration, Instant},
};

const DAY_S: u64 = 24 * 60 * 60;

/// Pending on the chain that every size is compared with.
const SMALL: u64 = 1_000;

fn main() {
    let sizes = std::env::var("ALMANAC_BENCH_PENDING").unwrap_or_else(|_| "1000,100000,1000000".to_owned());
    let sizes: Vec<u64> = sizes.split(',').map(|text| text.parse().expect("a number of schedules")).collect();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let is_asked = |part: &str| std::env::args().any(|argument| argument == part);
    if is_asked("market") {
        return market::measure(directory.path(), &sizes);
    }
    if is_asked("orderless") {
        return orderless::measure(directory.path());
    }
    if is_asked("signatures") {
        return signatures::measure(directory.path());
    }
    let start = || tokio::Runner::new(tokio::Config::new().with_storage_directory(directory.path()));
    let path = directory.path().to_owned();

    start().start(|context| async move {
        let mut small = Chain::open(&context, "small").await;
        small.load(SMALL).await;
        let mut chain = Chain::open(&context, LARGE).await;
        let mut pending = 0;
        for size in &sizes {
            let [small_groups, groups] = [small.groups().await, chain.groups().await];
            let (disk, memory) = (disk_bytes(&path), resident_bytes());
            let rate = chain.load(size - pending).await;
            let added = (size - pending) as f64;
            pending = *size;
            println!("{size} pending schedules");
            println!("  created by transactions of 300 each: {rate:.0}/s");
            let (disk, memory) = (disk_bytes(&path) - disk, resident_bytes() - memory);
            println!("  disk {:.0} bytes and memory {:.0} bytes each", disk / added, memory / added);
            overhead::compare([&mut small, &mut chain], [&small_groups, &groups]).await;
        }
        drop(small);
        throughput(&mut chain).await;
        users_beside_runs(&mut chain).await;
    });
    start().start(|context| async move { reopen(&context).await });
    lateness::measure();
}

/// Runs of a trivial target per second, creations and cancellations by transactions of their own.
async fn throughput(chain: &mut Chain) {
    let (at, blocks) = (chain.now_s() + 1_000, 5);
    for n in 0..blocks * 2 {
        let orders = chain.bulk(500, at + n, 0);
        chain.make(orders).await;
    }
    let begin = Instant::now();
    let mut ran = 0;
    for n in 0..blocks {
        ran += chain.block_at(TimestampMs((at + 100 + n) * 1_000), vec![]).await;
    }
    println!(
        "runs of a trivial target: {:.0}/s, 1,000 in a block",
        ran as f64 / begin.elapsed().as_secs_f64()
    );

    let creations = chain.single_orders(500);
    let begin = Instant::now();
    let ids = chain.make(creations).await;
    println!("create, a transaction each: {:.0}/s", 500.0 / begin.elapsed().as_secs_f64());
    assert_eq!(ids.len(), 500);
    let cancellations = chain.cancellations(&ids);
    let begin = Instant::now();
    chain.make(cancellations).await;
    println!("cancel, a transaction each: {:.0}/s", 500.0 / begin.elapsed().as_secs_f64());
}

/// What user transactions get of a block with and without 1,000 due runs.
async fn users_beside_runs(chain: &mut Chain) {
    let alone = chain.transfers(6_000);
    let begin = Instant::now();
    let (gas_alone, _) = chain.full_block(chain.now_s() + 1, alone).await;
    let time_alone = begin.elapsed();
    let at = chain.now_s() + 100;
    for _ in 0..2 {
        let orders = chain.bulk(500, at, 0);
        chain.make(orders).await;
    }
    let beside = chain.transfers(6_000);
    let begin = Instant::now();
    let (gas_beside, gas_of_runs) = chain.full_block(at, beside).await;
    let time_beside = begin.elapsed();
    let lost = gas_alone.saturating_sub(gas_beside + gas_of_runs) as f64 / gas_alone as f64;
    println!(
        "users beside 1,000 due runs: {gas_beside} gas and {gas_of_runs} of the runs, {gas_alone} without; {:.2} % \
         lost beyond them; {:.0} ms against {:.0} ms",
        lost * 100.0,
        ms(time_beside),
        ms(time_alone),
    );
}

/// A start on what is there, against opening the store alone.
async fn reopen(context: &tokio::Context) {
    let begin = Instant::now();
    let store = QmdbStore::open(context.child("raw"), &QmdbConfig::new(LARGE), &chain::genesis_state())
        .await
        .expect("the store opens");
    let raw = begin.elapsed();
    drop(store);
    let begin = Instant::now();
    let chain = Chain::open(context, LARGE).await;
    assert!(chain.next_due().await.is_some(), "the calendar is there");
    let ours = begin.elapsed();
    println!(
        "start with all of it: {:.0} ms until the next due time is known, the store alone {:.0} ms: {:.2} x",
        ms(ours),
        ms(raw),
        ours.as_secs_f64() / raw.as_secs_f64(),
    );
}

pub(crate) fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Processor time of all threads: on a crowded machine, what wall time does not tell.
pub(crate) fn processor_time() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanoseconds = threads.filter_map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

pub(crate) fn median(mut durations: Vec<Duration>) -> Duration {
    durations.sort_unstable();
    durations[durations.len() / 2]
}

fn disk_bytes(path: &Path) -> f64 {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => disk_bytes(&entry.path()),
        Ok(metadata) => metadata.len() as f64,
        Err(_) => 0.0,
    });
    sizes.sum()
}

fn resident_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kilobytes.unwrap_or_default() * 1_024.0
}
