//! Measures four validators against a chain of one, in the same run, both on disk with a block every 100 ms.
//!
//! `ALMANAC_BENCH_PER_BLOCK` sets the steady load, in transactions per block (300 without it).

mod chain;
mod heads;
mod measure;
#[path = "../../tests/support/mod.rs"]
mod support;
mod transfers;

use chain::Chain;
use measure::{Load, Measured, Times, Work, measure};

fn main() {
    // `cargo test --all-targets` starts benches too, to see that they start.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    eprintln!("bench-network: signing");
    let per_block =
        std::env::var("ALMANAC_BENCH_PER_BLOCK").map_or(300, |text| text.parse().expect("a number"));
    let work = Work::sign(per_block);
    println!("{}", machine());
    eprintln!("bench-network: solo");
    let solo = measure(&Chain::solo(), &work);
    eprintln!("bench-network: four validators");
    let four = measure(&Chain::four(), &work);
    print(work.steady_per_block, &solo, &four);
    println!("\n{}", machine());
}

/// What else the machine has to do: figures of a busy one are not comparable.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').take(3).collect::<Vec<_>>().join(" ");
    format!("{cores} cores, load average {load}")
}

fn print(per_block: u64, solo: &Measured, four: &Measured) {
    println!("| | solo | four validators | goal |");
    println!("|---|---|---|---|");
    idle(&solo.idle, &four.idle);
    let steady = format!("{per_block} transactions per 100 ms");
    load(&steady, &solo.steady, &four.steady, [&per_block.to_string(), "p50 ≤ 50"]);
    load("as fast as taken", &solo.flood, &four.flood, ["", ""]);
    rate("transactions/s final", solo.flood_per_second, four.flood_per_second);
    rate("runs/s final", solo.runs_per_second, four.runs_per_second);
    row("runs: from due to final, p50 / p99, ms", &both(&solo.run_lateness), &both(&four.run_lateness), "");
}

fn idle(solo: &Load, four: &Load) {
    row("idle: from one block to the next, p50 / p99, ms", &both(&solo.interval), &both(&four.interval), "");
    row("idle: from proposal to final, p50 / p99, ms", "–", &both(&four.finality), "");
    used("idle", solo, four);
}

fn load(name: &str, solo: &Load, four: &Load, [held, finality]: [&str; 2]) {
    let figure = |load: &Load| format!("{:.0}", load.per_block);
    row(&format!("{name}: transactions per block"), &figure(solo), &figure(four), held);
    row(
        &format!("{name}: from one block to the next, p50 / p99, ms"),
        &both(&solo.interval),
        &both(&four.interval),
        "",
    );
    row(&format!("{name}: from proposal to final, p50 / p99, ms"), "–", &both(&four.finality), finality);
    row(
        &format!("{name}: from sending to final, p50 / p99, ms"),
        &both(&solo.receipt),
        &both(&four.receipt),
        "",
    );
    used(name, solo, four);
    let cpu = |load: &Load| format!("{:.2}", load.cpu_ms_per_transaction);
    row(&format!("{name}: processor time per transaction and node, ms"), &cpu(solo), &cpu(four), "");
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
