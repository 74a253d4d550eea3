//! Executes the runs of a lane, each as a separate transaction, isolated from the others.
//!
//! A run has three steps. The start takes the charge and re-arms the series, then the call is made, then the
//! end settles. Start and end take effect whatever the call's outcome.

use crate::{
    block::{Execution, Owed, SelectedRun},
    doors::{self, About},
    error::{BlockError, Fault},
    footprint::Footprint,
    ledger::ScheduleFault,
    machine::{self, EvmContext, MachineError},
    output::{self, Executed},
    quarantine::{Charge, quarantine},
    reserve::Reserve,
    select::Walk,
    signed,
    validate::{call_gas, least_gas},
};
use alloy_primitives::Log;
use almanac_primitives::{
    Gas, GasPrice, Halt, Outcome, Receipt, RunTransaction, ScheduleId, Wei, run::RUN_TYPE,
};
use almanac_schedule::{
    Agenda, GasPool,
    calendar::Entry,
    decide::RunEnd,
    life::{self, Begun, Event},
    pool,
};
use revm::{
    Inspector, context::TxEnv, context_interface::result::ExecutionResult, interpreter::InitialAndFloorGas,
    primitives::TxKind,
};
use std::fmt::Display;

/// EIP-3529: the refund for freed storage is at most the gas used divided by this.
pub(crate) const REFUND_DIVISOR: u64 = 5;

/// Executes runs in order.
pub(crate) fn run_all<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    runs: Vec<SelectedRun>,
) -> Result<(), BlockError> {
    for selected in runs {
        // A run that uses shared gas waits if it does not fit into what is left.
        let SelectedRun { run, .. } = &selected;
        if pool(run.lane) == GasPool::Shared && run.gas_limit > execution.shared_gas_left() {
            break;
        }
        run_one(execution, selected)?;
    }
    Ok(())
}

/// Executes the runs of the cron lane. If one was cancelled before its turn, its gas goes to later ones in the
/// same block: otherwise cancelled jobs could occupy the lane for nothing.
pub(crate) fn run_walk<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    agenda: &dyn Agenda,
    mut runs: Vec<SelectedRun>,
    walk: Option<Walk>,
) -> Result<(), BlockError> {
    let Some(mut walk) = walk else { return run_all(execution, runs) };
    loop {
        let mut has_room_again = false;
        let mut selected = runs.into_iter();
        for selected in selected.by_ref() {
            let (gas_limit, entry) = (selected.run.gas_limit, selected.entry);
            if gas_limit > execution.shared_gas_left() {
                walk.keep(entry);
                // Later runs must not overtake this one.
                has_room_again = false;
                break;
            }
            match run_one(execution, selected)? {
                Turn::Ran { rearmed } => rearmed.into_iter().for_each(|entry| walk.keep(entry)),
                Turn::Cancelled => {
                    walk.give_back(gas_limit);
                    has_room_again = true;
                }
            }
        }
        selected.for_each(|waiting| walk.keep(waiting.entry));
        if !has_room_again {
            break;
        }
        runs = walk.go_on(execution, agenda)?;
    }
    walk.close(execution)
}

/// The result of a run's turn.
pub(crate) enum Turn {
    /// It ran, or a fault of our own kept it from running.
    Ran {
        /// Where its series waits for the next due time.
        rearmed: Option<Entry>,
    },
    /// Another run of this block cancelled its schedule.
    Cancelled,
}

/// Executes one run. A failing call gives a receipt; only a broken invariant is an error.
pub(crate) fn run_one<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    selected: SelectedRun,
) -> Result<Turn, BlockError> {
    let (run, aside) = (selected.run, Turn::Ran { rearmed: None });
    if selected.is_signed {
        let id = run.schedule_ref.schedule;
        return signed::run_all(execution, [id].into(), pool(run.lane)).map(|()| aside);
    }
    let moment = execution.moment();
    let begun = match execution
        .act::<_, ScheduleFault>(|ledger| Ok(life::begin(ledger, run.schedule_ref, moment)?))
    {
        Ok(Some(begun)) => begun,
        Ok(None) => return Ok(Turn::Cancelled),
        Err(fault) => return put_aside(execution, run, None, &*fault.reason()?).map(|()| aside),
    };
    let called = match call(execution, &run) {
        Ok(called) => called,
        Err(BlockError::Fault(fault)) => {
            return put_aside(execution, run, Some(&begun), &fault).map(|()| aside);
        }
        Err(error) => return Err(error),
    };
    let (triggered, pool) = (signed::triggers(&called.events), pool(run.lane));
    if begun.record.body.terms.price_at_end(moment.base_fee, moment.base_fee).is_some() {
        finish(execution, run, begun, called)?;
        signed::run_all(execution, triggered, pool)?;
        return Ok(aside);
    }
    let events = settle(execution, &begun, &called, run.gas_price)?;
    file(execution, run, called, events, pool)?;
    signed::run_all(execution, triggered, pool)?;
    Ok(Turn::Ran { rearmed: begun.record.entry() })
}

/// The result of a call.
pub(crate) struct Called {
    pub(crate) outcome: Outcome,
    pub(crate) gas_used: Gas,
    /// Gas that it set aside for runs that it triggered.
    pub(crate) set_aside: Gas,
    pub(crate) logs: Vec<Log>,
    /// Schedule events that doors reported.
    pub(crate) events: Vec<Event>,
    /// Which call of a list failed, if one did.
    pub(crate) failed_call: Option<u8>,
    pub(crate) footprint: Option<Box<Footprint>>,
}

/// Makes the call of a run.
fn call<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    run: &RunTransaction,
) -> Result<Called, BlockError> {
    let intrinsic = call_gas(&run.input);
    if run.gas_limit.0 < least_gas(&intrinsic) {
        // Like a transaction that runs out of gas before its first step.
        return Ok(unmade(execution, run, Halt::OutOfGas, run.gas_limit));
    }
    let tx = TxEnv {
        caller: run.from,
        kind: TxKind::Call(run.to),
        value: run.value.0,
        data: run.input.clone(),
        // The machine's system call charges no intrinsic gas, so subtract it here and add it below.
        gas_limit: run.gas_limit.0 - intrinsic.initial_total_gas(),
        gas_price: run.gas_price.0,
        ..TxEnv::default()
    };
    let reserve = Reserve::new(run.gas_limit.0, least_gas(&intrinsic));
    let is_watched = execution.is_watched();
    execution.name_next()?;
    let executed = execution.machine.call_as_system(tx, reserve, is_watched);
    take_effect(execution, run, executed, intrinsic)
}

/// Commits what a call did.
pub(crate) fn take_effect<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    run: &RunTransaction,
    executed: Result<machine::Executed, MachineError>,
    intrinsic: InitialAndFloorGas,
) -> Result<Called, BlockError> {
    let mut executed = executed.map_err(|error| match error {
        MachineError::State(fault) => BlockError::State(fault),
        MachineError::Fault(fault) => fault.into(),
        MachineError::Refused(reason) => Fault::RulesDisagree { reason: reason.to_string() }.into(),
    })?;
    // Before committing: drop the changes of a run that creates or loses money.
    let burned = execution.weigh(executed.balances, Wei::ZERO)?;
    execution.commit(executed.changes, burned)?;
    let gas_used = gas_used(&executed.result, intrinsic, executed.set_aside);
    // To tracers, a run is a transaction like any other, including intrinsic gas.
    if let Some(footprint) = &mut executed.footprint {
        footprint.set_gas(run.gas_limit, gas_used);
    }
    let (outcome, logs) = output::outcome(executed.result);
    let (events, failed_call, footprint) = (executed.events, executed.failed_call, executed.footprint);
    let set_aside = Gas(if outcome.is_success() { executed.set_aside } else { 0 });
    Ok(Called { outcome, gas_used, set_aside, logs, events, failed_call, footprint })
}

/// The result of a call that could not be made. Tracers still see one transaction per receipt.
pub(crate) fn unmade<'a, I: Inspector<EvmContext<'a>>>(
    execution: &Execution<'a, '_, I>,
    run: &RunTransaction,
    halt: Halt,
    gas_used: Gas,
) -> Called {
    let footprint = execution.is_watched().then(|| Footprint::of_unmade_call(run, gas_used));
    let outcome = Outcome::Halted(halt);
    let (logs, events) = (Vec::new(), Vec::new());
    Called { outcome, gas_used, set_aside: Gas::ZERO, logs, events, failed_call: None, footprint }
}

/// Settles a run and returns the events of its schedule.
fn settle<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    begun: &Begun,
    called: &Called,
    price: GasPrice,
) -> Result<Vec<Event>, BlockError> {
    let moment = execution.moment();
    let ended = RunEnd { outcome: &called.outcome, gas_used: called.gas_used, price, place: Wei::ZERO };
    let settled: Result<_, ScheduleFault> =
        execution.act(|ledger| Ok(life::settle(ledger, begun, ended, moment)?));
    let reason = match settled {
        Ok(events) => return Ok(events),
        Err(fault) => fault.reason()?,
    };
    let (id, is_success) = (begun.record.id, called.outcome.is_success());
    Ok(vec![end_in_quarantine(execution, id, Some(begun), is_success, &*reason)?])
}

/// Ends the schedule of a run whose price the end of the block decides, and records the run.
fn finish<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    run: RunTransaction,
    begun: Begun,
    called: Called,
) -> Result<(), BlockError> {
    let (moment, index) = (execution.moment(), execution.next_index());
    let finished: Result<_, ScheduleFault> =
        execution.act(|ledger| Ok(life::finish(ledger, &begun, &called.outcome, moment)?));
    let reason = match finished {
        Ok(held) => {
            let aside = called.set_aside;
            execution.owed.push(Owed { index, begun, held, aside });
            let pool = pool(run.lane);
            return file(execution, run, called, vec![], pool);
        }
        Err(fault) => fault.reason()?,
    };
    let (id, is_success) = (begun.record.id, called.outcome.is_success());
    let event = end_in_quarantine(execution, id, Some(&begun), is_success, &*reason)?;
    let pool = pool(run.lane);
    file(execution, run, called, vec![event], pool)
}

/// Quarantines a schedule that cannot run because of a fault of our own.
fn put_aside<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    run: RunTransaction,
    begun: Option<&Begun>,
    reason: &dyn Display,
) -> Result<(), BlockError> {
    let id = run.schedule_ref.schedule;
    let event = end_in_quarantine(execution, id, begun, false, reason)?;
    let called = unmade(execution, &run, Halt::Other, Gas::ZERO);
    let pool = pool(run.lane);
    file(execution, run, called, vec![event], pool)
}

/// Quarantines a schedule. What its call did stands. The charge returns to the escrow, since nobody can tell what the run
/// owes; so does the value of a call that changed nothing.
fn end_in_quarantine<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    id: ScheduleId,
    begun: Option<&Begun>,
    is_success: bool,
    reason: &dyn Display,
) -> Result<Event, BlockError> {
    let charge = Charge::of(begun);
    quarantine(execution, id, charge, reason, |ledger| match begun {
        Some(begun) if !is_success => Ok(life::unspent(ledger, begun)?),
        _ => Ok(charge.amount),
    })
}

/// Records a run with its receipt: the call's logs, then the door's. It used gas of `pool`.
pub(crate) fn file<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    run: RunTransaction,
    called: Called,
    events: Vec<Event>,
    pool: GasPool,
) -> Result<(), BlockError> {
    let Called { outcome, gas_used, mut logs, events: inner, failed_call, footprint, .. } = called;
    execution.use_gas(pool, gas_used);
    logs.extend(events.iter().flat_map(|event| doors::event_logs(event, &About::of(&outcome))));
    execution.tell(inner);
    execution.tell(events);
    let receipt = Receipt {
        transaction_type: RUN_TYPE,
        transaction_hash: run.hash(),
        outcome,
        gas_used,
        cumulative_gas_used: execution.cumulative_gas,
        effective_gas_price: run.gas_price,
        contract_address: None,
        failed_call,
        schedule_ref: Some(run.schedule_ref),
        logs,
    };
    execution.record(Executed::Run(run), receipt, footprint);
    Ok(())
}

/// Gas as an ordinary transaction would be charged: intrinsic gas, capped refund, calldata floor. What was set aside for
/// runs has another payer.
fn gas_used(result: &ExecutionResult, intrinsic: InitialAndFloorGas, set_aside: u64) -> Gas {
    let gas = result.gas();
    let spent = intrinsic.initial_total_gas().saturating_add(gas.total_gas_spent()).saturating_sub(set_aside);
    let refund = gas.inner_refunded().min(spent / REFUND_DIVISOR);
    Gas((spent - refund).max(intrinsic.floor_gas()))
}
