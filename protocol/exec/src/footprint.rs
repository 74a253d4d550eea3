//! The state that a watched transaction touched, before and after. Only tracers need it.

use crate::{error::StateFault, state::BlockState};
use alloy_primitives::{Address, Bytes};
use almanac_primitives::{Gas, RunTransaction};
use revm::{
    context::TxEnv,
    context_interface::result::{
        ExecutionResult, HaltReason, OutOfGasError, Output, ResultGas, SuccessReason,
    },
    primitives::TxKind,
    state::{AccountInfo, EvmState},
};
use std::collections::BTreeMap;

/// A transaction with everything that it read and changed.
#[derive(Clone, Debug)]
pub struct Footprint {
    /// The transaction as passed to the EVM.
    pub tx: TxEnv,
    /// How it ended.
    pub result: ExecutionResult,
    /// Every loaded account and slot after the transaction.
    pub after: EvmState,
    /// Each of these accounts before the transaction, with its code; `None` if it did not exist.
    pub before: BTreeMap<Address, Option<AccountInfo>>,
}

impl Footprint {
    /// The footprint of a transaction. `state` must not include its changes yet.
    pub(crate) fn take(
        tx: TxEnv,
        result: &ExecutionResult,
        after: &EvmState,
        state: &mut BlockState<'_>,
    ) -> Result<Box<Self>, StateFault> {
        let mut before = BTreeMap::new();
        #[expect(clippy::iter_over_hash_type, clippy::disallowed_methods, reason = "each under its own key")]
        for address in after.keys() {
            before.insert(*address, state.account_with_code(*address)?);
        }
        Ok(Box::new(Self { tx, result: result.clone(), after: after.clone(), before }))
    }

    /// The footprint of a write by the chain itself, shown as a call from zero to zero without gas.
    pub(crate) fn of_write(after: &EvmState, state: &mut BlockState<'_>) -> Result<Box<Self>, StateFault> {
        let tx = TxEnv { kind: TxKind::Call(Address::ZERO), gas_limit: 0, ..TxEnv::default() };
        let result = ExecutionResult::Success {
            reason: SuccessReason::Stop,
            gas: ResultGas::default(),
            logs: Vec::new(),
            output: Output::Call(Bytes::new()),
        };
        Self::take(tx, &result, after, state)
    }

    /// The footprint of a run whose call could not be made: empty. It is shown as one that ran out of gas.
    pub(crate) fn of_unmade_call(run: &RunTransaction, gas_used: Gas) -> Box<Self> {
        let tx = TxEnv {
            caller: run.from,
            kind: TxKind::Call(run.to),
            value: run.value.0,
            data: run.input.clone(),
            gas_price: run.gas_price.0,
            ..TxEnv::default()
        };
        let result = ExecutionResult::Halt {
            reason: HaltReason::OutOfGas(OutOfGasError::Basic),
            gas: ResultGas::default(),
            logs: Vec::new(),
        };
        let mut footprint = Self { tx, result, after: EvmState::default(), before: BTreeMap::new() };
        footprint.set_gas(run.gas_limit, gas_used);
        Box::new(footprint)
    }

    /// Sets the gas limit and the gas used.
    pub(crate) fn set_gas(&mut self, limit: Gas, used: Gas) {
        self.tx.gas_limit = limit.0;
        let (ExecutionResult::Success { gas, .. }
        | ExecutionResult::Revert { gas, .. }
        | ExecutionResult::Halt { gas, .. }) = &mut self.result;
        *gas = ResultGas::default();
        gas.set_total_gas_spent(used.0);
    }
}
