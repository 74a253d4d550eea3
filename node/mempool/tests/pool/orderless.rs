//! Orderless transactions and fee payers in the pool (ORDERLESS-16 … -18).

use alloy_primitives::{Address, TxHash, U256};
use almanac_mempool::{Pool, PoolConfig, PoolError, Readiness, SenderState};
use almanac_primitives::{
    GasPrice, NativeTransaction, RecoveredTransaction, TimestampMs, Wei,
    testing::{CHAIN, eip1559, native::*, person, recovered, sign},
};

const EXPIRATION: u64 = 1_700_000_060;
const GAS: u64 = 23_000;

fn pool() -> Pool {
    Pool::new(PoolConfig::default(), GasPrice(0))
}

fn rich() -> SenderState {
    SenderState { nonce: 0, balance: Wei(U256::MAX), is_delegated: false }
}

fn with_balance(balance: u64) -> SenderState {
    SenderState { balance: Wei(U256::from(balance)), ..rich() }
}

/// A call that pays `price` per gas and moves nothing.
fn unsigned(from: u64, nonce: u64, price: u128) -> NativeTransaction {
    let call = native_call(person(9).address, 0, alloy_primitives::Bytes::new());
    NativeTransaction {
        gas_limit: GAS,
        max_fee_per_gas: price,
        max_priority_fee_per_gas: price,
        ..orderless(person(from).address, nonce, EXPIRATION, vec![call])
    }
}

fn orderless_at(from: u64, nonce: u64, price: u128) -> RecoveredTransaction {
    recovered(sign_native(unsigned(from, nonce, price), &[person(from).into()]))
}

fn paid_by(payer: u64, from: u64, nonce: u64, price: u128) -> RecoveredTransaction {
    let transaction =
        NativeTransaction { fee_payer: Some(person(payer).address), ..unsigned(from, nonce, price) };
    recovered(sign_native_on(&CHAIN, transaction, &[person(from).into()], &[person(payer).into()]))
}

fn numbered(from: u64, nonce: u64, price: u128) -> RecoveredTransaction {
    let mut transaction = eip1559(nonce, alloy_primitives::TxKind::Call(Address::ZERO), 0, vec![], 21_000);
    (transaction.max_fee_per_gas, transaction.max_priority_fee_per_gas) = (price, price);
    recovered(sign(transaction, person(from).secret))
}

fn best(pool: &Pool) -> Vec<TxHash> {
    pool.best().map(RecoveredTransaction::hash).collect()
}

#[test]
fn orderless_16_they_are_never_parked_and_have_a_cap_of_their_own() {
    let config = PoolConfig { sender_count_max: 2, orderless_sender_count_max: 3, ..PoolConfig::default() };
    let mut pool = Pool::new(config, GasPrice(0));
    // Any nonce, in any order, beside sequence numbers with a gap.
    for nonce in [u64::MAX, 0, 7] {
        let inserted = pool.insert(orderless_at(0, nonce, 5), rich()).unwrap();
        assert_eq!(inserted.readiness, Readiness::Ready);
    }
    let full = PoolError::SenderFull { sender: person(0).address, max: 3 };
    assert_eq!(pool.insert(orderless_at(0, 8, 9), rich()), Err(full.clone()));
    assert_eq!(pool.insert(numbered(0, 0, 1), rich()).unwrap().readiness, Readiness::Ready);
    assert_eq!(pool.insert(numbered(0, 2, 1), rich()).unwrap().readiness, Readiness::Parked);
    assert_eq!(pool.insert(orderless_at(0, 8, 9), rich()), Err(full), "the caps are apart");
    assert_eq!((pool.ready_count(), pool.parked_count()), (4, 1));
    assert_eq!(pool.orderless_of(person(0).address).count(), 3);
    assert_eq!(pool.pending_of(person(0).address).count(), 2);
    assert_eq!(pool.next_nonce(person(0).address, 0), 1);
    pool.insert(orderless_at(1, 8, 9), rich()).unwrap();
}

#[test]
fn orderless_16_the_default_cap_is_5000_and_sequence_numbers_keep_100() {
    let config = PoolConfig::default();
    assert_eq!((config.orderless_sender_count_max, config.sender_count_max), (5_000, 100));
}

#[test]
fn orderless_17_a_pending_pair_is_refused_unless_the_price_rises() {
    let mut pool = pool();
    let first = orderless_at(0, 5, 100);
    pool.insert(first.clone(), rich()).unwrap();
    assert_eq!(pool.insert(first.clone(), rich()), Err(PoolError::AlreadyKnown { hash: first.hash() }));
    let refused = pool.insert(orderless_at(0, 5, 109), rich());
    assert!(matches!(refused, Err(PoolError::ReplacementUnderpriced { old, .. }) if old == first.hash()));
    let dearer = orderless_at(0, 5, 110);
    assert_eq!(pool.insert(dearer.clone(), rich()).unwrap().replaced, Some(first.hash()));
    assert_eq!(best(&pool), [dearer.hash()]);
    // The same nonce of another sender, or as a sequence number, is something else.
    pool.insert(orderless_at(1, 5, 100), rich()).unwrap();
    pool.insert(numbered(0, 5, 100), rich()).unwrap();
    assert_eq!(pool.len(), 3);
}

#[test]
fn orderless_17_they_are_offered_by_price_and_wait_for_none() {
    let mut pool = pool();
    let sent: Vec<_> = [(0, 3, 10), (0, 1, 30), (1, 1, 20), (0, 2, 20)]
        .map(|(from, nonce, price)| orderless_at(from, nonce, price))
        .into();
    for transaction in &sent {
        pool.insert(transaction.clone(), rich()).unwrap();
    }
    pool.insert(numbered(0, 0, 5), rich()).unwrap();
    pool.insert(numbered(0, 1, 50), rich()).unwrap();
    let mut pass = pool.best();
    assert_eq!(pass.next().unwrap().hash(), sent[1].hash());
    // One that is left out holds up nothing of its sender's.
    pass.skip_after(&sent[1]);
    let rest: Vec<_> = pass.by_ref().take(3).map(RecoveredTransaction::hash).collect();
    assert_eq!(rest, [sent[2].hash(), sent[3].hash(), sent[0].hash()]);
    // A sequence number that is left out holds up those after it, and nothing else.
    pass.skip_after(&numbered(0, 0, 5));
    assert_eq!(pass.next(), None);
}

/// On both sides of the second.
#[test]
fn orderless_17_expired_ones_leave() {
    let mut pool = pool();
    pool.insert(orderless_at(0, 1, 5), rich()).unwrap();
    let later = NativeTransaction { expiration: EXPIRATION + 1, ..unsigned(0, 2, 5) };
    pool.insert(recovered(sign_native(later, &[person(0).into()])), rich()).unwrap();
    pool.on_block(TimestampMs(EXPIRATION * 1_000 - 1), GasPrice(0), []);
    assert_eq!(pool.len(), 2);
    pool.on_block(TimestampMs(EXPIRATION * 1_000), GasPrice(0), []);
    assert_eq!(pool.len(), 1);
    pool.on_block(TimestampMs((EXPIRATION + 1) * 1_000), GasPrice(0), []);
    assert!(pool.is_empty() && pool.bytes() == 0);
}

/// Regression: what stood behind one that expired waited in any number, beyond what a sender may have waiting.
#[test]
fn what_stands_behind_an_expired_one_waits_within_the_bound() {
    let mut pool = pool();
    let max = PoolConfig::default().parked_sender_count_max as u64;
    let call = native_call(person(9).address, 0, alloy_primitives::Bytes::new());
    let first = NativeTransaction { expiration: EXPIRATION, ..native(person(0).address, 0, vec![call]) };
    pool.insert(recovered(sign_native(first, &[person(0).into()])), rich()).unwrap();
    (1..max + 20).for_each(|nonce| assert!(pool.insert(numbered(0, nonce, 5), rich()).is_ok()));
    pool.on_block(TimestampMs(EXPIRATION * 1_000), GasPrice(0), []);
    assert_eq!((pool.ready_count(), pool.parked_count() as u64), (0, max));
    assert!(
        pool.pending_of(person(0).address).all(|(tx, _)| tx.transaction().nonce() <= max),
        "the last ones left"
    );
}

#[test]
fn orderless_17_a_used_pair_leaves_whatever_its_hash() {
    let mut pool = pool();
    pool.insert(orderless_at(0, 1, 5), rich()).unwrap();
    pool.insert(orderless_at(0, 2, 5), rich()).unwrap();
    pool.use_nonces([(person(0).address, 1), (person(1).address, 2)]);
    assert_eq!(pool.orderless_of(person(0).address).count(), 1);
}

#[test]
fn orderless_18_the_cheapest_leave_a_full_pool_first() {
    let mut pool = Pool::new(PoolConfig { count_max: 3, ..PoolConfig::default() }, GasPrice(0));
    let cheap = orderless_at(0, 1, 10);
    pool.insert(cheap.clone(), rich()).unwrap();
    pool.insert(orderless_at(0, 2, 30), rich()).unwrap();
    pool.insert(numbered(1, 0, 20), rich()).unwrap();
    assert!(matches!(pool.insert(orderless_at(2, 1, 10), rich()), Err(PoolError::PoolFull { .. })));
    let inserted = pool.insert(orderless_at(2, 1, 11), rich()).unwrap();
    assert_eq!(inserted.evicted, [cheap.hash()]);
    // A sender's own cheap one makes room for its dear one.
    let inserted = pool.insert(orderless_at(2, 2, 40), rich()).unwrap();
    assert_eq!(inserted.evicted.len(), 1);
    assert_eq!(pool.len(), 3);
}

/// The sum of what a sender's orderless transactions can cost stays within its balance.
#[test]
fn a_senders_orderless_ones_are_covered_together() {
    let mut pool = pool();
    let cost = GAS * 10;
    let state = with_balance(2 * cost);
    pool.insert(orderless_at(0, 1, 10), state).unwrap();
    let second = orderless_at(0, 2, 10);
    pool.insert(second, state).unwrap();
    let refused = pool.insert(orderless_at(0, 3, 10), state);
    assert!(matches!(refused, Err(PoolError::InsufficientFunds { .. })), "{refused:?}");
    // A replacement counts instead of what it replaces.
    let refused = pool.insert(orderless_at(0, 2, 11), state);
    assert!(matches!(refused, Err(PoolError::InsufficientFunds { .. })), "{refused:?}");
    pool.insert(orderless_at(0, 2, 11), with_balance(2 * cost + GAS)).unwrap();
    // A balance that falls drops the latest first, and parks none.
    pool.on_block(TimestampMs(1), GasPrice(0), [(person(0).address, with_balance(cost))]);
    assert_eq!((pool.ready_count(), pool.parked_count()), (1, 0));
    assert_eq!(best(&pool), [orderless_at(0, 1, 10).hash()]);
    pool.on_block(TimestampMs(2), GasPrice(0), [(person(0).address, with_balance(cost - 1))]);
    assert!(pool.is_empty());
}

#[test]
fn a_fee_payers_promises_are_covered_together() {
    let mut pool = pool();
    let cost = GAS * 10;
    let payer = with_balance(2 * cost);
    let (balance, poor) = (payer.balance, with_balance(0));
    pool.insert_paid(paid_by(5, 0, 1, 10), poor, payer).unwrap();
    pool.insert_paid(paid_by(5, 1, 1, 10), poor, payer).unwrap();
    let refused = pool.insert_paid(paid_by(5, 2, 1, 10), poor, payer);
    let expected = PoolError::InsufficientFunds {
        sender: person(5).address,
        needed: Wei(U256::from(3 * cost)),
        balance,
    };
    assert_eq!(refused, Err(expected));
    pool.on_block(TimestampMs(1), GasPrice(0), [(person(5).address, with_balance(cost))]);
    assert_eq!(pool.len(), 1, "the latest promise is dropped");
    pool.forget_signed([person(5).address]);
    assert!(pool.is_empty());
}

/// One account can void all that it stands for with one transaction of its own, so what is beyond its free places competes
/// with others of that kind, and leaves the places of everybody else alone.
#[test]
fn an_account_that_stands_for_many_has_few_places() {
    let config = PoolConfig { vouched_count_free: 2, wide_count_max: 2, ..PoolConfig::default() };
    let mut pool = Pool::new(config, GasPrice(0));
    for from in 0..4 {
        pool.insert_paid(paid_by(5, from, 1, 10 + u128::from(from)), rich(), rich()).unwrap();
    }
    let vouched: Vec<_> = (0..4).map(|from| paid_by(5, from, 1, 10 + u128::from(from)).hash()).collect();
    assert_eq!(
        vouched.iter().map(|hash| pool.is_vouched(*hash)).collect::<Vec<_>>(),
        [false, false, true, true]
    );
    // An orderless sender that stands for many is of that kind too, and both its kinds count.
    pool.insert(orderless_at(6, 1, 5), rich()).unwrap();
    pool.insert(orderless_at(6, 2, 5), rich()).unwrap();
    let cheap = pool.insert(orderless_at(6, 3, 12), rich());
    assert!(matches!(cheap, Err(PoolError::PoolFull { .. })), "{cheap:?}");
    let insertion = pool.insert(orderless_at(6, 3, 13), rich()).unwrap();
    assert_eq!(insertion.evicted, [vouched[2]], "the cheapest of the kind");
    // A replacement keeps its place, and others have theirs.
    let insertion = pool.insert(orderless_at(6, 1, 6), rich()).unwrap();
    assert!(insertion.evicted.is_empty() && !pool.is_vouched(orderless_at(6, 1, 6).hash()));
    assert!(pool.insert(numbered(7, 0, 1), rich()).unwrap().evicted.is_empty());
}

/// Others can empty an account with a delegation: it stands for four, whatever it was when they came.
#[test]
fn an_account_with_a_delegation_stands_for_four() {
    let mut pool = pool();
    let delegated = SenderState { is_delegated: true, ..rich() };
    for from in 0..4 {
        pool.insert_paid(paid_by(5, from, 1, 10), rich(), delegated).unwrap();
    }
    let refused = pool.insert_paid(paid_by(5, 6, 1, 10), rich(), delegated);
    assert_eq!(refused, Err(PoolError::PayerFull { payer: person(5).address, max: 4 }));
    pool.insert_paid(paid_by(5, 3, 1, 20), rich(), delegated).expect("a replacement takes its own place");
    for nonce in 0..9 {
        pool.insert(orderless_at(8, nonce, 5), rich()).unwrap();
    }
    pool.on_block(TimestampMs(1), GasPrice(0), [(person(8).address, delegated)]);
    assert_eq!(pool.orderless_of(person(8).address).count(), 4, "the latest leave");
}

/// A key that changed voids all that it signed.
#[test]
fn a_changed_key_empties_its_account() {
    let mut pool = pool();
    pool.insert(orderless_at(0, 1, 5), rich()).unwrap();
    pool.insert(numbered(0, 0, 5), rich()).unwrap();
    pool.insert(numbered(0, 1, 5), rich()).unwrap();
    pool.insert(numbered(0, 3, 5), rich()).unwrap();
    pool.insert_paid(paid_by(0, 1, 9, 5), rich(), rich()).unwrap();
    pool.insert(numbered(1, 0, 5), rich()).unwrap();
    pool.forget_signed([person(0).address]);
    assert_eq!(pool.len(), 1);
    assert_eq!(best(&pool), [numbered(1, 0, 5).hash()]);
}

#[test]
fn removal_and_clearing_forget_everything() {
    let mut pool = pool();
    let transaction = orderless_at(0, 1, 5);
    pool.insert(transaction.clone(), with_balance(GAS * 5)).unwrap();
    assert!(pool.is_ready(transaction.hash()));
    assert_eq!(pool.remove(transaction.hash()).unwrap().hash(), transaction.hash());
    pool.insert(transaction.clone(), with_balance(GAS * 5)).unwrap();
    pool.clear();
    pool.insert(transaction, with_balance(GAS * 5)).unwrap();
    assert_eq!(pool.len(), 1);
}
