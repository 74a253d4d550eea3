//! Runs to be planted, the counter that most of them call, and what became of them.

use super::{MapState, Person, TestChain, contracts::COUNTER, eip1559, recovered, sign};
use alloy_consensus::TxEip1559;
use alloy_primitives::{Address, Bytes, TxKind, U256, address};
use almanac_exec::{BlockOutput, Candidates, Environment, TransactionError, execute};
use almanac_primitives::{
    Gas, GasPrice, Lane, Receipt, RunTransaction, ScheduleId, ScheduleRef, StateKey, UserTransaction, Wei,
};

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

pub const NOWHERE: Address = address!("0x00000000000000000000000000000000000d0001");

/// A sender of runs that nobody else uses. It has neither money nor code.
pub fn owner(n: u64) -> Address {
    Address::from_word(U256::from(0xe000_0000u64 + n).into())
}

/// Which schedules ran, in order.
pub fn ran(output: &BlockOutput) -> Vec<u64> {
    output.receipts.iter().filter_map(|receipt| receipt.schedule_ref).map(|run| run.schedule.0).collect()
}

pub fn run_receipt(output: &BlockOutput, id: u64) -> &Receipt {
    let is_it = |receipt: &&Receipt| receipt.schedule_ref.is_some_and(|run| run.schedule.0 == id);
    output.receipts.iter().find(is_it).unwrap()
}

pub fn base_fee_next(chain: &TestChain) -> u128 {
    Environment::derive(&chain.input(), &chain.state).unwrap().base_fee.0
}

/// A price above the base fee of the next block, in steps small enough to have many.
pub fn price(chain: &TestChain, steps: u64) -> u128 {
    base_fee_next(chain) + u128::from(steps) * 1_000_000
}

/// A transaction that pays exactly `price`.
pub fn paying(from: Person, nonce: u64, price: u128, to: Address, gas: u64) -> UserTransaction {
    let tx = eip1559(nonce, TxKind::Call(to), 0, Bytes::new(), gas);
    sign(TxEip1559 { max_fee_per_gas: price, max_priority_fee_per_gas: price, ..tx }, from.secret)
}

pub fn priced(id: u64, price: u128) -> RunTransaction {
    RunTransaction { gas_price: GasPrice(price), ..run(id, Lane::Market, owner(id), NOWHERE, 21_000) }
}

/// Executes candidates without any of the checks of `produce`.
pub fn build(chain: &TestChain, candidates: Vec<UserTransaction>) -> (BlockOutput, Vec<TransactionError>) {
    let mut source = Candidates::new(candidates.into_iter().map(recovered).collect());
    let output = execute(&chain.state, &*chain.agenda, &chain.input(), &mut source).unwrap();
    (output, source.refusals().iter().map(|(_, error)| error.clone()).collect())
}
