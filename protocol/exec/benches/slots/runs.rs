//! 1,000 callbacks of one block, each isolated, against the same calls by transactions and in one loop.

use crate::{
    booked::{Booking, book_all, handler_input},
    stopwatch::{Samples, time},
    workload::{CONTRACT, Message, Person, RULES, WarmState, Workload, persons, workload},
};
use alloy_primitives::{Address, Bytes, U256, address, hex, keccak256};
use almanac_exec::{BlockBody, BlockInput, execute, recover_all};
use almanac_primitives::{
    Account, Outcome, RecoveredTransaction, StateKey, genesis::Allocation, run::RUN_TYPE,
};
use almanac_schedule::{CalendarAgenda, callback::Priority};
use std::time::Duration;

const ROUNDS: usize = 31;
const WARM_UP_ROUNDS: usize = 3;
const RUNS: u64 = 1_000;
/// All effort of a second, shared by the runs.
const EFFORT: u64 = 35;

/// All effort of a second in as few callbacks as it takes.
const FULL_SECOND: [(Priority, u64); 5] = [
    (Priority::High, 7_500),
    (Priority::High, 7_500),
    (Priority::High, 7_500),
    (Priority::High, 7_500),
    (Priority::Medium, 5_000),
];
const FULL_SECOND_ROUNDS: usize = 5;

/// The precompiles that take longest for their gas (`dearest_precompile` in `exec/tests/all/precompiles.rs`).
const PRECOMPILES: [(&str, u16, &str); 3] = [
    ("point evaluation", 0x0a, "cubic at the last scalar"),
    ("ecAdd", 0x06, "random 2"),
    ("P256VERIFY", 0x100, "signature 6"),
];

/// Calls the handler 1,000 times with the calldata, each time with another id.
const LOOP: Address = address!("0x00000000000000000000000000000000000c0de9");

/// What a handler does.
const HANDLERS: [(&str, &[u8]); 3] = [
    // sstore(0, sload(0) + 1)
    ("counts in one slot", &hex!("5f54 6001 01 5f 55 00")),
    // sstore(id, 1), and the same
    ("writes a new slot and counts", &hex!("6001 6004 35 55 5f54 6001 01 5f 55 00")),
    // while gas > 2,000 {}
    ("computes for what it has paid", &hex!("5b 5a 6107d0 10 5f 57 00")),
];

pub(crate) fn measure() {
    println!(
        "Runs: blocks with {RUNS} calls of a handler, {ROUNDS} rounds, taking turns; less an empty block."
    );
    for (name, code) in HANDLERS {
        compare(name, code);
    }
    for (name, address, vector) in PRECOMPILES {
        full_second(name, address, vector);
    }
}

/// A second in which all effort is booked, of a precompile: what one validator does for it.
fn full_second(name: &str, address: u16, vector: &str) {
    const GAS: u64 = 73_500_000;
    let base = workload("full second", &[], Vec::new(), caller(address, vector));
    let (second, owner) = (base.input.timestamp.seconds(), Address::repeat_byte(0x11));
    let of = |(priority, effort)| Booking { owner, handler: CONTRACT, second, priority, effort };
    let mut state = base.state.clone();
    book_all(&mut state, &FULL_SECOND.map(of));
    let mut samples = Samples::default();
    for _ in 0..FULL_SECOND_ROUNDS {
        let mut body = BlockBody::new(Vec::new());
        let (output, took) = time(|| execute(&state, &CalendarAgenda, &base.input, &mut body));
        let output = output.expect("a sound block");
        let runs = output.receipts.iter().filter(|receipt| receipt.transaction_type == RUN_TYPE);
        assert_eq!(runs.map(|run| run.gas_used.0).sum::<u64>(), GAS, "no run leaves gas");
        samples.push_if(true, took);
    }
    let ns_per_gas = samples.median().as_nanos() as f64 / GAS as f64;
    println!("  a full second of {name:<17} {samples}   {ns_per_gas:5.1} ns per gas");
}

/// Calls a precompile with the input of a vector until no gas is left: CODECOPY of the input behind the code, then
/// STATICCALL for ever.
fn caller(address: u16, name: &str) -> Allocation {
    let file: serde_json::Value =
        serde_json::from_str(include_str!("../../../../specs/vectors/precompiles.json")).expect("JSON");
    let place = format!("{address:#x}");
    let is_it = |vector: &&serde_json::Value| vector["address"] == place && vector["name"] == name;
    let vector = file["vectors"].as_array().and_then(|all| all.iter().find(is_it)).expect("the vector");
    let input = hex::decode(vector["input"].as_str().expect("hex")).expect("hex");
    let length = u8::try_from(input.len()).expect("a short input");
    let mut code = hex!("6000 6015 5f 39 5b 5f 5f 6000 5f 610000 5a fa 50 6006 56");
    (code[1], code[10]) = (length, length);
    code[13..15].copy_from_slice(&address.to_be_bytes());
    Allocation { code: [&code[..], &input].concat().into(), ..Default::default() }
}

fn compare(name: &str, code: &'static [u8]) {
    let people = persons(RUNS);
    let base = plain_calls(&people, code);
    let (empty, by_loop) = (Vec::new(), vec![loop_call(&people[..1])]);
    let mut booked = base.state.clone();
    book_all(&mut booked, &bookings(base.input.timestamp.seconds()));
    let mut plain = base.state.clone();
    plain.put(contract(LOOP, loop_code()));
    let blocks = [
        (&plain, &empty, 0),
        (&booked, &empty, RUNS),
        (&plain, &base.recovered, RUNS),
        (&plain, &by_loop, 1),
    ];
    let mut samples: [Samples; 4] = Default::default();
    for round in 0..WARM_UP_ROUNDS + ROUNDS {
        for turn in 0..blocks.len() {
            let at = (round + turn) % blocks.len();
            let (state, transactions, calls) = blocks[at];
            let took = run(state, &base.input, transactions, calls);
            samples[at].push_if(round >= WARM_UP_ROUNDS, took);
        }
    }
    let [nothing, callbacks, transactions, calls] = &samples;
    let each = |sample: &Samples| {
        (sample.median().saturating_sub(nothing.median())).as_secs_f64() * 1e6 / RUNS as f64
    };
    let callback = each(callbacks);
    println!("  a handler that {name}");
    println!("    empty block                {nothing}");
    println!("    callbacks                  {callbacks}   {callback:6.2} µs each");
    for (what, sample) in [("transactions, recovered", transactions), ("calls of one transaction", calls)] {
        let (one, ratio) = (each(sample), callback / each(sample));
        println!("    {what:<26} {sample}   {one:6.2} µs each; a callback is {ratio:5.2} ×");
    }
}

/// The same calls by transactions of people.
fn plain_calls(people: &[Person], code: &'static [u8]) -> Workload {
    let message = |id| Message { to: CONTRACT, value: 0, input: handler_input(id), gas_limit: 73_500 };
    let handler = Allocation { code: Bytes::from_static(code), ..Default::default() };
    workload("plain calls", people, (1..=RUNS).map(message).collect(), handler)
}

/// The same calls in a loop of one transaction.
fn loop_call(people: &[Person]) -> RecoveredTransaction {
    let message = Message { to: LOOP, value: 0, input: handler_input(0), gas_limit: 100_000_000 };
    let signed = workload("loop", people, vec![message], Allocation::default()).transactions;
    recover_all(&signed, &RULES).expect("signed").remove(0)
}

fn bookings(second: u64) -> Vec<Booking> {
    // High's part has room for 857 of them, Medium's for the rest.
    let high = 30_000 / EFFORT;
    let priority = |n: u64| if n < high { Priority::High } else { Priority::Medium };
    let owner = Address::repeat_byte(0x11);
    let booking = |n| Booking { owner, handler: CONTRACT, second, priority: priority(n), effort: EFFORT };
    (0..RUNS).map(booking).collect()
}

/// calldatacopy(0, 0, calldatasize); for n from 1,000 to 1: mstore(4, n), call(51,400, handler, 0, 0, calldatasize, 0, 0).
/// The gas is what a run has left after its intrinsic gas.
fn loop_code() -> Bytes {
    let mut code = hex!("36 5f 5f 37 6103e8 5b 80 6004 52 5f 5f 36 5f 5f 73").to_vec();
    code.extend(CONTRACT);
    code.extend(hex!("61c8c8 f1 50 6001 90 03 80 6007 57 00"));
    code.into()
}

fn contract(at: Address, code: Bytes) -> [(StateKey, Bytes); 2] {
    let code_hash = keccak256(&code);
    let account = Account { nonce: 1, balance: U256::ZERO, code_hash, is_keyed: false };
    [(StateKey::Account(at), account.encode()), (StateKey::Code(code_hash), code)]
}

/// Executes a block with so many runs or transactions, all of which succeed.
fn run(
    state: &WarmState,
    input: &BlockInput,
    transactions: &[RecoveredTransaction],
    expected: u64,
) -> Duration {
    let mut body = BlockBody::new(transactions.to_vec());
    let (output, took) = time(|| execute(state, &CalendarAgenda, input, &mut body));
    let output = output.expect("a sound block");
    let is_counted = |kind: u8| kind == RUN_TYPE || kind < 0x70;
    let counted = output.receipts.iter().filter(|receipt| is_counted(receipt.transaction_type));
    let passed = counted.inspect(|receipt| assert_eq!(receipt.outcome, Outcome::Success)).count();
    assert_eq!(passed as u64, expected);
    took
}
