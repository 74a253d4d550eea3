//! Time spent on processors, as Linux counts it: what else the machine does is left out.
//!
//! The count of a thread that runs is some milliseconds old, until it offers to yield.

#![allow(clippy::disallowed_methods, reason = "a stopwatch beside the transition")]

use std::{fs, path::Path, thread, time::Duration};

/// Time of all threads of this process. The time of one that ends goes with it: see [`since`].
pub fn process_time() -> Duration {
    thread::yield_now();
    let threads = fs::read_dir("/proc/self/task").expect("a thread has a folder there");
    threads.flatten().map(|thread| time_of(&thread.path())).sum()
}

/// Time of this thread.
pub fn thread_time() -> Duration {
    thread::yield_now();
    time_of(Path::new("/proc/thread-self"))
}

/// What a clock says since it said `start`; `None` if a thread has ended meanwhile.
pub fn since(start: Duration, clock: fn() -> Duration) -> Option<Duration> {
    clock().checked_sub(start)
}

fn time_of(thread: &Path) -> Duration {
    // A thread may end in between.
    let times = fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
    Duration::from_nanos(times.split(' ').next().and_then(|time| time.parse().ok()).unwrap_or_default())
}
