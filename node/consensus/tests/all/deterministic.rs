//! The transition inside commonware's deterministic runtime and on tokio, its reads through the fiber bridge.
//!
//! `ALMANAC_SIM_SEED` chooses the seed of the deterministic runtime; without it, several are run.
#![allow(clippy::disallowed_methods, reason = "the seed comes from the environment")]

use crate::support::{Pause, SlowBatch, SlowStore, job};
use alloy_primitives::{BlockHash, TxKind, U256};
use almanac_consensus::{Application, Deadline, Proposal, Tip};
use almanac_primitives::{
    ConsensusContext, Genesis, TimestampMs, UserTransaction,
    testing::{contracts::*, *},
};
use almanac_schedule::CalendarAgenda;
use commonware_runtime::{Clock as _, Runner as _, deterministic};
use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

/// Blocks with transfers, calls, creations, reverts and reads that nobody could have prefetched.
fn scenario() -> Vec<Vec<UserTransaction>> {
    let (alice, bob, carol) = (person(0), person(1), person(2));
    let create = |person: Person, nonce| {
        let init = deploy(&[0x60, 1, 0x5f, 0x55, 0x00]);
        sign(eip1559(nonce, TxKind::Create, 0, init, 200_000), person.secret)
    };
    (0..6)
        .map(|round| {
            let nonce = round * 3;
            vec![
                transfer(alice, nonce, bob.address, 1),
                call(alice, nonce + 1, WRITER, words(20, round * 10), 900_000),
                create(alice, nonce + 2),
                call(bob, nonce, FORWARDER, to(COUNTER, &[]), 200_000),
                call(bob, nonce + 1, REVERTER, vec![], 100_000),
                call(bob, nonce + 2, CHASER, words(50, 1), 400_000),
                call(carol, nonce, LOGGER, vec![1, 2, 3], 100_000),
                call(carol, nonce + 1, FORWARD_AND_REVERT, to(WRITER, &words(5, 900)), 400_000),
                call(carol, nonce + 2, BURNER, vec![], 60_000),
            ]
        })
        .collect()
}

fn chasing_genesis(length: u64) -> Genesis {
    let mut genesis = genesis();
    let chaser = genesis.allocations.get_mut(&CHASER).unwrap();
    chaser.storage = (1..=length).map(|slot| (U256::from(slot), U256::from(slot + 1))).collect();
    genesis
}

/// Proposes, verifies on a second node, and commits on both. Answers with every block hash.
async fn play(pause: Pause) -> Vec<BlockHash> {
    let genesis = chasing_genesis(60);
    let node = || {
        let store = SlowStore::new(&genesis, pause.clone());
        Application::new(&genesis, store, Arc::new(CalendarAgenda)).unwrap()
    };
    let ((proposer, mut tip), (verifier, mut verifier_tip)) = (node(), node());
    let mut hashes = Vec::new();
    for transactions in scenario() {
        let made = proposer.propose(&tip, proposal(&tip, transactions)).await.unwrap();
        assert!(made.refused.is_empty(), "{:?}", made.refused);
        let verified = verifier.verify(&verifier_tip, (*made.block).clone()).await.unwrap();
        assert_eq!(verified.output, made.output);
        proposer.commit(&made).await.unwrap();
        verifier.commit(&verified).await.unwrap();
        (tip, verifier_tip) = (made.tip, verified.tip);
        hashes.push(tip.hash);
    }
    hashes
}

fn proposal(tip: &Tip<SlowBatch>, transactions: Vec<UserTransaction>) -> Proposal {
    Proposal {
        timestamp: TimestampMs(tip.header.timestamp.0 + 100),
        fee_recipient: FEE_RECIPIENT,
        consensus: ConsensusContext::default(),
        candidates: transactions.into_iter().map(recovered).collect(),
        more: almanac_consensus::More::NONE,
        deadline: Deadline::NEVER,
    }
}

/// The same blocks, played three times side by side on the deterministic runtime.
fn on_deterministic(seed: u64) -> (Vec<BlockHash>, String) {
    deterministic::Runner::seeded(seed).start(|context| async move {
        let context = Arc::new(context);
        let clock = context.clone();
        let pause: Pause = Arc::new(move || Box::pin(clock.sleep(Duration::from_millis(1))));
        let (a, b, c) = futures::join!(play(pause.clone()), play(pause.clone()), play(pause));
        assert!(a == b && b == c, "interleaved executions do not touch each other");
        (a, context.auditor().state())
    })
}

fn on_tokio() -> Vec<BlockHash> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let pause: Pause = Arc::new(|| Box::pin(tokio::time::sleep(Duration::from_micros(50))));
        let (a, b) = tokio::join!(tokio::spawn(play(pause.clone())), tokio::spawn(play(pause)));
        let (a, b) = (a.unwrap(), b.unwrap());
        assert_eq!(a, b);
        a
    })
}

fn seeds() -> Vec<u64> {
    match std::env::var("ALMANAC_SIM_SEED") {
        Ok(seed) => vec![seed.parse().expect("ALMANAC_SIM_SEED is a number")],
        Err(_) => (0..8).collect(),
    }
}

#[test]
fn the_deterministic_runtime_and_tokio_make_the_same_blocks() {
    let expected = on_tokio();
    assert_eq!(expected.len(), scenario().len());
    for seed in seeds() {
        let (hashes, digest) = on_deterministic(seed);
        assert_eq!(hashes, expected, "seed {seed}");
        assert_eq!(on_deterministic(seed), (hashes, digest.clone()), "seed {seed} again");
        println!("seed {seed} digest {digest}");
    }
}

/// One transaction that follows `length` slots, each of which names the next: no prefetch can help.
fn chase(length: u64) -> (Duration, u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let genesis = chasing_genesis(length);
        let pause: Pause = Arc::new(|| Box::pin(tokio::task::yield_now()));
        let store = SlowStore::new(&genesis, pause);
        let reads = store.reads();
        let (application, tip) = Application::new(&genesis, store, Arc::new(CalendarAgenda)).unwrap();
        let chase = call(person(0), 0, CHASER, words(length, 1), 29_000_000);
        let begin = Instant::now();
        let made = application.propose(&tip, proposal(&tip, vec![chase])).await.unwrap();
        let elapsed = begin.elapsed();
        assert!(made.output.receipts[1].outcome.is_success(), "{:?}", made.output.receipts[1]);
        (elapsed, reads.load(Ordering::Relaxed))
    })
}

/// Running again after each miss made this quadratic: 100 times the work for 10 times the slots.
#[test]
fn a_hostile_pointer_chase_stays_linear() {
    chase(1_000);
    let (short_time, short_reads) = chase(1_000);
    let (long_time, long_reads) = chase(10_000);
    assert_eq!(long_reads - short_reads, 9_000, "each slot is read once");
    let ratio = long_time.as_secs_f64() / short_time.as_secs_f64();
    println!("1,000 slots {short_time:?}, 10,000 slots {long_time:?}: {ratio:.1} times");
    assert!(ratio < 40.0, "10 times the slots took {ratio:.1} times as long");
}

/// How often a store is asked in a block in which this many jobs run.
fn reads_with_due(jobs: u64) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let genesis = genesis();
        let store = SlowStore::new(&genesis, Arc::new(|| Box::pin(tokio::task::yield_now())));
        let reads = store.reads();
        let (application, tip) = Application::new(&genesis, store, Arc::new(CalendarAgenda)).unwrap();
        let orders = (0..jobs).map(|nonce| job(nonce, START.seconds() + 10)).collect();
        let made = application.propose(&tip, proposal(&tip, orders)).await.unwrap();
        application.commit(&made).await.unwrap();
        reads.store(0, Ordering::Relaxed);
        let due = Proposal { timestamp: TimestampMs(START.0 + 10_000), ..proposal(&made.tip, vec![]) };
        let ran = application.propose(&made.tip, due).await.unwrap();
        assert_eq!(
            ran.output.receipts.len() as u64,
            jobs + 1,
            "all of them run, beside the start of the block"
        );
        reads.load(Ordering::Relaxed)
    })
}

/// Records were read one by one, and each waited for the disk.
#[test]
fn the_records_of_due_jobs_are_read_together() {
    let (few, many) = (reads_with_due(10), reads_with_due(50));
    // Up to 64 records come with one question; the calendar has a few leaves more.
    assert!(many - few < 10, "{few} reads for 10 jobs, {many} for 50");
}
