//! ARC21-27: one charge per interval at most, and no more than agreed in all, however blocks fall.

use crate::subscriptions::market::*;
use alloy_primitives::U256;
use almanac_primitives::params::CRON_BLOCK_GAS_DEFAULT;
use proptest::{collection::vec, prelude::*};

#[test]
fn arc21_27_a_halt_is_charged_once() {
    let mut market = Market::new();
    let id = market.subscribe(12, PRICE * u(12));
    let approved = market.now();
    assert_eq!(market.block_at(approved + 5 * MONTH + 7), [charged(id, u(11))]);
    for _ in 0..5 {
        assert_eq!(market.wait(1), [], "four months are not made up for");
    }
    assert_eq!(market.subscription(id).nextChargeAt, u(approved + 6 * MONTH), "no drift");
    assert_eq!(market.block_at(approved + 6 * MONTH - 1), []);
    assert_eq!(market.block_at(approved + 6 * MONTH), [charged(id, u(10))]);
}

/// A late charge is for its own month; the next one is on time.
#[test]
fn arc21_27_a_late_block_moves_no_period() {
    let mut market = Market::new();
    let id = market.subscribe(12, PRICE * u(12));
    let approved = market.now();
    assert_eq!(market.block_at(approved + 2 * MONTH - 1), [charged(id, u(11))]);
    assert_eq!(market.block_at(approved + 2 * MONTH), [charged(id, u(10))]);
    assert_eq!(market.block_at(approved + 2 * MONTH + 1), []);
}

/// More charges than a block has cron gas for: they go on in the next one, in order, and none is lost or doubled.
#[test]
fn arc21_27_a_crowded_block_puts_charges_off() {
    let mut market = Market::new();
    let gas: u64 = market.read(market.subscriptions, CHARGE_GASCall {}).to();
    let fit = CRON_BLOCK_GAS_DEFAULT / gas;
    let ids: Vec<_> = (0..fit + 3).map(|_| market.subscribe(1, U256::MAX)).collect();
    let due = market.now() + MONTH;
    let all: Vec<_> = ids.iter().map(|id| charged(*id, u(0))).collect();
    let (first, second) = all.split_at(fit.try_into().unwrap());
    assert_eq!(market.block_at(due), first);
    assert_eq!(market.wait(1), second);
    assert_eq!(market.wait(1), []);
    assert_eq!(market.tokens_of(MERCHANT), PRICE * u(fit + 3));
}

/// What may happen next on a chain with a subscription.
#[derive(Clone, Debug)]
enum Step {
    /// A block so many seconds later.
    Wait(u64),
    /// A block at the next whole interval, give or take a second.
    Edge(i64),
    /// The allowance becomes this many charges.
    Allow(u64),
}

const INTERVAL: u64 = 60;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (1..2 * INTERVAL).prop_map(Step::Wait),
        (1..6 * INTERVAL).prop_map(Step::Wait),
        (-1i64..=1).prop_map(Step::Edge),
        (0u64..4).prop_map(Step::Allow),
    ];
    vec(step, 1..25)
}

/// The same subscription, thought through the dull way.
struct Model {
    approved: u64,
    charges_max: u64,
    charges: u64,
    allowance: u64,
    /// The last period that was tried.
    period: u64,
}

impl Model {
    /// What the contract says in a block at this time.
    fn block(&mut self, now: u64) -> Vec<Event> {
        let period = (now - self.approved) / INTERVAL;
        let is_over = self.charges_max != 0 && self.charges == self.charges_max;
        if period == self.period || is_over {
            return vec![];
        }
        self.period = period;
        if self.allowance == 0 {
            return vec![failed(u(1), "allowance too low")];
        }
        self.allowance -= 1;
        self.charges += 1;
        let left = if self.charges_max == 0 { UNLIMITED } else { u(self.charges_max - self.charges) };
        vec![charged(u(1), left)]
    }
}

/// A market with one short subscription, and on demand a stranger who has the registry call it all the time.
fn subscribed(charges_max: u64, is_pestered: bool) -> (Market, Model) {
    let mut market = Market::new();
    let id =
        market.approve(approveSubscriptionCall { intervalSec: u(INTERVAL), ..market.order(charges_max) });
    let approved = market.now();
    if is_pestered {
        market.schedule_by_stranger(chargeSubscriptionCall { id }, approved + INTERVAL / 2, 1_000_000);
    }
    (market, Model { approved, charges_max, charges: 0, allowance: 0, period: 0 })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() })]

    #[test]
    fn arc21_27_however_blocks_fall(charges_max in 0u64..5, is_pestered: bool, steps in steps()) {
        let (mut market, mut model) = subscribed(charges_max, is_pestered);
        for step in steps {
            let now = market.now();
            let events = match step {
                Step::Wait(seconds) => market.wait(seconds),
                Step::Edge(offset) => {
                    let edge = model.approved + ((now - model.approved) / INTERVAL + 1) * INTERVAL;
                    market.block_at((edge.saturating_add_signed(offset)).max(now + 1))
                }
                Step::Allow(charges) => {
                    market.allow(PRICE * u(charges));
                    market.last_events()
                }
            };
            prop_assert_eq!(events, model.block(market.now()));
            if let Step::Allow(charges) = step {
                model.allowance = charges;
            }
        }
        let total = PRICE * u(model.charges);
        prop_assert_eq!(market.tokens_of(MERCHANT), total);
        prop_assert_eq!(market.tokens_of(customer().address), SUPPLY - total);
        market.chain.replay();
    }
}
