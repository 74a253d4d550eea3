//! ARC-21, the block builder: what runs when, in which order, at whose cost.

use crate::support::{Person, Produced, TestChain, contracts::*, cron::*, person};
use alloy_primitives::{Address, B256, Bytes, U256};
use alloy_sol_types::{SolCall, SolEvent};
use almanac_exec::Executed;
use almanac_primitives::{
    ConsensusContext, Gas, GasPrice, Halt, Outcome, StateKey, TimestampMs,
    addresses::{CRON_REGISTRY, LEDGER, PARAMETERS},
    params::{CRON_BLOCK_EXHAUSTIONS_MAX, Parameter},
};
use almanac_schedule::ledger::MemoryLedger;

fn owner() -> Person {
    person(0)
}

fn rich() -> U256 {
    U256::from(10u64.pow(17))
}

fn cost(gas: u64, base_fee: GasPrice) -> U256 {
    Gas(gas).cost(base_fee).0
}

fn exhausted(block: &Produced) -> Vec<(U256, String)> {
    events::<JobExhausted>(&block.logs()).into_iter().map(|event| (event.id, event.reason)).collect()
}

#[test]
fn arc21_11_due_jobs_run_before_transactions_by_time_then_id() {
    let mut chain = TestChain::new();
    let due = chain.next_seconds() + HOUR;
    let at = |chain: &mut TestChain, time: u64| {
        let order = order(chain).at(time);
        chain.schedule(owner(), &order).unwrap()
    };
    let late = at(&mut chain, due + 2);
    let first = at(&mut chain, due);
    let second = at(&mut chain, due);
    let early = at(&mut chain, due - 5);

    let user = crate::support::transfer(person(1), 0, person(2).address, 1);
    let input = chain.input_at(TimestampMs((due + 2) * 1_000));
    let block = chain.produce_with(&input, vec![user]);
    assert_eq!(block.ran(), [early, first, second, late]);
    let kinds = block.output.transactions.iter().map(|executed| match executed {
        Executed::Prologue(_) => 'p',
        Executed::Run(_) => 'r',
        Executed::User(_) => 'u',
    });
    let kinds: String = kinds.collect();
    assert_eq!(kinds, "prrrru");
}

#[test]
fn arc21_11_never_before_its_time_to_the_millisecond() {
    let mut chain = TestChain::new();
    let order = order(&chain);
    let due = order.next_run_at.to::<u64>() * 1_000;
    let id = chain.schedule(owner(), &order).unwrap();
    let before = chain.input_at(TimestampMs(due - 1));
    assert!(chain.produce_with(&before, vec![]).ran().is_empty());
    let at = chain.input_at(TimestampMs(due));
    assert_eq!(chain.produce_with(&at, vec![]).ran(), [id]);
}

#[test]
fn arc21_11_times_compare_as_numbers() {
    let mut chain = TestChain::new();
    // As text, the later one would come first.
    let (nines, zeroes) = (1_999_999_999, 2_000_000_000);
    let later = chain.schedule(owner(), &order(&chain).at(zeroes)).unwrap();
    let earlier = chain.schedule(owner(), &order(&chain).at(nines)).unwrap();
    assert_eq!(chain.at(zeroes).ran(), [earlier, later]);
}

#[test]
fn arc21_12_a_job_that_cannot_pay_ends_and_gets_its_rest() {
    let mut chain = TestChain::new();
    let base_fee = chain.next_base_fee();
    // Enough for one run and a half at the fee of today, which only falls on an idle chain.
    let value = cost(RUN_GAS, base_fee) * U256::from(3) / U256::from(2);
    let order = order(&chain).every(MINUTE).with_value(value);
    let due = order.next_run_at.to::<u64>();
    let id = chain.schedule(owner(), &order).unwrap();

    let mut spent = U256::ZERO;
    for n in 0..200 {
        let before = chain.balance(owner().address);
        let block = chain.at(due + n * MINUTE);
        if block.ran() == [id] {
            spent += cost(RUN_GAS, crate::support::base_fee(&block.output));
            assert_eq!(chain.job(id).gasEscrow, value - spent);
            continue;
        }
        assert_eq!(exhausted(&block), [(id, "insufficient escrow".to_owned())]);
        let [said, refunded] = &block.output.receipts[0].logs[..] else { panic!("the prologue says both") };
        assert_eq!(said.address, CRON_REGISTRY);
        let told = ScheduleRefunded::decode_log(refunded).unwrap();
        assert_eq!((told.address, told.id, told.amount), (LEDGER, id, value - spent));
        assert_eq!(chain.balance(owner().address), before + value - spent, "the rest");
        assert_eq!(chain.job(id).id, U256::ZERO);
        assert!(n > 0, "it ran at least once");
        return;
    }
    panic!("it never ended");
}

#[test]
fn arc21_12_exactly_enough_is_enough() {
    for (missing, runs) in [(0, true), (1, false)] {
        let mut chain = TestChain::new();
        let order = order(&chain);
        let due = order.next_run_at.to::<u64>();
        let id = chain.schedule(owner(), &order).unwrap();
        let input = chain.input_at(TimestampMs(due * 1_000));
        let fee = almanac_exec::Environment::derive(&input, &chain.state).unwrap().base_fee;
        // The escrow as if earlier runs had left it so.
        let left = cost(RUN_GAS, fee) - U256::from(missing);
        let slot = almanac_schedule::record::escrow_slot(id_of(id));
        let stored = almanac_primitives::state::encode_slot(left).unwrap();
        chain.state.0.insert(StateKey::Slot(LEDGER, slot), stored);
        let block = chain.at(due);
        assert_eq!(block.ran().len(), usize::from(runs), "{missing} wei missing");
        assert_eq!(exhausted(&block).len(), usize::from(!runs));
    }
}

#[test]
fn arc21_13_the_call_comes_from_the_registry_without_value() {
    let mut chain = TestChain::new();
    let order = order(&chain).calling(WITNESS, [1, 2, 3, 4]).gas(200_000).with_value(rich());
    chain.schedule(owner(), &order).unwrap();
    let block = chain.at(order.next_run_at.to());
    let registry = U256::from_be_slice(CRON_REGISTRY.as_slice());
    let seen = [0, 1, 2, 3].map(|slot| chain.state.slot(WITNESS, slot));
    let fee = U256::from(crate::support::base_fee(&block.output).0);
    assert_eq!(seen, [registry, registry, U256::ZERO, fee], "sender, origin, value, price");
}

#[test]
fn arc21_13_the_calls_logs_come_first_then_the_registrys() {
    let mut chain = TestChain::new();
    let order = order(&chain).calling(LOGGER, [9; 36]);
    let id = chain.schedule(owner(), &order).unwrap();
    let block = chain.at(order.next_run_at.to());
    let [run] = block.runs()[..] else { panic!("one run") };
    assert_eq!(run.outcome, Outcome::Success);
    let addresses: Vec<_> = run.logs.iter().map(|log| log.address).collect();
    assert_eq!(addresses, [LOGGER, CRON_REGISTRY, LEDGER], "and last the ledger's, of what the end returned");
    let refunded = ScheduleRefunded::decode_log(&run.logs[2]).unwrap();
    let cost = cost(RUN_GAS, crate::support::base_fee(&block.output));
    assert_eq!((refunded.id, refunded.amount), (id, order.value - cost));
    let event = only::<JobExecuted>(&run.logs);
    assert_eq!((event.id, event.success, event.gasUsed), (id, true, U256::from(run.gas_used.0)));
    assert_eq!(run.schedule_ref.unwrap().schedule, id_of(id));
    assert_eq!(run.logs[1].topics()[0], JobExecuted::SIGNATURE_HASH);
}

#[test]
fn arc21_13_a_failed_run_is_a_run_with_its_event() {
    for (target, gas) in [(REVERTER, RUN_GAS), (BURNER, 50_000), (FAILER, 60_000)] {
        let mut chain = TestChain::new();
        let order = order(&chain).calling(target, [1, 2, 3, 4]).gas(gas).every(MINUTE).runs(2);
        let due = order.next_run_at.to::<u64>();
        let id = chain.schedule(owner(), &order).unwrap();
        let block = chain.at(due);
        let [run] = block.runs()[..] else { panic!("one run") };
        assert!(!run.outcome.is_success());
        let event = only::<JobExecuted>(&run.logs);
        assert_eq!((event.id, event.success), (id, false));
        assert_eq!(run.logs.len(), 1, "what the call logged went with it");
        assert_eq!(chain.job(id).runsLeft, U256::ONE, "it counts");
        let block = chain.at(due + MINUTE);
        assert_eq!(block.ran(), [id], "a revert does not kill the series");
        assert_eq!(exhausted(&block), [(id, "max runs reached".to_owned())]);
    }
}

#[test]
fn arc21_13_gas_covers_what_an_ordinary_transaction_pays_up_front() {
    // Four bytes that are not zero: 21,000 + 4 × 16, and by the floor of EIP-7623 21,000 + 4 × 40.
    for (gas, is_success) in [(21_159, false), (21_160, true)] {
        let mut chain = TestChain::new();
        let nobody = person(3).address;
        let order = order(&chain).calling(nobody, [1, 2, 3, 4]).gas(gas);
        chain.schedule(owner(), &order).unwrap();
        let block = chain.at(order.next_run_at.to());
        let [run] = block.runs()[..] else { panic!("one run") };
        assert_eq!(run.outcome.is_success(), is_success, "{gas} gas");
        assert_eq!(run.gas_used, Gas(gas));
        if !is_success {
            assert_eq!(run.outcome, Outcome::Halted(Halt::OutOfGas));
        }
    }
}

/// Gas that a run uses which calls nobody with four bytes that are not zero: intrinsic gas and nothing else.
const NOBODY_GAS: u64 = 21_160;

#[test]
fn arc21_14_the_whole_limit_is_burned_and_at_most_half_of_it_returns() {
    // Limit, options, gas that is paid for. Half of the limit is just below what is used, just that, just above.
    let cases = [
        (2 * NOBODY_GAS, 0, 2 * NOBODY_GAS),
        (2 * NOBODY_GAS - 2, 1, NOBODY_GAS),
        (2 * NOBODY_GAS, 1, NOBODY_GAS),
        (2 * NOBODY_GAS + 2, 1, NOBODY_GAS + 1),
        (NOBODY_GAS, 1, NOBODY_GAS),
        (5_000_000, 1, 2_500_000),
    ];
    for (limit, options, paid) in cases {
        let mut chain = TestChain::new();
        let nobody = Address::repeat_byte(0xc7);
        let order = order(&chain).calling(nobody, [1, 2, 3, 4]).every(MINUTE).gas(limit).with_value(rich());
        let order = order.with_options(options).refunding(owner().address);
        let due = order.next_run_at.to::<u64>();
        let id = chain.schedule(owner(), &order).unwrap();
        let block = chain.at(due);
        assert_eq!(block.runs()[0].gas_used, Gas(NOBODY_GAS), "what it uses is what its receipt says");
        let charged = cost(paid, crate::support::base_fee(&block.output));
        assert_eq!(chain.job(id).gasEscrow, order.value - charged, "limit {limit}, options {options}");
        assert_eq!(block.output.burned.0, charged, "as a base fee is");
    }
}

#[test]
fn arc21_15_a_series_never_drifts() {
    let mut chain = TestChain::new();
    let order = order(&chain).every(MINUTE).runs(4);
    let due = order.next_run_at.to::<u64>();
    let id = chain.schedule(owner(), &order).unwrap();
    // Blocks come when they come.
    for (n, late) in [(0u64, 0u64), (1, 7), (2, 59), (3, 1)] {
        assert_eq!(chain.job(id).nextRunAt, U256::from(due + n * MINUTE));
        assert_eq!(chain.job(id).runsLeft, U256::from(4 - n));
        let block = chain.at(due + n * MINUTE + late);
        assert_eq!(block.ran(), [id]);
        assert_eq!(block.runs()[0].schedule_ref.unwrap().number, n);
    }
}

#[test]
fn arc21_15_the_next_time_is_set_before_the_call() {
    let mut chain = TestChain::new();
    let due = chain.next_seconds() + HOUR;
    // The target logs what the registry says of the job while it runs.
    let id = U256::from(almanac_primitives::ScheduleId::new(1, 1, 0).unwrap().0);
    let ask = to(CRON_REGISTRY, &ICronRegistry::getJobCall { id }.abi_encode());
    let order = order(&chain).calling(ECHO, ask).at(due).every(MINUTE).runs(3);
    assert_eq!(chain.schedule(owner(), &order), Ok(id));
    let block = chain.at(due);
    let told = block.runs()[0].logs.iter().find(|log| log.address == ECHO).expect("it logged");
    let job = ICronRegistry::getJobCall::abi_decode_returns(&told.data.data).unwrap();
    assert_eq!((job.nextRunAt, job.runsLeft), (U256::from(due + MINUTE), U256::from(2)));
    assert_eq!(
        job.gasEscrow,
        order.value - cost(RUN_GAS, crate::support::base_fee(&block.output)),
        "paid already"
    );
}

#[test]
fn arc21_16_the_last_of_n_runs_refunds_the_rest() {
    let mut chain = TestChain::new();
    let refund_to = Address::repeat_byte(0x99);
    let order = order(&chain).every(MINUTE).runs(2).refunding(refund_to);
    let due = order.next_run_at.to::<u64>();
    let id = chain.schedule(owner(), &order).unwrap();
    let mut charged = U256::ZERO;
    for n in 0..2 {
        let block = chain.at(due + n * MINUTE);
        charged += cost(RUN_GAS, crate::support::base_fee(&block.output));
        let expected = if n == 1 { vec![(id, "max runs reached".to_owned())] } else { vec![] };
        assert_eq!(exhausted(&block), expected);
    }
    assert_eq!(chain.balance(refund_to), order.value - charged);
    assert_eq!(chain.balance(LEDGER), U256::ZERO);
}

#[test]
fn arc21_16_a_one_shot_runs_once_whatever_it_says() {
    for max_runs in [0, 1, 5] {
        let mut chain = TestChain::new();
        let order = order(&chain).runs(max_runs);
        let due = order.next_run_at.to::<u64>();
        let before = chain.balance(owner().address);
        let tx = paid_call(owner(), 0, CRON_REGISTRY, order.value, order.calldata());
        let receipt = chain.produce(vec![tx]).receipt(0).clone();
        let id = scheduled(&receipt).unwrap();
        assert_eq!(chain.job(id).maxRuns, U256::from(max_runs));
        let block = chain.at(due);
        assert_eq!(block.ran(), [id]);
        assert!(exhausted(&block).is_empty(), "it ends with JobExecuted");
        let charged = cost(RUN_GAS, crate::support::base_fee(&block.output));
        let fee = receipt.gas_used.cost(receipt.effective_gas_price).0;
        assert_eq!(chain.balance(owner().address), before - fee - charged);
        assert!(chain.at(due + MINUTE).ran().is_empty());
    }
}

#[test]
fn arc21_17_the_pass_stops_at_the_first_that_does_not_fit() {
    let mut chain = TestChain::new();
    let due = chain.next_seconds() + HOUR;
    let ids: Vec<_> = [5_000_000, 5_000_000, 4_999_999, 21_000]
        .iter()
        .map(|gas| {
            let order = order(&chain).at(due).gas(*gas).with_value(rich());
            chain.schedule(owner(), &order).unwrap()
        })
        .collect();
    // One gas is left of the budget; the small one behind does not fit, and a smaller one could not overtake.
    assert_eq!(chain.at(due).ran(), ids[..3]);
    assert_eq!(chain.at(due + 1).ran(), ids[3..]);
}

#[test]
fn arc21_17_a_small_job_does_not_overtake_a_large_one() {
    let mut chain = TestChain::new();
    let due = chain.next_seconds() + HOUR;
    let sizes = [5_000_000, 5_000_000, 3_000_000, 2_000_001, 21_000];
    let mut ids = Vec::new();
    for gas in sizes {
        let order = order(&chain).at(due).gas(gas).with_value(rich());
        ids.push(chain.schedule(owner(), &order).unwrap());
    }
    assert_eq!(chain.at(due).ran(), ids[..3]);
    assert_eq!(chain.at(due + 1).ran(), ids[3..], "in the same order");
}

#[test]
fn arc21_17_users_keep_half_a_block() {
    let mut chain = TestChain::new();
    let due = chain.next_seconds() + HOUR;
    for _ in 0..4 {
        let order = order(&chain).at(due).gas(5_000_000).calling(BURNER, [1, 2, 3, 4]).with_value(rich());
        chain.schedule(owner(), &order).unwrap();
    }
    let tx = crate::support::call(person(1), 0, BURNER, Bytes::new(), 15_000_000);
    let input = chain.input_at(TimestampMs(due * 1_000));
    let block = chain.produce_with(&input, vec![tx]);
    assert_eq!(block.ran().len(), 3);
    assert_eq!(block.receipt(0).gas_used, Gas(15_000_000), "there was room for all of it");
    assert_eq!(block.output.gas_used, Gas(30_000_000));
}

#[test]
fn arc21_18_a_job_that_is_scheduled_in_a_block_never_runs_in_it() {
    let mut chain = TestChain::new();
    let due = chain.next_seconds() + HOUR;
    // A run of the block at `due` schedules a job for a second later.
    let successor = order(&chain).at(due + 1);
    let input = to(CRON_REGISTRY, &successor.calldata());
    // Runs bring no value, so the forwarder cannot pay for it; a user's transaction in the same block does.
    let first = order(&chain).at(due).calling(FORWARDER, input).gas(1_000_000).with_value(rich());
    let id = chain.schedule(owner(), &first).unwrap();
    let tx = paid_call(person(1), 0, CRON_REGISTRY, successor.value, successor.calldata());
    let at = chain.input_at(TimestampMs(due * 1_000));
    let block = chain.produce_with(&at, vec![tx]);
    assert_eq!(block.ran(), [id]);
    assert!(!block.runs()[0].outcome.is_success(), "EscrowTooLow: a run has no money of its own");
    let born = scheduled(block.receipt(0)).unwrap();

    // A block that jumps far beyond: the snapshot of what is due was its parent's.
    let order = order(&chain);
    let tx = paid_call(person(1), 1, CRON_REGISTRY, order.value, order.at(due + 2 * HOUR).calldata());
    let far = chain.input_at(TimestampMs((due + 2 * HOUR - 1) * 1_000));
    let block = chain.produce_with(&far, vec![tx]);
    assert_eq!(block.ran(), [born]);
    let last = scheduled(block.receipt(0)).unwrap();
    assert_eq!(chain.at(due + 2 * HOUR).ran(), [last]);
}

#[test]
fn arc21_19_a_cancel_in_the_block_where_it_is_due_comes_after_the_run() {
    let mut chain = TestChain::new();
    let order = order(&chain).every(MINUTE);
    let due = order.next_run_at.to::<u64>();
    let id = chain.schedule(owner(), &order).unwrap();
    let tx = paid_call(owner(), 1, CRON_REGISTRY, U256::ZERO, cancel_data(id));
    let input = chain.input_at(TimestampMs(due * 1_000));
    let block = chain.produce_with(&input, vec![tx]);
    assert_eq!(block.ran(), [id]);
    let refunded = only::<JobCancelled>(&block.receipt(0).logs).refunded;
    assert_eq!(refunded, order.value - cost(RUN_GAS, crate::support::base_fee(&block.output)));
    assert!(chain.at(due + MINUTE).ran().is_empty());
}

/// A job whose owner is the forwarder, and which calls the forwarder to cancel the job `id`.
fn canceller(chain: &mut TestChain, due: u64, id: U256, interval: u64) -> U256 {
    let input = to(CRON_REGISTRY, &cancel_data(id));
    let order =
        order(chain).calling(FORWARDER, input).at(due).every(interval).gas(200_000).with_value(rich());
    let person = person(4);
    let receipt = chain.send(person, FORWARDER, rich(), to(CRON_REGISTRY, &order.calldata()));
    scheduled(&receipt).unwrap()
}

/// The id of the first job that the next block's only transaction creates.
fn next_id(chain: &TestChain) -> U256 {
    U256::from(almanac_primitives::ScheduleId::new(chain.head.number + 1, 1, 0).unwrap().0)
}

#[test]
fn arc21_19_a_job_that_another_run_cancelled_does_not_run() {
    let mut chain = TestChain::new();
    let due = chain.next_seconds() + HOUR;
    let victim_id = U256::from(almanac_primitives::ScheduleId::new(2, 1, 0).unwrap().0);
    let killer = canceller(&mut chain, due, victim_id, 0);
    let order = order(&chain).at(due).with_value(rich());
    let receipt = chain.send(person(5), FORWARDER, rich(), to(CRON_REGISTRY, &order.calldata()));
    assert_eq!(scheduled(&receipt), Ok(victim_id));
    let block = chain.at(due);
    assert_eq!(block.ran(), [killer], "the victim was cancelled before its turn");
    assert_eq!(only::<JobCancelled>(&block.runs()[0].logs).refunded, rich(), "all of it");
    assert_eq!(
        chain.balance(FORWARDER),
        rich() + rich() - cost(200_000, crate::support::base_fee(&block.output))
    );
}

#[test]
fn arc21_19_a_series_may_cancel_itself_and_a_last_run_may_not() {
    for (interval, is_success) in [(MINUTE, true), (0, false)] {
        let mut chain = TestChain::new();
        let due = chain.next_seconds() + HOUR;
        let id = next_id(&chain);
        assert_eq!(canceller(&mut chain, due, id, interval), id);
        let block = chain.at(due);
        let [run] = block.runs()[..] else { panic!("one run") };
        assert_eq!(run.outcome.is_success(), is_success);
        let charged = cost(200_000, crate::support::base_fee(&block.output));
        assert_eq!(chain.balance(FORWARDER), rich() - charged, "refunded once, either way");
        assert_eq!(chain.job(id).id, U256::ZERO);
        if !is_success {
            let expected = ICronRegistry::JobInLastRun { id };
            let reason = alloy_sol_types::SolError::abi_encode(&expected);
            assert_eq!(run.outcome, Outcome::Reverted(reason.into()));
        }
    }
}

#[test]
fn arc21_19_a_job_with_the_refund_option_that_cancels_itself_gets_half_of_the_charge() {
    let mut chain = TestChain::new();
    let due = chain.next_seconds() + HOUR;
    let id = next_id(&chain);
    let order = order(&chain)
        .calling(FORWARDER, to(CRON_REGISTRY, &cancel_data(id)))
        .at(due)
        .every(MINUTE)
        .gas(200_000)
        .with_options(1)
        .refunding(person(8).address)
        .with_value(rich());
    let before = chain.balance(person(8).address);
    let receipt = chain.send(person(4), FORWARDER, rich(), to(CRON_REGISTRY, &order.calldata()));
    assert_eq!(scheduled(&receipt), Ok(id));
    let block = chain.at(due);
    assert!(block.runs()[0].gas_used < Gas(100_000), "less than half of its limit");
    let paid = cost(100_000, crate::support::base_fee(&block.output));
    assert_eq!(chain.balance(person(8).address), before + rich() - paid);
    assert_eq!(chain.balance(LEDGER), U256::ZERO);
}

/// A job of 5 M gas that the forwarder owns, which pays for it and may cancel it.
fn giant(chain: &mut TestChain, due: u64) -> U256 {
    let order = order(chain).at(due).gas(5_000_000).with_value(rich());
    let receipt = chain.send(person(5), FORWARDER, rich(), to(CRON_REGISTRY, &order.calldata()));
    scheduled(&receipt).unwrap()
}

/// What was cancelled before its turn holds no room: those behind it run in the same block, in order.
#[test]
fn arc21_17_a_cancelled_job_gives_its_room_to_the_next_in_order() {
    let mut chain = TestChain::new();
    let due = chain.next_seconds() + HOUR;
    let victim_id = U256::from(almanac_primitives::ScheduleId::new(2, 1, 0).unwrap().0);
    let killer = canceller(&mut chain, due, victim_id, 0);
    let giants = [0; 4].map(|_| giant(&mut chain, due));
    assert_eq!(giants[0], victim_id);
    let small = order(&chain).at(due).gas(21_000).with_value(rich());
    let small = chain.schedule(owner(), &small).unwrap();
    // Killer and three giants exceed the budget; without the first one there is room for two more.
    let block = chain.at(due);
    assert_eq!(block.ran(), [killer, giants[1], giants[2]], "the fourth giant does not fit");
    assert_eq!(chain.at(due + 1).ran(), [giants[3], small], "and nobody has overtaken it");
}

#[test]
fn arc21_19_endings_are_bounded_per_block_and_hold_up_no_run() {
    let mut chain = TestChain::new();
    chain.state.set_slot(PARAMETERS, CRON_BLOCK_EXHAUSTIONS_MAX.slot, Parameter::slot_value(3));
    let due = chain.next_seconds() + HOUR;
    let mut ids = Vec::new();
    for _ in 0..8 {
        let order = order(&chain).at(due);
        ids.push(chain.schedule(owner(), &order).unwrap());
    }
    let rich_order = order(&chain).at(due + 1).with_value(rich());
    let rich_id = chain.schedule(owner(), &rich_order).unwrap();
    // All but the last lose their money.
    for id in &ids {
        let slot = almanac_schedule::record::escrow_slot(id_of(*id));
        chain.state.0.remove(&StateKey::Slot(LEDGER, slot));
    }
    let mut ended = Vec::new();
    for n in 1..=4 {
        let block = chain.at(due + n);
        let now: Vec<_> = exhausted(&block).into_iter().map(|(id, _)| id).collect();
        assert_eq!(now.len(), [3, 3, 2, 0][n as usize - 1]);
        ended.extend(now);
        assert_eq!(
            block.ran(),
            if n == 1 { vec![rich_id] } else { vec![] },
            "nobody waits for those that end"
        );
    }
    assert_eq!(ended, ids, "oldest first");
    assert_eq!(mark_of(&chain), None, "nothing is left behind");
}

/// Endings are due work like runs: no proposer may leave them out, so they shrink where views fail.
#[test]
fn arc21_17_endings_halve_with_failed_views() {
    let mut chain = TestChain::new();
    chain.state.set_slot(PARAMETERS, CRON_BLOCK_EXHAUSTIONS_MAX.slot, Parameter::slot_value(8));
    let due = chain.next_seconds() + HOUR;
    for _ in 0..24 {
        let order = order(&chain).at(due);
        let id = chain.schedule(owner(), &order).unwrap();
        let slot = almanac_schedule::record::escrow_slot(id_of(id));
        chain.state.0.remove(&StateKey::Slot(LEDGER, slot));
    }
    let mut ended_after = |failed: u64, seconds: u64| {
        let mut input = chain.input_at(TimestampMs(seconds * 1_000));
        input.consensus = ConsensusContext { view: failed + 1, ..ConsensusContext::default() };
        exhausted(&chain.produce_with(&input, vec![])).len()
    };
    let ended = [0, 1, 2, 3, 70].map(|failed| ended_after(failed, due + 1 + failed));
    assert_eq!(ended, [8, 8, 4, 2, 1]);
}

/// Looks, too: after many failed views a block looks at 64 due jobs, and goes on behind them in the next.
#[test]
fn arc21_17_looks_halve_with_failed_views() {
    let mut chain = TestChain::new();
    let due = chain.next_seconds() + HOUR;
    for _ in 0..70 {
        let order = order(&chain).at(due);
        let id = chain.schedule(owner(), &order).unwrap();
        let slot = almanac_schedule::record::escrow_slot(id_of(id));
        chain.state.0.remove(&StateKey::Slot(LEDGER, slot));
    }
    let rich_order = order(&chain).at(due + 1).with_value(rich());
    let rich_id = chain.schedule(owner(), &rich_order).unwrap();
    let ran = [1, 2].map(|seconds| {
        let mut input = chain.input_at(TimestampMs((due + seconds) * 1_000));
        input.consensus = ConsensusContext { view: 71, ..ConsensusContext::default() };
        chain.produce_with(&input, vec![]).ran()
    });
    assert_eq!(ran, [vec![], vec![rich_id]]);
}

fn mark_of(chain: &TestChain) -> Option<almanac_schedule::mark::Mark> {
    let slots = chain.state.0.iter().filter_map(|(key, value)| match key {
        StateKey::Slot(LEDGER, slot) => Some((*slot, almanac_primitives::state::decode_slot(value).unwrap())),
        _ => None,
    });
    let mut ledger = MemoryLedger { slots: slots.collect(), ..Default::default() };
    almanac_schedule::mark::load(&mut ledger, almanac_schedule::calendar::Queue::Cron).unwrap()
}

/// Its turn is over: money that comes later returns with the rest.
#[test]
fn arc21_12_a_job_that_could_not_pay_at_its_turn_ends_even_if_it_could_later() {
    let mut chain = TestChain::new();
    chain.state.set_slot(PARAMETERS, CRON_BLOCK_EXHAUSTIONS_MAX.slot, Parameter::slot_value(1));
    let due = chain.next_seconds() + HOUR;
    let ids = [0; 4].map(|_| {
        let order = order(&chain).at(due);
        chain.schedule(owner(), &order).unwrap()
    });
    for id in ids {
        chain.state.0.remove(&StateKey::Slot(LEDGER, almanac_schedule::record::escrow_slot(id_of(id))));
    }
    assert_eq!(exhausted(&chain.at(due)), [(ids[0], "insufficient escrow".to_owned())]);
    assert!(mark_of(&chain).is_some_and(|mark| mark.next.schedule > id_of(ids[3])), "all four were judged");
    let before = chain.balance(owner().address);
    let top_up = paid_call(person(1), 0, CRON_REGISTRY, rich(), top_up_data(ids[3]));
    let input = chain.input_at(TimestampMs(due * 1_000 + 500));
    let block = chain.produce_with(&input, vec![top_up]);
    assert!(block.receipt(0).outcome.is_success());
    assert_eq!(exhausted(&block)[0].0, ids[1]);
    for (n, id) in (1..).zip([ids[2], ids[3]]) {
        let block = chain.at(due + n);
        assert_eq!((block.ran(), exhausted(&block)[0].0), (vec![], id));
    }
    assert_eq!(chain.balance(owner().address), before + rich(), "its refunds go where they always go");
    assert_eq!(mark_of(&chain), None);
}

/// A series that is an interval behind has its next run in order, although the block had gone on past that time.
#[test]
fn arc21_19_a_series_that_is_behind_is_not_set_aside() {
    let mut chain = TestChain::new();
    chain.state.set_slot(PARAMETERS, CRON_BLOCK_EXHAUSTIONS_MAX.slot, Parameter::slot_value(1));
    let due = chain.next_seconds() + HOUR;
    let series = order(&chain).at(due).every(MINUTE).with_value(rich());
    let series = chain.schedule(owner(), &series).unwrap();
    let poor = [0; 3].map(|_| {
        let order = order(&chain).at(due + 2 * MINUTE + 1);
        chain.schedule(owner(), &order).unwrap()
    });
    for id in poor {
        chain.state.0.remove(&StateKey::Slot(LEDGER, almanac_schedule::record::escrow_slot(id_of(id))));
    }
    // Three times have come: each block runs one of them and ends one of the others.
    for n in 0..3 {
        let block = chain.at(due + 2 * MINUTE + 2 + n);
        assert_eq!(block.ran(), [series], "run {n}");
        assert_eq!(exhausted(&block)[0].0, poor[n as usize]);
    }
    assert_eq!(chain.job(series).nextRunAt, U256::from(due + 3 * MINUTE));
}

/// Where its owner cancels it meanwhile, nobody waits for it, and nothing is said of it.
#[test]
fn arc21_19_a_series_that_is_behind_may_be_cancelled() {
    let mut chain = TestChain::new();
    chain.state.set_slot(PARAMETERS, CRON_BLOCK_EXHAUSTIONS_MAX.slot, Parameter::slot_value(3));
    let due = chain.next_seconds() + HOUR;
    let [gone, series] = [0, 1].map(|n| {
        let series = order(&chain).at(due + n).every(MINUTE).with_value(rich());
        chain.schedule(owner(), &series).unwrap()
    });
    let poor = [0; 5].map(|_| {
        let order = order(&chain).at(due + 3 * MINUTE);
        chain.schedule(owner(), &order).unwrap()
    });
    for id in poor {
        chain.state.0.remove(&StateKey::Slot(LEDGER, almanac_schedule::record::escrow_slot(id_of(id))));
    }
    let nonce = chain.nonce(owner().address);
    let cancel = almanac_primitives::testing::call(owner(), nonce, CRON_REGISTRY, cancel_data(gone), 300_000);
    let input = chain.input_at(TimestampMs((due + 3 * MINUTE + 1) * 1_000));
    let block = chain.produce_with(&input, vec![cancel]);
    assert_eq!((block.ran(), exhausted(&block).len()), (vec![gone, series], 3));
    assert!(block.receipt(0).outcome.is_success());
    let late: Vec<_> = mark_of(&chain).unwrap().late().iter().map(|entry| entry.schedule).collect();
    assert_eq!(late, [gone, series].map(id_of), "the mark knows both");
    let block = chain.at(due + 3 * MINUTE + 2);
    let ended: Vec<_> = exhausted(&block).into_iter().map(|(id, _)| id).collect();
    assert_eq!((block.ran(), ended), (vec![series], poor[3..].to_vec()), "one more could have ended");
    let is_quiet = block.logs().iter().all(|log| log.address != LEDGER);
    assert!(is_quiet, "the ledger logs faults alone: {:?}", block.logs());
}

/// A series of a minute with options, its first time and its money.
fn halted(options: u64) -> (TestChain, U256, u64, U256) {
    let mut chain = TestChain::new();
    let order =
        order(&chain).every(MINUTE).with_options(options).refunding(owner().address).with_value(rich());
    let due = order.next_run_at.to::<u64>();
    let id = chain.schedule(owner(), &order).unwrap();
    (chain, id, due, order.value)
}

#[test]
fn arc21_20_all_missed_times_run_one_per_block() {
    let (mut chain, id, due, _) = halted(0);
    let resumed = due + 5 * MINUTE + 30;
    for n in 0..6 {
        let block = chain.at(resumed + n);
        assert_eq!(block.ran(), [id], "run {n}");
        assert_eq!(chain.job(id).nextRunAt, U256::from(due + (n + 1) * MINUTE));
    }
    assert!(chain.at(resumed + 6).ran().is_empty(), "it has caught up");
}

#[test]
fn arc21_20_latest_runs_once_for_the_latest_time() {
    let (mut chain, id, due, _) = halted(0x100);
    let block = chain.at(due + 5 * MINUTE + 30);
    assert_eq!(block.ran(), [id]);
    assert_eq!(block.runs()[0].schedule_ref.unwrap().number, 0, "skipped times are no runs");
    assert_eq!(chain.job(id).nextRunAt, U256::from(due + 6 * MINUTE));
    assert!(chain.at(due + 6 * MINUTE - 1).ran().is_empty());
    assert_eq!(chain.at(due + 6 * MINUTE).ran(), [id]);
}

#[test]
fn arc21_20_skip_runs_none_of_them_and_costs_nothing() {
    let (mut chain, id, due, value) = halted(0x200);
    let block = chain.at(due + 5 * MINUTE + 30);
    assert!(block.ran().is_empty());
    assert_eq!(chain.job(id).gasEscrow, value, "no money");
    assert_eq!(chain.job(id).nextRunAt, U256::from(due + 6 * MINUTE));
    assert_eq!(chain.at(due + 6 * MINUTE).ran(), [id]);
}

#[test]
fn arc21_20_policies_apply_only_when_the_next_time_has_come_too() {
    for options in [0, 0x100, 0x200] {
        // A second less than an interval late: nothing was missed.
        let (mut chain, id, due, _) = halted(options);
        assert_eq!(chain.at(due + MINUTE - 1).ran(), [id], "options {options:#x}");
        assert_eq!(chain.job(id).nextRunAt, U256::from(due + MINUTE));
        // Exactly one: the time after has come.
        let (mut chain, id, due, _) = halted(options);
        let ran = chain.at(due + MINUTE).ran();
        assert_eq!(ran.is_empty(), options == 0x200, "options {options:#x}");
        let next = if options == 0 { due + MINUTE } else { due + 2 * MINUTE };
        assert_eq!(chain.job(id).nextRunAt, U256::from(next), "options {options:#x}");
    }
}

#[test]
fn arc21_20_a_bounded_series_counts_only_what_ran() {
    let mut chain = TestChain::new();
    let order =
        order(&chain).every(MINUTE).runs(2).with_options(0x100).refunding(owner().address).with_value(rich());
    let due = order.next_run_at.to::<u64>();
    let id = chain.schedule(owner(), &order).unwrap();
    assert_eq!(chain.at(due + 10 * MINUTE).ran(), [id]);
    assert_eq!(chain.job(id).runsLeft, U256::ONE);
    let block = chain.at(due + 20 * MINUTE);
    assert_eq!(block.ran(), [id]);
    assert_eq!(exhausted(&block), [(id, "max runs reached".to_owned())]);
}

#[test]
fn arc21_21_a_replay_agrees_and_another_root_is_refused() {
    let mut chain = TestChain::new();
    let order = order(&chain).every(MINUTE).runs(3);
    let due = order.next_run_at.to::<u64>();
    let id = chain.schedule(owner(), &order).unwrap();
    chain.top_up(person(1), id, U256::from(5)).unwrap();
    let before = chain.state.clone();
    let head = chain.head.clone();
    chain.at(due);
    chain.replay();

    // The block of the run as a proposer would have it who left the run out.
    let mut forged = chain.blocks.last().unwrap().clone();
    (chain.state, chain.head) = (before, head);
    assert!(chain.verify(&forged).is_ok());
    forged.header.commitment.state_root = B256::repeat_byte(7);
    let refused = chain.verify(&forged).unwrap_err();
    assert!(refused.contains("commitment"), "{refused}");
}
