//! FLIP-330: when callbacks run, in which order, and who gets the fee.

use crate::support::{callbacks::*, *};
use alloy_primitives::{Bytes, U256};
use alloy_sol_types::{SolError, SolInterface};
use almanac_exec::BlockInput;
use almanac_primitives::{
    Gas, Lane, Outcome, TimestampMs,
    addresses::CALLBACKS,
    params::{
        CALLBACK_PAUSED, EFFORT_GAS, ENDED_KEPT_BLOCKS, SECOND_HIGH_EFFORT, SECOND_MEDIUM_EFFORT,
        SECOND_SHARED_EFFORT,
    },
    run::{PROLOGUE_TYPE, RUN_TYPE},
};

const GWEI: u64 = 1_000_000_000;

impl Callbacks {
    /// Books a callback, and answers with its id.
    fn booked_id(&mut self, priority: Priority, second: u64, effort: u64) -> u64 {
        self.schedule(&callback(priority, second, effort)).unwrap().id
    }
}

#[test]
fn flip330_11_what_is_booked_runs_in_the_first_block_of_its_second() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 100;
    let high = callbacks.booked_id(Priority::High, at, 50);
    let medium = callbacks.booked_id(Priority::Medium, at, 50);
    assert_eq!(callbacks.at_ms(at * 1_000 - 1), [0u64; 0]);
    assert_eq!(callbacks.at_ms(at * 1_000), [high, medium]);
    assert_eq!(callbacks.came(), [high, medium]);
    assert_eq!(callbacks.at_ms(at * 1_000 + 1), [0u64; 0], "once");
    callbacks.chain.replay();
}

#[test]
fn flip330_11_a_full_second_runs_in_one_block() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 100;
    let mut booked: Vec<u64> =
        [9_999, 9_999, 9_999].map(|effort| callbacks.booked_id(Priority::High, at, effort)).into();
    booked.push(callbacks.booked_id(Priority::Medium, at, 5_003));
    assert_eq!(callbacks.at(at), booked);
    let output = callbacks.chain.outputs.last().unwrap();
    assert_eq!(output.gas_used, Gas::ZERO, "it competes with nobody");
    assert!(output.reserved_gas_used > Gas::ZERO);
}

/// After failed views the lane is smaller; what does not fit keeps its order.
#[test]
fn flip330_11_the_lane_halves_with_failed_views() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 100;
    let booked = [9_999, 9_999, 9_999].map(|effort| callbacks.booked_id(Priority::High, at, effort));
    let parent_view = callbacks.chain.head.consensus.view;
    let mut input: BlockInput = callbacks.chain.input_at(TimestampMs(at * 1_000));
    // Two failed views: half of 35,000 effort.
    input.consensus.view = parent_view + 3;
    let ran = callbacks.chain.produce_with(&input, vec![]).ran();
    assert_eq!(ran, booked[..1].iter().map(|id| U256::from(*id)).collect::<Vec<_>>());
    assert_eq!(callbacks.at_ms(at * 1_000 + 1), booked[1..]);
}

#[test]
fn flip330_12_slots_then_priority_then_id() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 100;
    let later = callbacks.booked_id(Priority::High, at + 1, 50);
    let low = callbacks.booked_id(Priority::Low, at, 50);
    let medium = callbacks.booked_id(Priority::Medium, at, 50);
    let first = callbacks.booked_id(Priority::High, at, 50);
    let second = callbacks.booked_id(Priority::High, at, 50);
    let medium_later = callbacks.booked_id(Priority::Medium, at + 1, 50);
    assert_eq!(callbacks.at(at + 1), [first, second, medium, later, medium_later, low]);
    callbacks.chain.replay();
}

#[test]
fn flip330_12_high_and_medium_run_before_user_transactions_and_low_after_them() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 100;
    let (low, high) =
        (callbacks.booked_id(Priority::Low, at, 50), callbacks.booked_id(Priority::High, at, 50));
    let tx = transfer(person(4), 0, person(5).address, 1);
    let produced = callbacks.chain.produce_with(&callbacks.chain.input_at(TimestampMs(at * 1_000)), vec![tx]);
    let order: Vec<_> = produced.output.receipts.iter().map(|receipt| receipt.transaction_type).collect();
    assert_eq!(order, [PROLOGUE_TYPE, RUN_TYPE, 2, RUN_TYPE]);
    assert_eq!(produced.ran(), [U256::from(high), U256::from(low)]);
}

#[test]
fn flip330_13_low_gets_what_booked_runs_left_and_small_ones_pass() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 100;
    let high = callbacks.booked_id(Priority::High, at, 1_000);
    // 4,000 are left for Low: the first does not fit, the second does, the third no longer, the fourth just so.
    let large = callbacks.booked_id(Priority::Low, at, 4_001);
    let fits = callbacks.booked_id(Priority::Low, at, 3_900);
    let waits = callbacks.booked_id(Priority::Low, at, 101);
    let small = callbacks.booked_id(Priority::Low, at, 100);
    assert_eq!(callbacks.at(at), [high, fits, small]);
    assert_eq!(callbacks.at(at + 1), [large, waits]);
    callbacks.chain.replay();
}

#[test]
fn flip330_13_no_room_is_left_behind_a_full_block() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 100;
    let high = callbacks.booked_id(Priority::High, at, 5_000);
    let low = callbacks.booked_id(Priority::Low, at, 11);
    assert_eq!(callbacks.at(at), [high]);
    assert_eq!(callbacks.at(at + 1), [low]);
}

#[test]
fn flip330_13_only_the_hundred_oldest_are_looked_at() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 1_000;
    let blocker = callbacks.booked_id(Priority::High, at, 4_000);
    // All of these are too large for what the High one leaves; the last is small, and number 101.
    let large: Vec<u64> = (0..100).map(|_| callbacks.booked_id(Priority::Low, at, 1_001)).collect();
    let small = callbacks.booked_id(Priority::Low, at, 11);
    assert_eq!(callbacks.at(at), [blocker]);
    assert_eq!(callbacks.at(at + 1), large[..4]);
    // Four are gone, so it is among the oldest now: 996 effort are left behind four more.
    assert_eq!(callbacks.at(at + 2), [&large[4..8], &[small]].concat());
}

#[test]
fn flip330_14_after_a_halt_the_rest_carries_over_in_order() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 100;
    let mut booked = Vec::new();
    for second in at..at + 3 {
        for effort in [9_999, 9_999] {
            booked.push(callbacks.booked_id(Priority::High, second, effort));
        }
    }
    // One block takes up at most one second's worth: 35,000 effort hold three.
    assert_eq!(callbacks.at(at + 10), booked[..3]);
    assert_eq!(callbacks.at(at + 11), booked[3..]);
    callbacks.chain.replay();
}

#[test]
fn flip330_15_the_prologue_processes_before_anything_runs() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 100;
    let first = callbacks.schedule(&callback(Priority::High, at, 500).with_data(b"s".to_vec())).unwrap().id;
    let second = callbacks.booked_id(Priority::High, at, 50);
    let low = callbacks.booked_id(Priority::Low, at, 60);
    assert_eq!(callbacks.at(at), [first, second, low]);
    let receipts = &callbacks.chain.outputs.last().unwrap().receipts;
    let processed = events::<CallbackProcessed>(&receipts[0].logs);
    let expected = [(first, 500), (second, 50), (low, 60)];
    assert_eq!(processed, expected.map(|(id, effort)| CallbackProcessed { id, executionEffort: effort }));
    // A transaction and a hash of its own for each, within its own effort.
    let hashes: std::collections::BTreeSet<_> =
        receipts.iter().map(|receipt| receipt.transaction_hash).collect();
    assert_eq!(hashes.len(), 4);
    let status: u8 = callbacks.read(callbacks.probe, CallbackProbe::statusInsideCall {});
    assert_eq!(status, Status::Processed as u8, "not executed before it is over");
    assert_eq!(callbacks.status(first), Status::Executed);
}

#[test]
fn flip330_15_a_run_comes_from_the_scheduler() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 100;
    let id = callbacks.booked_id(Priority::High, at, 50);
    callbacks.at(at);
    let output = callbacks.chain.outputs.last().unwrap();
    let run = output.transactions.iter().find_map(|executed| executed.run()).unwrap();
    assert_eq!((run.from, run.to, run.lane), (CALLBACKS, callbacks.probe, Lane::Reserved));
    assert_eq!((run.gas_limit, run.schedule_ref.schedule.0), (Gas(50 * EFFORT_GAS), id));
}

#[test]
fn flip330_16_a_failure_is_its_own() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 100;
    let order = |data: &[u8]| callback(Priority::High, at, 60).with_data(data.to_vec());
    let reverts = callbacks.schedule(&order(b"r")).unwrap().id;
    let burns = callbacks.schedule(&order(b"g")).unwrap().id;
    let fine = callbacks.schedule(&order(b"")).unwrap().id;
    assert_eq!(callbacks.at(at), [reverts, burns, fine]);
    assert_eq!(callbacks.came(), [fine], "what failed has left nothing");
    let refused: Bytes = CallbackProbe::Refused { id: reverts }.abi_encode().into();
    let failed = callbacks.said::<CallbackFailed>();
    let out_of_gas: Bytes = alloy_sol_types::Revert::from("out of gas").abi_encode().into();
    assert_eq!(
        failed,
        [
            CallbackFailed { id: reverts, reason: refused.clone() },
            CallbackFailed { id: burns, reason: out_of_gas }
        ]
    );
    assert_eq!(callbacks.said::<CallbackExecuted>(), [CallbackExecuted { id: fine }]);
    assert_eq!(callbacks.run(reverts).outcome, Outcome::Reverted(refused));
    assert_eq!(callbacks.run(burns).gas_used, Gas(60 * EFFORT_GAS));
    let statuses = [reverts, burns, fine].map(|id| callbacks.status(id));
    assert_eq!(statuses, [Status::Failed, Status::Failed, Status::Executed]);
    callbacks.chain.replay();
}

#[test]
fn flip330_17_final_statuses_are_kept_for_a_number_of_blocks() {
    let mut callbacks = Callbacks::with_parameters(&[(ENDED_KEPT_BLOCKS.name, 3)]);
    let at = callbacks.now() + 100;
    let ran = callbacks.booked_id(Priority::High, at, 50);
    assert_eq!(callbacks.status(ran), Status::Scheduled);
    callbacks.at(at);
    // Kept for three blocks after the one that ended it.
    for _ in 0..2 {
        assert_eq!(callbacks.status(ran), Status::Executed);
        callbacks.chain.produce(vec![]);
    }
    assert_eq!(callbacks.status(ran), Status::Executed);
    callbacks.chain.produce(vec![]);
    assert_eq!(callbacks.status(ran), Status::Unknown);
    assert!(ledger::records(&callbacks.chain.state).is_empty());
    callbacks.chain.replay();
}

#[test]
fn flip330_18_what_the_block_has_taken_up_cannot_be_cancelled() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 100;
    // The id of the callback that comes second is known only after it is booked, so it is booked first.
    let victim = callbacks.booked_id(Priority::Medium, at, 50);
    let data = [b"c".as_slice(), &victim.to_be_bytes()].concat();
    let killer = callbacks.schedule(&callback(Priority::High, at, 500).with_data(data)).unwrap().id;
    // The probe owns nothing, so it is refused for that already; with the owner as handler it is the status.
    assert_eq!(callbacks.at(at), [killer, victim]);
    let answer: Bytes = callbacks.read(callbacks.probe, CallbackProbe::answerCall {});
    assert!(matches!(CallbackError::abi_decode(&answer), Ok(CallbackError::NotOwner(_))));
    let error = ICallbackScheduler::NotScheduled { id: U256::from(victim), status: Status::Executed };
    assert_eq!(callbacks.cancel(booker(), victim), Err(CallbackError::NotScheduled(error)));
}

#[test]
fn flip330_18_a_handler_cannot_cancel_its_own_callback_that_is_taken_up() {
    let mut callbacks = Callbacks::new();
    let (at, probe) = (callbacks.now() + 100, callbacks.probe);
    let book = |callbacks: &mut Callbacks, data: Vec<u8>, priority| {
        let call = CallbackProbe::bookCall { data: data.into(), timestamp: at, priority, effort: 500 };
        let receipt = callbacks.send(person(2), probe, PLENTY, call);
        only::<CallbackScheduled>(&receipt.logs).id
    };
    let victim = book(&mut callbacks, vec![], Priority::Medium as u8);
    let data = [b"c".as_slice(), &victim.to_be_bytes()].concat();
    let killer = book(&mut callbacks, data, Priority::High as u8);
    assert_eq!(callbacks.at(at), [killer, victim], "both run");
    let answer: Bytes = callbacks.read(probe, CallbackProbe::answerCall {});
    let error = ICallbackScheduler::NotScheduled { id: U256::from(victim), status: Status::Processed };
    assert_eq!(answer, error.abi_encode());
}

#[test]
fn flip330_18_the_fee_returns_where_the_chain_was_late() {
    for (late_ms, is_refunded) in [(60_000, false), (60_001, true)] {
        let mut callbacks = Callbacks::new();
        let at = callbacks.now() + 100;
        let order = callback(Priority::High, at, 50);
        let fee = callbacks.estimate(&order).fee;
        let high = callbacks.schedule(&order).unwrap().id;
        let low = callbacks.booked_id(Priority::Low, at, 50);
        let before = callbacks.chain.balance(booker().address);
        assert_eq!(callbacks.at_ms(at * 1_000 + late_ms), [high, low], "it still runs");
        let refunded = if is_refunded { fee } else { U256::ZERO };
        assert_eq!(callbacks.chain.balance(booker().address) - before, refunded);
        let said = callbacks.said::<CallbackRefunded>();
        assert_eq!(said.len(), usize::from(is_refunded), "Low has no time that it could miss");
        assert!(said.iter().all(|said| *said == CallbackRefunded { id: high, amount: fee }));
        callbacks.chain.replay();
    }
}

/// FLIP330-18: only the chain's own fault refunds. Blocks that are slow because seconds are full of slow work are not
/// one, or whoever books enough of them gets all fees back.
#[test]
fn flip330_18_a_lane_that_is_only_full_returns_no_fee() {
    // One callback fills a second, and a block runs one second's worth.
    let mut callbacks = Callbacks::with_parameters(&[
        ("second_effort_high", 9_999),
        ("second_effort_medium", 0),
        ("second_effort_shared", 0),
    ]);
    let first = callbacks.now() + 200;
    let ids: Vec<_> = (0..40).map(|n| callbacks.booked_id(Priority::High, first + n, 9_000)).collect();
    let paid = callbacks.chain.balance(FEE_RECIPIENT);
    let (mut ran, mut at) = (Vec::new(), first);
    while ran.len() < ids.len() {
        ran.extend(callbacks.at(at));
        assert_eq!(callbacks.said::<CallbackRefunded>(), [], "at {at}");
        // No standstill, but the last ones run minutes late.
        at += 59;
    }
    assert_eq!(ran, ids);
    let base = base_part(9_000, GWEI) * U256::from(ids.len());
    assert!(callbacks.chain.balance(FEE_RECIPIENT) - paid >= base, "every one was paid for");
    callbacks.chain.replay();
}

/// FLIP330-18: what was due while the chain stood still is refunded, also if it runs in a later block; what is due
/// after that is not, however long it waits behind it.
#[test]
fn flip330_18_a_standstill_refunds_what_was_due_in_it() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 100;
    let in_it: Vec<_> = (0..8).map(|n| callbacks.booked_id(Priority::High, at + n, 9_999)).collect();
    let after = callbacks.booked_id(Priority::High, at + 300, 9_999);
    // A block runs three of these, a second has room for two.
    let (mut ran, mut refunded, mut now) = (Vec::new(), Vec::new(), at + 299);
    while ran.len() < in_it.len() + 1 {
        ran.extend(callbacks.at(now));
        refunded.extend(callbacks.said::<CallbackRefunded>().into_iter().map(|said| said.id));
        now += 59;
    }
    assert_eq!((ran.last(), &refunded), (Some(&after), &in_it));
    callbacks.chain.replay();
}

#[test]
fn flip330_18_a_pause_of_more_than_a_minute_refunds_a_cancel_in_full() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 100;
    let order = callback(Priority::Medium, at, 50);
    let (fee, id) = (callbacks.estimate(&order).fee, callbacks.schedule(&order).unwrap().id);
    callbacks.govern(CALLBACK_PAUSED, 1);
    assert_eq!(callbacks.at(at), [0u64; 0], "held back");
    callbacks.at(at + 60);
    assert_eq!(callbacks.status(id), Status::Scheduled);
    assert_eq!(callbacks.cancel(booker(), id), Ok(fee));
    callbacks.chain.replay();
}

#[test]
fn flip330_19_the_base_part_pays_the_block_and_the_premium_burns() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 100;
    for (priority, second, multiplier) in
        [(Priority::High, at, 10), (Priority::Medium, at + 10, 5), (Priority::Low, at + 20, 2)]
    {
        callbacks.booked_id(priority, second, 77);
        let (paid, burned) = (callbacks.chain.balance(FEE_RECIPIENT), callbacks.chain.burned);
        callbacks.at(second);
        let base = base_part(77, GWEI);
        assert_eq!(callbacks.chain.balance(FEE_RECIPIENT) - paid, base);
        assert_eq!(callbacks.chain.burned - burned, base * U256::from(multiplier - 1));
    }
}

/// FLIP330-19: what rounding left over is burned; after all ended the ledger owes nobody and holds nothing.
#[test]
fn flip330_19_nothing_is_left_of_a_fee() {
    let mut callbacks =
        Callbacks::with_parameters(&[("callback_fee_floor_wei", 1), ("callback_high_percent", 333)]);
    let at = callbacks.now() + 100;
    let order = callback(Priority::High, at, 77).with_data(b"r".to_vec());
    let fee = callbacks.estimate(&order).fee;
    callbacks.schedule(&order).unwrap();
    let price = u64::try_from(callbacks.chain.outputs.last().unwrap().environment.base_fee.0).unwrap();
    let (paid, burned) = (callbacks.chain.balance(FEE_RECIPIENT), callbacks.chain.burned);
    callbacks.at(at);
    let base = base_part(77, price);
    assert_eq!(callbacks.chain.balance(FEE_RECIPIENT) - paid, base, "a failed run pays as well");
    assert_eq!(callbacks.chain.burned - burned, fee - base);
    assert_eq!(callbacks.chain.balance(almanac_primitives::addresses::LEDGER), U256::ZERO);
}

/// FLIP330-21: booked High still runs when limits shrink.
#[test]
fn flip330_21_what_is_booked_runs_when_limits_shrink() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 100;
    let booked = [9_999, 9_999, 9_999].map(|effort| callbacks.booked_id(Priority::High, at, effort));
    for parameter in [SECOND_HIGH_EFFORT, SECOND_MEDIUM_EFFORT, SECOND_SHARED_EFFORT] {
        assert_eq!(callbacks.govern(parameter, 0).outcome, Outcome::Success);
    }
    assert_eq!(callbacks.at(at), booked);
    callbacks.chain.replay();
}

#[test]
fn flip330_22_every_step_is_told() {
    let mut callbacks = Callbacks::new();
    let at = callbacks.now() + 100;
    let (owner, handler) = (booker().address, callbacks.probe);
    let id = callbacks.booked_id(Priority::Medium, at, 50);
    let scheduled = CallbackScheduled {
        id,
        owner,
        handler,
        timestamp: at,
        priority: Priority::Medium,
        executionEffort: 50,
    };
    assert_eq!(callbacks.said::<CallbackScheduled>(), [scheduled]);
    callbacks.at(at);
    assert_eq!(callbacks.said::<CallbackProcessed>(), [CallbackProcessed { id, executionEffort: 50 }]);
    assert_eq!(callbacks.said::<CallbackExecuted>(), [CallbackExecuted { id }]);
    let low = callbacks.booked_id(Priority::Low, at + 50, 50);
    let refunded = callbacks.cancel(booker(), low).unwrap();
    assert_eq!(callbacks.said::<CallbackCanceled>(), [CallbackCanceled { id: low, refunded }]);
}

/// FLIP330-23: what is pending costs an idle block nothing.
#[test]
fn flip330_23_an_idle_block_reads_the_same_whatever_is_pending() {
    let idle_reads = |pending: u64| {
        let mut callbacks = Callbacks::new();
        let at = callbacks.now() + 10_000;
        for n in 0..pending {
            callbacks.booked_id(Priority::High, at + n, 50);
        }
        let counted = support_reads(&callbacks.chain);
        callbacks.chain.produce(vec![]);
        counted
    };
    assert_eq!(idle_reads(1), idle_reads(40));
}

/// How many values an empty block reads.
fn support_reads(chain: &TestChain) -> usize {
    let counting = Counting { state: &chain.state, reads: Default::default() };
    let mut source = almanac_exec::Candidates::new(vec![]);
    almanac_exec::execute(&counting, &*chain.agenda, &chain.input(), &mut source).unwrap();
    counting.reads.load(std::sync::atomic::Ordering::Relaxed)
}
