//! ARC21-25 and 28: tokens that refuse, lie, burn gas or call back. Nobody loses, and the next month works.

use crate::subscriptions::market::*;
use crate::support::{authorize, eip1559, eip7702, person, sign};
use alloy_primitives::{Address, Bytes, TxKind, U256};
use alloy_sol_types::SolCall;
use almanac_primitives::Outcome;

const FALSE: &str = "transferFrom returned false";
const REVERTED: &str = "transferFrom reverted";

fn set(market: &mut Market, mode: Mode) {
    assert_eq!(
        market.send(person(7), market.token, OddToken::setCall { mode_: mode }).outcome,
        Outcome::Success
    );
}

/// The allowance ends, and comes back; what failed is not counted, so that twelve months are paid in the end.
#[test]
fn arc21_25_a_short_allowance_fails_and_resumes_when_topped_up() {
    let mut market = Market::new();
    let id = market.subscribe(3, PRICE * u(2) - u(1));
    let approved = market.now();
    let month = |n| approved + n * MONTH;
    assert_eq!(market.block_at(month(1)), [charged(id, u(2))]);
    for n in [2, 3] {
        assert_eq!(market.block_at(month(n)), [failed(id, "allowance too low")]);
        assert_eq!(market.runs()[0].outcome, Outcome::Success, "a failed charge is a run that did its work");
        let shown = market.subscription(id);
        assert_eq!((shown.state, shown.chargesLeft), (State::Active, u(2)));
        assert_eq!((shown.failure.as_str(), shown.paidUntil), ("allowance too low", u(0)));
        assert_eq!(shown.nextChargeAt, u(month(n + 1)));
    }
    market.allow(PRICE * u(2));
    assert_eq!(market.block_at(month(4) - 1), [], "a missed month is not made up for");
    assert_eq!(market.block_at(month(4)), [charged(id, u(1))]);
    let shown = market.subscription(id);
    assert_eq!((shown.failure.as_str(), shown.paidUntil), ("", u(month(5))));
    assert_eq!(market.block_at(month(5)), [charged(id, u(0))]);
    assert_eq!(market.tokens_of(MERCHANT), PRICE * u(3));
}

#[test]
fn arc21_25_a_short_balance_fails_by_one_and_not_by_none() {
    let mut market = Market::new();
    let id = market.subscribe(2, U256::MAX);
    let approved = market.now();
    let away = |amount| OddToken::transferCall { to: person(5).address, amount };
    market.send(customer(), market.token, away(SUPPLY - PRICE + u(1)));
    assert_eq!(market.block_at(approved + MONTH), [failed(id, "balance too low")]);
    let back = OddToken::transferCall { to: customer().address, amount: u(1) };
    market.send(person(5), market.token, back);
    assert_eq!(market.block_at(approved + 2 * MONTH), [charged(id, u(1))]);
    assert_eq!(market.tokens_of(customer().address), u(0));
}

/// One month with a token in each mode, then one with it honest.
fn month_with(mode: Mode) -> (Market, U256, Vec<Event>) {
    let mut market = Market::with_token("OddToken");
    let id = market.subscribe(5, U256::MAX - u(1));
    let approved = market.now();
    set(&mut market, mode);
    let events = market.block_at(approved + MONTH);
    let [run] = &market.runs()[..] else { panic!("one run") };
    assert_eq!(run.outcome, Outcome::Success, "a token cannot fail the run: {mode:?}");
    (market, id, events)
}

#[test]
fn arc21_25_tokens_that_refuse_take_nothing_and_count_for_nothing() {
    let modes = [
        (Mode::ReturnsFalse, FALSE),
        (Mode::MovesAndReturnsFalse, FALSE),
        (Mode::MovesAndReturnsTwo, FALSE),
        (Mode::ReturnsOneByte, FALSE),
        (Mode::Reverts, REVERTED),
        (Mode::RevertsMuch, REVERTED),
        (Mode::BurnsGas, REVERTED),
        (Mode::BurnsGasEverywhere, REVERTED),
    ];
    for (mode, reason) in modes {
        let (mut market, id, events) = month_with(mode);
        assert_eq!(events, [failed(id, reason)], "{mode:?}");
        set(&mut market, Mode::Honest);
        assert_eq!(market.tokens_of(customer().address), SUPPLY, "{mode:?} took nothing");
        let shown = market.subscription(id);
        assert_eq!((shown.chargesLeft, shown.failure.as_str()), (u(5), reason));
        assert_eq!(market.block_at(shown.nextChargeAt.to()), [charged(id, u(4))], "{mode:?} is over");
        assert_eq!(market.tokens_of(MERCHANT), PRICE);
    }
}

#[test]
fn arc21_28_tokens_with_habits_are_charged() {
    let modes = [
        (Mode::Honest, PRICE),
        (Mode::ReturnsNothing, PRICE),
        (Mode::ReturnsMuch, PRICE),
        (Mode::TakesFee, PRICE - PRICE / u(10)),
        (Mode::Lies, u(0)),
    ];
    for (mode, received) in modes {
        let (market, id, events) = month_with(mode);
        assert_eq!(events, [charged(id, u(4))], "{mode:?}");
        assert_eq!(market.tokens_of(MERCHANT), received, "{mode:?}");
        let taken = if matches!(mode, Mode::Lies) { u(0) } else { PRICE };
        assert_eq!(market.tokens_of(customer().address), SUPPLY - taken, "{mode:?}");
    }
}

/// A token that calls back in the middle of a charge.
#[test]
fn arc21_28_a_reentrant_token_gets_nothing_more() {
    let id = u(1);
    let calls: Vec<Vec<u8>> = vec![
        chargeSubscriptionCall { id }.abi_encode(),
        collectCall { id }.abi_encode(),
        cancelSubscriptionCall { id }.abi_encode(),
        reclaimCall { id }.abi_encode(),
    ];
    for (mode, call) in calls.iter().flat_map(|call| [(Mode::Calls, call), (Mode::Tries, call)]) {
        let mut market = Market::with_token("OddToken");
        assert_eq!(market.subscribe(5, U256::MAX - u(1)), id);
        let approved = market.now();
        let set = OddToken::setCallCall {
            mode_: mode,
            callee_: market.subscriptions,
            input_: Bytes::from(call.clone()),
        };
        market.send(person(7), market.token, set);
        let events = market.block_at(approved + MONTH);
        let (expected, paid) = match mode {
            Mode::Calls => (failed(id, REVERTED), u(0)),
            _ => (charged(id, u(4)), PRICE),
        };
        assert_eq!(events, [expected], "{mode:?} {call:02x?}");
        assert_eq!(market.tokens_of(MERCHANT), paid);
        assert!(!market.read(market.token, OddToken::hasReenteredCall {}));
        assert_eq!(market.subscription(id).state, State::Active);
    }
}

/// A token that is its own customer may cancel in the middle of a charge; the last charge ends it once.
#[test]
fn arc21_28_a_customer_may_cancel_while_charged() {
    for (charges_max, charged_left, state) in [(2, u(1), State::Cancelled), (1, u(0), State::Completed)] {
        let mut market = Market::with_token("OddToken");
        let (token, subscriptions) = (market.token, market.subscriptions);
        let act = |to, call: Vec<u8>| OddToken::actCall { to, data: call.into() };
        market.send(customer(), token, OddToken::transferCall { to: token, amount: PRICE });
        let allow = OddToken::approveCall { spender: subscriptions, amount: PRICE };
        market.send(customer(), token, act(token, allow.abi_encode()));
        let approve = market.order(charges_max);
        let receipt = market.pay(customer(), token, ESCROW, act(subscriptions, approve.abi_encode()));
        assert_eq!(receipt.outcome, Outcome::Success);
        let (id, approved) = (u(1), market.now());
        let set = OddToken::setCallCall {
            mode_: Mode::Tries,
            callee_: subscriptions,
            input_: cancelSubscriptionCall { id }.abi_encode().into(),
        };
        market.send(person(7), token, set);
        let events = market.block_at(approved + MONTH);
        assert_eq!(events.last(), Some(&charged(id, charged_left)));
        let has_cancelled = events.iter().any(|event| matches!(event, Event::SubscriptionCancelled(_)));
        assert_eq!(has_cancelled, matches!(state, State::Cancelled));
        assert_eq!(market.subscription(id).state, state);
        assert_eq!(market.tokens_of(MERCHANT), PRICE);
    }
}

/// An account that was a token by delegation and is none any more: a call of it would succeed and do nothing.
#[test]
fn arc21_28_a_token_without_code_pays_nobody() {
    let mut market = Market::with_token("OddToken");
    let account = person(6);
    let delegate = |market: &mut Market, to: Address| {
        let list = vec![authorize(account, market.chain.nonce(account.address), to)];
        let nonce = market.chain.nonce(person(7).address);
        let tx = sign(eip7702(nonce, person(7).address, list, 100_000), person(7).secret);
        assert_eq!(market.chain.produce(vec![tx]).refused, []);
    };
    let code = market.token;
    delegate(&mut market, code);
    market.token = account.address;
    set(&mut market, Mode::Lies);
    let id = market.subscribe(3, PRICE);
    let approved = market.now();
    assert_eq!(market.block_at(approved + MONTH), [charged(id, u(2))], "it says so");
    delegate(&mut market, Address::ZERO);
    assert_eq!(market.block_at(approved + 2 * MONTH), [failed(id, "token has no code")]);
    assert_eq!(market.subscription(id).chargesLeft, u(2));
}

/// The registry as a token: ecAdd answers there, and says nothing that looks like success.
#[test]
fn arc21_28_the_registry_is_no_token() {
    let mut market = Market::new();
    market.token = CRON;
    let id = market.approve(market.order(1));
    assert_eq!(market.wait(MONTH), [failed(id, REVERTED)]);
}

/// The worst that a token can do stays within the gas of a run, with a reserve.
#[test]
fn arc21_28_no_token_uses_up_the_gas_of_a_run() {
    let (market, ..) = month_with(Mode::BurnsGasEverywhere);
    let limit: u64 = market.read(market.subscriptions, CHARGE_GASCall {}).to();
    let used = market.runs()[0].gas_used.0;
    assert!(used < limit - 10_000, "{used} of {limit}");
    let token_limit: u64 = market.read(market.subscriptions, TOKEN_GASCall {}).to();
    assert!(used > token_limit, "it did burn what it was given: {used}");
}

/// Whoever calls with enough gas to be let in gives the token all that it may use, and enough is left to end the
/// job after the last charge.
#[test]
fn arc21_28_a_heavy_token_is_charged_with_the_least_gas_that_is_taken() {
    let mut market = Market::with_token("OddToken");
    let id = market.subscribe(1, PRICE);
    let first = market.now() + MONTH;
    set(&mut market, Mode::Heavy);
    let limit: u64 = market.read(market.subscriptions, CHARGE_GASCall {}).to();
    for gas in (limit - 5_000..limit).step_by(250) {
        market.schedule_by_stranger(chargeSubscriptionCall { id }, first - 1, gas);
    }
    assert_eq!(market.block_at(first), [charged(id, u(0))]);
    let runs = market.runs();
    let refused = runs.iter().take_while(|run| run.outcome != Outcome::Success).count();
    assert!((1..20).contains(&refused), "the least that is taken is among those: {refused}");
    assert_eq!(market.events(&runs[refused]), [charged(id, u(0))]);
    assert!(!market.subscription(id).isScheduled);
}

/// Input that is no call of the contract leaves it alone.
#[test]
fn arc21_28_plain_money_is_refused() {
    let mut market = Market::new();
    let nonce = market.chain.nonce(person(5).address);
    let tx =
        sign(eip1559(nonce, TxKind::Call(market.subscriptions), 5, Bytes::new(), 100_000), person(5).secret);
    let produced = market.chain.produce(vec![tx]);
    assert!(!produced.receipt(0).outcome.is_success());
    assert_eq!(market.chain.balance(market.subscriptions), u(0));
}
