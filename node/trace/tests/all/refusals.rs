//! Where there is no trace, and what is said instead.

use crate::support::*;
use alloy_primitives::TxKind;
use alloy_rpc_types_trace::{
    geth::{GethDebugTracingOptions, GethTrace},
    parity::TraceType,
};
use almanac_exec::{
    Call, Environment,
    environment::{read_held_until, read_parameters},
};
use almanac_index::IndexedBlock;
use almanac_primitives::{Gas, Outcome};
use almanac_trace::{
    CallTraces, GethTracer, Limits, OtterscanEntries, Replay, Replays, TraceError, trace_call,
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn tracer(options: Value) -> Result<GethTracer, TraceError> {
    GethTracer::new(serde_json::from_value::<GethDebugTracingOptions>(options).unwrap())
}

fn steps(trace: GethTrace) -> usize {
    trace.try_into_default_frame().unwrap().struct_logs.len()
}

#[test]
fn unknown_tracers_are_told_the_known_ones() {
    for name in ["tracer", "stateGasTracer", "{step: function() {}, result: function() { return 1 }}"] {
        let error = tracer(json!({ "tracer": name })).unwrap_err().to_string();
        for known in
            ["callTracer", "prestateTracer", "flatCallTracer", "4byteTracer", "muxTracer", "noopTracer"]
        {
            assert!(error.contains(known), "{error}");
            tracer(json!({ "tracer": known, "tracerConfig": {} })).unwrap();
        }
    }
    let long = "x".repeat(10_000);
    assert!(tracer(json!({ "tracer": long })).unwrap_err().to_string().len() < 300);
    tracer(json!({ "tracer": "" })).unwrap();
    let bad = tracer(json!({ "tracer": "callTracer", "tracerConfig": { "withLog": "maybe" } })).unwrap_err();
    assert!(matches!(&bad, TraceError::BadConfig { tracer, .. } if tracer == "callTracer"), "{bad}");
    let mux = tracer(json!({ "tracer": "muxTracer", "tracerConfig": { "jsTracer": null } })).unwrap_err();
    assert!(matches!(mux, TraceError::BadConfig { .. }), "{mux}");
}

#[test]
fn a_trace_that_holds_too_much_is_refused() {
    let chain = Chain::new();
    let block = chain.produce(vec![call(person(0), 0, BURNER, vec![], 100_000)], vec![]);
    let all = tracer(json!({ "disableStack": true })).unwrap();
    let count = steps(chain.one(&block, &all, 1));
    assert!(count > 20_000, "{count}");

    let limited = |bytes_max| chain.try_one(&block, &all, 1, Limits { bytes_max, ..Limits::BLOCK });
    // A step takes 256 bytes, the one call 512.
    let needed = 256 * count as u64 + 512;
    assert_eq!(steps(limited(needed).unwrap()), count);
    let error = limited(needed - 1).unwrap_err();
    assert!(matches!(error, TraceError::TooLarge { max_bytes } if max_bytes == needed - 1), "{error}");
    let limits = Limits { bytes_max: 100_000, ..Limits::BLOCK };
    let few = tracer(json!({ "disableStack": true, "limit": 100 })).unwrap();
    assert_eq!(steps(chain.try_one(&block, &few, 1, limits).unwrap()), 100, "what is not kept costs nothing");
    assert_eq!(chain.try_one(&block, &OtterscanEntries, 1, limits).unwrap().len(), 1);
}

/// Memory, stack, storage, calldata and what is returned: each can be made large cheaply.
#[test]
fn all_that_a_tracer_keeps_is_counted() {
    let chain = Chain::new();
    let identity = alloy_primitives::Address::with_last_byte(4);
    let large = vec![7; 50_000];
    let block = chain.produce(
        vec![
            call(person(0), 0, FORWARDER, to(identity, &large), 3_000_000),
            call(person(1), 0, WRITER, words(100, 1), 3_000_000),
        ],
        vec![],
    );
    let is_too_large = |options: Value, index, bytes_max| {
        let limits = Limits { bytes_max, ..Limits::BLOCK };
        let traced = chain.try_one(&block, &tracer(options).unwrap(), index, limits);
        matches!(traced.map(drop), Err(TraceError::TooLarge { .. }))
    };
    let plain = json!({ "disableStack": true, "disableStorage": true });
    // In and out, of the transaction and of the call that it makes.
    let data = 4 * 50_000 + 2 * 512 + 32;
    assert!(!is_too_large(json!({ "tracer": "callTracer" }), 1, data));
    assert!(is_too_large(json!({ "tracer": "callTracer" }), 1, data - 1), "calldata and output");
    assert!(!is_too_large(plain.clone(), 1, data + 256 * 40));
    let with_memory = json!({ "enableMemory": true, "disableStack": true, "disableStorage": true });
    assert!(is_too_large(with_memory.clone(), 1, data + 256 * 40 + 4 * 50_000), "memory");
    assert!(!is_too_large(with_memory, 1, data + 256 * 40 + 4 * 50_000 * 40));
    let writing = 256 * steps(chain.one(&block, &tracer(plain.clone()).unwrap(), 2)) as u64 + 512 + 64;
    assert!(is_too_large(plain.clone(), 2, writing - 1) && !is_too_large(plain, 2, writing));
    let storage = json!({ "disableStack": true });
    let slots = 96 * 100 * 101 / 2;
    assert!(is_too_large(storage.clone(), 2, writing + slots - 1), "every write shows all the slots so far");
    assert!(!is_too_large(storage, 2, writing + slots));
    let with_stack = json!({ "disableStorage": true });
    assert!(is_too_large(with_stack.clone(), 2, writing + 64), "stack");
    assert!(!is_too_large(with_stack, 2, 4 * writing));
}

/// Copying memory costs little gas; what is kept of it is bounded, in one transaction and over a block.
#[test]
fn a_cheap_flood_of_memory_is_refused() {
    let chain = Chain::new();
    // loop { mcopy(0, 0, 100_000) }
    let flood = [0x5b, 0x62, 0x01, 0x86, 0xa0, 0x5f, 0x5f, 0x5e, 0x5f, 0x56];
    let creation = sign(eip1559(0, TxKind::Create, 0, deploy(&flood), 200_000), person(0).secret);
    chain.produce(vec![creation], vec![]);
    let flooding = person(0).address.create(0);
    let replays = |types: &[TraceType]| Replays { types: types.iter().copied().collect() };
    let is_refused = |block: &IndexedBlock, tracer: &Replays, limits| {
        let traced = chain.try_one(block, tracer, block.receipts.len() - 1, limits).map(drop);
        matches!(traced, Err(TraceError::TooLarge { .. }))
    };

    let one = chain.produce(vec![call(person(0), 1, flooding, vec![], 10_000_000)], vec![]);
    assert!(is_refused(&one, &replays(&[TraceType::VmTrace]), Limits::BLOCK), "one transaction");
    assert!(!is_refused(&one, &replays(&[TraceType::Trace, TraceType::StateDiff]), Limits::BLOCK));
    let many: Vec<_> = (1..6).map(|n| call(person(n), 0, flooding, vec![], 100_000)).collect();
    let many = chain.produce(many, vec![]);
    let limits = Limits { bytes_max: 1 << 20, ..Limits::BLOCK };
    assert!(!is_refused(&many, &replays(&[TraceType::VmTrace]), limits), "each of them is small");
    let replay = Replay::new(&chain.index, &chain.agenda, CHAIN, &many).unwrap().unwrap();
    let all = replay.all(&replays(&[TraceType::VmTrace]), limits).map(drop);
    assert!(matches!(all, Err(TraceError::TooLarge { .. })), "together they are not");
    assert!(replay.all(&replays(&[TraceType::VmTrace]), Limits::BLOCK).is_ok());
}

#[test]
fn a_trace_that_takes_too_long_is_refused() {
    let chain = Chain::new();
    let block = chain.produce(vec![call(person(0), 0, BURNER, vec![], 25_000_000)], vec![]);
    let limits = Limits { time_max: Duration::from_millis(5), ..Limits::BLOCK };
    let begin = Instant::now();
    let error = chain.try_one(&block, &CallTraces, 1, limits).unwrap_err();
    assert!(matches!(error, TraceError::TooLong { max_ms: 5 }), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    chain.one(&block, &CallTraces, 1);

    // The same for a call.
    let state = chain.index.tip_state();
    let environment = Environment::of_header(
        &block.block.header,
        CHAIN,
        read_parameters(&state).unwrap(),
        read_held_until(&state).unwrap(),
    );
    let burn = |limits| {
        let call = Call {
            from: person(0).address,
            to: Some(BURNER),
            gas_limit: Gas(1_000_000_000),
            ..Call::default()
        };
        trace_call(&state, &environment, call, &CallTraces, limits)
    };
    assert!(matches!(burn(limits).unwrap_err(), TraceError::TooLong { max_ms: 5 }));
}

/// A block that was found before the chain went back is not run on what is there now.
#[test]
fn a_block_that_was_taken_back_has_no_trace() {
    let (chain, other) = (Chain::new(), Chain::new());
    let first = chain.produce(vec![transfer(person(0), 0, person(1).address, 1)], vec![]);
    let second = chain.produce(vec![transfer(person(0), 1, person(1).address, 1)], vec![]);
    other.produce(vec![transfer(person(0), 0, person(1).address, 2)], vec![]);
    let replay = |block| Replay::new(&other.index, &other.agenda, CHAIN, block).map(|found| found.is_some());
    let error = replay(&second).unwrap_err();
    assert!(matches!(error, TraceError::TakenBack { number: 2 }), "{error}");
    assert!(replay(&first).unwrap(), "its parent is still there");
}

/// A node that computes something else than it stored says so, rather than show what never happened.
#[test]
fn a_replay_that_differs_is_no_trace() {
    let transactions =
        || vec![transfer(person(0), 0, person(1).address, 1), call(person(1), 0, COUNTER, vec![], 90_000)];
    let honest = Chain::new();
    honest.one(&honest.produce(transactions(), vec![]), &CallTraces, 1);
    let gas = Chain::new();
    let block = gas.make(transactions(), vec![], |receipts| receipts[2].gas_used = Gas(1));
    let error = gas.try_one(&block, &CallTraces, 1, Limits::BLOCK).unwrap_err();
    assert!(matches!(error, TraceError::Differs { number: 1, index: 2 }), "{error}");
    let outcome = Chain::new();
    let block = outcome
        .make(transactions(), vec![], |receipts| receipts[1].outcome = Outcome::Reverted(vec![].into()));
    let error = outcome.try_one(&block, &CallTraces, 2, Limits::BLOCK).unwrap_err();
    assert!(matches!(error, TraceError::Differs { number: 1, index: 1 }), "{error}");
}

#[test]
fn blocks_without_their_state_or_transaction_are_refused() {
    let chain = Chain::with_depth(2);
    let blocks: Vec<_> = (0..5)
        .map(|nonce| chain.produce(vec![transfer(person(0), nonce, person(1).address, 1)], vec![]))
        .collect();
    let trace = |n: usize, index| chain.try_one(&blocks[n - 1], &CallTraces, index, Limits::BLOCK);
    assert_eq!(trace(5, 1).unwrap().len(), 1);
    assert_eq!(trace(4, 1).unwrap().len(), 1, "on the state after block 3, the oldest that is kept");
    let error = trace(3, 1).unwrap_err();
    assert!(matches!(error, TraceError::StateGone { number: 3, oldest: 4 }), "{error}");
    let error = trace(5, 2).unwrap_err();
    assert!(matches!(error, TraceError::NoSuchTransaction { number: 5, index: 2, count: 2 }), "{error}");
    let genesis = chain.index.block(0).unwrap().unwrap();
    assert!(Replay::new(&chain.index, &chain.agenda, CHAIN, &genesis).unwrap().is_none());
}
