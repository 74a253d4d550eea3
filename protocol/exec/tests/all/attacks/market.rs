//! Attacks on scheduled transactions: bids that cost nothing, runs that stand in the way, damage to their records.

use crate::support::{
    contracts::*,
    market::{ran, *},
    runs::{self, NOWHERE, paying, price, run},
    *,
};
use alloy_primitives::{Address, U256};
use alloy_sol_types::{SolCall, SolError as _, SolEvent};
use almanac_exec::{BlockOutput, Candidates, execute};
use almanac_primitives::{
    GasPrice, Lane, Outcome, RunTransaction, ScheduleId, StateCommitment, StateKey, TimestampMs,
    addresses::{CALLBACKS, LEDGER, PARAMETERS, SCHEDULED_TRANSACTIONS},
    params::MARKET_PAUSED,
    state::encode_slot,
};
use almanac_schedule::{
    Record,
    calendar::Queue,
    record::{Status as Held, escrow_slot, head_slot},
    testing,
};

alloy_sol_types::sol!("../../contracts/ILedger.sol");
alloy_sol_types::sol!("../../contracts/IDoor.sol");

/// Many refundable bids just above the base fee do not keep dearer ones out of the limit.
#[test]
fn attack_03_refundable_bids_do_not_starve_dearer_ones() {
    let mut market = Market::with_parameters(&[("market_ready_max", 20)]);
    let due = market.next() + 20_000;
    let least = u64::try_from(market.base_fee()).unwrap() + 1;
    let cheap = ScheduledTransaction { maxGasUnitPrice: least, ..txn(due) };
    market.insert_all(sender(), &vec![cheap; 80]);
    // Honest ones come later, and bid more.
    let keys = market.insert_all(sender(), &[txn(due + 5_000), txn(due + 5_100)]);
    // Full blocks of user transactions: only what bids more than they pay has a place.
    let price = u128::from(2 * GWEI);
    let full = |market: &mut Market, at: u64| {
        let filling = market.filling(5, price, 29_700_000);
        market.block(at, vec![filling])
    };
    full(&mut market, due + 100);
    let produced = full(&mut market, due + 6_000);
    let first: Vec<_> = ran(&produced).into_iter().take(2).collect();
    assert_eq!(first, [market.id(&keys[0]), market.id(&keys[1])]);
}

/// Runs that cancel each other within a block take no places: those behind them run in the same block.
#[test]
fn attack_03_runs_that_are_cancelled_in_their_block_keep_nobody_out() {
    let mut market = Market::with_parameters(&[("market_ready_max", 20)]);
    let due = market.next() + 20_000;
    let attacker = person(3);
    let high = ScheduledTransaction {
        senderAddr: attacker.address,
        maxGasUnitPrice: 60 * GWEI,
        to: person(7).address,
        ..txn(due)
    };
    let first = ScheduledTransaction {
        maxGasUnitPrice: 61 * GWEI,
        maxGasAmount: 200_000,
        to: SCHEDULED_TRANSACTIONS,
        data: IScheduledTransactions::cancelAllCall {}.abi_encode().into(),
        ..high
    };
    let attacking = market.insert_all(attacker, &[vec![first], vec![high; 29]].concat());
    let honest: Vec<_> =
        (0..5).map(|n| ScheduledTransaction { maxGasUnitPrice: 40 * GWEI - n, ..txn(due) }).collect();
    let keys = market.insert_all(sender(), &honest);
    let produced = market.block(due + 100, vec![]);
    let expected: Vec<_> = attacking.iter().take(1).chain(&keys).map(|key| market.id(key)).collect();
    assert_eq!(ran(&produced), expected, "the one that cancels, and all honest ones");
    market.chain.replay();
}

/// Creation prepays what happens where nobody pays: by Ethereum's prices, slot by slot and log by log.
#[test]
fn attack_01_creation_pays_for_the_whole_life() {
    let mut market = Market::new();
    let asked = txn(market.next() + 60_000);
    market.insert(&asked).unwrap();
    let call = IScheduledTransactions::insertCall { txn: asked.clone() };
    let bytes = call.abi_encode().len() as u64;
    let receipt = market.send(sender(), deposit(&asked), call);
    // Less the transaction's own gas, and what a flood in one transaction saves since it reads its slots once.
    let each = receipt.gas_used.0 - 21_000 - 16 * bytes - 3 * 2_100;
    let (slot, entry, log, payment) = (5_000, 15_000, 4_000, 9_000);
    // Wait: the head, its entries. End: head and escrow, a payment to an account that exists, its entries, a log. Sweep:
    // head, escrow and name, an entry.
    let unpaid = (slot + entry) + (2 * slot + payment + entry + log) + (3 * slot + entry);
    // What it does itself: three new slots, an entry, the body.
    let own = 3 * 22_100 + entry + 200 * 200;
    assert!(each >= unpaid + own, "{each} gas for {unpaid} and {own}");
    println!("an insert costs {} gas, {each} without calldata", receipt.gas_used.0);
}

/// A sender whose own run empties it before its transaction takes nobody's place: the choice goes on.
#[test]
fn attack_03_a_self_draining_sender_does_not_empty_blocks() {
    let mut genesis = genesis();
    let account = genesis.allocations.get_mut(&person(0).address).unwrap();
    account.code = [&[0xef, 0x01, 0x00], DESTRUCTIBLE.as_slice()].concat().into();
    let mut chain = TestChain::from_genesis(&genesis);
    let at = |chain: &TestChain, steps| price(chain, steps);
    let drain = RunTransaction {
        gas_price: GasPrice(at(&chain, 500)),
        input: to(NOWHERE, &[]),
        ..run(1, Lane::Market, person(0).address, person(0).address, 200_000)
    };
    chain.plant_runs(&[drain]);
    let mut candidates = vec![paying(person(0), 1, at(&chain, 400), NOWHERE, 21_000)];
    // Shuffled prices: dearer ones behind the one that fails.
    let prices = [600u64, 450, 300, 700, 200];
    candidates
        .extend((1..).zip(prices).map(|(n, steps)| paying(person(n), 0, at(&chain, steps), NOWHERE, 21_000)));
    let produced = chain.produce(candidates);
    assert_eq!(
        produced.output.block_body().count(),
        4,
        "only one that would have to precede the run is left"
    );
    chain.replay();
}

/// A run in the name of the door cannot make the door an owner, which anyone could act as.
#[test]
fn attack_06_a_run_without_a_signer_cannot_insert_or_cancel_all() {
    let mut market = Market::new();
    let due = market.next() + 10_000;
    let inner = ScheduledTransaction { senderAddr: SCHEDULED_TRANSACTIONS, ..txn(due + 60_000) };
    let calls = [
        IScheduledTransactions::insertCall { txn: inner }.abi_encode(),
        IScheduledTransactions::cancelAllCall {}.abi_encode(),
    ];
    let txns = calls.map(|call| ScheduledTransaction {
        passSigner: false,
        to: SCHEDULED_TRANSACTIONS,
        data: call.into(),
        maxGasAmount: 500_000,
        ..txn(due)
    });
    let keys = market.insert_all(sender(), &txns);
    market.at(due + 100);
    let refusal = IDoor::CallerIsSystem { caller: SCHEDULED_TRANSACTIONS }.abi_encode();
    for key in &keys {
        let receipt = market.run(market.id(key));
        assert_eq!(receipt.outcome, Outcome::Reverted(refusal.clone().into()));
    }
    market.chain.replay();
}

/// Ten thousand cancelled by one cancelAll, in front of an honest one: five thousand are refunded in each block, and it
/// runs when the last of those that bid more is gone.
#[test]
fn attack_22_ten_thousand_stale_ones_are_refunded_in_bounded_work() {
    let mut market = Market::new();
    let due = market.next() + 10_000;
    let from = sender().address;
    let stale = (0..10_000u64).map(|n| RunTransaction {
        gas_price: GasPrice(9_000_000_000),
        ..run(1_000_000 + n, Lane::Market, from, COUNTER, 21_000)
    });
    let records: Vec<_> = stale.map(|run| testing::record(TimestampMs(due), &run)).collect();
    market.chain.plant(records);
    let other = ScheduledTransaction { senderAddr: person(1).address, ..txn(due) };
    let honest = market.insert_all(person(1), &[other]);
    let id = market.id(&honest[0]);
    market.cancel_all(sender());
    let mut blocks = Vec::new();
    for n in 1.. {
        let input = market.chain.input_at(TimestampMs(due + n * 100));
        let output = market.chain.produce_once(&input, vec![]).output;
        let refunded: Vec<_> = output
            .receipts
            .iter()
            .flat_map(|receipt| events::<TransactionCancelledEvent>(&receipt.logs))
            .collect();
        blocks.push(refunded.len());
        if runs::ran(&output) == [id.0] {
            break;
        }
        assert_eq!(runs::ran(&output), [0u64; 0]);
        assert!(n < 12, "{blocks:?}");
    }
    assert!(blocks.iter().all(|refunded| *refunded <= 5_000), "{blocks:?}");
    assert!(blocks.iter().sum::<usize>() >= 9_000, "{blocks:?}");
}

/// A block, executed twice with the same result and without a loss of money, and without the checks of `TestChain`,
/// which would find the damage.
fn block(chain: &mut TestChain, ms: u64) -> BlockOutput {
    let input = chain.input_at(TimestampMs(ms));
    let (bob, nonce) = (person(7), chain.nonce(person(7).address));
    let [output, again] = [0, 1].map(|_| {
        let mut source = Candidates::new(vec![recovered(transfer(bob, nonce, person(9).address, 1))]);
        let output = execute(&chain.state, &*chain.agenda, &input, &mut source).expect("blocks go on");
        assert_eq!(source.refusals(), [], "users go on");
        output
    });
    assert_eq!(output, again);
    let before = chain.state.total();
    chain.state.apply(&output.diff);
    assert_eq!(chain.state.total() + output.burned.0, before, "value is conserved");
    chain.head = output.block(StateCommitment::default()).header;
    output
}

fn tells<E: SolEvent>(output: &BlockOutput) -> usize {
    let logs = output.receipts.iter().flat_map(|receipt| &receipt.logs);
    logs.filter(|log| log.address == LEDGER && log.topics()[0] == E::SIGNATURE_HASH).count()
}

fn slot(slot: U256) -> StateKey {
    StateKey::Slot(LEDGER, slot)
}

/// Three that are due at once; the one in the middle is damaged.
fn three() -> (Market, u64, [ScheduleId; 3], [ScheduleMapKey; 3]) {
    let mut market = Market::new();
    let due = market.next() + 10_000;
    let keys: [_; 3] = market.insert_all(sender(), &vec![txn(due); 3]).try_into().unwrap();
    let ids = [0, 1, 2].map(|n: usize| market.id(&keys[n]));
    (market, due, ids, keys)
}

/// A fault that belongs to a schedule quarantines that one, with an event; the others run, and users go on.
#[test]
fn aip125_23_a_damaged_record_is_quarantined_and_the_others_run() {
    type Damage = fn(&mut TestChain, ScheduleId);
    let damages: [(&str, Damage); 4] = [
        ("no body", |chain, id| {
            chain.state.0.remove(&StateKey::Body(id));
        }),
        ("a body that does not decode", |chain, id| {
            chain.state.0.insert(StateKey::Body(id), vec![9; 9].into());
        }),
        ("a head that does not decode", |chain, id| {
            chain.state.0.insert(slot(head_slot(id)), encode_slot(U256::from(7)).unwrap());
        }),
        ("an escrow below its deposit", |chain, id| {
            chain.state.0.insert(slot(escrow_slot(id)), encode_slot(U256::ONE).unwrap());
        }),
    ];
    for (name, damage) in damages {
        let (mut market, due, ids, _) = three();
        damage(&mut market.chain, ids[1]);
        let output = block(&mut market.chain, due + 100);
        let ran: Vec<_> = runs::ran(&output).into_iter().filter(|id| *id != ids[1].0).collect();
        assert_eq!(ran, [ids[0].0, ids[2].0], "{name}");
        assert_eq!(tells::<ILedger::ScheduleQuarantined>(&output), 1, "{name}");
        assert_eq!(tells::<ILedger::LanePaused>(&output), 0, "{name}");
        let output = block(&mut market.chain, due + 200);
        assert_eq!(
            (runs::ran(&output).len(), tells::<ILedger::ScheduleQuarantined>(&output)),
            (0, 0),
            "{name}"
        );
    }
}

/// Its sender may cancel a quarantined one and gets the whole deposit.
#[test]
fn aip125_23_what_is_quarantined_can_be_cancelled() {
    let (mut market, due, ids, keys) = three();
    // It asks for more than its escrow holds: the run cannot begin.
    let key = slot(escrow_slot(ids[1]));
    market.chain.state.0.insert(key, encode_slot(U256::from(1_000)).unwrap());
    block(&mut market.chain, due + 100);
    let record = Record::read(&market.chain.state, ids[1]).unwrap().unwrap();
    assert_eq!(record.head.status, Held::Quarantined);
    assert_eq!(market.status(&keys[1]), Status::Quarantined);
    let call = IScheduledTransactions::cancelCall { key: keys[1].clone() }.abi_encode();
    let result = market.chain.call(sender().address, SCHEDULED_TRANSACTIONS, call);
    assert_eq!(result.outcome, Outcome::Success);
    assert_eq!(
        IScheduledTransactions::cancelCall::abi_decode_returns(&result.output).unwrap(),
        U256::from(1_000)
    );
}

/// A fault that belongs to no schedule pauses the lane, with an event, and user transactions and other lanes go on.
#[test]
fn aip125_23_a_damaged_lane_is_paused_and_blocks_go_on() {
    let (mut market, due, ids, _) = three();
    let lane = U256::from_limbs([0, 0, 5, 0]);
    market.chain.state.0.insert(slot(lane), encode_slot(U256::MAX).unwrap());
    let job = run(77, Lane::Cron, Address::repeat_byte(0x77), COUNTER, 100_000);
    let record = testing::record(TimestampMs(due), &job);
    market.chain.state.0.extend(testing::plant(&market.chain.state, &[record]));
    let output = block(&mut market.chain, due + 100);
    assert_eq!(tells::<ILedger::LanePaused>(&output), 1);
    assert_eq!(runs::ran(&output), [77]);
    let paused = market.chain.state.slot(PARAMETERS, MARKET_PAUSED.slot);
    assert_eq!(paused.as_limbs()[0], 1);
    let output = block(&mut market.chain, due + 200);
    assert_eq!((tells::<ILedger::LanePaused>(&output), runs::ran(&output).len()), (0, 0), "once");
    // Repaired and resumed, they run.
    market.chain.state.0.remove(&slot(lane));
    market.chain.state.0.remove(&StateKey::Slot(PARAMETERS, U256::from(MARKET_PAUSED.slot)));
    assert_eq!(runs::ran(&block(&mut market.chain, due + 300)), ids.map(|id| id.0));
}

/// A ledger that cannot pay a refund quarantines the schedule at its settlement; the block goes on.
#[test]
fn aip125_23_a_settlement_that_cannot_be_paid_quarantines() {
    let (mut market, due, ids, _) = three();
    let mut ledger = market.chain.state.account(LEDGER);
    // Enough for two.
    ledger.balance -= ledger.balance / U256::from(3);
    market.chain.state.0.insert(StateKey::Account(LEDGER), ledger.encode());
    let output = block(&mut market.chain, due + 100);
    assert_eq!(runs::ran(&output), ids.map(|id| id.0), "all of them ran");
    assert_eq!(tells::<ILedger::ScheduleQuarantined>(&output), 1);
    let held = Record::read(&market.chain.state, ids[2]).unwrap().unwrap();
    assert_eq!(held.head.status, Held::Quarantined);
    assert_eq!(held.escrow.0, deposit(&txn(due)), "its whole deposit is owed");
}

/// An entry of the calendar without a record is dropped.
#[test]
fn aip125_23_a_stray_entry_is_dropped() {
    let (mut market, due, ids, _) = three();
    for key in Record::keys(ids[1]) {
        market.chain.state.0.remove(&key);
    }
    let output = block(&mut market.chain, due + 100);
    assert_eq!(runs::ran(&output), [ids[0].0, ids[2].0]);
    let calendar = almanac_schedule::Calendar::new(&market.chain.state);
    assert_eq!(calendar.count(Queue::Market).unwrap(), 0);
}

/// What one door says of its schedules concerns no other.
#[test]
fn attack_06_a_key_leads_to_no_other_door() {
    let mut market = Market::new();
    let key = market.insert(&txn(market.next() + 60_000)).unwrap();
    let id = market.id(&key);
    let call = callbacks::ICallbackScheduler::getStatusCall { id: id.0 }.abi_encode();
    let result = market.chain.call(sender().address, CALLBACKS, call);
    let status = callbacks::ICallbackScheduler::getStatusCall::abi_decode_returns(&result.output).unwrap();
    assert_eq!(status, callbacks::Status::Unknown);
    let job = market.chain.job(U256::from(id.0));
    assert_eq!(job.owner, Address::ZERO);
}
