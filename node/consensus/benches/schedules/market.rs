//! The market lane in whole blocks: runs beside a chain full of users, and selection beside many that pend or wait.

use crate::{
    SMALL,
    chain::{Chain, genesis},
    median, ms,
    orders::{BID, Kind},
    overhead,
};
use almanac_primitives::{
    Genesis, TimestampMs,
    params::{BASE_FEE_FLOOR_WEI, BLOCK_GAS_MAX, MARKET_LOOKS_MAX},
};
use commonware_runtime::{Runner as _, tokio};
use std::{path::Path, time::Duration};

/// The interval of blocks that runs are to be sustained at.
const BLOCK_MS: u64 = 100;
/// Blocks of each measure.
const BLOCKS: u64 = 20;
/// More transfers than a block of 30 M gas holds.
const TRANSFERS: u64 = 1_500;
/// Inserts of one block: less than half of its gas, so that the base fee does not rise.
const INSERTS_PER_BLOCK: u64 = 60;
/// Gas that a run uses: a plain call of nobody.
const RUN_GAS_USED: u64 = 21_000;
/// Those that wait for a price beside selection.
const WAITING: u64 = 100_000;

/// Measures the lane in a directory of its own.
pub(crate) fn measure(directory: &Path, sizes: &[u64]) {
    let sizes = sizes.to_vec();
    let waiting =
        std::env::var("ALMANAC_BENCH_WAITING").map_or(WAITING, |text| text.parse().expect("a number"));
    tokio::Runner::new(tokio::Config::new().with_storage_directory(directory)).start(|context| async move {
        let mut busy = Chain::open_with(&context, "busy", Kind::Market, &ordinary()).await;
        for due in [100, 300, 1_000] {
            beside_users(&mut busy, due).await;
        }
        drop(busy);
        selection(&context, &sizes, waiting).await;
    });
}

/// A genesis with blocks of the default size.
fn ordinary() -> Genesis {
    let mut genesis = genesis(Kind::Market);
    genesis.parameters.remove(BLOCK_GAS_MAX.name);
    genesis.parameters.retain(|name, _| name != "cron_block_gas_max");
    genesis
}

/// Full blocks with and without runs that are due in each.
async fn beside_users(chain: &mut Chain, due: u64) {
    let first = chain.now_ms() + 60_000;
    let (alone, _) = full_blocks(chain, first, 0).await;
    // Keys are of 100 ms: the time of a block, not some of them after it.
    let first = (chain.now_ms() + 24 * 60 * 60 * 1_000).next_multiple_of(BLOCK_MS);
    for block in 0..BLOCKS {
        let mut left = due;
        while left > 0 {
            let now = left.min(INSERTS_PER_BLOCK);
            chain.insert(now, first + block * BLOCK_MS, BID).await;
            left -= now;
        }
    }
    let (beside, late) = full_blocks(chain, first, due).await;
    let of = |blocks: &[Full], gas: fn(&Full) -> u64| blocks.iter().map(gas).sum::<u64>() as f64;
    let (users, runs) = (of(&beside, |full| full.users), of(&beside, |full| full.runs));
    let lost = 1.0 - (users + runs) / of(&alone, |full| full.users);
    let took = |blocks: &[Full]| median(blocks.iter().map(|full| full.took).collect());
    let (with, without) = (took(&beside), took(&alone));
    let busy = |blocks: &[Full]| median(blocks.iter().map(|full| full.processor).collect());
    let (busy, idle) = (busy(&beside), busy(&alone));
    println!(
        "{due} due per block beside users: {:.2} % of user gas lost beyond the runs' gas; lateness p99 {late} blocks; \
         {:.0} ms a block, {:.2} x of {:.0} ms without: {} at {BLOCK_MS} ms; {:.0} ms of processor time, {:.2} x of {:.0}",
        lost * 100.0,
        ms(with),
        with.as_secs_f64() / without.as_secs_f64(),
        ms(without),
        if ms(with) <= BLOCK_MS as f64 { "sustained" } else { "not sustained" },
        ms(busy),
        busy.as_secs_f64() / idle.as_secs_f64(),
        ms(idle),
    );
}

/// A block full of users.
struct Full {
    users: u64,
    runs: u64,
    took: Duration,
    processor: Duration,
}

/// Full blocks from a time on, and by how many of them the latest percent of the runs is late.
async fn full_blocks(chain: &mut Chain, first: u64, due: u64) -> (Vec<Full>, u64) {
    let (mut blocks, mut behind, mut latest) = (Vec::new(), 0, Vec::new());
    for block in 0..BLOCKS {
        let transfers = chain.transfers(TRANSFERS);
        let (users, runs) = chain.full_block_at(TimestampMs(first + block * BLOCK_MS), transfers).await;
        let ran = runs / RUN_GAS_USED;
        behind = behind + due - ran.min(behind + due);
        // Those that are left run in the next blocks, so many of them in each.
        latest.push(if due == 0 { 0 } else { behind.div_ceil(due) });
        let (took, processor) = (chain.last.iter().sum(), chain.processor);
        blocks.push(Full { users, runs, took, processor });
    }
    latest.sort_unstable();
    // Lets the base fee fall.
    for _ in 0..4 * BLOCKS {
        chain.make(vec![]).await;
    }
    (blocks, latest[latest.len() * 99 / 100])
}

/// What a block costs beside many that pend, and beside many that wait for a price, against a chain with few.
async fn selection(context: &tokio::Context, sizes: &[u64], waiting: u64) {
    let genesis = genesis(Kind::Market);
    let mut small = Chain::open_with(context, "few", Kind::Market, &genesis).await;
    small.load(SMALL).await;
    let mut chain = Chain::open_with(context, "many", Kind::Market, &genesis).await;
    let mut pending = 0;
    for size in sizes {
        let [small_groups, groups] = [small.groups().await, chain.groups().await];
        chain.load(size - pending).await;
        pending = *size;
        println!("{size} pending scheduled transactions");
        overhead::compare([&mut small, &mut chain], [&small_groups, &groups]).await;
    }
    let [small_groups, groups] = [small.groups().await, chain.groups().await];
    let held = let_wait(&mut chain, waiting).await;
    println!("{held} that wait for a price, beside {pending} pending");
    overhead::compare([&mut small, &mut chain], [&small_groups, &groups]).await;
}

/// Inserts some at the base fee, and makes gas dear until blocks have met all of them.
async fn let_wait(chain: &mut Chain, count: u64) -> u64 {
    for _ in 0..100 {
        chain.make(vec![]).await;
    }
    let (bid, due) = (chain.base_fee(), chain.now_ms() + 60 * 60 * 1_000);
    let mut left = count;
    while left > 0 {
        let now = left.min(INSERTS_PER_BLOCK * 4);
        chain.insert(now, due, bid).await;
        left -= now;
    }
    // The base fee cannot fall to their bids any more.
    let dearer = chain.set_parameter(BASE_FEE_FLOOR_WEI, bid * 10);
    chain.make(dearer).await;
    for block in 0..count.div_ceil(MARKET_LOOKS_MAX.default) + 10 {
        chain.full_block_at(TimestampMs(due + block * BLOCK_MS), vec![]).await;
    }
    chain.waiting().await
}
