//! The addresses that run native code: Ethereum's precompiles, and the chain's doors.

use crate::{
    doors::{self, DoorBlock, DoorError, DoorOutcome},
    error::StateFault,
    machine::EvmContext,
    place::{Place, Position},
    validate::SPEC,
};
use alloy_primitives::{Address, Bytes};
use almanac_primitives::{addresses::ACCOUNTS, keys::KeyRecord};
use revm::{
    context::{ContextTr as _, JournalTr as _},
    handler::{EthPrecompiles, PrecompileProvider, precompile_output_to_interpreter_result},
    interpreter::{CallInputs, InterpreterResult},
    precompile::{
        self, EthPrecompileOutput, EthPrecompileResult, PrecompileHalt, PrecompileOutput, PrecompileSpecId,
        PrecompileStatus, kzg_point_evaluation as kzg,
    },
    primitives::{AddressSet, hardfork::SpecId},
};
use std::sync::LazyLock;

/// Gas of the KZG point evaluation (0x0a), twice Ethereum's price. At Ethereum's it is by far the most expensive work
/// per gas that there is: a fully booked second of it takes four validators longer than a view lasts (decision 0019).
const POINT_EVALUATION_GAS: u64 = 2 * kzg::GAS_COST;

/// Ethereum's precompiles of the fork, at our prices.
static ETHEREUM: LazyLock<precompile::Precompiles> = LazyLock::new(|| {
    let mut precompiles = precompile::Precompiles::new(PrecompileSpecId::from_spec_id(SPEC)).clone();
    precompiles.extend([precompile::Precompile::new(
        precompile::PrecompileId::KzgPointEvaluation,
        kzg::ADDRESS,
        |input, gas_limit, reservoir| {
            Ok(precompile::call_eth_precompile(point_evaluation, input, gas_limit, reservoir))
        },
    )]);
    precompiles
});

fn point_evaluation(input: &[u8], gas_limit: u64) -> EthPrecompileResult {
    if gas_limit < POINT_EVALUATION_GAS {
        return Err(PrecompileHalt::OutOfGas);
    }
    let answer = kzg::run(input, gas_limit)?;
    Ok(EthPrecompileOutput::new(POINT_EVALUATION_GAS, answer.bytes))
}

/// Ethereum's precompiles of the fork, and the system contracts.
pub(crate) struct Precompiles {
    ethereum: EthPrecompiles,
    warm: AddressSet,
    block: DoorBlock,
    place: Place,
    /// Journal depth of a direct call of a user transaction; none in runs.
    direct_depth: Option<usize>,
    /// Why the last transaction was aborted. Kept here because revm's error carries only text.
    fault: Option<StateFault>,
}

impl Precompiles {
    pub(crate) fn new(block: DoorBlock, place: Place) -> Self {
        let ethereum = EthPrecompiles { precompiles: &ETHEREUM, spec: SPEC };
        let mut warm = ethereum.warm_addresses().clone();
        warm.extend(doors::addresses());
        Self { ethereum, warm, block, place, direct_depth: None, fault: None }
    }

    /// Sets the block and receipt index of what runs next.
    pub(crate) fn set_place(&mut self, place: Place) {
        self.place = place;
    }

    /// Sets the journal depth at which what runs next makes its direct calls, if a user makes them.
    pub(crate) fn set_direct_depth(&mut self, depth: Option<usize>) {
        self.direct_depth = depth;
    }

    /// The failure of the state store that aborted a transaction inside a door, if one did.
    pub(crate) fn take_fault(&mut self) -> Option<StateFault> {
        self.fault.take()
    }
}

impl<'a> PrecompileProvider<EvmContext<'a>> for Precompiles {
    type Output = InterpreterResult;

    fn set_spec(&mut self, spec: SpecId) -> bool {
        assert_eq!(spec, SPEC, "one fork for the life of the chain");
        false
    }

    fn run(
        &mut self,
        context: &mut EvmContext<'a>,
        inputs: &CallInputs,
    ) -> Result<Option<InterpreterResult>, String> {
        let is_direct = self.direct_depth == Some(context.journal().depth());
        let place = Position { place: self.place, is_direct };
        let answered = doors::call(context, inputs, &self.block, place).and_then(|outcome| {
            outcome.map(|outcome| interpreter_result(outcome, inputs.gas_limit)).transpose()
        });
        match answered {
            Ok(Some(result)) => Ok(Some(result)),
            Ok(None) => {
                let result = self.ethereum.run(context, inputs)?;
                Ok(self.without_rotated_keys(context, inputs, result)?)
            }
            Err(fault) => {
                let reason = fault.to_string();
                self.fault = Some(fault);
                Err(reason)
            }
        }
    }

    fn warm_addresses(&self) -> &AddressSet {
        &self.warm
    }

    fn contains(&self, address: &Address) -> bool {
        self.warm.contains(address)
    }
}

impl Precompiles {
    /// ecrecover answers nothing for an account with a key record: contracts take its answer for the account's word,
    /// and the old key must not speak for it (ORDERLESS-14).
    fn without_rotated_keys(
        &mut self,
        context: &mut EvmContext<'_>,
        inputs: &CallInputs,
        result: Option<InterpreterResult>,
    ) -> Result<Option<InterpreterResult>, String> {
        let Some(mut result) = result else { return Ok(None) };
        let is_recovery = inputs.bytecode_address == ECRECOVER && result.result.is_ok();
        let Some(word) = result.output.first_chunk::<32>().filter(|_| is_recovery) else {
            return Ok(Some(result));
        };
        match is_keyed(context, Address::from_slice(&word[12..])) {
            Ok(true) => result.output = Bytes::new(),
            Ok(false) => {}
            Err(fault) => {
                let reason = fault.to_string();
                self.fault = Some(fault);
                return Err(reason);
            }
        }
        Ok(Some(result))
    }
}

/// Whether an account has a key record, with what the current transaction did.
fn is_keyed(context: &mut EvmContext<'_>, account: Address) -> Result<bool, StateFault> {
    let slot = KeyRecord::slot(account);
    let changed =
        context.journaled_state.state.get(&ACCOUNTS).and_then(|accounts| accounts.storage.get(&slot));
    match changed {
        // A slot that does not decode fails where it is committed.
        Some(word) => Ok(KeyRecord::from_word(word.present_value()).is_ok_and(|record| record.key.is_some())),
        None => context.journaled_state.database.is_keyed(account),
    }
}

/// The precompile that turns a signature into an address.
const ECRECOVER: Address = Address::with_last_byte(1);

/// Turns a door's outcome into what the EVM expects. An `Err` aborts the whole transaction, so it is kept for a
/// state store that failed.
fn interpreter_result(outcome: DoorOutcome, gas_limit: u64) -> Result<InterpreterResult, StateFault> {
    let DoorOutcome { result, mut gas } = outcome;
    let (status, bytes) = match result {
        Ok(bytes) => (PrecompileStatus::Success, bytes),
        Err(DoorError::Revert(bytes)) => (PrecompileStatus::Revert, bytes),
        Err(DoorError::OutOfGas) => (PrecompileStatus::Halt(PrecompileHalt::OutOfGas), Bytes::new()),
        Err(DoorError::State(fault)) => return Err(fault),
    };
    if status != PrecompileStatus::Success {
        gas.set_refunded(0);
        gas.rollback_state_gas();
    }
    let output = PrecompileOutput::from_gas_tracker(status, bytes, gas);
    Ok(precompile_output_to_interpreter_result(output, gas_limit))
}
