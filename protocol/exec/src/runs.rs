//! Executes the runs of a lane: each a transaction of its own, isolated from the others.

use crate::{
    block::Execution,
    error::{BlockError, Fault},
    machine::{EvmContext, MachineError},
    output::{self, Executed},
    validate::{call_gas, least_gas},
};
use almanac_primitives::{Gas, Receipt, RunTransaction, Wei, run::RUN_TYPE};
use almanac_schedule::{GasPool, pool};
use revm::{Inspector, context::TxEnv, context_interface::result::ExecutionResult, primitives::TxKind};

/// EIP-3529: at most this part of the gas used is given back for freed storage.
const REFUND_DIVISOR: u64 = 5;

/// Executes runs in order.
pub(crate) fn run_all<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    runs: Vec<RunTransaction>,
) -> Result<(), BlockError> {
    for run in runs {
        // A run of the shared pool waits where the gas that is left could not hold it.
        if pool(run.lane) == GasPool::Shared && run.gas_limit > execution.shared_gas_left() {
            break;
        }
        run_one(execution, run)?;
    }
    Ok(())
}

/// Executes one run. A call that fails is a receipt; only a broken invariant is an error.
pub(crate) fn run_one<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    run: RunTransaction,
) -> Result<(), BlockError> {
    let intrinsic = call_gas(&run.input);
    let needed = least_gas(&intrinsic);
    if run.gas_limit.0 < needed {
        let reference = run.schedule_ref;
        return Err(Fault::RunBelowIntrinsicGas {
            schedule: reference.schedule,
            number: reference.number,
            given: run.gas_limit.0,
            needed,
        }
        .into());
    }
    let tx = TxEnv {
        caller: run.from,
        kind: TxKind::Call(run.to),
        value: run.value.0,
        data: run.input.clone(),
        // The machine's system call charges no intrinsic gas, so it is taken off here and added below.
        gas_limit: run.gas_limit.0 - intrinsic.initial_total_gas(),
        gas_price: run.gas_price.0,
        ..TxEnv::default()
    };
    let is_watched = execution.is_watched();
    let mut executed = execution.machine.call_as_system(tx, is_watched).map_err(|error| match error {
        MachineError::State(fault) => BlockError::State(fault),
        MachineError::Fault(fault) => fault.into(),
        MachineError::Refused(reason) => Fault::RulesDisagree { reason: reason.to_string() }.into(),
    })?;
    execution.burn(&executed, Wei::ZERO)?;
    let gas_used = gas_used(&executed.result, intrinsic.initial_total_gas(), intrinsic.floor_gas());
    execution.use_gas(pool(run.lane), gas_used);
    // To whoever looks on, a run is a transaction like any other, intrinsic gas included.
    if let Some(footprint) = &mut executed.footprint {
        footprint.set_gas(run.gas_limit, gas_used);
    }
    let (outcome, logs) = output::outcome(executed.result);
    let receipt = Receipt {
        transaction_type: RUN_TYPE,
        transaction_hash: run.hash(),
        outcome,
        gas_used,
        cumulative_gas_used: execution.cumulative_gas,
        effective_gas_price: run.gas_price,
        contract_address: None,
        schedule_ref: Some(run.schedule_ref),
        logs,
    };
    execution.record(Executed::Run(run), receipt, executed.footprint);
    Ok(())
}

/// Gas as an ordinary transaction would be charged: intrinsic gas, capped refund, calldata floor.
fn gas_used(result: &ExecutionResult, intrinsic: u64, floor: u64) -> Gas {
    let gas = result.gas();
    let spent = intrinsic.saturating_add(gas.total_gas_spent());
    let refund = gas.inner_refunded().min(spent / REFUND_DIVISOR);
    Gas((spent - refund).max(floor))
}
