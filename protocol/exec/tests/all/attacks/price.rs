//! What the registry's operations cost in time against what they cost in gas, on a disk as a node has it.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a stopwatch beside the transition")]

use crate::attacks::{
    FLOODER, IParameters, LEAST_RUN_GAS, NOBODY, TRIER, cheap_order, fill, flooder_data, largest_chain,
    load::put_by_hand,
    stopwatch::{process_time, since},
    wide_chain,
};
use crate::support::{
    contracts::*,
    cron::*,
    market::{GWEI, IScheduledTransactions::ScheduledTransaction, Market, sender, txn},
    *,
};
use alloy_primitives::{Address, Bytes, TxKind, U256};
use alloy_sol_types::SolCall;
use almanac_exec::{Candidates, execute, prefetch};
use almanac_primitives::{
    RecoveredTransaction, StateRead, TimestampMs, Wei,
    addresses::{CRON_REGISTRY, LEDGER, PARAMETERS},
    params::{
        BASE_FEE_FLOOR_WEI, BLOCK_GAS_MAX, CRON_BLOCK_EXHAUSTIONS_MAX, CRON_BLOCK_GAS_MAX, LANE_LOOK_GAS,
        MARKET_LOOKS_MAX,
    },
};
use almanac_state::{QmdbConfig, QmdbStore, StateStore as _, with_reader};
use commonware_runtime::{Runner as _, tokio};
use std::time::{Duration, Instant};

/// What the creation of a scheduled transaction pays for, at least (decision 0035).
const INSERT_GAS: u64 = 222_000;

/// How much slower than plain work an operation may be for its gas.
const SLOWER_MAX: f64 = 2.0;

/// No operation may take twice as long for its gas as the median of plain work, with everything that a block from
/// the network costs: senders recovered, executed over a store on disk, sealed with its root, and durable.
///
/// Slow, and only worth something with optimised code: `make bench-prices`.
#[test]
#[ignore = "measures time; make bench-prices"]
fn attack_27_undercharged_operations() {
    let median = plain_median();
    let measured: Vec<_> = registry_work().iter().map(|work| (work.name, work.measure() / median)).collect();
    println!();
    for work in free_work() {
        work.measure();
    }
    let worst = measured.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    println!("worst: {} at {:.2} x the median of plain work", worst.0, worst.1);
    let slow: Vec<_> = measured.iter().filter(|(_, ratio)| *ratio > SLOWER_MAX).collect();
    assert!(slow.is_empty(), "more than {SLOWER_MAX} times plain work: {slow:?}");
}

/// A block looks at one due job for so much gas of its lane, and looking is no slower for that gas than an operation may
/// be: a lane that looks at more because it has more gas stays within the time that its gas has.
#[test]
#[ignore = "measures time; make bench-prices"]
fn attack_27_a_look_takes_the_time_of_its_gas() {
    let median = plain_median();
    let endings = CRON_BLOCK_EXHAUSTIONS_MAX.max;
    let looks = CRON_BLOCK_GAS_MAX.max / LANE_LOOK_GAS;
    let [few, many] = [endings, looks].map(|count| {
        let mut chain = largest_chain();
        let seconds = chain.next_seconds() + HOUR;
        let escrow = Wei(U256::from(LEAST_RUN_GAS) * U256::from(BASE_FEE_FLOOR_WEI.default));
        put_by_hand(&mut chain, count, seconds, escrow);
        let work = Work { name: "looks", chain, seconds, transactions: Vec::new() };
        let best = (0..TRIES).map(|_| work.on_disk(Vec::new(), seconds).executed).min().unwrap();
        println!("{count} looks, {endings} of them endings: {best:?}");
        best
    });
    let look = (many.as_nanos() as f64 - few.as_nanos() as f64) / (looks - endings) as f64;
    let share = median * LANE_LOOK_GAS as f64;
    println!("one look: {look:.0} ns; {LANE_LOOK_GAS} gas of plain work: {share:.0} ns");
    assert!(look <= SLOWER_MAX * share, "{look} ns against {share} ns");
}

/// The market lane meets those that cannot pay, at most `market_looks_max` in a block. Meeting one is no slower than the
/// gas of its creation, which paid for it; the time of a whole such block is printed.
#[test]
#[ignore = "measures time; make bench-prices"]
fn attack_27_a_look_of_the_market_takes_less_than_was_paid() {
    let median = plain_median();
    let [few, many] = [100, MARKET_LOOKS_MAX.default].map(|count| {
        let mut market = Market::new();
        let due = market.next() + HOUR * 1_000;
        let cheap = ScheduledTransaction { maxGasUnitPrice: GWEI, ..txn(due) };
        // Half of a block at a time: the base fee stays where it is.
        for _ in 0..count / 50 {
            market.insert_all(sender(), &vec![cheap.clone(); 50]);
        }
        market.congest(u128::from(2 * GWEI));
        let seconds = due.div_ceil(1_000) + 1;
        let work = Work { name: "looks", chain: market.chain, seconds, transactions: Vec::new() };
        let best = (0..TRIES).map(|_| work.on_disk(Vec::new(), seconds)).min_by_key(|taken| taken.executed);
        let best = best.unwrap();
        println!("{count} are met: {:?}, and {:?} to be durable", best.executed, best.durable);
        best.executed + best.durable
    });
    let look = (many.as_nanos() as f64 - few.as_nanos() as f64) / (MARKET_LOOKS_MAX.default - 100) as f64;
    let paid = median * INSERT_GAS as f64;
    println!("one look: {look:.0} ns; {INSERT_GAS} gas of plain work: {paid:.0} ns");
    assert!(look <= paid, "{look} ns against {paid} ns");
}

/// Nanoseconds per gas of plain work: the median of its kinds.
pub fn plain_median() -> f64 {
    let mut plain: Vec<_> = plain_work().iter().map(Work::measure).collect();
    plain.sort_unstable_by(f64::total_cmp);
    let median = plain[plain.len() / 2];
    println!("plain work: median {median:.2} ns per gas\n");
    median
}

/// The same, in gas and for every build: whoever only gets refused pays for the attempt.
#[test]
fn attack_27_a_refused_order_is_not_free() {
    let [once, often] = [1, 101].map(|count| {
        let mut chain = wide_chain();
        let order = cheap_order(&chain).with_value(U256::ZERO);
        let receipt =
            chain.send(person(0), TRIER, U256::ZERO, flooder_data(count, U256::ZERO, &order.calldata()));
        assert!(receipt.outcome.is_success() && receipt.logs.is_empty());
        receipt.gas_used.0
    });
    assert!(often - once >= 100 * 700, "{} gas for a hundred", often - once);
}

/// A run uses the gas that an ordinary transaction with the same call does: intrinsic gas, refunds and floor.
#[test]
fn attack_27_a_run_uses_the_gas_of_a_transaction() {
    let large = Bytes::from(vec![7; 5_000]);
    let calls: [(Address, Bytes); 8] = [
        (NOBODY, large.clone()),
        (LOGGER, large),
        (REVERTER, words(1, 2)),
        (FAILER, words(1, 2)),
        (WRITER, words(5, 100)),
        (CLEARER, words(5, 100)),
        (CREATOR, deploy(&[0; 40])),
        (ECHO, to(CRON_REGISTRY, &ICronRegistry::getJobCall { id: U256::from(7) }.abi_encode())),
    ];
    let bob = person(5);
    let mut chain = TestChain::new();
    // One chain runs them, the other one's people call them, block by block: the same slots are there for both.
    let mut other = TestChain::new();
    for (target, data) in calls {
        let order = order(&chain).calling(target, data.clone()).gas(500_000);
        let order = order.clone().with_value(order.value * U256::from(5));
        let due = order.next_run_at.to();
        chain.schedule(person(0), &order).unwrap();
        let produced = chain.at(due);
        let transaction = call(bob, other.nonce(bob.address), target, data, 500_000);
        let expected = other.produce(vec![transaction]).receipt(0).clone();
        let [run] = produced.runs()[..] else { panic!("one run") };
        assert_eq!((&run.outcome, run.gas_used), (&expected.outcome, expected.gas_used), "{target}");
    }
}

/// A block to measure.
pub struct Work {
    pub name: &'static str,
    chain: TestChain,
    seconds: u64,
    transactions: Vec<RecoveredTransaction>,
}

impl Work {
    pub fn new(
        name: &'static str,
        chain: TestChain,
        seconds: u64,
        transactions: Vec<RecoveredTransaction>,
    ) -> Self {
        Self { name, chain, seconds, transactions }
    }

    /// Nanoseconds per gas: the best of some tries, less what an empty block takes.
    pub fn measure(&self) -> f64 {
        let best = |transactions: &[RecoveredTransaction], seconds: u64| {
            let tries = (0..TRIES).map(|_| self.on_disk(transactions.to_vec(), seconds));
            tries.min_by_key(|taken| taken.executed.saturating_add(taken.durable)).unwrap()
        };
        let (work, empty) = (best(&self.transactions, self.seconds), best(&[], self.chain.next_seconds()));
        let [executed, durable] = [(work.executed, empty.executed), (work.durable, empty.durable)]
            .map(|(work, empty)| work.as_nanos() as f64 - empty.as_nanos() as f64);
        let per_gas = (executed + durable) / work.gas.max(1) as f64;
        let (Self { name, .. }, Taken { gas, receipts, .. }) = (self, work);
        println!(
            "{name:<44} {gas:>11} gas {receipts:>5} receipts {:>8.2} ms executed {:>8.2} ms sealed and durable \
             {per_gas:>7.2} ns/gas",
            executed / 1e6,
            durable / 1e6,
        );
        per_gas
    }

    /// The block on a fresh store with the chain's state.
    fn on_disk(&self, transactions: Vec<RecoveredTransaction>, seconds: u64) -> Taken {
        let directory = tempfile::tempdir().unwrap();
        let config = tokio::Config::new().with_storage_directory(directory.path());
        let (input, agenda) = (self.chain.input_at(TimestampMs(seconds * 1_000)), self.chain.agenda.clone());
        let values = self.chain.state.0.clone();
        tokio::Runner::new(config).start(|context| async move {
            let store = QmdbStore::open(context, &QmdbConfig::new("prices"), &values).await.unwrap();
            let start = process_time();
            let transactions: Vec<_> = transactions.iter().map(recover_again).collect();
            let keys = prefetch(input.parent.number + 1, input.fee_recipient);
            let work = move |state: &dyn StateRead| {
                let mut source = Candidates::new(transactions);
                let output = execute(state, &*agenda, &input, &mut source).unwrap();
                assert_eq!(source.refusals(), []);
                output
            };
            let output = with_reader(&store.tip(), &keys, work).await.unwrap();
            let executed = since(start, process_time).unwrap_or(Duration::MAX);
            let start = Instant::now();
            let sealed = store.seal(&store.tip(), &output.diff).await.unwrap();
            store.commit(&sealed).await.unwrap();
            let durable = start.elapsed();
            Taken { executed, durable, gas: output.gas_used.0, receipts: output.receipts.len() }
        })
    }
}

fn recover_again(known: &RecoveredTransaction) -> RecoveredTransaction {
    RecoveredTransaction::recover(known.transaction().clone(), &CHAIN).unwrap()
}

/// Blocks of which the fastest counts.
const TRIES: usize = 9;

/// What a block took and did.
struct Taken {
    executed: Duration,
    durable: Duration,
    gas: u64,
    receipts: usize,
}

fn in_next_block(name: &'static str, chain: TestChain, calls: Vec<PlannedCall>) -> Work {
    let from = person(5);
    let first = chain.nonce(from.address);
    let transactions = (first..).zip(calls).map(|(nonce, (to, value, input, gas))| {
        let mut tx = eip1559(nonce, TxKind::Call(to), 0, input, gas);
        tx.value = value;
        recovered(sign(tx, from.secret))
    });
    Work { name, seconds: chain.next_seconds(), transactions: transactions.collect(), chain }
}

type PlannedCall = (Address, U256, Bytes, u64);

fn one(to: Address, input: Bytes) -> Vec<PlannedCall> {
    vec![(to, U256::ZERO, input, 20_000_000)]
}

/// The most signatures for their gas that blocks of Ethereum have.
pub fn transfers() -> Work {
    let transfers = vec![(NOBODY, U256::ONE, Bytes::new(), 21_000); 700];
    in_next_block("transfers", wide_chain(), transfers)
}

/// What blocks of Ethereum are made of.
fn plain_work() -> Vec<Work> {
    let zero = U256::ZERO;
    let points = [words(1, 2), words(1, 2)].concat();
    vec![
        transfers(),
        in_next_block("new slots", wide_chain(), one(WRITER, words(800, 1))),
        in_next_block("warm reads", wide_chain(), one(CHASER, words(100_000, 1))),
        in_next_block("a loop of jumps", wide_chain(), one(BURNER, Bytes::new())),
        in_next_block("ecAdd", wide_chain(), one(TRIER, flooder_data(20_000, zero, &points))),
        in_next_block("ecAdd of nothing", wide_chain(), one(TRIER, flooder_data(20_000, zero, &[]))),
        in_next_block(
            "logs of 16 KiB",
            wide_chain(),
            vec![(LOGGER, zero, vec![7; 16_384].into(), 1_000_000); 20],
        ),
        in_next_block("calls of a counter", wide_chain(), vec![(COUNTER, zero, Bytes::new(), 60_000); 400]),
        in_next_block("new contracts", wide_chain(), vec![(CREATOR, zero, deploy(&[0; 200]), 200_000); 100]),
    ]
}

fn registry_work() -> Vec<Work> {
    let zero = U256::ZERO;
    let small = cheap_order(&wide_chain());
    let wealth = U256::from(10u64.pow(17));
    let large = small.clone().calling(NOBODY, vec![7; 16_384]).gas(5_000_000).with_value(wealth);
    let poor = |order: &JobOrder| order.clone().with_value(U256::ZERO);
    let repeated = |to: Address, count: u64, value: U256, data: &Bytes| {
        vec![(to, value * U256::from(count), flooder_data(count, value, data), 110_000_000)]
    };
    let mut works = vec![
        in_next_block("schedule", wide_chain(), repeated(FLOODER, 600, small.value, &small.calldata())),
        in_next_block(
            "schedule of 16 KiB",
            wide_chain(),
            repeated(FLOODER, 25, large.value, &large.calldata()),
        ),
        in_next_block(
            "schedule refused",
            wide_chain(),
            repeated(TRIER, 5_000, zero, &poor(&small).calldata()),
        ),
        in_next_block(
            "schedule of 16 KiB refused",
            wide_chain(),
            repeated(TRIER, 1_000, zero, &poor(&large).calldata()),
        ),
    ];
    for (order, names) in [(&small, ["getJob", "topUp"]), (&large, ["getJob of 16 KiB", "topUp of 16 KiB"])] {
        let mut chain = wide_chain();
        let id = chain.schedule(person(0), order).unwrap();
        let get = ICronRegistry::getJobCall { id }.abi_encode().into();
        works.push(in_next_block(names[0], chain, repeated(FLOODER, 2_000, zero, &get)));
        let mut chain = wide_chain();
        let id = chain.schedule(person(0), order).unwrap();
        works.push(in_next_block(names[1], chain, repeated(FLOODER, 2_000, U256::ONE, &top_up_data(id))));
    }
    let mut chain = wide_chain();
    let unknown = cancel_data(U256::from(77));
    works.push(in_next_block("cancel refused", wide_chain(), repeated(TRIER, 5_000, zero, &unknown)));
    let ids: Vec<_> = (0..300).map(|_| chain.schedule(person(5), &small).unwrap()).collect();
    let cancels = ids.into_iter().map(|id| (CRON_REGISTRY, zero, cancel_data(id), 200_000)).collect();
    works.push(in_next_block("cancel", chain, cancels));
    works.push(due_work("runs of nobody", 700, &small, 0));
    let counter = small.calling(COUNTER, vec![1, 2, 3, 4]).gas(60_000).every(MINUTE);
    works.push(due_work("runs of a counter, re-armed", 250, &counter.with_value(wealth), 0));
    works
}

/// Calls of doors that no contract stands before: by transactions, and by runs.
pub fn direct_work() -> Vec<Work> {
    const BYTES: usize = 16_384;
    let zero = U256::ZERO;
    let chain = wide_chain();
    let small = cheap_order(&chain);
    let get_job = ICronRegistry::getJobCall { id: U256::ONE }.abi_encode();
    let get = IParameters::getCall { name: BLOCK_GAS_MAX.name_word() }.abi_encode();
    let padded = |head: &[u8]| Bytes::from([head, &vec![7; BYTES - 32 - head.len() / 32 * 32]].concat());
    let calls = [
        (CRON_REGISTRY, padded(&get_job), ["getJob by transactions", "with the least gas", "by runs"]),
        (CRON_REGISTRY, padded(&[]), ["ecAdd by transactions", "with the least gas", "by runs"]),
        (PARAMETERS, padded(&get), ["get by transactions", "with the least gas", "by runs"]),
        (LEDGER, padded(&[]), ["ledger by transactions", "with the least gas", "by runs"]),
    ];
    let mut works = Vec::new();
    for (to, data, [enough, least, runs]) in calls {
        // EIP-7623: 10 gas per token, a byte that is not zero has four of them.
        let floor = 21_000 + data.iter().map(|byte| if *byte == 0 { 10 } else { 40 }).sum::<u64>();
        for (name, gas) in [(enough, 1_000_000), (least, floor)] {
            works.push(in_next_block(name, wide_chain(), vec![(to, zero, data.clone(), gas); 30]));
        }
        let wealth = U256::from(10u64.pow(17));
        let order = small.clone().calling(to, data).gas(1_000_000).with_value(wealth);
        works.push(due_work(runs, 15, &order, 0));
    }
    works
}

/// A block whose work is what is due in it.
fn due_work(name: &'static str, count: u64, order: &JobOrder, late: u64) -> Work {
    let mut chain = wide_chain();
    let due = chain.next_seconds() + HOUR;
    fill(&mut chain, count, &order.clone().at(due));
    Work { name, chain, seconds: due + late, transactions: Vec::new() }
}

/// What blocks do for gas that was paid before, a bounded number of times, and look at a bounded number of times.
fn free_work() -> [Work; 2] {
    let skip = cheap_order(&wide_chain()).every(MINUTE).with_options(0x200);
    let skips = due_work("250 skips of 1,000, paid for before", 1_000, &skip, HOUR);
    let mut chain = wide_chain();
    let seconds = chain.next_seconds() + HOUR;
    put_by_hand(&mut chain, 1_000, seconds, Wei(U256::from(LEAST_RUN_GAS)));
    [
        skips,
        Work { name: "250 exhaustions of 1,000, paid for before", chain, seconds, transactions: Vec::new() },
    ]
}
