//! ARC-21's own test cases, as its text lists them.

use crate::support::{TestChain, contracts::*, cron::*, person};
use alloy_primitives::{Address, U256};
use almanac_primitives::addresses::CRON_REGISTRY;

#[test]
fn arc21_source_case_1_a_time_in_the_past_is_refused() {
    let mut chain = TestChain::new();
    let now = chain.next_seconds();
    let past = order(&chain).at(now - 1);
    assert!(matches!(chain.schedule(person(0), &past), Err(CronError::TimeNotInFuture(_))));
}

#[test]
fn arc21_source_case_2_too_little_value_for_one_run_is_refused() {
    let mut chain = TestChain::new();
    let order = order(&chain);
    let poor = order.with_value(U256::from(RUN_GAS));
    assert!(matches!(chain.schedule(person(0), &poor), Err(CronError::EscrowTooLow(_))));
}

#[test]
fn arc21_source_case_3_a_one_shot_fires_once_and_is_gone() {
    let mut chain = TestChain::new();
    let order = order(&chain);
    let due = order.next_run_at.to::<u64>();
    let id = chain.schedule(person(0), &order).unwrap();

    assert!(chain.at(due - 1).ran().is_empty(), "not before its time");
    assert_eq!(chain.at(due).ran(), [id]);
    assert!(chain.at(due + 1).ran().is_empty(), "only once");

    assert_eq!(chain.state.slot_of(COUNTER, CRON_REGISTRY), U256::ONE);
    assert_eq!(chain.job(id).id, U256::ZERO);
    chain.replay();
}

#[test]
fn arc21_source_case_4_three_runs_then_exhausted() {
    let mut chain = TestChain::new();
    let order = order(&chain).every(MINUTE).runs(3);
    let due = order.next_run_at.to::<u64>();
    let id = chain.schedule(person(0), &order).unwrap();
    for n in 0..3 {
        let block = chain.at(due + n * MINUTE);
        assert_eq!(block.ran(), [id]);
        let exhausted = events::<JobExhausted>(&block.logs());
        assert_eq!(exhausted.len(), usize::from(n == 2), "only with the last run");
    }
    assert!(chain.at(due + 3 * MINUTE).ran().is_empty());
    assert_eq!(chain.job(id).owner, Address::ZERO);
}

#[test]
fn arc21_source_case_5_unlimited_runs_until_the_escrow_is_empty() {
    let mut chain = TestChain::new();
    let order = order(&chain).every(MINUTE);
    let due = order.next_run_at.to::<u64>();
    let id = chain.schedule(person(0), &order).unwrap();
    let mut runs = 0;
    for n in 0.. {
        assert!(n < 1_000, "it must end");
        let block = chain.at(due + n * MINUTE);
        runs += block.ran().len();
        if let [exhausted] = &events::<JobExhausted>(&block.logs())[..] {
            assert_eq!((exhausted.id, &exhausted.reason[..]), (id, "insufficient escrow"));
            break;
        }
    }
    assert!(runs >= 10, "the base fee only fell: {runs} runs");
    assert_eq!(chain.job(id).gasEscrow, U256::ZERO);
}

#[test]
fn arc21_source_case_6_cancel_refunds_and_removes() {
    let mut chain = TestChain::new();
    let order = order(&chain);
    let id = chain.schedule(person(0), &order).unwrap();
    assert_eq!(chain.cancel(person(0), id).unwrap(), order.value);
    assert_eq!(chain.job(id).id, U256::ZERO);
    assert!(chain.at(order.next_run_at.to::<u64>()).ran().is_empty());
}

#[test]
fn arc21_source_case_7_cancel_by_another_is_refused() {
    let mut chain = TestChain::new();
    let order = order(&chain);
    let id = chain.schedule(person(0), &order).unwrap();
    assert!(matches!(chain.cancel(person(1), id), Err(CronError::NotJobOwner(_))));
    assert_eq!(chain.job(id).gasEscrow, order.value, "nothing changed");
}

#[test]
fn arc21_source_case_8_what_does_not_fit_the_budget_rolls_over_in_order() {
    let mut chain = TestChain::new();
    let due = chain.next_seconds() + HOUR;
    // Three of these fill the 15,000,000 of a block.
    let order = order(&chain).at(due).gas(5_000_000).with_value(U256::from(10u64.pow(17)));
    let ids: Vec<_> = (0..7).map(|_| chain.schedule(person(0), &order).unwrap()).collect();

    let blocks = [chain.at(due), chain.at(due + 1), chain.at(due + 2)].map(|block| block.ran());
    assert_eq!(blocks, [ids[..3].to_vec(), ids[3..6].to_vec(), ids[6..].to_vec()]);
}
