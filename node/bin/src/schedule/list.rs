//! `almanac schedule list`.

use super::describe;
use crate::client::{
    address::parse_address,
    node::{NodeArgs, text},
    output::{OutputArgs, Table},
};
use alloy_primitives::Address;
use clap::Args;
use serde_json::{Value, json};

/// Schedules in one answer of a node.
const PAGE: usize = 100;

/// Which schedules.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  almanac schedule list
  almanac schedule list --owner 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266 --status pending
  almanac schedule list --json")]
pub(crate) struct ListArgs {
    /// Only those of this account.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    owner: Option<Address>,

    /// Only those that call this contract.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    target: Option<Address>,

    /// Only those with this status: pending, succeeded, failed, cancelled, exhausted, quarantined.
    #[arg(long)]
    status: Option<String>,

    /// Only those of this lane: reserved, cron, market, spare, signed.
    #[arg(long)]
    lane: Option<String>,

    /// At most so many, the oldest first.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    limit: u16,

    #[command(flatten)]
    node: NodeArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &ListArgs) -> anyhow::Result<()> {
    let (schedules, is_whole) = schedules(args)?;
    let now = args.node.now()?;
    args.output.print(
        || json!({ "schedules": schedules, "isWhole": is_whole }),
        || {
            if schedules.is_empty() {
                return "no schedules\n".to_owned();
            }
            let mut table =
                Table::new(&["id", "status", "door", "target", "how often", "runs", "next run", "escrow"]);
            for schedule in &schedules {
                table.row([
                    text(&schedule["id"]),
                    text(&schedule["status"]),
                    text(&schedule["terms"]["door"]),
                    text(&schedule["target"]),
                    describe::rhythm(schedule),
                    describe::runs(schedule),
                    describe::next(schedule, now),
                    describe::money(&schedule["escrow"]),
                ]);
            }
            let more = if is_whole { "" } else { "there are more: raise --limit\n" };
            table.text() + more
        },
    )
}

/// The schedules, page by page, and whether these are all.
fn schedules(args: &ListArgs) -> anyhow::Result<(Vec<Value>, bool)> {
    let limit = usize::from(args.limit);
    let mut found: Vec<Value> = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let mut filter = json!({ "limit": PAGE.min(limit - found.len()) });
        let named = [
            ("owner", json!(args.owner)),
            ("target", json!(args.target)),
            ("status", json!(args.status)),
            ("lane", json!(args.lane)),
            ("cursor", cursor),
        ];
        for (name, value) in named.into_iter().filter(|(_, value)| !value.is_null()) {
            filter[name] = value;
        }
        let mut page = args.node.ask("almanac_listSchedules", &json!([filter]))?;
        if let Some(schedules) = page["schedules"].as_array_mut() {
            found.append(schedules);
        }
        cursor = page["cursor"].take();
        if cursor.is_null() || found.len() >= limit {
            return Ok((found, cursor.is_null()));
        }
    }
}
