//! Attacks on the money: refunds, overflow, spikes of the base fee, dust, forced ether, tips.

use crate::attacks::{LEAST_RUN_GAS, NOBODY, cheap_order};
use crate::support::{contracts::*, cron::*, *};
use alloy_primitives::{Address, Bytes, TxKind, U256};
use alloy_sol_types::SolCall;
use almanac_primitives::{
    Gas, GasPrice, Lane, Outcome, ScheduleId, ScheduleRef, StateKey, TimestampMs, Wei,
    addresses::{CRON_REGISTRY, DEVELOPER, DEVELOPER_DOOR, LEDGER},
    params::{BASE_FEE_MAX, CRON_RUN_GAS_LARGEST},
};
use almanac_schedule::{
    capacity::Shares,
    cron::{Order, admit},
    decide::{Moment, RunEnd},
    ledger::MemoryLedger,
    life::{self, NewSchedule, TopUpError, What},
    record::{Body, Door, escrow_slot},
};

alloy_sol_types::sol!("../../contracts/IDeveloper.sol");

/// Refunds are credits: nobody is called, so nobody can refuse or come back in.
#[test]
fn attack_23_refund_to_a_hostile_recipient() {
    for hostile in [REVERTER, FAILER, BURNER, LOGGER, LEDGER, CRON_REGISTRY] {
        let mut chain = TestChain::new();
        let order = order(&chain).every(MINUTE).runs(1).refunding(hostile);
        let due = order.next_run_at.to();
        let cancelled = chain.schedule(person(0), &order).unwrap();
        chain.schedule(person(0), &order).unwrap();
        let before = chain.balance(hostile);
        assert_eq!(chain.cancel(person(0), cancelled).unwrap(), order.value);
        let produced = chain.at(due);
        let cost = U256::from(RUN_GAS) * U256::from(base_fee(&produced.output).0);
        assert_eq!(only::<JobExhausted>(&produced.logs()).reason, "max runs reached");
        assert_eq!(produced.runs()[0].logs.len(), 3, "two events, the ledger's, and none of the recipient's");
        let gained = chain.balance(hostile) - before;
        // What the ledger refunds to itself had been there before, as an escrow.
        let from_itself = if hostile == LEDGER { order.value * U256::from(2) } else { U256::ZERO };
        assert_eq!(gained + from_itself, order.value * U256::from(2) - cost);
    }
}

/// What was deposited is what was burned and what came back, to the wei, whatever the numbers.
#[test]
fn attack_24_rounding_leak() {
    let prices = [1, 7, 999, 1_000_000_007, BASE_FEE_MAX.0];
    for (extra, price) in (0..=1_000u64).flat_map(|extra| prices.map(|price| (extra, GasPrice(price)))) {
        let moment = moment(price);
        let deposit = Gas(LEAST_RUN_GAS).cost(price).0 + U256::from(extra);
        let order = memory_order(LEAST_RUN_GAS, deposit);
        let admitted = admit(order, &Default::default(), TimestampMs(50_000), price).unwrap();
        let (mut ledger, id) = (MemoryLedger::default(), ScheduleId(1));
        life::create(&mut ledger, id, new(admitted.body, admitted.due, deposit)).unwrap();
        let begun =
            life::begin(&mut ledger, ScheduleRef { schedule: id, number: 0 }, moment).unwrap().unwrap();
        let gas_used = Gas(LEAST_RUN_GAS - extra);
        let ended = RunEnd { outcome: &Outcome::Success, gas_used, price: GasPrice(7), place: Wei::ZERO };
        life::settle(&mut ledger, &begun, ended, moment).unwrap();
        // Less than half of its limit is never used here; the next test has the rest.
        assert_eq!(ledger.burned, gas_used.cost(price).0);
        let returned = ledger.credits.get(&NOBODY).copied().unwrap_or_default();
        assert_eq!(returned + ledger.burned, deposit, "{extra} wei more, at {price}");
        assert!(ledger.slots.is_empty());
    }
}

/// What is held is paid for: of a charge at most half returns, and an odd wei is burned.
#[test]
fn attack_24_half_of_a_charge_at_least() {
    for (limit, price) in [(21_161, 7), (21_160, 7), (42_321, 1), (5_000_000, 100_000_000)] {
        let (gas, price) = (Gas(limit), GasPrice(price));
        let moment = moment(price);
        let (charge, half) = (gas.cost(price).0, (gas.cost(price).0 + U256::ONE) / U256::from(2));
        for (used, burned) in
            [(0, half), (limit / 2, half), (limit, charge), (limit - 1, charge - U256::from(price.0))]
        {
            let order = memory_order(limit, charge);
            let body = admit(order, &Default::default(), TimestampMs(50_000), price).unwrap().body;
            let (mut ledger, id) = (MemoryLedger::default(), ScheduleId(1));
            life::create(&mut ledger, id, new(body, TimestampMs(100_000), charge)).unwrap();
            let reference = ScheduleRef { schedule: id, number: 0 };
            let begun = life::begin(&mut ledger, reference, moment).unwrap().unwrap();
            let ended = RunEnd {
                outcome: &Outcome::Success,
                gas_used: Gas(used),
                price: GasPrice(7),
                place: Wei::ZERO,
            };
            life::settle(&mut ledger, &begun, ended, moment).unwrap();
            let returned = ledger.credits.get(&NOBODY).copied().unwrap_or_default();
            assert_eq!((ledger.burned, returned), (burned, charge - burned), "{used} of {limit} at {price}");
        }
    }
}

fn moment(base_fee: GasPrice) -> Moment {
    let (now, fee_recipient) = (TimestampMs(100_000), Address::ZERO);
    let (held_until, shares) = (TimestampMs(0), Shares::DEFAULT);
    Moment { block: 1, now, base_fee, fee_recipient, held_until, shares, ended_kept_until: 2 }
}

fn new(body: Body, due: TimestampMs, escrow: U256) -> NewSchedule {
    NewSchedule { body, lane: Lane::Cron, due: Some(due), priority: 0, escrow: Wei(escrow) }
}

fn memory_order(gas: u64, escrow: U256) -> Order {
    Order {
        owner: person(0).address,
        refund_to: NOBODY,
        target: NOBODY,
        input: Bytes::from_static(&[1, 2, 3, 4]),
        next_run_at: U256::from(100),
        interval_seconds: U256::ZERO,
        runs_max: U256::ZERO,
        gas_limit: U256::from(gas),
        // Unused gas returns, so that it is counted as well.
        options: U256::ONE,
        escrow: Wei(escrow),
    }
}

fn set_base_fee(chain: &mut TestChain, base_fee: u128) {
    let set = IDeveloper::setNextBaseFeeCall { baseFee: U256::from(base_fee) }.abi_encode();
    let nonce = chain.nonce(DEVELOPER);
    let tx = impersonate(DEVELOPER, eip1559(nonce, TxKind::Call(DEVELOPER_DOOR), 0, set, 1_000_000));
    assert!(chain.produce(vec![tx]).receipt(0).outcome.is_success());
}

/// The largest gas at the largest price, and the largest escrow.
#[test]
fn attack_25_gas_times_price_overflow() {
    let mut chain = TestChain::from_genesis(&developer_genesis());
    let due = chain.next_seconds() + HOUR;
    let large = order(&chain).at(due).gas(CRON_RUN_GAS_LARGEST).with_value(U256::from(10u64.pow(18)));
    let id = chain.schedule(person(0), &large).unwrap();
    let before = chain.balance(person(0).address);
    set_base_fee(&mut chain, BASE_FEE_MAX.0);
    let produced = chain.at(due);
    assert_eq!(base_fee(&produced.output), BASE_FEE_MAX);
    assert!(produced.ran().is_empty());
    assert_eq!(only::<JobExhausted>(&produced.logs()).id, id);
    assert_eq!(chain.balance(person(0).address), before + large.value);

    let needed = Gas(CRON_RUN_GAS_LARGEST).cost(BASE_FEE_MAX).0;
    let admitted = |escrow| {
        admit(memory_order(CRON_RUN_GAS_LARGEST, escrow), &Default::default(), TimestampMs(0), BASE_FEE_MAX)
    };
    assert!(admitted(needed - U256::ONE).is_err());
    let body = admitted(needed).unwrap().body;
    let (mut ledger, id) = (MemoryLedger::default(), ScheduleId(1));
    life::create(&mut ledger, id, new(body, TimestampMs(100_000), U256::MAX - U256::ONE)).unwrap();
    let topped_up = life::top_up(&mut ledger, Door::Cron, id, Wei(U256::ONE)).unwrap();
    assert_eq!(topped_up.what, What::ToppedUp { amount: Wei(U256::ONE), escrow: Wei(U256::MAX) });
    let refused = life::top_up(&mut ledger, Door::Cron, id, Wei(U256::ONE));
    let too_much = TopUpError::TooMuch { id, escrow: Wei(U256::MAX), amount: Wei(U256::ONE) };
    assert_eq!(refused, Err(almanac_schedule::Failure::Refused(too_much)));
    assert_eq!(ledger.slots[&escrow_slot(id)], U256::MAX, "nothing changed");
}

/// The base fee is ten times as high when the job is due: whoever cannot pay ends and gets all back, whoever can pays.
#[test]
fn attack_26_base_fee_spike() {
    let mut chain = TestChain::from_genesis(&developer_genesis());
    let due = chain.next_seconds() + HOUR;
    let poor = order(&chain).at(due).every(MINUTE);
    let rich = poor.clone().with_value(poor.value * U256::from(10));
    let short = rich.clone().with_value(rich.value - U256::ONE);
    let spike = chain.next_base_fee().0 * 100;
    let [poor_id, short_id, rich_id] =
        [&poor, &short, &rich].map(|order| chain.schedule(person(0), order).unwrap());
    let before = chain.balance(person(0).address);
    // Ten runs were paid for: at a hundred times the price, ten times the money is exactly one.
    set_base_fee(&mut chain, spike);
    let produced = chain.at(due);
    assert_eq!(produced.ran(), [rich_id]);
    let ended: Vec<_> = events::<JobExhausted>(&produced.logs()).iter().map(|event| event.id).collect();
    assert_eq!(ended, [poor_id, short_id]);
    assert_eq!(chain.balance(person(0).address), before + poor.value + short.value);
    assert_eq!(chain.job(rich_id).gasEscrow, U256::ZERO);
}

/// What a job occupies is paid for byte by byte, and all of it goes when the job does.
#[test]
fn attack_28_dust_bloat() {
    let size = |chain: &TestChain| -> u64 {
        let key_bytes = 32;
        let ours = chain.state.0.iter().filter(|(key, _)| {
            matches!(key, StateKey::Body(_) | StateKey::Calendar(_) | StateKey::Slot(LEDGER, _))
        });
        ours.map(|(_, value)| key_bytes + value.len() as u64).sum()
    };
    let mut chain = TestChain::new();
    // A calendar that has been used keeps its head and one leaf.
    let first = chain.schedule(person(0), &order(&chain)).unwrap();
    chain.cancel(person(0), first).unwrap();
    for input_bytes in [4, 1_000, 16 * 1024] {
        let before = size(&chain);
        let large = order(&chain).calling(NOBODY, vec![7; input_bytes]).gas(5_000_000);
        let order = large.with_value(U256::from(10u64.pow(17)));
        let receipt = chain.send(person(0), CRON_REGISTRY, order.value, order.calldata());
        let id = scheduled(&receipt).unwrap();
        let (bytes, gas) = (size(&chain) - before, receipt.gas_used.0 - 21_000);
        assert!(gas >= 200 * bytes, "{gas} gas for {bytes} bytes: code costs 200 each");
        chain.cancel(person(0), id).unwrap();
        assert_eq!(size(&chain), before, "nothing stays");
    }
    let cheap = cheap_order(&chain);
    let least = U256::from(LEAST_RUN_GAS) * U256::from(chain.next_base_fee().0) - U256::ONE;
    assert!(matches!(chain.schedule(person(0), &cheap.with_value(least)), Err(CronError::EscrowTooLow(_))));
}

/// Ether that is forced upon the ledger belongs to nobody and changes nobody's escrow.
#[test]
fn attack_29_forced_ether() {
    let mut chain = TestChain::new();
    let order = order(&chain).every(MINUTE);
    let id = chain.schedule(person(0), &order).unwrap();
    let gift = U256::from(1_000_000);
    // From a contract that stays, and from one that is born to die.
    chain.send(person(1), DESTRUCTIBLE, gift, LEDGER.into_word().to_vec());
    chain.send(person(1), CREATOR, gift, born_to_die(LEDGER));
    assert_eq!(chain.balance(LEDGER), order.value + gift + gift);
    for data in [Bytes::new(), Bytes::from_static(&[1, 2, 3, 4])] {
        let receipt = chain.send(person(1), LEDGER, gift, data);
        assert!(matches!(receipt.outcome, Outcome::Reverted(_)), "{:?}", receipt.outcome);
    }
    assert_eq!(chain.job(id).gasEscrow, order.value);
    assert_eq!(chain.at(order.next_run_at.to()).ran(), [id]);
    let left = chain.job(id).gasEscrow;
    assert_eq!(chain.cancel(person(0), id).unwrap(), left);
    assert_eq!(chain.balance(LEDGER), gift + gift);
}

/// A job that has ended takes no money; what a sponsor gave is the owner's.
#[test]
fn attack_30_top_up_of_a_dead_job() {
    let mut chain = TestChain::new();
    let (owner, sponsor, gift) = (person(0), person(1), U256::from(10u64.pow(15)));
    let once = order(&chain);
    let dead = chain.schedule(owner, &once).unwrap();
    chain.at(once.next_run_at.to());
    let before = (chain.balance(sponsor.address), chain.balance(LEDGER));
    assert!(matches!(chain.top_up(sponsor, dead, gift), Err(CronError::UnknownJob(_))));
    assert_eq!(chain.balance(LEDGER), before.1);
    assert!(before.0 - chain.balance(sponsor.address) < gift, "only gas was paid");

    let order = order(&chain);
    let id = chain.schedule(owner, &order).unwrap();
    assert_eq!(chain.top_up(sponsor, id, gift).unwrap(), order.value + gift);
    assert!(matches!(chain.cancel(sponsor, id), Err(CronError::NotJobOwner(_))));
    assert_eq!(chain.cancel(owner, id).unwrap(), order.value + gift);
}

/// Runs pay the base fee and nothing else, and all of it is burned: a proposer gains nothing by them.
#[test]
fn attack_31_self_dealing_proposer() {
    let mut chain = TestChain::new();
    let order = order(&chain).every(MINUTE);
    let ids = [0, 1].map(|n| chain.schedule(person(n), &order).unwrap());
    let (tips, supply) = (chain.balance(FEE_RECIPIENT), chain.state.total());
    let produced = chain.at(order.next_run_at.to());
    assert_eq!(produced.ran(), ids, "by id, whoever pays what");
    assert_eq!(chain.balance(FEE_RECIPIENT), tips);
    let cost = Gas(2 * RUN_GAS).cost(base_fee(&produced.output));
    assert_eq!(produced.output.burned, cost);
    assert_eq!(supply - chain.state.total(), cost.0);
    assert_eq!(chain.balance(Address::ZERO), U256::ZERO);
}
