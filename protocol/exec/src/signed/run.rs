//! One run of the schedule service: debits the payer, makes the calls, settles.

use super::{payment::Payment, triggers};
use crate::{
    block::Execution,
    doors::{self, About},
    error::BlockError,
    ledger::{ScheduleFault, SystemLedger},
    machine::EvmContext,
    native::gas::list,
    quarantine::{Charge, quarantine},
    reserve::Reserve,
    runs::{Called, file, take_effect, unmade},
    validate::least_gas,
};
use alloy_primitives::U256;
use almanac_primitives::{
    Gas, GasPrice, Halt, Outcome, RunTransaction, ScheduleId, ScheduleRef, Wei, addresses::SCHEDULE_SERVICE,
};
use almanac_schedule::{
    GasPool, Record,
    decide::{Moment, RunEnd},
    ledger,
    life::{self, Begun, Event, LifeEvent, What},
    record::{Broken, Door, Status},
    signed::Tally,
};
use revm::{Inspector, context::TxEnv, primitives::TxKind};
use std::collections::VecDeque;

/// A run that has begun.
struct Started {
    begun: Begun,
    payment: Payment,
    /// Whether it is paid for; otherwise its calls are not made.
    is_paid: bool,
}

/// Runs a schedule that was triggered. Returns what its calls have triggered.
pub(super) fn run_one<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    id: ScheduleId,
    pool: GasPool,
) -> Result<VecDeque<ScheduleId>, BlockError> {
    let moment = execution.moment();
    let started = match execution.act(|ledger| start(ledger, id, moment)) {
        Ok(Some(started)) => started,
        // It has ended since.
        Ok(None) => return Ok(VecDeque::new()),
        Err(fault) => return put_aside(execution, id, None, fault).map(|()| VecDeque::new()),
    };
    let run = run_transaction(&started.begun.record, moment.base_fee);
    let called = if started.is_paid {
        match call(execution, &run, &started.begun.record) {
            Ok(called) => called,
            Err(error) => {
                return put_aside(execution, id, Some(&started), error.into()).map(|()| VecDeque::new());
            }
        }
    } else {
        unmade(execution, &run, Halt::InsufficientBalance, Gas::ZERO)
    };
    let inner = triggers(&called.events);
    let (gas_used, price) = (called.gas_used, run.gas_price);
    let ended = RunEnd { outcome: &called.outcome, gas_used, price, place: Wei::ZERO };
    let events = match execution.act(|ledger| settle(ledger, &started, ended, moment)) {
        Ok(events) => events,
        // What the calls did stands, and is not charged for.
        Err(fault) => {
            let is_success = called.outcome.is_success();
            vec![end_in_quarantine(execution, id, Some(&started), is_success, fault)?]
        }
    };
    file(execution, run, called, events, pool)?;
    Ok(inner)
}

/// Takes the money and begins the run; `None` if there is nothing to run.
fn start(
    ledger: &mut SystemLedger<'_, '_>,
    id: ScheduleId,
    moment: Moment,
) -> Result<Option<Started>, ScheduleFault> {
    let record = ledger::load(ledger, id)?;
    let Some(record) = record.filter(|record: &Record| record.head.status == Status::Processed) else {
        return Ok(None);
    };
    let Some(terms) = record.body.terms.signed() else {
        return Err(ScheduleFault::Broken(Broken::Changed { id }));
    };
    let tally = Tally::load(ledger, id)?;
    let payment = Payment::of(&record, terms, &tally, moment);
    let paid = payment.collect(ledger, &record, terms)?;
    if paid.is_none() {
        Tally { is_unpaid: true, ..tally }.store(ledger, id)?;
    }
    if let Some(amount) = paid.filter(|amount| *amount > Wei::ZERO) {
        life::top_up(ledger, Door::Signed, id, amount)
            .map_err(|_| ScheduleFault::Broken(Broken::Changed { id }))?;
    }
    let reference = ScheduleRef { schedule: id, number: record.head.runs.into() };
    let begun = life::begin(ledger, reference, moment)?;
    Ok(begun.map(|begun| Started { begun, payment, is_paid: paid.is_some() }))
}

/// Makes the calls of a run.
fn call<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    run: &RunTransaction,
    record: &Record,
) -> Result<Called, BlockError> {
    let calls = &record.body.calls;
    let intrinsic = list(calls.iter().map(|call| (call.value.0, &call.input)));
    let Some(gas_limit) = run.gas_limit.0.checked_sub(least_gas(&intrinsic)) else {
        return Ok(unmade(execution, run, Halt::OutOfGas, run.gas_limit));
    };
    let reserve = Reserve::new(gas_limit, 0);
    let tx = TxEnv {
        caller: run.from,
        kind: TxKind::Call(run.to),
        value: run.value.0,
        data: run.input.clone(),
        // The machine's system call charges no intrinsic gas.
        gas_limit: run.gas_limit.0 - intrinsic.initial_total_gas(),
        gas_price: run.gas_price.0,
        ..TxEnv::default()
    };
    let is_watched = execution.is_watched();
    execution.name_next()?;
    let executed = execution.machine.call_list_as_system(tx, calls, reserve, is_watched);
    take_effect(execution, run, executed, intrinsic)
}

/// Settles a run, and puts into funds what belongs there.
fn settle(
    ledger: &mut SystemLedger<'_, '_>,
    started: &Started,
    ended: RunEnd<'_>,
    moment: Moment,
) -> Result<Vec<Event>, ScheduleFault> {
    let is_success = ended.outcome.is_success();
    let events = life::settle(ledger, &started.begun, ended, moment)?;
    let returned = events.iter().find_map(|event| match event.what {
        What::Ended { refunded, .. } => Some((started.begun.record.body.refund_to, refunded)),
        _ => None,
    });
    // One that is not paid for was lent nothing.
    if started.is_paid {
        started.payment.put_back(ledger, is_success, returned)?;
    }
    Ok(events)
}

/// What a run shows as a transaction: its only call, or all of them as their body.
pub(crate) fn run_transaction(record: &Record, price: GasPrice) -> RunTransaction {
    let run = record.run(price);
    let calls = &record.body.calls;
    if calls.len() == 1 {
        return run;
    }
    let value = calls.iter().map(|call| call.value.0).fold(U256::ZERO, U256::saturating_add);
    let input = doors::transaction_body(&record.body);
    RunTransaction { to: SCHEDULE_SERVICE, value: Wei(value), input, ..run }
}

/// Quarantines a schedule that cannot run because of a fault of our own. It has no receipt: its trigger's says so.
fn put_aside<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    id: ScheduleId,
    started: Option<&Started>,
    fault: ScheduleFault,
) -> Result<(), BlockError> {
    let event = end_in_quarantine(execution, id, started, false, fault)?;
    let index = execution.next_index() - 1;
    let logs = doors::event_logs(&event, &About::of(&Outcome::Success));
    execution.receipts[index].logs.extend(logs);
    execution.events.push(LifeEvent { index, event });
    Ok(())
}

/// Quarantines a schedule. What was charged returns to who paid, and what was lent for calls that changed nothing to the
/// funds.
fn end_in_quarantine<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    id: ScheduleId,
    started: Option<&Started>,
    is_success: bool,
    fault: ScheduleFault,
) -> Result<Event, BlockError> {
    let reason = fault.reason()?;
    let charge = Charge::of(started.map(|started| &started.begun));
    let paid = started.filter(|started| started.is_paid);
    quarantine(execution, id, charge, &*reason, |ledger| match paid {
        Some(started) => started.payment.undo(ledger, is_success, charge.amount).map(|()| Wei::ZERO),
        None => Ok(charge.amount),
    })
}
