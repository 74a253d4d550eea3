//! Orderless transactions in blocks (ORDERLESS-01 … -11, -22).

use crate::attacks::Counted;
use crate::support::{
    contracts::{self, COUNTER, FAILER, FORWARDER, LOGGER, REVERTER, WITNESS},
    native::*,
    *,
};
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use almanac_exec::{
    BlockBody, BlockError, Candidates, Rules, TransactionError, check_signatures, execute, recover,
    recover_all,
};
use almanac_primitives::{
    Chain, NativeCall, NativeTransaction, Outcome, StateKey, TimestampMs, UserTransaction,
    native::AuthenticatorError,
    nonces::{NonceSweep, decode_log, decode_number},
    params::{NONCE_SWEEPS_BASE, ORDERLESS_ENABLED, Parameter, SIGNATURE_GAS},
    state::{Meta, encode_slot},
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// The next block's second.
fn next_second(chain: &TestChain) -> u64 {
    chain.input().timestamp.seconds()
}

fn transfer_at(chain: &TestChain, from: u64, nonce: u64) -> UserTransaction {
    orderless_transfer(person(from), nonce, next_second(chain) + 30, person(9).address, 1)
}

/// Whether a transaction would be taken at this moment, by a proposer and by a verifier alike.
fn judge(chain: &TestChain, now: TimestampMs, transaction: &UserTransaction) -> Result<(), TransactionError> {
    let input = chain.input_at(now);
    let mut source = Candidates::new(vec![recovered(transaction.clone())]);
    let proposed = execute(&chain.state, &*chain.agenda, &input, &mut source).unwrap();
    let proposed_error = source.refusals().first().map(|(_, error)| error.clone());
    let mut body = BlockBody::new(vec![recovered(transaction.clone())]);
    match (execute(&chain.state, &*chain.agenda, &input, &mut body), proposed_error) {
        (Ok(verified), None) => {
            assert_eq!(verified, proposed);
            Ok(())
        }
        (Err(BlockError::InvalidTransaction { index: 0, error }), Some(refused)) => {
            assert_eq!(error, refused, "proposer and verifier agree");
            let history = |key: &StateKey| matches!(key, StateKey::Nonce(..) | StateKey::NonceLog(..));
            assert!(
                !proposed.diff.changes().iter().any(|change| history(&change.key) && change.new.is_some())
            );
            Err(error)
        }
        (verified, proposed) => panic!("{verified:?} against {proposed:?}"),
    }
}

#[test]
fn orderless_01_both_kinds_run_and_pay_the_same_way() {
    let mut chain = TestChain::new();
    let to = person(9).address;
    let call = vec![native_call(to, 5, Bytes::new())];
    let sequence = sign_native(
        NativeTransaction { gas_limit: 21_000, ..native(person(0).address, 0, call) },
        &[person(0).into()],
    );
    let orderless = transfer_at(&chain, 1, 77);
    let plain = transfer(person(2), 0, to, 5);
    let produced = chain.produce(vec![sequence, orderless, plain]);
    assert_eq!(produced.refused, []);
    let used: Vec<_> = (0..3).map(|n| produced.receipt(n).gas_used.0).collect();
    assert_eq!(used, [21_000, 23_000, 21_000]);
    assert_eq!(chain.nonce(person(0).address), 1);
    chain.replay();
}

/// ORDERLESS-P1 without a clock: a block holds 90 % as many of them as of transfers with sequence numbers, and reads and
/// changes as many values beside many live entries as beside few. `make bench-orderless` measures time.
#[test]
fn orderless_p1_a_block_of_them_holds_and_touches_as_much_beside_many_entries() {
    let mut touched = Vec::new();
    for live in [10, 20_000u64] {
        let mut chain = TestChain::new();
        let expiration = next_second(&chain) + 30;
        for n in 0..live {
            let key = StateKey::Nonce(person(5).address, n);
            chain.state.0.insert(key, almanac_primitives::nonces::encode_number(expiration));
        }
        let sent: Vec<_> = (0..50).map(|n| recovered(transfer_at(&chain, 0, n))).collect();
        let counted = Counted { state: &chain.state, read: Default::default() };
        let mut source = Candidates::new(sent);
        let output = execute(&counted, &*chain.agenda, &chain.input(), &mut source).unwrap();
        assert_eq!((source.refusals(), output.gas_used.0), (&[][..], 50 * 23_000));
        touched.push((counted.read.into_inner().len(), output.diff.changes().len()));
    }
    assert_eq!(touched[0], touched[1]);
    let held = |gas: u64| TestChain::new().input().parent.gas_limit.0 / gas;
    assert!(held(23_000) * 10 >= held(21_000) * 9);
}

#[test]
fn orderless_02_a_stored_pair_is_refused() {
    let mut chain = TestChain::new();
    let first = transfer_at(&chain, 0, 5);
    let expiration = next_second(&chain) + 30;
    // The same pair with another expiration and another payload, in the same block.
    let other = orderless_transfer(person(0), 5, expiration + 1, person(8).address, 2);
    let hash = other.hash();
    let produced =
        chain.produce(vec![first.clone(), other, transfer_at(&chain, 0, 6), transfer_at(&chain, 1, 5)]);
    let used = TransactionError::NonceAlreadyUsed { nonce: 5, expiration };
    assert_eq!(produced.refused, [(hash, used.clone())], "its sender's others and other senders' are taken");
    for later in 1..=29 {
        let now = TimestampMs(chain.head.timestamp.0 + later * 1_000);
        assert_eq!(judge(&chain, now, &first), Err(used.clone()), "{later} s later");
    }
    assert_eq!(
        check_signatures(&chain.state, &first),
        Ok(Err(used.clone())),
        "and no signature is recovered for it"
    );
    // A body that holds it twice is no block.
    let fresh = TestChain::new();
    let twice = vec![recovered(first.clone()), recovered(first)];
    let refused = execute(&fresh.state, &*fresh.agenda, &fresh.input(), &mut BlockBody::new(twice));
    assert!(matches!(refused, Err(BlockError::InvalidTransaction { index: 1, error }) if error == used));
}

#[test]
fn orderless_03_expiration_on_both_sides() {
    let chain = TestChain::new();
    let base = chain.head.timestamp.seconds() + 100;
    let given = base + 60;
    let transaction = orderless_transfer(person(0), 1, given, person(9).address, 1);
    let far = |now| Err(TransactionError::ExpirationTooFar { given, now, max_ms: 60_000 });
    let late = |now| Err(TransactionError::TransactionExpired { given, now });
    for (ms, is_far) in [(-1_000, true), (-1, true), (0, false), (1, false), (1_000, false)] {
        let now = TimestampMs((base * 1_000).checked_add_signed(ms).unwrap());
        assert_eq!(judge(&chain, now, &transaction), if is_far { far(now) } else { Ok(()) }, "{ms} ms");
    }
    for (ms, is_late) in [(-1_000, false), (-1, false), (0, true), (1, true), (1_000, true)] {
        let now = TimestampMs((given * 1_000).checked_add_signed(ms).unwrap());
        assert_eq!(judge(&chain, now, &transaction), if is_late { late(now) } else { Ok(()) }, "{ms} ms");
    }
    for given in [0, 1, u64::MAX / 1_000, u64::MAX / 1_000 + 1, u64::MAX] {
        let odd = orderless_transfer(person(0), 1, given, person(9).address, 1);
        assert!(judge(&chain, chain.input().timestamp, &odd).is_err(), "{given}");
    }
}

#[test]
fn orderless_22_sequence_numbers_expire_when_they_say_and_as_late_as_they_like() {
    let chain = TestChain::new();
    let now = chain.input().timestamp;
    let with = |expiration| {
        let call = vec![native_call(person(9).address, 1, Bytes::new())];
        sign_native(
            NativeTransaction { expiration, ..native(person(0).address, 0, call) },
            &[person(0).into()],
        )
    };
    let second = now.seconds();
    for fine in [0, second + 1, second + 61, u64::MAX] {
        assert_eq!(judge(&chain, now, &with(fine)), Ok(()), "{fine}");
    }
    for given in [1, second] {
        assert_eq!(
            judge(&chain, now, &with(given)),
            Err(TransactionError::TransactionExpired { given, now })
        );
    }
}

#[test]
fn orderless_22_the_history_costs_two_thousand_gas() {
    let chain = TestChain::new();
    let expiration = next_second(&chain) + 30;
    let call = || vec![native_call(person(9).address, 1, Bytes::new())];
    let with = |gas_limit| {
        let transaction = orderless(person(0).address, 1, expiration, call());
        sign_native(NativeTransaction { gas_limit, ..transaction }, &[person(0).into()])
    };
    let short = TransactionError::IntrinsicGasTooLow { given: 22_999, needed: 23_000 };
    assert_eq!(recover(with(22_999), &rules()).unwrap_err(), short);
    assert_eq!(judge(&chain, chain.input().timestamp, &with(23_000)), Ok(()));
}

/// ±1 s around t + 130: the pair is taken until then, and free after.
#[test]
fn orderless_04_a_pair_is_free_again_130_seconds_after_it_expired() {
    let mut chain = TestChain::new();
    let first = next_second(&chain) + 30;
    chain.produce(vec![orderless_transfer(person(0), 5, first, person(9).address, 1)]);
    for (offset, is_free) in [(1, false), (60, false), (129, false), (130, false), (131, true), (132, true)] {
        let again = orderless_transfer(person(0), 5, first + offset, person(9).address, 1);
        // In the last moment in which it is not expired.
        let now = TimestampMs((first + offset) * 1_000 - 1);
        let expected = Err(TransactionError::NonceAlreadyUsed { nonce: 5, expiration: first });
        assert_eq!(judge(&chain, now, &again), if is_free { Ok(()) } else { expected }, "{offset} s");
    }
    // The replacement counts from its own expiration on, whether the old entry was collected or not.
    let second = first + 131;
    let input = chain.input_at(TimestampMs((second - 1) * 1_000));
    let produced =
        chain.produce_with(&input, vec![orderless_transfer(person(0), 5, second, person(9).address, 1)]);
    assert_eq!(produced.refused, []);
    let again = orderless_transfer(person(0), 5, second + 130, person(9).address, 1);
    let now = TimestampMs((second + 130) * 1_000 - 1);
    assert_eq!(
        judge(&chain, now, &again),
        Err(TransactionError::NonceAlreadyUsed { nonce: 5, expiration: second })
    );
}

fn history(chain: &TestChain) -> (usize, usize, Option<NonceSweep>) {
    let keys = || chain.state.0.keys();
    let pairs = keys().filter(|key| matches!(key, StateKey::Nonce(..))).count();
    let logs = keys().filter(|key| matches!(key, StateKey::NonceLog(..))).count();
    let sweep = chain.state.0.get(&StateKey::Meta(Meta::NonceSweep));
    (pairs, logs, sweep.map(|stored| NonceSweep::decode(stored).unwrap()))
}

/// Every pair is in the log of its second, and nothing else is there.
fn check_history(chain: &TestChain) {
    let mut logged: BTreeMap<(Address, u64), BTreeSet<u64>> = BTreeMap::new();
    for (key, stored) in &chain.state.0 {
        if let StateKey::NonceLog(second, part) = key
            && *part > 0
        {
            for pair in decode_log(stored).unwrap() {
                logged.entry(pair).or_default().insert(*second);
            }
        }
    }
    for (key, stored) in &chain.state.0 {
        if let StateKey::Nonce(sender, nonce) = key {
            let expiration = decode_number(stored).unwrap();
            assert!(logged[&(*sender, *nonce)].contains(&expiration), "{sender} {nonce}");
        }
    }
}

#[test]
fn orderless_05_the_history_follows_the_load_down_within_its_bound() {
    let mut chain = TestChain::new();
    let expiration = next_second(&chain) + 20;
    let senders: Vec<_> =
        (0..300u64).map(|n| orderless_transfer(person(n % 3), n, expiration, person(9).address, 1)).collect();
    chain.produce(senders);
    assert_eq!(
        history(&chain),
        (300, 2, Some(NonceSweep { second: expiration - 20, part: 1, offset: 0, seconds_left: 1 }))
    );
    check_history(&chain);
    // The last moment at which nothing may go.
    let input = chain.input_at(TimestampMs((expiration + 130) * 1_000 - 1));
    chain.produce_with(&input, vec![]);
    assert_eq!(history(&chain).0, 300);
    // Seconds without entries are passed in steps; then a bounded number of entries goes per block.
    let mut left = vec![300];
    for _ in 0..20 {
        let produced = chain.produce(vec![]);
        check_history(&chain);
        let gone = produced
            .output
            .diff
            .changes()
            .iter()
            .filter(|change| matches!(change.key, StateKey::Nonce(..)))
            .count();
        assert!(gone as u64 <= NONCE_SWEEPS_BASE);
        left.push(history(&chain).0);
    }
    assert!(left.contains(&(300 - 256)), "{left:?}");
    assert_eq!(history(&chain), (0, 0, None), "nothing is left behind");
    // An idle chain writes nothing for it.
    let idle = chain.produce(vec![]);
    let is_history =
        |key: &StateKey| matches!(key, StateKey::Nonce(..) | StateKey::NonceLog(..) | StateKey::Meta(_));
    assert!(!idle.output.diff.changes().iter().any(|change| is_history(&change.key)));
    chain.replay();
}

#[test]
fn orderless_05_inserts_collect_five_each() {
    let mut chain = TestChain::new();
    let expiration = next_second(&chain) + 2;
    let burst = |from: u64, count: u64, expiration: u64| -> Vec<_> {
        (from..from + count)
            .map(|n| orderless_transfer(person(n % 3), n, expiration, person(9).address, 1))
            .collect()
    };
    chain.produce(burst(0, 600, expiration));
    let now = expiration + 140;
    let input = chain.input_at(TimestampMs(now * 1_000));
    chain.produce_with(&input, burst(1_000, 10, now + 20));
    let (pairs, ..) = history(&chain);
    assert_eq!(pairs as u64, 600 + 10 - (NONCE_SWEEPS_BASE + 5 * 10));
    check_history(&chain);
}

/// A day without blocks: the sweep walks there without a long block.
#[test]
fn orderless_05_after_a_days_halt() {
    let mut chain = TestChain::new();
    let expiration = next_second(&chain) + 2;
    chain.produce(vec![orderless_transfer(person(0), 1, expiration, person(9).address, 1)]);
    let input = chain.input_at(TimestampMs(chain.head.timestamp.0 + 86_400_000));
    chain.produce_with(&input, vec![]);
    assert_eq!(history(&chain), (0, 0, None));
}

#[test]
fn orderless_06_one_value_per_pair_and_a_log_that_no_block_rewrites() {
    let mut chain = TestChain::new();
    let expiration = next_second(&chain) + 30;
    let mut parts = BTreeMap::new();
    for block in 0..3u64 {
        let body =
            (0..3).map(|n| orderless_transfer(person(n), block, expiration, person(9).address, 1)).collect();
        let output = chain.produce(body).output;
        for change in output.diff.changes() {
            match change.key {
                StateKey::Nonce(..) => assert_eq!(change.old, None),
                StateKey::NonceLog(second, part) if part > 0 => {
                    assert_eq!(change.old, None, "a part is written once");
                    parts.insert((second, part), decode_log(change.new.as_ref().unwrap()).unwrap().len());
                }
                _ => {}
            }
        }
    }
    assert_eq!(parts, BTreeMap::from([((expiration, 1), 3), ((expiration, 2), 3), ((expiration, 3), 3)]));
}

#[test]
fn orderless_07_failed_ones_keep_their_entry_and_refused_ones_have_none() {
    let mut chain = TestChain::new();
    let expiration = next_second(&chain) + 30;
    let call = |nonce, target| {
        let calls = vec![native_call(target, 0, Bytes::new())];
        let transaction = orderless(person(0).address, nonce, expiration, calls);
        sign_native(NativeTransaction { gas_limit: 100_000, ..transaction }, &[person(0).into()])
    };
    let mut poor = orderless(person(0).address, 3, expiration, vec![native_call(COUNTER, 0, Bytes::new())]);
    poor.calls[0].value = U256::MAX >> 1;
    let poor = sign_native(poor, &[person(0).into()]);
    let produced = chain.produce(vec![call(1, REVERTER), call(2, FAILER), poor]);
    assert!(matches!(produced.receipt(0).outcome, Outcome::Reverted(_)));
    assert!(matches!(produced.receipt(1).outcome, Outcome::Halted(_)));
    assert_eq!(produced.receipt(0).failed_call, Some(0));
    assert!(matches!(produced.refused[..], [(_, TransactionError::InsufficientFunds { .. })]));
    let stored: Vec<_> = chain
        .state
        .0
        .keys()
        .filter_map(|key| match key {
            StateKey::Nonce(_, nonce) => Some(*nonce),
            _ => None,
        })
        .collect();
    assert_eq!(stored, [1, 2]);
}

#[test]
fn orderless_08_a_failing_prologue_charges_nothing() {
    let mut chain = TestChain::new();
    let before = (chain.balance(person(0).address), chain.nonce(person(0).address));
    let expired = orderless_transfer(person(0), 1, next_second(&chain), person(9).address, 1);
    let produced = chain.produce(vec![expired]);
    assert!(matches!(produced.refused[..], [(_, TransactionError::TransactionExpired { .. })]));
    assert_eq!((chain.balance(person(0).address), chain.nonce(person(0).address)), before);
}

#[test]
fn orderless_09_the_nonce_stays_and_creations_have_addresses_of_their_own() {
    let mut chain = TestChain::new();
    let sender = person(0).address;
    let expiration = next_second(&chain) + 30;
    let init = contracts::deploy(&[0x00]);
    let creation = |nonce, init: &Bytes| {
        let call = NativeCall { to: None, value: U256::from(3), input: init.clone() };
        sign_native(orderless(sender, nonce, expiration, vec![call]), &[person(0).into()])
    };
    let (one, two) = (creation(1, &init), creation(2, &init));
    // Init code that reverts, and one that the EVM stops.
    let failing = [Bytes::from_static(&[0x5f, 0x5f, 0xfd]), Bytes::from_static(&[0xfe])];
    let body = vec![one.clone(), two.clone(), creation(3, &failing[0]), creation(4, &failing[1])];
    let produced = chain.produce(body);
    assert_eq!(produced.refused, []);
    for (n, transaction) in [one, two].iter().enumerate() {
        let salt = keccak256([&b"almanac create"[..], transaction.hash().as_slice()].concat());
        let expected = sender.create2(salt, keccak256(&init));
        assert_eq!(produced.receipt(n).contract_address, Some(expected));
        assert_eq!(chain.balance(expected), U256::from(3));
        assert_eq!(chain.nonce(expected), 1);
    }
    assert!(!produced.receipt(2).outcome.is_success() && !produced.receipt(3).outcome.is_success());
    assert_eq!(chain.nonce(sender), 0);
    // A sequence number goes on from where it was, and creates where Ethereum would.
    let call = NativeCall { to: None, value: U256::ZERO, input: init };
    let third = sign_native(native(sender, 0, vec![call]), &[person(0).into()]);
    let produced = chain.produce(vec![third]);
    assert_eq!(produced.receipt(0).contract_address, Some(sender.create(0)));
    assert_eq!(chain.nonce(sender), 1);
    chain.replay();
}

#[test]
fn orderless_10_another_chains_transactions_are_refused() {
    let chain = TestChain::new();
    let expiration = next_second(&chain) + 30;
    let transaction =
        orderless(person(0).address, 1, expiration, vec![native_call(COUNTER, 0, Bytes::new())]);
    let foreign = NativeTransaction { chain_id: 1, ..transaction.clone() };
    let foreign = sign_native(foreign, &[person(0).into()]);
    assert_eq!(
        recover(foreign, &rules()).unwrap_err(),
        TransactionError::WrongChain { given: 1, chain: CHAIN.id }
    );
    // The same id, another block 0: the signature seems to be of another key.
    let fork = Chain { genesis: B256::repeat_byte(0x61), ..CHAIN };
    let other = sign_native_on(&fork, transaction, &[person(0).into()], &[]);
    let account = person(0).address;
    assert_eq!(
        judge(&chain, chain.input().timestamp, &other),
        Err(TransactionError::KeyNotSatisfied { account })
    );
}

#[test]
fn orderless_11_the_flag_turns_them_off_and_leaves_sequence_numbers() {
    let mut chain = TestChain::new();
    let off = StateKey::Slot(almanac_primitives::addresses::PARAMETERS, U256::from(ORDERLESS_ENABLED.slot));
    chain.state.0.insert(off, encode_slot(Parameter::slot_value(0)).unwrap());
    assert_eq!(
        judge(&chain, chain.input().timestamp, &transfer_at(&chain, 0, 1)),
        Err(TransactionError::OrderlessDisabled)
    );
    let call = vec![native_call(person(9).address, 1, Bytes::new())];
    let sequence = sign_native(native(person(0).address, 0, call), &[person(0).into()]);
    assert_eq!(judge(&chain, chain.input().timestamp, &sequence), Ok(()));
}

#[test]
fn signatures_that_prove_nothing_are_refused() {
    let chain = TestChain::new();
    let expiration = next_second(&chain) + 30;
    let mut transaction =
        orderless(person(0).address, 1, expiration, vec![native_call(COUNTER, 0, Bytes::new())]);
    transaction.signatures = vec![Bytes::from(vec![0xff; 96])];
    let garbage = UserTransaction::native_signed(transaction).unwrap();
    let error = recover(garbage.clone(), &rules()).unwrap_err();
    assert!(matches!(error, TransactionError::Authenticator(AuthenticatorError { .. })), "{error}");
    let rules = Rules::read(CHAIN, &chain.state).unwrap();
    assert_eq!(recover_all(&[garbage], &rules).unwrap_err(), (0, error));
}

/// What a body's signatures cost is known before one is recovered.
#[test]
fn a_body_with_too_many_signatures_is_refused_unrecovered() {
    let mut transaction = native(person(0).address, 0, vec![native_call(COUNTER, 0, Bytes::new())]);
    transaction.signatures = vec![Bytes::from(vec![0xff; 96]); 32];
    let one = UserTransaction::native_signed(transaction).unwrap();
    let body = vec![one; 400];
    let (index, error) = recover_all(&body, &rules()).unwrap_err();
    assert!(index > 200 && matches!(error, TransactionError::DoesNotFit { .. }), "{index}: {error}");
}

#[test]
fn a_batch_is_atomic_and_reports_what_failed() {
    let mut chain = TestChain::new();
    let sender = person(0).address;
    let batch = |nonce, calls| sign_native(native(sender, nonce, calls), &[person(0).into()]);
    let good = vec![
        native_call(LOGGER, 0, vec![1]),
        native_call(person(9).address, 7, Bytes::new()),
        native_call(LOGGER, 0, vec![2]),
        native_call(WITNESS, 3, Bytes::new()),
    ];
    let mut bad = good.clone();
    bad.insert(3, native_call(REVERTER, 0, Bytes::new()));
    let mut halting = good.clone();
    halting.insert(1, native_call(FAILER, 0, Bytes::new()));
    let money = chain.balance(person(9).address);
    let produced = chain.produce(vec![batch(0, good), batch(1, bad), batch(2, halting)]);
    assert_eq!(produced.refused, []);
    let receipt = produced.receipt(0);
    assert_eq!((receipt.outcome.clone(), receipt.failed_call), (Outcome::Success, None));
    let logged: Vec<_> = receipt.logs.iter().map(|log| log.data.data.to_vec()).collect();
    assert_eq!(logged, [[1], [2]], "in the order of the calls");
    let receipt = produced.receipt(1);
    assert_eq!((receipt.failed_call, receipt.logs.len()), (Some(3), 0));
    assert!(matches!(receipt.outcome, Outcome::Reverted(_)));
    assert_eq!((produced.receipt(2).failed_call, produced.receipt(2).gas_used.0), (Some(1), 1_000_000));
    assert_eq!(chain.balance(person(9).address), money + U256::from(7), "once");
    assert_eq!(chain.nonce(sender), 3);
    // msg.sender and tx.origin are the sender's, value is the call's.
    let slot = |n: u64| chain.state.0.get(&StateKey::Slot(WITNESS, U256::from(n))).cloned().unwrap();
    assert_eq!(Address::from_word(B256::left_padding_from(&slot(0))), sender);
    assert_eq!(Address::from_word(B256::left_padding_from(&slot(1))), sender);
    assert_eq!(slot(2)[..], [3]);
    chain.replay();
}

/// Each call of a batch starts with clean memory: the returned words are those of a single call.
#[test]
fn calls_of_a_batch_do_not_share_memory() {
    // Stores MSIZE + 1 in slot CALLDATALOAD(0), then writes far into memory.
    let code = [0x59, 0x60, 1, 0x01, 0x5f, 0x35, 0x55, 0x60, 1, 0x61, 0x04, 0x00, 0x52, 0x00];
    let mut chain = TestChain::new();
    let init = NativeCall { to: None, value: U256::ZERO, input: contracts::deploy(&code) };
    let sender = person(0).address;
    let produced = chain.produce(vec![sign_native(native(sender, 0, vec![init]), &[person(0).into()])]);
    let target = produced.receipt(0).contract_address.unwrap();
    let word = |n: u8| B256::with_last_byte(n).to_vec();
    let calls = (1..4).map(|n| native_call(target, 0, word(n))).collect();
    let produced = chain.produce(vec![sign_native(native(sender, 1, calls), &[person(0).into()])]);
    assert!(produced.receipt(0).outcome.is_success());
    for n in 1..4u64 {
        assert_eq!(chain.state.0[&StateKey::Slot(target, U256::from(n))][..], [1], "call {n}");
    }
}

/// To the unit: base, further calls, value, new accounts, further signatures, fee payer.
#[test]
fn gas_of_a_native_transaction_to_the_unit() {
    let mut chain = TestChain::new();
    let (sender, payer) = (person(0), person(1));
    let fresh = Address::repeat_byte(0xab);
    let calls = vec![
        native_call(person(8).address, 1, Bytes::new()),
        native_call(person(9).address, 0, Bytes::new()),
        native_call(fresh, 1, Bytes::new()),
    ];
    let needed = 21_000 + 2 * 2_600 + 9_000 + 2_600 + SIGNATURE_GAS;
    let with = |gas_limit| {
        let transaction = native(sender.address, 0, calls.clone());
        let transaction = NativeTransaction { fee_payer: Some(payer.address), gas_limit, ..transaction };
        sign_native_on(&CHAIN, transaction, &[sender.into()], &[payer.into()])
    };
    let short = TransactionError::IntrinsicGasTooLow { given: needed - 1, needed };
    assert_eq!(recover(with(needed - 1), &rules()).unwrap_err(), short);
    // Making the account is charged when it comes to that.
    let produced = chain.produce(vec![with(needed + 24_999)]);
    assert_eq!(produced.receipt(0).failed_call, Some(2));
    assert_eq!(chain.balance(fresh), U256::ZERO);
    let transaction = NativeTransaction { nonce: 1, ..with(needed + 25_000).native().unwrap().clone() };
    let again = sign_native_on(&CHAIN, transaction, &[sender.into()], &[payer.into()]);
    let produced = chain.produce(vec![again]);
    assert_eq!((produced.receipt(0).failed_call, produced.receipt(0).gas_used.0), (None, needed + 25_000));
    chain.replay();
}

#[test]
fn a_fee_payer_pays_for_gas_and_nothing_else() {
    let mut chain = TestChain::new();
    let (sender, payer) = (person(0), person(1));
    let expiration = next_second(&chain) + 30;
    let with = |payer_key: Key, nonce, gas_limit, cap| {
        let calls = vec![native_call(person(9).address, 5, Bytes::new())];
        let transaction = orderless(sender.address, nonce, expiration, calls);
        let transaction = NativeTransaction {
            fee_payer: Some(payer_key.address()),
            gas_limit,
            max_fee_per_gas: cap,
            ..transaction
        };
        sign_native_on(&CHAIN, transaction, &[sender.into()], &[payer_key])
    };
    let (before, paid_before) = (chain.balance(sender.address), chain.balance(payer.address));
    let produced = chain.produce(vec![with(payer.into(), 1, 50_000, 20_000_000_000)]);
    let receipt = produced.receipt(0);
    assert_eq!(before - chain.balance(sender.address), U256::from(5));
    let fee = U256::from(receipt.gas_used.0) * U256::from(receipt.effective_gas_price.0);
    assert_eq!(paid_before - chain.balance(payer.address), fee);
    assert_eq!(chain.nonce(payer.address), 0);
    // One wei short, and just enough.
    let balance = u128::try_from(chain.balance(payer.address)).unwrap();
    let gas = 1_000_000;
    let now = chain.input().timestamp;
    assert_eq!(judge(&chain, now, &with(payer.into(), 2, gas, balance / u128::from(gas))), Ok(()));
    let refused = judge(&chain, now, &with(payer.into(), 2, gas, balance / u128::from(gas) + 1));
    assert!(
        matches!(refused, Err(TransactionError::FeePayerFunds { payer: found, .. }) if found == payer.address)
    );
    // Who did not sign does not pay.
    let mut forged = with(payer.into(), 3, gas, 20_000_000_000).native().unwrap().clone();
    forged.fee_payer_signatures = sign_all(&[person(2).into()], forged.fee_payer_signing_hash(&CHAIN));
    let forged = UserTransaction::native_signed(forged).unwrap();
    let account = payer.address;
    assert_eq!(judge(&chain, now, &forged), Err(TransactionError::KeyNotSatisfied { account }));
}

/// A thousand senders without money, one payer.
#[test]
fn a_fee_payer_carries_senders_without_money() {
    let mut chain = TestChain::new();
    let expiration = next_second(&chain) + 30;
    let senders: Vec<_> = (0..100).map(ed_person).collect();
    let body = senders.iter().map(|sender| {
        let calls = vec![native_call(COUNTER, 0, Bytes::new())];
        let transaction = orderless(sender.address(), 1, expiration, calls);
        let transaction =
            NativeTransaction { fee_payer: Some(person(1).address), gas_limit: 100_000, ..transaction };
        sign_native_on(&CHAIN, transaction, &[(*sender).into()], &[person(1).into()])
    });
    let produced = chain.produce(body.collect());
    assert_eq!(produced.refused, []);
    assert!((0..100).all(|n| produced.receipt(n).outcome.is_success()));
    for sender in senders {
        assert!(
            !chain.state.0.contains_key(&StateKey::Account(sender.address())),
            "still no record on chain"
        );
    }
}

/// A refusal of one orderless transaction skips none of its sender's; a missing number skips its followers alone.
#[test]
fn orderless_17_one_refusal_holds_up_nobody() {
    let mut chain = TestChain::new();
    let expiration = next_second(&chain) + 30;
    let expired = orderless_transfer(person(0), 1, next_second(&chain), person(9).address, 1);
    let body = vec![
        expired,
        orderless_transfer(person(0), 2, expiration, person(9).address, 1),
        transfer(person(0), 1, person(9).address, 1),
        transfer(person(0), 2, person(9).address, 1),
        orderless_transfer(person(0), 3, expiration, person(9).address, 1),
    ];
    let produced = chain.produce(body);
    assert_eq!(produced.refused.len(), 2, "the expired one, and the gap with what follows it");
    assert_eq!(produced.output.block_body().count(), 2);
}

/// Nested calls through a contract see the batch's sender as origin, and value is conserved.
#[test]
fn batches_through_contracts() {
    let mut chain = TestChain::new();
    let inner = contracts::to(COUNTER, &[]);
    let calls = vec![native_call(FORWARDER, 0, inner.clone()), native_call(FORWARDER, 0, inner)];
    let produced = chain.produce(vec![sign_native(native(person(0).address, 0, calls), &[person(0).into()])]);
    assert!(produced.receipt(0).outcome.is_success());
    let slot = StateKey::Slot(COUNTER, U256::from_be_slice(FORWARDER.as_slice()));
    assert_eq!(chain.state.0[&slot][..], [2]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Whatever was committed, offered again at any later moment, is never committed twice: neither within its window
    /// nor after it, neither alone nor beside new ones, and also on a copy of the chain that went back and took
    /// another way.
    #[test]
    fn orderless_02_no_history_commits_a_transaction_twice(
        blocks in prop::collection::vec((prop::collection::vec((0..3u64, 0..6u64, 1..61u64), 0..4), 1..200_000u64), 1..8),
    ) {
        let mut chain = TestChain::new();
        let mut sent: Vec<UserTransaction> = Vec::new();
        let mut committed = BTreeSet::new();
        let mut snapshot = None;
        for (index, (orders, gap)) in blocks.iter().enumerate() {
            let now = TimestampMs(chain.head.timestamp.0 + gap);
            let expires = |ahead: u64| now.0.div_ceil(1_000).saturating_add(ahead) - 1;
            let new: Vec<_> = orders.iter().map(|(from, nonce, ahead)| {
                orderless_transfer(person(*from), *nonce, expires(*ahead), person(9).address, 1)
            }).collect();
            if index == blocks.len() / 2 {
                snapshot = Some((chain.state.clone(), chain.head.clone(), committed.clone(), sent.clone()));
            }
            let input = chain.input_at(now);
            let body = sent.iter().cloned().chain(new.iter().cloned()).collect();
            let produced = chain.produce_with(&input, body);
            for transaction in produced.output.block_body() {
                prop_assert!(committed.insert(transaction.hash()), "{} twice", transaction.hash());
            }
            check_history(&chain);
            sent.extend(new);
        }
        // Go back, and offer everything that the other way committed.
        if let Some((state, head, mut committed, sent_then)) = snapshot {
            let mut fork = TestChain::new();
            (fork.issued, fork.burned) = (state.total(), U256::ZERO);
            (fork.state, fork.head) = (state, head);
            for _ in 0..3 {
                let produced = fork.produce(sent_then.iter().chain(&sent).cloned().collect());
                for transaction in produced.output.block_body() {
                    prop_assert!(committed.insert(transaction.hash()), "{} twice on the fork", transaction.hash());
                }
            }
        }
    }
}
