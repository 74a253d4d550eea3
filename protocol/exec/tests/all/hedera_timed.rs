//! Schedules of the schedule service that wait for their second (HEDERA-20, -21).

use crate::{
    attacks::{governor, set_parameter},
    keys::rotating,
    support::{contracts::*, native::*, signed::*, *},
};
use alloy_primitives::{Address, TxKind, U256};
use alloy_sol_types::{SolCall as _, SolEvent as _};
use almanac_exec::Executed;
use almanac_primitives::{
    Genesis, Lane, ScheduleId, TimestampMs,
    addresses::SCHEDULE_SERVICE,
    params::{CALLBACK_ENABLED, EFFORT_GAS, SIGNED_ENABLED, SIGNED_PAUSED},
};

const COIN: u64 = 1_000_000_000_000_000_000;

/// Gas that is booked to judge an account with one leaf: its key, a signature and a call.
const JUDGING_GAS: u64 = 9 * EFFORT_GAS;

/// One call of person 1 at a second.
fn at(second: u64) -> Wish {
    let mut wish = Wish::new(vec![service_call(person(1).address, COUNTER)]);
    wish.body.executionTime = second;
    wish.body.waitForExpiry = true;
    wish
}

/// What a Medium callback of as much gas costs, with that of judging so many accounts of one leaf each: five times its
/// gas at the floor of a gwei.
fn fee(gas: u64, accounts: u64) -> U256 {
    let gas = gas + accounts * JUDGING_GAS;
    U256::from(gas.div_ceil(EFFORT_GAS) * EFFORT_GAS) * U256::from(5_000_000_000u64)
}

fn book(chain: &mut TestChain, wish: &Wish, value: U256) -> Produced {
    let nonce = chain.nonce(person(0).address);
    let mut tx = eip1559(nonce, TxKind::Call(SCHEDULE_SERVICE), 0, wish.create(vec![]), PLENTY_GAS);
    tx.value = value;
    chain.produce(vec![sign(tx, person(0).secret)])
}

fn booked(chain: &mut TestChain, wish: &Wish) -> ScheduleId {
    let produced = book(chain, wish, U256::from(COIN));
    assert_eq!(code(produced.receipt(0)), 22);
    created(produced.receipt(0))
}

fn produce_at(chain: &mut TestChain, second: u64) -> Produced {
    let input = chain.input_at(TimestampMs(second * 1_000));
    chain.produce_with(&input, vec![])
}

fn count(chain: &TestChain, account: Address) -> u64 {
    runs::count_of(&chain.state, account).to()
}

/// HEDERA-20: signed in time it runs at its second, before user transactions, and not when the last signature comes.
#[test]
fn hedera_20_it_runs_at_its_second_if_all_have_signed() {
    let mut chain = TestChain::new();
    let second = chain.input().timestamp.seconds() + 10;
    let mut wish = at(second);
    wish.body.calls.push(service_call(person(2).address, COUNTER));
    let before = chain.balance(person(0).address);
    let produced = book(&mut chain, &wish, U256::from(COIN));
    let id = created(produced.receipt(0));
    let paid = produced.receipt(0).gas_used.cost(produced.receipt(0).effective_gas_price).0;
    assert_eq!(
        before - chain.balance(person(0).address) - paid,
        fee(200_000, 2),
        "the creator prepays, the rest returns"
    );
    assert_eq!(chain.add(person(1), id, vec![wish.signed(person(2))]), 22);
    assert_eq!((count(&chain, person(1).address), chain.info(id).0), (0, 22), "it waits");
    assert_eq!(chain.add(person(9), id, vec![]), 205);
    let early = produce_at(&mut chain, second - 1);
    assert_eq!(run_codes(&early), []);
    let produced = produce_at(&mut chain, second);
    assert_eq!(run_codes(&produced), [(id.0, 22)]);
    let Executed::Run(run) = &produced.output.transactions[1] else { panic!("a run") };
    assert_eq!((run.lane, &run.input), (Lane::Reserved, &wish.bytes()));
    assert_eq!(produced.output.reserved_gas_used, produced.output.receipts[1].gas_used);
    assert_eq!((count(&chain, person(1).address), count(&chain, person(2).address)), (1, 1));
    assert_eq!((chain.info(id).1.ended, chain.round_of(&wish)), (1, 1));
    chain.replay();
}

/// HEDERA-20: without a signature it expires, and half of what was prepaid returns.
#[test]
fn hedera_20_it_expires_if_a_signature_is_missing() {
    let mut chain = TestChain::new();
    let second = chain.input().timestamp.seconds() + 10;
    let id = booked(&mut chain, &at(second));
    let before = chain.balance(person(0).address);
    let produced = produce_at(&mut chain, second);
    assert_eq!(ScheduleExpired::decode_log(&produced.output.receipts[0].logs[0]).unwrap().id, id.0);
    assert_eq!(chain.balance(person(0).address) - before, fee(200_000, 1) / U256::from(2));
    assert_eq!((chain.info(id).0, chain.info(id).1.ended, chain.round_of(&at(second))), (212, 3, 0));
    chain.replay();
}

/// A switch holds what it names: at its second nothing runs, and all that was prepaid returns.
#[test]
fn hedera_20_a_service_that_is_switched_off_runs_nothing() {
    for (parameter, value) in [(SIGNED_PAUSED, 1), (SIGNED_ENABLED, 0)] {
        let mut chain = TestChain::from_genesis(&Genesis { governance: governor().address, ..genesis() });
        let second = chain.input().timestamp.seconds() + 20;
        let wish = at(second);
        let id = booked(&mut chain, &wish);
        assert_eq!(chain.add(person(9), id, vec![wish.signed(person(1))]), 22);
        set_parameter(&mut chain, parameter, value);
        let before = chain.balance(person(0).address);
        let produced = produce_at(&mut chain, second);
        assert_eq!(run_codes(&produced), [], "{}", parameter.name);
        assert_eq!(ScheduleExpired::decode_log(&produced.output.receipts[0].logs[0]).unwrap().id, id.0);
        assert_eq!(chain.balance(person(0).address) - before, fee(200_000, 1));
        assert_eq!((chain.info(id).1.ended, chain.round_of(&wish)), (3, 0), "its signatures are not spent");
        chain.replay();
    }
}

/// The callbacks' switch holds their lane. What waits there past its second can be deleted, so that no money is locked.
#[test]
fn hedera_08_what_no_block_takes_up_can_be_deleted() {
    let mut chain = TestChain::from_genesis(&Genesis { governance: governor().address, ..genesis() });
    let second = chain.input().timestamp.seconds() + 20;
    let wish = Wish { admin_key: Key::from(person(5)).encoded(), ..at(second) };
    let id = booked(&mut chain, &wish);
    set_parameter(&mut chain, CALLBACK_ENABLED, 0);
    produce_at(&mut chain, second + 86_400);
    let before = chain.balance(person(0).address);
    assert_eq!(chain.add(person(1), id, vec![]), 314, "nobody signs it any more");
    assert_eq!(chain.delete(person(4), id, vec![]), 7);
    assert_eq!(chain.delete(person(5), id, vec![]), 22);
    assert_eq!(chain.balance(person(0).address) - before, fee(200_000, 1), "its lane stood still");
    chain.replay();
}

/// Readiness is judged at the second: who rotated since has not signed.
#[test]
fn hedera_20_a_rotation_voids_what_the_old_key_signed() {
    let mut chain = TestChain::new();
    let second = chain.input().timestamp.seconds() + 10;
    let id = booked(&mut chain, &at(second));
    assert_eq!(chain.add(person(1), id, vec![]), 22);
    let key = Key::from(ed_person(1));
    chain.produce(vec![rotating(person(1), 1, &key.encoded(), 1, &[key])]);
    let produced = produce_at(&mut chain, second);
    assert_eq!((run_codes(&produced).len(), chain.info(id).1.ended), (0, 3));
}

/// Deleted, half of it returns, and the room is free again.
#[test]
fn hedera_21_a_deletion_frees_the_room() {
    let mut chain = TestChain::new();
    let second = chain.input().timestamp.seconds() + 10;
    let wish = Wish { admin_key: Key::from(person(5)).encoded(), ..at(second) };
    let id = booked(&mut chain, &wish);
    let before = chain.balance(person(0).address);
    assert_eq!(chain.delete(person(5), id, vec![]), 22);
    assert_eq!(chain.balance(person(0).address) - before, fee(200_000, 1) / U256::from(2));
    chain.replay();
}

/// HEDERA-21: the value covers the fee, or nothing happens.
#[test]
fn hedera_21_both_sides_of_the_fee() {
    let mut chain = TestChain::new();
    let second = chain.input().timestamp.seconds() + 60;
    let short = book(&mut chain, &at(second), fee(200_000, 1) - U256::ONE);
    assert_eq!(code(short.receipt(0)), 9);
    let exact = book(&mut chain, &at(second), fee(200_000, 1));
    assert_eq!(code(exact.receipt(0)), 22);
    let again = book(&mut chain, &at(second), U256::ZERO);
    assert_eq!(code(again.receipt(0)), 22, "what is there already is paid");
}

/// HEDERA-21: a full second refuses, and says so before.
#[test]
fn hedera_21_a_full_second_is_busy() {
    let parameters = [("second_effort_medium", 100), ("second_effort_shared", 0), ("second_effort_high", 0)];
    let parameters = parameters.map(|(name, value)| (name.to_owned(), value)).into();
    let mut chain = TestChain::from_genesis(&Genesis { parameters, ..genesis() });
    let second = chain.input().timestamp.seconds() + 60;
    let has = |chain: &TestChain, second: u64, gas: u64| {
        let asked = hasScheduleCapacityCall { second: U256::from(second), gasLimit: U256::from(gas) };
        let result = chain.call(person(7).address, SCHEDULE_SERVICE, asked.abi_encode());
        assert!(result.gas_used.0 < 21_000 + 6_000, "about the price of a read: {:?}", result.gas_used);
        hasScheduleCapacityCall::abi_decode_returns(&result.output).unwrap()
    };
    let gas = |gas, nonce| {
        let mut wish = at(second);
        (wish.body.gasLimit, wish.body.nonce) = (gas, nonce);
        wish
    };
    assert!(has(&chain, second, 91 * EFFORT_GAS) && !has(&chain, second, 91 * EFFORT_GAS + 1));
    booked(&mut chain, &gas(51 * EFFORT_GAS, 0));
    assert!(has(&chain, second, 31 * EFFORT_GAS) && !has(&chain, second, 31 * EFFORT_GAS + 1));
    let full = book(&mut chain, &gas(31 * EFFORT_GAS + 1, 1), U256::from(COIN));
    assert_eq!(code(full.receipt(0)), 370);
    booked(&mut chain, &gas(31 * EFFORT_GAS, 2));
    assert!(!has(&chain, second, 21_000) && has(&chain, second + 1, 21_000));
    let now = chain.input().timestamp.seconds();
    assert!(!has(&chain, now, 21_000) && !has(&chain, now + 62 * 86_400 + 1, 21_000));
    // Both at once, and the room is free afterwards: what cannot run expires.
    let produced = produce_at(&mut chain, second);
    assert_eq!(produced.output.receipts[0].logs.len(), 2);
    chain.replay();
}

/// HEDERA-21: another payer returns to the creator what it prepaid, when it runs.
#[test]
fn hedera_21_a_foreign_payer_reimburses_at_the_run() {
    let mut chain = TestChain::new();
    let second = chain.input().timestamp.seconds() + 10;
    let wish = Wish { payer: Some(person(6).address), ..at(second) };
    let id = booked(&mut chain, &wish);
    assert_eq!(chain.add(person(9), id, vec![wish.signed(person(1)), wish.signed(person(6))]), 22);
    let before = [0, 6].map(|n| chain.balance(person(n).address));
    let produced = produce_at(&mut chain, second);
    assert_eq!(run_codes(&produced), [(id.0, 22)]);
    let after = [0, 6].map(|n| chain.balance(person(n).address));
    assert_eq!((after[0] - before[0], before[1] - after[1]), (fee(200_000, 2), fee(200_000, 2)));
    chain.replay();
}

/// HEDERA-21: a run that the chain itself made late is free, for whoever pays for it in the end.
#[test]
fn hedera_21_a_late_run_returns_the_fee_to_its_payer() {
    for (payer, accounts) in [(None, 1), (Some(person(6).address), 2)] {
        let mut chain = TestChain::new();
        let second = chain.input().timestamp.seconds() + 10;
        let wish = Wish { payer, ..at(second) };
        let id = booked(&mut chain, &wish);
        let mut entries = vec![wish.signed(person(1))];
        entries.extend(payer.map(|_| wish.signed(person(6))));
        assert_eq!(chain.add(person(9), id, entries), 22);
        let before = [0, 6].map(|n| chain.balance(person(n).address));
        let produced = produce_at(&mut chain, second + 3_600);
        assert_eq!(run_codes(&produced), [(id.0, 22)]);
        let after = [0, 6].map(|n| chain.balance(person(n).address));
        assert_eq!((after[0] - before[0], after[1]), (fee(200_000, accounts), before[1]), "{payer:?}");
        chain.replay();
    }
}

/// A second without waiting for it has no meaning, nor has waiting without a second.
#[test]
fn hedera_20_waiting_needs_a_second() {
    let mut chain = TestChain::new();
    let produced = book(&mut chain, &at(0), U256::from(COIN));
    assert_eq!(code(produced.receipt(0)), 50);
}

/// A timed run may trigger others in its own gas.
#[test]
fn hedera_20_a_timed_run_triggers_in_its_own_gas() {
    let mut chain = TestChain::new();
    let inner = Wish::new(vec![service_call(person(1).address, COUNTER)]);
    let (inner_id, _) = chain.create(person(0), &inner, vec![]);
    let second = chain.input().timestamp.seconds() + 10;
    let mut outer = at(second);
    outer.body.calls[0].to = SCHEDULE_SERVICE;
    outer.body.calls[0].data = signing(inner_id, vec![]).into();
    outer.body.gasLimit = 700_000;
    let id = booked(&mut chain, &outer);
    assert_eq!(chain.add(person(1), id, vec![]), 22);
    let produced = produce_at(&mut chain, second);
    assert_eq!(run_codes(&produced), [(id.0, 22), (inner_id.0, 22)]);
    let gas: u64 = produced.output.receipts.iter().map(|receipt| receipt.gas_used.0).sum();
    assert_eq!((produced.output.gas_used.0, produced.output.reserved_gas_used.0), (0, gas));
    chain.replay();
}

/// As many signatures are recorded as were booked to be judged: each leaf may sign and call. What was not booked is
/// refused, also after a rotation.
#[test]
fn hedera_20_both_sides_of_the_signatures_that_were_booked() {
    let mut chain = TestChain::new();
    let second = chain.input().timestamp.seconds() + 100;
    let mut wish = at(second);
    // No rest of effort that has room for one more.
    wish.body.gasLimit = 100 * EFFORT_GAS;
    let id = booked(&mut chain, &wish);
    assert_eq!(chain.add(person(1), id, vec![wish.signed(person(1))]), 22, "it signs and calls");
    assert_eq!(chain.info(id).1.signers.len(), 2);
    let key = Key::from(ed_person(1));
    chain.produce(vec![rotating(person(1), 1, &key.encoded(), 1, &[key])]);
    assert_eq!(chain.add(person(9), id, vec![wish.signed(key)]), 206);
    // Another schedule has room for the new key.
    let mut other = wish.clone();
    (other.body.nonce, other.body.executionTime) = (1, second + 1);
    let id = booked(&mut chain, &other);
    assert_eq!(chain.add(person(9), id, vec![other.signed(key)]), 22);
    let produced = produce_at(&mut chain, second + 1);
    assert_eq!(run_codes(&produced), [(id.0, 22)]);
    chain.replay();
}
