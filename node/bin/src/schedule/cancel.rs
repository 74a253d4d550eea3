//! `almanac schedule cancel`.

use super::{
    CALLBACKS, CRON, MARKET, SIGNED,
    calls::{self, DoorName, ICallbackScheduler, ICronRegistry, IScheduledTransactions},
    describe,
    show::get,
    signed,
};
use crate::client::{
    node::{NodeArgs, quantity, text},
    output::Colour,
    sending::{SendingArgs, sender_facts},
};
use alloy_primitives::{Address, U256};
use alloy_sol_types::SolCall as _;
use almanac_primitives::NativeCall;
use anyhow::{Context as _, bail, ensure};
use clap::Args;
use serde_json::{Value, json};

/// Which schedule, and who cancels it.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  almanac schedule cancel 2-1-0 --key alice
  almanac schedule cancel 2-1-0 --dev-account 0 --yes --json
  almanac schedule cancel 2-1-0 --request                    a line for those who sign a deletion with you
  almanac schedule cancel 2-1-0 --with almanac:signature:… --key alice

Only the owner may; one that waits for signatures is deleted by the key of its --admin. A run that is due in the next
block happens before.")]
pub(crate) struct CancelArgs {
    /// Id of the schedule.
    id: String,

    /// Of one that waits for signatures: signature of another key of its --admin; may be repeated.
    #[arg(long, value_name = "LINE|FILE|HEX", conflicts_with = "is_request")]
    with: Vec<String>,

    /// Of one that waits for signatures: print the line that asks the others to sign its deletion.
    #[arg(long = "request")]
    is_request: bool,

    #[command(flatten)]
    sending: SendingArgs,
}

pub(super) fn run(args: &CancelArgs) -> anyhow::Result<()> {
    let node = &args.sending.node;
    let schedule = get(node, &args.id)?;
    let (id, door) = (text(&schedule["id"]), text(&schedule["terms"]["door"]));
    if door == SIGNED {
        return signed::delete::run(&args.sending, id.parse()?, &args.with, args.is_request);
    }
    ensure!(
        args.with.is_empty() && !args.is_request,
        "FlagOfAnotherDoor: --with and --request are of those that wait for signatures, not of {door}"
    );
    let key = args.sending.key.required()?;
    let status = text(&schedule["status"]);
    ensure!(
        matches!(status.as_str(), "pending" | "quarantined"),
        "AlreadyEnded: schedule {id} is {status}; only what is pending or quarantined can be cancelled"
    );
    let (owner, account) =
        (schedule["owner"].as_str().and_then(|text| text.parse::<Address>().ok()), key.leaf().account());
    ensure!(
        owner == Some(account),
        "NotOwner: schedule {id} belongs to {}, and the key is that of {account}",
        text(&schedule["owner"])
    );
    let told = json!({ "id": id, "escrow": schedule["escrow"] });
    let (escrow, chain) = (describe::money(&schedule["escrow"]), node.chain()?);
    let read_back = || {
        let mut facts = sender_facts(account, &chain);
        facts.add("cancels", format!("{id}, {}, with {escrow} of escrow", describe::rhythm(&schedule)));
        facts.text()
    };
    if !args.sending.agree("Cancel it?", read_back, &told)? {
        return Ok(());
    }
    let receipt = args.sending.submit(&key, vec![call(node, &schedule)?])?;
    let refunded = get(node, &args.id)?["end"]["refunded"].clone();
    args.sending.output.print(
        || json!({ "id": id, "refunded": refunded, "transactionHash": calls::hash(&receipt) }),
        || format!("{} {id}: {} returned\n", Colour::Yellow.paint("cancelled"), describe::money(&refunded)),
    )
}

fn call(node: &NodeArgs, schedule: &Value) -> anyhow::Result<NativeCall> {
    let id = quantity(&schedule["idNumber"])?;
    let (door, input) = match text(&schedule["terms"]["door"]).as_str() {
        CRON => (DoorName::Cron, ICronRegistry::cancelCall { id: U256::from(id) }.abi_encode()),
        CALLBACKS => (DoorName::Callback, ICallbackScheduler::cancelCall { id }.abi_encode()),
        MARKET => {
            let question = IScheduledTransactions::keyOfCall { id: U256::from(id) };
            let answer = node.view(DoorName::Market.address(), &question.abi_encode())?;
            let key = IScheduledTransactions::keyOfCall::abi_decode_returns(&answer);
            let key = key.context("the node answers no key of a scheduled transaction")?;
            (DoorName::Market, IScheduledTransactions::cancelCall { key }.abi_encode())
        }
        other => bail!("UnknownDoor: this version cannot cancel what the door {other} made"),
    };
    Ok(NativeCall { to: Some(door.address()), value: U256::ZERO, input: input.into() })
}
