//! The lanes of a block: where runs stand, whose gas they use, and that one does nothing to another.

use crate::support::{contracts::*, runs::*, *};
use alloy_primitives::{Address, Bytes, TxKind, U256};
use almanac_exec::{BlockOutput, Executed};
use almanac_primitives::{
    Gas, GasPrice, Halt, Lane, Outcome, RunTransaction, ScheduleId, ScheduleRef, StateChange, StateKey,
    StateRead, TimestampMs, Wei,
    addresses::{CRON_REGISTRY, LEDGER},
    genesis::Allocation,
    params::{
        BLOCK_SWEEPS_MAX, CRON_BLOCK_GAS_DEFAULT, LANE_BLOCK_RUNS_MAX, Parameters,
        RESERVED_BLOCK_GAS_DEFAULT, SPARE_BLOCK_GAS_DEFAULT, SPARE_BLOCK_LOOKS_MAX,
    },
    run::{PROLOGUE_TYPE, RUN_TYPE},
};
use almanac_schedule::{
    Agenda, CalendarAgenda,
    calendar::{CalendarError, Entry, Queue},
    testing::REFUNDED,
};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

/// A chain on which these runs are due in the next block.
fn with_runs(runs: &[RunTransaction]) -> TestChain {
    let mut chain = TestChain::new();
    chain.plant_runs(runs);
    chain
}

#[test]
fn every_lane_has_its_place_and_every_run_its_receipt() {
    let mut chain = TestChain::new();
    let fee = price(&chain, 0);
    let runs: Vec<_> = [(1, Lane::Spare), (2, Lane::Market), (3, Lane::Cron), (4, Lane::Reserved)]
        .into_iter()
        .flat_map(|(id, lane)| [(id, lane), (id + 10, lane)])
        .map(|(id, lane)| RunTransaction {
            gas_price: GasPrice(fee + 5),
            ..run(id, lane, owner(id), COUNTER, 100_000)
        })
        .collect();
    chain.plant_runs(&runs);

    let output = chain.produce(vec![paying(person(0), 0, fee + 4, NOWHERE, 21_000)]).output;

    assert_eq!(ran(&output), [4, 14, 3, 13, 2, 12, 1, 11], "reserved, cron, market, spare");
    let kinds: Vec<_> = output.receipts.iter().map(|receipt| receipt.transaction_type).collect();
    let r = RUN_TYPE;
    assert_eq!(
        kinds,
        [PROLOGUE_TYPE, r, r, r, r, r, r, 2, r, r],
        "the cheaper user transaction after market"
    );
    for (executed, receipt) in output.transactions.iter().zip(&output.receipts) {
        assert_eq!(executed.hash(), receipt.transaction_hash);
        let Executed::Run(executed) = executed else {
            assert_eq!(receipt.schedule_ref, None);
            continue;
        };
        let planted = runs.iter().find(|run| run.schedule_ref == executed.schedule_ref).unwrap();
        assert_eq!(*executed, RunTransaction { gas_price: base_fee(&output), ..planted.clone() });
        assert_eq!(receipt.schedule_ref, Some(executed.schedule_ref));
        // AIP125-15: a market run pays what the highest user transaction pays.
        let top = GasPrice(fee + 4);
        let price = if executed.lane == Lane::Market { top } else { executed.gas_price };
        assert_eq!(receipt.effective_gas_price, price);
        assert_eq!(receipt.outcome, Outcome::Success);
        assert_eq!(count_of(&chain.state, executed.from), U256::from(1));
    }
    let hashes: BTreeSet<_> = output.receipts.iter().map(|receipt| receipt.transaction_hash).collect();
    assert_eq!(hashes.len(), output.receipts.len(), "no two share a hash");
    assert_eq!(chain.blocks[0].transactions.len(), 1, "runs are not in the body");
    chain.replay();
}

/// Runs that differ in nothing but their schedule have different hashes.
#[test]
fn the_same_call_twice_is_two_transactions() {
    let first = run(1, Lane::Cron, owner(1), COUNTER, 100_000);
    let schedule_ref = ScheduleRef { schedule: ScheduleId(2), number: 0 };
    let second = RunTransaction { schedule_ref, ..first.clone() };
    let mut chain = with_runs(&[first, second]);
    let output = chain.produce(vec![]).output;
    assert_eq!(count_of(&chain.state, owner(1)), U256::from(2));
    assert_ne!(output.receipts[1].transaction_hash, output.receipts[2].transaction_hash);
}

#[test]
fn each_pool_counts_its_own_gas() {
    let lanes = [(1, Lane::Reserved), (2, Lane::Cron), (3, Lane::Market), (4, Lane::Spare)];
    // FAILER uses all of it, so the numbers are known; each its own, so that a mix-up shows.
    let gas = [(1, 1_000_000), (2, 2_000_000), (3, 4_000_000), (4, 8_000_000)];
    let runs = lanes.iter().zip(gas).map(|(&(id, lane), (_, gas))| run(id, lane, owner(id), FAILER, gas));
    let mut chain = with_runs(&runs.collect::<Vec<_>>());

    let output = chain.produce(vec![call(person(0), 0, FAILER, vec![], 500_000)]).output;

    assert_eq!(output.gas_used, Gas(6_500_000), "cron, market, user");
    assert_eq!(output.reserved_gas_used, Gas(9_000_000), "reserved, spare");
    assert_eq!(chain.head.gas_used, output.gas_used);
    assert_eq!(chain.head.reserved_gas_used, output.reserved_gas_used);
    for (id, gas) in gas {
        assert_eq!(run_receipt(&output, id).gas_used, Gas(gas));
    }
    let mut sum = 0;
    for receipt in &output.receipts {
        sum += receipt.gas_used.0;
        assert_eq!(receipt.cumulative_gas_used, Gas(sum), "over all lanes");
    }
    assert_eq!(sum, 15_500_000);
}

#[test]
fn booked_capacity_moves_no_base_fee_and_takes_no_room() {
    let mut chain = with_runs(&[
        run(1, Lane::Reserved, owner(1), FAILER, 40_000_000),
        run(2, Lane::Reserved, owner(2), FAILER, 30_000_000),
    ]);
    // A user transaction as large as a block can hold is not in the way of the runs, nor they in its.
    let output = chain.produce(vec![call(person(0), 0, COUNTER, vec![], 30_000_000)]).output;

    assert_eq!(output.reserved_gas_used, Gas(70_000_000));
    assert_eq!(output.block_body().count(), 1);
    let mut without = TestChain::new();
    without.produce(vec![call(person(0), 0, COUNTER, vec![], 30_000_000)]);
    assert_eq!(chain.head.gas_used, without.head.gas_used);
    assert_eq!(base_fee_next(&chain), base_fee_next(&without));
}

#[test]
fn cron_and_market_gas_moves_the_base_fee() {
    for lane in [Lane::Cron, Lane::Market] {
        let mut chain = with_runs(&[run(1, lane, owner(1), FAILER, 15_000_000)]);
        chain.produce(vec![call(person(0), 0, FAILER, vec![], 15_000_000)]);
        assert_eq!(chain.head.gas_used, Gas(30_000_000));
        let base = chain.head.base_fee.0;
        assert_eq!(base_fee_next(&chain), base + base / 8);
    }
}

#[test]
fn a_budget_is_used_to_the_last_unit_and_not_beyond() {
    let budgets = [
        (Lane::Reserved, RESERVED_BLOCK_GAS_DEFAULT),
        (Lane::Cron, CRON_BLOCK_GAS_DEFAULT),
        (Lane::Spare, SPARE_BLOCK_GAS_DEFAULT),
    ];
    for (lane, budget) in budgets {
        for (over, expected) in [(0, vec![1, 2]), (1, vec![1])] {
            let runs = vec![
                run(1, lane, owner(1), COUNTER, budget / 2),
                run(2, lane, owner(2), COUNTER, budget - budget / 2 + over),
                run(3, lane, owner(3), COUNTER, 100_000),
            ];
            let output = with_runs(&runs).produce(vec![]).output;
            // FLIP330-13: only in the spare lane a small one passes a large one.
            let passing = (lane == Lane::Spare && over > 0).then_some(3);
            let expected: Vec<u64> = expected.into_iter().chain(passing).collect();
            assert_eq!(ran(&output), expected, "{lane:?} with {over} too much");
        }
    }
}

/// Of what was asked for, not of what was used: gas limits are known before anything runs.
#[test]
fn spare_gets_what_reserved_runs_left() {
    let spare = SPARE_BLOCK_GAS_DEFAULT;
    for (gas, expected) in [(spare - 1_000_000, vec![1, 2]), (spare - 999_999, vec![1]), (spare * 2, vec![1])]
    {
        let runs = vec![
            run(1, Lane::Reserved, owner(1), COUNTER, gas),
            run(2, Lane::Spare, owner(2), COUNTER, 1_000_000),
        ];
        assert_eq!(ran(&with_runs(&runs).produce(vec![]).output), expected);
    }
}

#[test]
fn what_does_not_fit_comes_first_in_the_next_block() {
    // In the market lane, gas that is not used is free for the next one: `aip125_blocks`.
    for (lane, gas) in [(Lane::Reserved, 30_000_000), (Lane::Cron, 6_000_000), (Lane::Spare, 4_000_000)] {
        let mut chain = TestChain::new();
        // Two fit a block; the small last one would fit each of them.
        let mut runs: Vec<_> = (1..=5).map(|id| run(id, lane, owner(id), COUNTER, gas)).collect();
        runs.push(run(6, lane, owner(6), COUNTER, 100_000));
        chain.plant_runs(&runs);
        let blocks: Vec<_> = (0..4).map(|_| ran(&chain.produce(vec![]).output)).collect();
        let expected = match lane {
            // FLIP330-13: the small one passes.
            Lane::Spare => [vec![1, 2, 6], vec![3, 4], vec![5], vec![]],
            _ => [vec![1, 2], vec![3, 4], vec![5, 6], vec![]],
        };
        assert_eq!(blocks, expected, "{lane:?}");
        chain.replay();
    }
}

/// What a block changed, but for schedules and their money.
fn outside(output: &BlockOutput) -> Vec<StateChange> {
    let is_inside = |key: StateKey| match key {
        StateKey::Account(address) | StateKey::Slot(address, _) => [LEDGER, REFUNDED].contains(&address),
        StateKey::Body(_) | StateKey::Calendar(_) => true,
        StateKey::Code(_) | StateKey::Meta(_) => false,
        StateKey::Nonce(..) | StateKey::NonceLog(..) | StateKey::AccountKey(_) => false,
    };
    output.diff.changes().iter().filter(|change| !is_inside(change.key)).cloned().collect()
}

#[test]
fn a_run_that_fails_is_a_receipt_and_changes_nothing_for_the_others() {
    for lane in [Lane::Reserved, Lane::Cron, Lane::Spare] {
        let with = |value: u64, run: RunTransaction| RunTransaction { value: Wei(U256::from(value)), ..run };
        let good = [run(1, lane, owner(1), COUNTER, 100_000), run(8, lane, owner(1), COUNTER, 100_000)];
        let bad = vec![
            (
                run(3, lane, owner(1), REVERTER, 100_000),
                Outcome::Reverted(U256::from(42).to_be_bytes_vec().into()),
            ),
            (run(4, lane, owner(1), BURNER, 100_000), Outcome::Halted(Halt::OutOfGas)),
            (run(5, lane, owner(1), FAILER, 100_000), Outcome::Halted(Halt::InvalidOpcode)),
            (with(1, run(6, lane, owner(1), COUNTER, 100_000)), Outcome::Halted(Halt::InsufficientBalance)),
            // Reaches the counter and then goes back on it.
            (
                RunTransaction {
                    input: to(COUNTER, &[]),
                    ..run(7, lane, owner(1), FORWARD_AND_REVERT, 100_000)
                },
                Outcome::Reverted(Bytes::new()),
            ),
        ];
        let [first, last] = good;
        let mut runs = vec![first.clone()];
        runs.extend(bad.iter().map(|(run, _)| run.clone()));
        runs.push(last.clone());
        let mut chain = with_runs(&runs);
        let mut without = with_runs(&[first, last]);

        let output = chain.produce(vec![]).output;

        assert_eq!(ran(&output), [1, 3, 4, 5, 6, 7, 8], "{lane:?}");
        for (run, outcome) in &bad {
            let receipt = run_receipt(&output, run.schedule_ref.schedule.0);
            assert_eq!(receipt.outcome, *outcome, "{lane:?}");
            assert!(
                receipt.logs.iter().all(|log| [CRON_REGISTRY, LEDGER].contains(&log.address)),
                "nothing but what its door says"
            );
            assert!(receipt.gas_used <= run.gas_limit);
        }
        assert_eq!(
            run_receipt(&output, 6).gas_used,
            Gas(21_000),
            "what was never called costs the call alone"
        );
        let expected = without.produce(vec![]).output;
        assert_eq!(outside(&output), outside(&expected), "all is as if the failed ones had never been due");
        assert_eq!(run_receipt(&output, 8).gas_used, run_receipt(&expected, 8).gas_used);
        assert_eq!(count_of(&chain.state, owner(1)), U256::from(2));
        chain.replay();
    }
}

#[test]
fn a_run_is_its_owners_call_without_its_nonce() {
    for (n, from) in [person(3).address, owner(9), COUNTER, almanac_primitives::addresses::CALLBACKS]
        .into_iter()
        .enumerate()
    {
        let mut chain = TestChain::new();
        let has_money = chain.balance(from) > U256::ZERO;
        let value = Wei(U256::from(if has_money { 5 } else { 0 }));
        let call = RunTransaction { value, ..run(1, Lane::Cron, from, WITNESS, 200_000) };
        chain.plant_runs(&[call]);
        let before = chain.state.account(from);

        let output = chain.produce(vec![]).output;

        assert_eq!(run_receipt(&output, 1).outcome, Outcome::Success, "{n}");
        let address = |word: U256| Address::from_word(word.into());
        assert_eq!(address(chain.state.slot(WITNESS, 0)), from, "msg.sender");
        assert_eq!(address(chain.state.slot(WITNESS, 1)), from, "tx.origin");
        assert_eq!(Wei(chain.state.slot(WITNESS, 2)), value);
        assert_eq!(chain.state.slot(WITNESS, 3), U256::from(base_fee(&output).0), "tx.gasprice");
        assert_eq!(chain.balance(WITNESS), value.0);
        let after = chain.state.account(from);
        assert_eq!(after.nonce, before.nonce, "a run uses nobody's nonce");
        assert_eq!(after.balance, before.balance - value.0, "and pays nothing but its value");
        assert_eq!(output.burned, Gas(200_000).cost(base_fee(&output)), "its schedule pays for its gas");
    }
}

/// The owner's own transactions of the same block have the nonces they would have had anyway.
#[test]
fn runs_and_transactions_of_one_owner_live_side_by_side() {
    let alice = person(0);
    let mut chain = with_runs(&[run(1, Lane::Cron, alice.address, COUNTER, 100_000)]);
    let output = chain.produce(vec![call(alice, 0, COUNTER, vec![], 100_000)]).output;
    assert_eq!(output.block_body().count(), 1);
    assert_eq!(count_of(&chain.state, alice.address), U256::from(2));
    assert_eq!(chain.nonce(alice.address), 1);
}

/// An account with a delegation can be its own target. What its code then does to it counts: a system call does
/// not mark its sender as changed by itself.
#[test]
fn a_run_from_an_account_to_itself_takes_effect() {
    let delegating_to = |delegate: Address| {
        let mut genesis = genesis();
        let alice = genesis.allocations.get_mut(&person(0).address).unwrap();
        alice.code = [&[0xef, 0x01, 0x00], delegate.as_slice()].concat().into();
        TestChain::from_genesis(&genesis)
    };
    let alice = person(0).address;
    let to_itself = |input: Bytes| RunTransaction { input, ..run(1, Lane::Cron, alice, alice, 200_000) };

    let mut chain = delegating_to(WITNESS);
    chain.plant_runs(&[to_itself(Bytes::new())]);
    let output = chain.produce(vec![]).output;
    assert!(run_receipt(&output, 1).outcome.is_success());
    assert_eq!(Address::from_word(chain.state.slot(alice, 0).into()), alice, "it wrote its own storage");
    chain.replay();

    let mut chain = delegating_to(DESTRUCTIBLE);
    chain.plant_runs(&[to_itself(to(NOWHERE, &[]))]);
    let balance = chain.balance(alice);
    let output = chain.produce(vec![]).output;
    assert!(run_receipt(&output, 1).outcome.is_success());
    assert_eq!((chain.balance(alice), chain.balance(NOWHERE)), (U256::ZERO, balance), "it gave all away");
    chain.replay();
}

/// Burning is counted in runs as in transactions.
#[test]
fn a_contract_that_dies_in_a_run_burns_what_it_held() {
    let call = RunTransaction {
        value: Wei(U256::from(13)),
        input: born_to_burn(),
        ..run(1, Lane::Cron, person(0).address, CREATOR, 300_000)
    };
    let mut chain = with_runs(&[call]);
    let output = chain.produce(vec![]).output;
    assert_eq!(output.burned.0, U256::from(13) + Gas(300_000).cost(base_fee(&output)).0);
    chain.replay();
}

/// The genesis of the gas comparison: something to clear, and an account that delegates.
fn for_comparison() -> TestChain {
    let mut genesis = genesis();
    let storage = (1..=60).map(|slot| (U256::from(slot), U256::from(slot))).collect();
    genesis.allocations.get_mut(&CLEARER).unwrap().storage = storage;
    let delegating = genesis.allocations.get_mut(&person(5).address).unwrap();
    *delegating = Allocation {
        code: [&[0xef, 0x01, 0x00], COUNTER.as_slice()].concat().into(),
        nonce: 1,
        ..delegating.clone()
    };
    TestChain::from_genesis(&genesis)
}

/// A run pays for the same call what its owner would pay by signing it: intrinsic gas, capped refund, calldata
/// floor, the same things warm.
#[test]
fn a_run_costs_what_the_transaction_would() {
    let identity = Address::with_last_byte(4);
    let calls: Vec<(&str, Address, u64, Bytes)> = vec![
        ("to nobody", NOWHERE, 0, Bytes::new()),
        ("money to nobody", NOWHERE, 7, Bytes::new()),
        ("money to someone", person(2).address, 7, Bytes::new()),
        ("to itself", person(0).address, 7, Bytes::new()),
        ("calldata under the floor", NOWHERE, 0, vec![1; 1_000].into()),
        ("floor above execution", COUNTER, 0, vec![1; 2_000].into()),
        ("execution above the floor", WRITER, 0, words(9, 500)),
        ("a counter", COUNTER, 0, Bytes::new()),
        ("a revert", REVERTER, 0, Bytes::new()),
        ("out of gas", BURNER, 0, Bytes::new()),
        ("an invalid opcode", FAILER, 0, Bytes::new()),
        ("a small refund", CLEARER, 0, words(1, 0)),
        ("a refund at its cap", CLEARER, 0, words(60, 0)),
        ("a refund that is reverted", FORWARD_AND_REVERT, 0, to(CLEARER, &words(9, 0))),
        ("a refund below the floor", CLEARER, 0, [&words(2, 0)[..], &[1; 900]].concat().into()),
        ("logs", LOGGER, 0, vec![3; 99].into()),
        ("a creation", CREATOR, 3, deploy(&[0x00])),
        ("a death", CREATOR, 3, born_to_die(person(6).address)),
        ("a delegate", person(5).address, 0, Bytes::new()),
        ("a warm fee recipient", FORWARDER, 1, to(FEE_RECIPIENT, &[])),
        ("a warm sender", FORWARDER, 1, to(person(0).address, &[])),
        ("a warm target", FORWARDER, 0, to(FORWARDER, &to(NOWHERE, &[]))),
        ("a precompile", identity, 0, vec![9; 70].into()),
        ("a precompile, forwarded", FORWARDER, 0, to(identity, &[9; 70])),
        ("a door", almanac_primitives::addresses::PARAMETERS, 0, vec![1, 2, 3, 4].into()),
    ];
    let alice = person(0);
    for (name, target, value, input) in calls {
        let signed = |gas: u64| {
            let mut chain = for_comparison();
            let tx = eip1559(0, TxKind::Call(target), value, input.clone(), gas);
            let produced = chain.produce(vec![sign(tx, alice.secret)]);
            let receipt = produced.receipt(0);
            (receipt.outcome.clone(), receipt.gas_used, receipt.logs.clone())
        };
        let scheduled = |gas: u64, lane: Lane| {
            let mut chain = for_comparison();
            let run = RunTransaction {
                value: Wei(U256::from(value)),
                input: input.clone(),
                ..run(1, lane, alice.address, target, gas)
            };
            chain.plant_runs(&[run]);
            let output = chain.produce(vec![]).output;
            let receipt = run_receipt(&output, 1);
            let mut logs = receipt.logs.clone();
            assert!(logs.pop_if(|log| log.address == LEDGER).is_some(), "and the ledger of what came back");
            assert_eq!(logs.pop().unwrap().address, CRON_REGISTRY, "its door tells of it last");
            (receipt.outcome.clone(), receipt.gas_used, logs)
        };
        let least = 21_000 + input.iter().map(|byte| if *byte == 0 { 10 } else { 40 }).sum::<u64>();
        let (_, used, _) = signed(1_000_000);
        // Plenty, the least allowed, and around what it uses, where the last unit decides.
        for gas in [1_000_000, least, used.0, used.0 - 1, used.0 + 1, used.0 * 5 / 4] {
            if gas < least {
                continue;
            }
            let expected = signed(gas);
            assert_eq!(scheduled(gas, Lane::Cron), expected, "{name} with {gas} gas");
            assert_eq!(scheduled(gas, Lane::Reserved), expected, "{name} with {gas} gas, reserved");
        }
    }
}

#[test]
fn a_run_below_its_intrinsic_gas_runs_out_of_it() {
    let cases = [(Bytes::new(), 21_000), (vec![1; 10].into(), 21_400), (vec![0; 10].into(), 21_100)];
    for (input, needed) in cases {
        let with_gas =
            |gas| RunTransaction { input: input.clone(), ..run(7, Lane::Cron, owner(7), NOWHERE, gas) };
        let output = with_runs(&[with_gas(needed)]).produce(vec![]).output;
        assert_eq!(run_receipt(&output, 7).gas_used, Gas(needed));
        for given in [needed - 1, 0] {
            let output = with_runs(&[with_gas(given)]).produce(vec![]).output;
            let receipt = run_receipt(&output, 7);
            assert_eq!(receipt.outcome, Outcome::Halted(Halt::OutOfGas));
            assert_eq!(receipt.gas_used, Gas(given), "all of it is gone");
        }
    }
}

/// The calendar, and every question that it was asked: queue, time, most entries.
#[derive(Debug, Default)]
struct AskedAgenda(Mutex<Vec<(Queue, TimestampMs, usize)>>);

impl Agenda for AskedAgenda {
    fn due_from(
        &self,
        state: &dyn StateRead,
        queue: Queue,
        until: u64,
        from: Option<Entry>,
        count_max: usize,
    ) -> Result<Vec<Entry>, CalendarError> {
        self.0.lock().unwrap().push((queue, TimestampMs(until), count_max));
        CalendarAgenda.due_from(state, queue, until, from, count_max)
    }

    fn next_due(
        &self,
        state: &dyn StateRead,
        parameters: &Parameters,
        base_fee: GasPrice,
    ) -> Result<Option<TimestampMs>, CalendarError> {
        CalendarAgenda.next_due(state, parameters, base_fee)
    }
}

#[test]
fn each_lane_is_asked_for_a_bounded_number() {
    let runs = (0..=LANE_BLOCK_RUNS_MAX as u64).map(|id| run(id, Lane::Reserved, owner(id), NOWHERE, 21_000));
    let mut chain = with_runs(&runs.collect::<Vec<_>>());
    let agenda = Arc::new(AskedAgenda::default());
    chain.agenda = agenda.clone();
    let now = chain.input().timestamp;

    let (output, _) = build(&chain, vec![]);

    let asked = agenda.0.lock().unwrap().clone();
    let cheapest = TimestampMs(u64::MAX - u64::try_from(base_fee(&output).0).unwrap());
    assert_eq!(
        asked,
        [
            // The full lane a second time, page by page.
            (Queue::Reserved, now, LANE_BLOCK_RUNS_MAX),
            (Queue::Reserved, now, LANE_BLOCK_RUNS_MAX),
            (Queue::Cron, now, LANE_BLOCK_RUNS_MAX),
            // Does anything wait at all? Then those that can pay, and those that are due.
            (Queue::Expiring, TimestampMs(u64::MAX), 1),
            (Queue::Waiting, cheapest, 1_000),
            (Queue::Market, now, 5_000),
            (Queue::Spare, now, SPARE_BLOCK_LOOKS_MAX as usize),
            // Schedules whose signatures did not come.
            (Queue::Signing, now, 500),
            // The ends that are over at block 1.
            (Queue::Kept, TimestampMs(1), usize::try_from(BLOCK_SWEEPS_MAX).unwrap()),
        ]
    );
    assert_eq!(ran(&output).len(), LANE_BLOCK_RUNS_MAX + 1, "FLIP330-11: only gas bounds booked runs");
}

/// The agenda sees the parent's state alone: what this block does is for the next one.
#[test]
fn nothing_that_a_block_does_changes_what_is_due_in_it() {
    let alice = person(0).address;
    let mut chain = TestChain::new();
    let first = run(1, Lane::Reserved, alice, COUNTER, 100_000);
    let second = run(2, Lane::Cron, alice, COUNTER, 100_000);
    let third = run(3, Lane::Spare, alice, COUNTER, 100_000);
    chain.plant_runs(&[first, second, third]);
    let output = chain.produce(vec![call(person(0), 0, COUNTER, vec![], 100_000)]).output;
    assert_eq!(ran(&output), [1, 2, 3], "all three, although the first had already counted");
    assert_eq!(count_of(&chain.state, alice), U256::from(4));
    assert_eq!(ran(&chain.produce(vec![]).output), [0u64; 0]);
}

/// Runs see what ran before them in the block.
#[test]
fn runs_build_on_each_other_and_on_transactions() {
    let (alice, bob) = (person(0), owner(1));
    let gives =
        RunTransaction { value: Wei(U256::from(9)), ..run(1, Lane::Reserved, alice.address, bob, 21_000) };
    let passes_on = RunTransaction { value: Wei(U256::from(9)), ..run(2, Lane::Spare, bob, NOWHERE, 21_000) };
    let mut chain = with_runs(&[passes_on, gives]);
    let output = chain.produce(vec![]).output;
    assert!(run_receipt(&output, 2).outcome.is_success());
    assert_eq!(chain.balance(NOWHERE), U256::from(9));
    assert!(!chain.state.0.contains_key(&StateKey::Account(bob)), "an account with nothing left is none");
}

/// Nobody can change the runs: a body that was made for other runs does not give the same block.
#[test]
fn a_block_made_without_a_due_run_is_refused() {
    let mut chain = with_runs(&[run(1, Lane::Cron, owner(1), COUNTER, 100_000)]);
    let (honest, _) = build(&chain, vec![]);
    let mut elsewhere = TestChain::new();
    let dishonest = elsewhere.produce(vec![]).output;
    let mut next = chain.state.clone();
    next.apply(&dishonest.diff);
    let error = chain.verify(&dishonest.block(next.commitment())).unwrap_err();
    assert!(error.contains("gas_used"), "{error}");
    assert_ne!(honest, dishonest);
    assert_eq!(ran(&chain.produce(vec![]).output), [1]);
}
