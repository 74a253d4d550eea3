//! `almanac account`: an account with its key and its schedules.

use crate::{
    client::{
        address::parse_address,
        node::{NodeArgs, quantity, text, wei},
        output::{Facts, OutputArgs},
    },
    send::KeyArgs,
    span::coins,
};
use alloy_primitives::{Address, U256};
use almanac_primitives::Wei;
use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};

/// Whose.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  almanac account 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266
  almanac account --dev-account 0
  almanac account --key alice --json")]
pub(crate) struct AccountArgs {
    /// Address [default: that of the key].
    #[arg(value_parser = parse_address)]
    address: Option<Address>,

    #[command(flatten)]
    key: KeyArgs,

    #[command(flatten)]
    node: NodeArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// Prints it.
pub(crate) fn run(args: &AccountArgs) -> anyhow::Result<()> {
    let address = match args.address {
        Some(address) => address,
        None => {
            let key = args.key.read()?;
            key.context("whose account? give an address, --key, --key-file or --dev-account")?
                .leaf()
                .account()
        }
    };
    let account = args.node.ask("almanac_getAccount", &json!([address]))?;
    let balance = wei(&args.node.ask("eth_getBalance", &json!([address, "latest"]))?)?;
    let code = text(&args.node.ask("eth_getCode", &json!([address, "latest"]))?);
    let filter = json!({ "owner": address, "status": "pending", "limit": 100 });
    let page = args.node.ask("almanac_listSchedules", &json!([filter]))?;
    let pending = page["schedules"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_whole = page["cursor"].is_null();
    args.output.print(
        || json!({ "account": account, "balance": balance.to_string(), "codeBytes": (code.len() / 2).saturating_sub(1), "pending": pending }),
        || shown(address, &account, balance, &code, pending, is_whole),
    )
}

fn shown(
    address: Address,
    account: &Value,
    balance: U256,
    code: &str,
    pending: &[Value],
    is_whole: bool,
) -> String {
    let mut facts = Facts::default();
    facts.add("account", address.to_string());
    facts.add("balance", coins(Wei(balance)));
    facts.add("sequence number", text(&account["sequence_number"]));
    facts.add(
        "kind",
        match code.len() {
            0..=2 => "account of a key".to_owned(),
            digits => format!("contract of {} bytes", digits / 2 - 1),
        },
    );
    facts.add("key", format!("{}, rotated {} times", text(&account["key"]), text(&account["rotation"])));
    let escrow = pending.iter().filter_map(|schedule| wei(&schedule["escrow"]).ok());
    let escrow = escrow.fold(U256::ZERO, U256::saturating_add);
    let more = if is_whole { "" } else { " or more" };
    facts.add("schedules", format!("{}{more} pending, with {} of escrow", pending.len(), coins(Wei(escrow))));
    let next = pending.iter().filter(|schedule| !schedule["nextRun"].is_null());
    if let Some(next) = next.min_by_key(|schedule| quantity(&schedule["nextRun"]["ms"]).unwrap_or(u64::MAX)) {
        facts.add("next run", format!("{}, {}", text(&next["id"]), text(&next["nextRun"]["iso"])));
    }
    facts.text()
}
