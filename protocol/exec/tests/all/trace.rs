//! Looking on changes nothing: tracing a block, and trying out a call.

use crate::support::{contracts::*, runs::run, *};
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_primitives::{Address, Bytes, Log, TxKind, U256, keccak256};
use alloy_sol_types::SolCall;
use almanac_exec::{
    BlockBody, BlockError, BlockOutput, Call, Candidates, Environment, EvmContext, Finished, Footprint,
    Observer, Refusal, SimulateError, TransactionError, Watch, execute, observe, simulate, simulate_step,
    simulate_with,
};
use almanac_primitives::{
    Account, Gas, GasPrice, Genesis, Halt, Lane, Outcome, Receipt, RunTransaction, StateDiff, StateKey,
    StateRead as _, TimestampMs, UserTransaction, Wei,
    addresses::{LEDGER, PARAMETERS},
    params::{BASE_FEE_FLOOR_WEI, RECEIPT_REASON_BYTES_MAX},
    state::encode_slot,
};
use almanac_schedule::testing::REFUNDED;
use revm::{
    Inspector,
    inspector::NoOpInspector,
    interpreter::{
        CallInputs, CallOutcome, CreateInputs, CreateOutcome, Interpreter, interpreter::EthInterpreter,
    },
    state::AccountInfo,
};

alloy_sol_types::sol!("../../contracts/IParameters.sol");

/// Counts what it is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counter {
    steps: usize,
    calls: usize,
    creations: usize,
    logs: usize,
    destructions: usize,
}

impl<'a> Inspector<EvmContext<'a>, EthInterpreter> for Counter {
    fn step(&mut self, _: &mut Interpreter<EthInterpreter>, _: &mut EvmContext<'a>) {
        self.steps += 1;
    }

    fn call(&mut self, _: &mut EvmContext<'a>, _: &mut CallInputs) -> Option<CallOutcome> {
        self.calls += 1;
        None
    }

    fn create(&mut self, _: &mut EvmContext<'a>, _: &mut CreateInputs) -> Option<CreateOutcome> {
        self.creations += 1;
        None
    }

    fn log(&mut self, _: &mut EvmContext<'a>, _: Log) {
        self.logs += 1;
    }

    fn selfdestruct(&mut self, _: Address, _: Address, _: U256) {
        self.destructions += 1;
    }
}

/// What was seen of each watched transaction.
type Seen = Vec<(usize, Receipt, Counter)>;

fn watch(chain: &TestChain, transactions: &[UserTransaction], watch: Watch) -> (BlockOutput, Seen) {
    let mut seen = Vec::new();
    let mut finished = |finished: Finished<'_>, counter: &mut Counter| {
        seen.push((finished.index, finished.receipt.clone(), std::mem::take(counter)));
    };
    let mut observer = Observer { inspector: Counter::default(), watch, finished: &mut finished };
    let body = transactions.iter().cloned().map(recovered).collect();
    let output =
        observe(&chain.state, &*chain.agenda, &chain.input(), &mut BlockBody::new(body), &mut observer)
            .unwrap();
    assert_eq!(observer.inspector, Counter::default(), "nothing was seen between the transactions");
    (output, seen)
}

/// A block with something in every lane, and transactions of several kinds.
fn full_block() -> (TestChain, Vec<UserTransaction>) {
    let mut chain = TestChain::from_genesis(&Genesis { governance: person(0).address, ..genesis() });
    let failing = run(5, Lane::Cron, person(3).address, REVERTER, 100_000);
    let writing =
        RunTransaction { input: words(3, 7), ..run(1, Lane::Reserved, person(3).address, WRITER, 200_000) };
    let logging = RunTransaction {
        gas_price: almanac_primitives::GasPrice(u64::MAX.into()),
        ..run(2, Lane::Market, person(3).address, LOGGER, 100_000)
    };
    let sending = RunTransaction {
        value: Wei(U256::from(4)),
        ..run(3, Lane::Spare, person(3).address, person(4).address, 21_000)
    };
    chain.plant_runs(&[writing, failing, logging, sending]);
    let set =
        IParameters::setCall { name: BASE_FEE_FLOOR_WEI.name_word(), value: U256::from(7) }.abi_encode();
    let alice = person(0);
    let transactions = vec![
        transfer(alice, 0, person(1).address, 5),
        call(alice, 1, FORWARDER, to(COUNTER, &[]), 200_000),
        sign(eip1559(2, TxKind::Create, 0, deploy(&[0x00]), 200_000), alice.secret),
        call(alice, 3, PARAMETERS, set, 200_000),
        call(alice, 4, BURNER, vec![], 50_000),
        sign(eip1559(5, TxKind::Call(CREATOR), 3, born_to_burn(), 200_000), alice.secret),
        sign(eip7702(6, person(2).address, vec![authorize(person(2), 0, COUNTER)], 200_000), alice.secret),
    ];
    (chain, transactions)
}

#[test]
fn a_watched_block_is_the_same_block() {
    let (chain, transactions) = full_block();
    let body = transactions.iter().cloned().map(recovered).collect();
    let expected = execute(&chain.state, &*chain.agenda, &chain.input(), &mut BlockBody::new(body)).unwrap();
    assert_eq!(expected.receipts.len(), 1 + 4 + 7);

    let (output, seen) = watch(&chain, &transactions, Watch::Everything);

    assert_eq!(output, expected);
    let mut receipts: Vec<_> = seen.iter().map(|(_, receipt, _)| receipt.clone()).collect();
    // The end of the block decides on the price of a market run, and its door tells of it then.
    let market = expected.receipts[3].clone();
    assert_eq!(receipts[3].effective_gas_price, base_fee(&expected));
    assert_eq!(receipts[3].logs[..], market.logs[..1]);
    (receipts[3].effective_gas_price, receipts[3].logs) = (market.effective_gas_price, market.logs);
    assert_eq!(receipts, expected.receipts, "each with its receipt, in order");
    assert!(seen.iter().map(|(index, ..)| *index).eq(0..expected.receipts.len()));
    let of = |n: usize| seen[n].2;
    assert_eq!(of(0), Counter::default(), "the prologue runs no code");
    assert!(of(1).steps > 20, "reserved: the writer");
    assert!(of(2).steps > 5, "cron: the one that reverts");
    assert_eq!((of(3).calls, of(3).logs), (1, 1), "market: the logger");
    assert_eq!((of(4).calls, of(4).steps), (1, 0), "a transfer");
    assert_eq!(of(5).calls, 2, "a forwarded call");
    assert_eq!((of(6).creations, of(6).calls), (1, 0), "a creation");
    assert!(of(6).steps > 0);
    assert_eq!((of(7).calls, of(7).steps, of(7).logs), (1, 0, 1), "a door: native, but its log is shown");
    assert!(of(8).steps > 1_000, "the burner");
    assert_eq!((of(9).creations, of(9).destructions), (1, 1), "born to burn");
    assert!(of(10).steps > 0, "the delegate's code");
    assert_eq!((of(11).calls, of(11).steps), (1, 0), "spare: a transfer");
}

/// Before and after of each transaction, laid end to end, are before and after of the block.
#[test]
fn footprints_add_up_to_the_block() {
    let (chain, transactions) = full_block();
    let mut footprints: Vec<Footprint> = Vec::new();
    let mut finished = |finished: Finished<'_>, _: &mut NoOpInspector| footprints.push(finished.footprint);
    let mut observer =
        Observer { inspector: NoOpInspector, watch: Watch::Everything, finished: &mut finished };
    let body = transactions.into_iter().map(recovered).collect();
    let output =
        observe(&chain.state, &*chain.agenda, &chain.input(), &mut BlockBody::new(body), &mut observer)
            .unwrap();

    let mut state = chain.state.clone();
    for (footprint, receipt) in footprints.iter().zip(&output.receipts) {
        assert_eq!(footprint.result.tx_gas_used(), receipt.gas_used.0);
        assert!(footprint.result.is_success() == receipt.outcome.is_success());
        for (address, before) in &footprint.before {
            let stored = state.read(StateKey::Account(*address)).unwrap();
            assert_eq!(before.as_ref().map(encoded), stored, "{address} before {}", receipt.transaction_hash);
            let code = before.as_ref().map(|info| info.code.clone().unwrap().original_bytes());
            assert!(code.is_none_or(|code| keccak256(&code) == before.as_ref().unwrap().code_hash));
        }
        for change in changes(footprint) {
            match change.1 {
                Some(new) => state.0.insert(change.0, new),
                None => state.0.remove(&change.0),
            };
        }
    }
    let mut expected = chain.state.clone();
    expected.apply(&output.diff);
    expected.0.retain(|key, _| is_shown(key));
    state.0.retain(|key, _| is_shown(key));
    assert_eq!(state, expected);
}

/// What a footprint tells of: not codes, which have a name of their own, nor what the chain itself does before and after
/// the call of a run.
fn is_shown(key: &StateKey) -> bool {
    match key {
        StateKey::Account(address) | StateKey::Slot(address, _) => ![LEDGER, REFUNDED].contains(address),
        StateKey::Code(_) | StateKey::Body(_) | StateKey::Calendar(_) => false,
        StateKey::Nonce(..) | StateKey::NonceLog(..) | StateKey::AccountKey(_) => false,
        StateKey::Meta(_) => true,
    }
}

fn encoded(info: &AccountInfo) -> Bytes {
    Account { nonce: info.nonce, balance: info.balance, code_hash: info.code_hash, is_keyed: false }.encode()
}

/// The changes of one transaction, read off its footprint.
fn changes(footprint: &Footprint) -> Vec<(StateKey, Option<Bytes>)> {
    let mut changes = Vec::new();
    for (address, account) in &footprint.after {
        if !account.is_touched() {
            continue;
        }
        let is_gone = account.is_selfdestructed() || account.is_empty();
        changes.push((StateKey::Account(*address), (!is_gone).then(|| encoded(&account.info))));
        for (slot, value) in &account.storage {
            let value = if is_gone { U256::ZERO } else { value.present_value() };
            changes.push((StateKey::Slot(*address, *slot), encode_slot(value)));
        }
    }
    changes
}

#[test]
fn one_transaction_is_watched_alone() {
    let (chain, transactions) = full_block();
    let (expected, all) = watch(&chain, &transactions, Watch::Everything);
    for (index, receipt, counter) in all {
        let (output, seen) = watch(&chain, &transactions, Watch::Only(index));
        assert_eq!(output, expected);
        assert_eq!(seen, [(index, receipt, counter)], "the same that is seen among all");
    }
    for nothing in [Watch::Nothing, Watch::Only(expected.receipts.len()), Watch::Only(usize::MAX)] {
        let (output, seen) = watch(&chain, &transactions, nothing);
        assert_eq!(output, expected);
        assert_eq!(seen, []);
    }
}

/// Receipt indices are those of the finished block, whatever was offered and refused on the way.
#[test]
fn refused_candidates_are_not_seen() {
    let (chain, transactions) = full_block();
    let mut offered = transactions.clone();
    offered.insert(3, call(person(5), 9, COUNTER, vec![], 100_000));
    offered.insert(0, call(person(6), 9, COUNTER, vec![], 100_000));
    let mut indices = Vec::new();
    let mut finished =
        |seen: Finished<'_>, counter: &mut Counter| indices.push((seen.index, std::mem::take(counter)));
    let mut observer =
        Observer { inspector: Counter::default(), watch: Watch::Everything, finished: &mut finished };
    let mut source = Candidates::new(offered.into_iter().map(recovered).collect());
    let output = observe(&chain.state, &*chain.agenda, &chain.input(), &mut source, &mut observer).unwrap();

    assert_eq!(source.refusals().len(), 2);
    let (expected, seen) = watch(&chain, &transactions, Watch::Everything);
    assert_eq!(output, expected);
    let seen: Vec<_> = seen.into_iter().map(|(index, _, counter)| (index, counter)).collect();
    assert_eq!(indices, seen);
}

fn trying(from: Address, to: Option<Address>, input: impl Into<Bytes>) -> Call {
    Call { from, to, value: U256::ZERO, input: input.into(), gas_limit: Gas(1_000_000), ..Call::default() }
}

#[test]
fn a_call_that_is_tried_out_leaves_no_trace() {
    let chain = TestChain::new();
    let before = chain.state.clone();
    let result =
        simulate(&chain.state, &chain.input(), trying(person(0).address, Some(COUNTER), vec![])).unwrap();
    assert_eq!(result.outcome, Outcome::Success);
    let result =
        simulate(&chain.state, &chain.input(), trying(person(0).address, Some(LOGGER), vec![7])).unwrap();
    assert_eq!(result.logs.len(), 1, "its logs are told all the same");
    assert_eq!(chain.state, before);
    // And so the same again.
    let twice = [0, 1].map(|_| chain.call(person(0).address, COUNTER, vec![]));
    assert_eq!(twice[0], twice[1]);
}

#[test]
fn a_tried_call_is_in_the_block_that_comes_next() {
    let mut chain = TestChain::new();
    chain.produce(vec![]);
    chain.produce(vec![]);
    let hash_of =
        |number: u64| chain.call(person(0).address, HASHER, U256::from(number).to_be_bytes_vec()).output;
    assert_eq!(hash_of(2)[..], chain.head.hash()[..], "the parent's hash is there");
    assert_eq!(hash_of(3)[..], [0; 32], "its own is not");
    let told = chain.call(person(0).address, TELLER, vec![]).output;
    let environment = Environment::derive(&chain.input(), &chain.state).unwrap();
    assert_eq!(U256::from_be_slice(&told[..32]), U256::from(3));
    assert_eq!(U256::from_be_slice(&told[4 * 32..5 * 32]), U256::from(environment.base_fee.0), "BASEFEE");

    let mut late = chain.input();
    late.timestamp = chain.head.timestamp;
    let error = simulate(&chain.state, &late, trying(person(0).address, Some(COUNTER), vec![])).unwrap_err();
    let time = BlockError::TimeNotAfterParent { given: late.timestamp, parent: chain.head.timestamp };
    assert_eq!(error, SimulateError::Block(time));
    late.timestamp = TimestampMs(chain.head.timestamp.0 + 1);
    simulate(&chain.state, &late, trying(person(0).address, Some(COUNTER), vec![])).unwrap();
}

#[test]
fn revert_data_is_told_in_full() {
    let mut chain = TestChain::new();
    let identity = Address::with_last_byte(4);
    let said: Bytes = (0..1_000).map(|n| (n % 251) as u8).collect::<Vec<_>>().into();
    let input = to(identity, &said);

    let result = chain.call(person(0).address, FORWARD_AND_REVERT, input.clone());

    assert_eq!(result.output, said);
    let kept = said.slice(..RECEIPT_REASON_BYTES_MAX);
    assert_eq!(result.outcome, Outcome::Reverted(kept.clone()));
    let produced = chain.produce(vec![call(person(0), 0, FORWARD_AND_REVERT, input, 500_000)]);
    assert_eq!(produced.receipt(0).outcome, Outcome::Reverted(kept), "a receipt keeps the first bytes");
}

#[test]
fn value_must_be_there_and_nothing_else() {
    let chain = TestChain::new();
    let balance = chain.balance(person(0).address);
    let send = |from, value| {
        let call = Call { value, ..trying(from, Some(COUNTER), vec![]) };
        simulate(&chain.state, &chain.input(), call)
    };
    assert_eq!(
        send(person(0).address, balance).unwrap().outcome,
        Outcome::Success,
        "to the last wei: gas is free"
    );
    let Err(SimulateError::Refused { reason }) = send(person(0).address, balance + U256::from(1)) else {
        panic!("a wei too much")
    };
    assert!(matches!(reason, Refusal::Rule(TransactionError::InsufficientFunds { .. })), "{reason}");
    assert!(reason.to_string().starts_with("insufficient funds for gas * price + value"), "{reason}");
    assert!(matches!(send(person(0).address, U256::MAX), Err(SimulateError::Refused { .. })));
    let nobody = Address::with_last_byte(0x99);
    assert_eq!(send(nobody, U256::ZERO).unwrap().outcome, Outcome::Success);
    assert!(matches!(send(nobody, U256::from(1)), Err(SimulateError::Refused { .. })));
    assert_eq!(
        send(FORWARDER, U256::ZERO).unwrap().outcome,
        Outcome::Success,
        "a contract may be impersonated"
    );
}

#[test]
fn gas_has_a_lower_limit_and_no_upper_one() {
    let chain = TestChain::new();
    let with_gas = |gas| {
        let call = Call { gas_limit: Gas(gas), ..trying(person(0).address, Some(person(1).address), vec![]) };
        simulate(&chain.state, &chain.input(), call)
    };
    let needed = TransactionError::IntrinsicGasTooLow { given: 20_999, needed: 21_000 };
    assert_eq!(with_gas(20_999), Err(needed.into()));
    assert_eq!(with_gas(21_000).unwrap().gas_used, Gas(21_000));
    assert_eq!(with_gas(u64::MAX).unwrap().gas_used, Gas(21_000), "above any block");
    let halted = simulate(
        &chain.state,
        &chain.input(),
        Call { gas_limit: Gas(50_000), ..trying(person(0).address, Some(BURNER), vec![]) },
    );
    assert_eq!(halted.unwrap().outcome, Outcome::Halted(Halt::OutOfGas));
}

/// What one call would change is what the next one finds.
#[test]
fn calls_are_tried_one_after_the_other() {
    let mut chain = TestChain::new();
    let environment = Environment::derive(&chain.input(), &chain.state).unwrap();
    let count = |chain: &TestChain| {
        let call = trying(person(0).address, Some(COUNTER), vec![]);
        simulate_step(&chain.state, &environment, call, false, NoOpInspector).unwrap()
    };
    let (first, diff) = count(&chain);
    assert_eq!(count(&chain).1, diff, "nothing happened yet");
    for change in diff.changes() {
        match &change.new {
            Some(new) => chain.state.0.insert(change.key, new.clone()),
            None => chain.state.0.remove(&change.key),
        };
    }
    let (second, after) = count(&chain);
    assert!(first.outcome.is_success() && second.outcome.is_success());
    let is_counter = |key: &StateKey| matches!(key, StateKey::Slot(COUNTER, _));
    let new =
        |diff: &StateDiff| diff.changes().iter().find(|change| is_counter(&change.key)).unwrap().new.clone();
    assert_ne!(new(&diff), new(&after), "it counted on");
}

#[test]
fn a_strict_call_must_be_valid_in_a_block() {
    let chain = TestChain::new();
    let environment = Environment::derive(&chain.input(), &chain.state).unwrap();
    let try_it =
        |call: Call, is_strict| simulate_step(&chain.state, &environment, call, is_strict, NoOpInspector);
    let good = Call {
        gas_price: environment.base_fee,
        nonce: Some(0),
        ..trying(person(0).address, Some(person(1).address), vec![])
    };
    assert!(try_it(good.clone(), true).is_ok());
    let cheap = Call { gas_price: GasPrice(environment.base_fee.0 - 1), ..good.clone() };
    let early = Call { nonce: Some(1), ..good.clone() };
    let poor = Call { from: Address::repeat_byte(0x77), ..good.clone() };
    let (cap, base_fee) = (cheap.gas_price, environment.base_fee);
    let below = TransactionError::FeeCapBelowBaseFee { cap, base_fee };
    assert_eq!(try_it(cheap.clone(), true).unwrap_err(), below.into());
    let ahead = TransactionError::NonceTooHigh { given: 1, account: 0 };
    assert_eq!(try_it(early.clone(), true).unwrap_err(), ahead.into());
    assert!(matches!(try_it(poor.clone(), true), Err(SimulateError::Refused { .. })));
    let max = environment.gas_limit.0;
    let large = |given| Call { gas_limit: Gas(given), ..good.clone() };
    assert!(try_it(large(max), true).is_ok());
    let above = TransactionError::GasLimitAboveBlock { given: max + 1, max };
    assert_eq!(try_it(large(max + 1), true).unwrap_err(), above.into());
    assert!(try_it(cheap, false).is_ok() && try_it(early, false).is_ok());
    assert!(try_it(poor, false).is_err(), "a price was named, and there is no money");
}

#[test]
fn access_lists_and_delegations_take_part() {
    let chain = TestChain::new();
    let environment = Environment::derive(&chain.input(), &chain.state).unwrap();
    let plain = trying(person(0).address, Some(COUNTER), vec![]);
    let listed = AccessList(vec![AccessListItem { address: person(5).address, storage_keys: vec![] }]);
    let with_list = Call { access_list: listed, ..plain.clone() };
    let gas = |call: Call| {
        simulate_step(&chain.state, &environment, call, false, NoOpInspector).unwrap().0.gas_used.0
    };
    assert_eq!(gas(with_list), gas(plain) + 2_400, "EIP-2930's price of an address");

    let delegating = Call {
        authorizations: vec![authorize(person(1), 0, COUNTER)],
        ..trying(person(0).address, Some(person(1).address), vec![])
    };
    let mut seen = Counter::default();
    let (_, diff) = simulate_step(&chain.state, &environment, delegating, false, &mut seen).unwrap();
    let is_counted = |key: &StateKey| matches!(key, StateKey::Slot(who, _) if *who == person(1).address);
    assert!(
        diff.changes().iter().any(|change| is_counted(&change.key)),
        "the delegate's code ran as person 1"
    );
}

#[test]
fn a_creation_is_tried_out_too() {
    let chain = TestChain::new();
    let result =
        simulate(&chain.state, &chain.input(), trying(person(0).address, None, deploy(&[0x60, 1]))).unwrap();
    assert_eq!(result.outcome, Outcome::Success);
    assert_eq!(result.output[..], [0x60, 1], "the code that would be there");
}

#[test]
fn an_inspector_sees_a_tried_call() {
    let chain = TestChain::new();
    let environment = Environment::derive(&chain.input(), &chain.state).unwrap();
    let mut counter = Counter::default();
    let call = trying(person(0).address, Some(FORWARDER), to(COUNTER, &[]));
    let result = simulate_with(&chain.state, &environment, call.clone(), &mut counter).unwrap();
    assert_eq!(counter.calls, 2);
    assert!(counter.steps > 10);
    assert_eq!(result, simulate(&chain.state, &chain.input(), call).unwrap());
}

/// The least gas limit with which a call succeeds, found by trying, suffices in a real block, and one less
/// does not. What was used is not enough: refunds and the 64th part that EIP-150 keeps back come on top.
#[test]
fn a_gas_limit_that_was_found_by_trying_works() {
    let calls: Vec<(&str, Option<Address>, u64, Bytes)> = vec![
        ("a transfer", Some(person(1).address), 5, Bytes::new()),
        ("calldata", Some(person(1).address), 0, vec![1; 500].into()),
        ("a counter", Some(COUNTER), 0, Bytes::new()),
        ("writing", Some(WRITER), 0, words(8, 100)),
        ("clearing", Some(CLEARER), 0, words(8, 0)),
        ("forwarding", Some(FORWARDER), 0, to(FORWARDER, &to(WRITER, &words(8, 100)))),
        ("a door", Some(PARAMETERS), 0, IParameters::ownerCall {}.abi_encode().into()),
        ("a creation", None, 0, deploy(&[0; 100])),
        ("a creation by a contract", Some(CREATOR), 9, deploy(&[0; 100])),
    ];
    for (name, target, value, input) in calls {
        let mut genesis = genesis();
        genesis.allocations.get_mut(&CLEARER).unwrap().storage =
            (1..=8).map(|slot| (U256::from(slot), U256::from(9))).collect();
        let mut chain = TestChain::from_genesis(&genesis);
        let attempt = |gas: u64| {
            let call = Call {
                from: person(0).address,
                to: target,
                value: U256::from(value),
                input: input.clone(),
                gas_limit: Gas(gas),
                ..Call::default()
            };
            simulate(&chain.state, &chain.input(), call)
        };
        // Both a refusal and a failure mean: more.
        let suffices = |gas: u64| {
            attempt(gas).is_ok_and(|result| result.outcome.is_success() && is_made(&result.output, target))
        };
        let (mut low, mut high) = (0, 1_000_000);
        assert!(suffices(high), "{name}");
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if suffices(middle) { high = middle } else { low = middle }
        }
        let estimated = attempt(high).unwrap().gas_used;
        let kind = target.map_or(TxKind::Create, TxKind::Call);
        let with_gas = |nonce, gas| sign(eip1559(nonce, kind, value, input.clone(), gas), person(0).secret);

        assert!(
            almanac_exec::check_static(&with_gas(0, low), &rules()).is_err() || {
                let body = vec![recovered(with_gas(0, low))];
                let output =
                    execute(&chain.state, &*chain.agenda, &chain.input(), &mut BlockBody::new(body)).unwrap();
                !output.receipts[1].outcome.is_success() || name == "a creation by a contract"
            },
            "{name}: {low} is too little"
        );
        let produced = chain.produce(vec![with_gas(0, high)]);
        assert!(produced.receipt(0).outcome.is_success(), "{name} with {high}");
        assert_eq!(produced.receipt(0).gas_used, estimated, "{name}: and uses what was said");
    }
}

/// The creating contract answers with zero where the creation inside it failed.
fn is_made(output: &[u8], target: Option<Address>) -> bool {
    target != Some(CREATOR) || output.iter().any(|byte| *byte != 0)
}
