//! Orderless transactions against ones with sequence numbers, through whole blocks with root and durable commit, and what
//! the history of their nonces costs: `make bench-orderless`.

use crate::{
    chain::{Chain, genesis},
    median, ms,
    orders::{Kind, TARGET},
};
use alloy_primitives::{Address, Bytes};
use almanac_primitives::{
    Chain as ChainName, NativeTransaction, RecoveredTransaction, StateKey, TimestampMs, UserTransaction,
    nonces::{NonceSweep, Pair, encode_log, encode_number},
    params::{NONCE_KEPT_SECONDS, NONCE_LOG_PART_ENTRIES_MAX, NONCE_SWEEPS_BASE},
    state::{Account, Meta},
    testing::{START, native::*, person},
};
use commonware_runtime::{Runner as _, tokio};
use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, Instant},
};

/// Transactions of a block.
const COUNT: u64 = 1_000;
/// Blocks of each kind. Entries of the first ones are collected while the last ones are made.
const ROUNDS: u64 = 60;
/// Rounds that count.
const MEASURED: usize = 20;
/// Time between two blocks of a kind.
const STEP_MS: u64 = 5_000;
/// Seconds after which a transaction expires.
const AHEAD: u64 = 30;
/// Live entries that every size is compared with.
const FEW: u64 = 1_000;
/// Orderless transactions of the burst.
const BURST: u64 = 20_000;
/// Accounts of the chain that the burst comes to.
const ACCOUNTS: u64 = 100_000;

/// Measures in a directory of its own.
pub(crate) fn measure(directory: &Path) {
    let sizes = std::env::var("ALMANAC_BENCH_ENTRIES").unwrap_or_else(|_| "10000,100000,1000000".to_owned());
    let sizes: Vec<u64> = sizes.split(',').map(|text| text.parse().expect("a number of entries")).collect();
    let start =
        |name: &str| tokio::Runner::new(tokio::Config::new().with_storage_directory(directory.join(name)));
    start("throughput").start(throughput);
    for size in sizes {
        start(&size.to_string()).start(|context| beside_entries(context, size));
    }
    start("burst").start(burst);
}

/// ORDERLESS-P1: how many are committed in the same time.
fn orderless_p1_ratio(sequence: Duration, orderless: Duration) -> f64 {
    sequence.as_secs_f64() / orderless.as_secs_f64()
}

/// Both kinds in turn on one chain, signatures recovered as for a block of another proposer.
async fn throughput(context: tokio::Context) {
    let mut chain = Chain::open_with(&context, "both", Kind::Cron, &genesis(Kind::Cron)).await;
    let (mut sequence, mut orderless) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let at = START.0 + (round + 1) * STEP_MS;
        let numbered: Vec<_> = (0..COUNT).map(|n| numbered(chain.name(), round * COUNT + n)).collect();
        sequence.push(chain.timed_block(TimestampMs(at), &numbered).await);
        let expiration = at / 1_000 + AHEAD;
        let free: Vec<_> =
            (0..COUNT).map(|n| transfer(chain.name(), round * COUNT + n, expiration)).collect();
        orderless.push(chain.timed_block(TimestampMs(at + STEP_MS / 2), &free).await);
    }
    let late = |taken: &[Duration]| median(taken[taken.len() - MEASURED..].to_vec());
    let (sequence, orderless) = (late(&sequence), late(&orderless));
    let rate = |taken: Duration| COUNT as f64 / taken.as_secs_f64();
    println!(
        "committed: {:.0} orderless/s, {:.0}/s with sequence numbers: {:.2} of them by time, {:.2} by gas",
        rate(orderless),
        rate(sequence),
        orderless_p1_ratio(sequence, orderless),
        21_000.0 / 23_000.0,
    );
}

/// Blocks beside many live entries and beside few, in turn.
async fn beside_entries(context: tokio::Context, size: u64) {
    let genesis = genesis(Kind::Cron);
    let mut few = Chain::open_over(&context, "few", Kind::Cron, &genesis, entries(FEW)).await;
    let mut many = Chain::open_over(&context, "many", Kind::Cron, &genesis, entries(size)).await;
    let mut taken = [Vec::new(), Vec::new()];
    for round in 0..MEASURED as u64 {
        // All of it within a second, in which nothing of what was there expires.
        let at = TimestampMs(START.0 + 1 + round);
        for (chain, taken) in [&mut few, &mut many].into_iter().zip(&mut taken) {
            let expiration = START.seconds() + AHEAD;
            let sent: Vec<_> =
                (0..COUNT).map(|n| transfer(chain.name(), round * COUNT + n, expiration)).collect();
            taken.push(chain.timed_block(at, &sent).await);
        }
    }
    let [few, many] = taken.map(median);
    println!(
        "insert and check beside {size} live entries: {:.1} us each, {:.2} x of {FEW}",
        ms(many) * 1e3 / COUNT as f64,
        many.as_secs_f64() / few.as_secs_f64(),
    );
}

/// The state before a burst, after it, and after it has expired on an idle chain.
async fn burst(context: tokio::Context) {
    let accounts = (0..ACCOUNTS).map(|n| {
        let account = Account { nonce: n + 1, ..Account::default() };
        (StateKey::Account(Address::left_padding_from(&(n + (1 << 40)).to_be_bytes())), account.encode())
    });
    let genesis = genesis(Kind::Cron);
    let mut chain = Chain::open_over(&context, "burst", Kind::Cron, &genesis, accounts.collect()).await;
    let before = chain.live_values().await;
    let expiration = START.seconds() + AHEAD;
    for block in 0..BURST / COUNT {
        let sent: Vec<_> =
            (0..COUNT).map(|n| transfer(chain.name(), block * COUNT + n, expiration)).collect();
        chain.timed_block(TimestampMs(START.0 + 1 + block), &sent).await;
    }
    let after = chain.live_values().await;
    let (mut at, mut blocks) = ((expiration + NONCE_KEPT_SECONDS) * 1_000, 0);
    let most = BURST / NONCE_SWEEPS_BASE + 2;
    while blocks < most {
        chain.timed_block(TimestampMs(at), &[]).await;
        (at, blocks) = (at + 1_000, blocks + 1);
    }
    let collected = chain.live_values().await;
    let grown = |values: u64| (values as f64 / before as f64 - 1.0) * 100.0;
    println!(
        "state of {before} values: {after} after {BURST} orderless transactions ({:+.1} %), {collected} {blocks} empty \
         blocks after they expired ({:+.2} %)",
        grown(after),
        grown(collected),
    );
}

impl Chain {
    /// What a block takes from signed transactions to durable.
    async fn timed_block(&mut self, at: TimestampMs, signed: &[UserTransaction]) -> Duration {
        let begin = Instant::now();
        let name = self.name();
        let recover =
            |signed: &UserTransaction| RecoveredTransaction::recover(signed.clone(), &name).unwrap();
        let candidates = signed.iter().map(recover).collect();
        self.all_in(at, candidates).await;
        begin.elapsed()
    }
}

/// A transfer with a sequence number, in the chain's own type: what differs is the nonce alone.
fn numbered(chain: ChainName, nonce: u64) -> UserTransaction {
    let call = native_call(TARGET, 1, Bytes::new());
    let transaction = native(person(0).address, nonce, vec![call]);
    sign_native_on(&chain, NativeTransaction { gas_limit: 21_000, ..transaction }, &[person(0).into()], &[])
}

fn transfer(chain: ChainName, nonce: u64, expiration: u64) -> UserTransaction {
    let call = native_call(TARGET, 1, Bytes::new());
    let transaction = orderless(person(1).address, nonce, expiration, vec![call]);
    sign_native_on(&chain, NativeTransaction { gas_limit: 23_000, ..transaction }, &[person(1).into()], &[])
}

/// So many live entries of strangers, which expire within a minute, with their log.
fn entries(count: u64) -> BTreeMap<StateKey, Bytes> {
    const SECONDS: u64 = 50;
    let mut logs: BTreeMap<u64, Vec<Pair>> = BTreeMap::new();
    let mut state = BTreeMap::new();
    for n in 0..count {
        let sender = Address::left_padding_from(&(n % 10_000 + (1 << 41)).to_be_bytes());
        let second = START.seconds() + 2 + n % SECONDS;
        state.insert(StateKey::Nonce(sender, n), encode_number(second));
        logs.entry(second).or_default().push((sender, n));
    }
    let seconds_left = logs.len() as u64;
    for (second, pairs) in logs {
        let parts = pairs.chunks(NONCE_LOG_PART_ENTRIES_MAX);
        state.insert(StateKey::NonceLog(second, 0), encode_number(parts.len() as u64));
        for (part, pairs) in (1..).zip(parts) {
            state.insert(StateKey::NonceLog(second, part), encode_log(pairs));
        }
    }
    let sweep = NonceSweep { second: START.seconds(), part: 1, offset: 0, seconds_left };
    state.insert(StateKey::Meta(Meta::NonceSweep), sweep.encode());
    state
}
