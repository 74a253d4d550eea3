//! Every tracer on every transaction of random histories: none fails, and they agree on what can be compared.

use crate::support::*;
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, map::HashSet};
use alloy_rpc_types_trace::{
    geth::{CallFrame, GethTrace},
    parity::TraceType,
};
use almanac_index::IndexedBlock;
use almanac_primitives::{Lane, RunTransaction, UserTransaction, addresses::LEDGER};
use almanac_trace::{
    CallTraces, Creations, GethTracer, InternalOperations, OtterscanEntries, Replays, RevertData,
};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::json;

#[derive(Clone, Debug)]
struct Action {
    from: u64,
    is_creation: bool,
    target: Address,
    input: Bytes,
    value: u64,
    gas: u64,
}

fn any_target() -> impl Strategy<Value = Address> {
    let mut targets: Vec<_> = all().into_iter().map(|(address, _)| address).collect();
    targets.extend([person(1).address, Address::with_last_byte(2), Address::with_last_byte(0x55)]);
    targets.push(almanac_primitives::addresses::PARAMETERS);
    select(targets)
}

fn any_input() -> impl Strategy<Value = Bytes> {
    let leaf = prop_oneof![
        Just(Bytes::new()),
        vec(any::<u8>(), 0..70).prop_map(Bytes::from),
        (0..6u64, 0..9u64).prop_map(|(count, start)| words(count, start)),
        Just(deploy(&[0x60, 1, 0x00])),
        Just(born_to_die(person(2).address)),
        Just(born_to_burn()),
    ];
    leaf.prop_recursive(4, 8, 1, |inner| (any_target(), inner).prop_map(|(target, inner)| to(target, &inner)))
}

fn any_action() -> impl Strategy<Value = Action> {
    let gas = select(vec![22_000, 60_000, 150_000, 250_000]);
    (0..6u64, prop::bool::weighted(0.15), any_target(), any_input(), 0..3u64, gas).prop_map(
        |(from, is_creation, target, input, value, gas)| Action {
            from,
            is_creation,
            target,
            input,
            value,
            gas,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_tracer_fails(blocks in vec((vec(any_action(), 0..8), vec(any_action(), 0..3)), 1..4)) {
        let chain = Chain::new();
        for (number, (actions, runs)) in blocks.iter().enumerate() {
            let mut nonces = [0; 6].map(|_| 0u64);
            for (from, nonce) in nonces.iter_mut().enumerate() {
                let account = chain.account(chain.index.height(), person(from as u64).address);
                *nonce = account.map_or(0, |account| account.nonce);
            }
            let signed = actions.iter().map(|action| {
                let nonce = &mut nonces[action.from as usize];
                *nonce += 1;
                transaction(action, *nonce - 1)
            });
            let signed = signed.collect();
            let runs = runs.iter().enumerate().map(|(n, action)| a_run(action, (number * 10 + n) as u64)).collect();
            let block = chain.produce_what_fits(signed, runs);
            check_block(&chain, &block);
        }
    }
}

fn transaction(action: &Action, nonce: u64) -> UserTransaction {
    let to = if action.is_creation { TxKind::Create } else { TxKind::Call(action.target) };
    sign(eip1559(nonce, to, action.value, action.input.clone(), action.gas), person(action.from).secret)
}

fn a_run(action: &Action, id: u64) -> RunTransaction {
    let lane = [Lane::Reserved, Lane::Cron, Lane::Spare][(id % 3) as usize];
    run(id, lane, action.target, action.input.clone(), action.gas + 30_000)
}

fn check_block(chain: &Chain, block: &IndexedBlock) {
    let geth = |options| GethTracer::new(serde_json::from_value(options).unwrap()).unwrap();
    let frames =
        chain.all(block, &geth(json!({ "tracer": "callTracer", "tracerConfig": { "withLog": true } })));
    let flat = chain.all(block, &CallTraces);
    let entries = chain.all(block, &OtterscanEntries);
    let logs = chain.all(block, &geth(json!({ "enableMemory": true, "enableReturnData": true })));
    let reverts = chain.all(block, &RevertData);
    for index in 0..block.receipts.len() {
        let (receipt, trace) = (&block.receipts[index], &frames[index]);
        let GethTrace::CallTracer(root) = trace else { panic!("{trace:?}") };
        assert_eq!(root.gas_used, U256::from(receipt.gas_used.0));
        assert_eq!(root.error.is_none(), receipt.outcome.is_success());
        let (mut calls, mut logged) = (0, 0);
        count(root, &mut calls, &mut logged);
        // Of a run, its door tells after the call, and the ledger of what returned at its end.
        let is_refunded = receipt.logs.last().is_some_and(|log| log.address == LEDGER);
        let told = usize::from(receipt.schedule_ref.is_some()) + usize::from(is_refunded);
        assert_eq!(logged + told, receipt.logs.len());
        assert_eq!(flat[index].len(), calls, "{flat:?}");
        assert_eq!(entries[index].len(), calls);
        let GethTrace::Default(steps) = &logs[index] else { panic!("{:?}", logs[index]) };
        assert_eq!((steps.gas, steps.failed), (receipt.gas_used.0, !receipt.outcome.is_success()));
        assert!(receipt.outcome.is_success() || !steps.struct_logs.is_empty() || calls == 1);
        assert!(reverts[index].is_empty() || !receipt.outcome.is_success());
    }
    let config = json!({ "callTracer": {}, "prestateTracer": { "diffMode": true }, "4byteTracer": null });
    chain.all(block, &geth(json!({ "tracer": "muxTracer", "tracerConfig": config })));
    for tracer in ["prestateTracer", "flatCallTracer", "4byteTracer", "noopTracer"] {
        let trace = geth(json!({ "tracer": tracer }));
        let all = chain.all(block, &trace);
        for (index, expected) in all.iter().enumerate() {
            assert_eq!(chain.one(block, &trace, index), *expected, "alone as among all: {tracer}");
        }
    }
    let types = HashSet::from_iter([TraceType::Trace, TraceType::VmTrace, TraceType::StateDiff]);
    let replays = chain.all(block, &Replays { types });
    assert!(replays.iter().zip(&flat).all(|(replay, flat)| replay.trace.len() == flat.len()));
    chain.all(block, &InternalOperations);
    let height = block.number();
    for (address, _) in chain.all(block, &Creations).into_iter().flatten() {
        let was = chain.account(height - 1, address).is_some_and(|account| account.code_hash != B256::ZERO);
        assert!(chain.account(height, address).is_some() && !was, "{address} is new");
    }
}

fn count(frame: &CallFrame, calls: &mut usize, logs: &mut usize) {
    *calls += 1;
    *logs += frame.logs.len();
    frame.calls.iter().for_each(|call| count(call, calls, logs));
}
