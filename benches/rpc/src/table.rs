//! The figures side by side, with ratios.

use crate::{Measured, load::Outcome, node::Contender, transfers};
use std::time::Duration;

/// Prints one row per figure: the medians of both, and the first divided by the second.
pub(crate) fn print(contenders: &[Contender; 2], measured: &[Measured; 2]) {
    let [ours, theirs] = measured;
    println!(
        "| {} transfers | {} | {} | ratio |",
        transfers::COUNT,
        contenders[0].command(),
        contenders[1].command()
    );
    println!("|---|---|---|---|");
    row("start to first answer, ms", ms(median(ours.start.clone())), ms(median(theirs.start.clone())));
    for (name, ours, theirs) in
        [("one by one", &ours.single, &theirs.single), ("batches of 100", &ours.batch, &theirs.batch)]
    {
        let compare = |what: &str, figure: &dyn Fn(&Outcome) -> f64| {
            row(&format!("{name}: {what}"), typical(ours, figure), typical(theirs, figure));
        };
        compare("included per second", &|outcome| rate(outcome.included_in));
        compare("submitted per second", &|outcome| rate(outcome.submitted_in));
        compare("refused and sent again", &|outcome| outcome.refusals as f64);
        compare("eth_call p50, ms", &|outcome| ms(percentile(&outcome.call, 50)));
        compare("eth_call p99, ms", &|outcome| ms(percentile(&outcome.call, 99)));
        compare("eth_getBalance p50, ms", &|outcome| ms(percentile(&outcome.balance, 50)));
        compare("eth_getBalance p99, ms", &|outcome| ms(percentile(&outcome.balance, 99)));
        compare("memory afterwards, MB", &|outcome| outcome.memory as f64 / 1e6);
    }
}

fn row(name: &str, ours: f64, theirs: f64) {
    let ratio = if theirs > 0.0 { format!("{:.2}", ours / theirs) } else { "–".to_owned() };
    println!("| {name} | {} | {} | {ratio} |", short(ours), short(theirs));
}

/// Three significant digits below a thousand, none behind the point above.
fn short(value: f64) -> String {
    let digits = if value >= 100.0 || value == 0.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$}")
}

fn typical(outcomes: &[Outcome], figure: &dyn Fn(&Outcome) -> f64) -> f64 {
    median(outcomes.iter().map(figure).collect())
}

fn median<T: PartialOrd + Copy>(mut values: Vec<T>) -> T {
    values.sort_by(|a, b| a.partial_cmp(b).expect("no figure is NaN"));
    values[values.len() / 2]
}

/// The value that so many percent of the sorted ones do not pass.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted.get((sorted.len() * percent).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default()
}

fn rate(time: Duration) -> f64 {
    transfers::COUNT as f64 / time.as_secs_f64()
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
