//! `almanac schedule show`.

use super::{SIGNED, describe, signed::show::Signatures};
use crate::client::{
    node::{NodeArgs, maybe_time, quantity, text},
    output::{Facts, OutputArgs, Table, status_colour},
    words::{date, distance},
};
use almanac_primitives::TimestampMs;
use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};

/// Runs that are shown: the last ones, and the next ones.
const RUNS: u64 = 5;

/// Which schedule.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  almanac schedule show 2-1-0
  almanac schedule show 0x20000400 --json
  almanac schedule info 2-1-0                      the same, by its name in the schedule service

An id has three forms: block-transaction-place, decimal and hexadecimal.")]
pub(crate) struct ShowArgs {
    /// Id of the schedule.
    id: String,

    #[command(flatten)]
    node: NodeArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &ShowArgs) -> anyhow::Result<()> {
    let schedule = get(&args.node, &args.id)?;
    let signatures = match schedule["terms"]["door"] == SIGNED {
        true => Signatures::read(&args.node, text(&schedule["id"]).parse()?)?,
        false => None,
    };
    let runs = args.node.ask("almanac_getRuns", &json!([args.id, { "order": "newest", "limit": RUNS }]))?;
    let is_pending = schedule["status"] == "pending";
    // What has ended has neither, nor has what nobody knows the time of.
    let (runway, preview) = match is_pending && signatures.is_none() {
        true => (
            args.node.ask("almanac_runway", &json!([args.id]))?,
            args.node.ask("almanac_preview", &json!([args.id, RUNS]))?,
        ),
        false => (Value::Null, Value::Null),
    };
    let now = args.node.now()?;
    args.output.print(
        || {
            json!({ "schedule": schedule, "runway": runway, "preview": preview, "runs": runs["runs"],
                "signatures": signatures.as_ref().map(Signatures::described) })
        },
        || match &signatures {
            Some(signatures) => {
                let facts = signatures.facts(&text(&schedule["status"]), now);
                facts.text() + &last_runs(&runs["runs"], now)
            }
            None => shown(&schedule, &runway, &preview, &runs["runs"], now),
        },
    )
}

/// The schedule with this id, which may be written in every form that a node reads.
pub(super) fn get(node: &NodeArgs, id: &str) -> anyhow::Result<Value> {
    let schedule = node.ask("almanac_getSchedule", &json!([id]))?;
    (!schedule.is_null()).then_some(schedule).with_context(|| {
        format!("UnknownSchedule: there is no schedule {id}: list them with `almanac schedule list`")
    })
}

fn shown(schedule: &Value, runway: &Value, preview: &Value, runs: &Value, now: TimestampMs) -> String {
    let status = text(&schedule["status"]);
    let terms = &schedule["terms"];
    let number = |value: &Value| quantity(value).map_or_else(|_| text(value), |number| number.to_string());
    let mut facts = Facts::default();
    facts.add("schedule", format!("{} ({})", text(&schedule["id"]), number(&schedule["idNumber"])));
    facts.add("status", status_colour(&status).paint(&status));
    if !schedule["end"].is_null() {
        if !schedule["end"]["reason"].is_null() {
            facts.add("ended", describe::reason(schedule));
        }
        facts.add("returned", describe::money(&schedule["end"]["refunded"]));
    }
    facts.add("door", format!("{}, {} lane", text(&terms["door"]), text(&schedule["lane"])));
    facts.add("how often", describe::rhythm(schedule));
    if !schedule["nextRun"].is_null() {
        facts.add("next run", describe::next(schedule, now));
    }
    facts.add("runs", describe::runs(schedule));
    facts.add("owner", text(&schedule["owner"]));
    facts.add("calls", format!("{} with {}", text(&schedule["target"]), text(&terms["input"])));
    facts.add("gas", format!("{} for each run", number(&terms["gasLimit"])));
    facts.add("escrow", describe::money(&schedule["escrow"]));
    facts.add("spent", describe::money(&schedule["feesTotal"]));
    if !runway.is_null() {
        facts.add("lasts for", runway_words(runway));
    }
    let mut out = facts.text();
    let previewed = preview["runs"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !previewed.is_empty() {
        out += "\nNext runs, tried now\n";
        out += &run_table(previewed, now);
    }
    out + &last_runs(runs, now)
}

fn last_runs(runs: &Value, now: TimestampMs) -> String {
    let done = runs.as_array().map(Vec::as_slice).unwrap_or_default();
    if done.is_empty() { String::new() } else { format!("\nLast runs\n{}", run_table(done, now)) }
}

fn runway_words(runway: &Value) -> String {
    let runs = quantity(&runway["runs"]).unwrap_or_default();
    let least = if runway["isLeast"] == true { "at least " } else { "" };
    let until =
        maybe_time(&runway["lastRun"]).map(|last| format!(", until {}", date(last))).unwrap_or_default();
    let limit = if runway["limitedBy"] == "escrow" { "; then the escrow is empty" } else { "" };
    format!("{least}{}{until}{limit}", crate::client::words::counted(runs, "run"))
}

fn run_table(runs: &[Value], now: TimestampMs) -> String {
    let has_receipts = runs.iter().any(|run| !run["receipt"].is_null());
    let titles = ["run", "time", "result", "gas", "cost", "transaction"];
    let mut table = Table::new(if has_receipts { &titles } else { &titles[..5] });
    for run in runs {
        let number = run_number(run);
        let time = maybe_time(&run["time"]);
        let gas = if run["gasUsed"].is_null() { &run["receipt"]["gasUsed"] } else { &run["gasUsed"] };
        table.row([
            format!("#{number}"),
            time.map_or_else(|| "-".to_owned(), |time| format!("{} ({})", date(time), distance(time, now))),
            outcome(run),
            quantity(gas).map_or_else(|_| "-".to_owned(), |gas| gas.to_string()),
            describe::money(&run["fee"]),
            if run["receipt"].is_null() { String::new() } else { text(&run["receipt"]["transactionHash"]) },
        ]);
    }
    table.text()
}

/// The number of a run as people count: the first is 1. Programs get the chain's own, from 0.
pub(crate) fn run_number(run: &Value) -> u64 {
    quantity(&run["run"]).unwrap_or_default().saturating_add(1)
}

/// How a run went, and why it failed.
pub(super) fn outcome(run: &Value) -> String {
    match (run["success"].as_bool(), &run["error"]) {
        (Some(true), _) => "succeeded".to_owned(),
        (_, Value::Null) => "failed".to_owned(),
        (_, error) => format!("failed: {}", text(error)),
    }
}
