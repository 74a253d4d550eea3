//! One call of a system contract: who called, with what, and what it may touch at which price.

use super::storage::{Slot, SlotValue};
use crate::{error::StateFault, machine::EvmContext, place::Place};
use alloy_primitives::{Address, B256, Bytes, Log, U256};
use alloy_sol_types::{SolError, SolEvent, SolInterface};
use almanac_primitives::params::Parameters;
use revm::{
    context::{ContextTr, JournalTr},
    context_interface::Cfg,
    interpreter::{CallInputs, CallScheme, gas::GasTracker},
};

alloy_sol_types::sol!("../../contracts/IDoor.sol");

/// Gas per 32 bytes of calldata or result: they are copied, decoded and copied again (`make bench-prices`).
const WORD_GAS: u64 = 12;

/// Why a door's call ends early.
#[derive(Debug)]
pub(crate) enum DoorError {
    /// The caller gets this data as a revert.
    Revert(Bytes),
    /// The gas did not suffice.
    OutOfGas,
    /// The store below failed; the transaction cannot be executed at all.
    State(StateFault),
}

impl From<StateFault> for DoorError {
    fn from(fault: StateFault) -> Self {
        Self::State(fault)
    }
}

/// A revert with a named Solidity error.
#[expect(clippy::needless_pass_by_value, reason = "an error is thrown, not lent")]
pub(super) fn revert<E: SolError>(error: E) -> DoorError {
    DoorError::Revert(error.abi_encode().into())
}

/// How a door's call ended, and its gas.
pub(crate) struct DoorOutcome {
    pub(crate) result: Result<Bytes, DoorError>,
    pub(crate) gas: GasTracker,
}

/// A call in progress.
pub(super) struct DoorCall<'c, 'a> {
    context: &'c mut EvmContext<'a>,
    inputs: &'c CallInputs,
    parameters: &'c Parameters,
    place: Place,
    input: Bytes,
    gas: GasTracker,
    is_value_taken: bool,
}

impl<'c, 'a> DoorCall<'c, 'a> {
    /// Runs `door` under the rules that all doors share.
    pub(super) fn run(
        context: &'c mut EvmContext<'a>,
        inputs: &'c CallInputs,
        parameters: &'c Parameters,
        place: Place,
        door: impl FnOnce(&mut DoorCall<'c, 'a>) -> Result<Bytes, DoorError>,
    ) -> DoorOutcome {
        let input = inputs.input.bytes(context);
        let gas = GasTracker::new(inputs.gas_limit, inputs.gas_limit, inputs.reservoir);
        let mut call = Self { context, inputs, parameters, place, input, gas, is_value_taken: false };
        let result = call.guarded(door);
        DoorOutcome { result, gas: call.gas }
    }

    fn guarded(
        &mut self,
        door: impl FnOnce(&mut Self) -> Result<Bytes, DoorError>,
    ) -> Result<Bytes, DoorError> {
        // In a delegatecall `msg.sender` and storage would be someone else's.
        if !matches!(self.inputs.scheme, CallScheme::Call | CallScheme::StaticCall) {
            return Err(revert(IDoor::DelegateCallRefused {}));
        }
        self.charge_words(self.input.len())?;
        let output = door(self)?;
        // A method that takes no value says nothing about value, and so refuses it.
        let value = self.inputs.call_value();
        if !self.is_value_taken && !value.is_zero() {
            return Err(revert(IDoor::NotPayable { value }));
        }
        self.charge_words(output.len())?;
        Ok(output)
    }

    /// The call's method and arguments.
    pub(super) fn decode<I: SolInterface>(&self) -> Result<I, DoorError> {
        let selector = self.input.first_chunk::<4>().copied().unwrap_or_default();
        if self.input.len() < 4 || !I::valid_selector(selector) {
            return Err(revert(IDoor::UnknownMethod { selector: selector.into() }));
        }
        I::abi_decode_validate(&self.input)
            .map_err(|_| revert(IDoor::MalformedArguments { selector: selector.into() }))
    }

    /// The door's own address.
    pub(super) fn address(&self) -> Address {
        self.inputs.target_address
    }

    /// `msg.sender`.
    pub(super) fn caller(&self) -> Address {
        self.inputs.caller
    }

    /// The EVM's context, for doors that reach beyond their own storage. Only what the journal undoes.
    pub(super) fn context(&mut self) -> &mut EvmContext<'a> {
        self.context
    }

    /// The place of the transaction that this call is part of.
    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// The parameters in force in this block.
    pub(super) fn parameters(&self) -> &'c Parameters {
        self.parameters
    }

    /// Takes the value that came with the call; only payable methods do.
    pub(super) fn take_value(&mut self) -> U256 {
        self.is_value_taken = true;
        self.inputs.call_value()
    }

    /// Reads a slot of the door's own storage, priced like SLOAD.
    pub(super) fn load<T: SlotValue>(&mut self, slot: Slot<T>) -> Result<T, DoorError> {
        self.load_word(self.inputs.target_address, slot.key()).map(T::from_word)
    }

    /// Writes a slot of the door's own storage, priced like SSTORE.
    pub(super) fn store<T: SlotValue>(&mut self, slot: Slot<T>, value: T) -> Result<(), DoorError> {
        self.store_word(self.inputs.target_address, slot.key(), value.to_word())
    }

    /// Reads any slot of a system account, priced like SLOAD.
    pub(super) fn load_word(&mut self, account: Address, slot: U256) -> Result<U256, DoorError> {
        let prices = self.context.cfg().gas_params().clone();
        self.charge(prices.warm_storage_read_cost())?;
        self.context.journal_mut().load_account(account)?;
        let loaded = self.context.journal_mut().sload(account, slot)?;
        if loaded.is_cold {
            self.charge(prices.cold_storage_additional_cost())?;
        }
        Ok(loaded.data)
    }

    /// Writes any slot of a system account, priced like SSTORE.
    pub(super) fn store_word(&mut self, account: Address, slot: U256, value: U256) -> Result<(), DoorError> {
        self.refuse_static()?;
        let prices = self.context.cfg().gas_params().clone();
        self.charge(prices.sstore_static_gas())?;
        self.context.journal_mut().load_account(account)?;
        let stored = self.context.journal_mut().sstore(account, slot, value)?;
        self.context.journal_mut().touch_account(account);
        self.charge(prices.sstore_dynamic_gas(true, &stored.data, stored.is_cold))?;
        if !self.gas.record_state_cost(prices.sstore_state_gas(&stored.data)) {
            return Err(DoorError::OutOfGas);
        }
        self.gas.record_refund(prices.sstore_refund(true, &stored.data));
        Ok(())
    }

    /// Emits an event from the door's address, priced like LOG.
    pub(super) fn emit<E: SolEvent>(&mut self, event: &E) -> Result<(), DoorError> {
        self.refuse_static()?;
        let data = event.encode_log_data();
        let prices = self.context.cfg().gas_params().clone();
        let topics = u8::try_from(data.topics().len()).expect("an event has at most four topics");
        self.charge(LOG_GAS + prices.log_cost(topics, data.data.len() as u64))?;
        self.context.journal_mut().log(Log { address: self.inputs.target_address, data });
        Ok(())
    }

    /// Charges for work, or ends the call.
    pub(super) fn charge(&mut self, gas: u64) -> Result<(), DoorError> {
        if self.gas.record_regular_cost(gas) { Ok(()) } else { Err(DoorError::OutOfGas) }
    }

    fn charge_words(&mut self, bytes: usize) -> Result<(), DoorError> {
        self.charge((bytes as u64).div_ceil(32).saturating_mul(WORD_GAS))
    }

    /// Ends a call that would change state where nothing may change.
    pub(super) fn refuse_static(&self) -> Result<(), DoorError> {
        if self.inputs.is_static { Err(revert(IDoor::StaticCallRefused {})) } else { Ok(()) }
    }
}

/// Base price of LOG, which the per-topic and per-byte price comes on top of.
const LOG_GAS: u64 = 375;

/// A door's answer to `returns (bytes32)` and the like.
pub(super) fn word(value: impl Into<B256>) -> Bytes {
    value.into().into()
}
