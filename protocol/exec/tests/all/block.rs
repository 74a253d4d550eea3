//! What a block does to the state, case by case.

use crate::support::{contracts::*, *};
use alloy_primitives::{B256, TxKind, U256};
use almanac_exec::TransactionError;
use almanac_primitives::{Halt, Outcome, block::prev_randao, run::PROLOGUE_TYPE};

#[test]
fn an_empty_block_has_a_prologue_and_nothing_else() {
    let mut chain = TestChain::new();
    let output = chain.produce(vec![]).output;

    assert_eq!(output.receipts.len(), 1);
    assert_eq!(output.receipts[0].transaction_type, PROLOGUE_TYPE);
    assert_eq!(output.gas_used.0, 0);
    assert_eq!(output.diff.changes().len(), 1, "the parent's hash, and nothing else");
}

#[test]
fn a_transfer_moves_value_tip_and_burns_the_base_fee() {
    let mut chain = TestChain::new();
    let (alice, bob) = (person(0), person(1));
    let before = (chain.balance(alice.address), chain.balance(bob.address));

    let output = chain.produce(vec![transfer(alice, 0, bob.address, 7)]).output;

    let (gas, base) = (U256::from(21_000), U256::from(base_fee(&output).0));
    let tip = U256::from(1_000_000_000);
    assert_eq!(chain.balance(bob.address), before.1 + U256::from(7));
    assert_eq!(chain.balance(alice.address), before.0 - U256::from(7) - gas * (base + tip));
    assert_eq!(chain.balance(FEE_RECIPIENT), gas * tip);
    assert_eq!(output.burned.0, gas * base);
    assert_eq!(chain.nonce(alice.address), 1);
    chain.replay();
}

#[test]
fn a_reverted_transaction_changes_only_nonce_and_fee() {
    let mut chain = TestChain::new();
    let alice = person(0);
    chain.produce(vec![]);
    let before = chain.state.clone();

    let produced = chain.produce(vec![call(alice, 0, REVERTER, vec![], 100_000)]);

    let receipt = produced.receipt(0);
    assert_eq!(receipt.outcome, Outcome::Reverted(U256::from(42).to_be_bytes_vec().into()));
    assert!(receipt.logs.is_empty());
    let keys: Vec<_> = produced.output.diff.changes().iter().map(|change| change.key).collect();
    use almanac_primitives::StateKey::{Account, Slot};
    let history = almanac_primitives::addresses::BLOCK_HASH_HISTORY;
    let mut expected = vec![Account(alice.address), Account(FEE_RECIPIENT), Slot(history, U256::from(1))];
    expected.sort();
    assert_eq!(keys, expected);
    let paid = before.account(alice.address).balance - chain.balance(alice.address);
    assert_eq!(paid, U256::from(receipt.gas_used.0) * U256::from(receipt.effective_gas_price.0));
    assert_eq!(chain.nonce(alice.address), 1);
}

#[test]
fn a_refused_transaction_changes_nothing() {
    let mut chain = TestChain::new();
    let alice = person(0);
    let refused = vec![transfer(alice, 1, person(1).address, 7)];

    let produced = chain.produce(refused);

    assert!(matches!(produced.refused[..], [(_, TransactionError::NonceTooHigh { given: 1, account: 0 })]));
    assert_eq!(produced.output.diff.changes().len(), 1);
    assert_eq!(produced.output.receipts.len(), 1);
}

#[test]
fn out_of_gas_uses_all_gas_and_keeps_the_reason() {
    let mut chain = TestChain::new();
    let produced = chain.produce(vec![call(person(0), 0, BURNER, vec![], 90_000)]);
    assert_eq!(produced.receipt(0).outcome, Outcome::Halted(Halt::OutOfGas));
    assert_eq!(produced.receipt(0).gas_used.0, 90_000);
}

#[test]
fn calls_creations_and_logs_take_effect() {
    let mut chain = TestChain::new();
    let alice = person(0);
    let produced = chain.produce(vec![
        call(alice, 0, FORWARDER, to(COUNTER, &[]), 200_000),
        call(alice, 1, LOGGER, vec![1, 2, 3], 100_000),
        sign(eip1559(2, TxKind::Create, 0, deploy(&[0x60, 1, 0x5f, 0x55, 0x00]), 200_000), alice.secret),
        call(alice, 3, WRITER, words(5, 100), 300_000),
        call(alice, 4, CHASER, words(3, 101), 300_000),
    ]);

    for n in 0..5 {
        assert!(produced.receipt(n).outcome.is_success(), "{n}: {:?}", produced.receipt(n));
    }
    let caller_slot = U256::from_be_slice(FORWARDER.as_slice());
    let counted = chain.state.0.get(&almanac_primitives::StateKey::Slot(COUNTER, caller_slot));
    assert_eq!(counted.map(|bytes| bytes.to_vec()), Some(vec![1]));
    let log = &produced.receipt(1).logs[0];
    assert_eq!((log.address, log.topics().len(), &log.data.data[..]), (LOGGER, 2, &[1u8, 2, 3][..]));
    assert_ne!(produced.output.logs_bloom, alloy_primitives::Bloom::ZERO);
    let created = produced.receipt(2).contract_address.unwrap();
    assert_eq!(created, alice.address.create(2));
    assert_ne!(chain.state.account(created).code_hash, alloy_primitives::KECCAK256_EMPTY);
    assert_eq!(chain.state.slot(WRITER, 105), U256::from(106));
    chain.replay();
}

#[test]
fn contracts_that_die_in_their_first_transaction_leave_nothing() {
    let mut chain = TestChain::new();
    let (alice, heir) = (person(0), person(9).address);
    let heir_before = chain.balance(heir);
    let with_value = |nonce, init: alloy_primitives::Bytes, value| {
        sign(eip1559(nonce, TxKind::Call(CREATOR), value, init, 300_000), alice.secret)
    };

    let produced =
        chain.produce(vec![with_value(0, born_to_die(heir), 11), with_value(1, born_to_burn(), 13)]);

    assert!(produced.receipt(0).outcome.is_success() && produced.receipt(1).outcome.is_success());
    assert_eq!(chain.balance(heir) - heir_before, U256::from(11));
    let fees = U256::from(produced.output.gas_used.0) * U256::from(base_fee(&produced.output).0);
    assert_eq!(produced.output.burned.0, fees + U256::from(13), "what it held is burned and counted");
    let child = CREATOR.create(1);
    assert!(!chain.state.0.contains_key(&almanac_primitives::StateKey::Account(child)));
    assert_eq!(chain.state.slot(child, 3), U256::ZERO);
    chain.replay();
}

#[test]
fn the_block_tells_contracts_about_itself() {
    let mut chain = TestChain::new();
    for _ in 0..3 {
        chain.produce(vec![]);
    }
    let told = chain.call(person(0).address, TELLER, vec![]).output;
    let word = |n: usize| U256::from_be_slice(&told[n * 32..][..32]);
    let input = chain.input();
    assert_eq!(word(0), U256::from(4));
    assert_eq!(word(1), U256::from(input.timestamp.0 / 1_000), "block.timestamp is whole seconds");
    assert_eq!(B256::from(word(2)), prev_randao(chain.head.hash(), 4));
    assert_eq!(word(3), U256::from(1), "BLOBBASEFEE");
    assert_eq!(word(5), U256::from(30_000_000));
    assert_eq!(word(7), U256::from(CHAIN_ID));
    for (number, expected) in
        [(0, chain.genesis_header.hash()), (1, chain.blocks[0].hash()), (3, chain.head.hash())]
    {
        let answer = chain.call(person(0).address, HASHER, U256::from(number).to_be_bytes_vec());
        assert_eq!(answer.output[..], expected[..], "BLOCKHASH({number})");
    }
    let future = chain.call(person(0).address, HASHER, U256::from(4).to_be_bytes_vec());
    assert_eq!(future.output[..], [0; 32]);
}
