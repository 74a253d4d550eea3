//! `almanac agenda`: what is due next.

use crate::client::{
    moment::parse_moment,
    node::{NodeArgs, maybe_time, quantity, text},
    output::{Colour, OutputArgs, Table},
    words::{date, distance},
};
use clap::Args;
use serde_json::{Value, json};

/// Which part of the calendar.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  almanac agenda
  almanac agenda --lane cron --to \"tomorrow at 00:00 UTC\"
  almanac agenda --limit 100 --json")]
pub(crate) struct AgendaArgs {
    /// Only what is due from then on, as for `almanac schedule at`.
    #[arg(long, value_name = "WHEN")]
    from: Option<String>,

    /// Only what is due until then.
    #[arg(long, value_name = "WHEN")]
    to: Option<String>,

    /// Only this lane: reserved, cron, market, spare, signed; may be repeated.
    #[arg(long = "lane", value_name = "LANE")]
    lanes: Vec<String>,

    /// At most so many.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u8).range(1..=100))]
    limit: u8,

    #[command(flatten)]
    node: NodeArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// Prints it.
pub(crate) fn run(args: &AgendaArgs) -> anyhow::Result<()> {
    let now = args.node.now()?;
    let mut filter = json!({ "limit": args.limit });
    for (name, when) in [("from", &args.from), ("to", &args.to)] {
        if let Some(when) = when {
            filter[name] = json!(parse_moment(when, now)?.0);
        }
    }
    if !args.lanes.is_empty() {
        filter["lanes"] = json!(args.lanes);
    }
    let agenda = args.node.ask("almanac_agenda", &json!([filter]))?;
    args.output.print(
        || agenda.clone(),
        || {
            let entries = agenda["entries"].as_array().map(Vec::as_slice).unwrap_or_default();
            let mut out = match entries.is_empty() {
                true => "nothing is due\n".to_owned(),
                false => table(entries, now),
            };
            if !agenda["cursor"].is_null() {
                out += "there is more: raise --limit, or pass --from\n";
            }
            for lane in agenda["heldLanes"].as_array().into_iter().flatten() {
                out += &Colour::Yellow.paint(&format!("the {} lane is paused\n", text(lane)));
            }
            out
        },
    )
}

/// Entries of the agenda, one a line.
pub(crate) fn table(entries: &[Value], now: almanac_primitives::TimestampMs) -> String {
    let mut table = Table::new(&["due", "", "schedule", "lane", "target", "owner", "gas"]);
    for entry in entries {
        let due = maybe_time(&entry["due"]);
        table.row([
            due.map_or_else(|| "-".to_owned(), date),
            due.map_or_else(String::new, |due| distance(due, now)),
            text(&entry["id"]),
            text(&entry["lane"]),
            text(&entry["target"]),
            text(&entry["owner"]),
            quantity(&entry["gasLimit"]).map_or_else(|_| "-".to_owned(), |gas| gas.to_string()),
        ]);
    }
    table.text()
}
