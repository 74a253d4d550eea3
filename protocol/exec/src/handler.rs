//! Runs a transaction of Ethereum's kinds on the EVM: as Ethereum does, and what it set aside for runs returns.

use crate::{
    machine::{AlmanacEvm, EvmContext, EvmError},
    reserve::Reserve,
};
use alloy_primitives::{Address, U256};
use revm::{
    Inspector,
    context::{Block as _, ContextTr as _, JournalTr as _, Transaction as _},
    context_interface::{Cfg as _, journaled_state::account::JournaledAccountTr as _, result::HaltReason},
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

    fn reimburse_caller(&self, evm: &mut Self::Evm, result: &mut FrameResult) -> Result<(), EvmError> {
        EthereumHandler::<'a, I>::default().reimburse_caller(evm, result)?;
        tip_for_runs(evm, evm.ctx.tx().caller(), result)
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

/// Pays the tip on gas that was set aside. The runs that it triggered follow directly, in the place that the tip bought,
/// and pay the base fee alone: without this, a tip on little gas would buy the front of the block for much.
pub(crate) fn tip_for_runs<I>(
    evm: &mut AlmanacEvm<'_, I>,
    payer: Address,
    result: &FrameResult,
) -> Result<(), EvmError> {
    let aside = evm.ctx.journaled_state.database.reserve.taken();
    // What failed as a whole has triggered nothing.
    if aside == 0 || !result.interpreter_result().is_ok() {
        return Ok(());
    }
    let base_fee = u128::from(evm.ctx.block().basefee());
    let tip = evm.ctx.tx().effective_gas_price(base_fee).saturating_sub(base_fee);
    let (tip, recipient) = (U256::from(tip) * U256::from(aside), evm.ctx.block().beneficiary());
    let journal = evm.ctx.journal_mut();
    // It has just got back the whole price of this gas, unless a simulation charges nothing.
    if journal.load_account_mut(payer)?.decr_balance(tip) {
        journal.load_account_mut(recipient)?.incr_balance(tip);
    }
    Ok(())
}

/// Gives back what was set aside, then counts refunds as Ethereum does.
pub(crate) fn refund<I>(evm: &mut AlmanacEvm<'_, I>, result: &mut FrameResult, delegations: i64) {
    evm.ctx.journaled_state.database.reserve.give_back(result.gas_mut());
    post_execution::refund(evm.ctx.cfg().gas_params(), result.gas_mut(), delegations);
}
