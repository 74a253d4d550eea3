//! One call of a system contract: the caller, the input, and metered access to state.

use super::{
    About,
    storage::{Slot, SlotValue},
};
use crate::{
    error::StateFault,
    machine::EvmContext,
    place::{Place, Position},
    told,
};
use alloy_primitives::{Address, Bytes, Log, U256};
use alloy_sol_types::{SolError, SolEvent, SolInterface, SolType, SolValue, TopicList, abi::TokenSeq};
use almanac_primitives::{Chain, Outcome, addresses::is_system, params::Parameters};
use almanac_schedule::{decide::Moment, life::Event};
use revm::{
    context::{ContextTr, JournalTr},
    context_interface::{Cfg, journaled_state::JournalLoadError},
    interpreter::{CallInputs, CallScheme, gas::GasTracker},
};

alloy_sol_types::sol!("../../contracts/IDoor.sol");

/// Gas per 32 bytes of calldata or result, for copying, decoding and copying again (`make bench-prices`).
const WORD_GAS: u64 = 12;

/// Base gas of any call, for dispatching it and answering or rejecting it (`make bench-prices`).
pub(super) const CALL_GAS: u64 = 120;

/// Why a call of a door ends early.
#[derive(Debug)]
pub(crate) enum DoorError {
    /// The caller gets this data as a revert.
    Revert(Bytes),
    /// Out of gas.
    OutOfGas,
    /// The store failed; the transaction cannot be executed.
    State(StateFault),
}

impl From<StateFault> for DoorError {
    fn from(fault: StateFault) -> Self {
        Self::State(fault)
    }
}

/// A skipped cold load means that the call cannot pay for it.
impl From<JournalLoadError<StateFault>> for DoorError {
    fn from(error: JournalLoadError<StateFault>) -> Self {
        match error {
            JournalLoadError::ColdLoadSkipped => Self::OutOfGas,
            JournalLoadError::DBError(fault) => Self::State(fault),
        }
    }
}

/// A revert with a named Solidity error.
#[expect(clippy::needless_pass_by_value, reason = "an error is thrown, not lent")]
pub(super) fn revert<E: SolError>(error: E) -> DoorError {
    DoorError::Revert(error.abi_encode().into())
}

/// What every door knows of its block.
#[derive(Clone, Debug)]
pub(crate) struct DoorBlock {
    /// The parameters in force.
    pub(crate) parameters: Parameters,
    /// Number, time, prices and fee recipient.
    pub(crate) moment: Moment,
    /// The chain that signatures are bound to.
    pub(crate) chain: Chain,
}

/// The result of a door's call, and its gas.
pub(crate) struct DoorOutcome {
    pub(crate) result: Result<Bytes, DoorError>,
    pub(crate) gas: GasTracker,
}

/// A call in progress.
pub(super) struct DoorCall<'c, 'a> {
    context: &'c mut EvmContext<'a>,
    inputs: &'c CallInputs,
    block: &'c DoorBlock,
    position: Position,
    gas: GasTracker,
    is_value_taken: bool,
}

impl<'c, 'a> DoorCall<'c, 'a> {
    /// Runs `door` under the rules that all doors share.
    pub(super) fn run(
        context: &'c mut EvmContext<'a>,
        inputs: &'c CallInputs,
        block: &'c DoorBlock,
        position: Position,
        door: impl FnOnce(&mut DoorCall<'c, 'a>) -> Result<Bytes, DoorError>,
    ) -> DoorOutcome {
        let gas = GasTracker::new(inputs.gas_limit, inputs.gas_limit, inputs.reservoir);
        let mut call = Self { context, inputs, block, position, gas, is_value_taken: false };
        let result = call.guarded(door);
        DoorOutcome { result, gas: call.gas }
    }

    fn guarded(
        &mut self,
        door: impl FnOnce(&mut Self) -> Result<Bytes, DoorError>,
    ) -> Result<Bytes, DoorError> {
        // In a delegatecall `msg.sender` and storage would belong to another contract. Rejected whatever the
        // input is.
        if !matches!(self.inputs.scheme, CallScheme::Call | CallScheme::StaticCall) {
            return Err(revert(IDoor::DelegateCallRefused {}));
        }
        // Anyone who can make a system account call a door would share that account's schedules with all others
        // who can.
        let caller = self.inputs.caller;
        if is_system(caller) {
            return Err(revert(IDoor::CallerIsSystem { caller }));
        }
        // The length is known without reading the bytes.
        self.charge(CALL_GAS)?;
        self.charge_input(WORD_GAS)?;
        let output = door(self)?;
        // A method that did not take the value is not payable.
        let value = self.inputs.call_value();
        if !self.is_value_taken && !value.is_zero() {
            return Err(revert(IDoor::NotPayable { value }));
        }
        Ok(output)
    }

    /// The method that is called, if there are enough bytes for one.
    pub(super) fn selector(&self) -> Option<[u8; 4]> {
        self.inputs.input.as_bytes(self.context).first_chunk().copied()
    }

    /// Decodes the method and its arguments in place, from the caller's memory.
    pub(super) fn decode<I: SolInterface>(&self) -> Result<I, DoorError> {
        let known = self.selector().filter(|selector| I::valid_selector(*selector));
        let Some(selector) = known else {
            let selector = self.selector().unwrap_or_default().into();
            return Err(revert(IDoor::UnknownMethod { selector }));
        };
        let input = self.inputs.input.as_bytes(self.context);
        I::abi_decode_validate(&input)
            .map_err(|_| revert(IDoor::MalformedArguments { selector: selector.into() }))
    }

    /// Bytes of the input, known without a look at them.
    pub(super) fn input_len(&self) -> usize {
        self.inputs.input.len()
    }

    /// Fails as for arguments that are not the method's.
    pub(super) fn malformed(&self) -> DoorError {
        revert(IDoor::MalformedArguments { selector: self.selector().unwrap_or_default().into() })
    }

    /// The door's own address.
    pub(super) fn address(&self) -> Address {
        self.inputs.target_address
    }

    /// `msg.sender`.
    pub(super) fn caller(&self) -> Address {
        self.inputs.caller
    }

    /// The EVM's context, for doors that need more than their own storage. Every change must be journaled.
    pub(super) fn context(&mut self) -> &mut EvmContext<'a> {
        self.context
    }

    /// The block and receipt index of the transaction that this call is part of.
    pub(super) fn place(&self) -> Place {
        self.position.place
    }

    /// Whether the caller is the sender of a user transaction that makes this call itself.
    pub(super) fn is_direct(&self) -> bool {
        self.position.is_direct
    }

    /// The chain that signatures are bound to.
    pub(super) fn chain(&self) -> &'c Chain {
        &self.block.chain
    }

    /// The parameters in force in this block.
    pub(super) fn parameters(&self) -> &'c Parameters {
        &self.block.parameters
    }

    /// The block's number, time, prices and fee recipient.
    pub(super) fn moment(&self) -> Moment {
        self.block.moment
    }

    /// Takes the value of the call; only payable methods call this.
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
        let cold_gas = prices.cold_storage_additional_cost();
        let is_unpaid = !self.can_pay(cold_gas);
        // System accounts are warm: a block loads each of them once.
        self.context.journal_mut().load_account(account)?;
        let loaded = self.context.journal_mut().sload_skip_cold_load(account, slot, is_unpaid)?;
        if loaded.is_cold {
            self.charge(cold_gas)?;
        }
        Ok(loaded.data)
    }

    /// Writes any slot of a system account, priced like SSTORE.
    pub(super) fn store_word(&mut self, account: Address, slot: U256, value: U256) -> Result<(), DoorError> {
        self.refuse_static()?;
        let prices = self.context.cfg().gas_params().clone();
        self.charge(prices.sstore_static_gas())?;
        let is_unpaid = !self.can_pay(prices.cold_storage_cost());
        self.context.journal_mut().load_account(account)?;
        let stored = self.context.journal_mut().sstore_skip_cold_load(account, slot, value, is_unpaid)?;
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
        self.emit_from(self.inputs.target_address, event)
    }

    /// Emits an event of another door that the call concerns.
    pub(super) fn emit_from<E: SolEvent>(&mut self, address: Address, event: &E) -> Result<(), DoorError> {
        self.charge_log(E::TopicList::COUNT, event.abi_encoded_size())?;
        let data = event.encode_log_data();
        self.context.journal_mut().log(Log { address, data });
        Ok(())
    }

    /// Reports an event of a schedule: to the block's list of events, and as logs, priced like LOG.
    pub(super) fn tell(&mut self, event: Event) -> Result<(), DoorError> {
        self.tell_about(event, &About::of(&Outcome::Success))
    }

    /// The same, for doors whose logs say more than the event.
    pub(super) fn tell_about(&mut self, event: Event, about: &About<'_>) -> Result<(), DoorError> {
        for log in super::event_logs(&event, about) {
            self.charge_log(log.topics().len(), log.data.data.len())?;
            self.context.journal_mut().log(log);
        }
        Ok(told::tell(self.context, event)?)
    }

    fn charge_log(&mut self, topics: usize, bytes: usize) -> Result<(), DoorError> {
        self.refuse_static()?;
        let topics = u8::try_from(topics).expect("an event has at most four topics");
        let log_gas = self.context.cfg().gas_params().log_cost(topics, bytes as u64);
        self.charge(LOG_GAS.saturating_add(log_gas))
    }

    /// Encodes the result, which is paid for first.
    pub(super) fn answer<T: SolValue>(&mut self, value: &T) -> Result<Bytes, DoorError> {
        self.charge_words(value.abi_encoded_size(), WORD_GAS)?;
        Ok(value.abi_encode().into())
    }

    /// Encodes several results, as a function with several return values does. They are paid for first.
    pub(super) fn answer_all<T>(&mut self, values: &T) -> Result<Bytes, DoorError>
    where
        T: SolValue,
        for<'t> <T::SolType as SolType>::Token<'t>: TokenSeq<'t>,
    {
        self.charge_words(values.abi_encoded_size(), WORD_GAS)?;
        Ok(values.abi_encode_params().into())
    }

    /// Whether the gas covers work that may become necessary.
    pub(super) fn can_pay(&self, gas: u64) -> bool {
        self.gas.remaining() >= gas
    }

    /// Charges for work, or fails with out of gas.
    pub(super) fn charge(&mut self, gas: u64) -> Result<(), DoorError> {
        if self.gas.record_regular_cost(gas) { Ok(()) } else { Err(DoorError::OutOfGas) }
    }

    /// Sets gas aside for a run that this call triggers (`reserve`): it is charged here, and the end of the transaction
    /// gives it back.
    pub(super) fn set_aside(&mut self, gas: u64) -> Result<(), DoorError> {
        self.charge(gas)?;
        if self.context.journaled_state.database.reserve.take(gas) {
            Ok(())
        } else {
            Err(DoorError::OutOfGas)
        }
    }

    /// What the call is to get back for slots that it cleared.
    pub(super) fn refunded(&self) -> i64 {
        self.gas.refunded()
    }

    /// Sets that, where a part of the call was undone.
    pub(super) fn set_refunded(&mut self, refunded: i64) {
        self.gas.set_refunded(refunded);
    }

    /// Charges for work on the whole input.
    pub(super) fn charge_input(&mut self, word_gas: u64) -> Result<(), DoorError> {
        self.charge_words(self.inputs.input.len(), word_gas)
    }

    pub(super) fn charge_words(&mut self, bytes: usize, word_gas: u64) -> Result<(), DoorError> {
        self.charge((bytes as u64).div_ceil(32).saturating_mul(word_gas))
    }

    /// Fails if the call is static.
    pub(super) fn refuse_static(&self) -> Result<(), DoorError> {
        if self.inputs.is_static { Err(revert(IDoor::StaticCallRefused {})) } else { Ok(()) }
    }
}

/// Base price of LOG, without the prices per topic and per byte.
const LOG_GAS: u64 = 375;
