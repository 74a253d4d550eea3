//! The same where the chain itself moves money: at the start and the end of a run, and where a schedule ends without one.
//!
//! No code runs there, so no inspector can pay. Instead, money already lies where burned money is counted: whatever the
//! chain pays to that account counts for a wei too much.

use super::{THIEF, candidates, faults, hashes, included, is_leak, take_over};
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

/// The same for a job that removes itself in its run: the charge goes where the rest of its money has gone.
#[test]
fn a_settlement_of_a_job_that_removed_itself_keeps_no_charge() {
    let mut chain = TestChain::new();
    let due = chain.next_seconds() + HOUR;
    let id = ScheduleId::new(chain.head.number + 1, 1, 0).unwrap();
    let money = U256::from(10u64.pow(17));
    let order = order(&chain)
        .calling(FORWARDER, to(CRON_REGISTRY, &cancel_data(U256::from(id.0))))
        .at(due)
        .every(MINUTE);
    let order = order.gas(200_000).refunding(person(8).address).with_value(money);
    let receipt = chain.send(person(4), FORWARDER, money, to(CRON_REGISTRY, &order.calldata()));
    assert_eq!(scheduled(&receipt), Ok(U256::from(id.0)));
    let before = chain.balance(person(8).address);
    miscount(&mut chain);
    let output = block(&chain, TimestampMs(due * 1_000), &[]).unwrap();
    assert_eq!(faults(&output).len(), 1);
    take_over(&mut chain, &output);
    assert_eq!(Record::read(&chain.state, id).unwrap(), None);
    assert_eq!((chain.balance(person(8).address), chain.balance(LEDGER)), (before + money, U256::ZERO));
    ledger::check(&chain.state);
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

/// What the fund of an account lends it for a run.
const LOAN: u64 = 400;

/// A transaction that makes a schedule run at once: its payer pays from a fund, which also lends value to its first call,
/// and its second call fails.
fn borrowing() -> (TestChain, UserTransaction, ScheduleId) {
    let mut chain = TestChain::new();
    let payment = ServiceCall { value: U256::from(LOAN), ..service_call(FORWARDER, person(7).address) };
    let wish = Wish::new(vec![payment, service_call(FORWARDER, REVERTER)]);
    chain.produce(vec![funding(person(0), 0, FORWARDER, 1_000_000_000_000_000)]);
    let input = to(SCHEDULE_SERVICE, &wish.create(vec![]));
    let create = call(person(6), 0, FORWARDER, input, 3_000_000);
    let id = ScheduleId::new(chain.input().parent.number + 1, 1, 0).unwrap();
    (chain, create, id)
}

/// All of it is in the fund again, and nothing in the account.
#[test]
fn a_settlement_of_a_failed_run_that_makes_money_keeps_no_loan() {
    let (mut chain, create, id) = borrowing();
    let before = (chain.fund_of(FORWARDER), chain.balance(FORWARDER), chain.balance(LEDGER));
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

/// Does what no code can while a run is under way: once, when the call that it waits for is made, or when that has ended.
struct Meddler<F> {
    is_met: fn(&CallInputs) -> bool,
    is_at_end: bool,
    act: Option<F>,
}

impl<F: FnOnce(&mut EvmContext<'_>)> Meddler<F> {
    fn meet(&mut self, context: &mut EvmContext<'_>, inputs: &CallInputs, is_at_end: bool) {
        if (self.is_met)(inputs)
            && is_at_end == self.is_at_end
            && let Some(act) = self.act.take()
        {
            act(context);
        }
    }
}

impl<'a, F: FnOnce(&mut EvmContext<'_>)> Inspector<EvmContext<'a>> for Meddler<F> {
    fn call(&mut self, context: &mut EvmContext<'a>, inputs: &mut CallInputs) -> Option<CallOutcome> {
        self.meet(context, inputs, false);
        None
    }

    fn call_end(&mut self, context: &mut EvmContext<'a>, inputs: &CallInputs, _: &mut CallOutcome) {
        self.meet(context, inputs, true);
    }
}

/// Makes a block in which somebody meddles, and takes it over. Returns the one fault in it.
fn meddle<F: FnOnce(&mut EvmContext<'_>)>(
    chain: &mut TestChain,
    now: TimestampMs,
    sent: &[UserTransaction],
    inspector: Meddler<F>,
) -> String {
    let mut observer = Observer { inspector, watch: Watch::Everything, finished: &mut |_, _| {} };
    let input = chain.input_at(now);
    let output = observe(&chain.state, &*chain.agenda, &input, &mut candidates(sent), &mut observer).unwrap();
    assert!(observer.inspector.act.is_none(), "it meddled");
    let [fault] = &faults(&output)[..] else { panic!("one fault: {:?}", faults(&output)) };
    take_over(chain, &output);
    ledger::check(&chain.state);
    fault.clone()
}

/// Moves money from an account to a thief.
fn steal(from: Address, amount: U256) -> impl FnOnce(&mut EvmContext<'_>) {
    move |context| {
        let refused = context.journal_mut().transfer(from, THIEF, amount).unwrap();
        assert!(refused.is_none(), "{from} has {amount}");
    }
}

fn is_to_reverter(inputs: &CallInputs) -> bool {
    inputs.target_address == REVERTER
}

/// A market order with value whose call fails, and which the door itself calls.
fn failing() -> (TestChain, ScheduledTransaction, Record) {
    let mut market = Market::new();
    let order = ScheduledTransaction {
        value: U256::from(7),
        to: REVERTER,
        passSigner: false,
        ..txn(market.next() + 1_000)
    };
    let key = market.insert(&order).unwrap();
    let record = market.record(&key);
    assert_ne!(record.body.call().from, order.senderAddr);
    (market.chain, order, record)
}

/// The door keeps nothing of the value that it was lent for a call that failed.
#[test]
fn a_failed_run_whose_schedule_cannot_end_keeps_no_value() {
    let (mut chain, order, Record { id, escrow, head, body, .. }) = failing();
    let door = body.call().from;
    let before = (chain.balance(LEDGER), chain.balance(door));
    let word = Head { status: Status::Cancelled, ..head }.to_word();
    let act = move |context: &mut EvmContext<'_>| {
        context.journal_mut().load_account(LEDGER).unwrap();
        context.journal_mut().sstore(LEDGER, head_slot(id), word).unwrap();
    };
    let meddler = Meddler { is_met: is_to_reverter, is_at_end: false, act: Some(act) };
    let fault = meddle(&mut chain, TimestampMs(order.scheduledTimeMs), &[], meddler);
    assert!(!fault.contains("only its charge"), "{fault}");
    assert_eq!((record(&chain, id).head.status, record(&chain, id).escrow), (Status::Quarantined, escrow));
    assert_eq!((chain.balance(LEDGER), chain.balance(door)), before);
}

/// Where that value is gone, the block goes on, and the escrow has the charge again.
#[test]
fn a_failed_run_whose_value_is_gone_returns_its_charge() {
    let (mut chain, order, Record { id, escrow, body, .. }) = failing();
    let (door, value) = (body.call().from, order.value);
    let before = (chain.balance(LEDGER), chain.balance(door));
    let act = steal(door, value);
    let meddler = Meddler { is_met: is_to_reverter, is_at_end: true, act: Some(act) };
    let fault = meddle(&mut chain, TimestampMs(order.scheduledTimeMs), &[], meddler);
    assert!(fault.contains("only its charge was returned"), "{fault}");
    let after = record(&chain, id);
    assert_eq!((after.head.status, after.escrow), (Status::Quarantined, Wei(escrow.0 - value)));
    assert_eq!((chain.balance(LEDGER), chain.balance(door)), (before.0 - value, before.1));
    assert_eq!(chain.balance(THIEF), value);
}

/// The same for a fund's loan: who paid cannot be paid back, and the escrow has the charge.
#[test]
fn a_failed_signed_run_whose_loan_is_gone_returns_its_charge() {
    let (mut chain, create, id) = borrowing();
    let before = (chain.fund_of(FORWARDER), chain.balance(LEDGER), chain.balance(FORWARDER));
    let act = steal(FORWARDER, U256::from(LOAN));
    // What a tracer sees above the calls of a list ends when all of them are undone.
    let is_met = |inputs: &CallInputs| inputs.target_address == SCHEDULE_SERVICE && inputs.input.is_empty();
    let meddler = Meddler { is_met, is_at_end: true, act: Some(act) };
    let now = chain.input().timestamp;
    let fault = meddle(&mut chain, now, &[create], meddler);
    assert!(fault.contains("only its charge was returned"), "{fault}");
    let after = record(&chain, id);
    let charged = before.0 - U256::from(LOAN) - chain.fund_of(FORWARDER);
    assert!(!charged.is_zero());
    assert_eq!((after.head.status, after.escrow), (Status::Quarantined, Wei(charged)));
    assert_eq!(chain.balance(LEDGER), before.1 - U256::from(LOAN));
    assert_eq!((chain.balance(FORWARDER), chain.balance(THIEF)), (before.2, U256::from(LOAN)));
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
