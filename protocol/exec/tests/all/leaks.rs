//! Faults that are met while a block is made: a proposer leaves out the candidate, a verifier gives no verdict, and
//! money that appears from nowhere is found before anything is taken over.
//!
//! No transaction can do this; a bug of ours might. So the leak is planted: an inspector pays from nothing.

mod acts;

use crate::support::{contracts::*, cron::*, *};
use alloy_primitives::{Address, B256, Bytes, TxHash, U256, address};
use almanac_exec::{
    BlockBody, BlockError, BlockOutput, Candidates, EvmContext, Fault, Observer, StateFault,
    TransactionSource, Watch, execute, observe,
};
use almanac_primitives::{
    Account, Outcome, ScheduleId, StateCommitment, StateKey, TimestampMs, UserTransaction,
};
use almanac_schedule::{Record, record::Status};
use revm::{
    Inspector,
    context::{ContextTr as _, JournalTr as _},
    interpreter::{CallInputs, CallOutcome},
};

/// Whoever calls it makes the inspector pay.
const LEAKY: Address = COUNTER;

const DATA: Bytes = Bytes::from_static(&[1, 2, 3, 4]);

/// Gets what is made from nothing.
const THIEF: Address = address!("0x00000000000000000000000000000000000d00d1");

/// Makes money whenever somebody calls the leaky contract.
struct Leak;

impl<'a> Inspector<EvmContext<'a>> for Leak {
    fn call(&mut self, context: &mut EvmContext<'a>, inputs: &mut CallInputs) -> Option<CallOutcome> {
        if inputs.target_address == LEAKY {
            context.journal_mut().balance_incr(THIEF, U256::ONE).unwrap();
        }
        None
    }
}

/// Executes a block in which the leak is there.
fn leaking(
    chain: &TestChain,
    seconds: u64,
    source: &mut dyn TransactionSource,
) -> Result<BlockOutput, BlockError> {
    let mut observer = Observer { inspector: Leak, watch: Watch::Everything, finished: &mut |_, _| {} };
    let input = chain.input_at(TimestampMs(seconds * 1_000));
    observe(&chain.state, &*chain.agenda, &input, source, &mut observer)
}

/// Takes a block over, and checks that no money appeared or vanished.
fn take_over(chain: &mut TestChain, output: &BlockOutput) {
    let before = chain.state.total();
    chain.state.apply(&output.diff);
    assert_eq!(chain.state.total() + output.burned.0, before, "value is conserved");
    chain.head = output.block(StateCommitment::default()).header;
}

fn is_leak(error: &BlockError) -> bool {
    matches!(error, BlockError::Fault(fault) if matches!(**fault, Fault::ValueNotConserved { .. }))
}

fn candidates(transactions: &[UserTransaction]) -> Candidates {
    Candidates::new(transactions.iter().cloned().map(recovered).collect())
}

fn hashes(transactions: &[UserTransaction]) -> Vec<TxHash> {
    transactions.iter().map(UserTransaction::hash).collect()
}

fn included(output: &BlockOutput) -> Vec<TxHash> {
    let users = output.receipts.iter().filter(|receipt| receipt.transaction_type < 0x70);
    users.map(|receipt| receipt.transaction_hash).collect()
}

/// Faults of our own that a block reports.
fn faults(output: &BlockOutput) -> Vec<String> {
    let logs = output.receipts.iter().flat_map(|receipt| &receipt.logs);
    logs.filter_map(almanac_exec::fault_in).collect()
}

/// The candidate and what its sender sent next stay out, all others go in, and nothing of it is in the state.
#[test]
fn a_candidate_that_makes_money_is_left_out() {
    let mut chain = TestChain::new();
    let before = transfer(person(0), 0, person(9).address, 1);
    let leak = call(person(1), 0, LEAKY, Bytes::new(), 100_000);
    let next = transfer(person(1), 1, person(9).address, 1);
    let after = transfer(person(2), 0, person(9).address, 1);
    let mut source = candidates(&[before.clone(), leak.clone(), next, after.clone()]);
    let output = leaking(&chain, chain.next_seconds(), &mut source).unwrap();
    assert_eq!(included(&output), hashes(&[before, after]));
    let [(hash, error)] = source.faults() else { panic!("one fault: {:?}", source.faults()) };
    assert!(*hash == leak.hash() && is_leak(error), "{error}");
    assert_eq!(source.refusals(), [], "those behind it were not looked at");
    take_over(&mut chain, &output);
    assert_eq!((chain.balance(THIEF), chain.nonce(person(1).address)), (U256::ZERO, 0));
}

/// A verifier cannot leave it out, and says nothing of the block.
#[test]
fn a_body_with_a_transaction_that_makes_money_is_a_fault() {
    let chain = TestChain::new();
    let leak = recovered(call(person(1), 0, LEAKY, Bytes::new(), 100_000));
    let error = leaking(&chain, chain.next_seconds(), &mut BlockBody::new(vec![leak])).unwrap_err();
    assert!(is_leak(&error), "{error}");
}

/// Its changes are dropped, its schedule is quarantined with what was charged, and the others run.
#[test]
fn a_run_that_makes_money_changes_nothing_and_its_schedule_is_put_aside() {
    let mut chain = TestChain::new();
    let due = chain.next_seconds() + HOUR;
    let (sound, leaky) =
        (order(&chain).at(due).calling(LOGGER, DATA), order(&chain).at(due).calling(LEAKY, DATA));
    let ids = [&sound, &leaky, &sound].map(|order| id_of(chain.schedule(person(0), order).unwrap()));
    let escrow = Record::read(&chain.state, ids[1]).unwrap().unwrap().escrow;

    let output = leaking(&chain, due, &mut candidates(&[])).unwrap();

    let outcomes: Vec<(ScheduleId, bool)> = (output.receipts.iter())
        .filter_map(|receipt| Some((receipt.schedule_ref?.schedule, receipt.outcome == Outcome::Success)))
        .collect();
    assert_eq!(outcomes, [(ids[0], true), (ids[1], false), (ids[2], true)]);
    let faults = faults(&output);
    assert_eq!(faults.len(), 1, "the quarantine is told of: {faults:?}");
    take_over(&mut chain, &output);
    let record = Record::read(&chain.state, ids[1]).unwrap().unwrap();
    assert_eq!((record.head.status, record.escrow), (Status::Quarantined, escrow));
    assert_eq!(chain.balance(THIEF), U256::ZERO);
    assert_eq!(chain.state.slot_of(LEAKY, almanac_primitives::addresses::CRON_REGISTRY), U256::ZERO);
}

/// Contracts whose code is gone: calling one is a fault of the state.
fn broken(chain: &mut TestChain, count: u64) -> Vec<UserTransaction> {
    let account =
        Account { nonce: 1, balance: U256::ZERO, code_hash: B256::repeat_byte(0xbc), is_keyed: false };
    (0..count)
        .map(|n| {
            let target = Address::with_last_byte(0xb0 + u8::try_from(n).unwrap());
            chain.state.0.insert(StateKey::Account(target), account.encode());
            call(person(n), 0, target, Bytes::new(), 100_000)
        })
        .collect()
}

/// Both sides: with fewer faults the choice goes on, with more it ends, since the state is to blame.
#[test]
fn a_few_faults_are_passed_over_and_many_end_the_choice() {
    for (faults, is_taken) in [(1, true), (3, true), (4, false), (5, false)] {
        let mut chain = TestChain::new();
        let good = transfer(person(9), 0, person(8).address, 1);
        let offered = [broken(&mut chain, faults), vec![good.clone()]].concat();
        let mut source = candidates(&offered);
        let output = execute(&chain.state, &*chain.agenda, &chain.input(), &mut source).unwrap();
        assert_eq!(
            included(&output),
            if is_taken { vec![good.hash()] } else { Vec::new() },
            "{faults} faults"
        );
        assert_eq!(source.faults().len() as u64, faults.min(4));
        let is_missing = |error: &BlockError| matches!(error, BlockError::State(StateFault::Missing { .. }));
        assert!(source.faults().iter().all(|(_, error)| is_missing(error)));
    }
}
