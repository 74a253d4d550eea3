//! FLIP-330: what the callback scheduler takes, at which price, and what it says.

use crate::support::{callbacks::*, contracts::*, *};
use alloy_primitives::{Address, Bytes, U256};
use alloy_sol_types::{SolCall, SolError, SolInterface};
use almanac_primitives::{
    Outcome, StateKey,
    addresses::{CALLBACKS, LEDGER},
    params::*,
};

const GWEI: u64 = 1_000_000_000;
const DAY: u64 = 24 * 60 * 60;

/// The fee floor is above the base fee of these tests, so prices are round.
fn fee(effort: u64, multiplier: u64) -> U256 {
    base_part(effort, GWEI) * U256::from(multiplier)
}

#[test]
fn flip330_01_a_handler_books_itself_and_whom_it_allows() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 100;
    let booked = callbacks.schedule(&callback(Priority::High, at, 50)).unwrap();
    assert_eq!((booked.timestamp, booked.status), (at, Status::Scheduled));

    // An account is its own handler.
    let alone = callbacks.schedule_as(person(3), person(3).address, &callback(Priority::Medium, at, 50));
    assert_eq!(alone.unwrap().timestamp, at);
    let low = callbacks.schedule(&callback(Priority::Low, at, 50)).unwrap();
    assert_eq!(low.timestamp, 0, "no prediction");

    let (handler, caller) = (callbacks.probe, person(3).address);
    let stranger = callbacks.schedule_as(person(3), handler, &callback(Priority::High, at, 50));
    let not_allowed = ICallbackScheduler::HandlerNotAllowed { handler, caller };
    assert_eq!(stranger, Err(CallbackError::HandlerNotAllowed(not_allowed)));
    callbacks.chain.replay();
}

#[test]
fn flip330_01_a_permission_ends_when_the_handler_says_so() {
    let mut callbacks = Callbacks::new();
    let (handler, scheduler) = (callbacks.probe, booker().address);
    let may = |callbacks: &Callbacks| {
        callbacks.read(CALLBACKS, ICallbackScheduler::mayScheduleCallbackCall { handler, scheduler })
    };
    assert!(may(&callbacks));
    let receipt = callbacks.send(
        person(5),
        handler,
        U256::ZERO,
        CallbackProbe::allowCall { scheduler, allowed: false },
    );
    assert_eq!(only::<SchedulerSet>(&receipt.logs), SchedulerSet { handler, scheduler, allowed: false });
    assert!(!may(&callbacks));
    let order = callback(Priority::High, callbacks.now() + 9, 50);
    assert!(matches!(callbacks.schedule(&order), Err(CallbackError::HandlerNotAllowed(_))));
    // Permission is the handler's own word: what a stranger allows is about the stranger.
    let call = ICallbackScheduler::setSchedulerCall { scheduler, allowed: true };
    callbacks.send(person(5), CALLBACKS, U256::ZERO, call);
    assert!(!may(&callbacks));
}

#[test]
fn flip330_02_timestamps_are_seconds_after_the_block() {
    let mut callbacks = Callbacks::new();
    let next = callbacks.chain.next_seconds();
    let late = callbacks.schedule(&callback(Priority::High, next, 50));
    let error =
        ICallbackScheduler::TimestampNotInFuture { given: U256::from(next), blockTime: U256::from(next) };
    assert_eq!(late, Err(CallbackError::TimestampNotInFuture(error)));
    let next = callbacks.chain.next_seconds();
    assert_eq!(callbacks.schedule(&callback(Priority::High, next + 1, 50)).unwrap().timestamp, next + 1);
    let next = callbacks.chain.next_seconds();
    let soon = callbacks.schedule(&callback(Priority::High, 0, 50)).unwrap();
    assert_eq!(soon.timestamp, next + 1, "as soon as possible");

    let max = callbacks.chain.next_seconds() + SCHEDULE_AHEAD_SECONDS_MAX.default;
    assert!(callbacks.schedule(&callback(Priority::Low, max, 50)).is_ok());
    let beyond = callbacks.chain.next_seconds() + SCHEDULE_AHEAD_SECONDS_MAX.default + 1;
    let error =
        ICallbackScheduler::TimestampBeyondHorizon { given: U256::from(beyond), max: U256::from(beyond - 1) };
    let refused = callbacks.schedule(&callback(Priority::Low, beyond, 50));
    assert_eq!(refused, Err(CallbackError::TimestampBeyondHorizon(error)));
    assert!(matches!(
        callbacks.schedule(&callback(Priority::High, u64::MAX, 50)),
        Err(CallbackError::TimestampBeyondHorizon(_))
    ));
}

#[test]
fn flip330_02_a_fraction_of_a_second_does_not_count() {
    let mut callbacks = Callbacks::new();
    let second = callbacks.now() + 10;
    callbacks.at_ms(second * 1_000 - 1_500);
    // The block is at second - 0.5: the second itself is still to come.
    let booked = callbacks.schedule(&callback(Priority::High, second, 50)).unwrap();
    assert_eq!(booked.timestamp, second);
    assert_eq!(callbacks.at_ms(second * 1_000 - 1), [0u64; 0], "a millisecond too early");
    assert_eq!(callbacks.at_ms(second * 1_000), [booked.id]);
}

#[test]
fn flip330_03_data_has_at_most_100_bytes() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 100;
    let order = |bytes: usize| callback(Priority::High, at, 50).with_data(vec![7; bytes]);
    assert!(callbacks.schedule(&order(100)).is_ok());
    let error = ICallbackScheduler::DataTooLong { given: U256::from(101), max: U256::from(100) };
    assert_eq!(callbacks.schedule(&order(101)), Err(CallbackError::DataTooLong(error)));
}

#[test]
fn flip330_04_both_sides_of_each_bound_on_effort() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 1_000;
    let too_low = |given: u64, min: u64| {
        let error = ICallbackScheduler::EffortTooLow { given: U256::from(given), min: U256::from(min) };
        Err(CallbackError::EffortTooLow(error))
    };
    let too_high = |given: u64, max: u64| {
        let error = ICallbackScheduler::EffortTooHigh { given: U256::from(given), max: U256::from(max) };
        Err(CallbackError::EffortTooHigh(error))
    };
    let mut order = |priority, effort, data: Vec<u8>| {
        callbacks.schedule(&callback(priority, at, effort).with_data(data)).map(|_| ())
    };
    assert_eq!(order(Priority::High, 11, vec![]), Ok(()));
    assert_eq!(order(Priority::High, 10, vec![]), too_low(10, 11));
    // 100 bytes of data have a calldata floor of 26,700 gas.
    assert_eq!(order(Priority::High, 13, vec![7; 100]), Ok(()));
    assert_eq!(order(Priority::High, 12, vec![7; 100]), too_low(12, 13));
    assert_eq!(order(Priority::High, 9_999, vec![]), Ok(()));
    assert_eq!(order(Priority::High, 10_000, vec![]), too_high(10_000, 9_999));
    assert_eq!(order(Priority::Low, 5_000, vec![]), Ok(()));
    assert_eq!(order(Priority::Low, 5_001, vec![]), too_high(5_001, 5_000));
    assert_eq!(order(Priority::Medium, 5_001, vec![]), Ok(()));
    assert_eq!(order(Priority::High, u64::MAX, vec![]), too_high(u64::MAX, 9_999));
}

#[test]
fn flip330_05_the_fee_follows_effort_price_and_priority() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 1_000;
    for (priority, multiplier) in [(Priority::High, 10), (Priority::Medium, 5), (Priority::Low, 2)] {
        let (needed, order) = (fee(77, multiplier), callback(priority, at, 77));
        assert_eq!(callbacks.estimate(&order).fee, needed);
        let given = needed - U256::ONE;
        let refused = callbacks.schedule(&order.clone().with_value(given));
        assert_eq!(refused, Err(CallbackError::FeeTooLow(ICallbackScheduler::FeeTooLow { given, needed })));
        let before = callbacks.chain.balance(LEDGER);
        callbacks.schedule(&order.clone().with_value(needed)).unwrap();
        assert_eq!(callbacks.chain.balance(LEDGER) - before, needed);
        // What is above the fee is back at once.
        callbacks.schedule(&order.with_value(needed + U256::from(123))).unwrap();
        assert_eq!(callbacks.chain.balance(LEDGER) - before, needed + needed);
    }
    callbacks.chain.replay();
}

#[test]
fn flip330_05_above_the_floor_the_base_fee_is_the_price() {
    let callbacks = Callbacks::with_parameters(&[("callback_fee_floor_wei", 1)]);
    let price = u64::try_from(callbacks.chain.next_base_fee().0).unwrap();
    assert!(price > 1);
    let order = callback(Priority::High, callbacks.now() + 1_000, 77);
    assert_eq!(callbacks.estimate(&order).fee, base_part(77, price) * U256::from(10));
}

#[test]
fn flip330_05_a_fee_is_rounded_up() {
    let mut callbacks =
        Callbacks::with_parameters(&[("callback_fee_floor_wei", 1), ("callback_low_percent", 111)]);
    let price = u64::try_from(callbacks.chain.next_base_fee().0).unwrap();
    let order = callback(Priority::Low, callbacks.now() + 1_000, 11);
    let exact = base_part(11, price) * U256::from(111);
    assert_eq!(callbacks.estimate(&order).fee, exact.div_ceil(U256::from(100)));
    callbacks.schedule(&order).unwrap();
}

#[test]
fn flip330_06_a_second_has_room_for_each_class_and_for_both() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 1_000;
    let left = |callbacks: &Callbacks| {
        [Priority::High, Priority::Medium].map(|priority| callbacks.available(at, priority))
    };
    assert_eq!(left(&callbacks), [30_000, 15_000]);
    callbacks.schedule(&callback(Priority::High, at, 9_000)).unwrap();
    assert_eq!(left(&callbacks), [21_000, 15_000]);
    callbacks.schedule(&callback(Priority::Medium, at, 6_000)).unwrap();
    assert_eq!(left(&callbacks), [20_000, 9_000], "1,000 of the shared part are Medium's");
    assert_eq!(callbacks.available(callbacks.now(), Priority::High), 0, "it has passed");
    assert_eq!(callbacks.available(at, Priority::Low), 5_000, "what one may ask for");
}

#[test]
fn flip330_07_high_is_refused_where_medium_moves() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 1_000;
    for effort in [9_999, 9_999, 9_999] {
        callbacks.schedule(&callback(Priority::High, at, effort)).unwrap();
    }
    let error = ICallbackScheduler::NoCapacity {
        timestamp: U256::from(at),
        effort: U256::from(11),
        available: U256::from(3),
    };
    let refused = callbacks.schedule(&callback(Priority::High, at, 11));
    assert_eq!(refused, Err(CallbackError::NoCapacity(error)));
    // High took 9,997 of the shared part.
    assert_eq!(callbacks.schedule(&callback(Priority::Medium, at, 5_003)).unwrap().timestamp, at);
    assert_eq!(callbacks.schedule(&callback(Priority::Medium, at, 11)).unwrap().timestamp, at + 1);
    assert_eq!(callbacks.estimate(&callback(Priority::Medium, at, 11)).timestamp, at + 1);
    callbacks.chain.replay();
}

#[test]
fn flip330_07_the_search_ends_where_a_parameter_says() {
    let mut callbacks = Callbacks::with_parameters(&[("callback_search_seconds_max", 2)]);
    let at = callbacks.now() + 1_000;
    for second in [at, at + 1] {
        callbacks.schedule(&callback(Priority::Medium, second, 9_000)).unwrap();
    }
    assert_eq!(callbacks.schedule(&callback(Priority::Medium, at, 6_000)).unwrap().timestamp, at);
    assert_eq!(callbacks.schedule(&callback(Priority::Medium, at, 6_000)).unwrap().timestamp, at + 1);
    let error = ICallbackScheduler::NoCapacity {
        timestamp: U256::from(at),
        effort: U256::from(11),
        available: U256::ZERO,
    };
    assert_eq!(
        callbacks.schedule(&callback(Priority::Medium, at, 11)),
        Err(CallbackError::NoCapacity(error))
    );
}

#[test]
fn flip330_08_low_books_nothing() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 1_000;
    for _ in 0..3 {
        callbacks.schedule(&callback(Priority::Low, at, 5_000)).unwrap();
    }
    assert_eq!(callbacks.available(at, Priority::High), 30_000);
    assert_eq!(callbacks.available(at, Priority::Medium), 15_000);
}

/// The handler is called after everything is booked, and books again from inside: no second holds more than its limit.
#[test]
fn flip330_09_no_callback_books_past_a_limit_from_inside() {
    let mut callbacks = Callbacks::new();
    let (at, full) = (callbacks.now() + 100, callbacks.now() + 1_000);
    for effort in [9_999, 9_999] {
        callbacks.schedule(&callback(Priority::High, full, effort)).unwrap();
    }
    let funds = callbacks.chain.nonce(booker().address);
    let gift = cron::paid_call(booker(), funds, callbacks.probe, PLENTY, Bytes::new());
    callbacks.chain.produce(vec![gift]);
    // 10,002 are left for High; the probe asks three times for 9,000.
    let data = [b"b".as_slice(), &full.to_be_bytes(), &9_000u64.to_be_bytes()].concat();
    let booked = callbacks.schedule(&callback(Priority::High, at, 2_000).with_data(data)).unwrap();
    assert_eq!(callbacks.at(at), [booked.id]);
    assert!(callbacks.run(booked.id).outcome.is_success());
    assert_eq!(callbacks.booked(full).high, 9_999 + 9_999 + 9_000);
    let answer: Bytes = callbacks.read(callbacks.probe, CallbackProbe::answerCall {});
    let error = ICallbackScheduler::NoCapacity {
        timestamp: U256::from(full),
        effort: U256::from(9_000),
        available: U256::from(1_002),
    };
    assert_eq!(answer, error.abi_encode());
}

#[test]
fn flip330_10_an_estimate_says_what_schedule_would() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 1_000;
    for (priority, timestamp) in [(Priority::High, at), (Priority::Medium, at), (Priority::Low, 0)] {
        let order = callback(priority, at, 5_000);
        let estimated = callbacks.estimate(&order);
        assert_eq!((estimated.timestamp, estimated.reason.len()), (timestamp, 0));
        let booked = callbacks.schedule(&order.with_value(estimated.fee)).unwrap();
        assert_eq!(booked.timestamp, timestamp);
    }
    for (order, is_it) in [
        (callback(Priority::High, 1, 50), "TimestampNotInFuture"),
        (callback(Priority::High, at, 10), "EffortTooLow"),
        (callback(Priority::High, at, 50).with_data(vec![1; 101]), "DataTooLong"),
        (callback(Priority::High, at, 10_000), "EffortTooHigh"),
    ] {
        let estimated = callbacks.estimate(&order);
        assert_eq!((estimated.fee, estimated.timestamp), (U256::ZERO, 0));
        let reason = CallbackError::abi_decode(&estimated.reason).unwrap();
        assert!(format!("{reason:?}").starts_with(is_it), "{reason:?}");
        // The block's time is a second later by now, which only the first of them tells.
        let refused = callbacks.schedule(&order).unwrap_err();
        assert_eq!(std::mem::discriminant(&refused), std::mem::discriminant(&reason));
    }
}

#[test]
fn flip330_15_nobody_calls_process_or_execute() {
    let callbacks = Callbacks::new();
    for name in ["process()", "executeCallback(uint64)", "executeCallback(uint64,bytes)", "execute(uint64)"] {
        let selector = alloy_primitives::keccak256(name)[..4].to_vec();
        let result = callbacks.chain.call(person(3).address, CALLBACKS, [selector, vec![0; 64]].concat());
        assert!(matches!(result.outcome, Outcome::Reverted(_)), "{name}");
    }
}

#[test]
fn flip330_17_ids_that_nobody_has_are_unknown() {
    let mut callbacks = Callbacks::new();
    for id in [0, 1, u64::MAX] {
        assert_eq!(callbacks.status(id), Status::Unknown);
        let error = ICallbackScheduler::UnknownCallback { id: U256::from(id) };
        assert_eq!(callbacks.cancel(booker(), id), Err(CallbackError::UnknownCallback(error)));
    }
    // A job of another door is no callback, and the reverse.
    let order = cron::order(&callbacks.chain);
    let job = callbacks.chain.schedule(booker(), &order).unwrap();
    assert_eq!(callbacks.status(job.to()), Status::Unknown);
    assert!(matches!(callbacks.cancel(booker(), job.to()), Err(CallbackError::UnknownCallback(_))));
    let booked = callbacks.schedule(&callback(Priority::High, callbacks.now() + 50, 50)).unwrap();
    assert!(callbacks.chain.cancel(booker(), U256::from(booked.id)).is_err());
    assert_eq!(callbacks.status(booked.id), Status::Scheduled);
}

#[test]
fn flip330_18_half_returns_on_cancel_and_the_room_is_free_again() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 1_000;
    for priority in [Priority::High, Priority::Medium, Priority::Low] {
        let free = callbacks.available(at, priority);
        // An odd fee: the odd wei is burned.
        let order = callback(priority, at, 77);
        let (paid, booked) = (callbacks.estimate(&order).fee, callbacks.schedule(&order).unwrap());
        let (before, burned) = (callbacks.chain.balance(LEDGER), callbacks.chain.burned);
        let refunded = callbacks.cancel(booker(), booked.id).unwrap();
        assert_eq!(refunded, paid / U256::from(2));
        assert_eq!(before - callbacks.chain.balance(LEDGER), paid);
        let output = callbacks.chain.outputs.last().unwrap();
        let gas = output.gas_used.cost(output.environment.base_fee).0;
        assert_eq!(callbacks.chain.burned - burned, paid - refunded + gas);
        assert_eq!(
            (callbacks.status(booked.id), callbacks.available(at, priority)),
            (Status::Canceled, free)
        );
        let error = ICallbackScheduler::NotScheduled { id: U256::from(booked.id), status: Status::Canceled };
        assert_eq!(callbacks.cancel(booker(), booked.id), Err(CallbackError::NotScheduled(error)));
    }
    let slots = callbacks.chain.state.0.keys().filter(
        |key| matches!(key, StateKey::Slot(LEDGER, slot) if *slot >= almanac_schedule::capacity::bookings_slot(0)),
    );
    assert_eq!(slots.count(), 0, "no slot of capacity is left");
    callbacks.chain.replay();
}

#[test]
fn flip330_18_a_refund_is_rounded_down() {
    let mut callbacks = Callbacks::with_parameters(&[
        ("callback_fee_floor_wei", 1),
        ("callback_low_percent", 111),
        ("callback_refund_bps", 3_333),
    ]);
    let order = callback(Priority::Low, callbacks.now() + 1_000, 11);
    let (paid, booked) = (callbacks.estimate(&order).fee, callbacks.schedule(&order).unwrap());
    let refunded = callbacks.cancel(booker(), booked.id).unwrap();
    assert_eq!(refunded, paid * U256::from(3_333) / U256::from(10_000));
}

#[test]
fn flip330_20_only_the_owner_cancels() {
    let mut callbacks = Callbacks::new();
    let booked = callbacks.schedule(&callback(Priority::High, callbacks.now() + 100, 50)).unwrap();
    let (id, owner) = (U256::from(booked.id), booker().address);
    for stranger in [person(3), governor()] {
        let error = ICallbackScheduler::NotOwner { id, caller: stranger.address, owner };
        assert_eq!(callbacks.cancel(stranger, booked.id), Err(CallbackError::NotOwner(error)));
    }
    // The handler is not the owner.
    assert_eq!(callbacks.status(booked.id), Status::Scheduled);
    assert!(callbacks.cancel(booker(), booked.id).is_ok());
}

#[test]
fn flip330_21_every_number_is_governed_and_terms_are_those_of_creation() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + DAY;
    let order = callback(Priority::High, at, 50);
    let (paid, booked) = (callbacks.estimate(&order).fee, callbacks.schedule(&order).unwrap());
    for (parameter, value) in [
        (CALLBACK_FEE_FLOOR_WEI, 7 * GWEI),
        (CALLBACK_HIGH_PERCENT, 110),
        (CALLBACK_REFUND_BPS, 0),
        (CALLBACK_DATA_BYTES_MAX, 3),
        (CALLBACK_EFFORT_MIN, 20),
        (CALLBACK_EFFORT_MAX, 2_000),
        (CALLBACK_LOW_EFFORT_MAX, 1_000),
        (SECOND_HIGH_EFFORT, 0),
        (SECOND_SHARED_EFFORT, 10),
    ] {
        assert_eq!(callbacks.govern(parameter, value).outcome, Outcome::Success, "{}", parameter.name);
    }
    callbacks.chain.produce(vec![]);
    assert_eq!(callbacks.available(at, Priority::High), 0);
    assert_eq!(callbacks.available(at + 1, Priority::High), 10);
    let refusal = |callbacks: &Callbacks, order: &CallbackOrder| {
        CallbackError::abi_decode(&callbacks.estimate(order).reason).unwrap()
    };
    assert!(matches!(refusal(&callbacks, &callback(Priority::High, at, 19)), CallbackError::EffortTooLow(_)));
    assert!(matches!(
        refusal(&callbacks, &callback(Priority::High, at, 2_001)),
        CallbackError::EffortTooHigh(_)
    ));
    assert!(matches!(
        refusal(&callbacks, &callback(Priority::Low, at, 1_001)),
        CallbackError::EffortTooHigh(_)
    ));
    assert!(matches!(
        refusal(&callbacks, &callback(Priority::High, at, 20).with_data(vec![1; 4])),
        CallbackError::DataTooLong(_)
    ));
    assert!(matches!(refusal(&callbacks, &callback(Priority::High, at, 20)), CallbackError::NoCapacity(_)));
    // The old one is refunded by its own terms, and its room goes back to the unit.
    assert_eq!(callbacks.cancel(booker(), booked.id), Ok(paid / U256::from(2)));
    assert_eq!(callbacks.booked(at).high, 0);
    callbacks.chain.replay();
}

#[test]
fn flip330_21_a_second_never_outgrows_a_block() {
    let mut callbacks = Callbacks::new();
    let mut set = |parameter, value| callbacks.govern(parameter, value).outcome;
    let too_large = |own: u64, shared: u64, max: u64| {
        let error = IParameters::SecondTooLarge {
            own: U256::from(own),
            shared: U256::from(shared),
            max: U256::from(max),
        };
        Outcome::Reverted(error.abi_encode().into())
    };
    let above = |second: u64, block: u64| {
        let error =
            IParameters::SecondAboveBlock { secondGas: U256::from(second), blockGas: U256::from(block) };
        Outcome::Reverted(error.abi_encode().into())
    };
    let (full, more) = (35_000 * EFFORT_GAS, 35_001 * EFFORT_GAS);
    assert_eq!(set(SECOND_HIGH_EFFORT, 20_001), above(more, full));
    assert_eq!(set(RESERVED_BLOCK_GAS_MAX, more), Outcome::Success);
    assert_eq!(set(SECOND_HIGH_EFFORT, 20_001), Outcome::Success);
    assert_eq!(set(SECOND_HIGH_EFFORT, 20_000), Outcome::Success);
    // Seconds may be booked up to it.
    let error = IParameters::ReservedFalls { given: U256::from(full), current: U256::from(more) };
    assert_eq!(set(RESERVED_BLOCK_GAS_MAX, full), Outcome::Reverted(error.abi_encode().into()));
    assert_eq!(set(RESERVED_BLOCK_GAS_MAX, RESERVED_BLOCK_GAS_MAX.max), Outcome::Success);
    assert_eq!(set(SECOND_HIGH_EFFORT, 55_535), Outcome::Success);
    assert_eq!(set(SECOND_HIGH_EFFORT, 55_536), too_large(55_536, 10_000, 65_535));
    assert_eq!(set(SECOND_MEDIUM_EFFORT, 22_767), Outcome::Success);
    assert_eq!(set(SECOND_MEDIUM_EFFORT, 22_768), too_large(22_768, 10_000, 32_767));
}

#[test]
fn flip330_21_off_or_paused_it_takes_nothing_and_cancels_still() {
    for (parameter, value, is_off) in [(CALLBACK_ENABLED, 0, true), (CALLBACK_PAUSED, 1, false)] {
        let mut callbacks = Callbacks::new();
        let at = callbacks.now() + 100;
        let booked = callbacks.schedule(&callback(Priority::High, at, 50)).unwrap();
        callbacks.govern(parameter, value);
        let refused = callbacks.schedule(&callback(Priority::High, at, 50)).unwrap_err();
        match is_off {
            true => assert!(matches!(refused, CallbackError::SchedulerDisabled(_)), "{refused:?}"),
            false => assert!(matches!(refused, CallbackError::SchedulerPaused(_)), "{refused:?}"),
        }
        assert!(callbacks.cancel(booker(), booked.id).is_ok());
    }
}

/// The rules that all doors share.
#[test]
fn flip330_01_manners_of_the_door() {
    let mut callbacks = Callbacks::new();
    let order = callback(Priority::High, callbacks.now() + 100, 50).call(callbacks.probe).abi_encode();
    let forwarded = [CALLBACKS.into_word().as_slice(), &order].concat();
    // A delegatecall would act in the name of its caller; a static call may not book.
    for caller in [DELEGATOR, CODE_CALLER, STATIC_CALLER] {
        let receipt = callbacks.chain.send(booker(), caller, U256::ZERO, forwarded.clone());
        assert!(!receipt.outcome.is_success(), "{caller}");
    }
    // A booking whose frame reverts leaves nothing.
    let before = callbacks.chain.state.account(LEDGER);
    let receipt = callbacks.chain.send(booker(), FORWARD_AND_REVERT, PLENTY, forwarded);
    assert!(!receipt.outcome.is_success() && receipt.logs.is_empty());
    assert_eq!(callbacks.chain.state.account(LEDGER), before);
    // Value is refused where nothing takes it.
    for call in [
        ICallbackScheduler::cancelCall { id: 1 }.abi_encode(),
        ICallbackScheduler::getStatusCall { id: 1 }.abi_encode(),
        ICallbackScheduler::setSchedulerCall { scheduler: Address::ZERO, allowed: true }.abi_encode(),
    ] {
        assert!(!callbacks.chain.send(booker(), CALLBACKS, U256::ONE, call).outcome.is_success());
    }
}
