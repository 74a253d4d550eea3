//! ARC21-26: how subscriptions end, and where the money of their cron jobs goes.

use crate::subscriptions::market::*;
use crate::support::person;
use alloy_primitives::U256;
use almanac_primitives::Outcome;

#[test]
fn arc21_26_later_charges_of_a_cancelled_subscription_do_nothing() {
    let mut market = Market::new();
    let id = market.subscribe(12, PRICE * u(12));
    let approved = market.now();
    assert_eq!(market.block_at(approved + MONTH), [charged(id, u(11))]);

    let receipt = market.act(cancelSubscriptionCall { id });
    assert_eq!(market.events(&receipt), [Event::SubscriptionCancelled(SubscriptionCancelled { id })]);
    let shown = market.subscription(id);
    assert_eq!((shown.state, shown.nextChargeAt, shown.chargesLeft), (State::Cancelled, u(0), u(0)));
    assert_eq!(shown.paidUntil, u(approved + 2 * MONTH), "what was paid stays paid");

    assert_eq!(market.block_at(approved + 2 * MONTH), []);
    let [run] = &market.runs()[..] else { panic!("the job is still there") };
    assert_eq!(run.outcome, Outcome::Success, "silent, not an error");
    assert_eq!(market.tokens_of(MERCHANT), PRICE);
    reverts(&market.act(cancelSubscriptionCall { id }), &SubscriptionEnded { id, state: State::Cancelled });
}

#[test]
fn arc21_26_only_the_customer_cancels_and_reclaims() {
    let mut market = Market::new();
    let id = market.subscribe(12, PRICE * u(12));
    let stranger = person(5);
    let error = NotCustomer { id, caller: stranger.address, customer: customer().address };
    reverts(&market.send(stranger, market.subscriptions, cancelSubscriptionCall { id }), &error);
    market.act(cancelSubscriptionCall { id });
    reverts(&market.send(stranger, market.subscriptions, reclaimCall { id }), &error);
    let unknown = u(2);
    let error = UnknownSubscription { id: unknown, last: u(1) };
    reverts(&market.act(cancelSubscriptionCall { id: unknown }), &error);
    reverts(&market.act(reclaimCall { id: unknown }), &error);
}

#[test]
fn arc21_26_reclaim_ends_the_job_and_pays_the_customer() {
    let mut market = Market::new();
    let id = market.subscribe(12, PRICE * u(12));
    let approved = market.now();
    reverts(&market.act(reclaimCall { id }), &SubscriptionActive { id });
    market.block_at(approved + MONTH);
    market.act(cancelSubscriptionCall { id });

    let escrow = market.subscription(id).escrow;
    assert!(escrow < ESCROW && escrow > ESCROW / u(2), "one charge was paid for: {escrow}");
    let before = market.chain.balance(customer().address);
    let receipt = market.act(reclaimCall { id });
    assert_eq!(receipt.outcome, Outcome::Success);
    assert_eq!(market.chain.balance(customer().address), before + escrow - fee(&receipt));
    assert_eq!(market.job(id).owner, alloy_primitives::Address::ZERO);
    assert!(!market.subscription(id).isScheduled);

    assert_eq!(market.act(reclaimCall { id }).outcome, Outcome::Success, "again: nothing left, no error");
    assert_eq!(market.block_at(approved + 2 * MONTH), []);
    assert_eq!(market.runs(), []);
}

/// The contract cancels the job inside its own run; the whole rest goes to the customer at once.
#[test]
fn arc21_26_the_last_charge_ends_the_job() {
    let mut market = Market::new();
    let id = market.subscribe(2, PRICE * u(2));
    let approved = market.now();
    market.block_at(approved + MONTH);
    let escrow = market.subscription(id).escrow;
    let before = market.chain.balance(customer().address);

    assert_eq!(market.block_at(approved + 2 * MONTH), [charged(id, u(0))]);
    let [run] = &market.runs()[..] else { panic!("one run") };
    assert_eq!(run.outcome, Outcome::Success);
    let limit: u64 = market.read(market.subscriptions, CHARGE_GASCall {}).to();
    let rest = escrow - run_fee(run, limit);
    assert_eq!(market.chain.balance(customer().address), before + rest, "all but what the run costs");
    let shown = market.subscription(id);
    assert_eq!((shown.state, shown.isScheduled, shown.escrow), (State::Completed, false, u(0)));
    assert_eq!(shown.paidUntil, u(approved + 3 * MONTH));

    assert_eq!(market.block_at(approved + 3 * MONTH), []);
    assert_eq!(market.runs(), []);
    reverts(&market.act(cancelSubscriptionCall { id }), &SubscriptionEnded { id, state: State::Completed });
    reverts(&market.act(fundCall { id }), &SubscriptionEnded { id, state: State::Completed });
}

/// The last charge came by a call that somebody else paid for: the own job, due in the same block, is gone.
#[test]
fn arc21_26_a_strangers_last_charge_ends_the_job_too() {
    let mut market = Market::new();
    let id = market.subscribe(1, PRICE);
    let first = market.now() + MONTH;
    market.schedule_by_stranger(chargeSubscriptionCall { id }, first - 1, 1_000_000);
    let before = market.chain.balance(customer().address);
    assert_eq!(market.block_at(first), [charged(id, u(0))]);
    assert_eq!(market.runs().len(), 1);
    assert_eq!(market.chain.balance(customer().address), before + ESCROW);
}

/// Approves with money for a single run, and lets it and the one that cannot be paid pass.
fn exhausted(market: &mut Market, charges_max: u64) -> (U256, u64) {
    market.allow(PRICE * u(12));
    // At the floor, so that gas does not become cheaper while months pass.
    let floor = market.chain.outputs[0].environment.parameters.base_fee_floor();
    while market.chain.next_base_fee() > floor {
        market.wait(1);
    }
    let gas = market.read(market.subscriptions, CHARGE_GASCall {});
    let (call, value) = (market.order(charges_max), gas * U256::from(floor.0));
    let receipt = market.pay(customer(), market.subscriptions, value, call);
    assert_eq!(receipt.outcome, Outcome::Success);
    let approved = market.now();
    assert_eq!(market.block_at(approved + MONTH), [charged(u(1), u(charges_max - 1))]);
    assert_eq!(market.block_at(approved + 2 * MONTH), [], "unused gas of one run does not pay for another");
    (u(1), approved)
}

#[test]
fn arc21_26_exhaustion_refunds_the_customer() {
    let mut market = Market::new();
    let (id, _) = exhausted(&mut market, 12);
    assert!(!market.subscription(id).isScheduled);
    let limit: u64 = market.read(market.subscriptions, CHARGE_GASCall {}).to();
    let receipts = market.chain.outputs.iter().flat_map(|output| &output.receipts);
    let spent = |receipt| if is_run(receipt) { run_fee(receipt, limit) } else { fee(receipt) };
    let spent: U256 = receipts.map(spent).sum();
    let start = market.chain.genesis_state.account(customer().address).balance;
    assert_eq!(market.chain.balance(customer().address), start - spent, "nothing but gas is gone");
    assert_eq!(market.act(cancelSubscriptionCall { id }).outcome, Outcome::Success);
    assert_eq!(market.act(reclaimCall { id }).outcome, Outcome::Success, "there is nothing to reclaim");
}

/// New money makes a new job on the same grid; the period in between is lost to the merchant, not doubled.
#[test]
fn arc21_26_money_after_exhaustion_lets_charges_go_on() {
    let mut market = Market::new();
    let (id, approved) = exhausted(&mut market, 12);
    let old = market.subscription(id);
    assert_eq!(
        market.pay(person(5), market.subscriptions, ESCROW, fundCall { id }).outcome,
        Outcome::Success
    );
    let shown = market.subscription(id);
    assert_ne!(shown.jobId, old.jobId);
    assert_eq!((shown.isScheduled, shown.escrow), (true, ESCROW));
    assert_eq!(shown.nextChargeAt, u(approved + 3 * MONTH));
    assert_eq!((shown.failure.as_str(), shown.paidUntil), ("cron escrow ran out", u(0)));
    assert_eq!(market.block_at(approved + 3 * MONTH - 1), []);
    assert_eq!(market.block_at(approved + 3 * MONTH), [charged(id, u(10))]);
    assert_eq!(market.subscription(id).paidUntil, u(approved + 4 * MONTH));
}

#[test]
fn arc21_26_anyone_may_add_money_to_a_running_subscription() {
    let mut market = Market::new();
    let id = market.subscribe(12, PRICE * u(12));
    let old = market.subscription(id);
    assert_eq!(
        market.pay(person(5), market.subscriptions, u(700), fundCall { id }).outcome,
        Outcome::Success
    );
    let shown = market.subscription(id);
    assert_eq!((shown.jobId, shown.nextChargeAt), (old.jobId, old.nextChargeAt));
    assert_eq!(shown.escrow, ESCROW + u(700));
    assert_eq!(market.chain.balance(market.subscriptions), U256::ZERO);
    market.act(cancelSubscriptionCall { id });
    let receipt = market.pay(person(5), market.subscriptions, u(1), fundCall { id });
    reverts(&receipt, &SubscriptionEnded { id, state: State::Cancelled });
}

/// Somebody else's call may come when the own job is gone; the last charge then has nothing to end.
#[test]
fn arc21_26_the_last_charge_needs_no_job_to_end() {
    let mut market = Market::new();
    let (id, approved) = exhausted(&mut market, 2);
    let at = approved + 2 * MONTH + 100;
    market.schedule_by_stranger(chargeSubscriptionCall { id }, at, 300_000);
    assert_eq!(market.block_at(at), [charged(id, u(0))]);
    assert_eq!(market.subscription(id).state, State::Completed);
    assert_eq!(market.tokens_of(MERCHANT), PRICE * u(2));
}
