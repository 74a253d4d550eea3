//! `almanac subscribe`: allowance and subscription in one transaction (`docs/subscriptions.md`).

use crate::{
    client::{
        address::parse_address,
        amount::parse_amount,
        moment::parse_span,
        output::Colour,
        sending::{SendingArgs, sender_facts},
        words::{counted, how_often},
    },
    proof::parse_number,
    span::coins,
};
use alloy_primitives::{Address, B256, U256};
use alloy_sol_types::{SolCall as _, SolEvent as _};
use almanac_primitives::{Chain, NativeCall, Wei};
use anyhow::{Context as _, bail, ensure};
use clap::Args;
use serde_json::json;

alloy_sol_types::sol!("../../contracts/ISubscriptions.sol");
alloy_sol_types::sol!("../../contracts/IERC20.sol");
alloy_sol_types::sol! {
    /// What a customer calls of ERC-20 himself.
    interface IAllowance {
        function approve(address spender, uint256 amount) external returns (bool);
    }

    /// What a charge reserves, which `contracts/Subscriptions.sol` answers.
    interface IChargeGas {
        function CHARGE_GAS() external view returns (uint256);
    }
}

/// The base fee may rise: by default the charges may cost this times as much as now.
const FEE_MARGIN: u64 = 2;

/// To whom, how much, how often.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  almanac subscribe --contract 0x5FbD…0aa3 --token 0xe7f1…0512 --merchant 0x7099…79C8 \\
      --amount 100 --every \"30 days\" --times 12 --key alice

The token's allowance and the subscription go into one transaction, all or nothing. The first charge comes after one
interval. --contract is an instance of contracts/Subscriptions.sol; anyone may deploy one.")]
pub(crate) struct SubscribeArgs {
    /// Subscriptions contract.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    contract: Address,

    /// ERC-20 token to pay with.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    token: Address,

    /// Who is paid.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    merchant: Address,

    /// Smallest units of the token for each charge.
    #[arg(long, value_name = "UNITS", value_parser = parse_number)]
    amount: U256,

    /// Time between charges: "30 days", "1 week".
    #[arg(long, value_name = "SPAN")]
    every: String,

    /// How many charges.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    times: u64,

    /// What pays for the gas of the charges; the rest returns [default: twice what they cost now].
    #[arg(long, value_name = "AMOUNT", value_parser = parse_amount)]
    escrow: Option<U256>,

    /// Keep the allowance that the contract has, instead of setting it to what all charges take.
    #[arg(long = "keep-allowance")]
    is_keeping_allowance: bool,

    #[command(flatten)]
    sending: SendingArgs,
}

/// Subscribes.
pub(crate) fn run(args: &SubscribeArgs) -> anyhow::Result<()> {
    let key = args.sending.key.required()?;
    let seconds = parse_span(&args.every)?.filter(|seconds| *seconds > 0);
    let seconds = seconds.with_context(|| {
        format!("SpanUnclear: {:?} is no span: write \"30 days\" or \"1 week\"", args.every)
    })?;
    let total = args.amount.checked_mul(U256::from(args.times));
    let total = total.context("AmountTooLarge: all charges together are more than 2^256")?;
    ensure_balance(args, key.leaf().account())?;
    let escrow = match args.escrow {
        Some(escrow) => escrow,
        None => {
            let charge = args.sending.node.base_fee()?.saturating_mul(charge_gas(args)?);
            charge.saturating_mul(U256::from(args.times)).saturating_mul(U256::from(FEE_MARGIN))
        }
    };
    let mut told = json!({ "contract": args.contract, "token": args.token, "merchant": args.merchant,
        "amount": args.amount.to_string(), "intervalSeconds": seconds, "times": args.times, "paid": escrow.to_string() });
    let (customer, chain) = (key.leaf().account(), args.sending.node.chain()?);
    let read_back = || read_back(args, customer, &chain, seconds, total, escrow);
    if !args.sending.agree("Subscribe?", read_back, &told)? {
        return Ok(());
    }
    let receipt = args.sending.submit(&key, calls(args, seconds, total, escrow))?;
    let approved = ISubscriptions::SubscriptionApproved::SIGNATURE_HASH;
    let is_approval = |topic: &serde_json::Value| {
        topic.as_str().and_then(|text| text.parse::<B256>().ok()) == Some(approved)
    };
    let logs = receipt["logs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(log) = logs.iter().find(|log| is_approval(&log["topics"][0])) else {
        bail!(
            "NoSubscription: {} is no subscriptions contract: it took the call and made nothing",
            args.contract
        )
    };
    let id: U256 =
        log["topics"][1].as_str().and_then(|text| text.parse().ok()).context("the event has no id")?;
    told["subscription"] = json!(id.to_string());
    told["transactionHash"] = receipt["transactionHash"].clone();
    args.sending
        .output
        .print(|| told, || format!("{}: subscription {id}\n", Colour::Green.paint("subscribed")))
}

/// Gas that a charge reserves. Only the real contract answers.
fn charge_gas(args: &SubscribeArgs) -> anyhow::Result<U256> {
    let answer = args.sending.node.view(args.contract, &IChargeGas::CHARGE_GASCall {}.abi_encode())?;
    let gas = IChargeGas::CHARGE_GASCall::abi_decode_returns(&answer).ok();
    gas.with_context(|| {
        format!("NoSubscriptions: {} does not answer as contracts/Subscriptions.sol: deploy it, or pass its address", args.contract)
    })
}

/// A customer who cannot pay once would find out after the first interval.
fn ensure_balance(args: &SubscribeArgs, customer: Address) -> anyhow::Result<()> {
    let answer =
        args.sending.node.view(args.token, &IERC20::balanceOfCall { account: customer }.abi_encode())?;
    let balance = IERC20::balanceOfCall::abi_decode_returns(&answer);
    let balance =
        balance.ok().with_context(|| format!("NoToken: {} does not answer as a token", args.token))?;
    ensure!(
        balance >= args.amount,
        "BalanceTooLow: {customer} has {balance} of the token, and a charge takes {}",
        args.amount
    );
    Ok(())
}

fn calls(args: &SubscribeArgs, seconds: u64, total: U256, escrow: U256) -> Vec<NativeCall> {
    let approve = IAllowance::approveCall { spender: args.contract, amount: total }.abi_encode();
    let subscribe = ISubscriptions::approveSubscriptionCall {
        token: args.token,
        merchant: args.merchant,
        amount: args.amount,
        intervalSec: U256::from(seconds),
        maxCharges: U256::from(args.times),
    };
    let allow = NativeCall { to: Some(args.token), value: U256::ZERO, input: approve.into() };
    let order = NativeCall { to: Some(args.contract), value: escrow, input: subscribe.abi_encode().into() };
    if args.is_keeping_allowance { vec![order] } else { vec![allow, order] }
}

fn read_back(
    args: &SubscribeArgs,
    customer: Address,
    chain: &Chain,
    seconds: u64,
    total: U256,
    escrow: U256,
) -> String {
    let mut facts = sender_facts(customer, chain);
    let now = args.sending.node.now().ok();
    facts.add("pays", format!("{} of {} to {}", args.amount, args.token, args.merchant));
    facts.add("when", format!("{}, {}", how_often(seconds), counted(args.times, "time")));
    if let Some(first) = now.and_then(|now| now.0.checked_add(seconds.checked_mul(1_000)?)) {
        facts.add(
            "first charge",
            crate::client::words::date(almanac_primitives::TimestampMs(first / 1_000 * 1_000)),
        );
    }
    facts.add("altogether", format!("{total}, which the contract may take from you and no more"));
    facts.add("gas", format!("{} paid in, of which the rest returns", coins(Wei(escrow))));
    facts.text()
}
