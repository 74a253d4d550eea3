//! A payable door that exists only in unit tests, to test what the framework guarantees to every door.

use super::{
    call::{DoorCall, DoorError, revert},
    storage::Slot,
};
use alloy_primitives::{Address, Bytes, U256, address};

/// The probe's address.
pub(super) const ADDRESS: Address = address!("0x000000000000000000000000000000000000a1f0");

alloy_sol_types::sol! {
    interface IProbe {
        event Deposited(address indexed from, uint256 value);
        error Failed(uint256 total);

        /// Takes the value, adds it to the total, says so.
        function deposit() external payable returns (uint256 total);
        /// As deposit, then reverts.
        function depositAndFail() external payable;
        /// Takes no value; writes the total all the same.
        function write(uint256 total) external;
        /// Reads the total twice.
        function read() external view returns (uint256 total);
        /// Charges for work.
        function work(uint256 gas) external;
    }
}
use IProbe::IProbeCalls as Method;

const TOTAL: Slot<U256> = Slot::at(7);

/// Answers one call.
pub(super) fn call(call: &mut DoorCall<'_, '_>) -> Result<Bytes, DoorError> {
    match call.decode::<Method>()? {
        Method::deposit(_) => {
            let total = deposit(call)?;
            call.answer(&total)
        }
        Method::depositAndFail(_) => {
            let total = deposit(call)?;
            Err(revert(IProbe::Failed { total }))
        }
        Method::write(args) => {
            call.store(TOTAL, args.total)?;
            Ok(Bytes::new())
        }
        Method::read(_) => {
            call.load(TOTAL)?;
            let total = call.load(TOTAL)?;
            call.answer(&total)
        }
        Method::work(args) => {
            call.charge(args.gas.saturating_to())?;
            Ok(Bytes::new())
        }
    }
}

fn deposit(call: &mut DoorCall<'_, '_>) -> Result<U256, DoorError> {
    let (from, value) = (call.caller(), call.take_value());
    let total = call.load(TOTAL)?.saturating_add(value);
    call.store(TOTAL, total)?;
    call.emit(&IProbe::Deposited { from, value })?;
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::{super::call::IDoor, *};
    use crate::{
        environment::{BlockInput, Environment},
        machine::{Executed, Machine, MachineError, Strictness},
        state::BlockState,
    };
    use alloy_primitives::Log;
    use alloy_sol_types::{SolCall, SolError, SolEvent};
    use almanac_primitives::testing::contracts::*;
    use almanac_primitives::{
        Account, ConsensusContext, Header, StateKey, StateRead, StateReadError, TimestampMs,
        state::{decode_slot, encode_slot},
    };
    use revm::{
        context::TxEnv,
        context_interface::result::{ExecutionResult, HaltReason, OutOfGasError},
        inspector::NoOpInspector,
        primitives::TxKind,
    };
    use std::collections::BTreeMap;

    const ALICE: Address = address!("0x00000000000000000000000000000000000a11ce");
    const MONEY: u64 = 1_000;
    const GAS: u64 = 1_000_000;

    #[derive(Clone)]
    struct State(BTreeMap<StateKey, Bytes>);

    impl StateRead for State {
        fn read(&self, key: StateKey) -> Result<Option<Bytes>, StateReadError> {
            Ok(self.0.get(&key).cloned())
        }
    }

    impl State {
        /// Alice with some money, the test contracts, and the probe as genesis would create it.
        fn new() -> Self {
            let mut state = Self(BTreeMap::new());
            let alice = Account { balance: U256::from(MONEY), ..Account::default() };
            state.0.insert(StateKey::Account(ALICE), alice.encode());
            let contracts = all().into_iter().chain([(ADDRESS, Bytes::from_static(&[0x00]))]);
            for (address, code) in contracts {
                let code_hash = alloy_primitives::keccak256(&code);
                let account = Account { nonce: 1, code_hash, ..Account::default() };
                state.0.insert(StateKey::Account(address), account.encode());
                state.0.insert(StateKey::Code(code_hash), code);
            }
            state
        }

        fn with_total(total: u64) -> Self {
            let mut state = Self::new();
            let stored = encode_slot(U256::from(total)).unwrap();
            state.0.insert(StateKey::Slot(ADDRESS, TOTAL.key()), stored);
            state
        }

        fn balance(&self, address: Address) -> u64 {
            let stored = self.0.get(&StateKey::Account(address));
            stored.map_or(0, |bytes| Account::decode(bytes).unwrap().balance.to())
        }

        fn total(&self) -> u64 {
            let stored = self.0.get(&StateKey::Slot(ADDRESS, TOTAL.key()));
            stored.map_or(0, |bytes| decode_slot(bytes).unwrap().to())
        }

        /// Calls as the chain itself does, so that only the call's own gas is counted, and commits the changes.
        fn call(&mut self, to: Address, value: u64, input: impl Into<Bytes>, gas: u64) -> Executed {
            let before = self.clone();
            let input_of_block = BlockInput {
                chain: almanac_primitives::Chain { id: 1, ..Default::default() },
                parent: Header::default(),
                parent_hash: Header::default().hash(),
                timestamp: TimestampMs(1),
                fee_recipient: Address::ZERO,
                consensus: ConsensusContext::default(),
            };
            let environment = Environment::derive(&input_of_block, &before).unwrap();
            let state = BlockState::new(&before);
            let mut machine = Machine::new(state, &environment, Strictness::Block, NoOpInspector);
            let tx = TxEnv {
                caller: ALICE,
                kind: TxKind::Call(to),
                value: U256::from(value),
                data: input.into(),
                gas_limit: gas,
                ..TxEnv::default()
            };
            let executed =
                machine.call_as_system(tx, Default::default(), false).unwrap_or_else(|error| match error {
                    MachineError::Refused(reason) => panic!("{reason}"),
                    MachineError::State(fault) => panic!("{fault}"),
                    MachineError::Fault(fault) => panic!("{fault}"),
                });
            assert_eq!(executed.balances.before, executed.balances.after, "no call makes or loses money");
            machine.state().commit(executed.changes.clone()).unwrap();
            for change in machine.into_state().into_diff(TimestampMs(1)).unwrap().0.changes() {
                match &change.new {
                    Some(new) => self.0.insert(change.key, new.clone()),
                    None => self.0.remove(&change.key),
                };
            }
            executed
        }
    }

    /// The answer to `returns (uint256)`.
    fn word(value: U256) -> Bytes {
        value.to_be_bytes::<32>().into()
    }

    fn deposit_input() -> Vec<u8> {
        IProbe::depositCall {}.abi_encode()
    }

    fn write_input(total: u64) -> Vec<u8> {
        IProbe::writeCall { total: U256::from(total) }.abi_encode()
    }

    #[track_caller]
    fn succeeded(executed: &Executed) -> &[Log] {
        let ExecutionResult::Success { logs, .. } = &executed.result else { panic!("{:?}", executed.result) };
        logs
    }

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "an error is written where it is expected")]
    fn reverted_with<E: SolError>(executed: &Executed, error: E) {
        let ExecutionResult::Revert { output, logs, .. } = &executed.result else {
            panic!("{:?}", executed.result)
        };
        assert_eq!(*output, Bytes::from(error.abi_encode()));
        assert!(logs.is_empty());
    }

    fn gas_spent(executed: &Executed) -> u64 {
        executed.result.gas().total_gas_spent()
    }

    #[test]
    fn a_payable_method_takes_the_value_into_the_doors_balance() {
        let mut state = State::new();
        for (value, total) in [(10, 10), (0, 10), (5, 15)] {
            let executed = state.call(ADDRESS, value, deposit_input(), GAS);
            let event = IProbe::Deposited { from: ALICE, value: U256::from(value) };
            assert_eq!(succeeded(&executed), [Log { address: ADDRESS, data: event.encode_log_data() }]);
            assert_eq!(executed.result.output(), Some(&word(U256::from(total))));
            assert_eq!((state.total(), state.balance(ADDRESS)), (total, total));
            assert_eq!(state.balance(ALICE), MONEY - total);
        }
    }

    #[test]
    fn a_contract_deposits_as_itself() {
        let mut state = State::new();
        let executed = state.call(FORWARDER, 10, to(ADDRESS, &deposit_input()), GAS);
        let event = IProbe::Deposited { from: FORWARDER, value: U256::from(10) };
        assert_eq!(succeeded(&executed), [Log { address: ADDRESS, data: event.encode_log_data() }]);
        assert_eq!((state.balance(ADDRESS), state.balance(FORWARDER)), (10, 0));
    }

    #[test]
    fn a_method_that_takes_no_value_refuses_it_and_undoes_what_it_did() {
        let mut state = State::with_total(3);
        let executed = state.call(ADDRESS, 10, write_input(99), GAS);
        reverted_with(&executed, IDoor::NotPayable { value: U256::from(10) });
        assert_eq!((state.total(), state.balance(ADDRESS), state.balance(ALICE)), (3, 0, MONEY));

        succeeded(&state.call(ADDRESS, 0, write_input(99), GAS));
        assert_eq!(state.total(), 99);
    }

    #[test]
    fn a_door_that_fails_after_taking_value_gives_it_back() {
        let mut state = State::with_total(3);
        let executed = state.call(ADDRESS, 10, IProbe::depositAndFailCall {}.abi_encode(), GAS);
        reverted_with(&executed, IProbe::Failed { total: U256::from(13) });
        assert_eq!((state.total(), state.balance(ADDRESS), state.balance(ALICE)), (3, 0, MONEY));
        assert_eq!(executed.result.gas().inner_refunded(), 0);
    }

    #[test]
    fn a_caller_that_reverts_undoes_the_deposit() {
        let mut state = State::new();
        let executed = state.call(FORWARD_AND_REVERT, 10, to(ADDRESS, &deposit_input()), GAS);
        let ExecutionResult::Revert { output, logs, .. } = &executed.result else { panic!() };
        assert_eq!(*output, word(U256::from(10)), "the deposit itself went well");
        assert!(logs.is_empty());
        assert_eq!((state.total(), state.balance(ADDRESS), state.balance(ALICE)), (0, 0, MONEY));
    }

    #[test]
    fn what_a_failed_inner_call_did_is_undone_alone() {
        let mut state = State::new();
        // The echo continues after its inner call has failed.
        let failing = to(ADDRESS, &IProbe::depositAndFailCall {}.abi_encode());
        let executed = state.call(ECHO, 10, failing, GAS);
        let [echoed] = succeeded(&executed) else {
            panic!("the door's own log is gone, the echo's is there")
        };
        assert_eq!(echoed.address, ECHO);
        assert_eq!((state.total(), state.balance(ADDRESS), state.balance(ECHO)), (0, 0, 10));
    }

    #[test]
    fn only_a_plain_call_acts() {
        for (caller, has_value) in [(DELEGATOR, false), (CODE_CALLER, true)] {
            let mut state = State::new();
            for input in [deposit_input(), write_input(1), IProbe::readCall {}.abi_encode(), vec![]] {
                let value = if has_value { 10 } else { 0 };
                let executed = state.call(caller, value, to(ADDRESS, &input), GAS);
                reverted_with(&executed, IDoor::DelegateCallRefused {});
                assert_eq!((state.total(), state.balance(ADDRESS)), (0, 0));
                assert!(!state.0.contains_key(&StateKey::Slot(caller, TOTAL.key())));
            }
        }
        let mut state = State::with_total(3);
        for input in [deposit_input(), write_input(1)] {
            reverted_with(
                &state.call(STATIC_CALLER, 0, to(ADDRESS, &input), GAS),
                IDoor::StaticCallRefused {},
            );
        }
        let executed = state.call(STATIC_CALLER, 0, to(ADDRESS, &IProbe::readCall {}.abi_encode()), GAS);
        assert_eq!(executed.result.output(), Some(&word(U256::from(3))));
    }

    #[test]
    fn what_is_no_method_is_refused_by_name() {
        let mut state = State::new();
        let unknown = |selector: [u8; 4]| IDoor::UnknownMethod { selector: selector.into() };
        reverted_with(&state.call(ADDRESS, 0, vec![], GAS), unknown([0; 4]));
        reverted_with(&state.call(ADDRESS, 7, vec![], GAS), unknown([0; 4]));
        reverted_with(&state.call(ADDRESS, 0, vec![1, 2, 3, 4], GAS), unknown([1, 2, 3, 4]));
        let selector = IProbe::writeCall::SELECTOR;
        let cut = state.call(ADDRESS, 0, selector.to_vec(), GAS);
        reverted_with(&cut, IDoor::MalformedArguments { selector: selector.into() });
        assert_eq!(state.balance(ADDRESS), 0, "and keeps no money");
    }

    /// 120 for the call, 12 per word of calldata and of the result, storage and logs at the EVM's prices.
    #[test]
    fn gas_is_counted_to_the_unit() {
        let mut state = State::new();
        let new_total = state.call(ADDRESS, 10, deposit_input(), GAS);
        assert_eq!(gas_spent(&new_total), 132 + 2_100 + 20_000 + (375 + 2 * 375 + 8 * 32) + 12);
        let next_total = state.call(ADDRESS, 10, deposit_input(), GAS);
        assert_eq!(gas_spent(&next_total), 132 + 2_100 + 2_900 + (375 + 2 * 375 + 8 * 32) + 12);
        let read = state.call(ADDRESS, 0, IProbe::readCall {}.abi_encode(), GAS);
        assert_eq!(gas_spent(&read), 132 + 2_100 + 100 + 12, "the second read is warm");
        let worked = state.call(ADDRESS, 0, IProbe::workCall { gas: U256::from(1_234) }.abi_encode(), GAS);
        assert_eq!(gas_spent(&worked), 120 + 2 * 12 + 1_234);
        let refused = state.call(ADDRESS, 0, vec![1, 2, 3, 4], GAS);
        assert_eq!(gas_spent(&refused), 132, "a revert costs what was done until then");
    }

    #[test]
    fn clearing_a_slot_gives_the_refund_of_the_evm() {
        let mut state = State::with_total(3);
        let cleared = state.call(ADDRESS, 0, write_input(0), GAS);
        assert_eq!(gas_spent(&cleared), 120 + 2 * 12 + 5_000);
        assert_eq!(cleared.result.gas().inner_refunded(), 4_800);
        assert!(!state.0.contains_key(&StateKey::Slot(ADDRESS, TOTAL.key())), "zero is not stored");

        // No change if the door or its caller reverts.
        let mut state = State::with_total(3);
        let refused = state.call(ADDRESS, 1, write_input(0), GAS);
        assert_eq!(refused.result.gas().inner_refunded(), 0);
        let undone = state.call(FORWARD_AND_REVERT, 0, to(ADDRESS, &write_input(0)), GAS);
        assert_eq!(undone.result.gas().inner_refunded(), 0);
        assert_eq!(state.total(), 3);
    }

    /// Whatever the gas, a call takes effect completely or not at all.
    #[test]
    fn running_out_of_gas_at_any_point_changes_nothing() {
        let needed = gas_spent(&State::with_total(3).call(ADDRESS, 10, deposit_input(), GAS));
        for gas in (0..needed).step_by(7).chain([needed - 1]) {
            let mut state = State::with_total(3);
            let executed = state.call(ADDRESS, 10, deposit_input(), gas);
            let ExecutionResult::Halt { reason, logs, .. } = &executed.result else {
                panic!("{gas} suffices")
            };
            assert_eq!(*reason, HaltReason::OutOfGas(OutOfGasError::Precompile));
            assert!(logs.is_empty());
            assert_eq!(gas_spent(&executed), gas, "all of it is gone");
            assert_eq!((state.total(), state.balance(ADDRESS), state.balance(ALICE)), (3, 0, MONEY));
        }
        let mut state = State::with_total(3);
        succeeded(&state.call(ADDRESS, 10, deposit_input(), needed));
        assert_eq!(state.total(), 13);
    }

    #[test]
    fn no_amount_of_work_wraps_around() {
        let mut state = State::new();
        for work in [U256::from(GAS), U256::from(u64::MAX), U256::MAX] {
            let executed = state.call(ADDRESS, 0, IProbe::workCall { gas: work }.abi_encode(), GAS);
            assert!(matches!(executed.result, ExecutionResult::Halt { .. }), "{work}");
            assert_eq!(gas_spent(&executed), GAS);
        }
    }

    /// A caller keeps a 64th of its gas (EIP-150) and continues when a door has used up the rest.
    #[test]
    fn a_door_out_of_gas_is_a_failed_call_to_its_caller() {
        let mut state = State::new();
        let greedy = to(ADDRESS, &IProbe::workCall { gas: U256::MAX }.abi_encode());
        let executed = state.call(ECHO, 10, greedy, GAS);
        let [echoed] = succeeded(&executed) else { panic!() };
        assert!(echoed.data.data.is_empty(), "running out of gas says nothing");
        assert!(gas_spent(&executed) > GAS - GAS / 64 && gas_spent(&executed) < GAS);
        assert_eq!((state.balance(ADDRESS), state.balance(ECHO)), (0, 10));
    }

    #[test]
    fn a_door_is_warm_from_the_start() {
        let mut state = State::new();
        let input = IProbe::workCall { gas: U256::ZERO }.abi_encode();
        let via = |state: &mut State, target| gas_spent(&state.call(ECHO, 0, to(target, &input), GAS));
        // The other address has no code: the difference is the cold account access less the door's own work.
        let nobody = address!("0x00000000000000000000000000000000000d0d0d");
        assert_eq!(via(&mut state, nobody) - via(&mut state, ADDRESS), 2_600 - 100 - (120 + 2 * 12));
    }
}
