//! ARC21-23 and 24: who charges, when, and how often.

use crate::subscriptions::market::*;
use crate::support::person;
use alloy_primitives::U256;
use almanac_primitives::Outcome;

#[test]
fn arc21_23_nobody_but_the_registry_charges() {
    let mut market = Market::new();
    let id = market.subscribe(1, PRICE);
    for caller in [customer(), person(5)] {
        let receipt = market.send(caller, market.subscriptions, chargeSubscriptionCall { id });
        reverts(&receipt, &NotRegistry { caller: caller.address, registry: CRON });
        let receipt = market.send(caller, market.subscriptions, collectCall { id });
        reverts(&receipt, &NotSelf { caller: caller.address });
    }
    assert_eq!(market.tokens_of(MERCHANT), U256::ZERO);
}

/// A call through the registry proves nothing: who schedules one gets no charge before its time and none twice.
#[test]
fn arc21_23_a_call_that_a_stranger_scheduled_charges_nothing_out_of_turn() {
    let mut market = Market::new();
    let id = market.subscribe(12, PRICE * u(12));
    let first = market.now() + MONTH;
    market.schedule_by_stranger(chargeSubscriptionCall { id }, first - 120, 500_000);
    for early in [first - 120, first - 60, first - 1] {
        assert_eq!(market.block_at(early), []);
    }
    assert_eq!(market.block_at(first), [charged(id, u(11))]);
    let runs = market.runs();
    assert_eq!(runs.len(), 2, "the stranger's and the subscription's own");
    assert!(runs.iter().all(|run| run.outcome == Outcome::Success), "neither of them is an error");
    for later in 1..5 {
        assert_eq!(market.block_at(first + later * 60), []);
    }
    assert_eq!(market.block_at(first + MONTH), [charged(id, u(10))]);
    assert_eq!(market.tokens_of(MERCHANT), PRICE * u(2));
}

/// With little gas the token would run dry, and the customer would have a month for nothing.
#[test]
fn arc21_23_a_stranger_with_little_gas_spoils_no_period() {
    let mut market = Market::new();
    let id = market.subscribe(12, PRICE * u(12));
    let first = market.now() + MONTH;
    let needed: u64 = market.read(market.subscriptions, CHARGE_GASCall {}).to();
    for gas in [22_000, 60_000, 100_000, 200_000, needed - 5_000] {
        market.schedule_by_stranger(chargeSubscriptionCall { id }, first - 1, gas);
    }
    market.schedule_by_stranger(collectCall { id }, first - 1, 500_000);
    assert_eq!(market.block_at(first), [charged(id, u(11))]);
    let (own, strange): (Vec<_>, Vec<_>) =
        market.runs().into_iter().partition(|run| run.outcome == Outcome::Success);
    assert_eq!((own.len(), strange.len()), (1, 6));
}

/// The job of the subscription has gas to spare, so the limit is one for strangers only.
#[test]
fn arc21_23_as_much_gas_as_the_own_job_is_enough() {
    let mut market = Market::new();
    let id = market.subscribe(12, PRICE * u(12));
    let first = market.now() + MONTH;
    let gas: u64 = market.read(market.subscriptions, CHARGE_GASCall {}).to();
    market.schedule_by_stranger(chargeSubscriptionCall { id }, first - 1, gas);
    assert_eq!(market.block_at(first), [charged(id, u(11))]);
    assert_eq!(market.events(&market.runs()[0]), [charged(id, u(11))], "the stranger's came first");
    assert!(market.runs().iter().all(|run| run.outcome == Outcome::Success));
}

#[test]
fn arc21_23_an_unknown_subscription_is_an_error() {
    let mut market = Market::new();
    market.subscribe(1, u(0));
    for id in [u(0), u(2), U256::MAX] {
        let at = market.now() + 100;
        market.schedule_by_stranger(chargeSubscriptionCall { id }, at, 500_000);
        assert_eq!(market.block_at(at), []);
        reverts(market.runs().last().unwrap(), &UnknownSubscription { id, last: u(1) });
    }
}

#[test]
fn arc21_24_without_a_limit_every_interval_is_charged() {
    let mut market = Market::new();
    let id = market.subscribe(0, U256::MAX);
    let approved = market.now();
    for month in 1..=24 {
        assert_eq!(market.block_at(approved + month * MONTH), [charged(id, UNLIMITED)], "month {month}");
    }
    assert_eq!(market.tokens_of(MERCHANT), PRICE * u(24));
    let shown = market.subscription(id);
    assert_eq!((shown.chargesMade, shown.chargesLeft, shown.maxCharges), (u(24), UNLIMITED, u(0)));
}
