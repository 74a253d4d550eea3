//! Native transactions that are simulated: they do and cost what they would in a block, and break the same rules.

use crate::{
    keys::rotating,
    support::{
        contracts::{COUNTER, FAILER, LOGGER, REVERTER, deploy},
        native::*,
        *,
    },
};
use alloy_primitives::{Address, Bytes, U256};
use almanac_exec::{
    Call, CallResult, Environment, NativeParts, Refusal, SimulateError, TransactionError, native_transaction,
    simulate, simulate_step,
};
use almanac_primitives::{
    Gas, GasPrice, NativeCall, NativeTransaction, Outcome, StateKey, UserTransaction, Wei,
    addresses::PARAMETERS,
    native::{CALLS_MAX, NativeError},
    params::{ORDERLESS_ENABLED, Parameter, SIGNATURE_GAS},
    state::encode_slot,
    transaction::TransactionDecodeError,
};
use revm::inspector::NoOpInspector;

/// The same transaction as a call to simulate.
fn tried(transaction: &NativeTransaction) -> Call {
    let NativeTransaction { calls, kind, expiration, fee_payer, signatures, fee_payer_signatures, .. } =
        transaction.clone();
    Call {
        from: transaction.sender,
        gas_limit: Gas(transaction.gas_limit),
        nonce: Some(transaction.nonce),
        native: Some(NativeParts {
            calls,
            kind,
            expiration,
            fee_cap: GasPrice(transaction.max_fee_per_gas),
            tip_cap: GasPrice(transaction.max_priority_fee_per_gas),
            fee_payer,
            signatures,
            fee_payer_signatures,
        }),
        ..Call::default()
    }
}

fn unsigned(call: &Call) -> Call {
    let parts = call.native.clone().unwrap();
    let native = NativeParts { signatures: Vec::new(), fee_payer_signatures: Vec::new(), ..parts };
    Call { native: Some(native), ..call.clone() }
}

fn try_it(chain: &TestChain, call: Call) -> Result<CallResult, SimulateError> {
    simulate(&chain.state, &chain.input(), call)
}

/// Tries it as `eth_simulateV1` with validation does.
fn strict(chain: &TestChain, transaction: &NativeTransaction) -> Result<CallResult, SimulateError> {
    let environment = Environment::derive(&chain.input(), &chain.state).unwrap();
    simulate_step(&chain.state, &environment, tried(transaction), true, NoOpInspector)
        .map(|(result, _)| result)
}

fn calls() -> Vec<NativeCall> {
    vec![
        native_call(COUNTER, 0, Bytes::new()),
        native_call(LOGGER, 0, vec![7]),
        native_call(Address::repeat_byte(0x61), 5, Bytes::new()),
    ]
}

/// A chain on which account 3 belongs to any two of three keys of both curves.
fn keyed() -> (TestChain, Vec<Key>) {
    let mut chain = TestChain::new();
    let keys: Vec<Key> = vec![person(20).into(), person(21).into(), ed_person(22).into()];
    let key = threshold(2, &keys.iter().map(Key::encoded).collect::<Vec<_>>());
    assert_eq!(chain.produce(vec![rotating(person(3), 0, &key, 1, &keys[..2])]).refused, []);
    (chain, keys)
}

/// Signs it, includes it, and compares the receipt with what simulating it before told.
fn compare(what: &str, chain: &mut TestChain, signed: &UserTransaction) {
    let call = tried(signed.native().unwrap());
    let simulated = try_it(chain, call.clone()).unwrap();
    assert_eq!(try_it(chain, unsigned(&call)).unwrap(), simulated, "{what}: without its signatures");
    let strictly = strict(chain, signed.native().unwrap()).unwrap();
    assert_eq!(strictly, simulated, "{what}: strictly");
    let same = native_transaction(&chain.state, &call, CHAIN.id).unwrap().unwrap();
    assert_eq!(same.hash(), signed.hash(), "{what}: signed, it is the transaction itself");
    let produced = chain.produce(vec![signed.clone()]);
    assert_eq!(produced.refused, [], "{what}");
    let receipt = produced.receipt(0);
    assert_eq!(
        (&receipt.outcome, receipt.failed_call),
        (&simulated.outcome, simulated.failed_call),
        "{what}"
    );
    assert_eq!((receipt.gas_used, &receipt.logs), (simulated.gas_used, &simulated.logs), "{what}");
}

#[test]
fn orderless_01_simulated_and_included_native_transactions_agree() {
    let (mut chain, keys) = keyed();
    let soon = |chain: &TestChain| chain.input().timestamp.seconds() + 30;
    let alone = |call: NativeCall| vec![call];
    let batch = sign_native(native(person(0).address, 0, calls()), &[person(0).into()]);
    compare("a batch", &mut chain, &batch);
    let single = native(person(0).address, 1, alone(native_call(COUNTER, 0, Bytes::new())));
    compare("a call", &mut chain, &sign_native(single, &[person(0).into()]));
    let init = NativeCall { to: None, value: U256::ZERO, input: deploy(&[0x60, 1]) };
    let creation = native(person(0).address, 2, alone(init.clone()));
    compare("a creation", &mut chain, &sign_native(creation, &[person(0).into()]));
    let creation = orderless(person(0).address, 5, soon(&chain), alone(init));
    compare("an orderless creation", &mut chain, &sign_native(creation, &[person(0).into()]));
    let failing = vec![calls()[0].clone(), native_call(REVERTER, 0, vec![1, 2]), calls()[1].clone()];
    let failing = orderless(person(0).address, 6, soon(&chain), failing);
    compare("a failing batch", &mut chain, &sign_native(failing, &[person(0).into()]));
    let paid = NativeTransaction {
        fee_payer: Some(person(1).address),
        ..orderless(person(0).address, 7, soon(&chain), calls())
    };
    let paid = sign_native_on(&CHAIN, paid, &[person(0).into()], &[person(1).into()]);
    compare("a fee payer", &mut chain, &paid);
    let of_tree = sign_native(native(person(3).address, 1, calls()), &keys[1..]);
    compare("a key tree", &mut chain, &of_tree);
    let paid_by_tree = NativeTransaction {
        fee_payer: Some(person(3).address),
        ..orderless(person(0).address, 8, soon(&chain), calls())
    };
    let paid_by_tree = sign_native_on(&CHAIN, paid_by_tree, &[person(0).into()], &keys[..2]);
    compare("a key tree that pays", &mut chain, &paid_by_tree);
    chain.replay();
}

#[test]
fn the_failed_call_of_a_batch_is_named_and_nothing_of_it_stays() {
    let chain = TestChain::new();
    for (index, target) in [(0, REVERTER), (2, FAILER), (3, REVERTER)] {
        let mut calls = calls();
        calls.insert(index, native_call(target, 0, vec![9]));
        let result = try_it(&chain, tried(&native(person(0).address, 0, calls))).unwrap();
        assert_eq!(result.failed_call, Some(index as u8));
        assert!(!result.outcome.is_success() && result.logs.is_empty());
    }
    let fine = try_it(&chain, tried(&native(person(0).address, 0, calls()))).unwrap();
    assert_eq!((fine.failed_call, fine.outcome), (None, Outcome::Success));
}

/// Whichever of an account's keys sign in the end, the gas that was found without signatures suffices.
#[test]
fn without_signatures_the_most_that_a_key_takes_are_paid() {
    let mut chain = TestChain::new();
    let list: Vec<Bytes> = (20..25).map(|n| Key::from(person(n)).encoded()).collect();
    let key = threshold(1, &[Key::from(ed_person(1)).encoded(), threshold(5, &list)]);
    assert_eq!(chain.produce(vec![rotating(person(3), 0, &key, 1, &[ed_person(1).into()])]).refused, []);
    let transaction = native(person(3).address, 1, calls());
    let gas = |call: Call| try_it(&chain, call).unwrap().gas_used.0;
    let by_one = tried(sign_native(transaction.clone(), &[ed_person(1).into()]).native().unwrap());
    let five: Vec<Key> = (20..25).map(|n| person(n).into()).collect();
    let by_five = tried(sign_native(transaction.clone(), &five).native().unwrap());
    assert_eq!(gas(by_five.clone()), gas(by_one.clone()) + 4 * SIGNATURE_GAS);
    assert_eq!(gas(tried(&transaction)), gas(by_five));
    assert_eq!(gas(unsigned(&by_one)), gas(tried(&transaction)));
}

#[test]
fn bounds_of_native_transactions_hold_in_simulations_on_both_sides() {
    let chain = TestChain::new();
    let sender = person(0).address;
    let many = |count: usize| vec![native_call(person(9).address, 0, Bytes::new()); count];
    let with = |calls| native(sender, 0, calls);
    let refused = |transaction: &NativeTransaction| match try_it(&chain, tried(transaction)) {
        Err(SimulateError::Refused { reason: Refusal::Form(TransactionDecodeError::Native(error)) }) => error,
        other => panic!("{other:?}"),
    };
    assert!(try_it(&chain, tried(&with(many(CALLS_MAX)))).is_ok());
    for given in [0, CALLS_MAX + 1] {
        assert_eq!(refused(&with(many(given))), NativeError::TooManyCalls { given });
    }
    let creation = NativeCall { to: None, value: U256::ZERO, input: deploy(&[]) };
    assert_eq!(
        refused(&with(vec![calls()[0].clone(), creation])),
        NativeError::CreationNotAlone { index: 1 }
    );
    let all = NativeCall { value: U256::MAX, ..calls()[2].clone() };
    assert_eq!(refused(&with(vec![all, calls()[2].clone()])), NativeError::ValueOverflow);
    let own = NativeTransaction { fee_payer: Some(sender), ..with(calls()) };
    assert_eq!(refused(&own), NativeError::FeePayerIsSender { sender });
    // The least gas, and one less.
    let least = 21_000 + 2 * 2_600 + 9_000;
    let bare = |gas_limit| {
        let targets = [0, 0, 1].map(|value| native_call(person(1).address, value, Bytes::new()));
        NativeTransaction { gas_limit, ..with(targets.to_vec()) }
    };
    assert!(try_it(&chain, tried(&bare(least))).unwrap().outcome.is_success());
    let low = TransactionError::IntrinsicGasTooLow { given: least - 1, needed: least };
    assert_eq!(try_it(&chain, tried(&bare(least - 1))).unwrap_err(), low.into());
}

#[test]
fn a_strict_native_transaction_obeys_the_rules_of_a_block() {
    let mut chain = TestChain::new();
    let (sender, payer) = (person(0).address, person(1).address);
    let (now, second) = (chain.input().timestamp, chain.input().timestamp.seconds());
    let good = orderless(sender, 5, second + 60, calls());
    assert!(strict(&chain, &good).unwrap().outcome.is_success());
    let with = |expiration| NativeTransaction { expiration, ..good.clone() };
    let late = TransactionError::TransactionExpired { given: second, now };
    assert_eq!(strict(&chain, &with(second)).unwrap_err(), late.into());
    let given = second + 62;
    let far = TransactionError::ExpirationTooFar { given, now, max_ms: 60_000 };
    assert_eq!(strict(&chain, &with(given)).unwrap_err(), far.into());
    let early = TransactionError::NonceTooHigh { given: 1, account: 0 };
    assert_eq!(strict(&chain, &native(sender, 1, calls())).unwrap_err(), early.into());
    // Money: of the sender, of the payer. Without a price, nobody is asked for any.
    let poor = Address::repeat_byte(0x77);
    let paid = |payer| NativeTransaction { fee_payer: Some(payer), ..good.clone() };
    assert!(strict(&chain, &paid(payer)).unwrap().outcome.is_success());
    for strictness in [true, false] {
        let error = match strictness {
            true => strict(&chain, &paid(poor)).unwrap_err(),
            false => try_it(&chain, tried(&paid(poor))).unwrap_err(),
        };
        let needed = Wei(U256::from(good.max_fee_per_gas) * U256::from(good.gas_limit));
        let balance = Wei::ZERO;
        assert_eq!(error, TransactionError::FeePayerFunds { payer: poor, needed, balance }.into());
    }
    let free = NativeTransaction { max_fee_per_gas: 0, max_priority_fee_per_gas: 0, ..paid(poor) };
    assert!(try_it(&chain, tried(&free)).unwrap().outcome.is_success());
    let of_poor = NativeTransaction { sender: poor, fee_payer: None, ..free };
    assert!(matches!(
        try_it(&chain, tried(&of_poor)).unwrap_err(),
        SimulateError::Refused { reason: Refusal::Rule(TransactionError::InsufficientFunds { sender, .. }) }
            if sender == poor
    ));
    // A pair is used once, also by what was only simulated before in the same series.
    let environment = Environment::derive(&chain.input(), &chain.state).unwrap();
    let (_, diff) = simulate_step(&chain.state, &environment, tried(&good), true, NoOpInspector).unwrap();
    let mut after = chain.state.clone();
    after.apply(&diff);
    let again = simulate_step(&after, &environment, tried(&good), true, NoOpInspector);
    let used = TransactionError::NonceAlreadyUsed { nonce: 5, expiration: second + 60 };
    assert_eq!(again.unwrap_err(), used.into());
    assert!(simulate(&after, &chain.input(), tried(&good)).is_ok(), "who only asks may ask again");
    // Switched off, they are refused.
    let off = StateKey::Slot(PARAMETERS, U256::from(ORDERLESS_ENABLED.slot));
    chain.state.0.insert(off, encode_slot(Parameter::slot_value(0)).unwrap());
    let now_second = chain.input().timestamp.seconds();
    let off = orderless(sender, 9, now_second + 30, calls());
    assert_eq!(strict(&chain, &off).unwrap_err(), TransactionError::OrderlessDisabled.into());
    assert!(try_it(&chain, tried(&off)).is_ok());
}
