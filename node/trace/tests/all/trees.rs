//! The shape of call trees, in the words of each family of tools.

use crate::support::*;
use alloy_primitives::{Address, TxKind, U256};
use alloy_rpc_types_trace::{
    geth::{CallConfig, CallFrame, GethDebugBuiltInTracerType, GethDebugTracingOptions, GethTrace},
    otterscan::OperationType,
    parity::{Action, LocalizedTransactionTrace},
};
use almanac_index::IndexedBlock;
use almanac_primitives::{Lane, UserTransaction};
use almanac_trace::{
    CallTraces, Creations, GethTracer, InternalOperations, OtterscanEntries, OtterscanEntry, RevertData,
};
use std::sync::Arc;

fn call_tracer() -> GethTracer {
    let options = GethDebugTracingOptions::new_tracer(GethDebugBuiltInTracerType::CallTracer);
    GethTracer::new(options.with_call_config(CallConfig::default().with_log())).unwrap()
}

fn frame(trace: GethTrace) -> CallFrame {
    trace.try_into_call_frame().unwrap()
}

/// One transaction alone in a block, and its index.
fn alone(transaction: UserTransaction) -> (Chain, Arc<IndexedBlock>) {
    let chain = Chain::new();
    let block = chain.produce(vec![transaction], vec![]);
    (chain, block)
}

fn with_value(to: TxKind, value: u64, input: impl Into<alloy_primitives::Bytes>) -> UserTransaction {
    sign(eip1559(0, to, value, input, 500_000), person(0).secret)
}

/// Everything in one tree: value goes to a forwarder, which delegates to what calls a counter.
#[test]
fn calls_within_calls() {
    let inner = to(DELEGATOR, &to(FORWARDER, &to(COUNTER, &[])));
    let (chain, block) = alone(with_value(TxKind::Call(FORWARDER), 7, inner.clone()));

    let root = frame(chain.one(&block, &call_tracer(), 1));

    assert_eq!((root.typ.as_str(), root.from, root.to), ("CALL", person(0).address, Some(FORWARDER)));
    assert_eq!((root.value, &root.input), (Some(U256::from(7)), &inner));
    assert_eq!(root.gas, U256::from(500_000), "the limit of the transaction");
    assert_eq!(root.gas_used, U256::from(block.receipts[1].gas_used.0), "and what its receipt says");
    let mut path = Vec::new();
    let mut next = &root;
    while let [child] = &next.calls[..] {
        path.push((child.typ.as_str(), child.from, child.to.unwrap(), child.value));
        assert!(child.gas_used <= child.gas && child.gas <= next.gas && child.error.is_none());
        next = child;
    }
    let seven = Some(U256::from(7));
    assert_eq!(
        path,
        [
            ("CALL", FORWARDER, DELEGATOR, seven),
            ("DELEGATECALL", DELEGATOR, FORWARDER, seven),
            ("CALL", DELEGATOR, COUNTER, seven),
        ]
    );

    let flat = chain.one(&block, &CallTraces, 1);
    assert_eq!(addresses(&flat), [vec![], vec![0], vec![0, 0], vec![0, 0, 0]]);
    assert!(flat.iter().zip([1, 1, 1, 0]).all(|(trace, count)| trace.trace.subtraces == count));
    assert_eq!(flat[0].transaction_hash, Some(block.receipts[1].transaction_hash));
    assert_eq!((flat[0].block_number, flat[0].block_hash), (Some(1), Some(block.hash)));
    assert_eq!(flat[0].transaction_position, Some(0), "the prologue is not shown, so this is the first");

    let entries = chain.one(&block, &OtterscanEntries, 1);
    let kinds: Vec<_> = entries.iter().map(|entry| (entry.kind.as_str(), entry.depth, entry.value)).collect();
    let expected = [("CALL", 0, seven), ("CALL", 1, seven), ("DELEGATECALL", 2, None), ("CALL", 3, seven)];
    assert_eq!(kinds, expected);
    let operations = chain.one(&block, &InternalOperations, 1);
    assert_eq!(operations.len(), 2, "delegating moves no money");
    assert!(operations.iter().all(|operation| operation.r#type == OperationType::OpTransfer));
    assert_eq!((operations[1].from, operations[1].to), (DELEGATOR, COUNTER));
}

fn addresses(traces: &[LocalizedTransactionTrace]) -> Vec<Vec<usize>> {
    traces.iter().map(|trace| trace.trace.trace_address.clone()).collect()
}

#[test]
fn what_reverts_is_shown_with_its_reason() {
    let said: Vec<u8> = (0..=255).cycle().take(1_000).collect();
    let identity = Address::with_last_byte(4);
    let (chain, block) = alone(call(person(0), 0, FORWARD_AND_REVERT, to(identity, &said), 500_000));

    let root = frame(chain.one(&block, &call_tracer(), 1));

    assert_eq!(root.error.as_deref(), Some("execution reverted"));
    assert_eq!(root.output, Some(said.clone().into()));
    assert_eq!((root.calls.len(), root.calls[0].error.as_ref()), (1, None), "the call inside was fine");
    assert_eq!(chain.one(&block, &RevertData, 1)[..], said[..], "a receipt would have kept the first bytes");
    let flat = chain.one(&block, &CallTraces, 1);
    assert_eq!(flat[0].trace.error.as_deref(), Some("Reverted"));

    let (chain, block) = alone(call(person(0), 0, COUNTER, vec![], 500_000));
    assert!(chain.one(&block, &RevertData, 1).is_empty());
}

/// What a failed call logged is undone, so it is not among the logs.
#[test]
fn logs_are_those_of_the_receipt() {
    let chain = Chain::new();
    let block = chain.produce(
        vec![
            call(person(0), 0, FORWARDER, to(LOGGER, &[1, 2, 3]), 500_000),
            call(person(1), 0, FORWARDER, to(REVERTER, &[]), 500_000),
            call(person(2), 0, ECHO, to(REVERTER, &[]), 500_000),
        ],
        vec![],
    );
    for index in 1..4 {
        let mut logged = Vec::new();
        collect_logs(&frame(chain.one(&block, &call_tracer(), index)), &mut logged);
        let receipt = &block.receipts[index];
        let expected: Vec<_> = receipt.logs.iter().map(|log| (log.address, log.data.data.clone())).collect();
        assert_eq!(logged, expected, "{index}");
    }
    let counts: Vec<_> = block.receipts.iter().map(|receipt| receipt.logs.len()).collect();
    assert_eq!(counts, [0, 1, 0, 1]);
}

fn collect_logs(frame: &CallFrame, out: &mut Vec<(Address, alloy_primitives::Bytes)>) {
    out.extend(frame.logs.iter().map(|log| (log.address.unwrap(), log.data.clone().unwrap())));
    frame.calls.iter().for_each(|call| collect_logs(call, out));
}

#[test]
fn contracts_come_and_go() {
    let chain = Chain::new();
    let heir = person(5).address;
    let block = chain.produce(
        vec![
            sign(eip1559(0, TxKind::Create, 3, deploy(&[0x00]), 200_000), person(0).secret),
            sign(eip1559(0, TxKind::Call(CREATOR), 4, deploy(&[0x00]), 200_000), person(1).secret),
            sign(eip1559(0, TxKind::Call(CREATOR), 5, born_to_die(heir), 200_000), person(2).secret),
            call(person(3), 0, FORWARD_AND_REVERT, to(CREATOR, &deploy(&[0x00])), 300_000),
        ],
        vec![],
    );
    let by_person = person(0).address.create(0);
    let (first, second) = (CREATOR.create(1), CREATOR.create(2));

    assert_eq!(block.receipts[1].contract_address, Some(by_person));
    let root = frame(chain.one(&block, &call_tracer(), 1));
    assert_eq!((root.typ.as_str(), root.to), ("CREATE", Some(by_person)));
    let root = frame(chain.one(&block, &call_tracer(), 2));
    assert_eq!((root.calls[0].typ.as_str(), root.calls[0].to), ("CREATE", Some(first)));
    let root = frame(chain.one(&block, &call_tracer(), 3));
    let destroyed = &root.calls[0].calls[0];
    assert_eq!((destroyed.typ.as_str(), destroyed.from, destroyed.to), ("SELFDESTRUCT", second, Some(heir)));

    let created: Vec<_> = (1..5).map(|index| chain.one(&block, &Creations, index)).collect();
    assert_eq!(created[0], [(by_person, person(0).address)]);
    assert_eq!(created[1], [(first, CREATOR)]);
    assert_eq!(created[2], [], "it did not stay");
    assert_eq!(created[3], [], "it was undone");

    let operations = |index| chain.one(&block, &InternalOperations, index);
    assert!(operations(1).is_empty(), "the transaction itself is not internal");
    let kinds: Vec<_> = operations(3).iter().map(|operation| (operation.r#type, operation.value)).collect();
    let five = U256::from(5);
    assert_eq!(kinds, [(OperationType::OpCreate, five), (OperationType::OpSelfDestruct, five)]);
    let entries = chain.one(&block, &OtterscanEntries, 3);
    let shape: Vec<_> =
        entries.iter().map(|OtterscanEntry { kind, depth, .. }| (kind.as_str(), *depth)).collect();
    assert_eq!(shape, [("CALL", 0), ("CREATE", 1), ("SELFDESTRUCT", 2)]);
    let flat = chain.one(&block, &CallTraces, 3);
    assert!(matches!(flat[2].trace.action, Action::Selfdestruct(_)));
    assert_eq!(addresses(&flat), [vec![], vec![0], vec![0, 0]]);
}

/// Runs and the prologue have receipts of their own, and so traces.
#[test]
fn what_nobody_signed_is_traced_too() {
    let chain = Chain::new();
    let block = chain.produce(
        vec![call(person(0), 0, COUNTER, vec![], 100_000)],
        vec![
            run(1, Lane::Reserved, FORWARDER, to(COUNTER, &[]), 200_000),
            run(2, Lane::Cron, REVERTER, vec![], 100_000),
            run(3, Lane::Spare, LOGGER, vec![9], 100_000),
        ],
    );
    let frames: Vec<_> = chain.all(&block, &call_tracer()).into_iter().map(frame).collect();

    assert_eq!(frames.len(), 5);
    for (frame, receipt) in frames.iter().zip(&block.receipts) {
        assert_eq!(frame.gas_used, U256::from(receipt.gas_used.0), "{frame:?}");
        assert_eq!(frame.error.is_none(), receipt.outcome.is_success(), "{frame:?}");
    }
    let prologue = &frames[0];
    assert_eq!((prologue.from, prologue.to, prologue.gas), (Address::ZERO, Some(Address::ZERO), U256::ZERO));
    assert_eq!((frames[1].from, frames[1].gas), (person(9).address, U256::from(200_000)));
    assert_eq!(frames[1].calls[0].to, Some(COUNTER));
    assert_eq!(frames[2].error.as_deref(), Some("execution reverted"));
    assert_eq!(frames[4].logs.len(), 1);
    let flat = chain.all(&block, &CallTraces);
    let counts: Vec<_> = flat.iter().map(Vec::len).collect();
    assert_eq!(counts, [1, 2, 1, 1, 1]);
    let positions: Vec<_> = flat.iter().map(|traces| traces[0].transaction_position).collect();
    assert_eq!(positions, [Some(0), Some(0), Some(1), Some(2), Some(3)], "as blocks show them");
}

/// A call to a system contract is native, and in the trace all the same.
#[test]
fn doors_are_in_every_tree() {
    let parameters = almanac_primitives::addresses::PARAMETERS;
    let (chain, block) = alone(call(person(0), 0, ECHO, to(parameters, &[1, 2, 3, 4]), 200_000));
    assert_eq!(frame(chain.one(&block, &call_tracer(), 1)).calls[0].to, Some(parameters));
    assert_eq!(chain.one(&block, &CallTraces, 1).len(), 2);
    assert_eq!(chain.one(&block, &OtterscanEntries, 1)[1].to, parameters);
}
