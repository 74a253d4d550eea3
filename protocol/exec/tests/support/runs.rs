//! Runs to be planted, and the counter that most of them call.

use super::{MapState, contracts::COUNTER};
use alloy_primitives::{Address, Bytes, U256};
use almanac_primitives::{Gas, GasPrice, Lane, RunTransaction, ScheduleId, ScheduleRef, StateKey, Wei};

/// The slot in which the counter counts the calls of `caller`.
pub fn counted(caller: Address) -> StateKey {
    StateKey::Slot(COUNTER, U256::from_be_slice(caller.as_slice()))
}

/// How often the counter was called by `caller`.
pub fn count_of(state: &MapState, caller: Address) -> U256 {
    state.0.get(&counted(caller)).map_or(U256::ZERO, |bytes| U256::from_be_slice(bytes))
}

/// A run of the schedule `id` to fill in: nothing but a call, in the market lane with a bid of 1 gwei.
pub fn run(id: u64, lane: Lane, from: Address, to: Address, gas: u64) -> RunTransaction {
    RunTransaction {
        schedule_ref: ScheduleRef { schedule: ScheduleId(id), number: 0 },
        lane,
        from,
        to,
        value: Wei::ZERO,
        input: Bytes::new(),
        gas_limit: Gas(gas),
        gas_price: GasPrice(1_000_000_000),
    }
}
