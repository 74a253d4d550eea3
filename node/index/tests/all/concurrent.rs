//! Questions that are asked while blocks come, are written, forgotten and taken back.

use crate::support::{Chain, KEYS, PEOPLE, Plan, apply, keeping, key, someone};
use alloy_primitives::Bytes;
use almanac_index::{Direction, Index, Location, LogFilter};
use almanac_primitives::StateRead as _;
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

const BLOCKS: u64 = 400;
const READERS: u64 = 3;

/// Says that the writer is done, also when it panics: otherwise the readers would wait for ever.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn in_memory_every_answer_is_that_of_one_height() {
    every_answer_is_that_of_one_height(|chain, depth| chain.in_memory(keeping(depth)));
}

#[test]
fn on_disk_every_answer_is_that_of_one_height() {
    let directory = tempfile::tempdir().unwrap();
    every_answer_is_that_of_one_height(|chain, depth| chain.open(directory.path(), keeping(depth)).unwrap());
}

#[test]
fn in_memory_no_answer_mixes_branches() {
    no_answer_mixes_branches(|chain, depth| chain.in_memory(keeping(depth)));
}

#[test]
fn on_disk_no_answer_mixes_branches() {
    let directory = tempfile::tempdir().unwrap();
    no_answer_mixes_branches(|chain, depth| chain.open(directory.path(), keeping(depth)).unwrap());
}

fn every_answer_is_that_of_one_height(open: impl Fn(&Chain, u64) -> Index) {
    let mut chain = Chain::new();
    for n in 1..=BLOCKS {
        let n = u8::try_from(n % 240).unwrap();
        let writes = (0..KEYS).filter(|key| (key + n) % 3 != 0).map(|key| (key, Some(n))).collect();
        let logs = vec![(n, vec![n, n / 2])];
        chain.grow(&Plan { writes, transactions: vec![(n, None, logs)], ..Plan::default() });
    }
    let index = open(&chain, 20);
    let (done, answers) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for reader in 0..READERS {
            let (chain, index, done, answers) = (&chain, &index, &done, &answers);
            scope.spawn(move || {
                let mut round = reader;
                while !done.load(Ordering::Acquire) {
                    round = round.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    ask(chain, index, round >> 33);
                    answers.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let _done = Done(&done);
        for fed in &chain.fed {
            apply(&index, fed).unwrap();
            thread::sleep(std::time::Duration::from_millis(1));
        }
    });
    assert!(answers.into_inner() > READERS * 50, "the readers hardly got to ask");
}

/// Asks about a random height, and compares with what the finished chain says of it.
fn ask(chain: &Chain, index: &Index, random: u64) {
    let tip = index.height();
    let height = tip.saturating_sub(random % 25);
    if let Some(state) = index.state_at(height) {
        let expected = &chain.states[height as usize];
        let mut is_gone = false;
        for n in 0..KEYS {
            match state.read(key(n)) {
                Ok(found) => {
                    assert!(!is_gone, "once gone, always gone");
                    assert_eq!(found.as_ref(), expected.get(&key(n)), "at {height}");
                }
                Err(error) => {
                    assert!(error.reason.contains("no longer kept"), "{error}");
                    assert!(height < index.oldest_state());
                    is_gone = true;
                }
            }
        }
    }
    let filter = LogFilter { from: height / 2, to: tip, addresses: vec![someone(1)], ..LogFilter::default() };
    assert_eq!(index.logs(&filter, 1_000).unwrap(), chain.logs(&filter));
    let sender = someone(u8::try_from(random % u64::from(PEOPLE)).unwrap());
    let (from, to) = (Location::first_of(height / 2), Location::last_of(tip));
    for order in [Direction::Ascending, Direction::Descending] {
        let found = index.transactions_of(sender, &(from..=to), order, usize::MAX).unwrap();
        assert_eq!(found, chain.transactions_of(sender, from, to, order));
    }
    if height > 0 {
        let fed = &chain.fed[height as usize - 1];
        let (location, block) = index.transaction(fed.receipts[0].transaction_hash).unwrap().unwrap();
        assert_eq!((location, &block.block), (Location { number: height, index: 0 }, &fed.block));
        assert_eq!(index.block_by_hash(fed.block.hash()).unwrap(), Some(block));
    }
}

/// Blocks come as fast while somebody goes through all logs again and again: no scan holds a block up.
#[test]
fn in_memory_long_searches_do_not_slow_blocks() {
    let (mut chain, blocks) = (Chain::new(), 2_000);
    for n in 0..blocks {
        let transactions = (0..4).map(|n| (n, None, vec![(n, vec![n]); 4])).collect();
        chain.grow(&Plan { writes: vec![(1, Some((n % 200) as u8))], transactions, ..Plan::default() });
    }
    let index = chain.in_memory(keeping(20));
    let (most, last) = chain.fed.split_at(blocks - 100);
    most.iter().for_each(|fed| apply(&index, fed).unwrap());
    let everything = LogFilter { to: u64::MAX, ..LogFilter::default() };
    let scan = || {
        let started = Instant::now();
        index.search_logs(&everything, usize::MAX, |_| true).unwrap();
        started.elapsed()
    };
    let one_scan = scan();
    let (done, scans) = (AtomicBool::new(false), AtomicU64::new(0));
    let spent = thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    scan();
                    scans.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let _done = Done(&done);
        let mut spent = Duration::ZERO;
        for fed in last {
            thread::sleep(Duration::from_millis(2));
            let started = Instant::now();
            apply(&index, fed).unwrap();
            spent += started.elapsed();
        }
        spent
    });
    let (each, scans) = (spent / 100, scans.into_inner());
    println!("a block took {each:?} while {scans} scans of {one_scan:?} went on");
    assert!(each < one_scan / 4, "a block took {each:?}, a scan alone {one_scan:?}");
}

/// Every block sets all keys to one value of its own. Whoever sees two values has mixed two blocks.
fn no_answer_mixes_branches(open: impl Fn(&Chain, u64) -> Index) {
    let mut chain = Chain::new();
    let index = open(&chain, u64::MAX);
    let done = AtomicBool::new(false);
    let (whole, gone) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    let Some(state) = index.state_at(index.height()) else { continue };
                    let reads: Result<Vec<Option<Bytes>>, _> =
                        (0..KEYS).map(|n| state.read(key(n))).collect();
                    match reads {
                        Ok(values) if state.height() > 0 => {
                            assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
                            whole.fetch_add(1, Ordering::Relaxed);
                        }
                        Ok(_) => {}
                        Err(error) => {
                            assert!(error.reason.contains("taken back"), "{error}");
                            gone.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
        let _done = Done(&done);
        for round in 0..300u32 {
            let value = u8::try_from(round % 200).unwrap();
            for n in 0..3 {
                let writes = (0..KEYS).map(|key| (key, Some(value + n))).collect();
                apply(&index, chain.grow(&Plan { writes, ..Plan::default() })).unwrap();
            }
            let height = chain.height().saturating_sub(u64::from(round % 5));
            chain.revert_to(height);
            index.revert_to(height).unwrap();
            thread::yield_now();
        }
    });
    chain.check_blocks(&index);
    chain.check_states(&index);
    assert!(whole.into_inner() > 50 && gone.into_inner() > 0, "the readers hardly got to ask");
}
