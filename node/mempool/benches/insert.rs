//! What the pool's bookkeeping costs: filling it, and displacing the cheapest of a full one, beside a plain ordered map.

#[allow(dead_code, unreachable_pub, reason = "the tests use the rest")]
#[path = "../tests/pool/signing.rs"]
mod signing;

use alloy_primitives::U256;
use almanac_mempool::{Pool, PoolConfig};
use almanac_primitives::{GasPrice, RecoveredTransaction, TimestampMs};
use signing::{Draft, draft, rich, sign_as_stranger};
use std::{
    collections::BTreeMap,
    hint::black_box,
    time::{Duration, Instant},
};

const COUNT: usize = 50_000;

fn transactions(price: u128, count: usize) -> Vec<RecoveredTransaction> {
    let one = |index: usize| {
        let price = price + (index as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15) % 1_000;
        sign_as_stranger(Draft { value: U256::from(index), ..draft(0, price, price) })
    };
    (0..count).map(one).collect()
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begin = Instant::now();
    let result = work();
    (result, begin.elapsed())
}

fn main() {
    let (crowd, dearer) = (transactions(1_000, COUNT), transactions(10_000, COUNT / 2));
    let (_, plain) = timed(|| {
        let by_price = crowd.iter().map(|tx| ((tx.transaction().fee_cap(), tx.hash()), tx.clone()));
        black_box(by_price.collect::<BTreeMap<_, _>>())
    });
    let mut pool = Pool::new(PoolConfig::default().with_count_max(COUNT), GasPrice(100));
    let mut insert = |txs: &[RecoveredTransaction]| {
        let (_, time) = timed(|| txs.iter().for_each(|tx| assert!(pool.insert(tx.clone(), rich(0)).is_ok())));
        time
    };
    let (filling, displacing) = (insert(&crowd), insert(&dearer));
    let (_, block) = timed(|| pool.on_block(TimestampMs(1), GasPrice(2_000), []));
    let each = |time: Duration, count: usize| time.as_nanos() as f64 / count as f64;
    let map = each(plain, COUNT);
    println!("plain map            {map:8.0} ns per transaction");
    for (name, time) in [("filling", each(filling, COUNT)), ("displacing", each(displacing, COUNT / 2))] {
        println!("{name:20} {time:8.0} ns per transaction, {:.1} times the map", time / map);
    }
    println!("a block's new base fee that moves half of the pool: {block:?}");
}
