//! Attacks on who is who: the registry's address, and what a run may do in its name.

use crate::attacks::governor;
use crate::support::{contracts::*, cron::*, *};
use alloy_primitives::{Address, Bytes, TxKind, U256, b256, keccak256};
use alloy_sol_types::{SolCall, SolError, SolInterface};
use almanac_exec::{Rules, recover_all};
use almanac_primitives::{
    Genesis, Outcome,
    addresses::{CRON_REGISTRY, DEVELOPER_DOOR, LEDGER, PARAMETERS},
    params::CRON_PAUSED,
};

alloy_sol_types::sol!("../../contracts/IDoor.sol");
alloy_sol_types::sol!("../../contracts/IDeveloper.sol");

/// The address adds points as it does on Ethereum, and no input that could be added is taken for a call.
#[test]
fn attack_20_cron_shadows_ec_add() {
    let chain = TestChain::new();
    // The generator (1, 2), twice.
    let input: Vec<u8> =
        [1u64, 2, 1, 2].into_iter().flat_map(|n| U256::from(n).to_be_bytes::<32>()).collect();
    let sum = [
        b256!("0x030644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd3"),
        b256!("0x15ed738c0e0a7c92e7845f96b2ae9c0a68a6a449e3538fc7ff3ebf7a5a18a2c4"),
    ];
    for length in [128, 160, 132] {
        let mut padded = input.clone();
        padded.resize(length, 0);
        let result = chain.call(person(0).address, CRON_REGISTRY, padded);
        assert_eq!(result.output, sum.concat(), "{length} bytes");
    }
    for selector in ICronRegistry::ICronRegistryCalls::selectors() {
        assert!(u32::from_be_bytes(selector) > 0x3064_4e72, "no coordinate of a point begins like that");
    }
}

/// `0x06` as a sender has no key and cannot be borrowed.
#[test]
fn attack_21_spoofed_system_caller() {
    let mut chain = TestChain::new();
    let order = order(&chain);
    let id = chain.schedule(person(0), &order).unwrap();
    let state_before = chain.job(id);

    // In another frame: refused by name, and nothing changes.
    for proxy in [DELEGATOR, CODE_CALLER] {
        let receipt = chain.send(person(0), proxy, U256::ZERO, to(CRON_REGISTRY, &cancel_data(id)));
        let error = IDoor::DelegateCallRefused {};
        assert_eq!(receipt.outcome, Outcome::Reverted(error.abi_encode().into()));
    }
    let receipt = chain.send(person(0), STATIC_CALLER, U256::ZERO, to(CRON_REGISTRY, &cancel_data(id)));
    assert_eq!(receipt.outcome, Outcome::Reverted(IDoor::StaticCallRefused {}.abi_encode().into()));

    // An account that delegates to the registry (EIP-7702) does not become it.
    let bob = person(5);
    let delegate = eip7702(0, bob.address, vec![authorize(bob, 1, CRON_REGISTRY)], 100_000);
    chain.produce(vec![sign(delegate, bob.secret)]);
    assert!(chain.call(person(0).address, bob.address, cancel_data(id)).output.is_empty());
    let receipt = chain.send(person(0), bob.address, order.value, order.calldata());
    assert!(receipt.logs.is_empty(), "{receipt:?}");
    assert_eq!(chain.balance(LEDGER), order.value, "no other job");

    // Nor can one be created there.
    let created = person(0).address.create2(keccak256("salt"), keccak256(deploy(&[0])));
    assert_ne!(created, CRON_REGISTRY);
    let receipt = chain.send(person(0), CREATOR, U256::ZERO, deploy(&[0]));
    assert!(receipt.outcome.is_success());

    // A transaction in its name is none.
    let unsigned = eip1559(0, TxKind::Call(CRON_REGISTRY), 0, cancel_data(id), 100_000);
    let rules = Rules::read(CHAIN, &chain.state).unwrap();
    assert!(recover_all(&[impersonate(CRON_REGISTRY, unsigned)], &rules).is_err());
    assert_eq!(chain.job(id), state_before);
}

/// A run that calls an account which delegates (EIP-7702) runs the code of the delegate, in the account's name.
#[test]
fn attack_21_delegated_target() {
    let mut chain = TestChain::new();
    let bob = person(5);
    let delegate = eip7702(0, bob.address, vec![authorize(bob, 1, COUNTER)], 100_000);
    chain.produce(vec![sign(delegate, bob.secret)]);
    let order = order(&chain).calling(bob.address, vec![1, 2, 3, 4]);
    chain.schedule(person(0), &order).unwrap();
    assert!(chain.at(order.next_run_at.to()).runs()[0].outcome.is_success());
    assert_eq!(chain.state.slot_of(bob.address, CRON_REGISTRY), U256::ONE);
    assert_eq!(chain.state.slot_of(COUNTER, CRON_REGISTRY), U256::ZERO);
    assert_eq!(chain.nonce(bob.address), 2, "nobody transacts in its name");
}

/// A run calls as `0x06`, and `0x06` may do nothing that anybody may not.
#[test]
fn attack_22_job_borrows_system_authority() {
    let genesis = Genesis { governance: governor().address, ..developer_genesis() };
    let mut chain = TestChain::from_genesis(&genesis);
    let due = chain.next_seconds() + HOUR;
    let victim = chain.schedule(person(0), &order(&chain).at(due + HOUR)).unwrap();
    let pause =
        crate::attacks::IParameters::setCall { name: CRON_PAUSED.name_word(), value: U256::ONE }.abi_encode();
    let rob = IDeveloper::setBalanceCall { account: person(1).address, balance: U256::MAX >> 8 }.abi_encode();
    let free = order(&chain).at(due + HOUR).calldata();
    let attempts: [(Address, Bytes); 6] = [
        (CRON_REGISTRY, cancel_data(victim)),
        (CRON_REGISTRY, free),
        (PARAMETERS, pause.into()),
        (DEVELOPER_DOOR, rob.into()),
        (LEDGER, Bytes::from_static(&[1, 2, 3, 4])),
        (FORWARDER, to(CRON_REGISTRY, &cancel_data(victim))),
    ];
    let before = chain.job(victim);
    for (target, data) in &attempts {
        let order = order(&chain).at(due).calling(*target, data.clone()).gas(500_000);
        chain.schedule(person(1), &order.clone().with_value(order.value * U256::from(5))).unwrap();
    }
    // It sees who calls, and that nothing comes along.
    let witness = order(&chain).at(due).calling(WITNESS, vec![1, 2, 3, 4]).gas(200_000);
    chain.schedule(person(1), &witness).unwrap();

    let produced = chain.at(due);
    let outcomes: Vec<_> = produced.runs().iter().map(|run| run.outcome.is_success()).collect();
    assert_eq!(outcomes, [false, false, false, false, false, false, true]);
    assert_eq!(chain.job(victim), before);
    let registry = U256::from_be_slice(CRON_REGISTRY.as_slice());
    let seen = [0, 1, 2].map(|slot| chain.state.slot(WITNESS, slot));
    assert_eq!(seen, [registry, registry, U256::ZERO], "msg.sender, tx.origin, value");
    assert_eq!(chain.nonce(CRON_REGISTRY), TestChain::from_genesis(&genesis).nonce(CRON_REGISTRY));
}
