//! kill -9 of a process that writes, again and again: what is left is whole, and feeding it the rest makes the
//! same index as one that was never killed.

use crate::support::{Chain, Plan, apply, keeping};
use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
    sync::mpsc,
    time::Duration,
};

const KILLS: u64 = 12;
const DEPTH: u64 = 40;
/// Where the child finds the index to write to.
const CHILD: &str = "ALMANAC_INDEX_CRASH_CHILD";

/// The n-th block of a chain that never ends and is the same in every process.
fn plan(n: u64) -> Plan {
    let at = |step: u64| u8::try_from(n.wrapping_mul(step) % 251).unwrap();
    let logs = vec![(at(3), vec![at(5), at(7)]), (at(11), vec![])];
    Plan {
        writes: (0..4).map(|i| (at(13 + i), (at(17 + i) % 3 != 0).then_some(at(19 + i)))).collect(),
        transactions: vec![(at(23), Some(at(29)), logs), (at(31), None, vec![])],
        bodies: at(37) % 3,
        ..Plan::default()
    }
}

/// Not a test: what the test below starts and kills.
#[test]
fn child_that_writes_until_it_is_killed() {
    let Ok(path) = std::env::var(CHILD) else { return };
    let mut chain = Chain::new();
    let index = chain.open(Path::new(&path), keeping(DEPTH)).unwrap();
    loop {
        let fed = chain.grow(&plan(chain.height())).clone();
        if fed.block.header.number > index.height() {
            apply(&index, &fed).unwrap();
            println!("applied {}", fed.block.header.number);
            // Slow enough that the checks of the parent, which go through all blocks, take no minutes.
            std::thread::sleep(Duration::from_micros(500));
        }
    }
}

#[test]
fn what_a_killed_process_leaves_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let mut chain = Chain::new();
    for round in 1..=KILLS {
        let applied = write_and_kill(&path, Duration::from_millis(30 + 37 * (round * 7 % 11)));
        let index = chain.open(&path, keeping(DEPTH)).unwrap();
        let height = index.height();
        assert!(height >= applied, "block {applied} was applied, and only {height} are left");
        // The last one may have been taken with the child killed before it could say so.
        assert!(height <= applied + 1, "{height} was never applied, only {applied}");
        while chain.height() < height {
            chain.grow(&plan(chain.height()));
        }
        chain.check_blocks(&index);
        chain.check_states(&index);
        assert_eq!(index.digest().unwrap(), chain.rebuilt(keeping(DEPTH)).digest().unwrap(), "round {round}");
        // It goes on, here and in the next child.
        for _ in 0..5 {
            apply(&index, chain.grow(&plan(chain.height()))).unwrap();
        }
        assert_eq!(index.digest().unwrap(), chain.rebuilt(keeping(DEPTH)).digest().unwrap(), "round {round}");
    }
    assert!(chain.height() > 2 * DEPTH, "the children got no further than {}", chain.height());
}

/// Runs the child for a while after its first block, and returns the last block it said it had applied.
fn write_and_kill(path: &Path, delay: Duration) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::child_that_writes_until_it_is_killed", "--nocapture"])
        .env(CHILD, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (begin, begun) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let numbers = lines.map_while(Result::ok);
        let numbers = numbers.filter_map(|line| line.strip_prefix("applied ")?.parse::<u64>().ok());
        numbers.inspect(|_| begin.send(()).unwrap_or(())).last()
    });
    begun.recv_timeout(Duration::from_secs(60)).expect("the child begins");
    std::thread::sleep(delay);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap().expect("the child applied something")
}
