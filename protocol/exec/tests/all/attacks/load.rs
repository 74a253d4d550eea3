//! Attacks by number and size: floods, giants, storms after a halt, jobs that make jobs.

use crate::attacks::{
    FLOODER, LEAST_RUN_GAS, NOBODY, cheap_order, fill, flooded, flooder_data, governor, largest_chain,
    set_parameter, shrink, wide_chain,
};
use crate::support::{contracts::*, cron::*, *};
use alloy_primitives::{Address, Bytes, U256};
use almanac_exec::{Candidates, execute};
use almanac_primitives::{
    GasPrice, Genesis, Lane, ScheduleId, StateKey, StateRead, StateReadError, TimestampMs, Wei,
    addresses::{CRON_REGISTRY, LEDGER},
    params::{
        BASE_FEE_FLOOR_WEI, BLOCK_GAS_MAX, CRON_BLOCK_EXHAUSTIONS_MAX, CRON_BLOCK_GAS_DEFAULT,
        CRON_BLOCK_GAS_MAX, CRON_RUN_GAS_LARGEST, LANE_BLOCK_LOOKS_MAX, LANE_BLOCK_RUNS_MAX, LANE_LOOK_GAS,
    },
    state::encode_slot,
};
use almanac_schedule::{
    Calendar, CalendarAgenda, Record,
    calendar::{Change, Queue},
    cron::{Order, admit},
    ledger::MemoryLedger,
    life::{self, NewSchedule},
    record::{escrow_slot, head_slot},
};
use std::{cell::Cell, collections::BTreeMap, sync::Mutex};

/// How many jobs that do not run end or move on in a block.
const ENDINGS_PER_BLOCK: usize = CRON_BLOCK_EXHAUSTIONS_MAX.default as usize;

/// How many of the cheapest runs fit a block.
const RUNS_PER_BLOCK: usize = (CRON_BLOCK_GAS_DEFAULT / LEAST_RUN_GAS) as usize;

/// A block in which somebody wants half of the gas for themselves, and gets it.
fn block_with_user(chain: &mut TestChain, seconds: u64) -> Produced {
    let (bob, input) = (person(8), chain.input_at(TimestampMs(seconds * 1_000)));
    let half = CRON_BLOCK_GAS_DEFAULT;
    let hungry = call(bob, chain.nonce(bob.address), FAILER, Bytes::new(), half);
    let produced = chain.produce_once(&input, vec![hungry]);
    assert_eq!(produced.refused, []);
    let used = produced.receipt(0).gas_used.0;
    let cron: u64 = produced.runs().iter().map(|run| run.gas_used.0).sum();
    assert!(used == half && used >= cron, "users keep half: {used} beside {cron}");
    produced
}

#[test]
fn attack_01_same_second_flood() {
    let mut chain = wide_chain();
    let due = chain.next_seconds() + HOUR;
    let order = cheap_order(&chain).at(due);
    // Many full blocks make the gas dear.
    let order = order.clone().with_value(order.value * U256::from(10));
    let ids = fill(&mut chain, 10_000, &order);
    shrink(&mut chain);

    let mut ran = Vec::new();
    for n in 0..10_000_usize.div_ceil(RUNS_PER_BLOCK) {
        ran.extend(block_with_user(&mut chain, due + n as u64).ran());
        assert_eq!(ran.len(), ids.len().min((n + 1) * RUNS_PER_BLOCK), "every block is as full as it may be");
    }
    assert_eq!(ran, ids, "each once, in order");
    assert!(chain.state.0.keys().all(|key| !matches!(key, StateKey::Body(_))), "nothing is left of it");
}

/// Nobody can be kept out of a second: whoever comes last waits for those before, and no longer.
#[test]
fn attack_03_agenda_filled_against_a_victim() {
    let mut chain = wide_chain();
    let due = chain.next_seconds() + HOUR;
    let flood = cheap_order(&chain).at(due);
    fill(&mut chain, 2_000, &flood);
    let order = order(&chain).at(due);
    let victim = chain.schedule(person(0), &order).expect("there is always room");
    shrink(&mut chain);
    let before = 2_000_usize.div_ceil(RUNS_PER_BLOCK);
    let blocks: Vec<_> = (0..before as u64).map(|n| chain.at(due + n).ran()).collect();
    assert_eq!(blocks.last().unwrap().last(), Some(&victim));
}

/// A job that exceeds what is left by one gas stays, whole, and comes first in the next block.
#[test]
fn attack_05_removed_before_the_budget_check() {
    let mut chain = TestChain::new();
    let due = chain.next_seconds() + HOUR;
    let rich = order(&chain).at(due).with_value(U256::from(10u64.pow(17)));
    let gas = [5_000_000, 5_000_000, 2_500_000, 2_500_001, 21_000];
    let ids = gas.map(|gas| chain.schedule(person(0), &rich.clone().gas(gas)).unwrap());
    assert_eq!(chain.at(due).ran(), ids[..3]);
    let job = chain.job(ids[3]);
    assert_eq!((job.nextRunAt, job.gasEscrow), (U256::from(due), rich.value));
    assert_eq!(chain.at(due + 1).ran(), ids[3..]);
}

/// No job is larger than a block can ever take, whatever governance does later.
#[test]
fn attack_06_larger_than_any_budget() {
    let mut chain = TestChain::from_genesis(&Genesis { governance: governor().address, ..genesis() });
    let rich = order(&chain).with_value(U256::from(10u64.pow(17)));
    let due = rich.next_run_at.to();
    let too_large = rich.clone().gas(CRON_RUN_GAS_LARGEST + 1);
    assert!(matches!(chain.schedule(person(0), &too_large), Err(CronError::GasLimitOutOfBounds(_))));
    let id = chain.schedule(person(0), &rich.gas(CRON_RUN_GAS_LARGEST)).unwrap();
    set_parameter(&mut chain, CRON_BLOCK_GAS_MAX, CRON_BLOCK_GAS_MAX.min);
    assert_eq!(chain.at(due).ran(), [id], "the largest job fits the smallest budget");
}

/// Giants in front of dwarfs: nobody waits longer than all the gas before them takes, at two thirds of the budget.
#[test]
fn attack_07_head_of_line_giant() {
    let mut chain = TestChain::new();
    let due = chain.next_seconds() + HOUR;
    let rich = order(&chain).at(due).with_value(U256::from(10u64.pow(17)));
    let mut waiting = Vec::new();
    for n in 0..24 {
        let gas = if n % 2 == 0 { CRON_RUN_GAS_LARGEST } else { 60_000 };
        waiting.push((chain.schedule(person(n % 5), &rich.clone().gas(gas)).unwrap(), gas));
    }
    let mut block_of = BTreeMap::new();
    for n in 0..10 {
        block_of.extend(chain.at(due + n).ran().into_iter().map(|id| (id, n)));
    }
    let mut gas_before = 0;
    for (id, gas) in waiting {
        assert!(block_of[&id] <= gas_before / (CRON_BLOCK_GAS_DEFAULT - CRON_RUN_GAS_LARGEST), "{id} waited");
        gas_before += gas;
    }
}

/// A day without blocks, and a thousand jobs that want a run for each of its minutes.
#[test]
fn attack_09_catch_up_storm() {
    const JOBS: u64 = 1_000;
    for (options, policy) in [(0, "all"), (0x100, "latest"), (0x200, "skip")] {
        let mut chain = wide_chain();
        let due = chain.next_seconds() + HOUR;
        let order = cheap_order(&chain).at(due).every(MINUTE).with_options(options);
        let ids = fill(&mut chain, JOBS, &order);
        shrink(&mut chain);
        let morning = due + 24 * HOUR;
        let blocks: Vec<_> = (0..4).map(|n| block_with_user(&mut chain, morning + n).ran()).collect();
        let runs: usize = blocks.iter().map(Vec::len).sum();
        match policy {
            // Oldest first: no job has its second run before each had its first.
            "all" => {
                assert!(blocks.iter().all(|ran| ran.len() == RUNS_PER_BLOCK));
                let order = ids.iter().cycle().take(runs);
                assert!(blocks.iter().flatten().eq(order), "{policy}");
            }
            "latest" => assert!(blocks.concat() == ids, "each ran once"),
            _ => assert_eq!(runs, 0),
        }
        if policy != "all" {
            let next = U256::from(morning + MINUTE);
            assert!(
                ids.iter().step_by(97).all(|id| chain.job(*id).nextRunAt == next),
                "{policy} has caught up"
            );
        }
        assert!(ids.len() <= LANE_BLOCK_RUNS_MAX, "one block could skip all of them");
    }
}

/// What costs nobody gas is bounded as well, and holds up nobody: so many series skip per block, and those behind
/// them run in the first.
#[test]
fn attack_09_skips_are_bounded_and_hold_up_no_run() {
    let mut chain = wide_chain();
    let due = chain.next_seconds() + HOUR;
    let skip = cheap_order(&chain).at(due).every(MINUTE).with_options(0x200);
    let ids = fill(&mut chain, LANE_BLOCK_RUNS_MAX as u64 + 1, &skip);
    let victim = chain.schedule(person(0), &order(&chain).at(due)).unwrap();
    shrink(&mut chain);
    assert_eq!(block_with_user(&mut chain, due + HOUR).ran(), [victim]);
    for n in 1..5 {
        let next = U256::from(due + HOUR + MINUTE);
        let moved = ids.iter().filter(|id| chain.job(**id).nextRunAt == next).count();
        assert_eq!(moved, n * ENDINGS_PER_BLOCK);
        assert_eq!(block_with_user(&mut chain, due + HOUR + n as u64).ran(), [U256::ZERO; 0]);
    }
    // A minute on they are due again, in time, and pay.
    assert_eq!(block_with_user(&mut chain, due + HOUR + MINUTE).ran().len(), RUNS_PER_BLOCK);
}

/// Each run makes two jobs. They run a block later at the earliest, and end with the money.
#[test]
fn attack_10_fan_out() {
    let mut chain = TestChain::from_genesis(&flooded(genesis()));
    let start = chain.next_seconds() + HOUR;
    // Runs bring no value, so the money comes from the flooder's own balance: none of it reaches the registry.
    let child = cheap_order(&chain).at(start + 1).calldata();
    let data = flooder_data(2, U256::ZERO, &child);
    let free = order(&chain).at(start).calling(FLOODER, data).gas(2_000_000);
    let free = free.with_value(U256::from(2_000_000) * U256::from(chain.next_base_fee().0));
    chain.schedule(person(0), &free).unwrap();
    let produced = chain.at(start);
    assert!(!produced.runs()[0].outcome.is_success(), "a job without escrow is refused, whoever asks");

    // With money: as many as it pays for, each in a later block than the run that made it.
    let funds = U256::from(10u64.pow(18));
    let price = U256::from(10 * LEAST_RUN_GAS) * U256::from(chain.next_base_fee().0) * U256::from(2);
    chain.send(person(0), FLOODER, funds, flooder_data(0, U256::ZERO, &[]));
    let due = chain.next_seconds() + HOUR;
    let child = cheap_order(&chain).at(due + 1).with_value(price);
    let data = flooder_data(2, price, &child.calldata());
    let parent = order(&chain).at(due).calling(FLOODER, data).gas(2_000_000);
    let parent = parent.with_value(U256::from(4_000_000) * U256::from(chain.next_base_fee().0));
    let id = chain.schedule(person(0), &parent).unwrap();
    let held = chain.balance(FLOODER);
    let produced = chain.at(due);
    assert_eq!(produced.ran(), [id]);
    let children: Vec<_> = events::<JobScheduled>(&produced.logs()).iter().map(|event| event.id).collect();
    assert_eq!(children.len(), 2, "{:?}", produced.runs()[0].outcome);
    assert_eq!(held - chain.balance(FLOODER), price * U256::from(2), "paid in advance");
    assert_eq!(chain.at(due + 1).ran(), children);
}

/// A block at a time that users keep full, so that the price stays up.
fn crowded(chain: &mut TestChain, seconds: u64) -> Produced {
    let full = call(person(8), chain.nonce(person(8).address), FAILER, Bytes::new(), 100_000_000);
    let produced = chain.produce_once(&chain.input_at(TimestampMs(seconds * 1_000)), vec![full]);
    assert_eq!(produced.refused, []);
    produced
}

/// Jobs with money for exactly one run at the price of quiet times, due in the same second, and then dearer times.
fn flood_of_the_poor(chain: &mut TestChain, count: u64, due: u64) -> Vec<U256> {
    let exact = U256::from(LEAST_RUN_GAS) * U256::from(chain.next_base_fee().0);
    let poor = cheap_order(chain).at(due).with_value(exact);
    let mut ids = Vec::new();
    // Each flood fills a block, so that the next one would be dearer: an idle hour between them.
    while (ids.len() as u64) < count {
        let now = 700.min(count - ids.len() as u64);
        ids.extend(fill(chain, now, &poor));
        let mut quiet = chain.head.timestamp.0;
        while U256::from(LEAST_RUN_GAS) * U256::from(chain.next_base_fee().0) > exact {
            quiet += 1_000;
            chain.produce_once(&chain.input_at(TimestampMs(quiet)), vec![]);
        }
    }
    crowded(chain, due - 2);
    crowded(chain, due - 1);
    assert!(U256::from(LEAST_RUN_GAS) * U256::from(chain.next_base_fee().0) > exact);
    ids
}

fn ended(produced: &Produced) -> Vec<U256> {
    events::<JobExhausted>(&produced.logs()).into_iter().map(|event| event.id).collect()
}

/// A thousand jobs that cannot pay, in front of one that can: it runs in the first block, and so many end in each.
#[test]
fn attack_26_exhaustion_flood() {
    let mut chain = wide_chain();
    let due = chain.next_seconds() + HOUR;
    let rich = order(&chain).at(due + 1).with_value(U256::from(10u64.pow(17)));
    let victim = chain.schedule(person(0), &rich).unwrap();
    let ids = flood_of_the_poor(&mut chain, 1_000, due);
    for n in 0..4 {
        let produced = crowded(&mut chain, due + 1 + n as u64);
        assert_eq!(ended(&produced), ids[n * ENDINGS_PER_BLOCK..(n + 1) * ENDINGS_PER_BLOCK]);
        assert_eq!(produced.ran(), if n == 0 { vec![victim] } else { vec![] });
    }
}

/// A block looks at so many jobs and at no more: what is behind those waits one block for each such number.
#[test]
fn attack_26_a_block_looks_at_a_bounded_number() {
    // The last flood is so large that only the mark gets the second block past it.
    for (more, is_held_up) in [(0, false), (1, true), (1 + ENDINGS_PER_BLOCK as u64, true)] {
        looks_at(TestChain::new(), LANE_BLOCK_LOOKS_MAX as u64, ENDINGS_PER_BLOCK, more, is_held_up);
    }
}

/// A lane with more gas looks at more: otherwise the price of holding it would stay where it was.
#[test]
fn attack_26_looks_grow_with_the_lane() {
    const GAS: u64 = 16_000_000;
    for (more, is_held_up) in [(0, false), (1, true)] {
        let mut genesis = genesis();
        genesis.parameters.insert(BLOCK_GAS_MAX.name.into(), 2 * GAS);
        genesis.parameters.insert(CRON_BLOCK_GAS_MAX.name.into(), GAS);
        let chain = TestChain::from_genesis(&genesis);
        looks_at(chain, GAS / LANE_LOOK_GAS, ENDINGS_PER_BLOCK, more, is_held_up);
    }
}

/// Puts jobs that cannot pay in front of one that can: `more` than leave it the last of a block's looks.
fn looks_at(mut chain: TestChain, looks: u64, endings: usize, more: u64, is_held_up: bool) {
    let due = chain.next_seconds() + HOUR;
    let escrow = Wei(U256::from(LEAST_RUN_GAS) * U256::from(BASE_FEE_FLOOR_WEI.default));
    put_by_hand(&mut chain, looks - 1 + more, due, escrow);
    let rich = order(&chain).at(due + 1).with_value(U256::from(10u64.pow(17)));
    let victim = chain.schedule(person(0), &rich).unwrap();
    let first = chain.produce_once(&chain.input_at(TimestampMs((due + 1) * 1_000)), vec![]);
    assert!(base_fee(&first.output).0 > BASE_FEE_FLOOR_WEI.default.into(), "none of them can pay");
    assert_eq!(ended(&first).len(), endings);
    assert_eq!(first.ran(), if is_held_up { vec![] } else { vec![victim] }, "{looks} looks, {more} more");
    let second = chain.produce_once(&chain.input_at(TimestampMs((due + 2) * 1_000)), vec![]);
    assert_eq!(second.ran(), if is_held_up { vec![victim] } else { vec![] });
}

/// As many of the smallest runs as the lane's gas holds run in a block, whatever the lane's size: their number never
/// closes it first.
#[test]
fn attack_01_the_number_of_runs_closes_no_lane() {
    for (mut chain, gas) in
        [(TestChain::new(), CRON_BLOCK_GAS_DEFAULT), (largest_chain(), CRON_BLOCK_GAS_MAX.max)]
    {
        let due = chain.next_seconds() + HOUR;
        let escrow = Wei(U256::from(LEAST_RUN_GAS) * U256::from(chain.next_base_fee().0));
        let fitting = gas / LEAST_RUN_GAS;
        put_by_hand(&mut chain, fitting + 1, due, escrow);
        let produced = chain.produce_once(&chain.input_at(TimestampMs(due * 1_000)), vec![]);
        assert_eq!(produced.ran().len() as u64, fitting, "of {gas} gas");
    }
}

/// After a halt, a series that runs once for every time it has missed waits in front of what was set aside. Blocks run
/// it first and go on behind the mark: they do not look at the same flood again.
#[test]
fn attack_26_a_late_series_makes_no_flood_last_longer() {
    const MORE: u64 = 2;
    for has_late_series in [false, true] {
        let mut chain = TestChain::new();
        let start = chain.next_seconds() + HOUR;
        let due = start + HOUR;
        let escrow = Wei(U256::from(LEAST_RUN_GAS) * U256::from(BASE_FEE_FLOOR_WEI.default));
        put_by_hand(&mut chain, LANE_BLOCK_LOOKS_MAX as u64 + MORE * ENDINGS_PER_BLOCK as u64, due, escrow);
        let rich = order(&chain).with_value(U256::from(10u64.pow(17)));
        if has_late_series {
            chain.schedule(person(0), &rich.clone().at(start).every(MINUTE)).unwrap();
        }
        let victim = chain.schedule(person(0), &rich.at(due + 1)).unwrap();
        let waited = (1..).find(|block| {
            let time = TimestampMs((due + 1) * 1_000 + block * 100);
            chain.produce_once(&chain.input_at(time), vec![]).ran().contains(&victim)
        });
        assert_eq!(waited, Some(2), "with a late series: {has_late_series}");
    }
}

/// Giants that cheap runs cancel in the block in which they are due hold no room: who is behind them runs in it.
#[test]
fn attack_05_cancelled_jobs_hold_no_room() {
    let mut chain = TestChain::new();
    let due = chain.next_seconds() + HOUR;
    let value = U256::from(10u64.pow(17));
    let order = order(&chain).at(due).with_value(value);
    // All belong to the forwarder, which the first three runs tell to cancel the three after them.
    let owned = |chain: &mut TestChain, order: &JobOrder| {
        let receipt = chain.send(person(5), FORWARDER, value, to(CRON_REGISTRY, &order.calldata()));
        scheduled(&receipt).unwrap()
    };
    let first = chain.head.number + 1;
    let killers = [3, 4, 5].map(|n| {
        let giant = U256::from(ScheduleId::new(first + n, 1, 0).unwrap().0);
        let cancel = to(CRON_REGISTRY, &cancel_data(giant));
        owned(&mut chain, &order.clone().calling(FORWARDER, cancel).gas(200_000))
    });
    let giants = [0; 3].map(|_| owned(&mut chain, &order.clone().gas(CRON_RUN_GAS_LARGEST)));
    let victim = chain.schedule(person(0), &order.gas(CRON_RUN_GAS_LARGEST)).unwrap();
    let produced = chain.at(due);
    let cancelled: Vec<_> = events::<JobCancelled>(&produced.logs()).iter().map(|event| event.id).collect();
    assert_eq!(cancelled, giants);
    assert_eq!(produced.ran(), [&killers[..], &[victim]].concat());
}

/// A state that counts how often it is read.
struct Counting<'a>(&'a MapState, Mutex<Cell<u64>>);

impl StateRead for Counting<'_> {
    fn read(&self, key: StateKey) -> Result<Option<Bytes>, StateReadError> {
        let count = self.1.lock().unwrap();
        count.set(count.get() + 1);
        self.0.read(key)
    }
}

/// What a block reads does not depend on how much is pending: at most twice as much with 200 times as many jobs.
#[test]
fn attack_11_linear_scans() {
    let [few, many] = [500, 100_000].map(|pending| {
        let mut chain = TestChain::new();
        let due = chain.next_seconds() + HOUR;
        let escrow = Wei(U256::from(10 * LEAST_RUN_GAS) * U256::from(chain.next_base_fee().0));
        put_by_hand(&mut chain, pending, due + HOUR, escrow);
        put_by_hand(&mut chain, 50, due, escrow);
        let counting = Counting(&chain.state, Mutex::default());
        let bob = person(8);
        let job = order(&chain).at(due + HOUR);
        let schedule = recovered(paid_call(bob, 0, CRON_REGISTRY, job.value, job.calldata()));
        let mut source = Candidates::new(vec![schedule]);
        let input = chain.input_at(TimestampMs(due * 1_000));
        let output = execute(&counting, &CalendarAgenda, &input, &mut source).unwrap();
        assert_eq!(output.receipts.len(), 1 + 50 + 1);
        assert!(output.receipts.iter().all(|receipt| receipt.outcome.is_success()));
        counting.1.into_inner().unwrap().get()
    });
    assert!(many <= 2 * few, "{few} reads with 500 pending, {many} with 100,000");
}

/// A job that is due with others, as the state has it.
struct Placed {
    target: Address,
    input: Bytes,
    gas: u64,
}

/// Two runs that leave 5 M gas of the lane, then pairs: a run that cancels the job behind it, which has asked for all
/// the gas that is left. Answers with what the last pair leaves.
fn cancelling_pairs(count: u64) -> (Vec<Placed>, u64) {
    let plain = |gas| Placed { target: NOBODY, input: Bytes::from_static(&[1, 2, 3, 4]), gas };
    let mut jobs = vec![plain(CRON_RUN_GAS_LARGEST), plain(CRON_RUN_GAS_LARGEST)];
    let mut left = CRON_BLOCK_GAS_DEFAULT - 2 * CRON_RUN_GAS_LARGEST;
    for _ in 0..count {
        let cancel = cancel_data(U256::from(placed_id(jobs.len() as u64 + 1).0));
        jobs.push(Placed { target: FORWARDER, input: to(CRON_REGISTRY, &cancel), gas: CANCEL_GAS });
        left -= CANCEL_GAS;
        jobs.push(plain(left));
    }
    (jobs, left)
}

/// Gas of a run that has the forwarder cancel a job.
const CANCEL_GAS: u64 = 90_000;

fn placed_id(n: u64) -> ScheduleId {
    ScheduleId::new(1, 1, 0).map(|first| ScheduleId(first.0 + n)).unwrap()
}

/// A block may cancel many jobs one after the other, and goes on behind each: that costs no more reads than a block
/// that runs them.
#[test]
fn attack_05_going_on_behind_a_cancelled_job_is_cheap() {
    let [none, many] = [0, 55].map(|pairs| {
        let mut chain = TestChain::new();
        let due = chain.next_seconds() + HOUR;
        place(&mut chain, cancelling_pairs(pairs).0, due);
        let escrow = Wei(U256::from(10 * LEAST_RUN_GAS) * U256::from(chain.next_base_fee().0));
        put_by_hand(&mut chain, 5_000, due + 1, escrow);
        let counting = Counting(&chain.state, Mutex::default());
        let input = chain.input_at(TimestampMs((due + 1) * 1_000));
        let output = execute(&counting, &CalendarAgenda, &input, &mut Candidates::new(vec![])).unwrap();
        let logs: Vec<_> = output.receipts.iter().flat_map(|receipt| receipt.logs.clone()).collect();
        assert_eq!(events::<JobCancelled>(&logs).len() as u64, pairs);
        counting.1.into_inner().unwrap().get()
    });
    assert!(many <= none, "{none} reads where nothing is cancelled, {many} where much is");
}

/// Where the calendar cannot be read behind what was selected with room that was given back, what was selected runs.
#[test]
fn attack_05_going_on_into_a_broken_calendar_loses_no_run() {
    let mut chain = TestChain::new();
    let due = chain.next_seconds() + HOUR;
    let (mut jobs, left) = cancelling_pairs(1);
    let waiting = placed_id(jobs.len() as u64);
    jobs.push(Placed { target: NOBODY, input: Bytes::from_static(&[1, 2, 3, 4]), gas: left });
    place(&mut chain, jobs, due);
    // Behind it more than a page of jobs that cannot pay, so that the walk leaves a mark behind all of them.
    let escrow = Wei(U256::from(LEAST_RUN_GAS) * U256::from(BASE_FEE_FLOOR_WEI.default));
    put_by_hand(&mut chain, LANE_BLOCK_RUNS_MAX as u64 + 100, due + 1, escrow);
    let now = TimestampMs((due + 1) * 1_000);
    let leaves = Calendar::new(&chain.state).leaves(Queue::Cron, now, now, usize::MAX).unwrap();
    let last = leaves.last().unwrap().0;
    chain.state.0.insert(StateKey::Calendar(last), Bytes::from_static(b"broken"));
    let output = execute(&chain.state, &CalendarAgenda, &chain.input_at(now), &mut Candidates::new(vec![]));
    let output = output.unwrap();
    assert!(output.environment.base_fee.0 > BASE_FEE_FLOOR_WEI.default.into(), "none of those can pay");
    let ran: Vec<_> = output.receipts.iter().filter_map(|receipt| receipt.schedule_ref).collect();
    assert_eq!(ran.last().map(|run| run.schedule), Some(waiting), "{} ran", ran.len());
}

/// Writes jobs of the forwarder into a state, due at the same time, with more money than they need.
fn place(chain: &mut TestChain, jobs: Vec<Placed>, due: u64) {
    let escrow = Wei(U256::from(10u64.pow(17)));
    for (n, Placed { target, input, gas }) in (0..).zip(jobs) {
        let (next_run_at, gas_limit) = (U256::from(due), U256::from(gas));
        let order = Order { owner: FORWARDER, target, input, next_run_at, gas_limit, ..plain_order(escrow) };
        put_all(chain, order, [placed_id(n)].into_iter());
    }
}

/// Writes jobs into a state as blocks would have, without executing them.
pub fn put_by_hand(chain: &mut TestChain, count: u64, due: u64, escrow: Wei) {
    let order = Order { next_run_at: U256::from(due), ..plain_order(escrow) };
    put_all(chain, order, (0..count).map(|n| ScheduleId(due << 28 | n)));
}

/// An order for the cheapest run there is.
fn plain_order(escrow: Wei) -> Order {
    Order {
        owner: person(0).address,
        refund_to: person(0).address,
        target: NOBODY,
        input: Bytes::from_static(&[1, 2, 3, 4]),
        next_run_at: U256::ZERO,
        interval_seconds: U256::ZERO,
        runs_max: U256::ZERO,
        gas_limit: U256::from(LEAST_RUN_GAS),
        options: U256::ZERO,
        escrow,
    }
}

fn put_all(chain: &mut TestChain, order: Order, ids: impl Iterator<Item = ScheduleId>) {
    let (parameters, escrow) = (Default::default(), order.escrow);
    let admitted = admit(order, &parameters, chain.head.timestamp, GasPrice(1)).unwrap();
    let mut memory = MemoryLedger::default();
    let mut changes = Vec::new();
    for id in ids {
        let body = admitted.body.clone();
        let new = NewSchedule { body, lane: Lane::Cron, due: Some(admitted.due), priority: 0, escrow };
        life::create(&mut memory, id, new).unwrap();
        for slot in [head_slot(id), escrow_slot(id)] {
            chain.state.0.insert(StateKey::Slot(LEDGER, slot), encode_slot(memory.slots[&slot]).unwrap());
        }
        chain.state.0.insert(StateKey::Body(id), memory.bodies[&id].clone());
        changes.push(Change::Insert(Record::read(&chain.state, id).unwrap().unwrap().entry().unwrap()));
    }
    for change in Calendar::new(&chain.state).apply(&changes).unwrap() {
        chain.state.0.insert(change.key, change.new.unwrap());
    }
    let held = escrow.0 * U256::from(changes.len());
    let mut ledger = chain.state.account(LEDGER);
    ledger.balance += held;
    chain.issued += held;
    chain.state.0.insert(StateKey::Account(LEDGER), ledger.encode());
}
