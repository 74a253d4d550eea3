//! `almanac_estimateSchedule`: what a scheduled transaction would hold, cost and wait, before it is made.
//!
//! Prices and the wait follow from the last blocks and from what already waits. The order itself is checked by the
//! door's own rules.

use super::outlook::Outlook;
use crate::{
    bounds::ESTIMATE_SCHEDULES_MAX,
    error,
    types::{Number, RpcTime},
    view::View,
};
use alloy_primitives::{Address, Bytes, U64, U256};
use almanac_exec::call_gas_min;
use almanac_primitives::{Gas, GasPrice, Header, Lane, ScheduleId, TimestampMs, Wei, params::Parameters};
use almanac_schedule::{
    calendar::{Entry, Priority, Queue},
    capacity::Shares,
    decide::Moment,
    is_held,
    market::{Admitted, Order, admit, is_shut},
};
use jsonrpsee::core::RpcResult;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An order without its sender.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::almanac) struct Wanted {
    /// When it is to run, in milliseconds.
    time: Number,
    /// Gas that it may use.
    gas: Number,
    /// The most that it pays per gas; by default one that goes first at present prices.
    bid: Option<Number>,
    to: Option<Address>,
    value: Option<U256>,
    #[serde(alias = "input")]
    data: Option<Bytes>,
    expiry_blocks: Option<Number>,
}

/// What an order would come to.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Estimate {
    block_number: U64,
    /// When it would be due.
    due: RpcTime,
    bid: U64,
    /// What it needs: gas × bid + value.
    deposit: U256,
    /// Base fee of the next block.
    base_fee: U256,
    price: Prices,
    /// What the gas costs at the likely price, if all of it is used.
    likely_cost: U256,
    /// The first block at or after its time; `null` if the chain has too few blocks to know their pace.
    first_block: Option<U64>,
    /// The block that would run it; `null` if none would.
    expected_block: Option<U64>,
    /// Blocks from the first to the expected one, and their time.
    wait_blocks: Option<U64>,
    wait_ms: Option<U64>,
    /// Why no block is expected to run it.
    waits: Option<String>,
    /// How many of the last blocks this follows from.
    blocks_seen: U64,
}

/// What it would have paid per gas among the transactions of the last blocks, at the next base fee.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Prices {
    least: U256,
    likely: U256,
    most: U256,
}

/// The order that a client gives.
pub(in crate::almanac) fn read(given: Value) -> RpcResult<Wanted> {
    serde_json::from_value(given).map_err(|reason| error::invalid(format!("order: {reason}")))
}

/// Estimates an order as of the next block.
pub(in crate::almanac) fn estimate(view: &View, wanted: &Wanted) -> RpcResult<Estimate> {
    let (tip, state) = view.state(None)?;
    let outlook = Outlook::read(view, &tip, &state)?;
    let bid = wanted.bid.map_or_else(|| suggested_bid(&outlook), Number::get);
    let order = order(wanted, bid)?;
    let moment = moment(&outlook.next, &outlook.parameters);
    let Admitted { due, deposit, .. } = admit(order, &outlook.parameters, moment).map_err(error::invalid)?;
    let price = Prices::of(&outlook, bid);
    let first = outlook.first_block(due);
    let rivals = outlook.rivals(&state, due)?;
    let entry =
        Entry { queue: Queue::Market, at: due.0, priority: Priority(bid), schedule: ScheduleId(u64::MAX) };
    let later = first
        .zip(rivals.as_ref())
        .and_then(|(first, rivals)| outlook.blocks_behind(&entry, bid, order.gas_limit.0, first, rivals));
    let expected = first.zip(later).and_then(|(first, later)| first.checked_add(later));
    let waits = expected.is_none().then(|| why_not(&outlook, first.is_some(), rivals.is_some()));
    let likely_cost = price.likely.saturating_mul(U256::from(order.gas_limit.0));
    Ok(Estimate {
        block_number: U64::from(tip.number()),
        due: RpcTime::new(due),
        bid: U64::from(bid),
        deposit: deposit.0,
        base_fee: U256::from(outlook.next.base_fee.0),
        price,
        likely_cost,
        first_block: first.map(U64::from),
        expected_block: expected.map(U64::from),
        wait_blocks: later.map(U64::from),
        wait_ms: later.zip(outlook.recent.pace_ms).map(|(later, pace)| U64::from(later.saturating_mul(pace))),
        waits,
        blocks_seen: U64::from(outlook.recent.blocks),
    })
}

/// Twice the base fee, so that some full blocks in between do not outbid it, and at least what the dearest of the last
/// blocks asked for.
fn suggested_bid(outlook: &Outlook) -> u64 {
    let base_fee = outlook.next.base_fee.0;
    let top = outlook.recent.above_base_fee.last().copied().unwrap_or(0);
    let bid = base_fee.saturating_mul(2).max(base_fee.saturating_add(top).saturating_add(1));
    u64::try_from(bid).unwrap_or(u64::MAX)
}

fn order(wanted: &Wanted, bid: u64) -> RpcResult<Order> {
    let data = wanted.data.clone().unwrap_or_default();
    let expiry = wanted.expiry_blocks.map_or(0, Number::get);
    Ok(Order {
        to: wanted.to.unwrap_or(Address::repeat_byte(1)),
        input_bytes: data.len(),
        intrinsic_gas: call_gas_min(&data),
        scheduled_ms: wanted.time.get(),
        gas_limit: Gas(wanted.gas.get()),
        bid,
        value: Wei(wanted.value.unwrap_or_default()),
        expiry_blocks: u32::try_from(expiry)
            .map_err(|_| error::invalid(format!("expiryBlocks {expiry} is above {}", u32::MAX)))?,
    })
}

/// The block that would insert it.
fn moment(next: &Header, parameters: &Parameters) -> Moment {
    Moment {
        block: next.number,
        now: next.timestamp,
        base_fee: next.base_fee,
        fee_recipient: next.fee_recipient,
        held_until: TimestampMs(0),
        shares: Shares::of(parameters),
        ended_kept_until: 0,
    }
}

impl Prices {
    fn of(outlook: &Outlook, bid: u64) -> Self {
        let above = &outlook.recent.above_base_fee;
        let at = |above: Option<&u128>| {
            let GasPrice(price) = outlook.price_like(above.copied().unwrap_or(0), bid);
            U256::from(price)
        };
        Self { least: at(above.first()), likely: at(above.get(above.len() / 2)), most: at(above.last()) }
    }
}

/// Why no block is expected to run an order that the door would take.
fn why_not(outlook: &Outlook, has_pace: bool, has_rivals: bool) -> String {
    if is_shut(&outlook.parameters) {
        return "the door is shut down: it takes no orders".to_owned();
    }
    if is_held(Lane::Market, &outlook.parameters) {
        return "governance has paused the door or switched it off".to_owned();
    }
    if !has_pace {
        return "the chain has too few blocks to know their pace".to_owned();
    }
    if !has_rivals {
        return format!("more than {ESTIMATE_SCHEDULES_MAX} become due with it");
    }
    "others that bid or pay as much take all the room: bid more".to_owned()
}
