//! The params contract and the ledger, as wallets and contracts meet them.
#![allow(clippy::needless_pass_by_value, reason = "calls and errors are written where they are expected")]

use crate::support::{contracts::*, *};
use alloy_consensus::TxEip1559;
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, Log, TxKind, U256, keccak256};
use alloy_sol_types::{SolCall, SolError, SolEvent, SolInterface};
use almanac_exec::{
    BlockBody, BlockError, CallResult, Environment, StateFault, environment::read_parameters, execute,
};
use almanac_primitives::{
    Gas, GasPrice, Genesis, Halt, Outcome, StateKey, StateRead, StateReadError, UserTransaction,
    addresses::{LEDGER, PARAMETERS as DOOR, SYSTEM_ACCOUNTS},
    params::{
        BASE_FEE_FLOOR_WEI, BLOCK_GAS_MAX, CRON_BLOCK_GAS_MAX, GOVERNANCE_PENDING_SLOT, GOVERNANCE_SLOT,
        PARAMETERS, Parameter, RESERVED_BLOCK_GAS_MAX, SECOND_HIGH_EFFORT, SECOND_MEDIUM_EFFORT,
        SECOND_SHARED_EFFORT,
    },
};

alloy_sol_types::sol!("../../contracts/IDoor.sol");
alloy_sol_types::sol!("../../contracts/IParameters.sol");
use IParameters::{
    CronAboveHalfBlock, IParametersCalls as Method, IndexOutOfBounds, NotOwner, NotPendingOwner,
    OwnershipTransferStarted, OwnershipTransferred, ParameterOutOfBounds, ParameterSet, UnknownParameter,
    acceptOwnershipCall, boundsCall, countCall, getCall, nameAtCall, nextCall, ownerCall, pendingOwnerCall,
    setCall, transferOwnershipCall,
};

/// A chain whose parameters belong to person 0.
fn governed_by(governance: Address) -> TestChain {
    TestChain::from_genesis(&Genesis { governance, ..genesis() })
}

fn owned() -> TestChain {
    governed_by(person(0).address)
}

fn set(parameter: Parameter, value: u64) -> Bytes {
    setCall { name: parameter.name_word(), value: U256::from(value) }.abi_encode().into()
}

/// Reads a method as anyone can, in the block that would come next.
fn ask<C: SolCall>(chain: &TestChain, call: C) -> C::Return {
    let result = chain.call(person(9).address, DOOR, call.abi_encode());
    assert_eq!(result.outcome, Outcome::Success);
    C::abi_decode_returns(&result.output).unwrap()
}

fn get(chain: &TestChain, parameter: Parameter) -> u64 {
    ask(chain, getCall { name: parameter.name_word() }).to()
}

/// The revert data of a call must be this error with these numbers.
#[track_caller]
fn reverts_with<E: SolError>(result: &CallResult, error: E) {
    assert!(matches!(result.outcome, Outcome::Reverted(_)), "{:?}", result.outcome);
    assert_eq!(result.output, Bytes::from(error.abi_encode()));
}

#[track_caller]
fn reverted_with<E: SolError>(outcome: &Outcome, error: E) {
    assert_eq!(*outcome, Outcome::Reverted(error.abi_encode().into()));
}

/// A well-formed call of every method.
fn every_method() -> Vec<Method> {
    let name = BASE_FEE_FLOOR_WEI.name_word();
    vec![
        Method::get(getCall { name }),
        Method::next(nextCall { name }),
        Method::bounds(boundsCall { name }),
        Method::count(countCall {}),
        Method::nameAt(nameAtCall { index: U256::ZERO }),
        Method::set(setCall { name, value: U256::from(7) }),
        Method::owner(ownerCall {}),
        Method::pendingOwner(pendingOwnerCall {}),
        Method::transferOwnership(transferOwnershipCall { newOwner: person(0).address }),
        Method::acceptOwnership(acceptOwnershipCall {}),
    ]
}

fn signature(method: &Method) -> &'static str {
    Method::signature_by_selector(method.selector()).unwrap()
}

/// All that the door and the ledger store.
fn stored(chain: &TestChain) -> Vec<(StateKey, Bytes)> {
    let is_theirs =
        |key: &StateKey| matches!(key, StateKey::Slot(address, _) if SYSTEM_ACCOUNTS.contains(address));
    chain.state.0.iter().filter(|(key, _)| is_theirs(key)).map(|(key, value)| (*key, value.clone())).collect()
}

fn with_value(from: Person, nonce: u64, to: Address, value: u64, input: impl Into<Bytes>) -> UserTransaction {
    sign(eip1559(nonce, TxKind::Call(to), value, input, 500_000), from.secret)
}

#[test]
fn anyone_reads_everything() {
    let chain = owned();
    assert_eq!(ask(&chain, countCall {}), U256::from(PARAMETERS.len()));
    for (index, parameter) in PARAMETERS.into_iter().enumerate() {
        let name = parameter.name_word();
        assert_eq!(ask(&chain, nameAtCall { index: U256::from(index) }), name);
        assert_eq!(ask(&chain, getCall { name }), U256::from(parameter.default));
        assert_eq!(ask(&chain, nextCall { name }), U256::from(parameter.default));
        let bounds = ask(&chain, boundsCall { name });
        assert_eq!((bounds.min, bounds.max), (U256::from(parameter.min), U256::from(parameter.max)));
    }
    assert_eq!(ask(&chain, ownerCall {}), person(0).address);
    assert_eq!(ask(&chain, pendingOwnerCall {}), Address::ZERO);
}

#[test]
fn a_genesis_file_sets_them_too() {
    let mut genesis = genesis();
    genesis.parameters.insert("second_effort_shared".into(), 0);
    let chain = TestChain::from_genesis(&genesis);
    assert_eq!(get(&chain, SECOND_SHARED_EFFORT), 0, "zero is a value, not the default");
}

#[test]
fn every_selector_of_the_interface_is_served() {
    let chain = owned();
    let methods = every_method();
    assert_eq!(methods.len(), Method::COUNT, "the list above is complete");
    for method in &methods {
        let result = chain.call(person(0).address, DOOR, method.abi_encode());
        // Nobody has been offered the ownership.
        let is_refusal = matches!(method, Method::acceptOwnership(_));
        assert_eq!(result.outcome.is_success(), !is_refusal, "{}: {:?}", signature(method), result.outcome);
    }
    for index in 0..Method::COUNT {
        let selector = Method::selector_at(index).unwrap();
        let bare = chain.call(person(0).address, DOOR, selector.to_vec());
        assert_ne!(bare.output, Bytes::from(IDoor::UnknownMethod { selector: selector.into() }.abi_encode()));
        assert!(methods.iter().any(|method| method.selector() == selector));
    }
}

#[test]
fn every_error_carries_its_numbers() {
    let chain = owned();
    let (owner, stranger) = (person(0).address, person(1).address);
    let unknown = B256::right_padding_from(b"no_such_parameter");
    let floor = BASE_FEE_FLOOR_WEI;
    let name = floor.name_word();
    for input in [
        getCall { name: unknown }.abi_encode(),
        nextCall { name: unknown }.abi_encode(),
        boundsCall { name: unknown }.abi_encode(),
        setCall { name: unknown, value: U256::from(1) }.abi_encode(),
    ] {
        reverts_with(&chain.call(owner, DOOR, input), UnknownParameter { name: unknown });
    }
    for given in [U256::from(PARAMETERS.len()), U256::from(u64::MAX), U256::MAX] {
        let result = chain.call(owner, DOOR, nameAtCall { index: given }.abi_encode());
        reverts_with(&result, IndexOutOfBounds { given, count: U256::from(PARAMETERS.len()) });
    }
    let (min, max) = (U256::from(floor.min), U256::from(floor.max));
    for given in [min - U256::from(1), max + U256::from(1), U256::from(1) << 64, U256::MAX] {
        let result = chain.call(owner, DOOR, setCall { name, value: given }.abi_encode());
        reverts_with(&result, ParameterOutOfBounds { name, given, min, max });
    }
    for value in [min, max] {
        assert!(chain.call(owner, DOOR, setCall { name, value }.abi_encode()).outcome.is_success());
    }
    let result = chain.call(owner, DOOR, set(CRON_BLOCK_GAS_MAX, 15_000_001));
    let (cron, block) = (U256::from(15_000_001), U256::from(30_000_000));
    reverts_with(&result, CronAboveHalfBlock { cronBlockGas: cron, blockGas: block });
    for input in [set(floor, 7), transferOwnershipCall { newOwner: stranger }.abi_encode().into()] {
        reverts_with(&chain.call(stranger, DOOR, input), NotOwner { caller: stranger, owner });
    }
    let result = chain.call(stranger, DOOR, acceptOwnershipCall {}.abi_encode());
    reverts_with(&result, NotPendingOwner { caller: stranger, pendingOwner: Address::ZERO });
    // An empty proposal is nobody's, not even the zero address's.
    let result = chain.call(Address::ZERO, DOOR, acceptOwnershipCall {}.abi_encode());
    reverts_with(&result, NotPendingOwner { caller: Address::ZERO, pendingOwner: Address::ZERO });
}

#[test]
fn both_sides_of_every_bound() {
    // Neighbours as wide as can be, so that only the bound under test decides.
    let mut genesis = Genesis { governance: person(0).address, ..genesis() };
    genesis.parameters.insert(BLOCK_GAS_MAX.name.into(), BLOCK_GAS_MAX.max);
    genesis.parameters.insert(CRON_BLOCK_GAS_MAX.name.into(), CRON_BLOCK_GAS_MAX.min);
    for part in [SECOND_HIGH_EFFORT, SECOND_MEDIUM_EFFORT, SECOND_SHARED_EFFORT] {
        genesis.parameters.insert(part.name.into(), 0);
    }
    let narrow = TestChain::from_genesis(&genesis);
    genesis.parameters.insert(RESERVED_BLOCK_GAS_MAX.name.into(), RESERVED_BLOCK_GAS_MAX.max);
    let wide = TestChain::from_genesis(&genesis);
    for parameter in PARAMETERS {
        // It never falls, so it is tried from its least value.
        let chain = if parameter == RESERVED_BLOCK_GAS_MAX { &narrow } else { &wide };
        let try_set = |value: u64| chain.call(person(0).address, DOOR, set(parameter, value));
        assert!(try_set(parameter.min).outcome.is_success(), "{}", parameter.name);
        assert!(try_set(parameter.max).outcome.is_success(), "{}", parameter.name);
        assert!(!try_set(parameter.max + 1).outcome.is_success(), "{}", parameter.name);
        if let Some(below) = parameter.min.checked_sub(1) {
            assert!(!try_set(below).outcome.is_success(), "{}", parameter.name);
        }
    }
}

#[test]
fn a_change_takes_effect_in_the_next_block() {
    let mut chain = owned();
    let floor = BASE_FEE_FLOOR_WEI;
    let name = floor.name_word();
    let fee_before = Environment::derive(&chain.input(), &chain.state).unwrap().base_fee;
    let echo = |nonce, input: Vec<u8>| call(person(1), nonce, ECHO, to(DOOR, &input), 200_000);

    let produced = chain.produce(vec![
        call(person(0), 0, DOOR, set(floor, 5_000_000_000), 200_000),
        echo(0, getCall { name }.abi_encode()),
        echo(1, nextCall { name }.abi_encode()),
    ]);

    let word = |n: usize| U256::from_be_slice(&produced.receipt(n).logs[0].data.data);
    assert_eq!(word(1), U256::from(floor.default), "get: what is in force in this block");
    assert_eq!(word(2), U256::from(5_000_000_000u64), "next: what was set so far");
    let event =
        ParameterSet { name, oldValue: U256::from(floor.default), newValue: U256::from(5_000_000_000u64) };
    assert_eq!(produced.receipt(0).logs, [Log { address: DOOR, data: event.encode_log_data() }]);
    assert_eq!(chain.head.base_fee, fee_before, "this block was not changed");
    assert_eq!(read_parameters(&chain.state).unwrap().get(floor), 5_000_000_000);

    chain.produce(vec![]);

    assert_eq!(chain.head.base_fee, GasPrice(5_000_000_000), "the floor lifts the fee of the next block");
    assert_eq!(get(&chain, floor), 5_000_000_000);
    chain.replay();
}

#[test]
fn the_gas_limit_is_that_of_the_next_block() {
    let mut chain = owned();
    chain.produce(vec![call(person(0), 0, DOOR, set(BLOCK_GAS_MAX, 40_000_000), 200_000)]);
    assert_eq!(chain.head.gas_limit, Gas(30_000_000));
    chain.produce(vec![]);
    assert_eq!(chain.head.gas_limit, Gas(40_000_000));
}

#[test]
fn the_later_of_two_changes_counts() {
    let mut chain = owned();
    let produced = chain.produce(vec![
        call(person(0), 0, DOOR, set(BASE_FEE_FLOOR_WEI, 11), 200_000),
        call(person(0), 1, DOOR, set(BASE_FEE_FLOOR_WEI, 12), 200_000),
    ]);
    let event = ParameterSet::decode_log_data(&produced.receipt(1).logs[0].data).unwrap();
    assert_eq!((event.oldValue, event.newValue), (U256::from(11), U256::from(12)));
    assert_eq!(get(&chain, BASE_FEE_FLOOR_WEI), 12);
}

/// Relations hold for what the next block will have, whatever the order in which it came about.
#[test]
fn two_changes_in_one_block_cannot_break_a_relation() {
    let steps = |changes: [(Parameter, u64); 2]| {
        let mut chain = owned();
        let produced = chain.produce(
            changes
                .iter()
                .zip(0..)
                .map(|(&(p, v), n)| call(person(0), n, DOOR, set(p, v), 200_000))
                .collect(),
        );
        let outcomes = [0, 1].map(|n| produced.receipt(n).outcome.clone());
        read_parameters(&chain.state).unwrap().check_relations().unwrap();
        (outcomes, get(&chain, BLOCK_GAS_MAX), get(&chain, CRON_BLOCK_GAS_MAX))
    };
    let refusal = |cron: u64, block: u64| {
        let error = CronAboveHalfBlock { cronBlockGas: U256::from(cron), blockGas: U256::from(block) };
        Outcome::Reverted(error.abi_encode().into())
    };
    let (block, cron) = (BLOCK_GAS_MAX, CRON_BLOCK_GAS_MAX);
    // The second is allowed because of the first, in the same block.
    let grown = steps([(block, 40_000_000), (cron, 20_000_000)]);
    assert_eq!(grown, ([Outcome::Success, Outcome::Success], 40_000_000, 20_000_000));
    let wrong_order = steps([(cron, 20_000_000), (block, 40_000_000)]);
    assert_eq!(wrong_order, ([refusal(20_000_000, 30_000_000), Outcome::Success], 40_000_000, 15_000_000));
    let shrunk = steps([(cron, 10_000_000), (block, 20_000_000)]);
    assert_eq!(shrunk, ([Outcome::Success, Outcome::Success], 20_000_000, 10_000_000));
    let too_soon = steps([(block, 20_000_000), (cron, 10_000_000)]);
    assert_eq!(too_soon, ([refusal(15_000_000, 20_000_000), Outcome::Success], 30_000_000, 10_000_000));
    // Each fine by itself on the parent's state, together not.
    let together = steps([(cron, 15_000_000), (block, 29_999_999)]);
    assert_eq!(together, ([Outcome::Success, refusal(15_000_000, 29_999_999)], 30_000_000, 15_000_000));
}

#[test]
fn ownership_changes_hands_in_two_steps() {
    let mut chain = owned();
    let (old, new, other) = (person(0), person(1), person(2));
    let offer = |to: Person| Bytes::from(transferOwnershipCall { newOwner: to.address }.abi_encode());
    let accept = || Bytes::from(acceptOwnershipCall {}.abi_encode());

    let produced = chain.produce(vec![
        call(old, 0, DOOR, offer(other), 200_000),
        call(old, 1, DOOR, offer(new), 200_000),
        call(other, 0, DOOR, accept(), 200_000),
        // Until it is accepted, nothing has changed.
        call(old, 2, DOOR, set(BASE_FEE_FLOOR_WEI, 21), 200_000),
        call(new, 0, DOOR, set(BASE_FEE_FLOOR_WEI, 22), 200_000),
    ]);

    let started = OwnershipTransferStarted { previousOwner: old.address, newOwner: new.address };
    assert_eq!(produced.receipt(1).logs, [Log { address: DOOR, data: started.encode_log_data() }]);
    reverted_with(
        &produced.receipt(2).outcome,
        NotPendingOwner { caller: other.address, pendingOwner: new.address },
    );
    assert!(produced.receipt(3).outcome.is_success());
    reverted_with(&produced.receipt(4).outcome, NotOwner { caller: new.address, owner: old.address });
    assert_eq!(ask(&chain, pendingOwnerCall {}), new.address);

    let produced = chain.produce(vec![
        call(new, 1, DOOR, accept(), 200_000),
        call(new, 2, DOOR, set(BASE_FEE_FLOOR_WEI, 23), 200_000),
        call(old, 3, DOOR, set(BASE_FEE_FLOOR_WEI, 24), 200_000),
        call(new, 3, DOOR, accept(), 200_000),
    ]);

    let transferred = OwnershipTransferred { previousOwner: old.address, newOwner: new.address };
    assert_eq!(produced.receipt(0).logs, [Log { address: DOOR, data: transferred.encode_log_data() }]);
    assert!(produced.receipt(1).outcome.is_success(), "in the same block already");
    reverted_with(&produced.receipt(2).outcome, NotOwner { caller: old.address, owner: new.address });
    reverted_with(
        &produced.receipt(3).outcome,
        NotPendingOwner { caller: new.address, pendingOwner: Address::ZERO },
    );
    assert_eq!((ask(&chain, ownerCall {}), ask(&chain, pendingOwnerCall {})), (new.address, Address::ZERO));
    assert_eq!(get(&chain, BASE_FEE_FLOOR_WEI), 23);
    chain.replay();
}

#[test]
fn an_offer_can_be_taken_back() {
    let mut chain = owned();
    let offer = |to| Bytes::from(transferOwnershipCall { newOwner: to }.abi_encode());
    let produced = chain.produce(vec![
        call(person(0), 0, DOOR, offer(person(1).address), 200_000),
        call(person(0), 1, DOOR, offer(Address::ZERO), 200_000),
        call(person(1), 0, DOOR, acceptOwnershipCall {}.abi_encode(), 200_000),
    ]);
    let (caller, nobody) = (person(1).address, Address::ZERO);
    reverted_with(&produced.receipt(2).outcome, NotPendingOwner { caller, pendingOwner: nobody });
    assert_eq!(ask(&chain, ownerCall {}), person(0).address);
}

/// A contract owns the door as a timelock would.
#[test]
fn a_contract_can_be_the_owner() {
    let mut chain = governed_by(FORWARDER);
    let produced =
        chain.produce(vec![call(person(1), 0, FORWARDER, to(DOOR, &set(BASE_FEE_FLOOR_WEI, 31)), 200_000)]);
    assert!(produced.receipt(0).outcome.is_success());
    assert_eq!(produced.receipt(0).logs[0].address, DOOR);
    assert_eq!(get(&chain, BASE_FEE_FLOOR_WEI), 31);
}

#[test]
fn a_caller_that_reverts_takes_the_change_and_its_log_with_it() {
    let mut chain = governed_by(FORWARD_AND_REVERT);
    let before = stored(&chain);
    let produced = chain.produce(vec![call(
        person(1),
        0,
        FORWARD_AND_REVERT,
        to(DOOR, &set(BASE_FEE_FLOOR_WEI, 31)),
        200_000,
    )]);
    assert_eq!(produced.receipt(0).outcome, Outcome::Reverted(Bytes::new()), "the door itself was content");
    assert!(produced.receipt(0).logs.is_empty());
    assert_eq!(stored(&chain), before);
    // The revert of the inner call alone is undone alone.
    let inner = to(FORWARD_AND_REVERT, &to(DOOR, &set(BASE_FEE_FLOOR_WEI, 31)));
    let produced = chain.produce(vec![call(person(1), 1, ECHO, inner, 300_000)]);
    assert!(produced.receipt(0).outcome.is_success());
    assert_eq!(stored(&chain), before);
}

#[test]
fn a_change_that_runs_out_of_gas_is_none() {
    let input = set(BASE_FEE_FLOOR_WEI, 31);
    let mut chain = owned();
    let before = stored(&chain);
    let used = chain.call(person(0).address, DOOR, input.clone()).gas_used.0;
    for (nonce, gas) in (22_370..used).step_by(701).chain([used - 1]).enumerate() {
        let produced = chain.produce(vec![call(person(0), nonce as u64, DOOR, input.clone(), gas)]);
        assert_eq!(produced.receipt(0).outcome, Outcome::Halted(Halt::OutOfGas), "{gas} of {used}");
        assert_eq!(produced.receipt(0).gas_used, Gas(gas), "all of it is gone");
        assert!(produced.receipt(0).logs.is_empty());
        assert_eq!(stored(&chain), before);
    }
    let nonce = chain.nonce(person(0).address);
    let produced = chain.produce(vec![call(person(0), nonce, DOOR, input, used)]);
    assert!(produced.receipt(0).outcome.is_success(), "the last unit decides");
    assert_eq!(get(&chain, BASE_FEE_FLOOR_WEI), 31);
}

/// Gas follows the EVM's own prices: 2,100 for a cold slot, 20,000 for a new one, 375 per log and topic. Any call of
/// a door costs 100 beside.
#[test]
fn gas_is_that_of_a_contract() {
    let intrinsic =
        |input: &[u8]| 21_000 + input.iter().map(|byte| if *byte == 0 { 4 } else { 16 }).sum::<u64>();
    let floor =
        |input: &[u8]| 21_000 + input.iter().map(|byte| if *byte == 0 { 10 } else { 40 }).sum::<u64>();
    let words = |bytes: usize| 12 * bytes.div_ceil(32) as u64;
    let name = BASE_FEE_FLOOR_WEI.name_word();
    let slots = PARAMETERS.len() as u64;
    let log = |topics: u64, bytes: u64| 375 + 375 * topics + 8 * bytes;
    let set_once = set(BASE_FEE_FLOOR_WEI, 31);
    let set_again = set(BASE_FEE_FLOOR_WEI, 32);
    let offer = Bytes::from(transferOwnershipCall { newOwner: person(1).address }.abi_encode());
    let accept = Bytes::from(acceptOwnershipCall {}.abi_encode());
    // (who, calldata, bytes returned, gas of the work, refund)
    let cases: Vec<(Person, Bytes, usize, u64, u64)> = vec![
        (person(0), getCall { name }.abi_encode().into(), 32, 0, 0),
        (person(0), nextCall { name }.abi_encode().into(), 32, 2_100, 0),
        (person(0), boundsCall { name }.abi_encode().into(), 64, 0, 0),
        (person(0), ownerCall {}.abi_encode().into(), 32, 2_100, 0),
        // Owner and all parameters are read, so the slot is warm when it is written for the first time.
        (person(0), set_once, 0, 2_100 * (1 + slots) + 20_000 + log(2, 64), 0),
        (person(0), set_again.clone(), 0, 2_100 * (1 + slots) + 2_900 + log(2, 64), 0),
        (person(0), set_again, 0, 2_100 * (1 + slots) + 100 + log(2, 64), 0),
        (person(0), offer, 0, 2_100 + 22_100 + log(3, 0), 0),
        (person(1), accept, 0, 2 * 2_100 + 2 * 2_900 + log(3, 0), 4_800),
    ];
    let mut chain = owned();
    for (from, input, returned, work, refund) in cases {
        let nonce = chain.nonce(from.address);
        let produced = chain.produce(vec![call(from, nonce, DOOR, input.clone(), 200_000)]);
        assert!(produced.receipt(0).outcome.is_success());
        let spent = intrinsic(&input) + 120 + words(input.len()) + words(returned) + work;
        let expected = (spent - refund.min(spent / 5)).max(floor(&input));
        assert_eq!(produced.receipt(0).gas_used, Gas(expected), "{input}");
    }
}

#[test]
fn a_static_call_reads_and_changes_nothing() {
    // The static caller owns the door, so that nothing but the static call stands in the way.
    let mut chain = governed_by(STATIC_CALLER);
    let before = stored(&chain);
    for (nonce, method) in every_method().into_iter().enumerate() {
        let input = to(DOOR, &method.abi_encode());
        let produced = chain.produce(vec![call(person(1), nonce as u64, STATIC_CALLER, input, 500_000)]);
        let outcome = &produced.receipt(0).outcome;
        match method {
            Method::set(_) | Method::transferOwnership(_) => {
                reverted_with(outcome, IDoor::StaticCallRefused {});
            }
            Method::acceptOwnership(_) => {
                reverted_with(
                    outcome,
                    NotPendingOwner { caller: STATIC_CALLER, pendingOwner: Address::ZERO },
                );
            }
            _ => assert_eq!(*outcome, Outcome::Success, "{}", signature(&method)),
        }
        assert!(produced.receipt(0).logs.is_empty());
        assert_eq!(stored(&chain), before);
    }
}

/// A static context deeper down counts as well.
#[test]
fn a_call_inside_a_static_call_is_static() {
    let chain = governed_by(FORWARDER);
    let inner = to(FORWARDER, &to(DOOR, &set(BASE_FEE_FLOOR_WEI, 31)));
    let result = chain.call(person(1).address, STATIC_CALLER, inner);
    reverts_with(&result, IDoor::StaticCallRefused {});
}

#[test]
fn nobody_borrows_the_code_of_a_door() {
    for borrower in [DELEGATOR, CODE_CALLER] {
        let mut chain = governed_by(borrower);
        let before = stored(&chain);
        let own = |chain: &TestChain| {
            let is_own = |key: &&StateKey| matches!(key, StateKey::Slot(address, _) if *address == borrower);
            chain.state.0.keys().filter(is_own).count()
        };
        let doors = every_method().into_iter().map(|method| (DOOR, method.abi_encode()));
        for (nonce, (door, input)) in doors.chain([(LEDGER, vec![]), (DOOR, vec![])]).enumerate() {
            let input = to(door, &input);
            let produced = chain.produce(vec![call(person(1), nonce as u64, borrower, input, 500_000)]);
            reverted_with(&produced.receipt(0).outcome, IDoor::DelegateCallRefused {});
            assert_eq!((stored(&chain), own(&chain)), (before.clone(), 0));
        }
        // With value, where the opcode can carry any.
        let input = to(DOOR, &countCall {}.abi_encode());
        let nonce = chain.nonce(person(1).address);
        let produced = chain.produce(vec![with_value(person(1), nonce, borrower, 5, input)]);
        reverted_with(&produced.receipt(0).outcome, IDoor::DelegateCallRefused {});
        assert_eq!(chain.balance(DOOR) + chain.balance(borrower), U256::ZERO);
    }
}

#[test]
fn no_method_takes_value() {
    // Owner and offered owner are the same, so that every method would pass without value.
    let mut chain = owned();
    let alice = person(0);
    chain.produce(vec![call(
        alice,
        0,
        DOOR,
        transferOwnershipCall { newOwner: alice.address }.abi_encode(),
        200_000,
    )]);
    let before = stored(&chain);
    for (nonce, method) in every_method().into_iter().enumerate() {
        let transaction = with_value(alice, 1 + nonce as u64, DOOR, 9, method.abi_encode());
        let produced = chain.produce(vec![transaction]);
        reverted_with(&produced.receipt(0).outcome, IDoor::NotPayable { value: U256::from(9) });
        assert!(produced.receipt(0).logs.is_empty());
        assert_eq!(
            (stored(&chain), chain.balance(DOOR)),
            (before.clone(), U256::ZERO),
            "{}",
            signature(&method)
        );
    }
    // Nor does a contract get money in by a call.
    let nonce = chain.nonce(alice.address);
    let input = to(DOOR, &countCall {}.abi_encode());
    let produced = chain.produce(vec![with_value(alice, nonce, FORWARDER, 9, input)]);
    reverted_with(&produced.receipt(0).outcome, IDoor::NotPayable { value: U256::from(9) });
}

#[test]
fn what_is_not_a_call_of_a_method_is_refused_by_name() {
    let chain = owned();
    let alice = person(0).address;
    let unknown = |selector: [u8; 4]| IDoor::UnknownMethod { selector: selector.into() };
    reverts_with(&chain.call(alice, DOOR, vec![]), unknown([0; 4]));
    let selector = getCall::SELECTOR;
    for length in 1..4 {
        reverts_with(&chain.call(alice, DOOR, selector[..length].to_vec()), unknown([0; 4]));
    }
    let strange = [0xde, 0xad, 0xbe, 0xef];
    assert!(!Method::valid_selector(strange));
    reverts_with(&chain.call(alice, DOOR, strange.to_vec()), unknown(strange));
    reverts_with(&chain.call(alice, DOOR, [&strange[..], &[0; 64]].concat()), unknown(strange));
    // Every argument cut short by any number of bytes.
    for method in every_method() {
        let input = method.abi_encode();
        for length in 4..input.len() {
            let malformed = IDoor::MalformedArguments { selector: method.selector().into() };
            reverts_with(&chain.call(alice, DOOR, input[..length].to_vec()), malformed);
        }
    }
    // An address with anything in its upper 12 bytes is none.
    let clean = transferOwnershipCall { newOwner: person(1).address }.abi_encode();
    for position in 4..16 {
        let mut dirty = clean.clone();
        dirty[position] = 1;
        let malformed = IDoor::MalformedArguments { selector: transferOwnershipCall::SELECTOR.into() };
        reverts_with(&chain.call(alice, DOOR, dirty), malformed);
    }
    // Bytes behind the arguments mean nothing, as in Solidity.
    let result = chain.call(alice, DOOR, [&countCall {}.abi_encode()[..], &[7; 40]].concat());
    assert_eq!(result.outcome, Outcome::Success);
}

/// Garbage of any size ends in a revert or in running out of gas, never in anything else.
#[test]
fn garbage_is_never_more_than_a_revert() {
    use proptest::{prelude::*, test_runner::TestRunner};
    let chain = owned();
    let selectors: Vec<_> = (0..Method::COUNT).map(|index| Method::selector_at(index).unwrap()).collect();
    let selector = prop_oneof![any::<[u8; 4]>(), proptest::sample::select(selectors),];
    let input = (selector, proptest::collection::vec(any::<u8>(), 0..100));
    TestRunner::new(ProptestConfig { cases: 512, ..Default::default() })
        .run(&input, |(selector, rest)| {
            let input = [&selector[..], &rest].concat();
            for door in [DOOR, LEDGER] {
                chain.try_call(person(1).address, door, input.clone()).unwrap();
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn the_ledger_answers_no_call() {
    let mut chain = owned();
    let alice = person(0);
    let refused = || IDoor::LedgerAnswersNoCall {};
    for input in [vec![], vec![1, 2, 3, 4], countCall {}.abi_encode()] {
        reverts_with(&chain.call(alice.address, LEDGER, input.clone()), refused());
        reverts_with(&chain.call(alice.address, FORWARDER, to(LEDGER, &input)), refused());
        reverts_with(&chain.call(alice.address, STATIC_CALLER, to(LEDGER, &input)), refused());
    }
    let produced = chain.produce(vec![
        with_value(alice, 0, LEDGER, 5, vec![]),
        with_value(alice, 1, FORWARDER, 5, to(LEDGER, &[])),
    ]);
    reverted_with(&produced.receipt(0).outcome, refused());
    reverted_with(&produced.receipt(1).outcome, refused());
    assert_eq!(chain.balance(LEDGER), U256::ZERO, "money comes in through a door or not at all");
}

/// Nobody can refuse what a dying contract leaves, nor the tips of a block: it is balance and nothing more.
#[test]
fn money_forced_on_a_system_account_is_just_balance() {
    let mut chain = owned();
    let alice = person(0);
    let before = stored(&chain);
    let mut nonce = 0;
    for heir in [LEDGER, DOOR] {
        let produced = chain.produce(vec![
            with_value(alice, nonce, CREATOR, 11, born_to_die(heir)),
            // An old contract keeps existing and gives away what it has.
            with_value(alice, nonce + 1, DESTRUCTIBLE, 13, to(heir, &[])),
        ]);
        nonce += 2;
        assert!(produced.receipt(0).outcome.is_success() && produced.receipt(1).outcome.is_success());
        assert_eq!(chain.balance(heir), U256::from(24));
    }
    let input = almanac_exec::BlockInput { fee_recipient: LEDGER, ..chain.input() };
    let tips = chain.produce_with(&input, vec![transfer(alice, nonce, person(1).address, 1)]).output.receipts
        [1]
    .gas_used;
    assert_eq!(chain.balance(LEDGER), U256::from(24) + U256::from(tips.0) * U256::from(1_000_000_000));
    assert_eq!(stored(&chain), before);
    system_accounts_are_whole(&chain);
    chain.replay();
}

/// Nonce 1 and a byte of code: what keeps EIP-161 from wiping their storage.
fn system_accounts_are_whole(chain: &TestChain) {
    for address in SYSTEM_ACCOUNTS {
        let account = chain.state.account(address);
        assert_eq!((account.nonce, account.code_hash), (1, keccak256([system_code(address)])), "{address}");
        assert_ne!(account.code_hash, KECCAK256_EMPTY);
    }
}

#[test]
fn touching_system_accounts_leaves_them_whole() {
    let mut chain = owned();
    let before = stored(&chain);
    for (n, address) in SYSTEM_ACCOUNTS.into_iter().enumerate() {
        let nonce = 3 * n as u64;
        chain.produce(vec![
            with_value(person(0), nonce, address, 0, vec![]),
            with_value(person(0), nonce + 1, address, 1, vec![]),
            with_value(person(0), nonce + 2, FORWARDER, 0, to(address, &[1, 2, 3, 4])),
        ]);
        system_accounts_are_whole(&chain);
        assert_eq!(stored(&chain), before);
    }
    chain.replay();
}

/// EIP-7702: an account that borrows a door's address gets the code that stands there, STOP, and never the
/// native door: not its storage, not its authority.
#[test]
fn a_delegation_to_a_door_opens_nothing() {
    for door in [DOOR, LEDGER] {
        let mut chain = owned();
        let (owner, bob) = (person(0), person(1));
        let before = stored(&chain);
        let delegating = eip7702(0, bob.address, vec![authorize(bob, 0, door)], 300_000);
        let delegating = alloy_consensus::TxEip7702 { input: set(BASE_FEE_FLOOR_WEI, 31), ..delegating };
        let produced = chain.produce(vec![
            sign(delegating, owner.secret),
            call(owner, 1, bob.address, set(BASE_FEE_FLOOR_WEI, 31), 300_000),
            call(owner, 2, FORWARDER, to(bob.address, &set(BASE_FEE_FLOOR_WEI, 31)), 300_000),
            call(owner, 3, DELEGATOR, to(bob.address, &set(BASE_FEE_FLOOR_WEI, 31)), 300_000),
        ]);
        for n in 0..4 {
            assert_eq!(produced.receipt(n).outcome, Outcome::Success, "as a call of an account without code");
        }
        let designator = keccak256([&[0xef, 0x01, 0x00], door.as_slice()].concat());
        assert_eq!(
            chain.state.account(bob.address).code_hash,
            designator,
            "the delegation itself is in force"
        );
        // The owner's own account, borrowed by the owner itself.
        let own = vec![authorize(owner, 5, door)];
        let own = alloy_consensus::TxEip7702 {
            input: set(BASE_FEE_FLOOR_WEI, 31),
            ..eip7702(4, owner.address, own, 300_000)
        };
        let produced = chain.produce(vec![sign(own, owner.secret)]);
        assert_eq!(produced.receipt(0).outcome, Outcome::Success);
        assert_eq!(stored(&chain), before);
        let is_foreign = |key: &&StateKey| matches!(key, StateKey::Slot(address, _) if [bob.address, owner.address].contains(address));
        assert_eq!(chain.state.0.keys().filter(is_foreign).count(), 0);
        system_accounts_are_whole(&chain);
        chain.replay();
    }
}

/// Nothing stops an account that delegates to a door from signing, or from governing as itself.
#[test]
fn a_delegating_owner_still_governs() {
    let mut chain = owned();
    let owner = person(0);
    chain.produce(vec![sign(
        eip7702(0, person(1).address, vec![authorize(owner, 1, DOOR)], 300_000),
        owner.secret,
    )]);
    let produced = chain.produce(vec![call(owner, 2, DOOR, set(BASE_FEE_FLOOR_WEI, 31), 300_000)]);
    assert!(produced.receipt(0).outcome.is_success());
}

/// State in which one value cannot be read.
struct Broken<'a>(&'a MapState, StateKey);

impl StateRead for Broken<'_> {
    fn read(&self, key: StateKey) -> Result<Option<Bytes>, StateReadError> {
        if key == self.1 {
            return Err(StateReadError::failed(key, "the disk is on fire"));
        }
        self.0.read(key)
    }
}

/// A store that fails inside a door is the world's failure, as anywhere else: not a fault of ours, and not a
/// receipt that other nodes would not have.
#[test]
fn a_store_that_fails_inside_a_door_is_not_a_broken_invariant() {
    let chain = owned();
    for slot in [GOVERNANCE_SLOT, GOVERNANCE_PENDING_SLOT] {
        let key = StateKey::Slot(DOOR, U256::from(slot));
        let state = Broken(&chain.state, key);
        let reads = |nonce, to, input: Bytes| {
            sign(eip1559(nonce, TxKind::Call(to), 0, input, 200_000), person(1).secret)
        };
        let input = if slot == GOVERNANCE_SLOT {
            ownerCall {}.abi_encode()
        } else {
            pendingOwnerCall {}.abi_encode()
        };
        for transaction in [reads(0, DOOR, input.clone().into()), reads(0, ECHO, to(DOOR, &input))] {
            let mut body = BlockBody::new(vec![recovered(transaction)]);
            let error = execute(&state, &*chain.agenda, &chain.input(), &mut body).unwrap_err();
            let BlockError::State(StateFault::Read(error)) = error else { panic!("{error:?}") };
            assert_eq!(error.key, key);
        }
    }
    // And the same for a slot that a contract reads.
    let key = StateKey::Slot(WITNESS, U256::ZERO);
    let tx = TxEip1559 { ..eip1559(0, TxKind::Call(WITNESS), 0, Bytes::new(), 200_000) };
    let mut body = BlockBody::new(vec![recovered(sign(tx, person(1).secret))]);
    let error = execute(&Broken(&chain.state, key), &*chain.agenda, &chain.input(), &mut body).unwrap_err();
    assert!(matches!(error, BlockError::State(StateFault::Read(_))), "{error:?}");
}
