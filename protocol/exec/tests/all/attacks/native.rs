//! Native transactions as bombs: the widest and deepest keys, the most signatures, the largest batches with the least gas.

use crate::attacks::{
    NOBODY,
    entries::{Counted, recovery_time},
    price::{Work, transfers},
    wide_chain,
};
use crate::{
    keys::rotating,
    support::{contracts::COUNTER, native::*, *},
};
use alloy_primitives::Bytes;
use almanac_exec::{BlockBody, Candidates, Rules, TransactionError, execute, recover};
use almanac_primitives::{
    NativeCall, NativeTransaction, Outcome, RecoveredTransaction, StateKey, UserTransaction,
    keys::{KEY_BYTES_MAX, KEY_LEAVES_MAX},
    native::{CALLS_MAX, NativeError},
    params::{KEY_LEAF_GAS, PARTY_GAS, SIGNATURE_GAS, TRANSACTION_BYTES_MAX},
    transaction::TransactionDecodeError,
};
use std::cell::RefCell;

/// Keys of the widest tree.
fn leaves() -> Vec<Key> {
    (0..KEY_LEAVES_MAX as u64).map(|n| ed_person(1_000 + n).into()).collect()
}

/// The largest key that there is: every leaf under thresholds of its own, as deep as they may be.
fn deepest(needed: u8) -> Bytes {
    let single = |child: Bytes| threshold(1, &[child]);
    let children: Vec<_> = leaves().iter().map(|leaf| single(single(leaf.encoded()))).collect();
    let key = threshold(needed, &children);
    // The formula has a threshold of its own for each leaf at the root too, which there is once.
    assert!(key.len() <= KEY_BYTES_MAX && key.len() > KEY_BYTES_MAX - 3 * KEY_LEAVES_MAX);
    key
}

/// A chain on which this person's key is such a tree, of which so many leaves must sign.
fn with_tree(mut chain: TestChain, owner: Person, needed: u8) -> TestChain {
    let signers = &leaves()[..usize::from(needed)];
    let produced = chain.produce(vec![rotating(owner, 0, &deepest(needed), 1, signers)]);
    assert_eq!((produced.refused.len(), &produced.receipt(0).outcome), (0, &Outcome::Success));
    chain
}

fn of_tree(owner: Person, nonce: u64, gas_limit: u64, needed: u8) -> UserTransaction {
    let transaction = native(owner.address, nonce, vec![native_call(NOBODY, 0, Bytes::new())]);
    sign_native(NativeTransaction { gas_limit, ..transaction }, &leaves()[..usize::from(needed)])
}

/// What a transaction of such a tree pays before its call.
fn tree_gas(needed: u8) -> u64 {
    21_000 + (u64::from(needed) - 1) * SIGNATURE_GAS + PARTY_GAS + KEY_LEAVES_MAX as u64 * KEY_LEAF_GAS
}

/// The largest batch that fits a transaction, with the gas that it must have at least.
fn largest_batch(owner: Person, nonce: u64, count: usize, byte: u8) -> NativeTransaction {
    let with = |length: usize| {
        let calls = vec![native_call(COUNTER, 0, vec![byte; length]); count];
        NativeTransaction { gas_limit: 30_000_000, ..native(owner.address, nonce, calls) }
    };
    let (mut fits, mut too_long) = (0, TRANSACTION_BYTES_MAX);
    while too_long - fits > 1 {
        let middle = fits + (too_long - fits) / 2;
        let signed = sign_all(&[owner.into()], with(0).signing_hash(&CHAIN));
        let tried = UserTransaction::native_signed(NativeTransaction { signatures: signed, ..with(middle) });
        *(if tried.is_ok() { &mut fits } else { &mut too_long }) = middle;
    }
    let gas_limit = least_gas(count, fits, byte);
    NativeTransaction { gas_limit, ..with(fits) }
}

/// Intrinsic gas of a batch, or EIP-7623's floor: a byte that is not zero is four tokens.
fn least_gas(count: usize, length: usize, byte: u8) -> u64 {
    let tokens = (count * length) as u64 * if byte == 0 { 1 } else { 4 };
    21_000 + (count as u64 - 1) * PARTY_GAS + tokens * 10
}

/// How much slower than transfers of Ethereum's, which are mostly a signature too, native ones may be for their gas.
const SLOWER_MAX: f64 = 2.0;

/// Signatures of both curves, the largest keys and the largest batches, with everything that a block from the network
/// costs.
///
/// Slow, and only worth something with optimised code: `make bench-prices`.
#[test]
#[ignore = "measures time; make bench-prices"]
fn attack_27_native_transactions_are_worth_their_gas() {
    let plain = transfers().measure();
    let recovery = recovery_time() / plain;
    println!("ecrecover: {recovery:.2} x plain transfers");
    let measured: Vec<_> = native_work().iter().map(|work| (work.name, work.measure() / plain)).collect();
    for (name, ratio) in &measured {
        println!("{name}: {ratio:.2} x plain transfers");
    }
    // What is nothing but signatures is no slower for its gas than Ethereum's own check of one.
    let limit = |name| if name == ALL_SIGN { recovery } else { SLOWER_MAX };
    let slow: Vec<_> = measured.iter().filter(|(name, ratio)| *ratio > limit(*name)).collect();
    assert!(slow.is_empty(), "too slow for their gas against plain transfers: {slow:?}");
}

const ALL_SIGN: &str = "32 of 32 leaves";

fn native_work() -> Vec<Work> {
    let owner = person(5);
    let sender = ed_person(7);
    let funded = || {
        let mut chain = wide_chain();
        chain.produce(vec![transfer(owner, 0, sender.address(), 1_000_000_000_000_000_000)]);
        chain
    };
    let numbered = |count: u64, sign: &dyn Fn(u64) -> UserTransaction| -> Vec<RecoveredTransaction> {
        (0..count).map(|nonce| recovered(sign(nonce))).collect()
    };
    let call = || vec![native_call(NOBODY, 0, Bytes::new())];
    let ed25519 = numbered(700, &|nonce| {
        let transaction = native(sender.address(), nonce, call());
        sign_native(NativeTransaction { gas_limit: 21_000, ..transaction }, &[sender.into()])
    });
    let seconds = funded().next_seconds();
    let expiration = seconds + 30;
    let orderless = numbered(600, &|nonce| {
        let transaction = orderless(sender.address(), nonce, expiration, call());
        sign_native(NativeTransaction { gas_limit: 23_000, ..transaction }, &[sender.into()])
    });
    let mut works = vec![
        Work::new("transfers signed by Ed25519", funded(), seconds, ed25519),
        Work::new("orderless transfers", funded(), seconds, orderless),
    ];
    for (name, needed, count) in [("one of 32 leaves, four deep", 1, 500), (ALL_SIGN, 32, 100)] {
        let chain = with_tree(wide_chain(), owner, needed);
        let signed = |nonce| of_tree(owner, nonce + 1, tree_gas(needed), needed);
        let seconds = chain.next_seconds();
        works.push(Work::new(name, chain, seconds, numbered(count, &signed)));
    }
    for (name, byte) in [("64 calls, 128 KiB, the least gas", 7), ("64 calls, 128 KiB of zeros", 0)] {
        let chain = wide_chain();
        let batch = |nonce| sign_native(largest_batch(owner, nonce, CALLS_MAX, byte), &[owner.into()]);
        let seconds = chain.next_seconds();
        works.push(Work::new(name, chain, seconds, numbered(5, &batch)));
    }
    works
}

/// Attack 37: nothing of the tree is read for gas that does not pay for it, and what is proven is looked for once.
#[test]
fn attack_37_a_key_tree_is_paid_for_before_it_is_read() {
    let owner = person(0);
    let chain = with_tree(TestChain::new(), owner, 32);
    let needed = tree_gas(32);
    for (gas_limit, is_read) in [(needed - 1, false), (needed, true)] {
        let counted = Counted { state: &chain.state, read: RefCell::default() };
        let mut source = Candidates::new(vec![recovered(of_tree(owner, 1, gas_limit, 32))]);
        let output = execute(&counted, &*chain.agenda, &chain.input(), &mut source).unwrap();
        let low = TransactionError::IntrinsicGasTooLow { given: gas_limit, needed };
        let refusals: Vec<_> = source.refusals().iter().map(|(_, error)| error.clone()).collect();
        assert_eq!(refusals, if is_read { vec![] } else { vec![low] });
        assert_eq!(output.gas_used.0, if is_read { needed } else { 0 });
        let trees =
            counted.read.into_inner().into_iter().filter(|key| matches!(key, StateKey::AccountKey(_)));
        assert_eq!(trees.count(), usize::from(is_read), "{gas_limit} gas");
    }
    // A verifier stops there, too.
    let body = vec![recovered(of_tree(owner, 1, needed - 1, 32))];
    assert!(execute(&chain.state, &*chain.agenda, &chain.input(), &mut BlockBody::new(body)).is_err());
}

/// Attack 37: signatures beyond a key's most leaves are refused before one of them is recovered.
#[test]
fn attack_37_too_many_signatures_are_no_transaction() {
    let owner = person(0);
    let transaction = native(owner.address, 0, vec![native_call(NOBODY, 0, Bytes::new())]);
    let with = |count: usize| {
        let signatures = vec![Bytes::from(vec![0; 65]); count];
        UserTransaction::native_signed(NativeTransaction { signatures, ..transaction.clone() })
    };
    assert!(with(KEY_LEAVES_MAX).is_ok(), "its form says nothing about who signed");
    for given in [0, KEY_LEAVES_MAX + 1] {
        let error = with(given).unwrap_err();
        let TransactionDecodeError::Native(NativeError::SignatureCount { given: told, max, .. }) = error
        else {
            panic!("{error}")
        };
        assert_eq!((told, max), (given, KEY_LEAVES_MAX));
    }
}

/// The largest batches run with the least gas as far as that goes, and with less not at all.
#[test]
fn orderless_01_the_largest_batch_with_the_least_gas() {
    for (byte, count) in [(7, CALLS_MAX), (0, CALLS_MAX), (7, 2)] {
        let mut chain = TestChain::new();
        let owner = person(0);
        let batch = largest_batch(owner, 0, count, byte);
        let least = batch.gas_limit;
        let short = NativeTransaction { gas_limit: least - 1, ..batch.clone() };
        let low = TransactionError::IntrinsicGasTooLow { given: least - 1, needed: least };
        let short = sign_native(short, &[owner.into()]);
        // Refused before one of its signatures is recovered.
        let rules = Rules::read(CHAIN, &chain.state).unwrap();
        assert_eq!(recover(short, &rules), Err(low), "{count} calls of {byte}");
        let signed = sign_native(batch, &[owner.into()]);
        assert!(signed.encoded().len() > TRANSACTION_BYTES_MAX - 2 * count, "{}", signed.encoded().len());
        let produced = chain.produce(vec![signed]);
        let receipt = produced.receipt(0);
        assert_eq!(receipt.gas_used.0, least, "{count} calls of {byte}");
        // The floor of so much calldata is more than these calls take.
        assert!(receipt.outcome.is_success(), "{:?}", receipt.outcome);
        chain.replay();
    }
    // Without calldata, the least gas leaves none for the calls.
    let (mut chain, owner) = (TestChain::new(), person(0));
    let calls = vec![native_call(COUNTER, 0, Bytes::new()); CALLS_MAX];
    let gas_limit = least_gas(CALLS_MAX, 0, 0);
    let bare = NativeTransaction { gas_limit, ..native(owner.address, 0, calls) };
    let produced = chain.produce(vec![sign_native(bare, &[owner.into()])]);
    assert_eq!((produced.receipt(0).failed_call, produced.receipt(0).gas_used.0), (Some(0), gas_limit));
}

/// One call more, or a byte more, is no transaction.
#[test]
fn orderless_01_batches_end_at_their_bounds() {
    let owner = person(0);
    let many = |count| {
        let calls = vec![native_call(NOBODY, 0, Bytes::new()); count];
        let transaction = native(owner.address, 0, calls);
        let signatures = sign_all(&[owner.into()], transaction.signing_hash(&CHAIN));
        UserTransaction::native_signed(NativeTransaction { signatures, ..transaction })
    };
    assert!(many(CALLS_MAX).is_ok());
    let too_many = NativeError::TooManyCalls { given: CALLS_MAX + 1 };
    assert_eq!(many(CALLS_MAX + 1), Err(too_many.into()));
    let mut batch = largest_batch(owner, 0, CALLS_MAX, 7);
    let last = batch.calls.last().unwrap().input.len();
    batch.calls[0] = NativeCall { input: vec![7; last + 2 * CALLS_MAX].into(), ..batch.calls[0].clone() };
    let signatures = sign_all(&[owner.into()], batch.signing_hash(&CHAIN));
    let long = UserTransaction::native_signed(NativeTransaction { signatures, ..batch }).unwrap_err();
    assert!(matches!(long, TransactionDecodeError::TooLarge { max: TRANSACTION_BYTES_MAX, .. }), "{long}");
}
