//! What a block costs: execution beside a bare revm loop, sender recovery, and the share of every stage.
//!
//! `make bench`. Everything is in memory and warm; no disk and no state root take part. What is compared takes
//! turns within one run, so that a machine that slows down slows all of it.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::float_arithmetic,
    reason = "a benchmark reads the clock; nothing here is part of a block"
)]

mod bare;
mod stopwatch;
mod workload;

use almanac_exec::{
    BlockBody, BlockError, BlockOutput, Room, TransactionError, TransactionSource, execute, recover,
    recover_all,
};
use almanac_primitives::{
    Block, RecoveredTransaction, StateCommitment,
    block::{receipts_root, transactions_root},
};
use almanac_schedule::CalendarAgenda;
use bare::Bare;
use std::{
    hint::black_box,
    time::{Duration, Instant},
};
use stopwatch::{Samples, time};
use workload::{RULES, Workload};

const ROUNDS: usize = 45;
const WARM_UP_ROUNDS: usize = 3;

fn main() {
    println!(
        "{ROUNDS} rounds each, taking turns; one thread unless said otherwise; state in a hash map, no disk, no root"
    );
    println!();
    println!(
        "A  almanac_exec::execute on recovered transactions, which reads each value from the state once:"
    );
    println!("     transactions   rules, TxEnv, EVM, commit, check for lost money, receipts");
    println!("     rest           environment and prologue before; diff, bloom and receipts root after");
    println!(
        "B  revm transact_commit on a CacheDB with everything decoded in it beforehand, TxEnvs made beforehand:"
    );
    println!("     EVM and commit, nothing else");
    println!("C  as B, but the CacheDB starts empty and reads from the same state as A");
    println!(
        "median: of the rounds' ratios; best: ratio of the fastest rounds, which a busy machine disturbs least"
    );
    println!();
    for workload in [workload::transfers(), workload::token_transfers(), workload::storage_writes()] {
        compare_with_bare(&workload);
    }
    let transfers = workload::transfers();
    recovery(&transfers);
    stages(&transfers);
}

fn compare_with_bare(workload: &Workload) {
    let (loaded, reading) = (Bare::loaded(workload), Bare::reading(workload));
    let [mut whole, mut transactions, mut rest, mut b, mut c]: [Samples; 5] = Default::default();
    let gas_used = Run::of(workload).output.gas_used.0;
    for round in 0..WARM_UP_ROUNDS + ROUNDS {
        let is_counted = round >= WARM_UP_ROUNDS;
        // Whoever comes next finds other caches and another heap, so each is first, second and third in turn.
        for turn in 0..3 {
            match (round + turn) % 3 {
                0 => {
                    let run = Run::of(workload);
                    assert_eq!(run.output.gas_used.0, gas_used);
                    whole.push_if(is_counted, run.whole);
                    transactions.push_if(is_counted, run.transactions);
                    rest.push_if(is_counted, run.whole - run.transactions);
                }
                1 => b.push_if(is_counted, time_bare(loaded.clone(), gas_used)),
                _ => c.push_if(is_counted, time_bare(reading.clone(), gas_used)),
            }
        }
    }
    let count = workload.recovered.len();
    println!("{}", workload.name);
    println!("  A  execute()        {whole}   {:9.0} tx/s", whole.per_second(count));
    println!("       transactions   {transactions}   {:9.0} tx/s", transactions.per_second(count));
    println!("       rest           {rest}");
    println!("  B  bare, loaded     {b}   {:9.0} tx/s", b.per_second(count));
    println!("  C  bare, reading    {c}   {:9.0} tx/s", c.per_second(count));
    println!("  throughput                    A/B median    best       A/C median    best");
    let ratios = |name: &str, ours: &Samples| {
        let (against_b, against_c) = (ours.speed_against(&b), ours.speed_against(&c));
        let (best_b, best_c) = (ours.best_against(&b), ours.best_against(&c));
        println!("       {name:<22}{against_b:13.3}{best_b:8.3}{against_c:17.3}{best_c:8.3}");
    };
    ratios("execute()", &whole);
    ratios("transactions", &transactions);
    println!();
}

fn time_bare<D: revm::DatabaseRef>(mut bare: Bare<D>, gas_used: u64) -> Duration {
    let (used, duration) = time(|| bare.run());
    assert_eq!(used, gas_used, "both sides do the same work");
    duration
}

/// One execution, timed from outside: the source of transactions notes when it is first and last asked.
struct Run {
    output: BlockOutput,
    whole: Duration,
    before: Duration,
    transactions: Duration,
    after: Duration,
}

impl Run {
    fn of(workload: &Workload) -> Self {
        let mut source =
            TimedBlockBody { body: BlockBody::new(workload.recovered.clone()), first: None, last: None };
        // The bare loops get their database as a fresh copy, which leaves it in the processor's caches.
        let state = workload.state.clone();
        let start = Instant::now();
        let output = execute(&state, &CalendarAgenda, &workload.input, &mut source);
        let end = Instant::now();
        let output = output.expect("the workload is valid");
        assert!(output.receipts.iter().all(|receipt| receipt.outcome.is_success()));
        let (first, last) = (source.first.expect("asked once"), source.last.expect("asked once"));
        Self {
            output,
            whole: end - start,
            before: first - start,
            transactions: last - first,
            after: end - last,
        }
    }
}

/// A body that remembers when its first transaction was asked for, and when it had no more.
struct TimedBlockBody {
    body: BlockBody,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl TransactionSource for TimedBlockBody {
    fn next(&mut self, room: Room) -> Option<RecoveredTransaction> {
        if self.first.is_none() {
            self.first = Some(Instant::now());
        }
        let next = self.body.next(room);
        if next.is_none() {
            self.last = Some(Instant::now());
        }
        next
    }

    fn refused(
        &mut self,
        transaction: RecoveredTransaction,
        error: TransactionError,
    ) -> Result<(), BlockError> {
        self.body.refused(transaction, error)
    }
}

fn recovery(workload: &Workload) {
    let (mut single, mut all) = (Samples::default(), Samples::default());
    for round in 0..WARM_UP_ROUNDS + ROUNDS {
        let recover_one = |tx: &_| recover(Clone::clone(tx), &RULES).expect("signed");
        let (senders, alone) = time(|| workload.transactions.iter().map(recover_one).collect::<Vec<_>>());
        let (senders_all, together) = time(|| recover_all(&workload.transactions, &RULES).expect("signed"));
        assert_eq!(senders, senders_all);
        single.push_if(round >= WARM_UP_ROUNDS, alone);
        all.push_if(round >= WARM_UP_ROUNDS, together);
    }
    let count = workload.transactions.len();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    println!("Sender recovery with the stateless rules, {count} transfers");
    println!("  one thread          {single}   {:9.0} tx/s", single.per_second(count));
    println!("  {threads} threads           {all}   {:9.0} tx/s\n", all.per_second(count));
}

/// Every step from a block's bytes to the next state, without disk and state root.
fn stages(workload: &Workload) {
    const NAMES: [&str; 9] = [
        "decode the block",
        "recover senders, all cores",
        "environment and prologue",
        "execute transactions",
        "diff and bloom",
        "receipts root",
        "transactions root",
        "header hash",
        "apply to the state map",
    ];
    let bytes = Run::of(workload).output.block(StateCommitment::default()).encode();
    let mut samples: [Samples; NAMES.len()] = Default::default();
    for round in 0..WARM_UP_ROUNDS + ROUNDS {
        let mut next = workload.state.clone();
        let (block, decode) = time(|| Block::decode(&bytes).expect("just encoded"));
        let (_, recover) = time(|| recover_all(&block.transactions, &RULES).expect("signed"));
        let run = Run::of(workload);
        let (root, receipts) = time(|| receipts_root(&run.output.receipts));
        assert_eq!(root, run.output.receipts_root);
        let (_, body) = time(|| black_box(transactions_root(&block.transactions)));
        let (_, header) = time(|| black_box(block.header.hash()));
        let (_, apply) = time(|| next.apply(&run.output.diff));
        let diff = run.after.saturating_sub(receipts);
        let durations = [decode, recover, run.before, run.transactions, diff, receipts, body, header, apply];
        for (sample, duration) in samples.iter_mut().zip(durations) {
            sample.push_if(round >= WARM_UP_ROUNDS, duration);
        }
    }
    let total: Duration = samples.iter().map(Samples::median).sum();
    println!("Stages of a block of {} ({} bytes)", workload.name, bytes.len());
    for (name, sample) in NAMES.iter().zip(&samples) {
        let share = 100.0 * sample.median().as_secs_f64() / total.as_secs_f64();
        println!("  {name:<28} {sample}   {share:5.1} %");
    }
    println!("  {:<28} median {:8.3} ms", "sum of the medians", total.as_secs_f64() * 1e3);
    println!("  (the receipts root is timed by itself, and taken off what follows the last transaction)");
}
