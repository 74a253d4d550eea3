//! ARC21-22: approving a subscription.

use crate::subscriptions::market::*;
use alloy_primitives::{Address, Bytes, U256};
use alloy_sol_types::SolError;
use almanac_primitives::Outcome;

/// The first charge comes after one interval, not before, and the job is what the record says.
#[test]
fn arc21_22_approval_schedules_the_first_charge_one_interval_ahead() {
    let mut market = Market::new();
    let id = market.subscribe(12, PRICE * u(12));
    let first = market.now() + MONTH;

    let shown = market.subscription(id);
    assert_eq!(shown.customer, customer().address);
    assert_eq!((shown.merchant, shown.token, shown.amount), (MERCHANT, market.token, PRICE));
    assert_eq!((shown.intervalSec, shown.nextChargeAt), (u(MONTH), u(first)));
    assert_eq!((shown.maxCharges, shown.chargesMade, shown.chargesLeft), (u(12), u(0), u(12)));
    assert_eq!((shown.isScheduled, shown.escrow), (true, ESCROW));
    assert_eq!((shown.paidUntil, shown.failure.as_str()), (u(0), ""));

    let job = market.job(id);
    assert_eq!((job.id, job.owner, job.target), (shown.jobId, market.subscriptions, market.subscriptions));
    assert_eq!((job.nextRunAt, job.intervalSec), (u(first), u(MONTH)));
    assert_eq!(job.maxRuns, U256::ZERO, "failed charges must not use it up");
    assert_eq!(market.chain.balance(market.subscriptions), U256::ZERO, "the contract holds no money");

    assert_eq!(market.block_at(first - 1), []);
    assert_eq!(market.block_at(first), [charged(id, u(11))]);
    assert_eq!(market.tokens_of(MERCHANT), PRICE);
    let shown = market.subscription(id);
    assert_eq!((shown.chargesMade, shown.chargesLeft), (u(1), u(11)));
    assert_eq!((shown.nextChargeAt, shown.paidUntil), (u(first + MONTH), u(first + MONTH)));
}

#[test]
fn arc21_22_approval_refuses_what_can_never_be_charged() {
    let mut market = Market::new();
    let good = || market.order(1);
    let too_long = U256::from(u32::MAX) + u(1);
    let cases: Vec<(approveSubscriptionCall, Vec<u8>)> = vec![
        (
            approveSubscriptionCall { token: MERCHANT, ..good() },
            TokenHasNoCode { token: MERCHANT }.abi_encode(),
        ),
        (
            approveSubscriptionCall { merchant: Address::ZERO, ..good() },
            InvalidMerchant { merchant: Address::ZERO }.abi_encode(),
        ),
        (
            approveSubscriptionCall { merchant: market.subscriptions, ..good() },
            InvalidMerchant { merchant: market.subscriptions }.abi_encode(),
        ),
        (approveSubscriptionCall { amount: u(0), ..good() }, AmountIsZero {}.abi_encode()),
        (
            approveSubscriptionCall { intervalSec: u(59), ..good() },
            IntervalTooShort { given: u(59), min: u(60) }.abi_encode(),
        ),
        (
            approveSubscriptionCall { intervalSec: u(0), ..good() },
            IntervalTooShort { given: u(0), min: u(60) }.abi_encode(),
        ),
        (
            approveSubscriptionCall { intervalSec: too_long, ..good() },
            IntervalTooLong { given: too_long, max: U256::from(u32::MAX) }.abi_encode(),
        ),
        (
            approveSubscriptionCall { intervalSec: U256::MAX, ..good() },
            IntervalTooLong { given: U256::MAX, max: U256::from(u32::MAX) }.abi_encode(),
        ),
    ];
    let shortest = approveSubscriptionCall { intervalSec: u(60), maxCharges: U256::MAX, ..good() };
    for (call, error) in cases {
        let receipt = market.pay(customer(), market.subscriptions, ESCROW, call);
        assert_eq!(receipt.outcome, Outcome::Reverted(Bytes::from(error)));
    }
    assert_eq!(market.approve(shortest), u(1), "what was refused has used no id");
}

/// The registry's own words come through.
#[test]
fn arc21_22_the_value_pays_for_at_least_one_charge() {
    let mut market = Market::new();
    let call = market.order(1);
    let receipt = market.pay(customer(), market.subscriptions, u(1), call);
    let Outcome::Reverted(error) = receipt.outcome else { panic!("{:?}", receipt.outcome) };
    let error = ICronRegistry::EscrowTooLow::abi_decode(&error).unwrap();
    let base_fee = market.chain.outputs.last().unwrap().environment.base_fee.0;
    let gas: u64 = market.read(market.subscriptions, CHARGE_GASCall {}).to();
    assert_eq!((error.given, error.needed), (u(1), U256::from(u128::from(gas) * base_fee)));
}

#[test]
fn arc21_22_customer_and_merchant_find_their_subscriptions() {
    let mut market = Market::new();
    let ids: Vec<_> = (0..3).map(|_| market.subscribe(1, u(0))).collect();
    assert_eq!(ids, [u(1), u(2), u(3)]);
    let of_customer = |start, size| {
        let call = idsOfCustomerCall { customer: customer().address, start: u(start), size };
        market.read(market.subscriptions, call)
    };
    let of_merchant = |start, size| {
        let call = idsOfMerchantCall { merchant: MERCHANT, start: u(start), size };
        market.read(market.subscriptions, call)
    };
    assert_eq!(of_customer(0, U256::MAX), ids);
    assert_eq!(of_merchant(0, u(2)), ids[..2]);
    assert_eq!(of_merchant(2, u(2)), ids[2..]);
    assert_eq!(of_customer(3, u(2)), ids[3..]);
    let nobody = idsOfCustomerCall { customer: MERCHANT, start: u(0), size: u(9) };
    assert_eq!(market.read(market.subscriptions, nobody), ids[3..]);
    let counts = (
        market.read(market.subscriptions, countOfCustomerCall { customer: customer().address }),
        market.read(market.subscriptions, countOfMerchantCall { merchant: MERCHANT }),
    );
    assert_eq!(counts, (u(3), u(3)));
}
