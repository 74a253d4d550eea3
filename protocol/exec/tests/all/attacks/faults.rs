//! Attacks on the chain's own bookkeeping: whatever is wrong with a record or with the calendar, blocks go on.
//!
//! No user can do this damage; a bug of ours might. So the state is edited by hand here, and blocks are executed
//! without the checks of `TestChain`, which would find the damage.

use crate::support::{
    contracts::COUNTER,
    cron::*,
    native::Key,
    signed::{PLENTY_GAS, Wish, created, deleting, service_call},
    *,
};
use alloy_primitives::{Bytes, TxKind, U256};
use alloy_sol_types::SolEvent;
use almanac_exec::{BlockOutput, Candidates, execute};
use almanac_primitives::{
    Outcome, Receipt, ScheduleId, StateCommitment, StateKey, TimestampMs, UserTransaction,
    addresses::{CRON_REGISTRY, LEDGER, PARAMETERS, SCHEDULE_SERVICE},
    params::CRON_PAUSED,
    state::encode_slot,
};
use almanac_schedule::{
    Record,
    record::{Status, escrow_slot, head_slot},
};

alloy_sol_types::sol!("../../contracts/ILedger.sol");

/// A block, executed twice with the same result and without a loss of money.
fn block(chain: &mut TestChain, seconds: u64, transactions: Vec<UserTransaction>) -> BlockOutput {
    let input = chain.input_at(TimestampMs(seconds * 1_000));
    let [output, again] = [transactions.clone(), transactions].map(|transactions| {
        let mut source = Candidates::new(transactions.into_iter().map(recovered).collect());
        let output = execute(&chain.state, &*chain.agenda, &input, &mut source).expect("blocks go on");
        assert_eq!(source.refusals(), []);
        output
    });
    assert_eq!(output, again);
    let before = chain.state.total();
    chain.state.apply(&output.diff);
    assert_eq!(chain.state.total() + output.burned.0, before, "value is conserved");
    chain.head = output.block(StateCommitment::default()).header;
    output
}

/// A block with an ordinary transfer, which goes through.
fn busy_block(chain: &mut TestChain, seconds: u64) -> BlockOutput {
    let (bob, nonce) = (person(8), chain.nonce(person(8).address));
    let output = block(chain, seconds, vec![transfer(bob, nonce, person(9).address, 1)]);
    assert!(output.receipts.last().unwrap().outcome.is_success(), "users go on");
    output
}

fn registry_call(chain: &TestChain, from: Person, value: U256, input: Bytes) -> UserTransaction {
    paid_call(from, chain.nonce(from.address), CRON_REGISTRY, value, input)
}

fn ran(output: &BlockOutput) -> Vec<ScheduleId> {
    output.receipts.iter().filter_map(|receipt| receipt.schedule_ref).map(|run| run.schedule).collect()
}

fn quarantined(output: &BlockOutput) -> Vec<ScheduleId> {
    let logs = output.receipts.iter().flat_map(|receipt| &receipt.logs).filter(|log| log.address == LEDGER);
    let events = logs.filter_map(|log| {
        ILedger::ScheduleQuarantined::decode_raw_log(log.topics().iter().copied(), &log.data.data).ok()
    });
    events.map(|event| id_of(event.id)).collect()
}

fn is_paused(output: &BlockOutput) -> bool {
    tells::<ILedger::LanePaused>(output)
}

/// Whether the chain says this of itself.
fn tells<E: SolEvent>(output: &BlockOutput) -> bool {
    let logs = output.receipts.iter().flat_map(|receipt| &receipt.logs);
    logs.filter(|log| log.address == LEDGER).any(|log| log.topics()[0] == E::SIGNATURE_HASH)
}

fn set(chain: &mut TestChain, key: StateKey, value: Option<Bytes>) {
    match value {
        Some(value) => chain.state.0.insert(key, value),
        None => chain.state.0.remove(&key),
    };
}

fn set_head(chain: &mut TestChain, id: ScheduleId, word: U256) {
    set(chain, StateKey::Slot(LEDGER, head_slot(id)), encode_slot(word));
}

/// A chain with three jobs that are due at one second: the one in the middle is the victim of each test.
fn three_jobs() -> (TestChain, u64, [ScheduleId; 3]) {
    let mut chain = TestChain::new();
    let due = chain.next_seconds() + HOUR;
    let order = order(&chain).at(due).every(MINUTE);
    let ids = [0, 1, 2].map(|n| id_of(chain.schedule(person(n), &order).unwrap()));
    (chain, due, ids)
}

/// The victim does not run, the others do, now and a minute later, and a transfer goes through.
#[track_caller]
fn only_the_victim_suffers(
    mut chain: TestChain,
    due: u64,
    [first, victim, last]: [ScheduleId; 3],
) -> TestChain {
    let output = busy_block(&mut chain, due);
    assert_eq!(quarantined(&output), [victim], "the fault is told of");
    assert!(!is_paused(&output), "it belongs to one schedule");
    assert_eq!(ran(&output), [first, last]);
    let output = busy_block(&mut chain, due + MINUTE);
    assert_eq!(ran(&output), [first, last]);
    assert_eq!(quarantined(&output), [], "once is enough");
    chain
}

#[test]
fn attack_08_poison_body_is_missing() {
    let (mut chain, due, ids) = three_jobs();
    set(&mut chain, StateKey::Body(ids[1]), None);
    only_the_victim_suffers(chain, due, ids);
}

#[test]
fn attack_08_poison_head_means_nothing() {
    let (mut chain, due, ids) = three_jobs();
    set_head(&mut chain, ids[1], U256::MAX);
    only_the_victim_suffers(chain, due, ids);
}

#[test]
fn attack_08_poison_head_is_missing() {
    let (mut chain, due, ids) = three_jobs();
    set_head(&mut chain, ids[1], U256::ZERO);
    only_the_victim_suffers(chain, due, ids);
}

/// The calendar has it at another time than its head says. Its owner gets the money back.
#[test]
fn attack_08_poison_head_has_another_time() {
    let (mut chain, due, ids) = three_jobs();
    let mut record = Record::read(&chain.state, ids[1]).unwrap().unwrap();
    record.head.due = Some(TimestampMs((due + 7) * 1_000));
    set_head(&mut chain, ids[1], record.head.to_word());
    let mut chain = only_the_victim_suffers(chain, due, ids);
    let before = chain.balance(person(1).address);
    let receipt = cancel_in_block(&mut chain, due + 2 * MINUTE, person(1), ids[1]);
    assert_eq!(receipt.outcome, Outcome::Success);
    assert!(chain.balance(person(1).address) > before);
}

/// Cancelled in the very block that finds the fault.
#[test]
fn attack_08_poison_cancelled_while_it_is_found() {
    let (mut chain, due, ids) = three_jobs();
    let mut record = Record::read(&chain.state, ids[1]).unwrap().unwrap();
    record.head.due = Some(TimestampMs((due - 7) * 1_000));
    set_head(&mut chain, ids[1], record.head.to_word());
    let receipt = cancel_in_block(&mut chain, due, person(1), ids[1]);
    assert_eq!(receipt.outcome, Outcome::Success);
    assert_eq!(ran(&busy_block(&mut chain, due + MINUTE)), [ids[0], ids[2]]);
}

fn cancel_in_block(chain: &mut TestChain, seconds: u64, from: Person, id: ScheduleId) -> Receipt {
    cancelling_block(chain, seconds, from, id).receipts.last().unwrap().clone()
}

fn cancelling_block(chain: &mut TestChain, seconds: u64, from: Person, id: ScheduleId) -> BlockOutput {
    let cancel = registry_call(chain, from, U256::ZERO, cancel_data(U256::from(id.0)));
    block(chain, seconds, vec![cancel])
}

/// A cancelled job has no entry where its head says: its owner is paid, and the chain does not keep quiet about it.
#[test]
fn attack_08_what_contradicts_the_calendar_is_told() {
    let (mut chain, due, ids) = three_jobs();
    let mut record = Record::read(&chain.state, ids[1]).unwrap().unwrap();
    record.head.due = Some(TimestampMs((due + 7) * 1_000));
    set_head(&mut chain, ids[1], record.head.to_word());

    let sound = cancelling_block(&mut chain, due - 2, person(0), ids[0]);
    assert!(!tells::<ILedger::CalendarContradicted>(&sound));
    let output = cancelling_block(&mut chain, due - 1, person(1), ids[1]);
    assert_eq!(output.receipts.last().unwrap().outcome, Outcome::Success);
    assert!(tells::<ILedger::CalendarContradicted>(&output) && !is_paused(&output));
    assert_eq!(ran(&busy_block(&mut chain, due)), [ids[2]], "the others go on");
}

/// An escrow larger than all that the ledger has: nobody can be paid from it, and nobody else suffers.
#[test]
fn attack_08_poison_escrow_is_not_there() {
    let (mut chain, due, ids) = three_jobs();
    let much = chain.balance(LEDGER) + U256::ONE;
    set(&mut chain, StateKey::Slot(LEDGER, escrow_slot(ids[1])), encode_slot(much));
    let receipt = cancel_in_block(&mut chain, due - 1, person(1), ids[1]);
    assert!(matches!(receipt.outcome, Outcome::Reverted(_)), "{:?}", receipt.outcome);
    // It may run, since it has money on paper. That others are paid is what counts.
    busy_block(&mut chain, due);
    for n in [0, 2] {
        let escrow = Record::read(&chain.state, ids[n]).unwrap().unwrap().escrow.0;
        let receipt = cancel_in_block(&mut chain, due + 1 + n as u64, person(n as u64), ids[n]);
        assert_eq!(only::<JobCancelled>(&receipt.logs).refunded, escrow);
    }
}

/// The same at the end of a last run, and where a job is exhausted: put aside instead of paid.
#[test]
fn attack_08_poison_escrow_is_not_there_at_the_end() {
    for value in [10 * RUN_GAS, RUN_GAS] {
        let mut chain = TestChain::new();
        let due = chain.next_seconds() + HOUR;
        let fee = chain.next_base_fee().0;
        let order = order(&chain).at(due).with_value(U256::from(value) * U256::from(fee));
        let id = id_of(chain.schedule(person(1), &order).unwrap());
        // The money vanishes from the ledger, so that it cannot be paid out.
        let mut ledger = chain.state.account(LEDGER);
        ledger.balance = U256::ONE;
        chain.state.0.insert(StateKey::Account(LEDGER), ledger.encode());
        let output = busy_block(&mut chain, due);
        assert_eq!(quarantined(&output), [id]);
        let record = Record::read(&chain.state, id).unwrap().unwrap();
        assert_eq!(record.head.status, Status::Quarantined);
        assert_eq!(record.escrow.0, order.value, "nothing was taken for what was not settled");
        assert_eq!(ran(&busy_block(&mut chain, due + 1)), []);
    }
}

/// A transaction that waits for signatures and was put aside is deleted by its admin key, and its money returns.
#[test]
fn hedera_08_what_a_fault_has_put_aside_can_be_deleted() {
    let mut chain = TestChain::new();
    let mut wish = Wish::new(vec![service_call(person(1).address, COUNTER)]);
    (wish.body.executionTime, wish.body.waitForExpiry) = (chain.next_seconds() + HOUR, true);
    wish.admin_key = Key::from(person(5)).encoded();
    let mut tx = eip1559(0, TxKind::Call(SCHEDULE_SERVICE), 0, wish.create(vec![]), PLENTY_GAS);
    tx.value = U256::from(1_000_000_000_000_000_000u64);
    let id = created(chain.produce(vec![sign(tx, person(0).secret)]).receipt(0));
    let sound = chain.state.account(LEDGER);
    let mut short = sound;
    short.balance = U256::ONE;
    set(&mut chain, StateKey::Account(LEDGER), Some(short.encode()));
    let output = busy_block(&mut chain, wish.body.executionTime);
    assert_eq!(quarantined(&output), [id]);
    set(&mut chain, StateKey::Account(LEDGER), Some(sound.encode()));
    let before = chain.balance(person(0).address);
    let delete = call(person(5), 0, SCHEDULE_SERVICE, deleting(id, vec![]), PLENTY_GAS);
    let output = block(&mut chain, wish.body.executionTime + 1, vec![delete]);
    assert!(output.receipts.last().unwrap().outcome.is_success());
    assert!(chain.balance(person(0).address) > before);
}

/// A calendar that cannot be read pauses its lane; people transfer, cancel and top up, and get their money.
#[test]
fn attack_08_poison_calendar() {
    let damages: [fn(&Bytes) -> Option<Bytes>; 3] = [
        |_| None,
        |_| Some(Bytes::from_static(b"nonsense")),
        |node| Some(node.iter().map(|byte| byte ^ 1).collect()),
    ];
    for (damage, number) in damages.into_iter().flat_map(|damage| [(damage, 0), (damage, 1)]) {
        let (mut chain, due, ids) = three_jobs();
        let key = StateKey::Calendar(number);
        let damaged = damage(&chain.state.0[&key]);
        if number == 0 && damaged.is_none() {
            // An absent head is an empty calendar: nothing runs, and what follows must hold all the same.
            set(&mut chain, key, None);
        } else {
            set(&mut chain, key, damaged);
            let output = busy_block(&mut chain, due);
            assert!(is_paused(&output) && ran(&output).is_empty());
            assert_eq!(CRON_PAUSED.from_slot_value(chain.state.slot(PARAMETERS, CRON_PAUSED.slot)), 1);
        }
        let escrow = Record::read(&chain.state, ids[0]).unwrap().unwrap().escrow.0;
        let receipt = cancel_in_block(&mut chain, due + 1, person(0), ids[0]);
        assert_eq!(only::<JobCancelled>(&receipt.logs).refunded, escrow);
        let top_up = registry_call(&chain, person(5), U256::from(5), top_up_data(U256::from(ids[1].0)));
        let output = block(&mut chain, due + 2, vec![top_up]);
        assert_eq!(
            only::<JobToppedUp>(&output.receipts.last().unwrap().logs).totalEscrow,
            escrow + U256::from(5)
        );
        assert_eq!(ran(&busy_block(&mut chain, due + 3)), []);
    }
}

/// A schedule and a cancellation in the block that finds the calendar broken: neither stops it.
#[test]
fn attack_08_poison_calendar_while_it_is_found() {
    let (mut chain, due, ids) = three_jobs();
    set(&mut chain, StateKey::Calendar(1), Some(Bytes::from_static(b"nonsense")));
    let order = order(&chain).at(due + HOUR);
    let schedule = registry_call(&chain, person(4), order.value, order.calldata());
    let cancel = registry_call(&chain, person(0), U256::ZERO, cancel_data(U256::from(ids[0].0)));
    let output = block(&mut chain, due, vec![schedule, cancel]);
    assert!(is_paused(&output));
    // Whatever became of the new one, its owner gets the money back.
    let id = only::<JobScheduled>(&output.receipts[1].logs).id;
    let receipt = cancel_in_block(&mut chain, due + 1, person(4), id_of(id));
    assert_eq!(only::<JobCancelled>(&receipt.logs).refunded, order.value);
}

/// A job that the calendar has lost never runs, and its owner gets the money back.
#[test]
fn attack_08_poison_entry_is_lost() {
    let (mut chain, due, ids) = three_jobs();
    // The calendar as it was before the last one came.
    let mut earlier = TestChain::new();
    let order = order(&earlier).at(due).every(MINUTE);
    for n in [0, 1] {
        earlier.schedule(person(n), &order).unwrap();
    }
    let is_calendar = |key: &StateKey| matches!(key, StateKey::Calendar(_));
    chain.state.0.extend(earlier.state.0.into_iter().filter(|(key, _)| is_calendar(key)));
    assert_eq!(ran(&busy_block(&mut chain, due)), ids[..2]);
    let receipt = cancel_in_block(&mut chain, due + 1, person(2), ids[2]);
    assert_eq!(receipt.outcome, Outcome::Success);
    assert_eq!(ran(&busy_block(&mut chain, due + MINUTE)), ids[..2], "the others are not touched");
}

/// A body of a later version is not read as one of this version.
#[test]
fn attack_19_upgrade_reinterprets_payload() {
    let (mut chain, due, ids) = three_jobs();
    let mut body = chain.state.0[&StateKey::Body(ids[1])].to_vec();
    body[0] += 1;
    set(&mut chain, StateKey::Body(ids[1]), Some(body.into()));
    only_the_victim_suffers(chain, due, ids);

    let (mut chain, due, ids) = three_jobs();
    let record = Record::read(&chain.state, ids[1]).unwrap().unwrap();
    let mut head = record.head.to_word().to_be_bytes::<32>();
    head[0] += 1;
    set_head(&mut chain, ids[1], U256::from_be_bytes(head));
    only_the_victim_suffers(chain, due, ids);
}
