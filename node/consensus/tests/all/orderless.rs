//! Orderless transactions from submission to a block, and back into the pool.

use crate::support::running::{Running, nothing, start, start_developer};
use alloy_primitives::{Bytes, TxHash, U256};
use almanac_consensus::{Controls, Effort, Mode, SubmitError};
use almanac_exec::TransactionError;
use almanac_mempool::{PoolError, SenderState};
use almanac_primitives::{
    Chain, NativeTransaction, RecoveredTransaction, StateKey, TimestampMs, UserTransaction, Wei,
    testing::{native::*, *},
};
use std::{collections::BTreeSet, sync::Arc};

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

/// The same for a fee payer without the money: the error names the payer.
#[tokio::test]
async fn orderless_12_signatures_of_a_fee_payer_who_cannot_pay_are_not_recovered() {
    let running = start(Mode::Manual, nothing());
    let call = native_call(person(9).address, 1, Bytes::new());
    let paid = orderless(person(0).address, 1, START.seconds() + 50, vec![call]);
    let paid = NativeTransaction { fee_payer: Some(person(99).address), ..paid };
    let paid = sign_native_on(&chain_of(&running), paid, &[person(0).into()], &[person(99).into()]);
    let submitted = running.admission.submit_counted(paid.encoded());
    let refused = submitted.outcome.unwrap_err();
    assert!(
        matches!(refused, SubmitError::Invalid(TransactionError::FeePayerFunds { payer, .. }) if payer == person(99).address),
        "{refused}"
    );
    assert_eq!(submitted.effort, Effort { recoveries: 0, has_displaced: false });
}

/// A rich stranger's account has one key: more signatures, or one that names another key, are refused before any of them
/// is recovered. The same holds for whoever is to pay the fee.
#[tokio::test]
async fn orderless_12_signatures_that_cannot_be_a_strangers_are_not_recovered() {
    let running = start(Mode::Manual, nothing());
    let call = native_call(person(9).address, 1, Bytes::new());
    let many: Vec<Key> = (0..32).map(|n| person(n).into()).collect();
    let of = |sender: &[Key], payer: &[Key]| {
        let fee_payer = (!payer.is_empty()).then(|| person(2).address);
        let transaction = NativeTransaction {
            gas_limit: 300_000,
            fee_payer,
            ..orderless(person(0).address, 1, START.seconds() + 50, vec![call.clone()])
        };
        let signed = sign_native_on(&chain_of(&running), transaction, sender, payer);
        running.admission.submit_counted(signed.encoded())
    };
    let (own, named) = ([person(0).into()], [ed_person(1).into()]);
    let is_superfluous = |error: &SubmitError, named| {
        matches!(error, SubmitError::Invalid(TransactionError::SignatureSuperfluous { account, index: 1 })
            if *account == named)
    };
    for (submitted, account) in [(of(&many, &[]), person(0).address), (of(&own, &many), person(2).address)] {
        assert_eq!(submitted.effort.recoveries, 0);
        let refused = submitted.outcome.unwrap_err();
        assert!(is_superfluous(&refused, account), "{refused}");
    }
    let submitted = of(&named, &[]);
    assert_eq!(submitted.effort.recoveries, 0);
    let refused = submitted.outcome.unwrap_err();
    assert!(matches!(refused, SubmitError::Invalid(TransactionError::KeyNotSatisfied { .. })), "{refused}");
    assert_eq!(of(&own, &[person(2).into()]).effort.recoveries, 2, "these are theirs");
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

/// A chain, all that was ever sent to it, and what it has committed.
struct History {
    running: Running,
    hand: Controls,
    sent: Vec<UserTransaction>,
    committed: BTreeSet<TxHash>,
}

impl History {
    /// Signs a transfer that expires so many seconds after this moment's.
    fn sign(&mut self, from: u64, nonce: u64, now: TimestampMs, ahead: u64) {
        let call = native_call(person(9).address, 1, Bytes::new());
        let transaction = NativeTransaction {
            gas_limit: 23_000,
            max_fee_per_gas: PRICE,
            max_priority_fee_per_gas: PRICE,
            ..orderless(person(from).address, nonce, now.seconds() + ahead, vec![call])
        };
        let signed = sign_native_on(&self.running.chain, transaction, &[person(from).into()], &[]);
        self.sent.push(signed);
    }

    /// Sends everything again, also past the checks of submission, and makes a block.
    async fn block_at(&mut self, time: TimestampMs) {
        self.hand.set_next_timestamp(time).await.unwrap();
        let rich = SenderState { balance: Wei(U256::MAX), ..SenderState::default() };
        // The newest first: a pending pair keeps others with the same price out.
        for transaction in self.sent.iter().rev() {
            let _ = self.running.submit(transaction);
            let forced = RecoveredTransaction::recover(transaction.clone(), &self.running.chain).unwrap();
            let _ = self.running.admission.pool().lock().insert(forced, rich);
        }
        self.hand.mine(None).await.unwrap();
        let (block, _) = self.running.next_block().await;
        assert_eq!(block.header.timestamp, time);
        for transaction in &block.transactions {
            assert!(self.committed.insert(transaction.hash()), "twice, the second time at {time:?}");
        }
    }

    fn remembered(&self) -> usize {
        let state = self.running.listener.state();
        state.keys().filter(|key| matches!(key, StateKey::Nonce(..) | StateKey::NonceLog(..))).count()
    }
}

/// Whatever was committed is sent again at every later second of its window and beyond, a millisecond and a second
/// around each of its ends, by submission and by a pool that has it all the same; after a day's halt, and after the
/// chain went back.
#[tokio::test]
async fn orderless_02_rebroadcasts_are_never_committed_twice() {
    let running = start_developer(Mode::Manual, nothing());
    let hand = running.solo.controls().clone();
    let mut history = History { running, hand, sent: Vec::new(), committed: BTreeSet::new() };
    let base = TimestampMs((START.seconds() + 10) * 1_000);
    let at = |ms: u64| TimestampMs(base.0 + ms);
    for (nonce, ahead) in [1, 2, 30, 59, 60].into_iter().enumerate() {
        history.sign(nonce as u64 % 3, nonce as u64, base, ahead);
    }
    history.block_at(base).await;
    assert_eq!(history.committed.len(), 5);

    let ends = [1, 2, 30, 59, 60].into_iter().flat_map(|end| [end, end + 130]).map(|end| end * 1_000);
    let around = ends.flat_map(|end: u64| [end - 1_000, end - 1, end, end + 1, end + 1_000]);
    let mut moments: BTreeSet<u64> = (1..=65).map(|second| second * 1_000).chain(around).collect();
    moments.remove(&0);
    for (index, ms) in moments.into_iter().enumerate() {
        // New ones now and then; the pairs of the first ones come again when they may.
        let first = index as u64 % 5;
        match (index.is_multiple_of(16), ms > 130_000) {
            (_, true) => history.sign(first % 3, first, at(ms), 60),
            (true, false) => history.sign(first % 3, 100 + index as u64, at(ms), 60),
            (false, false) => {}
        }
        history.block_at(at(ms)).await;
    }
    let before = history.committed.len();
    assert_eq!(before, 5 + 5 + 5, "the first, those in between, and the first pairs once more");

    let snapshot = history.hand.snapshot().await.unwrap();
    let (kept, later) = (history.committed.clone(), at(400_000));
    history.sign(0, 1_000, later, 30);
    for way in 0..2 {
        history.committed = kept.clone();
        history.block_at(later).await;
        assert_eq!(history.committed.len(), before + 1, "once on way {way}");
        history.block_at(TimestampMs(later.0 + 1)).await;
        if way == 0 {
            history.hand.revert(snapshot).await.unwrap();
        }
    }

    let after_halt = later.0 + 24 * 60 * 60 * 1_000;
    for block in 0..8 {
        history.block_at(TimestampMs(after_halt + block)).await;
    }
    assert_eq!(history.committed.len(), before + 1);
    assert_eq!(history.remembered(), 0, "the sweep has caught up");
}
