//! HIP-1215 at 0x16b: what contracts written for Hedera's EVM get (HEDERA-22).

use crate::support::{contracts::*, signed::*, *};
use alloy_primitives::{Address, Bytes, U256, hex};
use alloy_sol_types::{SolCall as _, SolInterface as _, SolValue as _};
use almanac_primitives::{Outcome, ScheduleId, TimestampMs, Wei, addresses::HIP1215_SERVICE};

alloy_sol_types::sol!("../../contracts/IHederaScheduleService.sol");
use IHederaScheduleService::*;

/// A chain whose forwarder has a fund and, by the forwarder, nothing else.
fn funded() -> TestChain {
    let mut chain = TestChain::new();
    chain.produce(vec![funding(person(0), 0, FORWARDER, 1_000_000_000_000_000_000)]);
    chain
}

/// What the forwarder gets from `target`. Its return data is what the service returned.
fn forwarded(chain: &mut TestChain, target: Address, input: &[u8]) -> (Bytes, Produced) {
    let answer = chain.call(person(3).address, FORWARDER, to(target, input)).output;
    let nonce = chain.nonce(person(3).address);
    let produced = chain.produce(vec![call(person(3), nonce, FORWARDER, to(target, input), 3_000_000)]);
    assert_eq!(produced.receipt(0).outcome, Outcome::Success, "never a revert");
    (answer, produced)
}

fn scheduled(second: u64, value: u64) -> Vec<u8> {
    scheduleCallCall {
        to: COUNTER,
        expirySecond: U256::from(second),
        gasLimit: U256::from(100_000),
        value,
        callData: Bytes::new(),
    }
    .abi_encode()
}

fn answer_of(output: &Bytes) -> (i64, Address) {
    <(i64, Address)>::abi_decode_params(output).unwrap()
}

fn code_of(output: &Bytes) -> i64 {
    i64::abi_decode(output).unwrap()
}

fn address_of(id: ScheduleId) -> Address {
    Address::from_word(U256::from(id.0).into())
}

/// The table of the design.
#[test]
fn hedera_22_selectors_are_hederas() {
    let mut selectors: Vec<String> = IHederaScheduleServiceCalls::selectors().map(hex::encode).collect();
    let mut expected = [
        "6f5bfde8", "e6599c18", "105772b2", "72d42394", "c61dea85", "dfb4a999", "f0637961", "06d15889",
        "358eeb03", "ca829811",
    ];
    selectors.sort_unstable();
    expected.sort_unstable();
    assert_eq!(selectors, expected);
}

/// A contract that is funded and has nothing else schedules a call of itself, which runs at its second.
#[test]
fn hedera_22_schedule_call_runs_at_its_second() {
    let mut chain = funded();
    let second = chain.input().timestamp.seconds() + 10;
    let fund = chain.fund_of(FORWARDER);
    let ((code, address), produced) = {
        let (output, produced) = forwarded(&mut chain, HIP1215_SERVICE, &scheduled(second, 0));
        (answer_of(&output), produced)
    };
    let id = created(produced.receipt(0));
    assert_eq!((code, address), (22, address_of(id)));
    assert!(chain.fund_of(FORWARDER) < fund, "the fee comes from the fund");
    let (_, info) = chain.info(id);
    assert_eq!((info.creatorAccountID, info.signers.len(), info.expiresAt), (FORWARDER, 1, second));
    assert_eq!(info.adminKey, [&[1][..], FORWARDER.as_slice()].concat());
    let input = chain.input_at(TimestampMs(second * 1_000));
    let produced = chain.produce_with(&input, vec![]);
    assert_eq!(run_codes(&produced), [(id.0, 22)]);
    assert_eq!(runs::count_of(&chain.state, FORWARDER), U256::ONE);
    chain.replay();
}

/// Value comes from the fund as well.
#[test]
fn hedera_22_value_comes_from_the_fund() {
    let mut chain = funded();
    let second = chain.input().timestamp.seconds() + 10;
    let input = scheduleCallCall {
        to: person(7).address,
        expirySecond: U256::from(second),
        gasLimit: U256::from(100_000),
        value: 500,
        callData: Bytes::new(),
    };
    let (_, produced) = forwarded(&mut chain, HIP1215_SERVICE, &input.abi_encode());
    let id = created(produced.receipt(0));
    let before = (chain.fund_of(FORWARDER), chain.balance(person(7).address));
    let input = chain.input_at(TimestampMs(second * 1_000));
    let produced = chain.produce_with(&input, vec![]);
    assert_eq!(run_codes(&produced), [(id.0, 22)]);
    let after = (chain.fund_of(FORWARDER), chain.balance(person(7).address));
    assert_eq!((before.0 - after.0, after.1 - before.1), (U256::from(500), U256::from(500)));
    chain.replay();
}

/// Whatever is wrong, the caller gets a code, and nothing changes.
#[test]
fn hedera_22_refusals_are_codes() {
    let mut chain = funded();
    let now = chain.input().timestamp.seconds();
    let (output, _) = forwarded(&mut chain, HIP1215_SERVICE, &scheduled(now, 0));
    assert_eq!(answer_of(&output), (307, Address::ZERO));
    let (output, _) = forwarded(&mut chain, HIP1215_SERVICE, &scheduled(now + 63 * 86_400, 0));
    assert_eq!(answer_of(&output), (306, Address::ZERO));
    let no_target = scheduleCallCall {
        to: Address::ZERO,
        expirySecond: U256::from(now + 60),
        gasLimit: U256::from(100_000),
        value: 0,
        callData: Bytes::new(),
    };
    let (output, _) = forwarded(&mut chain, HIP1215_SERVICE, &no_target.abi_encode());
    assert_eq!(answer_of(&output), (16, Address::ZERO));
    let wide = scheduleCallCall { to: COUNTER, gasLimit: U256::MAX, ..no_target };
    let (output, _) = forwarded(&mut chain, HIP1215_SERVICE, &wide.abi_encode());
    assert_eq!(answer_of(&output), (111, Address::ZERO));
    let unknown = deleteSchedule_0Call { scheduleAddress: COUNTER }.abi_encode();
    let (output, _) = forwarded(&mut chain, HIP1215_SERVICE, &unknown);
    assert_eq!(code_of(&output), 201);
    let native = signSchedule_1Call { schedule: COUNTER, signatureMap: Bytes::new() }.abi_encode();
    let (output, _) = forwarded(&mut chain, HIP1215_SERVICE, &native);
    assert_eq!(code_of(&output), 13);
    assert!(ledger::records(&chain.state).is_empty());

    // Without a fund.
    let mut chain = TestChain::new();
    let (output, _) = forwarded(&mut chain, HIP1215_SERVICE, &scheduled(now + 60, 0));
    assert_eq!(answer_of(&output), (10, Address::ZERO));
    assert!(ledger::records(&chain.state).is_empty());
    chain.replay();
}

/// Static and delegate calls revert, as everywhere.
#[test]
fn hedera_22_static_and_delegate_calls_revert() {
    let mut chain = funded();
    let input = scheduled(chain.input().timestamp.seconds() + 60, 0);
    for through in [STATIC_CALLER, DELEGATOR] {
        let nonce = chain.nonce(person(3).address);
        let sent = call(person(3), nonce, through, to(HIP1215_SERVICE, &input), 3_000_000);
        assert!(matches!(chain.produce(vec![sent]).receipt(0).outcome, Outcome::Reverted(_)), "{through}");
    }
}

/// The creator deletes it, at the service or at the schedule's own address; nobody else does.
#[test]
fn hedera_22_the_creator_deletes() {
    let mut chain = funded();
    let second = chain.input().timestamp.seconds() + 100;
    for is_facade in [false, true] {
        let (_, produced) = forwarded(&mut chain, HIP1215_SERVICE, &scheduled(second, 0));
        let id = created(produced.receipt(0));
        let (target, input) = match is_facade {
            true => (address_of(id), deleteSchedule_1Call {}.abi_encode()),
            false => (HIP1215_SERVICE, deleteSchedule_0Call { scheduleAddress: address_of(id) }.abi_encode()),
        };
        let stranger = chain.call(person(5).address, target, input.clone()).output;
        assert_eq!(code_of(&stranger), 7);
        let (output, _) = forwarded(&mut chain, target, &input);
        assert_eq!((code_of(&output), chain.info(id).1.ended), (22, 2));
        let (output, _) = forwarded(&mut chain, target, &input);
        assert_eq!(code_of(&output), 212);
    }
    chain.replay();
}

fn for_payer(payer: Address, second: u64, waits: bool) -> Vec<u8> {
    let (expiry, gas) = (U256::from(second), U256::from(100_000));
    match waits {
        true => scheduleCallWithPayerCall {
            to: COUNTER,
            payer,
            expirySecond: expiry,
            gasLimit: gas,
            value: 0,
            callData: Bytes::new(),
        }
        .abi_encode(),
        false => executeCallOnPayerSignatureCall {
            to: COUNTER,
            payer,
            expirySecond: expiry,
            gasLimit: gas,
            value: 0,
            callData: Bytes::new(),
        }
        .abi_encode(),
    }
}

/// executeCallOnPayerSignature runs as soon as the payer has signed, at the service or at the schedule's address.
#[test]
fn hedera_22_the_payers_signature_executes() {
    let mut chain = funded();
    let second = chain.input().timestamp.seconds() + 100;
    for (n, is_facade) in [(5, false), (6, true)] {
        let payer = person(n);
        let (_, produced) = forwarded(&mut chain, HIP1215_SERVICE, &for_payer(payer.address, second, false));
        let id = created(produced.receipt(0));
        assert_eq!(run_codes(&produced), []);
        let (target, input) = match is_facade {
            true => (address_of(id), signSchedule_0Call {}.abi_encode()),
            false => (HIP1215_SERVICE, authorizeScheduleCall { schedule: address_of(id) }.abi_encode()),
        };
        let nonce = chain.nonce(payer.address);
        let produced = chain.produce(vec![call(payer, nonce, target, input, 2_000_000)]);
        assert_eq!(run_codes(&produced), [(id.0, 22)]);
        assert_eq!(runs::count_of(&chain.state, payer.address), U256::ONE);
    }
    chain.replay();
}

/// scheduleCallWithPayer waits for the second, and expires if the payer has not signed.
#[test]
fn hedera_22_with_a_payer_it_waits_for_both() {
    for has_signed in [false, true] {
        let mut chain = funded();
        let second = chain.input().timestamp.seconds() + 100;
        let payer = person(5);
        let (_, produced) = forwarded(&mut chain, HIP1215_SERVICE, &for_payer(payer.address, second, true));
        let id = created(produced.receipt(0));
        if has_signed {
            let input = authorizeScheduleCall { schedule: address_of(id) }.abi_encode();
            let produced = chain.produce(vec![call(payer, 0, HIP1215_SERVICE, input, 2_000_000)]);
            assert_eq!(run_codes(&produced), []);
        }
        let input = chain.input_at(TimestampMs(second * 1_000));
        let produced = chain.produce_with(&input, vec![]);
        let ended = if has_signed { 1 } else { 3 };
        assert_eq!((run_codes(&produced).len(), chain.info(id).1.ended), (usize::from(has_signed), ended));
        chain.replay();
    }
}

/// anybody can make a forwarder schedule; it loses its fund at most.
#[test]
fn hedera_22_a_forwarder_loses_its_fund_at_most() {
    let mut genesis = genesis();
    genesis.allocations.get_mut(&FORWARDER).unwrap().balance = Wei(U256::from(1_000));
    let mut chain = TestChain::from_genesis(&genesis);
    chain.produce(vec![funding(person(0), 0, FORWARDER, 1_000_000_000_000_000_000)]);
    let second = chain.input().timestamp.seconds() + 10;
    let input = scheduleCallCall {
        to: person(7).address,
        expirySecond: U256::from(second),
        gasLimit: U256::from(100_000),
        value: u64::MAX,
        callData: Bytes::new(),
    };
    let (_, produced) = forwarded(&mut chain, HIP1215_SERVICE, &input.abi_encode());
    let id = created(produced.receipt(0));
    let input = chain.input_at(TimestampMs(second * 1_000));
    let produced = chain.produce_with(&input, vec![]);
    assert_eq!(run_codes(&produced), [(id.0, 10)], "more value than its fund has");
    assert_eq!(chain.balance(FORWARDER), U256::from(1_000));
    assert_eq!(chain.info(id).1.ended, 1);
    let asked = IHederaScheduleService::hasScheduleCapacityCall {
        expirySecond: U256::from(second + 60),
        gasLimit: U256::from(21_000),
    };
    let answer = chain.call(person(1).address, HIP1215_SERVICE, asked.abi_encode()).output;
    assert!(IHederaScheduleService::hasScheduleCapacityCall::abi_decode_returns(&answer).unwrap());
}
