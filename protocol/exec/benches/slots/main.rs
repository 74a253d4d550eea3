//! What callbacks cost: booking beside many bookings, and runs beside plain calls. `make bench-slots`.
//!
//! Everything is in memory and warm; no disk and no state root take part. What is compared takes turns within one run,
//! so that a machine that slows down slows all of it.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::float_arithmetic,
    reason = "a benchmark reads the clock; nothing here is part of a block"
)]

mod booked;
mod booking;
mod runs;
#[path = "../block/stopwatch.rs"]
#[allow(dead_code, reason = "another benchmark uses the rest")]
mod stopwatch;
#[path = "../block/workload.rs"]
#[allow(dead_code, reason = "another benchmark uses the rest")]
mod workload;

/// Measures both parts, or the one that is named: `-- booking`, `-- runs`.
fn main() {
    let named: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with("--")).collect();
    let is_wanted = |name: &str| named.is_empty() || named.iter().any(|given| given == name);
    if is_wanted("booking") {
        booking::measure();
    }
    if is_wanted("runs") {
        runs::measure();
    }
}
