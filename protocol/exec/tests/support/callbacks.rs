//! The callback scheduler from a test: a handler, orders, blocks at a time, what ran.

use super::{Person, TestChain, artifacts::deploy, genesis, person};
use alloy_primitives::{Address, Bytes, Log, U256};
use alloy_sol_types::{SolCall, SolEvent, SolInterface, SolValue as _};
use almanac_primitives::{
    Genesis, Outcome, Receipt, ScheduleId, StateKey, TimestampMs,
    addresses::{CALLBACKS, LEDGER, PARAMETERS},
    params::{EFFORT_GAS, Parameter},
    state::decode_slot,
};
use almanac_schedule::capacity::{Booked, Bookings, bookings_slot};

alloy_sol_types::sol!(
    #![sol(all_derives = true)]
    "../../contracts/ICallbackScheduler.sol"
);
alloy_sol_types::sol! {
    /// What tests use of `contracts/testing/CallbackProbe.sol`; enums of the scheduler are their numbers here.
    interface CallbackProbe {
        error Refused(uint64 id);
        function came(uint256 n) external view returns (uint64);
        function count() external view returns (uint256);
        function statusInside() external view returns (uint8);
        function answer() external view returns (bytes memory);
        function allow(address scheduler, bool allowed) external;
        function book(bytes data, uint64 timestamp, uint8 priority, uint64 effort) external payable returns (uint64);
    }
}
alloy_sol_types::sol!(
    #![sol(all_derives = true)]
    "../../contracts/IParameters.sol"
);
#[allow(unused_imports, reason = "each test file uses a part of it")]
pub use ICallbackScheduler::{
    CallbackCanceled, CallbackExecuted, CallbackFailed, CallbackProcessed, CallbackRefunded,
    CallbackScheduled, EstimatedCallback, ICallbackSchedulerErrors as CallbackError, Priority,
    ScheduledCallback, SchedulerSet, Status,
};

/// Who books.
pub fn booker() -> Person {
    person(0)
}

/// Who governs.
pub fn governor() -> Person {
    person(8)
}

/// Pays for the dearest callback; the rest returns.
pub const PLENTY: U256 = U256::from_limbs([5_000_000_000_000_000_000, 0, 0, 0]);

/// An order for the probe.
#[derive(Clone, Debug)]
pub struct CallbackOrder {
    pub data: Bytes,
    pub timestamp: u64,
    pub priority: Priority,
    pub effort: u64,
    pub value: U256,
}

pub fn callback(priority: Priority, timestamp: u64, effort: u64) -> CallbackOrder {
    CallbackOrder { data: Bytes::new(), timestamp, priority, effort, value: PLENTY }
}

impl CallbackOrder {
    pub fn with_data(mut self, data: impl Into<Bytes>) -> Self {
        self.data = data.into();
        self
    }

    pub fn with_value(mut self, value: U256) -> Self {
        self.value = value;
        self
    }
}

/// A chain with a handler that lets [`booker`] book it.
pub struct Callbacks {
    pub chain: TestChain,
    pub probe: Address,
}

impl Callbacks {
    pub fn new() -> Self {
        Self::with_parameters(&[])
    }

    pub fn with_parameters(parameters: &[(&str, u64)]) -> Self {
        let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let genesis = Genesis { parameters, governance: governor().address, ..genesis() };
        let mut chain = TestChain::from_genesis(&genesis);
        let probe = deploy(&mut chain, booker(), "CallbackProbe", U256::ZERO, &booker().address.abi_encode());
        Self { chain, probe }
    }

    /// The head's time in seconds.
    pub fn now(&self) -> u64 {
        self.chain.head.timestamp.seconds()
    }

    pub fn schedule(&mut self, order: &CallbackOrder) -> Result<ScheduledCallback, CallbackError> {
        self.schedule_as(booker(), self.probe, order)
    }

    /// Books, and answers with what the call would have answered.
    pub fn schedule_as(
        &mut self,
        from: Person,
        handler: Address,
        order: &CallbackOrder,
    ) -> Result<ScheduledCallback, CallbackError> {
        let receipt = self.send(from, CALLBACKS, order.value, order.call(handler));
        refused(&receipt)?;
        let said = only::<CallbackScheduled>(&receipt.logs);
        assert_eq!((said.owner, said.handler), (from.address, handler));
        Ok(ScheduledCallback { id: said.id, timestamp: said.timestamp, status: self.status(said.id) })
    }

    pub fn estimate(&self, order: &CallbackOrder) -> EstimatedCallback {
        let CallbackOrder { data, timestamp, priority, effort, .. } = order.clone();
        self.read(
            CALLBACKS,
            ICallbackScheduler::estimateCall { data, timestamp, priority, executionEffort: effort },
        )
    }

    pub fn cancel(&mut self, from: Person, id: u64) -> Result<U256, CallbackError> {
        let receipt = self.send(from, CALLBACKS, U256::ZERO, ICallbackScheduler::cancelCall { id });
        refused(&receipt)?;
        Ok(only::<CallbackCanceled>(&receipt.logs).refunded)
    }

    pub fn status(&self, id: u64) -> Status {
        self.read(CALLBACKS, ICallbackScheduler::getStatusCall { id })
    }

    pub fn available(&self, timestamp: u64, priority: Priority) -> u64 {
        self.read(CALLBACKS, ICallbackScheduler::getSlotAvailableEffortCall { timestamp, priority })
    }

    /// What is booked in a second.
    pub fn booked(&self, second: u64) -> Booked {
        let stored = self.chain.state.0.get(&StateKey::Slot(LEDGER, bookings_slot(second)));
        let word = stored.map_or(U256::ZERO, |stored| decode_slot(stored).unwrap());
        Bookings::from_word(word).at(second)
    }

    /// What a view answers.
    #[expect(clippy::needless_pass_by_value, reason = "a call is written where it is sent")]
    pub fn read<C: SolCall>(&self, to: Address, call: C) -> C::Return {
        let result = self.chain.call(person(9).address, to, call.abi_encode());
        assert_eq!(result.outcome, Outcome::Success);
        C::abi_decode_returns(&result.output).unwrap()
    }

    #[expect(clippy::needless_pass_by_value, reason = "a call is written where it is sent")]
    pub fn send(&mut self, from: Person, to: Address, value: U256, call: impl SolCall) -> Receipt {
        self.chain.send(from, to, value, call.abi_encode())
    }

    /// Sets a parameter; it is in force in the block after.
    pub fn govern(&mut self, parameter: Parameter, value: u64) -> Receipt {
        let call = IParameters::setCall { name: parameter.name_word(), value: U256::from(value) };
        self.send(governor(), PARAMETERS, U256::ZERO, call)
    }

    /// An empty block at a Unix second; answers with the callbacks that ran, in order.
    pub fn at(&mut self, second: u64) -> Vec<u64> {
        self.at_ms(second * 1_000)
    }

    pub fn at_ms(&mut self, ms: u64) -> Vec<u64> {
        let produced = self.chain.produce_with(&self.chain.input_at(TimestampMs(ms)), vec![]);
        produced.ran().iter().map(|id| id.to()).collect()
    }

    /// Callbacks that reached the probe, in order.
    pub fn came(&self) -> Vec<u64> {
        let count: U256 = self.read(self.probe, CallbackProbe::countCall {});
        (0..count.to::<u64>())
            .map(|n| self.read(self.probe, CallbackProbe::cameCall { n: U256::from(n) }))
            .collect()
    }

    /// Every event of one kind that the scheduler emitted in the last block.
    pub fn said<E: SolEvent>(&self) -> Vec<E> {
        let receipts = &self.chain.outputs.last().unwrap().receipts;
        receipts.iter().flat_map(|receipt| events::<E>(&receipt.logs)).collect()
    }

    /// The receipt of a callback's run in the last block.
    pub fn run(&self, id: u64) -> &Receipt {
        let receipts = &self.chain.outputs.last().unwrap().receipts;
        let is_its = |receipt: &&Receipt| {
            receipt.schedule_ref.is_some_and(|reference| reference.schedule == ScheduleId(id))
        };
        receipts.iter().find(is_its).expect("it ran in the last block")
    }
}

impl CallbackOrder {
    pub fn call(&self, handler: Address) -> ICallbackScheduler::scheduleCall {
        let Self { data, timestamp, priority, effort, .. } = self.clone();
        ICallbackScheduler::scheduleCall { handler, data, timestamp, priority, executionEffort: effort }
    }
}

/// What gas of so much effort costs at a price.
pub fn base_part(effort: u64, price: u64) -> U256 {
    U256::from(effort) * U256::from(EFFORT_GAS) * U256::from(price)
}

/// The scheduler's error, where a call reverted.
pub fn refused(receipt: &Receipt) -> Result<(), CallbackError> {
    match &receipt.outcome {
        Outcome::Success => Ok(()),
        Outcome::Reverted(reason) => {
            Err(CallbackError::abi_decode(reason).expect("an error of the scheduler"))
        }
        Outcome::Halted(halt) => panic!("stopped: {halt:?}"),
    }
}

/// All events of one kind that the scheduler emitted.
pub fn events<E: SolEvent>(logs: &[Log]) -> Vec<E> {
    let ours = logs.iter().filter(|log| log.address == CALLBACKS);
    ours.filter_map(|log| E::decode_raw_log(log.topics().iter().copied(), &log.data.data).ok()).collect()
}

/// The only event of one kind.
pub fn only<E: SolEvent>(logs: &[Log]) -> E {
    let mut found = events::<E>(logs);
    assert_eq!(found.len(), 1, "{} events of this kind", found.len());
    found.remove(0)
}
