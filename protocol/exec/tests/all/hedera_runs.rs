//! Runs of the schedule service: where they stand, who pays, what a failure undoes (HEDERA-07, -12, -14 … -17).

use crate::{
    keys::rotating,
    support::{contracts::*, native::*, signed::*, *},
};
use alloy_primitives::{Address, U256};
use alloy_sol_types::SolEvent as _;
use almanac_exec::Executed;
use almanac_primitives::{
    Gas, GasPrice, Genesis, Halt, Lane, NativeTransaction, Outcome, TimestampMs, Wei,
    addresses::SCHEDULE_SERVICE,
    params::{SIGNED_EXPIRIES_MAX, SIGNED_TRIGGERS_MAX},
};
use almanac_schedule::{
    decide::End,
    life::What,
    record::{Door, Record, Status},
};

fn pay(from: Address, to: Address, value: u64) -> ServiceCall {
    ServiceCall { value: U256::from(value), ..service_call(from, to) }
}

fn single(n: u64) -> Wish {
    Wish::new(vec![service_call(person(n).address, COUNTER)])
}

fn numbered(wish: &Wish, nonce: u32) -> Wish {
    Wish { body: Body { nonce, ..wish.body.clone() }, ..wish.clone() }
}

fn count(chain: &TestChain, account: Address) -> u64 {
    runs::count_of(&chain.state, account).to()
}

/// HEDERA-12: two receipts, the run directly after its trigger, linked to its schedule.
#[test]
fn hedera_12_the_run_stands_directly_after_its_trigger() {
    let mut chain = TestChain::new();
    let wish =
        Wish::new(vec![service_call(person(1).address, COUNTER), service_call(person(2).address, WITNESS)]);
    let (id, _) = chain.create(person(1), &wish, vec![]);
    let produced = chain.produce(vec![
        transfer(person(3), 0, person(4).address, 1),
        to_service(person(2), 0, signing(id, vec![])),
        transfer(person(5), 0, person(4).address, 1),
    ]);
    let kinds: Vec<u8> = produced.output.receipts.iter().map(|receipt| receipt.transaction_type).collect();
    assert_eq!(kinds, [0x70, 2, 2, 0x71, 2]);
    let receipt = &produced.output.receipts[3];
    assert_eq!(receipt.schedule_ref.unwrap().schedule, id);
    let Executed::Run(run) = &produced.output.transactions[3] else { panic!("a run") };
    assert_eq!(
        (run.lane, run.to, &run.input),
        (Lane::Signed, SCHEDULE_SERVICE, &wish.bytes()),
        "all calls are in it"
    );
    // msg.sender and tx.origin are the account of each call.
    let witness = |slot| Address::from_word(chain.state.slot(WITNESS, slot).into());
    assert_eq!((witness(0), witness(1)), (person(2).address, person(2).address));
    assert_eq!(count(&chain, person(1).address), 1);
    let told: Vec<_> = produced.output.events.iter().map(|event| (event.index, &event.event.what)).collect();
    assert!(matches!(told[0], (2, What::Processed { .. })), "{told:?}");
    assert!(matches!(told[1], (3, What::Executed { is_success: true, .. })), "{told:?}");
    assert!(matches!(told[2], (3, What::Ended { end: End::Succeeded, .. })), "{told:?}");
    chain.replay();
}

/// HEDERA-12: the gas of the run is part of the limit of its trigger, and of nothing that the trigger pays.
#[test]
fn hedera_12_both_sides_of_the_gas_for_the_run() {
    let wish = single(1);
    let with = |gas: u64| {
        let mut chain = TestChain::new();
        let (id, _) = chain.create(person(0), &wish, vec![]);
        let input = signing(id, vec![wish.signed(person(1))]);
        let produced = chain.produce(vec![call(person(2), 0, SCHEDULE_SERVICE, input, gas)]);
        chain.replay();
        (
            code(produced.receipt(0)),
            produced.receipt(0).gas_used.0,
            run_codes(&produced).len(),
            chain.info(id).0,
        )
    };
    let (answer, used, ran, _) = with(PLENTY_GAS);
    assert_eq!((answer, ran), (22, 1));
    assert!(used < 150_000, "the run's gas is not in it: {used}");
    // What it needs before refunds, which are counted at the end, and the run's limit.
    let mut needed = used + 200_000;
    while with(needed).0 != 22 {
        needed += 100;
    }
    let least = (needed - 100..=needed).find(|gas| with(*gas).0 == 22).unwrap();
    assert_eq!(with(least), (22, used, 1, 212));
    assert_eq!(with(least - 1), (-1, least - 1, 0, 22), "one short, and nothing of it happened");
}

/// A frame that fails takes its trigger with it, and gives back what it had set aside.
#[test]
fn hedera_07_a_trigger_that_is_reverted_triggers_nothing() {
    let mut chain = TestChain::new();
    let mut wish = Wish::new(vec![service_call(FORWARD_AND_REVERT, COUNTER)]);
    wish.body.gasLimit = 1_000_000;
    let (id, _) = chain.create(person(0), &wish, vec![]);
    let input = to(SCHEDULE_SERVICE, &signing(id, vec![]));
    let produced = chain.produce(vec![call(person(2), 0, FORWARD_AND_REVERT, input, 2_000_000)]);
    assert!(matches!(produced.receipt(0).outcome, Outcome::Reverted(_)));
    assert!(produced.receipt(0).gas_used.0 < 200_000, "{:?}", produced.receipt(0).gas_used);
    assert_eq!((run_codes(&produced).len(), chain.info(id).0), (0, 22));
    assert_eq!(chain.info(id).1.signers.len(), 0);
    chain.replay();
}

/// HEDERA-14: a run that fails undoes all of its calls; the signature stands and the schedule is over.
#[test]
fn hedera_14_one_failing_call_undoes_all_of_them() {
    for (target, gas, expected) in [(REVERTER, 200_000, 33), (FAILER, 200_000, 33), (BURNER, 100_000, 30)] {
        let mut chain = TestChain::new();
        let mut wish = Wish::new(vec![
            pay(person(1).address, person(7).address, 5),
            service_call(person(1).address, COUNTER),
            service_call(person(2).address, target),
            service_call(person(1).address, COUNTER),
        ]);
        wish.body.gasLimit = gas;
        let (id, _) = chain.create(person(1), &wish, vec![]);
        let before = chain.balance(person(7).address);
        let produced = chain.serve(person(2), signing(id, vec![]));
        assert_eq!(code(produced.receipt(0)), 22, "the sign stands");
        let run = runs::run_receipt(&produced.output, id.0);
        // INVALID uses up all gas as well, and is no lack of it.
        assert_eq!((run_codes(&produced), run.failed_call), (vec![(id.0, expected)], Some(2)));
        assert_eq!((count(&chain, person(1).address), chain.balance(person(7).address)), (0, before));
        assert_eq!((chain.info(id).0, chain.info(id).1.ended, chain.round_of(&wish)), (212, 1, 1));
        chain.replay();
    }
}

/// HEDERA-15: the creator pays the base fee for the gas that was used, and nothing else. Who triggers the run pays its
/// own gas, and the tip for the place of both.
#[test]
fn hedera_15_the_creator_pays_for_what_was_used() {
    let mut chain = TestChain::new();
    let wish = single(1);
    let (id, _) = chain.create(person(0), &wish, vec![]);
    let balances = |chain: &TestChain| [0, 1, 2].map(|n| chain.balance(person(n).address));
    let before = balances(&chain);
    let produced = chain.serve(person(2), signing(id, vec![wish.signed(person(1))]));
    let run = runs::run_receipt(&produced.output, id.0);
    let fee = run.gas_used.cost(base_fee(&produced.output)).0;
    let after = balances(&chain);
    assert_eq!(run.effective_gas_price, base_fee(&produced.output));
    assert_eq!((before[0] - after[0], before[1]), (fee, after[1]));
    let sign_fee = produced.receipt(0).gas_used.cost(produced.receipt(0).effective_gas_price).0;
    let tip = GasPrice(produced.receipt(0).effective_gas_price.0 - base_fee(&produced.output).0);
    assert_eq!(before[2] - after[2], sign_fee + Gas(wish.body.gasLimit).cost(tip).0);
}

/// HEDERA-15, attack 39: nobody pays without consent.
#[test]
fn hedera_15_a_payer_must_sign() {
    let mut chain = TestChain::new();
    let wish = Wish { payer: Some(person(5).address), ..single(1) };
    let (id, produced) = chain.create(person(1), &wish, vec![]);
    assert_eq!(run_codes(&produced), []);
    let before = [1, 5].map(|n| chain.balance(person(n).address));
    let produced = chain.serve(person(2), signing(id, vec![wish.signed(person(5))]));
    let fee = runs::run_receipt(&produced.output, id.0).gas_used.cost(base_fee(&produced.output)).0;
    assert_eq!(run_codes(&produced), [(id.0, 22)]);
    assert_eq!([1, 5].map(|n| chain.balance(person(n).address)), [before[0], before[1] - fee]);
}

/// HEDERA-15: a payer that is poor when it matters.
#[test]
fn hedera_15_a_payer_that_cannot_pay_fails_the_run() {
    let mut chain = TestChain::new();
    let poor = ed_person(3);
    let wish = Wish { payer: Some(poor.address()), ..single(1) };
    let (id, _) = chain.create(person(1), &wish, vec![]);
    // One wei short of the whole limit at the price of its block, two blocks from here.
    let needed = |chain: &TestChain| 200_000 * runs::base_fee_next(chain);
    chain.produce(vec![]);
    let produced = chain.produce(vec![]);
    let next = needed(&chain);
    assert!(produced.refused.is_empty());
    let sign = |chain: &TestChain| {
        to_service(person(2), chain.nonce(person(2).address), signing(id, vec![wish.signed(poor)]))
    };
    let short = u64::try_from(next - 1).unwrap();
    let give = transfer(person(3), 0, poor.address(), short);
    let produced = chain.produce(vec![give, sign(&chain)]);
    assert_eq!(code(produced.receipt(1)), 22);
    assert_eq!(run_codes(&produced), [(id.0, 10)]);
    let run = runs::run_receipt(&produced.output, id.0);
    assert_eq!((&run.outcome, run.gas_used.0), (&Outcome::Halted(Halt::InsufficientBalance), 0));
    assert_eq!(chain.balance(poor.address()), U256::from(short), "it paid nothing");
    assert_eq!((count(&chain, person(1).address), chain.round_of(&wish)), (0, 0), "no signature is spent");
    assert_eq!((chain.info(id).1.ended, chain.add(person(9), id, vec![])), (1, 213), "and it is over");
    chain.replay();
}

/// HEDERA-15: exactly enough is enough.
#[test]
fn hedera_15_a_payer_with_exactly_enough_pays() {
    let mut chain = TestChain::new();
    let poor = ed_person(3);
    let wish = Wish { payer: Some(poor.address()), ..single(1) };
    let (id, _) = chain.create(person(1), &wish, vec![]);
    let enough = u64::try_from(200_000 * runs::base_fee_next(&chain)).unwrap();
    let give = transfer(person(3), 0, poor.address(), enough);
    let produced = chain.produce(vec![give, to_service(person(2), 0, signing(id, vec![wish.signed(poor)]))]);
    assert_eq!(run_codes(&produced), [(id.0, 22)]);
}

/// HEDERA-15: above its cap it is recorded and does not run; once the base fee has fallen, any signer's call runs it.
#[test]
fn hedera_15_a_base_fee_above_the_cap_only_delays() {
    let mut chain = TestChain::new();
    let mut wish = single(1);
    wish.body.maxFeePerGas = U256::from(runs::base_fee_next(&chain) * 3 / 4);
    let (id, produced) = chain.create(person(1), &wish, vec![]);
    assert_eq!((run_codes(&produced).len(), chain.info(id).0), (0, 22));
    assert_eq!(chain.add(person(9), id, vec![]), 205, "not yet");
    while U256::from(runs::base_fee_next(&chain)) > wish.body.maxFeePerGas {
        chain.produce(vec![]);
    }
    let produced = chain.serve(person(9), signing(id, vec![]));
    assert_eq!(run_codes(&produced), [(id.0, 22)], "whoever calls");
}

/// HEDERA-15, R-4: a contract that anybody can make call the service loses its fund at most.
#[test]
fn hedera_15_what_code_agrees_to_is_paid_from_the_fund() {
    let mut genesis = genesis();
    genesis.allocations.get_mut(&FORWARDER).unwrap().balance = Wei(U256::from(1_000));
    let mut chain = TestChain::from_genesis(&genesis);
    let wish = Wish::new(vec![pay(FORWARDER, person(7).address, 400)]);
    let drain = |chain: &mut TestChain, wish: &Wish| {
        let nonce = chain.nonce(person(6).address);
        let input = to(SCHEDULE_SERVICE, &wish.create(vec![]));
        chain.produce(vec![call(person(6), nonce, FORWARDER, input, 3_000_000)])
    };
    let before = chain.balance(person(7).address);
    // Nested, the forwarder is creator, payer and sender at once.
    let produced = drain(&mut chain, &wish);
    assert_eq!(run_codes(&produced).iter().map(|run| run.1).collect::<Vec<_>>(), [10]);
    assert_eq!((chain.balance(FORWARDER), chain.balance(person(7).address)), (U256::from(1_000), before));

    let enough = u64::try_from(200_000 * runs::base_fee_next(&chain)).unwrap() + 400;
    chain.produce(vec![funding(person(0), chain.nonce(person(0).address), FORWARDER, enough)]);
    let fund = chain.fund_of(FORWARDER);
    let produced = drain(&mut chain, &numbered(&wish, 1));
    let id = run_codes(&produced)[0].0;
    assert_eq!(run_codes(&produced), [(id, 22)]);
    let fee = runs::run_receipt(&produced.output, id).gas_used.cost(base_fee(&produced.output)).0;
    assert_eq!(chain.fund_of(FORWARDER), fund - fee - U256::from(400));
    assert_eq!(chain.balance(FORWARDER), U256::from(1_000), "its balance is its own");
    assert_eq!(chain.balance(person(7).address), before + U256::from(400));
    chain.replay();
}

/// What a failing run was lent returns to the fund, and so does the gas that it did not use.
#[test]
fn hedera_15_a_failed_run_returns_what_it_was_lent() {
    let mut chain = TestChain::new();
    let wish = Wish::new(vec![pay(FORWARDER, person(7).address, 400), service_call(FORWARDER, REVERTER)]);
    chain.produce(vec![funding(person(0), 0, FORWARDER, 1_000_000_000_000_000)]);
    let before = (chain.fund_of(FORWARDER), chain.balance(person(7).address));
    let input = to(SCHEDULE_SERVICE, &wish.create(vec![]));
    let produced = chain.produce(vec![call(person(6), 0, FORWARDER, input, 3_000_000)]);
    let id = run_codes(&produced)[0].0;
    assert_eq!(run_codes(&produced), [(id, 33)]);
    let fee = runs::run_receipt(&produced.output, id).gas_used.cost(base_fee(&produced.output)).0;
    assert_eq!((chain.fund_of(FORWARDER), chain.balance(person(7).address)), (before.0 - fee, before.1));
    assert_eq!(chain.balance(FORWARDER), U256::ZERO);
}

/// A run that signs triggers the next one directly after itself, in the gas that it has set aside.
#[test]
fn hedera_07_a_run_may_trigger_the_next() {
    let mut chain = TestChain::new();
    let inner = single(1);
    let (inner_id, _) = chain.create(person(0), &inner, vec![]);
    let mut outer = Wish::new(vec![ServiceCall {
        data: signing(inner_id, vec![]).into(),
        ..service_call(person(1).address, SCHEDULE_SERVICE)
    }]);
    outer.body.gasLimit = 600_000;
    let (outer_id, produced) = chain.create(person(1), &outer, vec![]);
    assert_eq!(run_codes(&produced), [(outer_id.0, 22), (inner_id.0, 22)]);
    let used = runs::run_receipt(&produced.output, outer_id.0).gas_used.0;
    assert!(used < 400_000, "the inner run's gas is not the outer's: {used}");
    assert_eq!(count(&chain, person(1).address), 1);
    // Too little gas for both: the outer run fails, and nothing was signed.
    let inner = numbered(&inner, 9);
    let (inner_id, _) = chain.create(person(0), &inner, vec![]);
    outer.body.calls[0].data = signing(inner_id, vec![]).into();
    outer.body.gasLimit = 200_000;
    let (outer_id, produced) = chain.create(person(1), &outer, vec![]);
    assert_eq!(run_codes(&produced), [(outer_id.0, 30)]);
    assert_eq!(chain.info(inner_id).1.signers.len(), 0);
    chain.replay();
}

/// One transaction triggers sixteen, and not one more.
#[test]
fn hedera_07_both_sides_of_the_number_of_triggers() {
    let most = u32::try_from(SIGNED_TRIGGERS_MAX).unwrap();
    for (number, ran) in [(most, 16), (most + 1, 0)] {
        let genesis = Genesis { parameters: [("signed_caller_percent".to_owned(), 100)].into(), ..genesis() };
        let mut chain = TestChain::from_genesis(&genesis);
        let mut wish = single(1);
        wish.body.gasLimit = 60_000;
        let ids: Vec<_> =
            (0..number).map(|n| chain.create(person(0), &numbered(&wish, n), vec![]).0).collect();
        let calls = ids.iter().map(|id| native_call(SCHEDULE_SERVICE, 0, signing(*id, vec![]))).collect();
        let batch = NativeTransaction { gas_limit: 6_000_000, ..native(person(1).address, 0, calls) };
        let produced = chain.produce(vec![sign_native(batch, &[person(1).into()])]);
        assert_eq!(run_codes(&produced).len(), ran);
        assert_eq!(produced.receipt(0).outcome.is_success(), ran > 0, "all or nothing");
        assert_eq!(count(&chain, person(1).address), ran as u64);
        if ran > 0 {
            let run: Vec<u64> = run_codes(&produced).iter().map(|run| run.0).collect();
            assert_eq!(run, ids.iter().map(|id| id.0).collect::<Vec<_>>(), "in the order of their triggers");
        }
        chain.replay();
    }
}

/// A rotation after the trigger, in the same batch, comes too late to stop the run.
#[test]
fn hedera_07_the_trigger_decides() {
    let mut chain = TestChain::new();
    let (id, _) = chain.create(person(0), &single(1), vec![]);
    let key = Key::from(ed_person(1));
    let rotation = rotating(person(1), 0, &key.encoded(), 1, &[key]);
    let calls = vec![
        native_call(SCHEDULE_SERVICE, 0, signing(id, vec![])),
        native_call(almanac_primitives::addresses::ACCOUNTS, 0, rotation.input().clone()),
    ];
    let batch = NativeTransaction { gas_limit: 3_000_000, ..native(person(1).address, 0, calls) };
    let produced = chain.produce(vec![sign_native(batch, &[person(1).into()])]);
    assert_eq!(produced.receipt(0).outcome, Outcome::Success);
    assert_eq!(run_codes(&produced), [(id.0, 22)]);
}

/// HEDERA-16: what created a schedule may expire long before it runs.
#[test]
fn hedera_16_no_window_of_validity_ends_a_schedule() {
    let mut chain = TestChain::new();
    let wish = single(1);
    let expiration = chain.input().timestamp.seconds() + 2;
    let calls = vec![native_call(SCHEDULE_SERVICE, 0, wish.create(vec![]))];
    let create =
        NativeTransaction { gas_limit: 1_000_000, ..orderless(person(0).address, 5, expiration, calls) };
    let produced = chain.produce(vec![sign_native(create, &[person(0).into()])]);
    let id = created(produced.receipt(0));
    let later = chain.input_at(TimestampMs(chain.head.timestamp.0 + 1_799_000));
    let produced = chain.produce_with(&later, vec![to_service(person(1), 0, signing(id, vec![]))]);
    assert_eq!(run_codes(&produced), [(id.0, 22)]);
}

/// HEDERA-17: both sides of the time at which one expires; it is then readable for a while, and at last it is gone.
#[test]
fn hedera_17_a_schedule_expires_on_time_and_is_cleared() {
    let genesis = Genesis { parameters: [("ended_kept_blocks".to_owned(), 2)].into(), ..genesis() };
    let mut chain = TestChain::from_genesis(&genesis);
    let wish = Wish { admin_key: Key::from(ed_person(5)).encoded(), ..single(1) };
    let (id, _) = chain.create(person(0), &wish, vec![]);
    let due = chain.head.timestamp.0 + 1_800_000;
    let input = chain.input_at(TimestampMs(due - 1));
    let produced = chain.produce_with(&input, vec![]);
    assert_eq!(
        (produced.output.receipts[0].logs.len(), chain.info(id).0),
        (0, 212),
        "asked in the block after it"
    );
    let input = chain.input_at(TimestampMs(due));
    let produced = chain.produce_with(&input, vec![to_service(person(1), 0, signing(id, vec![]))]);
    assert_eq!(ScheduleExpired::decode_log(&produced.output.receipts[0].logs[0]).unwrap().id, id.0);
    assert_eq!(code(produced.receipt(0)), 314);
    let (code, info) = chain.info(id);
    assert_eq!((code, info.ended, info.endedAt), (212, 3, due / 1_000));
    assert_eq!(chain.delete(person(1), id, vec![]), 314);
    chain.produce(vec![]);
    assert_eq!(chain.info(id).0, 201, "the record is gone");
    assert!(ledger::records(&chain.state).is_empty());
    chain.replay();
}

/// HEDERA-17: more than a block ends wait for the next one, in the order of their creation, and cannot be signed.
#[test]
fn hedera_17_a_block_ends_a_bounded_number() {
    let parameters = [
        ("signed_expiries_max".to_owned(), SIGNED_EXPIRIES_MAX.min),
        ("signed_caller_percent".to_owned(), 100),
    ];
    let mut chain = TestChain::from_genesis(&Genesis { parameters: parameters.into(), ..genesis() });
    let ids: Vec<_> = (0..12).map(|n| chain.create(person(0), &numbered(&single(1), n), vec![]).0).collect();
    let late = TimestampMs(chain.head.timestamp.0 + 1_800_000);
    let expired = |produced: &Produced| -> Vec<u64> {
        let logs = produced.output.receipts[0].logs.iter();
        logs.filter_map(|log| ScheduleExpired::decode_log(log).ok()).map(|log| log.id).collect()
    };
    let input = chain.input_at(late);
    let last = numbered(&single(1), 11);
    let again = numbered(&single(1), 10);
    let produced = chain.produce_with(
        &input,
        vec![
            to_service(person(1), 0, signing(ids[11], vec![last.signed(person(1))])),
            to_service(person(1), 1, again.create(vec![])),
        ],
    );
    assert_eq!(expired(&produced), ids[..10].iter().map(|id| id.0).collect::<Vec<_>>());
    assert_eq!(code(produced.receipt(0)), 314, "late, though no block has ended it");
    // Created again, the old one ends at once.
    assert_eq!(code(produced.receipt(1)), 22);
    let renewed = created(produced.receipt(1));
    assert!(
        produced
            .receipt(1)
            .logs
            .iter()
            .any(|log| ScheduleExpired::decode_log(log).is_ok_and(|log| log.id == ids[10].0))
    );
    assert_eq!(run_codes(&produced), [(renewed.0, 22)], "and its creator is who has to sign");
    assert_eq!(expired(&chain.produce(vec![])), [ids[11].0]);
    chain.replay();
}

/// An execution time without waitForExpiry is when it expires.
#[test]
fn hedera_20_without_waiting_the_time_is_when_it_expires() {
    let mut chain = TestChain::new();
    let now = chain.input().timestamp.seconds();
    let at = |second: u64| Wish { body: Body { executionTime: second, ..single(1).body }, ..single(1) };
    let days = 62 * 24 * 60 * 60;
    let mut answer = |wish: &Wish| {
        let nonce = chain.nonce(person(0).address);
        let input = chain.input_at(TimestampMs(now * 1_000 + nonce));
        code(chain.produce_with(&input, vec![to_service(person(0), nonce, wish.create(vec![]))]).receipt(0))
    };
    assert_eq!(answer(&at(now)), 307);
    assert_eq!(answer(&at(now + 1)), 22);
    assert_eq!(answer(&at(now + days)), 22);
    assert_eq!(answer(&at(now + days + 1)), 306);
    let input = chain.input_at(TimestampMs((now + 1) * 1_000));
    let produced = chain.produce_with(&input, vec![]);
    assert_eq!(produced.output.receipts[0].logs.len(), 1);
}

/// Attack 41: sign, delete and expire in one block, in every order: one end, whichever comes first.
#[test]
fn hedera_08_one_schedule_has_one_end() {
    let wish = Wish { admin_key: Key::from(person(5)).encoded(), ..single(1) };
    for order in 0..2 {
        for is_late in [false, true] {
            let mut chain = TestChain::new();
            let (id, _) = chain.create(person(0), &wish, vec![]);
            let sign = to_service(person(1), 0, signing(id, vec![]));
            let delete = to_service(person(5), 0, deleting(id, vec![]));
            let both = if order == 0 { vec![sign, delete] } else { vec![delete, sign] };
            let wait = if is_late { 1_800_000 } else { 1_000 };
            let input = chain.input_at(TimestampMs(chain.head.timestamp.0 + wait));
            let produced = chain.produce_with(&input, both);
            let codes = [0, 1].map(|n| code(produced.receipt(n)));
            let ends = produced.output.events.iter();
            let ends: Vec<_> = ends.filter(|event| matches!(event.event.what, What::Ended { .. })).collect();
            assert_eq!(ends.len(), 1, "{order} {is_late}");
            let record = Record::read(&chain.state, id).unwrap().unwrap();
            let expected = match (order, is_late) {
                (_, true) => (Status::Expired, [314, 314], 0),
                (0, _) => (Status::Succeeded, [22, 213], 1),
                _ => (Status::Cancelled, [22, 212], 0),
            };
            let ran = count(&chain, person(1).address);
            assert_eq!((record.head.status, codes, ran), expected, "{order} {is_late}");
            assert_eq!((record.escrow, record.body.door()), (Wei::ZERO, Door::Signed));
            chain.replay();
        }
    }
}

/// Sign and delete in one transaction: what is triggered can no longer be deleted.
#[test]
fn hedera_08_what_is_triggered_cannot_be_deleted_in_the_same_transaction() {
    let mut chain = TestChain::new();
    let wish = Wish { admin_key: Key::from(person(1)).encoded(), ..single(1) };
    let (id, _) = chain.create(person(0), &wish, vec![]);
    let calls = vec![
        native_call(SCHEDULE_SERVICE, 0, signing(id, vec![])),
        native_call(SCHEDULE_SERVICE, 0, deleting(id, vec![])),
    ];
    let batch = NativeTransaction { gas_limit: 3_000_000, ..native(person(1).address, 0, calls) };
    let produced = chain.produce(vec![sign_native(batch, &[person(1).into()])]);
    assert_eq!((code(produced.receipt(0)), produced.receipt(0).failed_call), (213, Some(1)));
    assert_eq!(chain.info(id).0, 22, "all of it is undone");
}
