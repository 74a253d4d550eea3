//! What a transaction costs the node that looks at it: no more than its sender has to have.

use crate::support::running::{Running, nothing, start};
use alloy_eips::eip7702::{Authorization, SignedAuthorization};
use alloy_primitives::{Address, TxKind, U256};
use almanac_consensus::{AUTHORIZATIONS_MAX, Effort, Mode, SubmitError, Submitted};
use almanac_exec::TransactionError;
use almanac_mempool::PoolError;
use almanac_primitives::{
    NativeTransaction, UserTransaction,
    testing::{native::*, *},
};
use std::time::Instant;

/// As many as the largest transaction holds, with some room.
const AUTHORIZATIONS: usize = 1_100;
/// What their gas costs: 25,000 each.
const GAS: u64 = 28_000_000;

/// A list that costs as much to recover as any, and is quick to make: one signature many times.
fn authorizations(count: usize) -> Vec<SignedAuthorization> {
    vec![authorize(person(5), 0, Address::repeat_byte(7)); count]
}

fn delegating(from: Person, nonce: u64, count: usize) -> UserTransaction {
    sign(eip7702(nonce, Address::ZERO, authorizations(count), GAS), from.secret)
}

fn submit(chain: &Running, transaction: &UserTransaction) -> Submitted {
    chain.admission.submit_counted(transaction.encoded())
}

/// A stranger without a coin used to have a thousand signatures recovered with every transaction, 50 ms of pure
/// computing.
#[tokio::test]
async fn authorizations_of_a_sender_who_cannot_pay_are_not_recovered() {
    let chain = start(Mode::Manual, nothing());
    let lists: Vec<_> = (0..10).map(|nonce| delegating(person(99), nonce, AUTHORIZATIONS)).collect();
    let begin = Instant::now();
    for list in &lists {
        let Submitted { outcome, effort } = submit(&chain, list);
        assert!(
            matches!(outcome, Err(SubmitError::Invalid(TransactionError::InsufficientFunds { .. }))),
            "{outcome:?}"
        );
        assert_eq!(effort, Effort { recoveries: 1, has_displaced: false });
    }
    let each = begin.elapsed() / 10;
    let begin = Instant::now();
    recovered(lists[0].clone());
    let recovering = begin.elapsed();
    println!("refused in {each:?} each; recovering {AUTHORIZATIONS} authorisations takes {recovering:?}");
    // Decoding is slow in an unoptimised build; the machine may be busy, so time is compared with time.
    assert!(3 * each < recovering, "{each:?} for a transaction that nobody can pay for");
}

#[tokio::test]
async fn authorizations_are_recovered_once_the_pool_would_take_the_transaction() {
    let chain = start(Mode::Manual, nothing());
    let first = submit(&chain, &delegating(person(0), 0, 3));
    assert!(first.outcome.is_ok(), "{first:?}");
    assert_eq!(first.effort, Effort { recoveries: 4, has_displaced: false });

    let known = submit(&chain, &delegating(person(0), 0, 3));
    assert!(matches!(known.outcome, Err(SubmitError::Pool(PoolError::AlreadyKnown { .. }))));
    assert_eq!(known.effort.recoveries, 0);

    // Funds are not all: whatever else the pool has against it, it says before.
    let underpriced = submit(&chain, &delegating(person(0), 0, 4));
    let is_underpriced = |outcome: &Result<_, _>| {
        matches!(outcome, Err(SubmitError::Pool(PoolError::ReplacementUnderpriced { .. })))
    };
    assert!(is_underpriced(&underpriced.outcome), "{underpriced:?}");
    assert_eq!(underpriced.effort.recoveries, 1);

    let mut dearer = eip7702(0, Address::ZERO, authorizations(2), GAS);
    (dearer.max_fee_per_gas, dearer.max_priority_fee_per_gas) = (22_000_000_000, 1_100_000_000);
    let replacing = submit(&chain, &sign(dearer, person(0).secret));
    assert!(replacing.outcome.is_ok(), "{replacing:?}");
    assert_eq!(replacing.effort, Effort { recoveries: 3, has_displaced: true });
}

/// What needs no signature is looked at before it.
#[tokio::test]
async fn what_breaks_a_cheap_rule_costs_no_signature() {
    let chain = start(Mode::Manual, nothing());
    let mut cheap = eip1559(0, TxKind::Call(Address::ZERO), 0, vec![], 21_000);
    (cheap.max_fee_per_gas, cheap.max_priority_fee_per_gas) = (99_999_999, 0);
    let refused = submit(&chain, &sign(cheap, person(0).secret));
    assert!(matches!(refused.outcome, Err(SubmitError::Invalid(TransactionError::Underpriced { .. }))));
    assert_eq!(refused.effort.recoveries, 0);
    assert_eq!(chain.admission.submit_counted(&[2; 40]).effort.recoveries, 0);
}

/// A list of short authorizations used to be as long as its bytes allowed: more signatures than peers bear of a node.
#[tokio::test]
async fn lists_have_a_length() {
    let chain = start(Mode::Manual, nothing());
    let short = |count: usize| {
        let authorization = Authorization { chain_id: U256::ZERO, address: Address::ZERO, nonce: 0 };
        let list = vec![SignedAuthorization::new_unchecked(authorization, 0, U256::ONE, U256::ONE); count];
        submit(&chain, &sign(eip7702(0, Address::ZERO, list, GAS), person(0).secret))
    };
    let Submitted { outcome, effort } = short(AUTHORIZATIONS_MAX + 1);
    let max = AUTHORIZATIONS_MAX;
    let is_too_long = |error| matches!(error, SubmitError::TooManyAuthorizations { given, max: most } if (given, most) == (max + 1, max));
    assert!(outcome.is_err_and(is_too_long));
    assert_eq!(effort.recoveries, 0);
    let Submitted { outcome, effort } = short(AUTHORIZATIONS_MAX);
    assert!(
        matches!(outcome, Err(SubmitError::Invalid(TransactionError::IntrinsicGasTooLow { .. }))),
        "their number is fine: {outcome:?}"
    );
    assert_eq!(effort.recoveries, 0, "and no signature is looked at");
}

/// Regression: a transaction without gas, of which nobody had looked at a signature, was given a place in thought.
#[tokio::test]
async fn native_transactions_without_gas_are_refused_before_the_pool_is_asked() {
    let chain = start(Mode::Manual, nothing());
    let call = native_call(person(1).address, 0, vec![]);
    let gasless = NativeTransaction { gas_limit: 0, ..native(person(99).address, 0, vec![call]) };
    let refused = submit(&chain, &sign_native(gasless, &[person(99).into()]));
    assert!(
        matches!(refused.outcome, Err(SubmitError::Invalid(TransactionError::IntrinsicGasTooLow { .. }))),
        "{refused:?}"
    );
    assert_eq!(refused.effort.recoveries, 0);
}

/// A sender's coins go, and with them what it has in the pool; a block says which accounts to look at.
#[tokio::test]
async fn moving_coins_away_empties_the_pool() {
    let mut chain = start(Mode::Manual, nothing());
    let alice = person(0);
    for nonce in 1..=20 {
        chain.submit(&transfer(alice, nonce, person(1).address, 1)).unwrap();
    }
    assert_eq!(chain.admission.pool().lock().parked_count(), 20);
    let mut away = eip1559(0, TxKind::Call(person(2).address), 0, vec![], 21_000);
    // All but what the gas of this one costs at most, and a little.
    let coins = U256::from(1_000) * U256::from(10).pow(U256::from(18));
    away.value = coins - U256::from(21_000) * U256::from(away.max_fee_per_gas) - U256::from(1);
    chain.submit(&sign(away, alice.secret)).unwrap();
    chain.solo.controls().mine(None).await.unwrap();
    assert_eq!(chain.next_block().await.0.transactions.len(), 1);
    let left = chain.admission.pool().lock().pending_of(alice.address).count();
    assert_eq!(left, 0, "none of them would be admitted now");
}
