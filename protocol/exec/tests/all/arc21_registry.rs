//! ARC-21, the registry: what it takes, what it refuses, what it gives back.

use crate::support::{Person, TestChain, contracts::*, cron::*, person};
use alloy_primitives::{Address, Bytes, FixedBytes, U256, hex, keccak256};
use alloy_sol_types::{SolCall, SolValue};
use almanac_primitives::{
    Gas, GasPrice,
    addresses::{CRON_REGISTRY, LEDGER},
    params::{
        CRON_ENABLED, CRON_INPUT_BYTES_MAX, CRON_PAUSED, Parameter, SCHEDULE_AHEAD_SECONDS_MAX, YEAR_SECONDS,
    },
};

const OWNER: u64 = 0;

fn owner() -> Person {
    person(OWNER)
}

/// The first four bytes of the prime of the field that ecAdd's points are in.
const FIELD_PRIME_START: [u8; 4] = [0x30, 0x64, 0x4e, 0x72];

#[test]
fn arc21_01_no_input_that_ecadd_takes_begins_with_a_selector() {
    for selector in ICronRegistry::ICronRegistryCalls::SELECTORS {
        assert!(*selector > FIELD_PRIME_START, "{} could be a point", hex::encode(selector));
    }
    assert_eq!(ICronRegistry::ICronRegistryCalls::SELECTORS.len(), 6);
}

#[test]
fn arc21_01_the_registry_and_ecadd_answer_at_one_address() {
    let chain = TestChain::new();
    // Twice the generator (1, 2), from the test vectors of EIP-196.
    let doubled = hex!(
        "030644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd3"
        "15ed738c0e0a7c92e7845f96b2ae9c0a68a6a449e3538fc7ff3ebf7a5a18a2c4"
    );
    let generator = [words(1, 2), words(1, 2)].concat();
    let ec_add = |input: &[u8]| chain.call(owner().address, CRON_REGISTRY, input.to_vec()).output;
    assert_eq!(ec_add(&generator), doubled[..]);
    assert_eq!(ec_add(&[]), [0; 64][..], "infinity plus infinity");
    assert_eq!(ec_add(&generator[..64]), generator[..64], "missing bytes are zeroes");

    let job = ICronRegistry::getJobCall { id: U256::ONE }.abi_encode();
    assert!(!ec_add(&job).is_empty(), "the registry");
    // The same bytes with a length that no call of a method has: ecAdd, which knows no such point.
    let odd = chain.call(owner().address, CRON_REGISTRY, [&job[..], &[0]].concat());
    assert!(!odd.outcome.is_success());
    let unknown = chain.call(owner().address, CRON_REGISTRY, vec![0; 36]);
    assert_eq!(unknown.output, [0; 64][..], "a selector of no method: ecAdd");
}

#[test]
fn arc21_01_it_is_there_from_genesis() {
    let chain = TestChain::new();
    let registry = chain.state.account(CRON_REGISTRY);
    assert_eq!(registry.nonce, 1);
    assert_ne!(registry.code_hash, alloy_primitives::KECCAK256_EMPTY, "Solidity finds code");
    assert_eq!(chain.job(U256::ONE).id, U256::ZERO);
}

#[test]
fn arc21_02_all_three_ways_to_schedule_give_the_same_job() {
    let mut chain = TestChain::new();
    let (target, gas, value) = (COUNTER, RUN_GAS, U256::from(10u64.pow(15)));
    let due = chain.next_seconds() + HOUR;
    let args = U256::from(7).abi_encode();
    let selector = &keccak256("charge(uint256)")[..4];
    let data: Bytes = [selector, &args].concat().into();
    let by_method = ICronRegistry::scheduleCall {
        target,
        method: "charge(uint256)".into(),
        args: args.clone().into(),
        nextRunAt: U256::from(due),
        intervalSec: U256::from(MINUTE),
        maxRuns: U256::from(5),
        gasLimit: U256::from(gas),
    };
    let order = order(&chain).calling(target, data).at(due).every(MINUTE).runs(5).with_value(value);
    let with = order.clone().refunding(owner().address);
    let ids = [by_method.abi_encode().into(), order.calldata(), with.calldata()].map(|input: Bytes| {
        let receipt = chain.send(owner(), CRON_REGISTRY, value, input);
        let event = only::<JobScheduled>(&receipt.logs);
        assert_eq!((event.owner, event.target, event.nextRunAt), (owner().address, target, U256::from(due)));
        event.id
    });
    for id in ids {
        let job = chain.job(id);
        assert_eq!(job.id, id);
        assert_eq!((job.owner, job.target), (owner().address, target));
        assert_eq!(job.selector, FixedBytes::<4>::from_slice(selector));
        assert_eq!(job.args, Bytes::from(args.clone()));
        assert_eq!(job.nextRunAt, U256::from(due));
        assert_eq!(job.intervalSec, U256::from(MINUTE));
        assert_eq!((job.maxRuns, job.runsLeft), (U256::from(5), U256::from(5)));
        assert_eq!((job.gasLimit, job.gasEscrow), (U256::from(gas), value));
    }
    assert_eq!(ids.map(|id| id_of(id).to_string()), ["1-1-0", "2-1-0", "3-1-0"]);
    assert_eq!(chain.balance(LEDGER), value * U256::from(3));
}

#[test]
fn arc21_02_the_call_answers_with_the_id() {
    let chain = TestChain::new();
    let order = order(&chain);
    let call = almanac_exec::Call {
        from: owner().address,
        to: Some(CRON_REGISTRY),
        value: order.value,
        input: order.calldata(),
        gas_limit: Gas(1_000_000),
        ..Default::default()
    };
    let result = almanac_exec::simulate(&chain.state, &chain.input(), call).unwrap();
    let event = only::<JobScheduled>(&result.logs);
    assert_eq!(U256::abi_decode(&result.output).unwrap(), event.id);
}

#[test]
fn arc21_03_a_first_run_is_strictly_in_the_future() {
    let mut chain = TestChain::new();
    let now = chain.next_seconds();
    let refused = chain.schedule(owner(), &order(&chain).at(now)).unwrap_err();
    let expected = ICronRegistry::TimeNotInFuture { given: U256::from(now), blockTime: U256::from(now) };
    assert_eq!(refused, CronError::TimeNotInFuture(expected));
    let now = chain.next_seconds();
    chain.schedule(owner(), &order(&chain).at(now + 1)).unwrap();
}

#[test]
fn arc21_03_the_horizon_bounds_time_and_interval() {
    let mut chain = TestChain::new();
    let horizon = SCHEDULE_AHEAD_SECONDS_MAX.default;
    assert_eq!(horizon, 10 * YEAR_SECONDS);
    let last = chain.next_seconds() + horizon;
    chain.schedule(owner(), &order(&chain).at(last)).unwrap();
    let beyond = chain.next_seconds() + horizon + 1;
    let refused = chain.schedule(owner(), &order(&chain).at(beyond)).unwrap_err();
    let expected =
        ICronRegistry::TimeBeyondHorizon { given: U256::from(beyond), max: U256::from(beyond - 1) };
    assert_eq!(refused, CronError::TimeBeyondHorizon(expected));

    chain.schedule(owner(), &order(&chain).every(horizon)).unwrap();
    let refused = chain.schedule(owner(), &order(&chain).every(horizon + 1)).unwrap_err();
    assert!(matches!(refused, CronError::IntervalTooLong(_)), "{refused:?}");
}

#[test]
fn arc21_03_numbers_that_do_not_fit_are_refused_and_never_cut() {
    let mut chain = TestChain::new();
    // Each of these would pass if only its last 64 bits were looked at.
    let high = |low: u64| U256::from(low) + (U256::ONE << 64);
    let plain = order(&chain);
    let due = plain.next_run_at.to::<u64>();
    for given in [high(due), U256::MAX, U256::from(u64::MAX), U256::from(due * 1_000)] {
        let refused = chain.schedule(owner(), &JobOrder { next_run_at: given, ..plain.clone() }).unwrap_err();
        assert!(matches!(refused, CronError::TimeBeyondHorizon(_)), "{given}: {refused:?}");
    }
    for given in [high(MINUTE), U256::MAX, U256::from(u64::MAX)] {
        let refused = chain.schedule(owner(), &JobOrder { interval: given, ..plain.clone() }).unwrap_err();
        assert!(matches!(refused, CronError::IntervalTooLong(_)), "{given}: {refused:?}");
    }
    for given in [high(3), U256::MAX] {
        let refused = chain.schedule(owner(), &JobOrder { max_runs: given, ..plain.clone() }).unwrap_err();
        assert!(matches!(refused, CronError::RunsTooMany(_)), "{given}: {refused:?}");
    }
    let refused = chain.schedule(owner(), &JobOrder { gas_limit: high(RUN_GAS), ..plain }).unwrap_err();
    assert!(matches!(refused, CronError::GasLimitOutOfBounds(_)), "{refused:?}");
    assert_eq!(chain.balance(LEDGER), U256::ZERO, "every value went back");
}

#[test]
fn arc21_03_calldata_has_a_selector_and_a_bound() {
    let mut chain = TestChain::new();
    let bytes = CRON_INPUT_BYTES_MAX.default as usize;
    let with = |chain: &TestChain, length: usize| order(chain).calling(COUNTER, vec![7; length]);
    for passes in [4, bytes] {
        let order = with(&chain, passes);
        let id = chain.schedule(owner(), &order).unwrap();
        assert_eq!(chain.job(id).args.len(), passes - 4);
    }
    for length in [0, 3] {
        let order = with(&chain, length);
        let refused = chain.schedule(owner(), &order).unwrap_err();
        let expected = ICronRegistry::InputTooShort { given: U256::from(length), min: U256::from(4) };
        assert_eq!(refused, CronError::InputTooShort(expected));
    }
    let order = with(&chain, bytes + 1);
    let refused = chain.schedule(owner(), &order).unwrap_err();
    let expected = ICronRegistry::InputTooLong { given: U256::from(bytes + 1), max: U256::from(bytes) };
    assert_eq!(refused, CronError::InputTooLong(expected));
}

#[test]
fn arc21_04_an_interval_is_nothing_or_a_minute() {
    let mut chain = TestChain::new();
    for passes in [0, 60] {
        chain.schedule(owner(), &order(&chain).every(passes)).unwrap();
    }
    for interval in [1, 59] {
        let refused = chain.schedule(owner(), &order(&chain).every(interval)).unwrap_err();
        let expected = ICronRegistry::IntervalTooShort { given: U256::from(interval), min: U256::from(60) };
        assert_eq!(refused, CronError::IntervalTooShort(expected));
    }
}

#[test]
fn arc21_05_gas_is_within_bounds() {
    let mut chain = TestChain::new();
    let rich = U256::from(10u64.pow(17));
    for passes in [21_000, 5_000_000] {
        chain.schedule(owner(), &order(&chain).gas(passes).with_value(rich)).unwrap();
    }
    for gas in [0, 20_999, 5_000_001, u64::MAX] {
        let refused = chain.schedule(owner(), &order(&chain).gas(gas).with_value(rich)).unwrap_err();
        let (min, max) = (U256::from(21_000), U256::from(5_000_000));
        let expected = ICronRegistry::GasLimitOutOfBounds { given: U256::from(gas), min, max };
        assert_eq!(refused, CronError::GasLimitOutOfBounds(expected));
    }
}

#[test]
fn arc21_05_a_target_and_a_method_are_needed() {
    let mut chain = TestChain::new();
    let nobody = order(&chain).calling(Address::ZERO, [1, 2, 3, 4]);
    assert!(matches!(chain.schedule(owner(), &nobody), Err(CronError::TargetIsZero(_))));
    let nameless = ICronRegistry::scheduleCall {
        target: COUNTER,
        method: String::new(),
        args: Bytes::new(),
        nextRunAt: U256::from(chain.next_seconds() + HOUR),
        intervalSec: U256::ZERO,
        maxRuns: U256::ZERO,
        gasLimit: U256::from(RUN_GAS),
    };
    let value = U256::from(10u64.pow(15));
    let receipt = chain.send(owner(), CRON_REGISTRY, value, nameless.abi_encode());
    assert!(matches!(refused(&receipt), Err(CronError::MethodIsEmpty(_))));
    let long = format!("f({}bool)", "bool,".repeat(60));
    let spaced = format!(" {long}");
    // The last of them shows nothing: nobody reads so long an error.
    let cases = [("ping", "ping()"), ("ping(uint a)", "ping(uint256)"), ("f(IERC20)", ""), (&spaced[..], "")];
    for (method, probable) in cases {
        let odd = ICronRegistry::scheduleCall { method: method.to_owned(), ..nameless.clone() };
        let receipt = chain.send(owner(), CRON_REGISTRY, value, odd.abi_encode());
        let Err(CronError::MethodNotCanonical(error)) = refused(&receipt) else { panic!("{method}") };
        assert_eq!(error.probable, probable);
    }
    let canonical = ICronRegistry::scheduleCall { method: long, ..nameless };
    assert!(chain.send(owner(), CRON_REGISTRY, value, canonical.abi_encode()).outcome.is_success());
    let lost = order(&chain).refunding(Address::ZERO);
    assert!(matches!(chain.schedule(owner(), &lost), Err(CronError::RefundToIsZero(_))));
}

#[test]
fn arc21_06_the_value_pays_for_one_run_at_the_base_fee() {
    let mut chain = TestChain::new();
    let needed = |chain: &TestChain| Gas(RUN_GAS).cost(chain.next_base_fee()).0;
    let enough = needed(&chain);
    let id = chain.schedule(owner(), &order(&chain).with_value(enough)).unwrap();
    assert_eq!(chain.job(id).gasEscrow, enough, "all of it is the escrow");

    let before = chain.balance(owner().address);
    let needed = needed(&chain);
    let given = needed - U256::ONE;
    let receipt = chain.send(owner(), CRON_REGISTRY, given, order(&chain).with_value(given).calldata());
    let expected = ICronRegistry::EscrowTooLow { given, needed };
    assert_eq!(refused(&receipt), Err(CronError::EscrowTooLow(expected)));
    let fee = Gas(receipt.gas_used.0).cost(receipt.effective_gas_price).0;
    assert_eq!(chain.balance(owner().address), before - fee, "the value went back");
}

#[test]
fn arc21_07_a_number_of_runs_is_kept_and_zero_is_no_bound() {
    let mut chain = TestChain::new();
    let bounded = chain.schedule(owner(), &order(&chain).every(MINUTE).runs(u64::MAX)).unwrap();
    assert_eq!(chain.job(bounded).runsLeft, U256::from(u64::MAX));
    let unbounded = chain.schedule(owner(), &order(&chain).every(MINUTE)).unwrap();
    assert_eq!((chain.job(unbounded).maxRuns, chain.job(unbounded).runsLeft), (U256::ZERO, U256::ZERO));
}

#[test]
fn arc21_08_cancel_pays_everything_back_and_says_so() {
    let mut chain = TestChain::new();
    let order = order(&chain);
    let id = chain.schedule(owner(), &order).unwrap();
    let before = chain.balance(owner().address);
    let receipt = chain.send(owner(), CRON_REGISTRY, U256::ZERO, cancel_data(id));
    let event = only::<JobCancelled>(&receipt.logs);
    assert_eq!((event.id, event.owner, event.refunded), (id, owner().address, order.value));
    let fee = receipt.gas_used.cost(receipt.effective_gas_price).0;
    assert_eq!(chain.balance(owner().address), before - fee + order.value);
    assert_eq!(chain.balance(LEDGER), U256::ZERO);
    assert!(matches!(chain.cancel(owner(), id), Err(CronError::UnknownJob(_))), "there is none any more");
}

#[test]
fn arc21_08_nobody_else_cancels_and_unknown_ids_are_named() {
    let mut chain = TestChain::new();
    let id = chain.schedule(owner(), &order(&chain)).unwrap();
    let caller = person(1).address;
    let expected = ICronRegistry::NotJobOwner { id, caller, owner: owner().address };
    assert_eq!(chain.cancel(person(1), id), Err(CronError::NotJobOwner(expected)));
    for unknown in [U256::ZERO, id + U256::ONE, U256::MAX, id + (U256::ONE << 64)] {
        let expected = CronError::UnknownJob(ICronRegistry::UnknownJob { id: unknown });
        assert_eq!(chain.cancel(owner(), unknown), Err(expected));
    }
}

#[test]
fn arc21_08_a_recipient_that_refuses_money_cannot_block_a_refund() {
    let mut chain = TestChain::new();
    let order = order(&chain).refunding(REVERTER);
    let id = chain.schedule(owner(), &order).unwrap();
    assert_eq!(chain.cancel(owner(), id), Ok(order.value));
    assert_eq!(chain.balance(REVERTER), order.value, "a credit asks nobody");
}

#[test]
fn arc21_09_anyone_tops_up_and_the_dead_take_nothing() {
    let mut chain = TestChain::new();
    let order = order(&chain);
    let id = chain.schedule(owner(), &order).unwrap();
    let amount = U256::from(12_345);
    let receipt = chain.send(person(5), CRON_REGISTRY, amount, top_up_data(id));
    let event = only::<JobToppedUp>(&receipt.logs);
    assert_eq!((event.id, event.amount, event.totalEscrow), (id, amount, order.value + amount));
    assert_eq!(chain.job(id).gasEscrow, order.value + amount);

    assert_eq!(chain.cancel(owner(), id), Ok(order.value + amount), "to the owner, whoever paid");
    for dead in [id, U256::MAX] {
        let expected = CronError::UnknownJob(ICronRegistry::UnknownJob { id: dead });
        assert_eq!(chain.top_up(person(5), dead, amount), Err(expected));
    }
    assert_eq!(chain.balance(LEDGER), U256::ZERO, "the value went back with the revert");
}

#[test]
fn arc21_10_an_unknown_job_is_empty_and_reading_changes_nothing() {
    let mut chain = TestChain::new();
    let id = chain.schedule(owner(), &order(&chain)).unwrap();
    for unknown in [U256::ZERO, id - U256::ONE, U256::MAX] {
        let job = chain.job(unknown);
        assert_eq!((job.id, job.owner, job.gasEscrow), (U256::ZERO, Address::ZERO, U256::ZERO));
    }
    let before = chain.state.clone();
    let input = to(CRON_REGISTRY, &ICronRegistry::getJobCall { id }.abi_encode());
    let result = chain.call(owner().address, STATIC_CALLER, input);
    assert!(result.outcome.is_success(), "a static call may read");
    assert_eq!(chain.state, before);
}

#[test]
fn arc21_10_a_static_call_changes_nothing_and_a_delegatecall_is_refused() {
    let mut chain = TestChain::new();
    let id = chain.schedule(owner(), &order(&chain)).unwrap();
    for data in [cancel_data(id), top_up_data(id), order(&chain).calldata()] {
        for caller in [STATIC_CALLER, DELEGATOR, CODE_CALLER] {
            let result = chain.call(owner().address, caller, to(CRON_REGISTRY, &data));
            assert!(!result.outcome.is_success(), "{caller}");
        }
    }
}

#[test]
fn options_that_mean_nothing_are_refused() {
    let mut chain = TestChain::new();
    for passes in [0, 1, 0x100, 0x200, 0x201] {
        chain.schedule(owner(), &order(&chain).every(MINUTE).with_options(passes)).unwrap();
    }
    for options in [2, 0x400, 1 << 63] {
        let refused = chain.schedule(owner(), &order(&chain).with_options(options)).unwrap_err();
        assert!(matches!(refused, CronError::UnknownOptions(_)), "{options}: {refused:?}");
    }
    let refused = chain.schedule(owner(), &order(&chain).with_options(0x300)).unwrap_err();
    let expected = ICronRegistry::UnknownCatchUp { given: U256::from(3), max: U256::from(2) };
    assert_eq!(refused, CronError::UnknownCatchUp(expected));
}

#[test]
fn a_revert_around_it_takes_everything_back() {
    let mut chain = TestChain::new();
    let order = order(&chain);
    let before = chain.state.account(LEDGER);
    let input = to(CRON_REGISTRY, &order.calldata());
    let receipt = chain.send(owner(), FORWARD_AND_REVERT, order.value, input);
    assert!(!receipt.outcome.is_success());
    assert!(crate::support::ledger::records(&chain.state).is_empty());
    assert_eq!(chain.state.account(LEDGER), before);
}

#[test]
fn one_transaction_names_its_schedules_in_order() {
    let mut chain = TestChain::new();
    let order = order(&chain);
    let half = order.value / U256::from(2);
    // The forwarder sends all its value along, so a second job needs a second transaction of the same block.
    let nonce = chain.nonce(owner().address);
    let txs = (0..3).map(|n| paid_call(owner(), nonce + n, CRON_REGISTRY, half, order.calldata()));
    let produced = chain.produce(txs.collect());
    let ids: Vec<_> = (0..3).map(|n| scheduled(produced.receipt(n)).unwrap()).collect();
    assert_eq!(ids.iter().map(|id| id_of(*id).to_string()).collect::<Vec<_>>(), ["1-1-0", "1-2-0", "1-3-0"]);
}

fn set_parameter(chain: &mut TestChain, parameter: Parameter, value: u64) {
    let slot = Parameter::slot_value(value);
    chain.state.set_slot(almanac_primitives::addresses::PARAMETERS, parameter.slot, slot);
}

#[test]
fn what_governance_switches_off_takes_no_jobs_and_gives_money_back() {
    for (parameter, value) in [(CRON_ENABLED, 0), (CRON_PAUSED, 1)] {
        let mut chain = TestChain::new();
        let order = order(&chain);
        let due = order.next_run_at.to::<u64>();
        let id = chain.schedule(owner(), &order).unwrap();
        set_parameter(&mut chain, parameter, value);

        let refused = chain.schedule(owner(), &order).unwrap_err();
        assert!(matches!(refused, CronError::CronDisabled(_) | CronError::CronPaused(_)), "{refused:?}");
        assert!(chain.at(due).ran().is_empty(), "nothing runs");
        assert_eq!(chain.top_up(person(1), id, U256::ONE), Ok(order.value + U256::ONE));
        set_parameter(&mut chain, parameter, parameter.default);
        assert_eq!(chain.at(due + 10).ran(), [id], "it was due all the time");
    }
    let mut chain = TestChain::new();
    let order = order(&chain);
    let id = chain.schedule(owner(), &order).unwrap();
    set_parameter(&mut chain, CRON_PAUSED, 1);
    assert_eq!(chain.cancel(owner(), id), Ok(order.value), "cancelling always works");
}

#[test]
fn gas_of_the_registry_is_what_it_costs() {
    let mut chain = TestChain::new();
    let order = order(&chain);
    let receipt = chain.send(owner(), CRON_REGISTRY, order.value, order.calldata());
    let id = scheduled(&receipt).unwrap();
    // Two new slots, about 160 bytes of body, the calendar, an event.
    assert!((100_000..180_000).contains(&receipt.gas_used.0), "schedule: {}", receipt.gas_used.0);
    let receipt = chain.send(owner(), CRON_REGISTRY, U256::ONE, top_up_data(id));
    assert!((30_000..45_000).contains(&receipt.gas_used.0), "topUp: {}", receipt.gas_used.0);
    let receipt = chain.send(owner(), CRON_REGISTRY, U256::ZERO, cancel_data(id));
    assert!((40_000..70_000).contains(&receipt.gas_used.0), "cancel: {}", receipt.gas_used.0);
}

#[test]
fn too_little_gas_leaves_nothing_behind() {
    let chain = TestChain::new();
    let order = order(&chain);
    let attempt = |gas: u64| {
        let call = almanac_exec::Call {
            from: owner().address,
            to: Some(CRON_REGISTRY),
            value: order.value,
            input: order.calldata(),
            gas_limit: Gas(gas),
            gas_price: GasPrice(0),
            ..Default::default()
        };
        almanac_exec::simulate_step(
            &chain.state,
            &almanac_exec::Environment::derive(&chain.input(), &chain.state).unwrap(),
            call,
            false,
            revm::inspector::NoOpInspector,
        )
        .unwrap()
    };
    let (enough, _) = attempt(1_000_000);
    let needed = enough.gas_used.0;
    assert!(attempt(needed).0.outcome.is_success());
    for gas in (25_000..needed).step_by(997).chain([needed - 1]) {
        let (result, diff) = attempt(gas);
        assert!(!result.outcome.is_success(), "{gas} gas");
        let touched = diff.changes().iter().any(|change| {
            matches!(
                change.key,
                almanac_primitives::StateKey::Slot(LEDGER, _) | almanac_primitives::StateKey::Body(_)
            )
        });
        assert!(!touched, "{gas} gas left something behind");
    }
}
