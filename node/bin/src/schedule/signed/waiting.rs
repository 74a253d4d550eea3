//! `almanac schedule waiting`: what waits for somebody's signature.

use super::{SIGNED, gathering::Gathering, wording};
use crate::{
    client::{
        address::parse_address,
        node::{NodeArgs, text},
        output::{OutputArgs, Table},
    },
    send::KeyArgs,
};
use alloy_primitives::Address;
use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};

/// Schedules in one answer of a node.
const PAGE: usize = 100;

/// For whom.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  almanac schedule waiting --key alice
  almanac schedule waiting 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266
  almanac schedule waiting --dev-account 1 --json

Shows what an account has to sign for itself, or as one of the keys of another account.")]
pub(crate) struct WaitingArgs {
    /// Address [default: that of the key].
    #[arg(value_parser = parse_address)]
    address: Option<Address>,

    /// Look at so many that wait at most, the oldest first.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=200_000))]
    limit: u32,

    #[command(flatten)]
    key: KeyArgs,

    #[command(flatten)]
    node: NodeArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// Lists it.
pub(in crate::schedule) fn run(args: &WaitingArgs) -> anyhow::Result<()> {
    let account = match args.address {
        Some(address) => address,
        None => {
            let key = args.key.read()?;
            key.context("whose signature? give an address, --key, --key-file or --dev-account")?
                .leaf()
                .account()
        }
    };
    let (pending, is_whole) = pending(args)?;
    let waiting: Vec<&Gathering> = pending.iter().filter(|one| one.parties.waits_for(account)).collect();
    let now = args.node.now()?;
    let described = |one: &&Gathering| {
        json!({ "id": one.id.to_string(), "idNumber": format!("{:#x}", one.id.0), "creator": one.creator,
            "memo": one.terms.body.memo, "words": wording::short_words(&one.terms.body.calls), "expires": one.expires,
            "parties": one.parties.described(), "missing": one.parties.missing() })
    };
    args.output.print(
        || {
            let list: Vec<Value> = waiting.iter().map(described).collect();
            json!({ "account": account, "waiting": list, "isWhole": is_whole })
        },
        || {
            let more =
                if is_whole { "" } else { "there are more that wait for others or for you: raise --limit\n" };
            if waiting.is_empty() {
                return format!("nothing waits for {account}\n{more}");
            }
            let mut table = Table::new(&["id", "what", "memo", "until"]);
            for one in &waiting {
                table.row([
                    one.id.to_string(),
                    wording::short_words(&one.terms.body.calls),
                    text(&one.terms.body.memo.as_str().into()),
                    wording::until(one.expires, now),
                ]);
            }
            let sign = "read one with `almanac schedule show ID`, sign it with `almanac schedule sign ID`\n";
            table.text() + sign + more
        },
    )
}

/// What waits, and whether that is all.
fn pending(args: &WaitingArgs) -> anyhow::Result<(Vec<Gathering>, bool)> {
    let mut found = Vec::new();
    let mut looked_at: u32 = 0;
    let mut cursor = Value::Null;
    loop {
        let mut filter = json!({ "door": SIGNED, "status": "pending", "limit": PAGE });
        if !cursor.is_null() {
            filter["cursor"] = cursor;
        }
        let mut page = args.node.ask("almanac_listSchedules", &json!([filter]))?;
        for schedule in page["schedules"].as_array().map(Vec::as_slice).unwrap_or_default() {
            if looked_at >= args.limit {
                return Ok((found, false));
            }
            looked_at += 1;
            let id = text(&schedule["id"]).parse()?;
            found.extend(Gathering::read(&args.node, id)?.filter(|one| one.end.is_none()));
        }
        cursor = page["cursor"].take();
        if cursor.is_null() {
            return Ok((found, true));
        }
    }
}
