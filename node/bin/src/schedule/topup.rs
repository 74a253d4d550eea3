//! `almanac schedule topup`.

use super::{
    CRON,
    calls::{self, DoorName, ICronRegistry},
    describe,
    show::get,
};
use crate::{
    client::{
        amount::parse_amount,
        node::{quantity, text},
        output::Colour,
        sending::{SendingArgs, sender_facts},
    },
    span::coins,
};
use alloy_primitives::U256;
use alloy_sol_types::SolCall as _;
use almanac_primitives::{NativeCall, Wei};
use anyhow::ensure;
use clap::Args;
use serde_json::json;

/// Which cron job, and how much.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  almanac schedule topup 2-1-0 0.1coins --key alice
  almanac schedule topup 2-1-0 100000000000000 --dev-account 0 --yes

Anyone may pay. The other doors are paid when the schedule is made.")]
pub(crate) struct TopupArgs {
    /// Id of the schedule.
    id: String,

    /// How much: wei, 3gwei, 0.1coins.
    #[arg(value_parser = parse_amount)]
    amount: U256,

    #[command(flatten)]
    sending: SendingArgs,
}

pub(super) fn run(args: &TopupArgs) -> anyhow::Result<()> {
    let (key, node) = (args.sending.key.required()?, &args.sending.node);
    let schedule = get(node, &args.id)?;
    let (id, door, status) =
        (text(&schedule["id"]), text(&schedule["terms"]["door"]), text(&schedule["status"]));
    ensure!(door == CRON, "NoEscrow: schedule {id} is of the {door} door, which was paid when it was made");
    ensure!(
        status == "pending",
        "AlreadyEnded: schedule {id} is {status}; only what is pending can be topped up"
    );
    let told = json!({ "id": id, "amount": args.amount.to_string() });
    let chain = node.chain()?;
    let read_back = || {
        let mut facts = sender_facts(key.leaf().account(), &chain);
        facts.add("pays", format!("{} into {id}, {}", coins(Wei(args.amount)), describe::rhythm(&schedule)));
        facts.text()
    };
    if !args.sending.agree("Pay it?", read_back, &told)? {
        return Ok(());
    }
    let input = ICronRegistry::topUpCall { id: U256::from(quantity(&schedule["idNumber"])?) }.abi_encode();
    let call = NativeCall { to: Some(DoorName::Cron.address()), value: args.amount, input: input.into() };
    let receipt = args.sending.submit(&key, vec![call])?;
    let runway = node.ask("almanac_runway", &json!([args.id]))?;
    args.sending.output.print(
        || json!({ "id": id, "runway": runway, "transactionHash": calls::hash(&receipt) }),
        || {
            let runs = quantity(&runway["runs"]).unwrap_or_default();
            let escrow = describe::money(&runway["escrow"]);
            format!("{} {id}: {escrow} of escrow, enough for {runs} runs\n", Colour::Green.paint("topped up"))
        },
    )
}
