//! What blocks of 5,000 updates cost the index, and how fast it answers, as the number of accounts grows.
//!
//! `cargo bench -p almanac-index` runs 10⁵ and 10⁶ accounts; add `-- --large` for 10⁷, `-- --accounts N` for one
//! size, `-- --blocks N` for fewer blocks. Each size runs in a process of its own, so that memory is its own too.
//! "Disk written" is what the system counts for the process.

use alloy_primitives::{Address, B256, Bytes, Log, LogData, U256, keccak256};
use almanac_index::{Direction, HistoricalState, Index, IndexConfig, Location, LogFilter, Parties};
use almanac_primitives::{
    Account, Block, Gas, GasPrice, Header, Outcome, Receipt, StateChange, StateDiff, StateKey,
    StateRead as _, TimestampMs, UserTransaction,
    testing::{person, transfer},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::MetadataExt as _,
    path::Path,
    process::Command,
    sync::Arc,
    time::Instant,
};

const UPDATES: u64 = 5_000;
/// What a block of 30 M gas holds of the cheapest transactions; each logs a transfer.
const TRANSACTIONS: u64 = 1_400;
const BLOCKS: u64 = 1_050;
const BACK: u64 = 1_000;
const READS: u64 = 100_000;

type Figures = BTreeMap<String, f64>;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str| -> Option<u64> {
        let at = arguments.iter().position(|argument| argument == name)?;
        Some(arguments.get(at + 1)?.parse().expect("a number"))
    };
    let blocks = number("--blocks").unwrap_or(BLOCKS);
    if let Some(accounts) = number("--child") {
        for (name, figure) in measure(accounts, blocks) {
            println!("{name}\t{figure}");
        }
        return;
    }
    let sizes = match (number("--accounts"), arguments.iter().any(|argument| argument == "--large")) {
        (Some(accounts), _) => vec![accounts],
        (None, false) => vec![100_000, 1_000_000],
        (None, true) => vec![100_000, 1_000_000, 10_000_000],
    };
    println!(
        "{blocks} blocks of {UPDATES} updates and {TRANSACTIONS} transactions with a log each; all kept\n"
    );
    let measured: Vec<(u64, Figures)> =
        sizes.into_iter().map(|accounts| (accounts, in_child(accounts, blocks))).collect();
    print_table(&measured);
}

fn in_child(accounts: u64, blocks: u64) -> Figures {
    let program = std::env::current_exe().expect("a program knows itself");
    let arguments = ["--child", &accounts.to_string(), "--blocks", &blocks.to_string()];
    let output = Command::new(program).args(arguments).output().expect("a child can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("figures are text");
    let figures = text.lines().filter_map(|line| line.split_once('\t'));
    figures.map(|(name, figure)| (name.to_owned(), figure.parse().expect("a figure"))).collect()
}

fn print_table(measured: &[(u64, Figures)]) {
    print!("{:<44}", "accounts");
    measured.iter().for_each(|(accounts, _)| print!("{accounts:>14}"));
    println!("{:>10}", "ratio");
    let Some((_, last)) = measured.last() else { return };
    for name in last.keys() {
        print!("{name:<44}");
        measured.iter().for_each(|(_, figures)| print!("{:>14.2}", figures[name]));
        println!("{:>10.2}", last[name] / measured[0].1[name]);
    }
}

fn measure(accounts: u64, blocks: u64) -> Figures {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let path = directory.path().join("index");
    let config = IndexConfig::archive();
    let mut figures = Figures::new();
    let mut put = |name: &str, figure: f64| {
        figures.insert(name.to_owned(), figure);
    };

    let started = Instant::now();
    let genesis = (0..accounts).map(|n| (account(n), balance(n)));
    let index = Index::open(&path, config.clone(), Header::default(), genesis).expect("a new file");
    put("1 genesis: s", started.elapsed().as_secs_f64());

    let written = disk_written();
    let mut feed = Feed::new(accounts);
    let (mut applied, mut rows, mut making) = (Vec::new(), 0, 0.0);
    let used = process_seconds();
    for _ in 0..blocks {
        let before = thread_seconds();
        let block = feed.next();
        rows += block.row_bytes();
        making += thread_seconds() - before;
        let started = Instant::now();
        block.apply(&index);
        applied.push(started.elapsed().as_secs_f64() * 1e3);
    }
    let count = blocks as f64;
    put("2 apply a block: ms mean", applied.iter().sum::<f64>() / count);
    put("2 apply a block: ms p50", percentile(&mut applied, 0.5));
    put("2 apply a block: ms p99", percentile(&mut applied, 0.99));
    put("2 apply a block: ms max", percentile(&mut applied, 1.0));
    let started = Instant::now();
    index.sync().expect("the disk takes it");
    put("2 sync at the end: ms", started.elapsed().as_secs_f64() * 1e3);
    put("2 processor per block, all threads: ms", (process_seconds() - used - making) * 1e3 / count);
    put("4 resident after writing: MB", memory("VmRSS:"));

    for (name, height) in [("tip", blocks), ("1,000 back", blocks.saturating_sub(BACK))] {
        let state = index.state_at(height).expect("all is kept");
        for pass in ["first", "again"] {
            let mut times = read(&state, accounts);
            put(&format!("5 read at {name}, {pass}: µs p50"), percentile(&mut times, 0.5));
            put(&format!("5 read at {name}, {pass}: µs p99"), percentile(&mut times, 0.99));
        }
    }
    put("6 logs of one recipient: ms", logs(&index, accounts));
    put("6 last 25 of one sender: µs", sent(&index, accounts));
    put("4 resident after reading: MB", memory("VmRSS:"));
    put("4 resident at most: MB", memory("VmHWM:"));

    drop(index);
    // After closing: what the background thread still had to do is in it.
    let disk = (disk_written() - written) as f64;
    put("3 rows per block: kB", rows as f64 / 1e3 / count);
    put("3 disk written per block: kB", disk / 1e3 / count);
    put("3 disk written / rows", disk / rows as f64);
    put("3 size on disk: MB", disk_size(&path) as f64 / 1e6);
    let started = Instant::now();
    let index = Index::open(&path, config, Header::default(), []).expect("a good index");
    put("7 reopen: s", started.elapsed().as_secs_f64());
    assert_eq!(index.height(), blocks);
    figures
}

fn read(state: &HistoricalState, accounts: u64) -> Vec<f64> {
    let mut random = Random(99);
    let mut times = Vec::new();
    for _ in 0..READS {
        let key = account(random.below(accounts));
        let started = Instant::now();
        assert!(state.read(key).expect("it is kept").is_some());
        times.push(started.elapsed().as_secs_f64() * 1e6);
    }
    times
}

fn logs(index: &Index, accounts: u64) -> f64 {
    let mut filter = LogFilter { to: u64::MAX, addresses: vec![TOKEN], ..LogFilter::default() };
    filter.topics[2] = vec![address(Random(5).below(accounts)).into_word()];
    let started = Instant::now();
    index.logs(&filter, 10_000).expect("few enough");
    started.elapsed().as_secs_f64() * 1e3
}

fn sent(index: &Index, accounts: u64) -> f64 {
    let mut random = Random(6);
    let range = Location::first_of(0)..=Location::last_of(u64::MAX);
    let started = Instant::now();
    for _ in 0..1_000 {
        let sender = address(random.below(accounts));
        index.transactions_of(sender, &range, Direction::Descending, 25).expect("the disk reads");
    }
    started.elapsed().as_secs_f64() * 1e3
}

// ---- The chain ----

const TOKEN: Address = Address::repeat_byte(0x70);

/// Makes blocks whose updates, senders and recipients are random accounts.
struct Feed {
    accounts: u64,
    parent: Header,
    random: Random,
    body: Vec<UserTransaction>,
}

struct Fed {
    block: Arc<Block>,
    receipts: Vec<Receipt>,
    parties: Vec<Parties>,
    diff: StateDiff,
}

impl Fed {
    /// Bytes of keys and values that the block becomes.
    fn row_bytes(&self) -> usize {
        let (state, history, change) = (22 + 41, 30 + 42, 21);
        let (location, sender) = (33 + 12, 33 + 32);
        // Two topics with an index each, and the index in the lists of the token, its event, and any log.
        let postings = 2 * (42 + 4) + 3 * 4;
        let receipts: usize = self.receipts.iter().map(|receipt| 13 + 45 + receipt.encode().len()).sum();
        self.block.encode().len()
            + receipts
            + self.diff.changes().len() * (state + history + change)
            + self.receipts.len() * (location + sender + postings)
    }

    fn apply(self, index: &Index) {
        index.apply(&self.block, &self.receipts, self.parties, &[], &self.diff).expect("it follows");
    }
}

impl Feed {
    fn new(accounts: u64) -> Self {
        // Signing takes longer than all that is measured here, so every block has the same body.
        let body = (0..TRANSACTIONS).map(|nonce| transfer(person(0), nonce, person(1).address, 1)).collect();
        Self { accounts, parent: Header::default(), random: Random(7), body }
    }

    fn next(&mut self) -> Fed {
        let number = self.parent.number + 1;
        let timestamp = TimestampMs(number);
        let header = Header { number, timestamp, parent_hash: self.parent.hash(), ..Header::default() };
        self.parent = header.clone();
        let (receipts, parties) = (0..TRANSACTIONS).map(|index| self.transaction(number, index)).unzip();
        let block = Arc::new(Block { header, transactions: self.body.clone() });
        Fed { block, receipts, parties, diff: self.diff() }
    }

    fn diff(&mut self) -> StateDiff {
        let mut chosen = BTreeSet::new();
        while (chosen.len() as u64) < UPDATES {
            chosen.insert(self.random.below(self.accounts));
        }
        let changes = chosen.into_iter().map(|n| StateChange {
            key: account(n),
            old: Some(balance(n)),
            new: Some(balance(self.random.next())),
        });
        StateDiff::new(changes.collect())
    }

    fn transaction(&mut self, number: u64, index: u64) -> (Receipt, Parties) {
        let (from, to) = (self.someone(), self.someone());
        let place = [number.to_be_bytes(), index.to_be_bytes()].concat();
        let topics = vec![B256::repeat_byte(0xdd), from.into_word(), to.into_word()];
        let data = Bytes::from(self.random.next().to_be_bytes().repeat(4));
        let receipt = Receipt {
            transaction_type: 2,
            transaction_hash: keccak256(place),
            outcome: Outcome::Success,
            gas_used: Gas(21_000),
            cumulative_gas_used: Gas(21_000 * (index + 1)),
            effective_gas_price: GasPrice(1),
            contract_address: None,
            failed_call: None,
            schedule_ref: None,
            logs: vec![Log { address: TOKEN, data: LogData::new_unchecked(topics, data) }],
        };
        (receipt, Parties { from, to: Some(TOKEN), run: None })
    }

    fn someone(&mut self) -> Address {
        address(self.random.below(self.accounts))
    }
}

fn address(n: u64) -> Address {
    let mut random = Random(n.wrapping_mul(0x1234_5678_9abc_def1));
    let words = [random.next(), random.next(), random.next()].map(u64::to_be_bytes);
    Address::from_slice(&words.as_flattened()[..20])
}

fn account(n: u64) -> StateKey {
    StateKey::Account(address(n))
}

fn balance(n: u64) -> Bytes {
    Account { nonce: n % 1_000, balance: U256::from(n) << 24, ..Account::default() }.encode()
}

/// SplitMix64: the same blocks in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

// ---- The system ----

fn disk_size(path: &Path) -> u64 {
    let metadata = fs::metadata(path).expect("it is there");
    if metadata.is_file() {
        return metadata.blocks() * 512;
    }
    fs::read_dir(path).expect("a directory").map(|entry| disk_size(&entry.expect("an entry").path())).sum()
}

fn percentile(values: &mut [f64], part: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * part) as usize]
}

fn disk_written() -> u64 {
    field("/proc/self/io", "write_bytes:") as u64
}

fn memory(name: &str) -> f64 {
    field("/proc/self/status", name) / 1e3
}

fn field(file: &str, name: &str) -> f64 {
    let text = fs::read_to_string(file).expect("this is Linux");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("the field is there");
    line.split_whitespace().next().and_then(|word| word.parse().ok()).expect("a number")
}

/// Processor time of this thread.
fn thread_seconds() -> f64 {
    field("/proc/thread-self/schedstat", "") / 1e9
}

/// Processor time of all threads; the kernel counts it in hundredths of a second.
fn process_seconds() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").expect("this is Linux");
    let after_name = text.rsplit_once(')').expect("the name is in brackets").1;
    let fields: Vec<_> = after_name.split_whitespace().collect();
    let ticks = |n: usize| fields[n].parse::<f64>().expect("a number");
    (ticks(11) + ticks(12)) / 100.0
}
