//! Faults of real processes: killed, stopped, cut off, out of disk; how each begins and ends, and what may happen
//! meanwhile.

use super::{
    network::{Network, PATIENCE, wait_for},
    relay::Wire,
};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use std::{
    thread::sleep,
    time::{Duration, Instant},
};

/// How long a fault lasts.
const FAULT: Duration = Duration::from_millis(1_500);

/// A fault of some validators, and how it ends.
pub struct Fault {
    pub name: &'static str,
    begin: fn(&mut Network, &[usize]),
    end: fn(&mut Network, &[usize]),
}

pub const FAULTS: [Fault; 5] = [
    Fault { name: "kill -9", begin: kill, end: restart },
    Fault { name: "SIGSTOP", begin: stop, end: resume },
    Fault { name: "hangup", begin: |net, some| net.set_wires(some, Wire::Cut), end: heal },
    Fault { name: "silence", begin: |net, some| net.set_wires(some, Wire::Stalled), end: heal },
    Fault { name: "full disk", begin: fill_disk, end: restart },
];

/// A fault from its beginning to the end of what followed from it.
pub fn strike(net: &mut Network, fault: &Fault, some: &[usize]) {
    let what = format!("{} of {some:?}", fault.name);
    (fault.begin)(net, some);
    if some.len() == 1 {
        // More than a round: the turn of the one that is missing comes as well.
        go_on(net, some, 5);
    } else {
        stand_still(net, some, &what);
    }
    (fault.end)(net, some);
    let begin = Instant::now();
    go_on(net, &[], 3);
    let recovery = begin.elapsed();
    assert!(recovery < PATIENCE, "{what}: back after {recovery:?}");
    println!("{what}: all go on {:.1} s after its end", recovery.as_secs_f64());
}

/// Waits until every node but those has made so many blocks above the highest.
pub fn go_on(net: &Network, without: &[usize], blocks: u64) {
    let others = || net.nodes.iter().enumerate().filter(|(index, _)| !without.contains(index));
    let height = others().map(|(_, node)| node.height()).max().unwrap() + blocks;
    for (index, node) in others() {
        wait_for(&format!("block {height} on v{index} (without {without:?})"), || {
            (node.height() >= height).then_some(())
        });
    }
}

/// Checks that those who are left are too few to make a block.
fn stand_still(net: &Network, without: &[usize], what: &str) {
    // What had the votes already may still become final, and a busy node may learn of it late.
    const ON_THEIR_WAY: u64 = 2;
    if without.len() == net.nodes.len() {
        return sleep(FAULT);
    }
    let highest = || {
        let others = net.nodes.iter().enumerate().filter(|(index, _)| !without.contains(index));
        others.map(|(_, node)| node.height()).max().unwrap()
    };
    let (begin, first) = (Instant::now(), highest());
    sleep(FAULT / 2);
    loop {
        let before = highest();
        sleep(FAULT);
        let now = highest();
        assert!(now <= first + ON_THEIR_WAY, "{what}: from block {first} to {now} without a quorum");
        if now == before {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "{what}: no end of blocks without a quorum");
    }
}

fn stop(net: &mut Network, some: &[usize]) {
    signal(net, some, "-STOP");
}

fn resume(net: &mut Network, some: &[usize]) {
    signal(net, some, "-CONT");
}

fn signal(net: &mut Network, some: &[usize], name: &str) {
    for &index in some {
        net.nodes[index].signal(name);
    }
}

fn kill(net: &mut Network, some: &[usize]) {
    signal(net, some, "-KILL");
    for &index in some {
        net.nodes[index].wait();
    }
}

fn restart(net: &mut Network, some: &[usize]) {
    for &index in some {
        net.restart(index);
    }
}

fn heal(net: &mut Network, some: &[usize]) {
    net.set_wires(some, Wire::Whole);
}

/// Makes every further write to a file of some size fail, and waits until the validator gives up.
fn fill_disk(net: &mut Network, some: &[usize]) {
    const FILE_BYTES_MAX: u64 = 16 << 10;
    let no_more = || Rlimit { current: Some(FILE_BYTES_MAX), maximum: Some(FILE_BYTES_MAX) };
    for &index in some {
        // The limit holds for its log as well, and what it says at the end has to fit.
        net.forget_log(index);
        let process = Pid::from_raw(i32::try_from(net.nodes[index].child.id()).unwrap());
        prlimit(process, Resource::Fsize, no_more()).unwrap();
    }
    for &index in some {
        let status = net.nodes[index].wait();
        let log = net.log(index);
        let last = log.lines().last().unwrap_or_default();
        assert_eq!(status.code(), Some(1), "v{index} ends with an error of its own: {status}, {log}");
        assert!(last.contains("File too large"), "v{index} says what was wrong: {log}");
    }
}
