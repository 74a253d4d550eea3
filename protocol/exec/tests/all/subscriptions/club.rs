//! The example merchant, which looks at what the subscriptions contract says.

use crate::subscriptions::market::*;
use crate::support::person;
use alloy_primitives::Address;
use alloy_sol_types::SolValue as _;
use almanac_primitives::Outcome;

alloy_sol_types::sol! {
    function join(uint256 id) external;
    function isMember(address account) external view returns (bool);
    function withdraw(address to, uint256 amount) external;
}

/// A first month that is free, then who has paid is in.
#[test]
fn a_club_knows_who_has_paid() {
    let mut market = Market::new();
    let terms = (market.subscriptions, market.token, PRICE, u(MONTH)).abi_encode();
    let club = deploy(&mut market.chain, person(3), "Club", u(0), &terms);
    let member = customer().address;
    let is_member = |market: &Market| market.read(club, isMemberCall { account: member });
    market.allow(PRICE * u(2));
    let cheap =
        market.approve(approveSubscriptionCall { merchant: club, amount: PRICE - u(1), ..market.order(0) });
    let other = market.approve(market.order(0));
    for id in [cheap, other] {
        assert!(!market.send(customer(), club, joinCall { id }).outcome.is_success());
        market.act(cancelSubscriptionCall { id });
    }
    let id = market.approve(approveSubscriptionCall { merchant: club, ..market.order(0) });
    let approved = market.now();
    assert!(!is_member(&market));
    assert!(!market.send(person(5), club, joinCall { id }).outcome.is_success(), "it is not theirs");
    assert_eq!(market.send(customer(), club, joinCall { id }).outcome, Outcome::Success);

    let month = |n| approved + n * MONTH;
    for (second, expected) in [
        (month(1) - 2, true), // the free month
        (month(1), true),     // paid
        (month(2), true),     // paid
        (month(3), false),    // the allowance is used up
        (month(4) - 2, false),
    ] {
        market.block_at(second);
        assert_eq!(is_member(&market), expected, "{} s after joining", second - approved);
    }
    market.allow(PRICE);
    market.block_at(month(4) + 1);
    assert!(is_member(&market));
    market.act(cancelSubscriptionCall { id });
    market.block_at(month(5) - 2);
    assert!(is_member(&market), "until what was paid is over");
    market.block_at(month(5));
    assert!(!is_member(&market));

    assert!(!market.send(customer(), club, withdrawCall { to: member, amount: u(1) }).outcome.is_success());
    let all = withdrawCall { to: Address::repeat_byte(0x77), amount: PRICE * u(3) };
    assert_eq!(market.send(person(3), club, all).outcome, Outcome::Success);
    assert_eq!(market.tokens_of(Address::repeat_byte(0x77)), PRICE * u(3));
}
