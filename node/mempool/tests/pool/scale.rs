//! A hundred thousand pending transactions: no operation may cost what is pending.
//!
//! Time is compared with time, never with a number of seconds: one pool of 100,000 against four of 10,000.
//! Linear work takes 2.5 times as long, quadratic work 25 times.

use crate::signing::{BusySigner, Draft, Signer, draft, rich, sign_as_stranger};
use alloy_primitives::{Address, U256};
use almanac_mempool::{Pool, PoolConfig, SenderState};
use almanac_primitives::{GasPrice, RecoveredTransaction, TimestampMs};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const LARGE: usize = 100_000;
const SMALL: usize = LARGE / 10;
const BLOCK: usize = 2_000;
const BASE_FEE: u128 = 1_000;

/// Half from senders with a hundred each, half from senders with one.
static CROWD: LazyLock<Vec<RecoveredTransaction>> = LazyLock::new(|| {
    signed(LARGE, |index| match index % 2 {
        0 => BUSY[index / 200].sign(crowd_draft(index)),
        _ => sign_as_stranger(crowd_draft(index)),
    })
});

/// In the place of every tenth of the crowd, at ten times its price.
static RIVALS: LazyLock<Vec<RecoveredTransaction>> = LazyLock::new(|| {
    signed(LARGE / 10, |index| {
        let old = crowd_draft(10 * index);
        let fee_cap = 10 * old.fee_cap;
        BUSY[index / 20].sign(Draft { fee_cap, priority_fee: Some(fee_cap), ..old })
    })
});

/// All from one sender, at about twice the crowd's price.
static SINGLE: LazyLock<Vec<RecoveredTransaction>> = LazyLock::new(|| {
    let signer = BusySigner::new(Signer(1_000_000));
    signed(LARGE, |index| signer.sign(draft(index as u64, 2 * BASE_FEE + scattered(index), BASE_FEE)))
});

static BUSY: LazyLock<Vec<BusySigner>> =
    LazyLock::new(|| (0..LARGE as u64 / 200).map(|number| BusySigner::new(Signer(number))).collect());

fn crowd_draft(index: usize) -> Draft {
    let nonce = if index.is_multiple_of(2) { index as u64 / 2 % 100 } else { 0 };
    let fee_cap = BASE_FEE + scattered(index);
    let priority_fee = if index.is_multiple_of(3) { None } else { Some(scattered(index + 1) / 2) };
    // The value keeps transactions apart whose prices happen to be the same.
    Draft { nonce, fee_cap, priority_fee, value: U256::from(index), ..Draft::default() }
}

/// A number below a thousand that does not follow the index.
fn scattered(index: usize) -> u128 {
    (index as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20 & 1_023
}

fn signed(count: usize, make: impl Fn(usize) -> RecoveredTransaction + Sync) -> Vec<RecoveredTransaction> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let share = count.div_ceil(threads);
    let ranges = (0..threads).map(|nth| (nth * share).min(count)..((nth + 1) * share).min(count));
    thread::scope(|scope| {
        let make = &make;
        let parts: Vec<_> =
            ranges.map(|range| scope.spawn(move || range.map(make).collect::<Vec<_>>())).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    })
}

fn pool_of(count_max: usize) -> Pool {
    let config = PoolConfig {
        count_max,
        sender_count_max: count_max,
        parked_count_max: count_max,
        parked_sender_count_max: count_max,
        ..PoolConfig::default()
    };
    Pool::new(config, GasPrice(BASE_FEE))
}

/// Follows the chain block by block until nothing is offered any more; says how many were.
fn drain(pool: &mut Pool) -> usize {
    let mut count = 0;
    loop {
        let mut changed: HashMap<Address, SenderState> = HashMap::new();
        for tx in pool.best().take(BLOCK) {
            changed.insert(tx.sender(), rich(tx.transaction().nonce() + 1));
            count += 1;
        }
        if changed.is_empty() {
            return count;
        }
        pool.on_block(TimestampMs(0), GasPrice(BASE_FEE), changed);
    }
}

/// Runs `work` on many transactions in one pool, and on a tenth of them in each of four, and compares. Fewer
/// come first, so that the wrong algorithm fails in seconds rather than hours.
fn assert_linear(work: impl Fn(Range<usize>)) {
    for large in [LARGE / 10, LARGE] {
        let small = large / 10;
        let run_small = |pools: Range<usize>| pools.for_each(|nth| work(nth * small..(nth + 1) * small));
        assert_at_most(6.0, || {
            let before = timed(|| run_small(0..2));
            let all = timed(|| work(0..large));
            let after = timed(|| run_small(2..4));
            (before + after, all)
        });
    }
}

/// Fails if the second duration is too many times the first, thrice in a row: other work on the machine may
/// disturb one measurement, the wrong algorithm spoils them all.
fn assert_at_most(ratio_max: f64, mut measure: impl FnMut() -> (Duration, Duration)) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock();
    let ratios = (0..3).map(|_| measure()).map(|(small, large)| large.as_secs_f64() / small.as_secs_f64());
    let too_high: Vec<_> = ratios.take_while(|ratio| *ratio > ratio_max).collect();
    assert!(too_high.len() < 3, "grows by {too_high:?}, at most {ratio_max} is allowed");
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

#[test]
fn filling_and_draining_a_crowd_is_linear() {
    LazyLock::force(&CROWD);
    assert_linear(|range| {
        let count = range.len();
        let mut pool = crowded(range);
        assert_eq!((pool.len(), pool.ready_count()), (count, count));
        assert_eq!(drain(&mut pool), count);
        assert!(pool.is_empty());
    });
}

/// The lower half comes backwards, so that nothing is ready until the last; the upper half follows in order.
#[test]
fn one_sender_is_linear() {
    LazyLock::force(&SINGLE);
    assert_linear(|range| {
        let (count, account) = (range.len(), rich(range.start as u64));
        let (lower, upper) = SINGLE[range].split_at(count / 2);
        let mut pool = pool_of(count);
        for tx in lower.iter().rev() {
            assert_eq!(pool.ready_count(), 0);
            pool.insert(tx.clone(), account).unwrap();
        }
        assert_eq!(pool.ready_count(), lower.len());
        for tx in upper {
            pool.insert(tx.clone(), account).unwrap();
        }
        assert_eq!(pool.ready_count(), count);
        assert_eq!(drain(&mut pool), count);
        assert!(pool.is_empty());
    });
}

/// A full pool; then rivals that replace, one sender that pushes others out until only its own are cheap, and
/// the crowd again, for which there is hardly any room.
#[test]
fn flooding_a_full_pool_is_linear() {
    let (crowd, rivals, single) = (&*CROWD, &*RIVALS, &*SINGLE);
    assert_linear(|range| {
        let (count, first) = (range.len(), range.start);
        let mut pool = crowded(range.clone());
        let (mut replaced, mut evicted, mut refused) = (0, 0, 0);
        let flood = rivals[first / 10..range.end / 10].iter().chain(&single[first..first + count / 2]);
        for tx in flood.chain(&crowd[range]) {
            let is_single = tx.sender() == single[0].sender();
            match pool.insert(tx.clone(), rich(if is_single { first as u64 } else { 0 })) {
                Ok(insertion) => {
                    replaced += usize::from(insertion.replaced.is_some());
                    evicted += insertion.evicted.len();
                }
                Err(_) => refused += 1,
            }
            assert!(pool.len() <= count);
        }
        assert_eq!(replaced, count / 10);
        assert!(
            evicted > count / 4 && refused > count / 4,
            "{evicted} evicted, {refused} refused of {count}"
        );
    });
}

/// A small and a large pool that nobody changes.
static POOLS: LazyLock<(Pool, Pool)> = LazyLock::new(|| (crowded(0..SMALL), crowded(0..LARGE)));

/// A block builder reads a few transactions; how many others wait must not matter.
#[test]
fn building_does_not_cost_what_is_pending() {
    let (small, large) = &*POOLS;
    let build = |pool: &Pool| (0..300).for_each(|_| assert_eq!(pool.best().take(10).count(), 10));
    assert_at_most(4.0, || (timed(|| build(small)), timed(|| build(large))));
}

/// A block that concerns no pending transaction costs nothing, however many there are.
#[test]
fn a_block_costs_what_it_changes() {
    let (mut small, mut large) = POOLS.clone();
    let follow = |pool: &mut Pool| {
        for block in 0..3_000 {
            // Above every cap, so that no transaction is concerned.
            pool.on_block(TimestampMs(block as u64), GasPrice(1_000_000 + block), [(Address::ZERO, rich(1))]);
        }
    };
    // The first block of all concerns everyone.
    follow(&mut small);
    follow(&mut large);
    assert_at_most(4.0, || (timed(|| follow(&mut small)), timed(|| follow(&mut large))));
}

fn crowded(range: Range<usize>) -> Pool {
    let mut pool = pool_of(range.len());
    for tx in &CROWD[range] {
        pool.insert(tx.clone(), rich(0)).unwrap();
    }
    pool
}
