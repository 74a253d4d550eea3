//! Keys of accounts: who may sign for whom, rotation and its effects (ORDERLESS-12 … -15, HEDERA-01, -02).

use crate::support::{
    contracts::{COUNTER, DELEGATOR, ECHO, FORWARDER, STATIC_CALLER},
    native::*,
    *,
};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use alloy_sol_types::{SolCall, SolError, SolEvent, sol};
use almanac_exec::{TransactionError, recover};
use almanac_primitives::{
    NativeTransaction, Outcome, StateKey, UserTransaction,
    addresses::ACCOUNTS,
    keys::{KEY_BYTES_MAX, Leaf, rotation_digest},
    params::SIGNATURE_GAS,
};

sol!("../../contracts/IAccounts.sol");
use IAccounts::{
    AccountCreated, AccountTaken, KeyRefused, KeyRotated, NotTopLevel, ProofMissing, addressOfKeyCall,
    createAccountCall, isSatisfiedCall, keyOfCall, rotationDigestCall,
};

fn call_of(sender: Address, nonce: u64, target: Address) -> NativeTransaction {
    let transaction = native(sender, nonce, vec![native_call(target, 0, Bytes::new())]);
    NativeTransaction { gas_limit: 200_000, ..transaction }
}

/// Calldata that rotates the key of `account` for the n-th time, with proofs of `keys`.
fn rotation(account: Address, key: &Bytes, number: u64, keys: &[Key]) -> Bytes {
    rotation_on(&CHAIN, account, key, number, keys)
}

/// An ordinary transaction of an account with its own key that rotates to `key`.
pub(crate) fn rotating(
    person: Person,
    nonce: u64,
    key: &Bytes,
    number: u64,
    keys: &[Key],
) -> UserTransaction {
    call(person, nonce, ACCOUNTS, rotation(person.address, key, number, keys), 1_000_000)
}

fn key_of(chain: &TestChain, account: Address) -> (Bytes, u64) {
    let result = chain.call(person(7).address, ACCOUNTS, keyOfCall { account }.abi_encode());
    let found = keyOfCall::abi_decode_returns(&result.output).unwrap();
    (found.key, found.rotation)
}

fn refusals(chain: &mut TestChain, transactions: Vec<UserTransaction>) -> Vec<TransactionError> {
    chain.produce(transactions).refused.into_iter().map(|(_, error)| error).collect()
}

#[test]
fn hedera_02_an_account_without_a_record_is_its_own_keys() {
    let mut chain = TestChain::new();
    let account = person(0).address;
    let with = |keys: &[Key]| sign_native(call_of(account, 0, COUNTER), keys);
    let missing = TransactionError::KeyNotSatisfied { account };
    assert_eq!(refusals(&mut chain, vec![with(&[person(1).into()])]), std::slice::from_ref(&missing));
    assert_eq!(refusals(&mut chain, vec![with(&[ed_person(1).into()])]), [missing]);
    // A second signature changes the hash and nothing else: anyone could add or drop it.
    let stranger = [person(0).into(), ed_person(1).into()];
    let superfluous = TransactionError::SignatureSuperfluous { account, index: 1 };
    assert_eq!(refusals(&mut chain, vec![with(&stranger)]), [superfluous]);
    assert_eq!(refusals(&mut chain, vec![with(&[person(0).into()])]), []);
    assert_eq!(key_of(&chain, account), (Key::from(person(0)).encoded(), 0));
}

#[test]
fn orderless_12_stateless_accounts_of_both_curves_send() {
    let mut chain = TestChain::new();
    let sender = ed_person(0);
    chain.produce(vec![transfer(person(0), 0, sender.address(), 1_000_000_000_000_000_000)]);
    let asked = addressOfKeyCall { ed25519: sender.key };
    let answer = chain.call(person(7).address, ACCOUNTS, asked.abi_encode());
    assert_eq!(addressOfKeyCall::abi_decode_returns(&answer.output).unwrap(), sender.address());
    let expiration = chain.input().timestamp.seconds() + 20;
    let calls = || vec![native_call(person(9).address, 3, Bytes::new())];
    let orderless = sign_native(orderless(sender.address(), 4, expiration, calls()), &[sender.into()]);
    assert_eq!(refusals(&mut chain, vec![orderless]), []);
    assert_eq!(chain.nonce(sender.address()), 0);
    // A new secp256k1 address too.
    let fresh = person(77);
    chain.produce(vec![transfer(person(0), 1, fresh.address, 1_000_000_000_000_000_000)]);
    let expiration = chain.input().timestamp.seconds() + 20;
    assert_eq!(
        refusals(&mut chain, vec![orderless_transfer(fresh, 1, expiration, person(9).address, 1)]),
        []
    );
    chain.replay();
}

#[test]
fn orderless_13_sequence_number_zero_makes_the_record_and_a_higher_one_is_discarded() {
    let mut chain = TestChain::new();
    let sender = ed_person(0);
    chain.produce(vec![transfer(person(0), 0, sender.address(), 1_000_000_000_000_000_000)]);
    let with = |nonce| sign_native(call_of(sender.address(), nonce, COUNTER), &[sender.into()]);
    assert_eq!(
        refusals(&mut chain, vec![with(1)]),
        [TransactionError::NonceTooHigh { given: 1, account: 0 }]
    );
    assert_eq!(refusals(&mut chain, vec![with(0), with(1)]), []);
    assert_eq!(chain.nonce(sender.address()), 2);
    assert_eq!(refusals(&mut chain, vec![with(1)]), [TransactionError::NonceTooLow { given: 1, account: 2 }]);
}

#[test]
fn orderless_15_an_account_with_a_record_uses_both_kinds() {
    let mut chain = TestChain::new();
    let expiration = chain.input().timestamp.seconds() + 20;
    let body = vec![
        transfer(person(0), 0, person(9).address, 1),
        orderless_transfer(person(0), 9, expiration, person(9).address, 1),
        sign_native(call_of(person(0).address, 1, COUNTER), &[person(0).into()]),
        orderless_transfer(person(0), 8, expiration, person(9).address, 1),
    ];
    assert_eq!(refusals(&mut chain, body), []);
    assert_eq!(chain.nonce(person(0).address), 2);
}

/// Single, list and threshold keys, each signing and each rotated to by the one before.
#[test]
fn orderless_14_rotation_to_single_list_and_threshold() {
    let mut chain = TestChain::new();
    let account = person(0).address;
    let (a, b, c): (Key, Key, Key) = (person(20).into(), ed_person(21).into(), person(22).into());
    let (d, e): (Key, Key) = (person(23).into(), ed_person(24).into());
    let two_of_three = threshold(2, &[b.encoded(), d.encoded(), e.encoded()]);
    let nested = threshold(1, &[threshold(2, &[a.encoded(), b.encoded()]), c.encoded()]);
    let steps: [(Bytes, Vec<Key>); 4] = [
        (b.encoded(), vec![b]),
        (threshold(2, &[a.encoded(), c.encoded()]), vec![a, c]),
        (two_of_three, vec![d, e]),
        (nested, vec![c]),
    ];
    let mut signers: Vec<Key> = vec![person(0).into()];
    for (number, (key, proofs)) in (1u64..).zip(steps) {
        let nonce = chain.nonce(account);
        let input = rotation(account, &key, number, &proofs);
        let transaction = native(account, nonce, vec![native_call(ACCOUNTS, 0, input)]);
        let produced = chain.produce(vec![sign_native(transaction, &signers)]);
        assert_eq!(produced.refused, []);
        let receipt = produced.receipt(0);
        assert!(receipt.outcome.is_success(), "{:?}", receipt.outcome);
        // Before it, the scheduler says that it has cancelled what the old key scheduled.
        let event = KeyRotated::decode_log(receipt.logs.last().unwrap()).unwrap();
        assert_eq!((event.account, event.rotation, &event.key), (account, number, &key));
        assert_eq!(key_of(&chain, account), (key.clone(), number));
        assert!(chain.state.account(account).is_keyed);
        assert_eq!(chain.state.0[&StateKey::AccountKey(account)], key);
        let old = std::mem::replace(&mut signers, proofs);
        let nonce = chain.nonce(account);
        let refused = refusals(&mut chain, vec![sign_native(call_of(account, nonce, COUNTER), &old)]);
        assert_eq!(refused, [TransactionError::KeyNotSatisfied { account }], "the old key is out at once");
        assert_eq!(refusals(&mut chain, vec![sign_native(call_of(account, nonce, COUNTER), &signers)]), []);
    }
    // Back to the first key: the record goes, the counter stays.
    let own = Key::from(person(0));
    let input = rotation(account, &own.encoded(), 5, &[own]);
    let transaction = native(account, chain.nonce(account), vec![native_call(ACCOUNTS, 0, input)]);
    assert_eq!(refusals(&mut chain, vec![sign_native(transaction, &signers)]), []);
    assert_eq!(key_of(&chain, account), (own.encoded(), 5));
    assert!(!chain.state.account(account).is_keyed);
    assert!(!chain.state.0.contains_key(&StateKey::AccountKey(account)));
    let nonce = chain.nonce(account);
    assert_eq!(refusals(&mut chain, vec![transfer(person(0), nonce, person(9).address, 1)]), []);
    // A proof for an earlier rotation serves for no later one.
    let stale =
        rotating(person(0), nonce + 1, &Key::from(ed_person(21)).encoded(), 1, &[ed_person(21).into()]);
    let produced = chain.produce(vec![stale]);
    assert_eq!(produced.receipt(0).outcome, Outcome::reverted(&ProofMissing {}.abi_encode().into()));
    chain.replay();
}

/// Ethereum transactions, EIP-7702 authorisations, the delegation and ecrecover: all of them end with the old key.
#[test]
fn orderless_14_the_old_key_is_worth_nothing() {
    let mut chain = TestChain::new();
    let (account, new): (Person, Key) = (person(0), ed_person(5).into());
    let recovering = |digest: B256| {
        let signature = Key::from(account).sign(digest);
        let v = B256::with_last_byte(27 + signature[64]);
        [digest.as_slice(), v.as_slice(), &signature[..64]].concat()
    };
    let ecrecover = |chain: &TestChain| {
        let input = recovering(keccak256(b"a permit"));
        chain.call(person(7).address, Address::with_last_byte(1), input).output
    };
    assert_eq!(Address::from_word(B256::from_slice(&ecrecover(&chain))), account.address);
    // A delegation, then the rotation and everything that the old key tries in the same block.
    let delegation =
        sign(eip7702(0, COUNTER, vec![authorize(account, 0, COUNTER)], 200_000), person(1).secret);
    chain.produce(vec![delegation]);
    assert_ne!(chain.state.account(account.address).code_hash, KECCAK256_EMPTY);
    let body = vec![
        rotating(account, 1, &new.encoded(), 1, &[new]),
        transfer(account, 2, person(9).address, 1),
        sign(eip7702(1, COUNTER, vec![authorize(account, 2, COUNTER)], 200_000), person(1).secret),
    ];
    let produced = chain.produce(body);
    let rotated = TransactionError::KeyRotated { sender: account.address };
    assert_eq!(produced.refused.iter().map(|(_, error)| error.clone()).collect::<Vec<_>>(), [rotated]);
    assert!(produced.receipt(0).outcome.is_success());
    let after = chain.state.account(account.address);
    assert_eq!(after.code_hash, KECCAK256_EMPTY, "the delegation is gone, and the new one was not taken");
    assert_eq!(after.nonce, 2);
    assert_eq!(ecrecover(&chain), Bytes::new(), "a permit by the old key moves nothing");
    // Other accounts are recovered as ever.
    let digest = keccak256(b"another");
    let signature = Key::from(person(3)).sign(digest);
    let v = B256::with_last_byte(27 + signature[64]);
    let input = [digest.as_slice(), v.as_slice(), &signature[..64]].concat();
    let answer = chain.call(person(7).address, Address::with_last_byte(1), input).output;
    assert_eq!(Address::from_word(B256::from_slice(&answer)), person(3).address);
    chain.replay();
}

/// Within the transaction that rotates, what comes after the rotation sees it; what fails takes it back.
#[test]
fn orderless_14_rotation_in_a_batch_counts_for_its_later_calls_and_is_undone_with_it() {
    let mut chain = TestChain::new();
    let (account, new): (Person, Key) = (person(0), person(30).into());
    let digest = keccak256(b"a permit");
    let signature = Key::from(account).sign(digest);
    let v = B256::with_last_byte(27 + signature[64]);
    let input = [digest.as_slice(), v.as_slice(), &signature[..64]].concat();
    let ask = || native_call(ECHO, 0, contracts::to(Address::with_last_byte(1), &input));
    let rotate = || native_call(ACCOUNTS, 0, rotation(account.address, &new.encoded(), 1, &[new]));
    let failing = vec![rotate(), native_call(contracts::REVERTER, 0, Bytes::new())];
    let produced = chain.produce(vec![sign_native(native(account.address, 0, failing), &[account.into()])]);
    assert_eq!(produced.receipt(0).failed_call, Some(1));
    assert_eq!(key_of(&chain, account.address).1, 0);
    assert!(!chain.state.account(account.address).is_keyed);
    let calls = vec![ask(), rotate(), ask()];
    let produced = chain.produce(vec![sign_native(native(account.address, 1, calls), &[account.into()])]);
    let receipt = produced.receipt(0);
    assert!(receipt.outcome.is_success(), "{:?} {:?}", receipt.outcome, receipt.failed_call);
    let echoed: Vec<_> =
        receipt.logs.iter().filter(|log| log.address == ECHO).map(|log| log.data.data.len()).collect();
    assert_eq!(echoed, [32, 0]);
    chain.replay();
}

/// A forwarder cannot take its callers' accounts, and nobody rotates for another.
#[test]
fn only_a_user_transaction_itself_rotates() {
    let mut chain = TestChain::new();
    let account = person(0);
    let new: Key = person(30).into();
    let input = rotation(account.address, &new.encoded(), 1, &[new]);
    let not_top_level = Outcome::reverted(&NotTopLevel {}.abi_encode().into());
    let forwarded = call(account, 0, FORWARDER, contracts::to(ACCOUNTS, &input), 1_000_000);
    let produced = chain.produce(vec![forwarded]);
    assert_eq!(produced.receipt(0).outcome, not_top_level);
    // Also within a batch, and from the account's own delegated code.
    let calls = vec![
        native_call(FORWARDER, 0, contracts::to(ACCOUNTS, &input)),
        native_call(COUNTER, 0, Bytes::new()),
    ];
    let produced = chain.produce(vec![sign_native(native(account.address, 1, calls), &[account.into()])]);
    assert_eq!((&produced.receipt(0).outcome, produced.receipt(0).failed_call), (&not_top_level, Some(0)));
    let delegation =
        sign(eip7702(0, COUNTER, vec![authorize(account, 2, FORWARDER)], 200_000), person(1).secret);
    let through_self = call(account, 3, account.address, contracts::to(ACCOUNTS, &input), 1_000_000);
    let produced = chain.produce(vec![delegation, through_self]);
    assert_eq!(produced.receipt(1).outcome, not_top_level);
    assert_eq!(key_of(&chain, account.address).1, 0);
    for scheme in [DELEGATOR, STATIC_CALLER] {
        let result = chain.call(account.address, scheme, contracts::to(ACCOUNTS, &input));
        assert!(!result.outcome.is_success());
    }
}

#[test]
fn keys_that_cannot_sign_are_not_rotated_into() {
    let mut chain = TestChain::new();
    let account = person(0);
    let (a, b): (Key, Key) = (person(20).into(), ed_person(21).into());
    let both = threshold(2, &[a.encoded(), b.encoded()]);
    let either = threshold(1, &[a.encoded(), b.encoded()]);
    let missing = Outcome::reverted(&ProofMissing {}.abi_encode().into());
    for (nonce, (key, proofs)) in (0u64..).zip([
        (&both, vec![]),
        (&both, vec![a]),
        (&either, vec![a, b]),
        (&both, vec![a, person(1).into()]),
    ]) {
        let produced = chain.produce(vec![rotating(account, nonce, key, 1, &proofs)]);
        assert_eq!(produced.receipt(0).outcome, missing, "{nonce}");
    }
    let refused = |chain: &mut TestChain, key: Bytes| {
        let nonce = chain.nonce(account.address);
        let produced = chain.produce(vec![rotating(account, nonce, &key, 1, &[])]);
        match &produced.receipt(0).outcome {
            Outcome::Reverted(reason) => KeyRefused::abi_decode(reason).unwrap(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(&mut chain, Bytes::new()).offset, U256::ZERO);
    let error = refused(&mut chain, threshold(1, &[a.encoded(), a.encoded()]));
    assert_eq!(error.offset, U256::from(24));
    assert!(error.reason.contains("twice"), "{}", error.reason);
    let bomb = [3, 1, 1].repeat(KEY_BYTES_MAX / 3);
    assert!(refused(&mut chain, bomb.into()).reason.contains("4 levels"));
    assert_eq!(refused(&mut chain, vec![0; KEY_BYTES_MAX + 1].into()).offset, U256::from(KEY_BYTES_MAX));
}

#[test]
fn created_accounts_belong_to_their_key() {
    let mut chain = TestChain::new();
    let (a, b): (Key, Key) = (person(20).into(), ed_person(21).into());
    let key = threshold(1, &[a.encoded(), b.encoded()]);
    let salt = B256::repeat_byte(5);
    let create = |nonce| {
        let input = createAccountCall { key: key.clone(), salt }.abi_encode();
        call(person(0), nonce, ACCOUNTS, input, 1_000_000)
    };
    let produced = chain.produce(vec![create(0), create(1)]);
    let event = AccountCreated::decode_log(&produced.receipt(0).logs[0]).unwrap();
    let account = event.account;
    let hashed =
        [&b"almanac account"[..], person(0).address.as_slice(), salt.as_slice(), keccak256(&key).as_slice()]
            .concat();
    assert_eq!(account, Address::from_slice(&keccak256(hashed)[12..]));
    assert_eq!(produced.receipt(1).outcome, Outcome::reverted(&AccountTaken { account }.abi_encode().into()));
    assert_eq!((chain.nonce(account), key_of(&chain, account)), (1, (key.clone(), 0)));
    chain.produce(vec![transfer(person(0), 2, account, 1_000_000_000_000_000_000)]);
    let spend = sign_native(
        NativeTransaction {
            gas_limit: 21_000 + 2_600 + 2 * 50,
            ..native(account, 1, vec![native_call(person(9).address, 5, Bytes::new())])
        },
        &[b],
    );
    assert_eq!(refusals(&mut chain, vec![spend.clone()]), []);
    // One unit less does not pay for the key record, and the tree is not read.
    let short =
        NativeTransaction { gas_limit: 21_000 + 2_600 + 99, nonce: 2, ..spend.native().unwrap().clone() };
    let needed = 21_000 + 2_600 + 100;
    let short = sign_native(short, &[b]);
    recover(short.clone(), &rules()).unwrap();
    assert_eq!(
        refusals(&mut chain, vec![short]),
        [TransactionError::IntrinsicGasTooLow { given: needed - 1, needed }]
    );
    chain.replay();
}

#[test]
fn contracts_ask_whether_a_key_is_satisfied() {
    let mut chain = TestChain::new();
    let (account, digest) = (person(0), keccak256(b"an order"));
    let (a, b): (Key, Key) = (person(20).into(), ed_person(21).into());
    let ask = |chain: &TestChain, keys: &[Key]| {
        let asked = isSatisfiedCall { account: account.address, digest, signatures: sign_all(keys, digest) };
        let result = chain.call(person(7).address, ACCOUNTS, asked.abi_encode());
        isSatisfiedCall::abi_decode_returns(&result.output).unwrap()
    };
    assert!(ask(&chain, &[account.into()]));
    assert!(!ask(&chain, &[person(1).into()]));
    assert!(!ask(&chain, &[]));
    let key = threshold(2, &[a.encoded(), b.encoded()]);
    let asked = rotationDigestCall { account: account.address, key: key.clone() };
    let answer = chain.call(person(7).address, ACCOUNTS, asked.abi_encode());
    let expected = rotation_digest(&CHAIN, account.address, &key, 1);
    assert_eq!(rotationDigestCall::abi_decode_returns(&answer.output).unwrap(), expected);
    chain.produce(vec![rotating(account, 0, &key, 1, &[a, b])]);
    assert!(!ask(&chain, &[account.into()]), "the old key");
    assert!(!ask(&chain, &[a]));
    assert!(ask(&chain, &[a, b]));
    assert!(!ask(&chain, &[a, b, account.into()]), "one too many");
}

/// Both answers cost their own work beside the call: the table of prices (`make bench-prices`) has them below 3 x plain
/// work, and is not part of CI.
#[test]
fn an_address_and_a_digest_cost_their_work() {
    let chain = TestChain::new();
    let gas_of = |input: Vec<u8>| {
        let calldata: u64 = input.iter().map(|byte| if *byte == 0 { 4 } else { 16 }).sum();
        let words = input.len().div_ceil(32) as u64;
        // The call, copying and hashing its input, the square of an input that may overlap, one word of answer.
        let any = 120 + (12 + 6) * words + words * words * 3 / 4 + 12;
        let used = chain.call(person(7).address, ACCOUNTS, input).gas_used.0;
        used - 21_000 - calldata - any
    };
    // Of zeroes: Ethereum's floor for calldata is above what other keys of 32 bytes take.
    assert_eq!(gas_of(addressOfKeyCall { ed25519: B256::ZERO }.abi_encode()), 200);
    let key = threshold(1, &[Key::from(person(0)).encoded(), Key::from(ed_person(1)).encoded()]);
    let read = 2_100;
    assert_eq!(gas_of(rotationDigestCall { account: person(0).address, key }.abi_encode()), 2_400 + read);
}

/// A wide key pays for its leaves, and signs.
#[test]
fn the_widest_key_signs() {
    let mut chain = TestChain::new();
    let account = person(0);
    let keys: Vec<Key> =
        (0..32).map(|n| if n % 2 == 0 { person(100 + n).into() } else { ed_person(n).into() }).collect();
    let children: Vec<Bytes> = keys.iter().map(Key::encoded).collect();
    let all = threshold(32, &children);
    let produced = chain.produce(vec![rotating(account, 0, &all, 1, &keys)]);
    assert!(produced.receipt(0).outcome.is_success(), "{:?}", produced.receipt(0).outcome);
    let transaction = call_of(account.address, 1, person(9).address);
    let needed = 21_000 + 31 * SIGNATURE_GAS + 2_600 + 32 * 50;
    let produced = chain.produce(vec![sign_native(transaction, &keys)]);
    assert_eq!(produced.receipt(0).gas_used.0, needed);
    assert_eq!(
        refusals(&mut chain, vec![sign_native(call_of(account.address, 2, COUNTER), &keys[1..])]),
        [TransactionError::KeyNotSatisfied { account: account.address }]
    );
    assert!(keys.iter().all(|key| key.leaf() != Leaf::Secp256k1(account.address)));
}
