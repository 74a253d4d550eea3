//! Attacks by number and size: floods, giants, storms after a halt, jobs that make jobs.

use crate::{
    FLOODER, LEAST_RUN_GAS, NOBODY, cheap_order, fill, flooded, flooder_data, governor, set_parameter,
    shrink,
    support::{contracts::*, cron::*, *},
    wide_chain,
};
use alloy_primitives::{Bytes, U256};
use almanac_exec::{Candidates, execute};
use almanac_primitives::{
    Genesis, Lane, ScheduleId, StateKey, StateRead, StateReadError, TimestampMs, Wei,
    addresses::{CRON_REGISTRY, LEDGER},
    params::{CRON_BLOCK_GAS_DEFAULT, CRON_BLOCK_GAS_MAX, CRON_RUN_GAS_LARGEST, LANE_BLOCK_RUNS_MAX},
    state::encode_slot,
};
use almanac_schedule::{
    Calendar, CalendarAgenda, Record,
    calendar::Change,
    cron::{Order, admit},
    ledger::MemoryLedger,
    life,
    record::{escrow_slot, head_slot},
};
use std::{cell::Cell, collections::BTreeMap, sync::Mutex};

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

/// What costs nobody gas is bounded as well: a block looks at so many jobs, and whoever is behind them comes next.
#[test]
fn attack_09_skips_are_bounded() {
    let mut chain = wide_chain();
    let due = chain.next_seconds() + HOUR;
    let skip = cheap_order(&chain).at(due).every(MINUTE).with_options(0x200);
    let ids = fill(&mut chain, LANE_BLOCK_RUNS_MAX as u64 + 1, &skip);
    let victim = chain.schedule(person(0), &order(&chain).at(due)).unwrap();
    shrink(&mut chain);
    let blocks = [0, 1].map(|n| block_with_user(&mut chain, due + HOUR + n).ran());
    assert_eq!(blocks, [vec![], vec![victim]]);
    let next = U256::from(due + HOUR + MINUTE);
    assert!([ids[0], ids[LANE_BLOCK_RUNS_MAX]].iter().all(|id| chain.job(*id).nextRunAt == next));
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

/// A thousand jobs that cannot pay, in front of one that can: a hundred end in each block, for nobody's gas.
#[test]
fn attack_26_exhaustion_flood() {
    let mut chain = wide_chain();
    let due = chain.next_seconds() + HOUR;
    let victim = chain.schedule(person(0), &order(&chain).at(due + 1)).unwrap();
    let exact = U256::from(LEAST_RUN_GAS) * U256::from(chain.next_base_fee().0);
    let poor = cheap_order(&chain).at(due).with_value(exact);
    // The flood fills a block, so that the next one is dearer.
    let ids = fill(&mut chain, 1_000, &poor);
    assert!(chain.next_base_fee().0 * u128::from(LEAST_RUN_GAS) > exact.to());
    for n in 1..=10 {
        // Users keep the price up, and go on.
        let full = call(person(8), chain.nonce(person(8).address), FAILER, Bytes::new(), 100_000_000);
        let input = chain.input_at(TimestampMs((due + n as u64) * 1_000));
        let produced = chain.produce_once(&input, vec![full]);
        assert_eq!(produced.refused, []);
        let ended = events::<JobExhausted>(&produced.logs());
        let ended: Vec<_> = ended.into_iter().map(|event| event.id).collect();
        assert_eq!(ended, ids[(n - 1) * 100..n * 100]);
        assert_eq!(produced.ran(), if n == 10 { vec![victim] } else { vec![] });
    }
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
        put_by_hand(&mut chain, pending, due + HOUR);
        put_by_hand(&mut chain, 50, due);
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

/// Writes jobs into a state as blocks would have, without executing them.
fn put_by_hand(chain: &mut TestChain, count: u64, due: u64) {
    let fee = chain.next_base_fee();
    let parameters = Default::default();
    let escrow = Wei(U256::from(10 * LEAST_RUN_GAS) * U256::from(fee.0));
    let order = Order {
        owner: person(0).address,
        refund_to: person(0).address,
        target: NOBODY,
        input: Bytes::from_static(&[1, 2, 3, 4]),
        next_run_at: U256::from(due),
        interval_seconds: U256::ZERO,
        runs_max: U256::ZERO,
        gas_limit: U256::from(LEAST_RUN_GAS),
        options: U256::ZERO,
        escrow,
    };
    let admitted = admit(order, &parameters, chain.head.timestamp, fee).unwrap();
    let mut memory = MemoryLedger::default();
    let mut changes = Vec::new();
    for n in 0..count {
        let id = ScheduleId(due << 28 | n);
        life::create(&mut memory, id, &admitted.body, Lane::Cron, admitted.due, escrow).unwrap();
        for slot in [head_slot(id), escrow_slot(id)] {
            chain.state.0.insert(StateKey::Slot(LEDGER, slot), encode_slot(memory.slots[&slot]).unwrap());
        }
        chain.state.0.insert(StateKey::Body(id), memory.bodies[&id].clone());
        changes.push(Change::Insert(Record::read(&chain.state, id).unwrap().unwrap().entry().unwrap()));
    }
    for change in Calendar::new(&chain.state).apply(&changes).unwrap() {
        chain.state.0.insert(change.key, change.new.unwrap());
    }
    let mut ledger = chain.state.account(LEDGER);
    ledger.balance += escrow.0 * U256::from(count);
    chain.state.0.insert(StateKey::Account(LEDGER), ledger.encode());
}
