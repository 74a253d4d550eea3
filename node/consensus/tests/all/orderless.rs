//! Orderless transactions from submission to a block, and back into the pool.

use crate::support::running::{Running, nothing, start};
use alloy_primitives::Bytes;
use almanac_consensus::{Effort, Mode, SubmitError};
use almanac_exec::TransactionError;
use almanac_mempool::PoolError;
use almanac_primitives::{
    Chain, NativeTransaction, TimestampMs, UserTransaction,
    testing::{native::*, *},
};
use std::sync::Arc;

/// The chain that a running one takes signatures for: block 0 of the test genesis.
fn chain_of(running: &Running) -> Chain {
    running.chain
}

fn transfer_of(running: &Running, from: u64, nonce: u64, price: u128) -> UserTransaction {
    let expiration = START.seconds() + 50;
    let call = native_call(person(9).address, 1, Bytes::new());
    let transaction = NativeTransaction {
        gas_limit: 23_000,
        max_fee_per_gas: price,
        max_priority_fee_per_gas: price,
        ..orderless(person(from).address, nonce, expiration, vec![call])
    };
    sign_native_on(&chain_of(running), transaction, &[person(from).into()], &[])
}

const PRICE: u128 = 20_000_000_000;

#[tokio::test]
async fn orderless_17_duplicates_of_a_pending_pair_are_refused_at_the_door() {
    let running = start(Mode::Manual, nothing());
    let first = transfer_of(&running, 0, 7, PRICE);
    running.submit(&first).unwrap();
    let outcome = running.admission.submit(transfer_of(&running, 0, 7, PRICE + 1).encoded());
    assert!(
        matches!(outcome, Err(SubmitError::Pool(PoolError::ReplacementUnderpriced { .. }))),
        "{outcome:?}"
    );
    running.submit(&transfer_of(&running, 0, 7, PRICE * 2)).unwrap();
    running.submit(&transfer_of(&running, 0, 8, PRICE)).unwrap();
    assert_eq!(running.admission.pool().lock().len(), 2);
}

/// The sender is named in the transaction, so its funds are asked for before any of its signatures is recovered.
#[tokio::test]
async fn signatures_of_a_sender_who_cannot_pay_are_not_recovered() {
    let running = start(Mode::Manual, nothing());
    let poor = transfer_of(&running, 99, 1, PRICE);
    let submitted = running.admission.submit_counted(poor.encoded());
    let refused = submitted.outcome.unwrap_err();
    assert!(matches!(refused, SubmitError::Invalid(TransactionError::InsufficientFunds { .. })), "{refused}");
    assert_eq!(submitted.effort, Effort { recoveries: 0, has_displaced: false });
    // Anyone can name a rich sender: that costs its signatures, and peers are charged for them.
    let call = native_call(person(9).address, 1, Bytes::new());
    let forged = orderless(person(0).address, 1, START.seconds() + 50, vec![call]);
    let forged = sign_native_on(&chain_of(&running), forged, &[person(1).into()], &[]);
    let submitted = running.admission.submit_counted(forged.encoded());
    let refused = submitted.outcome.unwrap_err();
    assert!(matches!(refused, SubmitError::Invalid(TransactionError::KeyNotSatisfied { .. })), "{refused}");
    assert_eq!(submitted.effort.recoveries, 1);
}

#[tokio::test]
async fn orderless_03_a_clock_refuses_what_expires_too_late_or_has_expired() {
    let running = start(Mode::Manual, nothing());
    running.admission.keep_time(Arc::new(|| TimestampMs((START.seconds() + 50) * 1_000)));
    let outcome = running.admission.submit(transfer_of(&running, 0, 1, PRICE).encoded());
    let expired = |outcome: &Result<_, SubmitError>| {
        matches!(outcome, Err(SubmitError::Invalid(TransactionError::TransactionExpired { .. })))
    };
    assert!(expired(&outcome), "{outcome:?}");
}
