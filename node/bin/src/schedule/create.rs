//! `almanac schedule at` and `every`: words become exact parameters, which are read back before anything is sent.

use super::{
    calls::{self, DoorName},
    order::{self, DoorArgs, Order, Wanted},
};
use crate::{
    client::{
        address::parse_address,
        call_data::call_data,
        moment::parse_moment,
        node::{NodeArgs, quantity, text},
        output::{Colour, Facts},
        rhythm::{Plan, parse_rhythm},
        sending::{SendingArgs, sender_facts},
        words::{counted, date, distance, how_often},
    },
    span::{coins, gwei},
};
use alloy_primitives::{Address, Bytes, U256, hex};
use almanac_primitives::{Chain, ScheduleId, TimestampMs, Wei};
use almanac_proof::time::RpcTime;
use anyhow::{bail, ensure};
use clap::{ArgGroup, Args};
use serde_json::{Value, json};

/// Bytes that name the method of a call.
const SELECTOR_BYTES: usize = 4;

/// One moment.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  almanac schedule at \"2026-12-01 09:00 UTC\" --to 0x5FbD…0aa3 --method \"increase(uint256)\" --arg 5 --key alice
  almanac schedule at \"in 2 hours\" --to 0x5FbD…0aa3 --data 0xd09de08a --dev-account 0 --yes
  almanac schedule at 1796115600 --to 0x5FbD…0aa3 --data 0xd09de08a --dry-run --dev-account 0
  almanac schedule at \"tomorrow at 09:00 UTC\" --to 0x7099…79C8 --door market --value 0.5coins --key alice

The time is the chain's, and exact: dates need a time zone. Nothing is sent before you have read what it means.")]
pub(crate) struct AtArgs {
    /// When: a date with time zone, RFC 3339, Unix seconds, "in 2 hours", or "tomorrow at 09:00 UTC".
    #[arg(value_name = "WHEN")]
    when: String,

    #[command(flatten)]
    order: OrderArgs,
}

/// A rhythm.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  almanac schedule every \"30 days, 12 times\" --to 0x5FbD…0aa3 --method \"increase(uint256)\" --arg 5 --key alice
  almanac schedule every \"day at 09:00 UTC\" --to 0x5FbD…0aa3 --data 0xd09de08a --escrow 0.1coins --key alice
  almanac schedule every \"monday at 09:00 UTC, 52 times\" --to 0x5FbD…0aa3 --data 0xd09de08a --key alice
  almanac schedule every \"month on the 1st at 09:00 UTC, 12 times\" --to 0x5FbD…0aa3 --data 0xd09de08a --key alice

The chain repeats after a fixed time: seconds, minutes, hours, days, weeks. Months have no fixed length, so they become
one schedule for each date, all in one transaction. Without a number of times it runs until the escrow is empty.")]
pub(crate) struct EveryArgs {
    /// How often: "30 days, 12 times", "day at 09:00 UTC", "month on the 1st at 09:00 UTC, 12 times".
    #[arg(value_name = "RHYTHM")]
    rhythm: String,

    /// Earliest first run, as for `almanac schedule at` [default: as soon as the rhythm says].
    #[arg(long, value_name = "WHEN")]
    start: Option<String>,

    #[command(flatten)]
    order: OrderArgs,
}

/// What to call, who pays, and how to ask.
#[derive(Clone, Debug, Args)]
#[command(group(ArgGroup::new("what").args(["data", "method"])))]
struct OrderArgs {
    /// Contract to call.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    to: Address,

    /// Method to call, with its types.
    #[arg(long, value_name = "SIGNATURE")]
    method: Option<String>,

    /// Argument of --method; may be repeated.
    #[arg(long = "arg", value_name = "VALUE", requires = "method", allow_hyphen_values = true)]
    arguments: Vec<String>,

    /// Calldata instead of a method.
    #[arg(long, value_name = "HEX")]
    data: Option<Bytes>,

    #[command(flatten)]
    door: DoorArgs,

    #[command(flatten)]
    sending: SendingArgs,
}

/// Schedules one run.
pub(super) fn at(args: &AtArgs) -> anyhow::Result<()> {
    let now = args.order.sending.node.now()?;
    let plan = Plan::Once(parse_moment(&args.when, now)?);
    create(&args.order, plan, now)
}

/// Schedules what repeats.
pub(super) fn every(args: &EveryArgs) -> anyhow::Result<()> {
    let now = args.order.sending.node.now()?;
    let start = args.start.as_deref().map(|start| parse_moment(start, now)).transpose()?;
    create(&args.order, parse_rhythm(&args.rhythm, start, now)?, now)
}

fn create(args: &OrderArgs, plan: Plan, now: TimestampMs) -> anyhow::Result<()> {
    let (key, node) = (args.sending.key.required()?, &args.sending.node);
    let input = match (&args.method, &args.data) {
        (Some(method), _) => call_data(method, &args.arguments)?,
        (None, data) => data.clone().unwrap_or_default(),
    };
    ensure!(
        args.door.door != DoorName::Cron || input.len() >= SELECTOR_BYTES,
        "NoMethod: a cron job calls a method, and this one has {} of data: pass --method \"increase(uint256)\", or --data; \
         to pay somebody, use --door market and --value",
        counted(input.len() as u64, "byte")
    );
    let wanted = Wanted { owner: key.leaf().account(), target: args.to, input, plan };
    let order = order::order(node, &args.door, &wanted)?;
    let (preview, chain) = (preview(node, &wanted, &order)?, node.chain()?);
    let mut told = described(&wanted, &order, &preview, &chain);
    let read_back = || read_back(args, &wanted, &order, &preview, &chain, now);
    if !args.sending.agree("Send it?", read_back, &told)? {
        return Ok(());
    }
    let receipt = args.sending.submit(&key, order.calls)?;
    let ids = args.door.door.ids(&receipt);
    let list = ids.iter().map(|id| json!({ "id": id.to_string(), "idNumber": format!("{:#x}", id.0) }));
    told["schedules"] = list.collect();
    told["transactionHash"] = json!(calls::hash(&receipt));
    args.sending.output.print(|| told, || outcome(&ids))
}

/// The first run, tried now. What the door would refuse is an error.
fn preview(node: &NodeArgs, wanted: &Wanted, order: &Order) -> anyhow::Result<Value> {
    let call = &order.calls[0];
    let transaction = json!({ "from": wanted.owner, "to": call.to, "value": call.value,
        "data": hex::encode_prefixed(&call.input) });
    let answer = node.ask("almanac_preview", &json!([transaction, 1]))?;
    if !answer["order"]["error"].is_null() {
        bail!("OrderRefused: {}", text(&answer["order"]["error"]));
    }
    Ok(answer)
}

/// What will happen, in plain words.
fn read_back(
    args: &OrderArgs,
    wanted: &Wanted,
    order: &Order,
    preview: &Value,
    chain: &Chain,
    now: TimestampMs,
) -> String {
    let mut facts = sender_facts(wanted.owner, chain);
    let what = match &args.method {
        Some(method) => format!("{method} with {}", list_or(&args.arguments, "no arguments")),
        None => counted(wanted.input.len() as u64, "byte") + " of data",
    };
    facts.add("call", format!("{} · {what}", wanted.target));
    if !order.value.is_zero() {
        facts.add("pays", pays(wanted, order));
    }
    add_times(&mut facts, &wanted.plan, now);
    facts.add("gas", format!("{} for each run", order.gas));
    if let Some(bid) = order.bid {
        facts.add("bid", format!("at most {} per gas", gwei(bid)));
    }
    facts.add("a run costs", run_cost(order));
    facts.add("paid in", paid(wanted, order));
    if order.sent() > order.paid {
        let sent = coins(Wei(order.sent()));
        facts.add("sent", format!("{sent}; what is above the fee of its block returns at once"));
    }
    facts.add("tried now", tried(preview));
    facts.text()
}

fn add_times(facts: &mut Facts, plan: &Plan, now: TimestampMs) {
    facts.add("when", rhythm(plan));
    facts.add("first run", format!("{} ({})", date(plan.first()), distance(plan.first(), now)));
    let next: Vec<String> = (1..4).filter_map(|n| plan.nth(n)).map(date).collect();
    if !next.is_empty() {
        facts.add("then", next.join(", "));
    }
    if let Some(last) = plan.count().filter(|count| *count > 4).and_then(|count| plan.nth(count - 1)) {
        facts.add("last run", date(last));
    }
}

/// What the target gets, which never returns.
fn pays(wanted: &Wanted, order: &Order) -> String {
    let (each, target) = (coins(Wei(order.value)), wanted.target);
    match wanted.plan.count() {
        Some(1) => format!("{each} to {target}"),
        _ => {
            format!("{each} to {target} with each run, {} altogether", coins(Wei(given_away(wanted, order))))
        }
    }
}

/// What all runs together give to the target.
fn given_away(wanted: &Wanted, order: &Order) -> U256 {
    order.value.saturating_mul(U256::from(wanted.plan.count().unwrap_or(1)))
}

fn run_cost(order: &Order) -> String {
    let most = coins(Wei(order.run_cost));
    match order.bid {
        Some(_) => format!("at most {most} of gas"),
        None => format!("at most {most} at the fees of now"),
    }
}

/// How the first run would go now.
fn tried(preview: &Value) -> String {
    let run = &preview["runs"][0];
    match run["success"].as_bool() {
        Some(true) => format!("the run succeeds, with {} gas", quantity(&run["gasUsed"]).unwrap_or_default()),
        Some(false) => Colour::Red.paint(&format!("the run fails: {}", text(&run["error"]))),
        None => format!("no run: {}", text(&preview["waits"])),
    }
}

fn paid(wanted: &Wanted, order: &Order) -> String {
    let total = coins(Wei(order.paid));
    let runs = order.paid.checked_div(order.run_cost).unwrap_or(U256::ZERO);
    match (order.door.name(), wanted.plan.count()) {
        (super::CRON, Some(1)) => format!("{total}; the rest returns after the run"),
        (super::CRON, Some(_)) => {
            format!("{total}, enough for {runs} runs at the fees of now; the rest returns")
        }
        (super::CRON, None) => format!("{total}, enough for {runs} runs at the fees of now"),
        (super::CALLBACKS, _) => format!("{total}, the fee; half of it returns if you cancel"),
        _ if order.value.is_zero() => format!("{total} for gas; the rest returns with the run"),
        _ => {
            let given = given_away(wanted, order);
            let gas = coins(Wei(order.paid.saturating_sub(given)));
            format!(
                "{total}: {} for the target, and {gas} for gas, of which the rest returns",
                coins(Wei(given))
            )
        }
    }
}

/// When it runs, in words.
fn rhythm(plan: &Plan) -> String {
    match plan {
        Plan::Once(_) => "once".to_owned(),
        Plan::Series { interval_seconds, times: Some(times), .. } => {
            format!("{}, {}", how_often(*interval_seconds), counted(*times, "time"))
        }
        Plan::Series { interval_seconds, times: None, .. } => {
            format!("{}, until the escrow is empty", how_often(*interval_seconds))
        }
        Plan::Dates(dates) => {
            format!("at {}, each a schedule of its own", counted(dates.len() as u64, "date"))
        }
    }
}

fn list_or(items: &[String], none: &str) -> String {
    if items.is_empty() { none.to_owned() } else { items.join(", ") }
}

fn described(wanted: &Wanted, order: &Order, preview: &Value, chain: &Chain) -> Value {
    let (interval, times) = match &wanted.plan {
        Plan::Series { interval_seconds, times, .. } => (Some(*interval_seconds), *times),
        plan => (None, plan.count()),
    };
    // A page of times is enough to check a rhythm by.
    let times_listed: Vec<RpcTime> = (0..64).filter_map(|n| wanted.plan.nth(n)).map(RpcTime::new).collect();
    json!({ "door": order.door.name(), "owner": wanted.owner, "target": wanted.target, "input": wanted.input,
        "gasLimit": order.gas, "intervalSeconds": interval, "times": times, "runs": times_listed,
        "chainId": chain.id, "genesis": chain.genesis, "value": order.value.to_string(),
        "bid": order.bid.map(|bid| bid.to_string()), "runCost": order.run_cost.to_string(),
        "paid": order.paid.to_string(), "sent": order.sent().to_string(), "preview": preview["runs"][0] })
}

fn outcome(ids: &[ScheduleId]) -> String {
    let names: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let first = names.first().map_or("ID", String::as_str);
    format!(
        "{} {}\nfollow it with: almanac schedule watch {first}\n",
        Colour::Green.paint("scheduled"),
        names.join(" ")
    )
}
