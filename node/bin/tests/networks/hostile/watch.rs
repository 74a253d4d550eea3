//! Watches validators while they are attacked: blocks, a transfer, memory, open files, the log.

use crate::support::{Node, to_bob};
use std::{
    thread::sleep,
    time::{Duration, Instant},
};

/// What must be left of the rate of blocks without an attack, where `ALMANAC_HOSTILE_RATES` is set: an unoptimised
/// build on a machine that has other things to do makes few blocks under a flood. That a transfer is included must
/// hold anywhere.
const RATE_LEFT_MIN: f64 = 1.0 / 3.0;

/// Most memory that a validator may ever have.
const MEMORY_MEGABYTES_MAX: u64 = 800;

/// Most files and sockets that a validator may have open beside those that it had before.
const FILES_MORE_MAX: usize = 2_200;

/// Windows of time of which one must be good, where rates are looked at.
const WINDOWS: usize = 6;

/// How validators do beside a peer that votes and proposes nothing: each of its turns costs the others some time.
pub struct Watch {
    blocks_per_second: f64,
    files: usize,
    /// Of the next transfer.
    nonce: u64,
    problems: Vec<String>,
}

impl Watch {
    /// Looks at validators that are left in peace. The sender of transfers has used so many nonces.
    pub fn start(nodes: &[Node], nonce: u64, time: Duration) -> Self {
        let seen = Seen::during(nodes, time);
        println!("{:<32} {seen}", "in peace");
        Self { blocks_per_second: seen.blocks_per_second, files: seen.files, nonce, problems: Vec::new() }
    }

    /// Looks at them under an attack: they make blocks, one of them takes a transfer, and they stay small.
    pub fn check(&mut self, nodes: &[Node], name: &str, time: Duration) {
        let taker = &nodes[usize::try_from(self.nonce).unwrap() % nodes.len()];
        let hash = taker.send(&to_bob(self.nonce))["result"].clone();
        self.nonce += 1;
        let are_rates_checked = std::env::var_os("ALMANAC_HOSTILE_RATES").is_some();
        let (mut seen, mut left) = (Seen::during(nodes, time), 0.0);
        for window in 1..=WINDOWS {
            left = seen.blocks_per_second / self.blocks_per_second;
            println!("{name:<32} {seen} {:3.0} %", left * 100.0);
            if !are_rates_checked || left >= RATE_LEFT_MIN || window == WINDOWS {
                break;
            }
            seen = Seen::during(nodes, time);
        }
        let mut expect = |holds: bool, problem: &str| {
            if !holds {
                self.problems.push(format!("{name}: {problem}"));
            }
        };
        expect(!are_rates_checked || left >= RATE_LEFT_MIN, "too few blocks");
        expect(seen.memory_megabytes <= MEMORY_MEGABYTES_MAX, "too much memory");
        expect(seen.files <= self.files + FILES_MORE_MAX, "too many open files");
        expect(!taker.receipt(&hash).is_null(), "the transfer is not included");
    }

    /// Says all that was wrong, after the whole table.
    pub fn end(self) {
        assert_eq!(self.problems, Vec::<String>::new());
    }
}

/// The worst of several validators.
struct Seen {
    blocks_per_second: f64,
    /// Ever so far.
    memory_megabytes: u64,
    files: usize,
}

impl Seen {
    fn during(nodes: &[Node], time: Duration) -> Self {
        let heights = || -> Vec<u64> { nodes.iter().map(Node::height).collect() };
        let (begin, before, mut files) = (Instant::now(), heights(), 0);
        while begin.elapsed() < time {
            sleep(Duration::from_millis(100));
            files = files.max(nodes.iter().map(Node::open_files).max().unwrap());
        }
        let (after, seconds) = (heights(), begin.elapsed().as_secs_f64());
        let blocks = before.iter().zip(after).map(|(before, after)| after - before).min().unwrap();
        let memory = nodes.iter().map(Node::memory_peak_kilobytes).max().unwrap();
        let blocks_per_second = f64::from(u32::try_from(blocks).unwrap()) / seconds;
        Self { blocks_per_second, memory_megabytes: memory >> 10, files }
    }
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { blocks_per_second, memory_megabytes, files } = self;
        write!(f, "{blocks_per_second:4.1} blocks/s {memory_megabytes:4} MB {files:4} files")
    }
}
