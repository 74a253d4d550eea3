//! An order: the calls of a door that make the schedules of a plan, and what they cost.

use super::calls::{DoorName, ICallbackHandler, ICallbackScheduler, ICronRegistry, IScheduledTransactions};
use crate::client::{
    amount::parse_amount,
    node::{NodeArgs, quantity, wei},
    rhythm::Plan,
    words::date,
};
use alloy_primitives::{Address, Bytes, U256, hex};
use alloy_sol_types::SolCall as _;
use almanac_primitives::{NativeCall, TimestampMs, params::EFFORT_GAS, params::SECOND_MS};
use anyhow::{Context as _, bail, ensure};
use clap::{Args, ValueEnum};
use serde_json::json;

/// Where the two bits of the catch-up policy begin in the options of a cron job.
const CATCH_UP_SHIFT: u32 = 8;
/// Resolution of the market door.
const MARKET_STEP_MS: u64 = 100;
/// The base fee may rise before a run: an escrow by default pays for this times as much.
pub(super) const FEE_MARGIN: u64 = 2;

/// How a door is to take it.
#[derive(Clone, Debug, Args)]
pub(super) struct DoorArgs {
    /// Through which door.
    #[arg(long, value_enum, default_value = "cron")]
    pub(super) door: DoorName,

    /// Gas of a run [default: half more than the call takes now].
    #[arg(long, value_name = "GAS")]
    pub(super) gas: Option<u64>,

    /// Cron: what pays for the runs; the rest returns at the end [default: twice what the runs cost now].
    #[arg(long, value_name = "AMOUNT", value_parser = parse_amount)]
    escrow: Option<U256>,

    /// Cron: what a run costs [default: gas-used].
    #[arg(long, value_enum)]
    charge: Option<Charge>,

    /// Cron: which runs are made up for after the chain stood still [default: all].
    #[arg(long, value_enum, value_name = "WHICH")]
    catch_up: Option<CatchUp>,

    /// Callback: how sure its second is [default: high].
    #[arg(long, value_enum)]
    priority: Option<Priority>,

    /// Market: most that a run pays per gas [default: as the node advises].
    #[arg(long, value_name = "AMOUNT", value_parser = parse_amount)]
    bid: Option<U256>,

    /// Market: what the call sends to the target.
    #[arg(long, value_name = "AMOUNT", value_parser = parse_amount, default_value = "0")]
    value: U256,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Charge {
    /// What a run uses, and at least half of its gas.
    GasUsed,
    /// All of its gas.
    GasLimit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CatchUp {
    /// Every run that was missed.
    All,
    /// Only the last one.
    Latest,
    /// None.
    Skip,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Priority {
    /// In its second for sure, or not at all.
    High,
    /// In its second, or in the next one with room.
    Medium,
    /// When a block has room.
    Low,
}

/// What is called, and when, in whose name.
pub(super) struct Wanted {
    pub(super) owner: Address,
    pub(super) target: Address,
    pub(super) input: Bytes,
    pub(super) plan: Plan,
}

/// What is sent, and what it costs.
pub(super) struct Order {
    pub(super) door: DoorName,
    pub(super) calls: Vec<NativeCall>,
    /// Gas of a run.
    pub(super) gas: u64,
    /// What a run costs at most, at the base fee of the next block.
    pub(super) run_cost: U256,
    /// What is paid in, for all runs.
    pub(super) paid: U256,
    /// What each run gives to its target.
    pub(super) value: U256,
    /// Most that a run pays per gas, where runs compete by price.
    pub(super) bid: Option<U256>,
}

impl Order {
    /// What leaves the account with the transaction. What a door does not take returns at once.
    pub(super) fn sent(&self) -> U256 {
        self.calls.iter().fold(U256::ZERO, |sum, call| sum.saturating_add(call.value))
    }
}

/// Turns what is wanted into calls of the door.
pub(super) fn order(node: &NodeArgs, args: &DoorArgs, wanted: &Wanted) -> anyhow::Result<Order> {
    check_times(node, args.door, &wanted.plan)?;
    args.check_flags()?;
    let gas = match args.gas {
        Some(gas) => gas,
        None => estimate(node, args.door, wanted)?,
    };
    match args.door {
        DoorName::Cron => cron(node, args, wanted, gas),
        DoorName::Callback => callbacks(node, args, wanted, gas),
        DoorName::Market => market(node, args, wanted, gas),
    }
}

impl DoorArgs {
    /// A flag of another door would be forgotten in silence.
    fn check_flags(&self) -> anyhow::Result<()> {
        let door = self.door.name();
        for (flag, is_given, of) in [
            ("--escrow", self.escrow.is_some(), DoorName::Cron),
            ("--charge", self.charge.is_some(), DoorName::Cron),
            ("--catch-up", self.catch_up.is_some(), DoorName::Cron),
            ("--priority", self.priority.is_some(), DoorName::Callback),
            ("--bid", self.bid.is_some(), DoorName::Market),
        ] {
            let name = of.name();
            ensure!(
                !is_given || self.door == of,
                "FlagOfAnotherDoor: {flag} is of the {name} door, not of {door}"
            );
        }
        ensure!(
            self.value.is_zero() || self.door == DoorName::Market,
            "NoValue: a run of the {door} door sends no value: use --door market"
        );
        Ok(())
    }
}

/// Refuses what the door would round.
fn check_times(node: &NodeArgs, door: DoorName, plan: &Plan) -> anyhow::Result<()> {
    let (first, now) = (plan.first(), node.now()?);
    let step = match door {
        DoorName::Cron | DoorName::Callback => SECOND_MS,
        DoorName::Market => MARKET_STEP_MS,
    };
    ensure!(
        first.0.is_multiple_of(step),
        "TimeNotExact: {} cannot be kept exactly: the {} door takes multiples of {step} ms",
        date(first),
        door.name()
    );
    ensure!(first > now, "TimeNotInFuture: {} is not after the chain's time, {}", date(first), date(now));
    Ok(())
}

/// Half more than the call takes now: the state may be another one by then.
fn estimate(node: &NodeArgs, door: DoorName, wanted: &Wanted) -> anyhow::Result<u64> {
    let from = match door {
        DoorName::Cron | DoorName::Callback => door.address(),
        DoorName::Market => wanted.owner,
    };
    let data = match door {
        DoorName::Callback => {
            ICallbackHandler::executeCallbackCall { id: 0, data: wanted.input.clone() }.abi_encode().into()
        }
        DoorName::Cron | DoorName::Market => wanted.input.clone(),
    };
    let call = json!({ "from": from, "to": wanted.target, "data": hex::encode_prefixed(data) });
    let gas = node.ask("eth_estimateGas", &json!([call])).context(
        "GasUnknown: the call fails now, so its gas cannot be estimated: pass --gas if it will succeed later",
    )?;
    let gas = quantity(&gas)?;
    Ok((gas + gas / 2).next_multiple_of(1_000))
}

fn cron(node: &NodeArgs, args: &DoorArgs, wanted: &Wanted, gas: u64) -> anyhow::Result<Order> {
    let run_cost = node.base_fee()?.saturating_mul(U256::from(gas));
    let paid = match (args.escrow, wanted.plan.count()) {
        (Some(escrow), _) => escrow,
        (None, Some(count)) => {
            run_cost.saturating_mul(U256::from(count)).saturating_mul(U256::from(FEE_MARGIN))
        }
        (None, None) => bail!(
            "NoEscrow: a series without an end runs until its escrow is empty: pass --escrow, or add \", 12 times\""
        ),
    };
    let series = match &wanted.plan {
        Plan::Once(at) => vec![(*at, 0, 0)],
        Plan::Series { first, interval_seconds, times } => {
            vec![(*first, *interval_seconds, times.unwrap_or(0))]
        }
        Plan::Dates(dates) => dates.iter().map(|at| (*at, 0, 0)).collect(),
    };
    let share = paid / U256::from(series.len());
    let is_refunding = args.charge != Some(Charge::GasLimit);
    let catch_up = args.catch_up.unwrap_or(CatchUp::All) as u64;
    let options = U256::from(u64::from(is_refunding) | catch_up << CATCH_UP_SHIFT);
    let call = |(at, interval, times): &(TimestampMs, u64, u64)| {
        let call = ICronRegistry::scheduleWithCall {
            target: wanted.target,
            data: wanted.input.clone(),
            nextRunAt: U256::from(at.seconds()),
            intervalSec: U256::from(*interval),
            maxRuns: U256::from(*times),
            gasLimit: U256::from(gas),
            refundTo: wanted.owner,
            options,
        };
        to_door(DoorName::Cron, share, call.abi_encode())
    };
    let calls: Vec<NativeCall> = series.iter().map(call).collect();
    let paid = share * U256::from(calls.len());
    Ok(Order { door: DoorName::Cron, calls, gas, run_cost, paid, value: U256::ZERO, bid: None })
}

fn callbacks(node: &NodeArgs, args: &DoorArgs, wanted: &Wanted, gas: u64) -> anyhow::Result<Order> {
    let effort = gas.div_ceil(EFFORT_GAS);
    let priority = || match args.priority.unwrap_or(Priority::High) {
        Priority::High => ICallbackScheduler::Priority::High,
        Priority::Medium => ICallbackScheduler::Priority::Medium,
        Priority::Low => ICallbackScheduler::Priority::Low,
    };
    let fee = callback_fee(node, wanted.input.clone(), wanted.plan.first().seconds(), priority(), effort)?;
    // What is above the fee of the block that books it returns at once.
    let sent = fee.saturating_mul(U256::from(FEE_MARGIN));
    let call = |at: &TimestampMs| {
        let call = ICallbackScheduler::scheduleCall {
            handler: wanted.target,
            data: wanted.input.clone(),
            timestamp: at.seconds(),
            priority: priority(),
            executionEffort: effort,
        };
        to_door(DoorName::Callback, sent, call.abi_encode())
    };
    let calls: Vec<NativeCall> = wanted.plan.clone().into_dates()?.iter().map(call).collect();
    let paid = fee.saturating_mul(U256::from(calls.len()));
    let (gas, value) = (effort * EFFORT_GAS, U256::ZERO);
    Ok(Order { door: DoorName::Callback, calls, gas, run_cost: fee, paid, value, bid: None })
}

/// What a callback costs in this second.
fn callback_fee(
    node: &NodeArgs,
    data: Bytes,
    timestamp: u64,
    priority: ICallbackScheduler::Priority,
    effort: u64,
) -> anyhow::Result<U256> {
    let question = ICallbackScheduler::estimateCall { data, timestamp, priority, executionEffort: effort };
    let answer = node.view(DoorName::Callback.address(), &question.abi_encode())?;
    let answer = ICallbackScheduler::estimateCall::abi_decode_returns(&answer);
    Ok(answer.context("the node answers no estimate of a callback")?.fee)
}

fn market(node: &NodeArgs, args: &DoorArgs, wanted: &Wanted, gas: u64) -> anyhow::Result<Order> {
    let mut question = json!({ "time": wanted.plan.first().0, "gas": gas, "to": wanted.target,
        "value": args.value, "data": wanted.input });
    if let Some(bid) = args.bid {
        question["bid"] = json!(bid);
    }
    let answer = node.ask("almanac_estimateSchedule", &json!([question]))?;
    let (bid, deposit) = (wei(&answer["bid"])?, wei(&answer["deposit"])?);
    let unit_price =
        u64::try_from(bid).ok().with_context(|| format!("BidTooHigh: {bid} wei per gas is above 2^64"))?;
    let call = |at: &TimestampMs| {
        let txn = IScheduledTransactions::ScheduledTransaction {
            senderAddr: wanted.owner,
            scheduledTimeMs: at.0,
            maxGasAmount: gas,
            maxGasUnitPrice: unit_price,
            passSigner: true,
            to: wanted.target,
            value: args.value,
            data: wanted.input.clone(),
            expiryBlocks: 0,
        };
        to_door(DoorName::Market, deposit, IScheduledTransactions::insertCall { txn }.abi_encode())
    };
    let calls: Vec<NativeCall> = wanted.plan.clone().into_dates()?.iter().map(call).collect();
    let paid = deposit.saturating_mul(U256::from(calls.len()));
    let run_cost = bid.saturating_mul(U256::from(gas));
    Ok(Order { door: DoorName::Market, calls, gas, run_cost, paid, value: args.value, bid: Some(bid) })
}

fn to_door(door: DoorName, value: U256, input: Vec<u8>) -> NativeCall {
    NativeCall { to: Some(door.address()), value, input: input.into() }
}
