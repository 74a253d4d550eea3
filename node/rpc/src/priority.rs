//! Whoever serves requests steps back for whoever makes blocks.

use rustix::{
    process::{Pid, setpriority_process},
    thread::gettid,
};

/// The lowest priority that the system knows.
const LAST: i32 = 19;

/// Lets every other thread go before the calling one. Best effort: a system that refuses serves requests at the
/// same priority as blocks.
pub fn yield_to_blocks() {
    let thread: Pid = gettid();
    // On Linux, a thread has its own priority under its own id.
    let _ = setpriority_process(Some(thread), LAST);
}
