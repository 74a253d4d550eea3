//! Runs a transaction of Ethereum's kinds on the EVM: as Ethereum does, and what it set aside for runs returns.

use crate::{
    machine::{AlmanacEvm, EvmContext, EvmError},
    reserve::Reserve,
};
use revm::{
    Inspector,
    context::{ContextTr as _, Transaction as _},
    context_interface::{Cfg as _, result::HaltReason},
    handler::{EthFrame, FrameResult, Handler, MainnetHandler, post_execution},
    inspector::InspectorHandler,
    interpreter::{InitialAndFloorGas, interpreter::EthInterpreter},
};
use std::marker::PhantomData;

type EthereumHandler<'a, I> = MainnetHandler<AlmanacEvm<'a, I>, EvmError, EthFrame<EthInterpreter>>;

/// The handler of one transaction.
pub(crate) struct UserHandler<'a, I>(PhantomData<fn(AlmanacEvm<'a, I>)>);

impl<I> Default for UserHandler<'_, I> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<'a, I: Inspector<EvmContext<'a>>> Handler for UserHandler<'a, I> {
    type Evm = AlmanacEvm<'a, I>;
    type Error = EvmError;
    type HaltReason = HaltReason;

    fn validate_initial_tx_gas(&self, evm: &mut Self::Evm) -> Result<InitialAndFloorGas, EvmError> {
        let gas = EthereumHandler::<'a, I>::default().validate_initial_tx_gas(evm)?;
        open_reserve(evm, &gas);
        Ok(gas)
    }

    fn refund(
        &self,
        evm: &mut Self::Evm,
        result: &mut FrameResult,
        delegations: i64,
    ) -> Result<(), EvmError> {
        refund(evm, result, delegations);
        Ok(())
    }
}

impl<'a, I: Inspector<EvmContext<'a>>> InspectorHandler for UserHandler<'a, I> {
    type IT = EthInterpreter;
}

/// Lets a transaction set gas aside, down to what it costs at least.
pub(crate) fn open_reserve<I>(evm: &mut AlmanacEvm<'_, I>, gas: &InitialAndFloorGas) {
    let (limit, least) = (evm.ctx.tx().gas_limit(), gas.initial_total_gas().max(gas.floor_gas()));
    evm.ctx.journaled_state.database.reserve = Reserve::new(limit, least);
}

/// Gives back what was set aside, then counts refunds as Ethereum does.
pub(crate) fn refund<I>(evm: &mut AlmanacEvm<'_, I>, result: &mut FrameResult, delegations: i64) {
    evm.ctx.journaled_state.database.reserve.give_back(result.gas_mut());
    post_execution::refund(evm.ctx.cfg().gas_params(), result.gas_mut(), delegations);
}
