//! The life of a schedule on a ledger in memory: every step, and no wei made or lost on the way.

use alloy_primitives::{Address, Bytes, U256};
use almanac_primitives::{
    DurationMs, Gas, GasPrice, Halt, Lane, Outcome, ScheduleId, ScheduleRef, TimestampMs, Wei,
};
use almanac_schedule::{
    Failure, Record,
    capacity::Shares,
    cron::{CatchUp, Charge, CronTerms},
    decide::{Decision, End, Moment, NextRun, RunEnd, decide, is_passed_over},
    ledger::{MemoryLedger, load},
    life::{self, Begun, CancelError, Event, NewSchedule, TopUpError, What},
    record::{Body, Broken, Call, Door, LastRun, Status, Terms, Trigger, head_slot},
};
use proptest::prelude::*;
use std::{convert::Infallible, num::NonZeroU64};

const ID: ScheduleId = ScheduleId(7);
const OWNER: Address = Address::repeat_byte(1);
const PAYEE: Address = Address::repeat_byte(2);
const FEE: GasPrice = GasPrice(3);
const GAS: Gas = Gas(100);
/// What a run takes.
const CHARGE: u64 = 300;
const START: TimestampMs = TimestampMs(1_000_000);
const INTERVAL: DurationMs = DurationMs(60_000);

fn terms(interval: bool, runs_max: u64) -> CronTerms {
    CronTerms {
        interval_ms: NonZeroU64::new(if interval { INTERVAL.0 } else { 0 }),
        runs_max: NonZeroU64::new(runs_max),
        catch_up: CatchUp::All,
        charge: Charge::GasLimit,
    }
}

fn created(terms: CronTerms, escrow: u64) -> MemoryLedger {
    let (from, to) = (Address::repeat_byte(6), Address::repeat_byte(9));
    let body = Body {
        owner: OWNER,
        refund_to: PAYEE,
        gas_limit: GAS,
        trigger: Trigger::Time,
        terms: Terms::Cron(terms),
        calls: vec![Call { from, to, value: Wei::ZERO, input: Bytes::from_static(&[1, 2, 3, 4]) }],
    };
    let mut ledger = MemoryLedger::default();
    let new = NewSchedule { body, lane: Lane::Cron, due: Some(START), priority: 0, escrow: wei(escrow) };
    let event = life::create(&mut ledger, ID, new).unwrap();
    assert_eq!(
        event,
        happened(What::Created {
            owner: OWNER,
            target: to,
            lane: Lane::Cron,
            due: Some(START),
            gas_limit: GAS,
            priority: 0
        })
    );
    ledger
}

fn happened(what: What) -> Event {
    Event { id: ID, door: Some(Door::Cron), what }
}

fn ended(end: End, refunded: u64) -> Event {
    happened(What::Ended { end, owner: OWNER, refunded: wei(refunded) })
}

fn wei(amount: u64) -> Wei {
    Wei(U256::from(amount))
}

fn record(ledger: &mut MemoryLedger) -> Option<Record> {
    load::<_, Infallible>(ledger, ID).expect("a record that can be read")
}

fn at(now: TimestampMs) -> Moment {
    Moment {
        block: 9,
        now,
        base_fee: FEE,
        fee_recipient: Address::repeat_byte(3),
        held_until: TimestampMs(0),
        shares: Shares::DEFAULT,
        ended_kept_until: 1_009,
    }
}

fn begin(ledger: &mut MemoryLedger, number: u64, now: TimestampMs) -> Begun {
    life::begin(ledger, ScheduleRef { schedule: ID, number }, at(now)).unwrap().expect("it is there")
}

fn settle(ledger: &mut MemoryLedger, begun: &Begun, outcome: &Outcome, gas_used: u64) -> Vec<Event> {
    let ended = RunEnd { outcome, gas_used: Gas(gas_used), price: FEE, place: Wei::ZERO };
    life::settle(ledger, begun, ended, at(START)).unwrap()
}

fn paid(ledger: &MemoryLedger) -> U256 {
    ledger.credits.get(&PAYEE).copied().unwrap_or_default()
}

#[test]
fn a_series_is_rearmed_and_charged_before_its_call() {
    let mut ledger = created(terms(true, 3), 1_000);
    begin(&mut ledger, 0, START);
    let during = record(&mut ledger).unwrap();
    assert_eq!(during.head.status, Status::Pending);
    assert_eq!(during.head.due, START.checked_add(INTERVAL));
    assert_eq!((during.head.runs, during.escrow), (1, wei(1_000 - CHARGE)));
}

#[test]
fn a_last_run_is_marked_and_ends_with_its_rest_paid_back() {
    for (terms, end) in [(terms(false, 0), End::Succeeded), (terms(true, 1), End::RunsReached)] {
        let mut ledger = created(terms, 1_000);
        let begun = begin(&mut ledger, 0, START);
        assert_eq!(record(&mut ledger).unwrap().head.status, Status::Running);
        let cancelled = life::cancel(&mut ledger, Door::Cron, ID, OWNER, at(START));
        assert_eq!(
            cancelled,
            Err(Failure::Refused(CancelError::UnderWay { id: ID, status: Status::Running }))
        );

        let events = settle(&mut ledger, &begun, &Outcome::Success, 40);
        let executed = happened(What::Executed { is_success: true, gas_used: Gas(40), fee: wei(CHARGE) });
        assert_eq!(events, [executed, ended(end, 1_000 - CHARGE)]);
        assert_eq!((paid(&ledger), ledger.burned), (U256::from(1_000 - CHARGE), U256::from(CHARGE)));
        assert!(ledger.slots.is_empty(), "nothing is left of it");
    }
}

#[test]
fn what_is_not_used_returns_to_who_asked_for_that_up_to_half() {
    // Of 100 gas: half is 50.
    for (used, paid_gas) in [(0, 50), (49, 50), (50, 50), (51, 51), (99, 99), (100, 100)] {
        let thrifty = CronTerms { charge: Charge::GasUsed, ..terms(true, 0) };
        let mut ledger = created(thrifty, 1_000);
        let begun = begin(&mut ledger, 0, START);
        settle(&mut ledger, &begun, &Outcome::Halted(Halt::OutOfGas), used);
        let (after, cost) = (record(&mut ledger).unwrap(), CHARGE / 100 * paid_gas);
        assert_eq!((after.escrow, ledger.burned), (wei(1_000 - cost), U256::from(cost)), "{used} used");
        assert_eq!(after.head.last, LastRun::Halted(Halt::OutOfGas));
    }
}

#[test]
fn cancelled_inside_its_own_run_it_gets_the_unused_part_too() {
    let thrifty = CronTerms { charge: Charge::GasUsed, ..terms(true, 0) };
    let mut ledger = created(thrifty, 1_000);
    let begun = begin(&mut ledger, 0, START);
    life::cancel(&mut ledger, Door::Cron, ID, OWNER, at(START)).unwrap();
    settle(&mut ledger, &begun, &Outcome::Success, 60);
    assert_eq!((paid(&ledger), ledger.burned), (U256::from(820), U256::from(180)));
}

#[test]
fn only_what_was_selected_begins() {
    let mut ledger = created(terms(true, 0), 1_000);
    let changed = || Err(Failure::Broken(Broken::Changed { id: ID }));
    let attempt = |ledger: &mut MemoryLedger, number| {
        life::begin(ledger, ScheduleRef { schedule: ID, number }, at(START))
    };
    assert_eq!(attempt(&mut ledger, 1), changed(), "another run of it");
    begin(&mut ledger, 0, START);
    assert_eq!(attempt(&mut ledger, 0), changed(), "the same run again");
    life::quarantine(&mut ledger, ID, Wei::ZERO).unwrap();
    assert_eq!(attempt(&mut ledger, 1), changed(), "put aside");
    life::cancel(&mut ledger, Door::Cron, ID, OWNER, at(START)).unwrap();
    assert_eq!(attempt(&mut ledger, 1), Ok(None), "cancelled: it does not run, and nothing is wrong");
}

#[test]
fn a_schedule_that_was_put_aside_waits_for_its_owner() {
    let mut ledger = created(terms(true, 0), 1_000);
    begin(&mut ledger, 0, START);
    assert_eq!(life::quarantine(&mut ledger, ID, wei(CHARGE)), Ok(true));
    let aside = record(&mut ledger).unwrap();
    assert_eq!((aside.entry(), aside.escrow), (None, wei(1_000)), "out of the calendar, nothing lost");
    let cancelled = life::cancel(&mut ledger, Door::Cron, ID, OWNER, at(START)).unwrap();
    assert_eq!((cancelled, paid(&ledger)), (ended(End::Cancelled, 1_000), U256::from(1_000)));
    assert_eq!(life::quarantine(&mut ledger, ID, Wei::ZERO), Ok(false), "there is none");
}

/// The decision of a series to run for a due time.
fn run(due: TimestampMs) -> Decision {
    let again = due.checked_add(INTERVAL).map_or(NextRun::Never, NextRun::At);
    Decision::Run { due, price: FEE, charge: wei(CHARGE), again }
}

#[test]
fn both_sides_of_what_a_run_costs() {
    for (escrow, decision) in [(CHARGE, run(START)), (CHARGE - 1, Decision::End(End::OutOfMoney))] {
        let mut ledger = created(terms(true, 0), escrow);
        let record = record(&mut ledger).unwrap();
        assert_eq!(decide(&record, at(START)), decision);
        assert_eq!(record.runway(FEE), u64::from(decision == run(START)));
    }
    let mut ledger = created(terms(true, 0), CHARGE - 1);
    let record = record(&mut ledger).unwrap();
    let event = life::end_without_run::<_, Infallible>(&mut ledger, &record, End::OutOfMoney, at(START));
    assert_eq!(event, Ok(ended(End::OutOfMoney, CHARGE - 1)));
    assert_eq!(paid(&ledger), U256::from(CHARGE - 1));
}

#[test]
fn missed_times_by_policy() {
    let late = |intervals: u64, ms: u64| TimestampMs(START.0 + intervals * INTERVAL.0 + ms);
    let judged = |catch_up, now| {
        let mut ledger = created(CronTerms { catch_up, ..terms(true, 0) }, 1_000);
        decide(&record(&mut ledger).unwrap(), at(now))
    };
    for policy in [CatchUp::All, CatchUp::Latest, CatchUp::Skip] {
        assert_eq!(judged(policy, late(1, 0).0.checked_sub(1).map(TimestampMs).unwrap()), run(START));
    }
    for (now, latest) in [(late(1, 0), late(1, 0)), (late(5, 1), late(5, 0)), (late(6, 0), late(6, 0))] {
        assert_eq!(judged(CatchUp::All, now), run(START));
        assert_eq!(judged(CatchUp::Latest, now), run(latest));
        assert_eq!(
            judged(CatchUp::Skip, now),
            Decision::Skip { until: latest.checked_add(INTERVAL).unwrap() }
        );
    }
    // The end of time: nothing wraps.
    assert!(matches!(judged(CatchUp::Latest, TimestampMs(u64::MAX)), Decision::Run { .. }));
    assert_eq!(judged(CatchUp::Skip, TimestampMs(u64::MAX)), run(START), "there is no later time");
}

#[test]
fn money_and_strangers() {
    let mut ledger = created(terms(true, 0), 1_000);
    let stranger = Address::repeat_byte(8);
    let refused = CancelError::NotOwner { id: ID, caller: stranger, owner: OWNER };
    assert_eq!(
        life::cancel(&mut ledger, Door::Cron, ID, stranger, at(START)),
        Err(Failure::Refused(refused))
    );
    let topped_up = happened(What::ToppedUp { amount: wei(5), escrow: wei(1_005) });
    assert_eq!(life::top_up(&mut ledger, Door::Cron, ID, wei(5)), Ok(topped_up));
    let too_much = TopUpError::TooMuch { id: ID, escrow: wei(1_005), amount: Wei(U256::MAX) };
    assert_eq!(life::top_up(&mut ledger, Door::Cron, ID, Wei(U256::MAX)), Err(Failure::Refused(too_much)));
    life::cancel(&mut ledger, Door::Cron, ID, OWNER, at(START)).unwrap();
    let unknown = Err(Failure::Refused(TopUpError::Unknown { id: ID }));
    assert_eq!(life::top_up(&mut ledger, Door::Cron, ID, wei(1)), unknown);
}

#[test]
fn a_head_that_means_nothing_is_a_fault_of_that_schedule() {
    let mut ledger = created(terms(true, 0), 1_000);
    ledger.slots.insert(head_slot(ID), U256::from(1));
    assert!(matches!(load::<_, Infallible>(&mut ledger, ID), Err(Failure::Broken(Broken::Head { .. }))));
    let mut ledger = created(terms(true, 0), 1_000);
    ledger.bodies.clear();
    assert_eq!(load::<_, Infallible>(&mut ledger, ID), Err(Failure::Broken(Broken::NoBody { id: ID })));
}

#[derive(Clone, Debug)]
enum Step {
    TopUp(u64),
    Cancel,
    Quarantine,
    Due { late_ms: u64, used: u64, is_cancelled_inside: bool },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let due = (0u64..200_000, 0u64..=GAS.0, prop::bool::weighted(0.05));
    let due =
        due.prop_map(|(late_ms, used, is_cancelled_inside)| Step::Due { late_ms, used, is_cancelled_inside });
    prop::collection::vec(
        prop_oneof![
            8 => due,
            2 => (0u64..1_000).prop_map(Step::TopUp),
            1 => Just(Step::Cancel),
            1 => Just(Step::Quarantine),
        ],
        0..40,
    )
}

proptest! {
    /// Whatever happens: what came in is in the escrow, was paid back or burned, and runs are numbered without gap.
    #[test]
    fn no_wei_is_made_or_lost(
        steps in steps(),
        escrow in 0u64..3_000,
        interval: bool,
        runs_max in 0u64..6,
        policy in 0u8..3,
        is_thrifty: bool,
    ) {
        let charge = if is_thrifty { Charge::GasUsed } else { Charge::GasLimit };
        let catch_up = CatchUp::from_number(policy).unwrap();
        let mut ledger = created(CronTerms { charge, catch_up, ..terms(interval, runs_max) }, escrow);
        let (mut given, mut runs) = (U256::from(escrow), 0);
        for step in steps {
            match step {
                Step::TopUp(amount) => {
                    if life::top_up(&mut ledger, Door::Cron, ID, wei(amount)).is_ok() {
                        given += U256::from(amount);
                    }
                }
                Step::Cancel => drop(life::cancel(&mut ledger, Door::Cron, ID, OWNER, at(START))),
                Step::Quarantine => drop(life::quarantine(&mut ledger, ID, Wei::ZERO)),
                Step::Due { late_ms, used, is_cancelled_inside } => {
                    let Some(found) = record(&mut ledger).filter(|found| found.entry().is_some()) else { continue };
                    let now = TimestampMs(found.head.due.unwrap().0 + late_ms);
                    let decision = decide(&found, at(now));
                    let is_running = matches!(decision, Decision::Run { .. });
                    prop_assert_eq!(is_passed_over(&found.head, at(now)), !is_running, "the head alone tells");
                    match decision {
                        Decision::End(end) => {
                            life::end_without_run::<_, Infallible>(&mut ledger, &found, end, at(now)).unwrap();
                        }
                        Decision::Wait => prop_assert!(false, "no job waits for a price"),
                        Decision::Skip { until } => {
                            prop_assert!(until > now);
                            life::skip(&mut ledger, found, until).unwrap();
                        }
                        Decision::Run { due, .. } => {
                            prop_assert!(due <= now, "never before its time");
                            let begun = begin(&mut ledger, runs, now);
                            runs += 1;
                            if is_cancelled_inside {
                                drop(life::cancel(&mut ledger, Door::Cron, ID, OWNER, at(START)));
                            }
                            settle(&mut ledger, &begun, &Outcome::Success, used);
                        }
                    }
                }
            }
            let held = record(&mut ledger).map_or(U256::ZERO, |record| record.escrow.0);
            prop_assert_eq!(held + paid(&ledger) + ledger.burned, given);
        }
        if interval && runs_max > 0 {
            prop_assert!(runs <= runs_max);
        } else if !interval {
            prop_assert!(runs <= 1);
        }
    }
}
