//! How far apart blocks are, by their own times, while something else goes on.

use super::polite::get_from;
use serde_json::Value;
use std::{
    fmt,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

/// What an attack may add to twice the idle interval. Attackers, nodes and the client that looks on share two cores with
/// whatever else the machine does, and a build of the tests is not optimised. Before there were limits, blocks of 100 ms
/// came a second apart.
const ALLOWANCE: Duration = Duration::from_millis(400);

/// The intervals between blocks.
pub struct Pace {
    pub blocks: u64,
    pub p99: Duration,
}

impl Pace {
    /// Looks on while `work` is done, from another address.
    pub fn during<T>(address: &str, work: impl FnOnce() -> T) -> (Self, T) {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let watcher = scope.spawn(|| Self::watch(address, &is_over));
            // Also where the work panics, or the watcher would go on for ever.
            let over = Over(&is_over);
            let done = work();
            drop(over);
            (watcher.join().expect("a watcher sees blocks"), done)
        })
    }

    /// Blocks that came between two looks share the time between them.
    fn watch(address: &str, is_over: &AtomicBool) -> Self {
        let mut intervals = Vec::new();
        let (mut number, mut time) = look(address);
        while !is_over.load(Ordering::Acquire) {
            let (next, at) = look(address);
            let blocks = next - number;
            let interval = Duration::from_millis(at - time).checked_div(u32::try_from(blocks).unwrap());
            intervals.extend(interval.into_iter().flat_map(|interval| (0..blocks).map(move |_| interval)));
            (number, time) = (next, at);
            thread::sleep(Duration::from_millis(10));
        }
        intervals.sort();
        let p99 = *intervals.get(intervals.len() * 99 / 100).expect("there were blocks");
        Self { blocks: intervals.len() as u64, p99 }
    }

    /// Fails where blocks of an attack are more than twice as far apart as without it, and a little.
    pub fn check_against(&self, idle: &Self) {
        let limit = 2 * idle.p99 + ALLOWANCE;
        assert!(self.p99 <= limit, "attacked: {self}; idle: {idle}; at most {limit:?}");
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} blocks, p99 {:?} apart", self.blocks, self.p99)
    }
}

/// Number and time of the last block.
fn look(address: &str) -> (u64, u64) {
    let page = get_from(3, address, "/health").expect("the node answers");
    let health: Value = serde_json::from_str(&page).unwrap_or_else(|error| panic!("{error}: {page}"));
    let field = |name: &str| health[name].as_u64().unwrap_or_else(|| panic!("{page}"));
    (field("block"), field("timestampMs"))
}

struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
