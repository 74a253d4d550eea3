//! What room in a second costs a transaction that waits for its time, by the code of the chain that takes it.

use super::gathering::Parties;
use crate::client::node::NodeArgs;
use alloy_primitives::{Address, U256};
use almanac_primitives::{GasPrice, TimestampMs, params::Parameters, transaction_body::TransactionBody};
use almanac_schedule::{capacity::Shares, decide::Moment, signed::book};
use anyhow::{Context as _, anyhow};

/// What is paid when it is made. Nothing, unless it waits for its time.
pub(super) fn price(node: &NodeArgs, body: &TransactionBody, parties: &Parties) -> anyhow::Result<U256> {
    if !body.wait_for_expiry {
        return Ok(U256::ZERO);
    }
    let (base_fee, now) = (node.base_fee()?, node.now()?);
    let base_fee = u128::try_from(base_fee).ok().with_context(|| format!("a base fee of {base_fee} wei"))?;
    price_at(body, parties.readiness_gas(), &node.parameters()?, GasPrice(base_fee), now)
}

fn price_at(
    body: &TransactionBody,
    readiness_gas: u64,
    parameters: &Parameters,
    base_fee: GasPrice,
    now: TimestampMs,
) -> anyhow::Result<U256> {
    // Of these, the price depends on time and base fee alone.
    let moment = Moment {
        block: 0,
        now,
        base_fee,
        fee_recipient: Address::ZERO,
        held_until: TimestampMs(0),
        shares: Shares::of(parameters),
        ended_kept_until: 0,
    };
    let booked = book(body.execution_time, body.gas_limit, readiness_gas, parameters, moment);
    let (_, fee) = booked.map_err(|code| {
        anyhow!(
            "OrderRefused: {} gas and {readiness_gas} more to judge its signatures cannot be booked: {code}: change --gas \
             or --at, or let fewer keys sign",
            body.gas_limit
        )
    })?;
    Ok(fee.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use almanac_schedule::signed::readiness_gas;

    const NOW: TimestampMs = TimestampMs(1_796_000_000_000);

    fn priced(gas_limit: u64, accounts: usize) -> anyhow::Result<U256> {
        let body = TransactionBody {
            calls: Vec::new(),
            gas_limit,
            max_fee_per_gas: U256::ZERO,
            memo: String::new(),
            nonce: 0,
            execution_time: NOW.seconds() + 60,
            wait_for_expiry: true,
        };
        let readiness = readiness_gas(accounts, accounts);
        price_at(&body, readiness, &Parameters::default(), GasPrice(1_000_000_000), NOW)
    }

    /// The price left out what judging costs: with several accounts even twice as much was refused.
    #[test]
    fn every_account_that_signs_adds_to_the_price() {
        let [one, two, eight] = [1, 2, 8].map(|accounts| priced(120_000, accounts).unwrap());
        // Room is sold in units, so that the steps are nearly the same.
        assert!(one < two && eight - one >= (two - one) * U256::from(6), "{one} {two} {eight}");
        assert!(eight > priced(120_000, 0).unwrap() * U256::from(2), "twice the run alone is too little");
    }

    #[test]
    fn what_cannot_be_booked_is_refused_by_name() {
        let refused = priced(1_000_000_000, 1).unwrap_err().to_string();
        assert!(
            refused.starts_with("OrderRefused: 1000000000 gas") && refused.contains("--gas"),
            "{refused}"
        );
    }
}
