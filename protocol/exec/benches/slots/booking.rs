//! Schedule, cancel and estimate beside what is booked, against a chain with nothing booked.

use crate::{
    booked::{Booking, book_all},
    stopwatch::{Samples, time},
    workload::{Message, Person, RULES, WarmState, Workload, persons, workload},
};
use alloy_primitives::{Address, Bytes, U256};
use alloy_sol_types::SolCall;
use almanac_exec::{BlockBody, BlockInput, Call, execute, recover_all, simulate};
use almanac_primitives::{Gas, Outcome, RecoveredTransaction, addresses::CALLBACKS};
use almanac_schedule::{CalendarAgenda, callback::Priority};
use std::time::Duration;

alloy_sol_types::sol!("../../contracts/ICallbackScheduler.sol");

const ROUNDS: usize = 21;
const WARM_UP_ROUNDS: usize = 2;
/// Calls of one kind in a round: a block of transactions, or as many simulated calls.
const CALLS: u64 = 200;
const DAY_S: u64 = 24 * 60 * 60;
/// Where nothing is booked but what is to be cancelled: behind the day that may be full.
const BEHIND_S: u64 = DAY_S + 1_000;
/// Seconds at the end of the day that stay free, so that a search through all of it finds room.
const FREE_S: u64 = 300;

/// A chain to book on.
struct Scene {
    name: &'static str,
    state: WarmState,
}

/// What is measured.
#[derive(Clone, Copy)]
enum Operation {
    ScheduleHigh,
    ScheduleMedium,
    Cancel,
    EstimateHigh,
    EstimateMedium,
}

const OPERATIONS: [(Operation, &str); 5] = [
    (Operation::ScheduleHigh, "schedule High, a second behind the day"),
    (Operation::ScheduleMedium, "schedule Medium, the next second with room"),
    (Operation::Cancel, "cancel"),
    (Operation::EstimateHigh, "estimate High"),
    (Operation::EstimateMedium, "estimate Medium"),
];

pub(crate) fn measure() {
    let people = persons(CALLS);
    let base = workload("booking", &people, Vec::new(), Default::default());
    let now = base.input.timestamp.seconds();
    let scenes = [
        Scene::new("nothing booked", &base, &people, Vec::new()),
        Scene::new("100,000 booked", &base, &people, spread(now, 100_000)),
        Scene::new("1,000,000 booked", &base, &people, spread(now, 1_000_000)),
        Scene::new("a full day booked", &base, &people, full_day(now)),
    ];
    println!(
        "Booking: {ROUNDS} rounds of {CALLS} calls each, taking turns. schedule and cancel are transactions of"
    );
    println!(
        "a block, estimate is simulated. 1,000,000 are spread over a day; a full day has room for Medium only in"
    );
    println!(
        "its last {FREE_S} s. ×: against the chain with nothing booked, median of the rounds' ratios and ratio of"
    );
    println!("the fastest rounds, which a busy machine disturbs least; goal 1.5.");
    for (operation, name) in OPERATIONS {
        let calls = Calls::new(operation, &people, now);
        let mut samples: [Samples; 4] = Default::default();
        for round in 0..WARM_UP_ROUNDS + ROUNDS {
            for turn in 0..scenes.len() {
                let at = (round + turn) % scenes.len();
                let took = calls.run(&scenes[at].state, &base.input);
                samples[at].push_if(round >= WARM_UP_ROUNDS, took);
            }
        }
        println!("  {name}");
        for (scene, sample) in scenes.iter().zip(&samples) {
            let rate = sample.per_second(CALLS as usize);
            let (ratio, best) = (samples[0].speed_against(sample), samples[0].best_against(sample));
            println!("    {:<18} {sample}   {rate:9.0}/s   {ratio:5.2} × {best:5.2} ×", scene.name);
        }
    }
    println!();
}

impl Scene {
    /// Books `bookings` and, on every chain with the same ids, what is to be cancelled.
    fn new(name: &'static str, base: &Workload, people: &[Person], bookings: Vec<Booking>) -> Self {
        let second = base.input.timestamp.seconds() + BEHIND_S;
        let (priority, effort) = (Priority::High, 100);
        let own = people.iter().map(|person| person.address);
        let own = own.map(|owner| Booking { owner, handler: owner, second, priority, effort });
        let all: Vec<_> = own.chain(bookings).collect();
        let mut state = base.state.clone();
        let ((), took) = time(|| book_all(&mut state, &all));
        println!("{name}: written in {:.1} s", took.as_secs_f64());
        Self { name, state }
    }
}

/// So many bookings over a day, neighbours in time far from each other in order of booking.
fn spread(now: u64, count: u64) -> Vec<Booking> {
    const STRIDE: u64 = 7_919;
    let (owner, handler) = (Address::repeat_byte(0x11), Address::repeat_byte(0x22));
    let booking = |n: u64| {
        let priority = if n.is_multiple_of(3) { Priority::Medium } else { Priority::High };
        Booking { owner, handler, second: now + 1 + n.wrapping_mul(STRIDE) % DAY_S, priority, effort: 50 }
    };
    (0..count).map(booking).collect()
}

/// All effort of every second of a day but the last few.
fn full_day(now: u64) -> Vec<Booking> {
    const EACH: [(Priority, u64); 5] = [
        (Priority::High, 7_500),
        (Priority::High, 7_500),
        (Priority::High, 7_500),
        (Priority::High, 7_500),
        (Priority::Medium, 5_000),
    ];
    let (owner, handler) = (Address::repeat_byte(0x11), Address::repeat_byte(0x22));
    let of_second =
        |second: u64| EACH.map(|(priority, effort)| Booking { owner, handler, second, priority, effort });
    (now + 1..=now + DAY_S - FREE_S).flat_map(of_second).collect()
}

/// The calls of a round.
enum Calls {
    Block(Vec<RecoveredTransaction>),
    Simulated(Vec<Bytes>),
}

impl Calls {
    fn new(operation: Operation, people: &[Person], now: u64) -> Self {
        use ICallbackScheduler::Priority::{High, Medium};
        let input = |n: u64, person: &Person| -> Bytes {
            let (handler, data, effort) = (person.address, Bytes::new(), 100);
            let behind = now + BEHIND_S + 10 + n;
            let schedule = |timestamp, priority| {
                let data = data.clone();
                ICallbackScheduler::scheduleCall {
                    handler,
                    data,
                    timestamp,
                    priority,
                    executionEffort: effort,
                }
                .abi_encode()
            };
            let estimate = |timestamp, priority| {
                let data = data.clone();
                ICallbackScheduler::estimateCall { data, timestamp, priority, executionEffort: effort }
                    .abi_encode()
            };
            match operation {
                Operation::ScheduleHigh => schedule(behind, High),
                Operation::ScheduleMedium => schedule(0, Medium),
                Operation::Cancel => ICallbackScheduler::cancelCall { id: n + 1 }.abi_encode(),
                Operation::EstimateHigh => estimate(behind, High),
                Operation::EstimateMedium => estimate(0, Medium),
            }
            .into()
        };
        let inputs = (0..).zip(people).map(|(n, person)| input(n, person));
        let value = match operation {
            Operation::ScheduleHigh | Operation::ScheduleMedium => 10_000_000_000_000_000,
            Operation::Cancel => 0,
            Operation::EstimateHigh | Operation::EstimateMedium => return Self::Simulated(inputs.collect()),
        };
        let messages = inputs.map(|input| Message { to: CALLBACKS, value, input, gas_limit: 500_000 });
        let signed = workload("orders", people, messages.collect(), Default::default()).transactions;
        Self::Block(recover_all(&signed, &RULES).expect("all are signed"))
    }

    fn run(&self, state: &WarmState, input: &BlockInput) -> Duration {
        match self {
            Self::Block(transactions) => {
                let mut body = BlockBody::new(transactions.clone());
                let (output, took) = time(|| execute(state, &CalendarAgenda, input, &mut body));
                let receipts = output.expect("a sound block").receipts;
                let users = receipts.iter().filter(|receipt| receipt.transaction_type < 0x70);
                let passed = users.inspect(|user| assert_eq!(user.outcome, Outcome::Success)).count();
                assert_eq!(passed, transactions.len());
                took
            }
            Self::Simulated(inputs) => {
                let (results, took) =
                    time(|| inputs.iter().map(|data| ask(state, input, data)).collect::<Vec<_>>());
                for answer in results {
                    let answer =
                        ICallbackScheduler::estimateCall::abi_decode_returns(&answer).expect("an estimate");
                    assert!(answer.reason.is_empty() && answer.fee > U256::ZERO, "it would be booked");
                }
                took
            }
        }
    }
}

fn ask(state: &WarmState, input: &BlockInput, data: &Bytes) -> Bytes {
    let call =
        Call { to: Some(CALLBACKS), input: data.clone(), gas_limit: Gas(1_000_000), ..Call::default() };
    simulate(state, input, call).expect("a sound call").output
}
