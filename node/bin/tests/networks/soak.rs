//! Load and faults for minutes: memory, open files, the files of consensus and disk per block stay flat. `make soak`.
//!
//! `ALMANAC_SOAK_S` sets for how long (1,800 without it), `ALMANAC_SOAK_BLOCK_MS` the time between blocks (100).

use crate::support::{
    audit::audit,
    faults::{FAULTS, go_on, strike},
    load::Load,
    machine,
    network::{Network, VALIDATORS},
};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

const BLOCK_TIME_MS: u64 = 100;

const SECONDS_PER_DAY: f64 = 86_400.0;

/// Rows of the table.
const SAMPLES: u32 = 24;

/// Height from which on memory and files have to be flat. Caches fill up first, consensus keeps up to 512 blocks and a
/// file for each of the last 256 views, and what changed in the last 4,096 blocks is kept for nodes that copy the state.
const WARM_HEIGHT: u64 = 4_600;

/// Rows that are needed from there on: with fewer, noise is all that one sees.
const WARM_SAMPLES_MIN: usize = 8;

/// Memory that the index writes in: so little that it is full several times before the time that counts. With the
/// usual amount, half an hour is over before it is full for the second time.
const INDEX_BUFFER_MB: u64 = 2;

/// Memory for what was read from the disk: so little that it is full before the time that counts. The usual amount takes
/// hours to fill.
const CACHE_MB: u64 = 10;

/// Validators that no fault restarts, and those that are killed every minute or so.
const SURVIVORS: [usize; 2] = [2, 3];
const MORTALS: [usize; 2] = [0, 1];

/// Most memory that a validator may have.
const MEMORY_MB_MAX: f64 = 300.0;

/// Most that the files of consensus may take: 512 blocks of this load, their certificates, and votes.
const CONSENSUS_MB_MAX: f64 = 64.0;

/// Most that the journal of the index may take: two of the largest.
const JOURNAL_MB_MAX: f64 = 256.0;

/// What a validator used at one moment.
#[derive(Clone, Copy, Debug)]
struct Sample {
    time: Duration,
    height: u64,
    memory_kilobytes: u64,
    open_files: usize,
    /// Blocks and state.
    chain_bytes: u64,
    /// What consensus keeps for itself.
    consensus_bytes: u64,
    /// The least since the sample before.
    index_bytes: u64,
    /// What the index has written and not yet put into tables.
    journal_bytes: u64,
}

impl Sample {
    fn disk_bytes(&self) -> u64 {
        self.chain_bytes + self.consensus_bytes + self.index_bytes
    }
}

#[test]
#[ignore = "takes half an hour"]
fn memory_files_and_disk_stay_flat_under_load_and_faults() {
    machine::alone();
    let number = |name, default| std::env::var(name).map_or(default, |text| text.parse().expect("a number"));
    let every = Duration::from_secs(number("ALMANAC_SOAK_S", 1_800)) / SAMPLES;
    let mut net =
        Network::with_memory(number("ALMANAC_SOAK_BLOCK_MS", BLOCK_TIME_MS), INDEX_BUFFER_MB, CACHE_MB);
    let load = Load::start(net.nodes.iter().map(|node| node.address.clone()));
    go_on(&net, &[], 3);
    let (begin, mut faults) = (Instant::now(), 0);
    let mut rows: Vec<[Sample; VALIDATORS]> = Vec::new();
    let tables: [Least; VALIDATORS] =
        std::array::from_fn(|index| Least::watch(data(&net, index).join("index/keyspaces")));
    println!(
        "  time  height    memory, MB of v0 to v3     files           chain, consensus, index, its journal, MB of v2"
    );
    for row in 1..=SAMPLES {
        while begin.elapsed() + every / 2 < every * row {
            misfortune(&mut net, faults);
            faults += 1;
        }
        std::thread::sleep((every * row).saturating_sub(begin.elapsed()));
        rows.push(std::array::from_fn(|index| sample(&net, index, begin.elapsed(), &tables[index])));
        print(begin.elapsed(), rows.last().unwrap());
    }
    let clients = load.stop();
    audit(&net.nodes, &clients);
    let sent: usize = clients.iter().map(|client| client.transactions.len()).sum();
    println!("{faults} faults, {sent} transactions, and the chain is one");
    let warm = warm(&rows);
    let of = |index: usize| warm.iter().map(|row| row[index]).collect::<Vec<_>>();
    SURVIVORS.iter().for_each(|index| print_growth(*index, &of(*index)));
    SURVIVORS.iter().for_each(|index| check_flat(*index, &of(*index)));
}

/// One fault of one validator, or now and then of two; survivors are only stopped and cut off.
fn misfortune(net: &mut Network, count: usize) {
    let fault = &FAULTS[count % FAULTS.len()];
    let mortal = MORTALS[(count / FAULTS.len()) % MORTALS.len()];
    let victims = match fault.name {
        "kill -9" | "full disk" => vec![mortal],
        _ if count.is_multiple_of(7) => vec![mortal, SURVIVORS[mortal]],
        _ => vec![(count / FAULTS.len()) % VALIDATORS],
    };
    strike(net, fault, &victims);
}

/// Keeps the least size of a directory. A compaction writes tables anew before it removes the old ones, so that for a
/// while the index takes twice what it keeps; the least of a minute has no such moment.
struct Least {
    bytes: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Least {
    fn watch(directory: PathBuf) -> Self {
        let (bytes, is_over) = (Arc::new(AtomicU64::new(u64::MAX)), Arc::new(AtomicBool::new(false)));
        let (least, stop) = (bytes.clone(), is_over.clone());
        let thread = thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                least.fetch_min(size(&directory), Ordering::Relaxed);
                thread::sleep(Duration::from_secs(2));
            }
        });
        Self { bytes, is_over, thread: Some(thread) }
    }

    /// The least since the last time that somebody asked.
    fn take(&self) -> u64 {
        self.bytes.swap(u64::MAX, Ordering::Relaxed)
    }
}

impl Drop for Least {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it only looks at files");
        }
    }
}

fn data(net: &Network, index: usize) -> PathBuf {
    Path::new(&net.configs[index]).with_file_name("data")
}

fn sample(net: &Network, index: usize, time: Duration, tables: &Least) -> Sample {
    let node = &net.nodes[index];
    let data = data(net, index);
    let consensus_bytes = parts_of_consensus(&data.join("chain")).iter().map(|part| size(part)).sum();
    Sample {
        time,
        height: node.height(),
        memory_kilobytes: node.own_memory_kilobytes(),
        open_files: node.open_files(),
        chain_bytes: size(&data.join("chain")) - consensus_bytes,
        consensus_bytes,
        index_bytes: tables.take(),
        journal_bytes: size(&data.join("index")).saturating_sub(size(&data.join("index/keyspaces"))),
    }
}

/// The directories that consensus has among those of a chain.
fn parts_of_consensus(chain: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(chain).unwrap().map(|entry| entry.unwrap());
    let is_consensus = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("consensus");
    let parts: Vec<_> = entries.filter(is_consensus).map(|entry| entry.path()).collect();
    assert!(!parts.is_empty(), "{} has files of consensus", chain.display());
    parts
}

/// Bytes that the files of a directory occupy. A file may go while we look.
fn size(directory: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let one = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size(&entry.path()),
        Ok(metadata) => metadata.blocks() * 512,
        Err(_) => 0,
    };
    entries.map(one).sum()
}

fn print(time: Duration, row: &[Sample; VALIDATORS]) {
    let memory = row.map(|sample| format!("{:.0}", sample.memory_kilobytes as f64 / 1e3)).join(" ");
    let files = row.map(|sample| sample.open_files.to_string()).join(" ");
    let disk = [row[2].chain_bytes, row[2].consensus_bytes, row[2].index_bytes, row[2].journal_bytes];
    let disk = disk.map(|bytes| format!("{:6.1}", bytes as f64 / 1e6)).join(" ");
    println!("{:4.0} s  {:6}    {memory:22}  {files:14}  {disk}", time.as_secs_f64(), row[2].height);
}

/// One number of a sample.
type Figure = fn(&Sample) -> f64;

/// Says how much of everything a block added, and what that makes in a day.
fn print_growth(index: usize, samples: &[Sample]) {
    let halves = samples.split_at(samples.len() / 2);
    let grown = |figure: Figure| mean(halves.1.iter().map(figure)) - mean(halves.0.iter().map(figure));
    let blocks = grown(|sample| sample.height as f64);
    let days = grown(|sample| sample.time.as_secs_f64()) / SECONDS_PER_DAY;
    let figures: [(&str, Figure); 5] = [
        ("memory, bytes", |sample| sample.memory_kilobytes as f64 * 1e3),
        ("open files", |sample| sample.open_files as f64),
        ("chain, bytes", |sample| sample.chain_bytes as f64),
        ("consensus, bytes", |sample| sample.consensus_bytes as f64),
        ("index, bytes", |sample| sample.index_bytes as f64),
    ];
    for (name, figure) in figures {
        let grown = grown(figure);
        println!("v{index}: {name}: {:+.3} a block, {:+.0} a day", grown / blocks, grown / days);
    }
}

/// The rows after the warm-up.
fn warm(rows: &[[Sample; VALIDATORS]]) -> &[[Sample; VALIDATORS]] {
    let cold = rows.iter().take_while(|row| row[SURVIVORS[0]].height < WARM_HEIGHT).count();
    let warm = &rows[cold..];
    assert!(
        warm.len() >= WARM_SAMPLES_MIN,
        "{} rows above block {WARM_HEIGHT}, {WARM_SAMPLES_MIN} are needed: run it for longer",
        warm.len()
    );
    warm
}

/// Compares memory, open files and disk per block in the two halves of the time.
fn check_flat(index: usize, samples: &[Sample]) {
    let halves = samples.split_at(samples.len() / 2);
    let both = |figure: &dyn Fn(&[Sample]) -> f64| [figure(halves.0), figure(halves.1)];
    let memory = both(&|part| mean(part.iter().map(|sample| sample.memory_kilobytes as f64 / 1e3)));
    let files = both(&|part| mean(part.iter().map(|sample| sample.open_files as f64)));
    let disk = both(&|part| {
        let (begin, end) = (part[0], part[part.len() - 1]);
        (end.disk_bytes() as f64 - begin.disk_bytes() as f64) / (end.height - begin.height) as f64
    });
    let consensus = both(&|part| mean(part.iter().map(|sample| sample.consensus_bytes as f64 / 1e6)));
    println!(
        "v{index}: {:.0} then {:.0} MB, {:.0} then {:.0} files, {:.1} then {:.1} MB of consensus, {:.0} then {:.0} bytes \
         of disk per block",
        memory[0], memory[1], files[0], files[1], consensus[0], consensus[1], disk[0], disk[1]
    );
    assert!(memory[1] < memory[0] * 1.1 + 4.0, "v{index} takes more and more memory: {memory:?} MB");
    assert!(memory[1] < MEMORY_MB_MAX, "v{index} takes {memory:?} MB");
    assert!(files[1] < files[0] + 12.0, "v{index} holds on to files: {files:?}");
    assert!(
        consensus[1] < consensus[0] * 1.25 + 2.0,
        "the files of consensus of v{index} grow and grow: {consensus:?} MB"
    );
    assert!(consensus[1] < CONSENSUS_MB_MAX, "consensus takes {consensus:?} MB of v{index}");
    let journal = samples.iter().map(|sample| sample.journal_bytes as f64 / 1e6).fold(0.0, f64::max);
    assert!(journal < JOURNAL_MB_MAX, "the journal of v{index}'s index takes {journal} MB");
    assert!(disk[1] < disk[0] * 1.3, "v{index} takes more and more disk for a block: {disk:?} bytes");
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}
