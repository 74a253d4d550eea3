//! Attacks on the callback scheduler: floods of the smallest, handlers that are not the attacker's, and faults of our
//! own in the middle of a flood.

use crate::attacks::looper::{Input, Looper, Scheme};
use crate::support::{callbacks::*, *};
use alloy_primitives::{Address, TxKind, U256, address};
use alloy_sol_types::SolCall;
use almanac_primitives::{
    GasPrice, StateRead, TimestampMs,
    addresses::{
        BLOCK_HASH_HISTORY, BURN, CALLBACKS, CRON_REGISTRY, DEVELOPER_DOOR, LEDGER,
        PARAMETERS as PARAMETERS_DOOR,
    },
    params::{
        BLOCK_GAS_MAX, CALLBACK_EFFORT_LEAST, CALLBACK_PAUSED, EFFORT_GAS, ENDED_KEPT_BLOCKS, Parameters,
    },
};
use almanac_schedule::{
    Agenda, CalendarAgenda,
    calendar::{CalendarError, Entry, Queue},
};
use std::sync::Arc;

/// Gas of one order of the smallest callback, a little more than it takes.
const ORDER_GAS: u64 = 330_000;

/// A chain with room for floods.
fn wide() -> Callbacks {
    Callbacks::with_parameters(&[(BLOCK_GAS_MAX.name, BLOCK_GAS_MAX.max), (ENDED_KEPT_BLOCKS.name, 2)])
}

/// Books so many of the smallest High callbacks in one second, each block by a contract of its own that is its own
/// handler. Answers with their ids.
fn fill(callbacks: &mut Callbacks, second: u64, count: usize) -> Vec<u64> {
    let mut ids = Vec::new();
    let value = callbacks.estimate(&callback(Priority::High, second, CALLBACK_EFFORT_LEAST)).fee;
    while ids.len() < count {
        let (from, left) = (person(6), (count - ids.len()).min(180) as u64);
        let nonce = callbacks.chain.nonce(from.address);
        let order = callback(Priority::High, second, CALLBACK_EFFORT_LEAST).call(from.address.create(nonce));
        let looper = Looper {
            scheme: Scheme::Call,
            to: CALLBACKS,
            input: Input::padded(order.abi_encode(), 0),
            value,
            gas: ORDER_GAS,
        };
        // No more money than the orders cost: what its gas would pay for beyond that fails. Blocks are at most half full,
        // so that the price stays.
        let mut tx = eip1559(nonce, TxKind::Create, 0, looper.looping(), left * ORDER_GAS + 200_000);
        tx.value = value * U256::from(left);
        let produced = callbacks.chain.produce_once(&callbacks.chain.input(), vec![sign(tx, from.secret)]);
        let booked = callbacks.said::<CallbackScheduled>();
        assert_eq!(booked.len() as u64, left, "{:?}", produced.receipt(0).outcome);
        ids.extend(booked.into_iter().map(|event| event.id));
    }
    ids
}

/// A second that is full of the smallest callbacks runs in its block, and everything about them was paid for when they
/// were made: marking, releasing, two slots that change three times, a kept end, its removal, and two events.
#[test]
fn attack_01_a_second_full_of_the_smallest() {
    let mut callbacks = wide();
    let at = callbacks.now() + 100;
    let most = usize::try_from(30_000 / CALLBACK_EFFORT_LEAST).unwrap();
    let ids = fill(&mut callbacks, at, most);
    let left = 30_000 - CALLBACK_EFFORT_LEAST * most as u64;
    assert_eq!(callbacks.available(at, Priority::High), left);
    let produced = callbacks.chain.produce_once(&callbacks.chain.input_at(TimestampMs(at * 1_000)), vec![]);
    assert_eq!(runs::ran(&produced.output), ids);
    assert_eq!(events::<CallbackProcessed>(&produced.output.receipts[0].logs).len(), most);
    assert!(produced.output.reserved_gas_used.0 <= 30_000 * EFFORT_GAS);
    // All ends are taken away in one block, and nothing is left.
    callbacks.chain.produce_once(&callbacks.chain.input(), vec![]);
    callbacks.chain.produce_once(&callbacks.chain.input(), vec![]);
    assert!(ledger::records(&callbacks.chain.state).is_empty());
    assert_eq!(callbacks.chain.balance(LEDGER), U256::ZERO);
}

/// Creation prepays what happens where nobody pays: by Ethereum's prices, slot by slot and log by log.
#[test]
fn attack_01_creation_pays_for_the_whole_life() {
    let mut callbacks = wide();
    let at = callbacks.now() + 100;
    callbacks.schedule(&callback(Priority::High, at, CALLBACK_EFFORT_LEAST)).unwrap();
    let order = callback(Priority::High, at, CALLBACK_EFFORT_LEAST);
    let fee = callbacks.estimate(&order).fee;
    let input = order.call(callbacks.probe);
    let bytes = input.abi_encode().len() as u64;
    let receipt = callbacks.send(booker(), CALLBACKS, fee, input);
    // Less the transaction's own gas, and what a flood in one transaction saves since it reads its slots once.
    let each = receipt.gas_used.0 - 21_000 - 16 * bytes - 5 * 2_100;
    let (slot, entry, log, payment) = (5_000, 15_000, 2_000, 9_000);
    // Process: the head, four slots of capacity, an entry out, a log. Begin: head and escrow, in the run's intrinsic
    // gas. Settle: the head, two payments, an entry in, a log with 256 bytes of a reason. Sweep: two slots, an entry out.
    let unpaid =
        (slot + 4 * slot + entry + log) + (slot + 2 * payment + entry + log + 8 * 256) + (2 * slot + entry);
    // What it does itself: two new slots, a change of the bookings, an entry, the body.
    let own = 2 * 22_100 + slot + entry + 200 * 200;
    assert!(each >= unpaid + own, "{each} gas for {unpaid} and {own}");
}

/// No account that is not the caller's own or has said so can be called: neither system accounts nor precompiles, for
/// which nobody can speak.
#[test]
fn attack_06_nobody_books_a_system_account() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 1_000;
    let precompile = address!("0x0000000000000000000000000000000000000006");
    for handler in [
        CALLBACKS,
        LEDGER,
        CRON_REGISTRY,
        PARAMETERS_DOOR,
        BURN,
        BLOCK_HASH_HISTORY,
        DEVELOPER_DOOR,
        precompile,
        Address::ZERO,
    ] {
        let refused = callbacks.schedule_as(booker(), handler, &callback(Priority::High, at, 50));
        assert!(matches!(refused, Err(CallbackError::HandlerNotAllowed(_))), "{handler}");
    }
}

/// docs/denial-prices.md: Lows that fill the whole lane wait as long as every block has a booked run, and with a hundred
/// of them in front nothing else of the lane runs. As soon as blocks come without booked runs, it goes on.
#[test]
fn attack_03_lows_that_never_fit_stop_the_lane_where_each_block_has_a_booked_run() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 300;
    let booked: Vec<u64> = (at..at + 10)
        .map(|second| callbacks.schedule(&callback(Priority::High, second, 11)).unwrap().id)
        .collect();
    for _ in 0..100 {
        callbacks.schedule(&callback(Priority::Low, at, 5_000)).unwrap();
    }
    let small = callbacks.schedule(&callback(Priority::Low, at, 60)).unwrap().id;
    for (second, high) in (at..).zip(booked) {
        assert_eq!(callbacks.at(second), [high], "blocks of one second");
    }
    // A large one goes, and the small one is among the hundred oldest.
    assert_eq!(callbacks.at(at + 10).len(), 1);
    let high = callbacks.schedule(&callback(Priority::High, 0, 11)).unwrap();
    assert_eq!(callbacks.at(high.timestamp), [high.id, small]);
}

/// Where Low is at most half of the lane, it takes as much booked effort in every block.
#[test]
fn attack_03_lows_of_half_the_lane_do_not_stop_it() {
    let mut callbacks = Callbacks::with_parameters(&[("callback_low_effort_max", 2_500)]);
    let at = callbacks.now() + 300;
    let high = callbacks.schedule(&callback(Priority::High, at, 2_500)).unwrap().id;
    let lows =
        [2_500, 2_500].map(|effort| callbacks.schedule(&callback(Priority::Low, at, effort)).unwrap().id);
    assert_eq!(callbacks.at(at), [high, lows[0]]);
    assert!(callbacks.schedule(&callback(Priority::Low, at + 9, 2_501)).is_err());
}

/// An account with a delegation (EIP-7702) is a handler like a contract: its code runs, in its own name. Delegated to a
/// door it is no door: what is sent to it books nothing.
#[test]
fn attack_06_an_account_with_a_delegation() {
    let (alice, mut callbacks) = (person(3), Callbacks::new());
    for delegate in [contracts::COUNTER, CALLBACKS, LEDGER] {
        let nonce = callbacks.chain.nonce(alice.address);
        let delegation = vec![authorize(alice, nonce, delegate)];
        let sender = person(4);
        let tx = eip7702(callbacks.chain.nonce(sender.address), person(5).address, delegation, 100_000);
        assert!(callbacks.chain.produce(vec![sign(tx, sender.secret)]).receipt(0).outcome.is_success());
        let at = callbacks.now() + 10;
        let own = callback(Priority::High, at, 100);
        let id = callbacks.schedule_as(alice, alice.address, &own).unwrap().id;
        let order = own.call(alice.address).abi_encode();
        let receipt = callbacks.chain.send(sender, alice.address, U256::ZERO, order);
        assert_eq!(events::<CallbackScheduled>(&receipt.logs), [], "{delegate}");
        assert_eq!(callbacks.booked(at).high, 100);
        assert_eq!(callbacks.at(at), [id]);
        let counted = callbacks.chain.state.slot_of(alice.address, CALLBACKS);
        assert_eq!(counted, U256::ONE, "{delegate}: the delegate's code ran once, called by the scheduler");
    }
    callbacks.chain.replay();
}

/// A calendar that can be read for a thousand entries only.
struct BreaksBehindTheFirstPage;

impl Agenda for BreaksBehindTheFirstPage {
    fn due_from(
        &self,
        state: &dyn StateRead,
        queue: Queue,
        until: u64,
        from: Option<Entry>,
        count_max: usize,
    ) -> Result<Vec<Entry>, CalendarError> {
        match (queue, from) {
            (Queue::Reserved, Some(_)) => Err(CalendarError::Missing { node: 7 }),
            _ => CalendarAgenda.due_from(state, queue, until, from, count_max),
        }
    }

    fn next_due(
        &self,
        _: &dyn StateRead,
        _: &Parameters,
        _: GasPrice,
    ) -> Result<Option<TimestampMs>, CalendarError> {
        Ok(None)
    }
}

/// The prologue marks what it takes up, so a fault in the middle must not keep it from running: it would be neither run
/// nor cancelled ever after, with its fee.
#[test]
fn attack_08_what_was_taken_up_before_a_fault_runs() {
    let mut callbacks = wide();
    let at = callbacks.now() + 100;
    let ids = fill(&mut callbacks, at, 1_010);
    callbacks.chain.agenda = Arc::new(BreaksBehindTheFirstPage);
    let produced = callbacks.chain.produce_once(&callbacks.chain.input_at(TimestampMs(at * 1_000)), vec![]);
    assert_eq!(runs::ran(&produced.output), ids[..1_000]);
    assert_eq!(callbacks.status(ids[0]), Status::Executed);
    assert_eq!(callbacks.status(ids[1_000]), Status::Scheduled, "the lane is paused, its owner may cancel");
    // Governance resumes when the fault is repaired.
    callbacks.chain.agenda = Arc::new(CalendarAgenda);
    assert!(callbacks.at(at + 1).is_empty());
    assert!(callbacks.govern(CALLBACK_PAUSED, 0).outcome.is_success());
    assert_eq!(callbacks.at(at + 10), ids[1_000..]);
}
