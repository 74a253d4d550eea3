//! Measures four validators against a chain of one, in the same run, both on disk with a block every 100 ms.

mod chain;
mod heads;
mod measure;
#[path = "../../tests/support/mod.rs"]
mod support;
mod transfers;

use chain::Chain;
use measure::{Load, Measured, STEADY_PER_BLOCK, Times, Work, measure};

fn main() {
    // `cargo test --all-targets` starts benches too, to see that they start.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    eprintln!("bench-network: signing");
    let work = Work::sign();
    println!("{}", machine());
    eprintln!("bench-network: solo");
    let solo = measure(&Chain::solo(), &work);
    eprintln!("bench-network: four validators");
    let four = measure(&Chain::four(), &work);
    print(&solo, &four);
    println!("\n{}", machine());
}

/// What else the machine has to do: figures of a busy one are not comparable.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').take(3).collect::<Vec<_>>().join(" ");
    format!("{cores} cores, load average {load}")
}

fn print(solo: &Measured, four: &Measured) {
    println!("| | solo | four validators | goal |");
    println!("|---|---|---|---|");
    idle(&solo.idle, &four.idle);
    load(&format!("{STEADY_PER_BLOCK} transactions per 100 ms"), &solo.steady, &four.steady, "p50 ≤ 50");
    load("as fast as taken", &solo.flood, &four.flood, "");
    rate("transactions/s final", solo.flood_per_second, four.flood_per_second);
    rate("runs/s final", solo.runs_per_second, four.runs_per_second);
    row("runs: from due to final, p50 / p99, ms", &both(&solo.run_lateness), &both(&four.run_lateness), "");
}

fn idle(solo: &Load, four: &Load) {
    row("idle: from one block to the next, p50 / p99, ms", &both(&solo.interval), &both(&four.interval), "");
    row("idle: from proposal to final, p50 / p99, ms", "–", &both(&four.finality), "");
    used("idle", solo, four);
}

fn load(name: &str, solo: &Load, four: &Load, goal: &str) {
    let figure = |load: &Load| format!("{:.0}", load.per_block);
    let held = if goal.is_empty() { String::new() } else { STEADY_PER_BLOCK.to_string() };
    row(&format!("{name}: transactions per block"), &figure(solo), &figure(four), &held);
    row(
        &format!("{name}: from one block to the next, p50 / p99, ms"),
        &both(&solo.interval),
        &both(&four.interval),
        "",
    );
    row(&format!("{name}: from proposal to final, p50 / p99, ms"), "–", &both(&four.finality), goal);
    row(
        &format!("{name}: from sending to final, p50 / p99, ms"),
        &both(&solo.receipt),
        &both(&four.receipt),
        "",
    );
    used(name, solo, four);
}

fn used(name: &str, solo: &Load, four: &Load) {
    let cores = |load: &Load| format!("{:.2}", load.cores_per_node);
    row(&format!("{name}: processors busy per node"), &cores(solo), &cores(four), "");
    let bytes = format!("{:.0}", four.wire_bytes_per_block);
    row(&format!("{name}: bytes sent per block, all nodes"), "–", &bytes, "");
}

fn rate(name: &str, solo: f64, four: f64) {
    let goal = format!("≥ 0.1 of solo: {:.2}", four / solo);
    row(name, &format!("{solo:.0}"), &format!("{four:.0}"), &goal);
}

fn row(name: &str, solo: &str, four: &str, goal: &str) {
    println!("| {name} | {solo} | {four} | {goal} |");
}

fn both(times: &Times) -> String {
    format!("{:.0} / {:.0}", percentile(times, 50), percentile(times, 99))
}

/// The time that so many percent of the sorted ones do not pass.
fn percentile(sorted: &Times, percent: usize) -> f64 {
    sorted.get((sorted.len() * percent).div_ceil(100).saturating_sub(1)).copied().unwrap_or(f64::NAN)
}
