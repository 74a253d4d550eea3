//! `almanac schedule watch`: a line for each run, and on a terminal the progress until the next one.

use super::{
    describe,
    show::{get, outcome, run_number},
};
use crate::{
    cli::parse_duration,
    client::{
        node::{NodeArgs, maybe_time, quantity, text},
        output::{Colour, OutputArgs, print, status_colour},
        words::{date, distance},
    },
};
use almanac_primitives::{DurationMs, TimestampMs};
use clap::Args;
use serde_json::{Value, json};
use std::{
    io::IsTerminal as _,
    time::{Duration, Instant},
};

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// Runs in one answer.
const PAGE: u64 = 100;
/// Width of the bar.
const BAR: u64 = 24;

/// Which schedule, and how long.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  almanac schedule watch 2-1-0
  almanac schedule watch 2-1-0 --for 10m --json

Ends with the schedule, and then exits with 0 unless its last run failed. With --json it prints a line for each run and
for the end.")]
pub(crate) struct WatchArgs {
    /// Id of the schedule.
    id: String,

    /// Stop after this time, also if it has not ended (30s, 10m).
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    patience: Option<DurationMs>,

    #[command(flatten)]
    node: NodeArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &WatchArgs) -> anyhow::Result<()> {
    let is_live = std::io::stdout().is_terminal() && !args.output.is_json;
    let begin = Instant::now();
    let mut cursor = Value::Null;
    let mut told: u64 = 0;
    loop {
        // In this order: a run that happens in between is found at the next look.
        let schedule = get(&args.node, &args.id)?;
        let done = quantity(&schedule["runs"]).unwrap_or_default();
        while told < done {
            let page = runs(&args.node, &args.id, &cursor)?;
            let found = page["runs"].as_array().map(Vec::as_slice).unwrap_or_default();
            let new = found.iter().filter(|run| quantity(&run["run"]).is_ok_and(|number| number >= told));
            for run in new {
                tell(args, is_live, run)?;
            }
            told = found.last().and_then(|run| quantity(&run["run"]).ok()).map_or(done, |last| last + 1);
            if page["cursor"].is_null() {
                break;
            }
            cursor = page["cursor"].clone();
        }
        if schedule["status"] != "pending" {
            return ended(args, is_live, &schedule);
        }
        if args.patience.is_some_and(|DurationMs(ms)| begin.elapsed() >= Duration::from_millis(ms)) {
            // The line with the progress is not ended yet.
            return if is_live { print("\n") } else { Ok(()) };
        }
        if is_live {
            print(&format!("\r\x1b[2K{}", progress(&schedule, args.node.now()?)))?;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn runs(node: &NodeArgs, id: &str, cursor: &Value) -> anyhow::Result<Value> {
    let mut page = json!({ "order": "oldest", "limit": PAGE });
    if !cursor.is_null() {
        page["cursor"] = cursor.clone();
    }
    node.ask("almanac_getRuns", &json!([id, page]))
}

fn tell(args: &WatchArgs, is_live: bool, run: &Value) -> anyhow::Result<()> {
    let result = outcome(run);
    let colour = if run["success"] == true { Colour::Green } else { Colour::Red };
    let start = if is_live { "\r\x1b[2K" } else { "" };
    args.output.print(
        || json!({ "event": "run", "run": run }),
        || {
            format!(
                "{start}run {}  {}  {}  {}\n",
                run_number(run),
                maybe_time(&run["time"]).map_or_else(|| "-".to_owned(), date),
                colour.paint(&result),
                describe::money(&run["fee"]),
            )
        },
    )
}

fn ended(args: &WatchArgs, is_live: bool, schedule: &Value) -> anyhow::Result<()> {
    let status = text(&schedule["status"]);
    let start = if is_live { "\r\x1b[2K" } else { "" };
    args.output.print(
        || json!({ "event": "end", "schedule": schedule }),
        || {
            let reason = match describe::reason(schedule).as_str() {
                "-" => String::new(),
                reason => format!(", {reason}"),
            };
            let returned = describe::money(&schedule["end"]["refunded"]);
            format!("{start}{}{reason}: {returned} returned\n", status_colour(&status).paint(&status))
        },
    )?;
    let last = &schedule["lastRun"];
    anyhow::ensure!(last.is_null() || last == "succeeded", "the last run failed: {}", text(last));
    Ok(())
}

/// `[######      ] 3 of 12, next run in 20 s`.
fn progress(schedule: &Value, now: TimestampMs) -> String {
    let next =
        maybe_time(&schedule["nextRun"]).map_or_else(|| "waiting".to_owned(), |next| distance(next, now));
    let runs = quantity(&schedule["runs"]).unwrap_or_default();
    match quantity(&schedule["terms"]["runsMax"]) {
        Ok(max) if max > 0 => {
            let full = usize::try_from(BAR * runs.min(max) / max).unwrap_or_default();
            let rest = BAR as usize - full;
            format!("[{}{}] {runs} of {max}, next run {next}", "#".repeat(full), " ".repeat(rest))
        }
        _ => format!("{} runs, next run {next}", runs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_shows_how_far_it_is() {
        let schedule = json!({ "runs": "0x3", "terms": { "runsMax": "0xc" }, "nextRun": { "ms": "0x7530" } });
        let shown = progress(&schedule, TimestampMs(10_000));
        assert_eq!(shown, "[######                  ] 3 of 12, next run in 20 s");
        let endless = json!({ "runs": "0x3", "terms": { "runsMax": null }, "nextRun": null });
        assert_eq!(progress(&endless, TimestampMs(0)), "3 runs, next run waiting");
    }
}
