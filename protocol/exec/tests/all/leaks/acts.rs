//! The same where the chain itself moves money: at the start and the end of a run, and where a schedule ends without one.
//!
//! No code runs there, so no inspector can pay. Instead, money already lies where burned money is counted: whatever the
//! chain pays to that account counts for a wei too much.

use super::{candidates, faults, hashes, included, is_leak, take_over};
use crate::support::{
    contracts::{COUNTER, FORWARDER, REVERTER, to},
    cron::*,
    market::{Market, ScheduledTransaction, txn},
    signed::*,
    *,
};
use alloy_primitives::{Address, U256};
use almanac_exec::{BlockBody, BlockError, BlockOutput, EvmContext, Observer, Watch, execute, observe};
use almanac_primitives::{
    Account, ScheduleId, StateKey, TimestampMs, UserTransaction, Wei,
    addresses::{BURN, CRON_REGISTRY, LEDGER, SCHEDULE_SERVICE},
};
use almanac_schedule::{
    Record,
    record::{Head, Status, head_slot},
};
use revm::{
    Inspector,
    context::{ContextTr as _, JournalTr as _},
    interpreter::{CallInputs, CallOutcome},
};

/// Makes all that is burned count for a wei too much.
fn miscount(chain: &mut TestChain) {
    let account = Account { balance: U256::ONE, ..Account::default() };
    chain.state.0.insert(StateKey::Account(BURN), account.encode());
}

fn block(chain: &TestChain, now: TimestampMs, sent: &[UserTransaction]) -> Result<BlockOutput, BlockError> {
    execute(&chain.state, &*chain.agenda, &chain.input_at(now), &mut candidates(sent))
}

fn record(chain: &TestChain, id: ScheduleId) -> Record {
    Record::read(&chain.state, id).unwrap().unwrap()
}

fn calls(chain: &TestChain, caller: Address) -> U256 {
    runs::count_of(&chain.state, caller)
}

/// Makes a block with the leak and a transfer in it: the schedule is put aside with this escrow, nobody is paid, and the
/// transfer goes through.
#[track_caller]
fn is_put_aside(
    chain: &mut TestChain,
    now: TimestampMs,
    mut sent: Vec<UserTransaction>,
    (id, escrow): (ScheduleId, Wei),
) {
    sent.push(transfer(person(9), chain.nonce(person(9).address), person(8).address, 1));
    miscount(chain);
    let output = block(chain, now, &sent).unwrap();
    assert_eq!(included(&output), hashes(&sent));
    let [fault] = &faults(&output)[..] else { panic!("one fault: {:?}", faults(&output)) };
    assert!(fault.contains("value is not conserved"), "{fault}");
    take_over(chain, &output);
    let record = record(chain, id);
    assert_eq!((record.head.status, record.escrow), (Status::Quarantined, escrow));
    ledger::check(&chain.state);
}

/// A chain with a job that is due at a second.
fn with_job(change: impl FnOnce(JobOrder) -> JobOrder) -> (TestChain, u64, ScheduleId) {
    let mut chain = TestChain::new();
    let due = chain.next_seconds() + HOUR;
    let order = change(order(&chain).at(due));
    let id = id_of(chain.schedule(person(0), &order).unwrap());
    (chain, due, id)
}

/// The call stands, its charge returns to the escrow.
#[test]
fn a_settlement_that_makes_money_is_dropped() {
    let (mut chain, due, id) = with_job(|order| order);
    let (escrow, held) = (record(&chain, id).escrow, chain.balance(LEDGER));
    is_put_aside(&mut chain, TimestampMs(due * 1_000), vec![], (id, escrow));
    assert_eq!((calls(&chain, CRON_REGISTRY), chain.balance(LEDGER)), (U256::ONE, held));
}

/// The same where the end of the block decides the price.
#[test]
fn a_settlement_at_the_end_of_a_block_that_makes_money_is_dropped() {
    let mut market = Market::new();
    let order = txn(market.next() + 1_000);
    let key = market.insert(&order).unwrap();
    let (Record { id, escrow, .. }, mut chain) = (market.record(&key), market.chain);
    let held = chain.balance(LEDGER);
    is_put_aside(&mut chain, TimestampMs(order.scheduledTimeMs), vec![], (id, escrow));
    assert_eq!((calls(&chain, order.senderAddr), chain.balance(LEDGER)), (U256::ONE, held));
}

/// The same for what ran when its last signature came: its payer has again what it was debited, and the signatures do not
/// count again.
#[test]
fn a_settlement_of_a_signed_run_that_makes_money_is_dropped() {
    let mut chain = TestChain::new();
    let wish = Wish::new(vec![service_call(person(1).address, COUNTER)]);
    let (id, _) = chain.create(person(0), &wish, vec![]);
    let (before, now) = ([LEDGER, person(0).address].map(|of| chain.balance(of)), chain.input().timestamp);
    let last = to_service(person(2), 0, signing(id, vec![wish.signed(person(1))]));
    is_put_aside(&mut chain, now, vec![last], (id, Wei::ZERO));
    assert_eq!(calls(&chain, person(1).address), U256::ONE);
    assert_eq!([LEDGER, person(0).address].map(|of| chain.balance(of)), before);
    let again = to_service(person(2), 1, wish.create(vec![wish.signed(person(1))]));
    let output = block(&chain, chain.input().timestamp, &[again]).unwrap();
    assert!(runs::ran(&output).is_empty());
    take_over(&mut chain, &output);
    assert_eq!(calls(&chain, person(1).address), U256::ONE);
}

/// A failed run that was lent money and paid from a fund: all of it is in the fund again, and nothing in the account.
#[test]
fn a_settlement_of_a_failed_run_that_makes_money_keeps_no_loan() {
    let mut chain = TestChain::new();
    let payment = ServiceCall { value: U256::from(400), ..service_call(FORWARDER, person(7).address) };
    let wish = Wish::new(vec![payment, service_call(FORWARDER, REVERTER)]);
    chain.produce(vec![funding(person(0), 0, FORWARDER, 1_000_000_000_000_000)]);
    let before = (chain.fund_of(FORWARDER), chain.balance(FORWARDER), chain.balance(LEDGER));
    let input = to(SCHEDULE_SERVICE, &wish.create(vec![]));
    let create = call(person(6), 0, FORWARDER, input, 3_000_000);
    let id = ScheduleId::new(chain.input().parent.number + 1, 1, 0).unwrap();
    let now = chain.input().timestamp;
    is_put_aside(&mut chain, now, vec![create], (id, Wei::ZERO));
    assert_eq!((chain.fund_of(FORWARDER), chain.balance(FORWARDER), chain.balance(LEDGER)), before);
}

/// Nothing is charged, nothing is lent, and nothing is called.
#[test]
fn a_start_that_makes_money_is_dropped_with_its_run() {
    let mut market = Market::new();
    let order = ScheduledTransaction { value: U256::from(7), ..txn(market.next() + 1_000) };
    let key = market.insert(&order).unwrap();
    let (mut record, mut chain) = (market.record(&key), market.chain);
    // The value of its call is lent to this account when it starts.
    record.body.calls[0].from = BURN;
    chain.state.0.insert(StateKey::Body(record.id), record.body.encode());
    let held = chain.balance(LEDGER);
    is_put_aside(&mut chain, TimestampMs(order.scheduledTimeMs), vec![], (record.id, record.escrow));
    assert_eq!((calls(&chain, BURN), chain.balance(LEDGER)), (U256::ZERO, held));
}

/// Changes what the chain keeps of a schedule while its run is under way, as no code can.
struct Meddler {
    slot: U256,
    word: U256,
}

impl<'a> Inspector<EvmContext<'a>> for Meddler {
    fn call(&mut self, context: &mut EvmContext<'a>, inputs: &mut CallInputs) -> Option<CallOutcome> {
        if inputs.target_address == REVERTER {
            context.journal_mut().load_account(LEDGER).unwrap();
            context.journal_mut().sstore(LEDGER, self.slot, self.word).unwrap();
        }
        None
    }
}

/// The door keeps nothing of the value that it was lent for a call that failed.
#[test]
fn a_failed_run_whose_schedule_cannot_end_keeps_no_value() {
    let mut market = Market::new();
    let order = ScheduledTransaction {
        value: U256::from(7),
        to: REVERTER,
        passSigner: false,
        ..txn(market.next() + 1_000)
    };
    let key = market.insert(&order).unwrap();
    let (Record { id, escrow, head, .. }, mut chain) = (market.record(&key), market.chain);
    let door = record(&chain, id).body.call().from;
    assert_ne!(door, order.senderAddr);
    let before = (chain.balance(LEDGER), chain.balance(door));
    let word = Head { status: Status::Cancelled, ..head }.to_word();
    let inspector = Meddler { slot: head_slot(id), word };
    let mut observer = Observer { inspector, watch: Watch::Everything, finished: &mut |_, _| {} };
    let input = chain.input_at(TimestampMs(order.scheduledTimeMs));
    let output = observe(&chain.state, &*chain.agenda, &input, &mut candidates(&[]), &mut observer).unwrap();
    assert_eq!(faults(&output).len(), 1, "{:?}", faults(&output));
    take_over(&mut chain, &output);
    assert_eq!((record(&chain, id).head.status, record(&chain, id).escrow), (Status::Quarantined, escrow));
    assert_eq!((chain.balance(LEDGER), chain.balance(door)), before);
}

/// No run is there to be dropped, so nobody makes or accepts the block. Without the leak, the job ends in it.
#[test]
fn an_end_without_a_run_that_makes_money_stops_the_block() {
    let (mut chain, due, id) = with_job(|order| {
        let value = order.value / U256::from(8);
        order.every(MINUTE).with_value(value).refunding(BURN)
    });
    assert_eq!(chain.at(due).ran().len(), 1, "the money is enough for one run");
    let now = TimestampMs((due + MINUTE) * 1_000);
    let sound = block(&chain, now, &[]).unwrap();
    assert!(!sound.burned.0.is_zero() && faults(&sound).is_empty(), "the rest is paid out");
    miscount(&mut chain);
    let proposed = block(&chain, now, &[]).unwrap_err();
    let input = chain.input_at(now);
    let judged = execute(&chain.state, &*chain.agenda, &input, &mut BlockBody::new(vec![])).unwrap_err();
    assert!(is_leak(&proposed) && is_leak(&judged), "{proposed}, {judged}");
    assert_eq!(record(&chain, id).head.status, Status::Pending);
}
