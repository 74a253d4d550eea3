//! What a developer may do to a developer's chain, and that nobody may do it elsewhere. Every block here goes
//! through `TestChain`, which checks that no money is made or lost and that verifying gives what building gave.
#![allow(clippy::needless_pass_by_value, reason = "calls and errors are written where they are expected")]

use crate::support::{contracts::*, *};
use alloy_primitives::{Address, Bytes, TxKind, U256, keccak256};
use alloy_sol_types::{SolCall, SolError};
use almanac_exec::{Environment, Rules, TransactionError, recover_all};
use almanac_primitives::{
    Genesis, Outcome, Receipt, StateKey, UserTransaction, Wei,
    addresses::{BLOCK_HASH_HISTORY, DEVELOPER, DEVELOPER_DOOR, SYSTEM_ACCOUNTS},
    genesis::Allocation,
    params::{BASE_FEE_MAX, CODE_BYTES_MAX, DEVELOPER_RESERVE, DEVELOPER_TREASURY},
};
use proptest::{collection::vec, prelude::*};
use std::collections::BTreeMap;

alloy_sol_types::sol!("../../contracts/IDoor.sol");
alloy_sol_types::sol!("../../contracts/IDeveloper.sol");
use IDeveloper::{
    BaseFeeOutOfBounds, CodeTooLarge, NonceTooLow, NotDeveloper, NotEditable, TreasuryTooSmall,
    setBalanceCall, setCodeCall, setNextBaseFeeCall, setNonceCall, setStorageAtCall,
};

const NOBODY: Address = Address::repeat_byte(0x99);

fn developer() -> TestChain {
    TestChain::from_genesis(&developer_genesis())
}

/// The block after the edit has the fee, those after it follow from it, and nothing of it stays in the state.
#[test]
fn a_base_fee_is_wanted_for_one_block() {
    let mut chain = developer();
    let wanted = U256::from(7_000_000_000u64);
    succeeds(&mut chain, setNextBaseFeeCall { baseFee: wanted });
    assert_eq!(chain.state.slot(DEVELOPER_DOOR, 0), wanted);
    let next = chain.produce(vec![]);
    assert_eq!(U256::from(base_fee(&next.output).0), wanted);
    assert_eq!(chain.state.slot(DEVELOPER_DOOR, 0), U256::ZERO);
    let after = chain.produce(vec![]);
    assert_eq!(
        base_fee(&after.output).0,
        7_000_000_000 - 7_000_000_000 / 8,
        "an empty block lowers it by an eighth"
    );
    chain.replay();
}

#[test]
fn both_bounds_of_a_wanted_base_fee() {
    let mut chain = developer();
    let floor = Environment::derive(&chain.input(), &chain.state).unwrap().parameters.base_fee_floor().0;
    let (min, max) = (U256::from(floor), U256::from(BASE_FEE_MAX.0));
    for given in [min - U256::ONE, max + U256::ONE, U256::ZERO, U256::MAX] {
        fails(&mut chain, setNextBaseFeeCall { baseFee: given }, BaseFeeOutOfBounds { given, min, max });
    }
    for given in [min, max] {
        succeeds(&mut chain, setNextBaseFeeCall { baseFee: given });
        assert_eq!(U256::from(base_fee(&chain.produce(vec![]).output).0), given);
        // Back to what edits can pay.
        while base_fee(&chain.produce(vec![]).output).0 > 1_000_000_000 {}
    }
}

/// A call of the door in the developer's name.
fn edit(chain: &TestChain, call: impl SolCall) -> UserTransaction {
    let nonce = chain.nonce(DEVELOPER);
    impersonate(DEVELOPER, eip1559(nonce, TxKind::Call(DEVELOPER_DOOR), 0, call.abi_encode(), 20_000_000))
}

#[track_caller]
fn apply(chain: &mut TestChain, call: impl SolCall) -> Receipt {
    let transaction = edit(chain, call);
    let produced = chain.produce(vec![transaction]);
    assert_eq!(produced.refused, []);
    produced.receipt(0).clone()
}

#[track_caller]
fn succeeds(chain: &mut TestChain, call: impl SolCall) {
    assert_eq!(apply(chain, call).outcome, Outcome::Success);
}

#[track_caller]
fn fails(chain: &mut TestChain, call: impl SolCall, error: impl SolError) {
    assert_eq!(apply(chain, call).outcome, Outcome::Reverted(error.abi_encode().into()));
}

fn balance(account: Address, balance: U256) -> setBalanceCall {
    setBalanceCall { account, balance }
}

fn storage(account: Address, slot: U256, value: U256) -> setStorageAtCall {
    setStorageAtCall { account, slot, value }
}

#[test]
fn balances_go_up_and_down_and_the_treasury_is_the_other_side() {
    let mut chain = developer();
    let alice = person(0).address;
    for wanted in [U256::ZERO, U256::from(1), U256::from(7).pow(U256::from(50)), U256::from(3), U256::ZERO] {
        for account in [alice, NOBODY, COUNTER] {
            succeeds(&mut chain, balance(account, wanted));
            assert_eq!(chain.balance(account), wanted);
            succeeds(&mut chain, balance(account, wanted));
            assert_eq!(chain.balance(account), wanted, "again changes nothing");
        }
    }
    assert!(!chain.state.0.contains_key(&StateKey::Account(NOBODY)), "an empty account is none");
    chain.replay();
}

#[test]
fn the_treasury_has_an_end_and_keeps_its_reserve() {
    let mut chain = developer();
    let transaction = edit(&chain, balance(NOBODY, DEVELOPER_TREASURY.0));
    let refused = chain.produce(vec![transaction]);
    let Outcome::Reverted(reason) = refused.receipt(0).outcome.clone() else { panic!("it is too much") };
    let TreasuryTooSmall { needed, available } = TreasuryTooSmall::abi_decode(&reason).unwrap();
    assert_eq!(needed, DEVELOPER_TREASURY.0);
    assert!(available < DEVELOPER_TREASURY.0 - DEVELOPER_RESERVE.0, "the gas of this very edit is gone");

    let available = available_to_next_edit(&chain);
    let one_more = available + U256::from(1);
    fails(&mut chain, balance(NOBODY, one_more), TreasuryTooSmall { needed: one_more, available });
    let available = available_to_next_edit(&chain);
    succeeds(&mut chain, balance(NOBODY, available));
    assert!(chain.balance(DEVELOPER) >= DEVELOPER_RESERVE.0);

    // The reserve pays for taking it back.
    succeeds(&mut chain, balance(NOBODY, U256::ZERO));
    assert!(chain.balance(DEVELOPER) > available);
    chain.replay();
}

/// What is above the reserve. Gas that is paid in advance counts as spent.
fn available_to_next_edit(chain: &TestChain) -> U256 {
    let base_fee = Environment::derive(&chain.input(), &chain.state).unwrap().base_fee.0;
    let prepaid = U256::from(20_000_000u64) * U256::from(base_fee + 1_000_000_000);
    chain.balance(DEVELOPER) - prepaid - DEVELOPER_RESERVE.0
}

#[test]
fn code_runs_from_the_next_transaction_on() {
    let mut chain = developer();
    let counter = developer_genesis().allocations[&COUNTER].code.clone();
    succeeds(&mut chain, setCodeCall { account: NOBODY, code: counter.clone() });
    assert_eq!(chain.state.account(NOBODY).code_hash, keccak256(&counter));
    assert_eq!(chain.nonce(NOBODY), 1, "as every contract");
    chain.produce(vec![call(person(0), 0, NOBODY, vec![], 100_000)]);
    let slot = U256::from_be_slice(person(0).address.as_slice());
    assert_eq!(chain.state.0[&StateKey::Slot(NOBODY, slot)][..], [1]);

    // Other code, none at all, and again: storage stays, as tools expect of an upgrade.
    succeeds(&mut chain, setCodeCall { account: NOBODY, code: Bytes::from_static(&[0x00]) });
    succeeds(&mut chain, setCodeCall { account: NOBODY, code: Bytes::new() });
    assert_eq!(chain.state.account(NOBODY).code_hash, alloy_primitives::KECCAK256_EMPTY);
    succeeds(&mut chain, setCodeCall { account: NOBODY, code: counter });
    chain.produce(vec![call(person(0), 1, NOBODY, vec![], 100_000)]);
    assert_eq!(chain.state.0[&StateKey::Slot(NOBODY, slot)][..], [2]);
    chain.replay();
}

#[test]
fn a_delegation_delegates_and_a_broken_one_is_plain_code() {
    let mut chain = developer();
    let delegation: Bytes = [&[0xef, 0x01, 0x00], COUNTER.as_slice()].concat().into();
    succeeds(&mut chain, setCodeCall { account: NOBODY, code: delegation });
    chain.produce(vec![call(person(0), 0, NOBODY, vec![], 100_000)]);
    let slot = U256::from_be_slice(person(0).address.as_slice());
    assert_eq!(chain.state.0[&StateKey::Slot(NOBODY, slot)][..], [1], "it counts in its own storage");

    for broken in [&[0xef, 0x01, 0x00][..], &[0xef, 0x01], &[0xef, 0x00, 0x01], &[0xef]] {
        succeeds(&mut chain, setCodeCall { account: NOBODY, code: Bytes::copy_from_slice(broken) });
        assert_eq!(chain.state.account(NOBODY).code_hash, keccak256(broken));
        let nonce = chain.nonce(person(0).address);
        let produced = chain.produce(vec![call(person(0), nonce, NOBODY, vec![], 100_000)]);
        assert!(matches!(produced.receipt(0).outcome, Outcome::Halted(_)));
    }
    chain.replay();
}

#[test]
fn both_sides_of_the_code_size() {
    let mut chain = developer();
    let code = |bytes: usize| setCodeCall { account: NOBODY, code: vec![0x5b; bytes].into() };
    let (given, max) = (U256::from(CODE_BYTES_MAX + 1), U256::from(CODE_BYTES_MAX));
    fails(&mut chain, code(CODE_BYTES_MAX + 1), CodeTooLarge { given, max });
    assert_eq!(chain.nonce(NOBODY), 0);
    succeeds(&mut chain, code(CODE_BYTES_MAX));
    assert_eq!(chain.state.account(NOBODY).code_hash, keccak256(vec![0x5b; CODE_BYTES_MAX]));
}

#[test]
fn nonces_only_grow() {
    let mut chain = developer();
    let alice = person(0);
    chain.produce(vec![transfer(alice, 0, NOBODY, 1), transfer(alice, 1, NOBODY, 1)]);
    let nonce = |nonce| setNonceCall { account: alice.address, nonce };
    fails(&mut chain, nonce(1), NonceTooLow { given: 1, current: 2 });
    for (given, expected) in [(2, 2), (3, 3), (100, 100), (u64::MAX, u64::MAX)] {
        succeeds(&mut chain, nonce(given));
        assert_eq!(chain.nonce(alice.address), expected);
    }
    succeeds(&mut chain, setNonceCall { account: person(1).address, nonce: 7 });
    let produced = chain.produce(vec![transfer(person(1), 7, NOBODY, 1)]);
    assert_eq!(produced.refused, []);
    chain.replay();
}

#[test]
fn storage_is_written_read_and_cleared() {
    let mut chain = developer();
    for account in [WRITER, NOBODY, person(3).address] {
        for (slot, value) in [(U256::ZERO, U256::MAX), (U256::MAX, U256::from(1)), (U256::MAX, U256::ZERO)] {
            succeeds(&mut chain, storage(account, slot, value));
            let stored = chain.state.0.get(&StateKey::Slot(account, slot));
            assert_eq!(stored.is_some(), !value.is_zero());
        }
        assert_eq!(chain.state.slot(account, 0), U256::MAX);
        assert!(chain.nonce(account) >= 1, "an account with storage never counts as empty");
    }
    succeeds(&mut chain, storage(COUNTER, U256::from_be_slice(person(0).address.as_slice()), U256::from(41)));
    chain.produce(vec![call(person(0), 0, COUNTER, vec![], 100_000)]);
    let slot = U256::from_be_slice(person(0).address.as_slice());
    assert_eq!(chain.state.0[&StateKey::Slot(COUNTER, slot)][..], [42]);
    chain.replay();
}

#[test]
fn the_chains_own_accounts_and_the_developers_stay_as_they_are() {
    let mut chain = developer();
    let own = SYSTEM_ACCOUNTS.into_iter().chain([BLOCK_HASH_HISTORY, DEVELOPER_DOOR, DEVELOPER]);
    for account in own {
        let refused = || NotEditable { account };
        fails(&mut chain, balance(account, U256::from(1)), refused());
        fails(&mut chain, setCodeCall { account, code: Bytes::from_static(&[0]) }, refused());
        fails(&mut chain, setNonceCall { account, nonce: 1_000_000 }, refused());
        fails(&mut chain, storage(account, U256::from(1), U256::from(1)), refused());
    }
    chain.replay();
}

#[test]
fn only_the_developer_account_edits() {
    let mut chain = developer();
    let wanted = balance(person(0).address, U256::from(10).pow(U256::from(30))).abi_encode();
    let not_developer = |caller| NotDeveloper { caller, developer: DEVELOPER }.abi_encode();
    let alice = person(0);
    let direct = chain.produce(vec![call(alice, 0, DEVELOPER_DOOR, wanted.clone(), 500_000)]);
    assert_eq!(direct.receipt(0).outcome, Outcome::Reverted(not_developer(alice.address).into()));

    // By way of a contract the contract is the caller, even if the developer called it.
    let through = to(DEVELOPER_DOOR, &wanted);
    let transaction =
        impersonate(DEVELOPER, eip1559(0, TxKind::Call(FORWARDER), 0, through.clone(), 500_000));
    chain.produce(vec![transaction]);
    assert!(chain.balance(alice.address) < U256::from(10).pow(U256::from(30)));
    let delegated = impersonate(DEVELOPER, eip1559(1, TxKind::Call(DELEGATOR), 0, through.clone(), 500_000));
    let static_call = impersonate(DEVELOPER, eip1559(2, TxKind::Call(STATIC_CALLER), 0, through, 500_000));
    chain.produce(vec![delegated, static_call]);
    assert!(chain.balance(alice.address) < U256::from(10).pow(U256::from(30)));

    // Nobody has the key, so nobody can sign for it either; what is sent along is refused.
    let with_value = eip1559(3, TxKind::Call(DEVELOPER_DOOR), 5, wanted, 500_000);
    let produced = chain.produce(vec![impersonate(DEVELOPER, with_value)]);
    let refused = IDoor::NotPayable { value: U256::from(5) }.abi_encode();
    assert_eq!(produced.receipt(0).outcome, Outcome::Reverted(refused.into()));
    chain.replay();
}

#[test]
fn a_caller_without_gas_changes_nothing() {
    let mut chain = developer();
    let call = setCodeCall { account: NOBODY, code: vec![0x5b; 1_000].into() };
    let enough = {
        let mut other = developer();
        apply(&mut other, call.clone()).gas_used.0
    };
    for (gas, is_success) in [(enough - 1, false), (enough, true)] {
        let nonce = chain.nonce(DEVELOPER);
        let tx = eip1559(nonce, TxKind::Call(DEVELOPER_DOOR), 0, call.abi_encode(), gas);
        let produced = chain.produce(vec![impersonate(DEVELOPER, tx)]);
        assert_eq!(produced.receipt(0).outcome.is_success(), is_success, "{gas}");
        assert_eq!(chain.nonce(NOBODY), u64::from(is_success));
    }
}

#[test]
fn elsewhere_there_is_no_such_door() {
    let mut genesis = Genesis { developer: false, ..developer_genesis() };
    let coins = Wei(U256::from(10).pow(U256::from(18)));
    genesis.allocations.insert(NOBODY, Allocation { balance: coins, ..Default::default() });
    let mut chain = TestChain::from_genesis(&genesis);
    let call_data = balance(person(0).address, U256::ZERO).abi_encode();
    // To the EVM it is an address without code: a call of it does nothing and succeeds.
    let produced = chain.produce(vec![call(person(0), 0, DEVELOPER_DOOR, call_data.clone(), 500_000)]);
    assert_eq!(produced.receipt(0).outcome, Outcome::Success);
    assert!(produced.receipt(0).logs.is_empty());
    let simulated = chain.call(DEVELOPER, DEVELOPER_DOOR, call_data);
    assert_eq!((simulated.outcome, simulated.output), (Outcome::Success, Bytes::new()));
    assert!(chain.balance(person(0).address) > U256::ZERO);

    // A body with an edit is refused by everyone, whoever made it.
    let transaction = edit(&chain, balance(NOBODY, U256::ZERO));
    let refused = recover_all(&[transaction], &Rules::read(CHAIN, &chain.state).unwrap());
    assert_eq!(refused.unwrap_err(), (0, TransactionError::NotSigned { sender: DEVELOPER }));
}

#[test]
fn contracts_are_impersonated_with_their_code() {
    let mut chain = developer();
    succeeds(&mut chain, balance(COUNTER, U256::from(10).pow(U256::from(20))));
    let nonce = chain.nonce(COUNTER);
    let produced = chain.produce(vec![
        impersonate(COUNTER, eip1559(nonce, TxKind::Call(NOBODY), 5, vec![], 21_000)),
        impersonate(COUNTER, eip1559(nonce + 1, TxKind::Call(COUNTER), 0, vec![], 100_000)),
        transfer(person(0), 0, NOBODY, 1),
    ]);
    assert_eq!(produced.refused, []);
    assert!(produced.output.receipts.iter().all(|receipt| receipt.outcome.is_success()));
    assert_eq!(chain.balance(NOBODY), U256::from(6));
    let slot = U256::from_be_slice(COUNTER.as_slice());
    assert_eq!(chain.state.0[&StateKey::Slot(COUNTER, slot)][..], [1], "the caller is the contract");
    chain.replay();
}

/// That one transaction is impersonated opens nothing for a signed one beside it.
#[test]
fn a_signed_transaction_of_an_account_with_code_stays_refused() {
    let mut chain = developer();
    let alice = person(0);
    succeeds(&mut chain, setCodeCall { account: alice.address, code: Bytes::from_static(&[0x00]) });
    let nonce = chain.nonce(alice.address);
    let produced = chain.produce(vec![
        impersonate(person(1).address, eip1559(0, TxKind::Call(NOBODY), 1, vec![], 21_000)),
        transfer(alice, nonce, NOBODY, 1),
    ]);
    assert_eq!(produced.output.block_body().count(), 1);
    assert_eq!(produced.refused[0].1, TransactionError::SenderHasCode { sender: alice.address });
}

/// What an account should be, kept by the dullest of means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Plain {
    balance: U256,
    nonce: u64,
    code: Vec<u8>,
    storage: BTreeMap<u64, U256>,
}

#[derive(Clone, Debug)]
enum Act {
    Balance(u8, u64),
    Nonce(u8, u8),
    Code(u8, Vec<u8>),
    Storage(u8, u8, u8),
}

fn any_act() -> impl Strategy<Value = Act> {
    let account = 0..4u8;
    prop_oneof![
        (account.clone(), prop_oneof![Just(0), any::<u64>()]).prop_map(|(n, wei)| Act::Balance(n, wei)),
        (account.clone(), 0..5u8).prop_map(|(n, nonce)| Act::Nonce(n, nonce)),
        (account.clone(), vec(any::<u8>(), 0..4)).prop_map(|(n, code)| Act::Code(n, code)),
        (account, 0..3u8, 0..3u8).prop_map(|(n, slot, value)| Act::Storage(n, slot, value)),
    ]
}

/// Makes the act on the chain and on the plain accounts. Answers with whether it should succeed.
fn make(
    act: Act,
    plain: &mut [Plain],
    transaction: impl Fn(Bytes) -> UserTransaction,
) -> (UserTransaction, bool) {
    let address = |n: u8| Address::repeat_byte(0x90 + n);
    let (call, is_success) = match act {
        Act::Balance(n, wei) => {
            plain[usize::from(n)].balance = U256::from(wei);
            (balance(address(n), U256::from(wei)).abi_encode(), true)
        }
        Act::Nonce(n, nonce) => {
            let account = &mut plain[usize::from(n)];
            let is_success = u64::from(nonce) >= account.nonce;
            account.nonce = account.nonce.max(nonce.into());
            (setNonceCall { account: address(n), nonce: nonce.into() }.abi_encode(), is_success)
        }
        Act::Code(n, code) => {
            let account = &mut plain[usize::from(n)];
            account.nonce = account.nonce.max(u64::from(!code.is_empty()));
            account.code.clone_from(&code);
            (setCodeCall { account: address(n), code: code.into() }.abi_encode(), true)
        }
        Act::Storage(n, slot, value) => {
            let account = &mut plain[usize::from(n)];
            account.nonce = account.nonce.max(1);
            account.storage.insert(slot.into(), U256::from(value));
            (storage(address(n), U256::from(slot), U256::from(value)).abi_encode(), true)
        }
    };
    (transaction(call.into()), is_success)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn edits_do_what_plain_accounts_would(acts in vec(any_act(), 1..24)) {
        let mut chain = developer();
        let mut plain = vec![Plain::default(); 4];
        for act in acts {
            let nonce = chain.nonce(DEVELOPER);
            let (transaction, is_success) = make(act, &mut plain, |call| {
                impersonate(DEVELOPER, eip1559(nonce, TxKind::Call(DEVELOPER_DOOR), 0, call, 1_000_000))
            });
            let produced = chain.produce(vec![transaction]);
            prop_assert_eq!(produced.receipt(0).outcome.is_success(), is_success);
            for (n, expected) in (0..).zip(&plain) {
                let address = Address::repeat_byte(0x90 + n);
                let account = chain.state.account(address);
                prop_assert_eq!((account.balance, account.nonce), (expected.balance, expected.nonce));
                prop_assert_eq!(account.code_hash, keccak256(&expected.code));
                for (slot, value) in &expected.storage {
                    prop_assert_eq!(chain.state.slot(address, *slot), *value);
                }
            }
        }
        chain.replay();
    }
}
