//! The addresses that run native code: Ethereum's precompiles, and the chain's doors.

use crate::{
    doors::{self, DoorBlock, DoorError, DoorOutcome},
    error::StateFault,
    machine::EvmContext,
    place::Place,
    validate::SPEC,
};
use alloy_primitives::{Address, Bytes};
use revm::{
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
    /// Why the last transaction was aborted. Kept here because revm's error carries only text.
    fault: Option<StateFault>,
}

impl Precompiles {
    pub(crate) fn new(block: DoorBlock, place: Place) -> Self {
        let ethereum = EthPrecompiles { precompiles: &ETHEREUM, spec: SPEC };
        let mut warm = ethereum.warm_addresses().clone();
        warm.extend(doors::addresses());
        Self { ethereum, warm, block, place, fault: None }
    }

    /// Sets the block and receipt index of what runs next.
    pub(crate) fn set_place(&mut self, place: Place) {
        self.place = place;
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
        let answered = doors::call(context, inputs, &self.block, self.place).and_then(|outcome| {
            outcome.map(|outcome| interpreter_result(outcome, inputs.gas_limit)).transpose()
        });
        match answered {
            Ok(Some(result)) => Ok(Some(result)),
            Ok(None) => self.ethereum.run(context, inputs),
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
